"""Which conversations git has, in real repositories with remotes, worktrees and stashes."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from reconcile.formats import get_format
from reconcile.scan.git_records import GitRecord, Sought, git_records, texts_in_git
from reconcile.scan.outdated import KeptHistory
from tests.support.projects.git_world import git

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git")

JP = get_format("jp")
ONE, TWO, THREE = "jp-c17500000001", "jp-c17500000002", "jp-c17500000003"


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """Return a repository without commits."""
    top = tmp_path / "project"
    top.mkdir()
    git(top, "init", "-q", "-b", "main")
    return top


def write(top: Path, name: str, content: str = "[]") -> None:
    directory = top / "chats" / name
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "events.json").write_text(content)


def commit(top: Path, message: str) -> str:
    git(top, "add", "-A")
    git(top, "commit", "-q", "-m", message)
    return git(top, "rev-parse", "HEAD").strip()


def records(top: Path, *ids: str, fmt: str = "jp") -> dict[str, GitRecord] | None:
    kept = KeptHistory(str(top.parent / "kept"), readonly=True)
    return git_records(ids or (ONE, TWO, THREE), str(top / "chats"), get_format(fmt), kept)


def test_a_repository_without_commits_has_what_is_staged(top: Path) -> None:
    write(top, "17500000001-one")
    assert records(top) == {}
    git(top, "add", "-A")
    assert records(top) == {ONE: GitRecord(None)}
    assert GitRecord(None).words == "staged for the next commit"


def test_the_first_commit_counts_under_every_name_of_the_directory(top: Path) -> None:
    write(top, "17500000001-one")
    first = commit(top, "one")
    git(top, "mv", "chats/17500000001-one", "chats/17500000001-another-title")
    write(top, "17500000001-another-title", "[1]")
    commit(top, "another title")
    found = records(top)
    assert found == {ONE: GitRecord(first)}
    assert found[ONE].words == f"in git since {first[:12]}, not pushed"


def test_a_removed_conversation_stays_in_git(top: Path) -> None:
    write(top, "17500000001-one")
    first = commit(top, "one")
    git(top, "rm", "-rq", "chats/17500000001-one")
    write(top, "17500000002-two")
    second = commit(top, "two")
    assert records(top) == {ONE: GitRecord(first), TWO: GitRecord(second)}


def test_an_amended_commit_is_still_there(top: Path) -> None:
    write(top, "17500000002-two")
    commit(top, "base")
    write(top, "17500000001-one")
    first = commit(top, "one, by mistake")
    git(top, "rm", "-rq", "chats/17500000001-one")
    git(top, "commit", "-q", "--amend", "--allow-empty", "-m", "without it")
    assert records(top, ONE) == {ONE: GitRecord(first)}


def test_nested_and_archived_ones_have_their_own_record(top: Path) -> None:
    write(top, "17500000001-one/conversations/17500000002-two")
    first = commit(top, "a child")
    write(top, ".archive/17500000003-three")
    second = commit(top, "an archived one")
    assert records(top) == {TWO: GitRecord(first), THREE: GitRecord(second)}


def test_pushed_branches_are_named_without_the_remotes_head(top: Path) -> None:
    write(top, "17500000001-one")
    first = commit(top, "one")
    remote = top.parent / "remote.git"
    git(top, "clone", "-q", "--bare", str(top), str(remote))
    git(top, "remote", "add", "origin", str(remote))
    git(top, "fetch", "-q", "origin")
    git(top, "remote", "set-head", "origin", "main")
    write(top, "17500000002-two")
    second = commit(top, "two")
    found = records(top)
    assert found == {ONE: GitRecord(first, ("origin/main",)), TWO: GitRecord(second)}
    assert found[ONE].words.endswith(", also on origin/main")


def test_other_conversations_and_files_have_no_record(top: Path) -> None:
    write(top, "17500000001-one")
    (top / "notes.txt").write_text("17500000002-two")
    commit(top, "both")
    assert records(top, TWO) == {}


def test_a_record_with_a_fixed_place_is_found_by_its_path(top: Path) -> None:
    (top / "chats").mkdir()
    (top / "chats" / "note.md").write_text("a")
    (top / "chats" / "note.md.bak").write_text("b")
    first = commit(top, "notes")
    assert records(top, "note.md", "other.md", fmt="claudesidian") == {"note.md": GitRecord(first)}


def test_without_a_repository_nothing_is_in_git(tmp_path: Path) -> None:
    (tmp_path / "project" / "chats").mkdir(parents=True)
    assert records(tmp_path / "project") == {}


def test_a_damaged_repository_gives_no_answer(top: Path) -> None:
    write(top, "17500000001-one")
    commit(top, "one")
    shutil.rmtree(top / ".git" / "objects")
    assert records(top) is None


def test_a_worktree_whose_repository_was_renamed_gives_no_answer(top: Path) -> None:
    """The repository still has the commit, only its place is unknown."""
    write(top, "17500000001-one")
    first = commit(top, "one")
    beside = top.parent / "beside"
    git(top, "worktree", "add", "-q", str(beside), "-b", "beside")
    assert records(beside) == {ONE: GitRecord(first)}
    top.rename(top.parent / "renamed")
    assert records(beside) is None


EVENTS = (ONE, "events.json")


def texts(
    top: Path, *wanted: str, size: int = 10, file: tuple[str, str] = EVENTS, fmt: str = "jp"
) -> dict[str, GitRecord | None] | None:
    kept = KeptHistory(str(top.parent / "kept"), readonly=True)

    def found_in(content: bytes, before: Collection[bytes]) -> list[str]:
        return [each for each in wanted if each.encode() in content and not any(each.encode() in old for old in before)]

    found = texts_in_git({file: Sought(frozenset(wanted), size)}, found_in, str(top / "chats"), get_format(fmt), kept)
    return None if found is None else found[file]


@pytest.mark.parametrize("size", [10, 1 << 30])
def test_a_text_has_the_first_commit_with_it_under_every_name_of_the_directory(top: Path, size: int) -> None:
    write(top, "17500000001-one", "a")
    first = commit(top, "a")
    write(top, "17500000001-one", "a b")
    second = commit(top, "b")
    git(top, "mv", "chats/17500000001-one", "chats/17500000001-another-title")
    write(top, "17500000001-another-title", "a")
    commit(top, "b is gone")
    write(top, "17500000001-another-title", "a c")
    git(top, "add", "-A")
    write(top, "17500000001-another-title", "a c d")
    assert texts(top, "a", "b", "c", "d", size=size) == {
        "a": GitRecord(first),
        "b": GitRecord(second),
        "c": GitRecord(None),
    }


def test_a_text_of_another_file_does_not_count(top: Path) -> None:
    write(top, "17500000001-one", "a")
    write(top, "17500000002-two", "b")
    (top / "chats" / "17500000001-one" / "NOTE.md").write_text("b")
    commit(top, "both")
    assert texts(top, "b") == {}


def test_a_text_that_was_amended_is_pushed_if_either_commit_is(top: Path) -> None:
    write(top, "17500000001-one", "a")
    first = commit(top, "a")
    git(top, "commit", "-q", "--amend", "-m", "a again")
    remote = top.parent / "remote.git"
    git(top, "clone", "-q", "--bare", str(top), str(remote))
    git(top, "remote", "add", "origin", str(remote))
    git(top, "fetch", "-q", "origin")
    found = texts(top, "a")
    assert found is not None
    assert found["a"] is not None
    assert found["a"].branches == ("origin/main",)
    assert found["a"].commit in (first, git(top, "rev-parse", "HEAD").strip())


def test_a_text_is_unknown_if_a_version_is_missing(top: Path) -> None:
    write(top, "17500000001-one", "a")
    commit(top, "a")
    write(top, "17500000001-one", "a b")
    commit(top, "b")
    blob = git(top, "rev-parse", "HEAD~:chats/17500000001-one/events.json").strip()
    (top / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    found = texts(top, "b", "c")
    assert found is not None
    assert found["c"] is None


def test_the_text_of_a_record_is_found_by_its_path(top: Path) -> None:
    (top / "chats").mkdir()
    (top / "chats" / "note.md").write_text("a")
    first = commit(top, "notes")
    assert texts(top, "a", "b", file=("note.md", ""), fmt="claudesidian") == {"a": GitRecord(first)}
