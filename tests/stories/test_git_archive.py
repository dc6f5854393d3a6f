"""Archived on one commit and live on another, with real git: nothing that git has put somewhere is moved from there."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from tests.support.projects.git_world import CHILD, OTHER, PARENT, check_git, check_private, commit, git, place
from tests.support.projects.world import LONG_AGO, SECOND, append, contents

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.projects.world import World

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git")


def reconcile(story: World, *args: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(story.reconcile(*args, "--json").stdout)
    check_private(story)
    return found


def archive(side: Path, number: int) -> None:
    """Have JP, or a colleague, move a conversation into the archive."""
    (directory,) = side.rglob(f"{number}-*")
    (side / ".archive").mkdir(exist_ok=True)
    directory.rename(side / ".archive" / directory.name)


def unarchive(side: Path, number: int) -> None:
    (directory,) = (side / ".archive").glob(f"{number}-*")
    directory.rename(side / directory.name)


def lies(side: Path, number: int) -> str:
    """Return in which directory of a side a conversation is."""
    (directory,) = (path for path in side.rglob(f"{number}-*") if (path / "metadata.json").exists())
    return directory.parent.name


def steps(found: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(each["kind"], each["reason"], each["target"].partition(":")[0]) for each in found["actions"]]


def asides(found: dict[str, Any]) -> list[str]:
    return [item["reason"] for item in found["aside"]]


@pytest.fixture
def archived(story: World) -> World:
    """JP archives one; that is committed."""
    archive(story.store, OTHER)
    archive(story.workspace, OTHER)
    assert reconcile(story)["actions"] == []
    commit(story, "archived")
    return story


def test_an_older_commit_has_it_live_and_keeps_it_so(archived: World, monkeypatch: pytest.MonkeyPatch) -> None:
    git(archived.project, "checkout", "-q", "HEAD~1")
    found = reconcile(archived)
    assert (steps(found), asides(found)) == ([], ["displaced"])
    assert (lies(archived.store, OTHER), lies(archived.workspace, OTHER)) == (".archive", "conversations")
    check_git(archived)
    with monkeypatch.context() as patch:
        patch.setattr("reconcile.fs.git.Git._run", lambda *_: pytest.fail("git is asked again"))
        assert asides(reconcile(archived)) == ["displaced"]
    for way in ("feature", "HEAD~1", "feature"):
        git(archived.project, "checkout", "-q", way)
        found = reconcile(archived)
        assert (steps(found), asides(found)) == ([], ["displaced"] if "~" in way else [])
        check_git(archived)
    assert lies(archived.workspace, OTHER) == ".archive"


def test_what_goes_on_at_an_older_commit_is_saved_and_stays_there(archived: World) -> None:
    git(archived.project, "checkout", "-qb", "more", "HEAD~1")
    reconcile(archived)
    append(place(archived, OTHER), 2, "v", LONG_AGO + 90 * SECOND)
    found = reconcile(archived)
    assert (steps(found), asides(found)) == ([("copy", "edited-workspace", "store")], ["displaced"])
    assert lies(archived.workspace, OTHER) == "conversations"
    commit(archived, "more")
    assert steps(reconcile(archived)) == []
    git(archived.project, "checkout", "-q", "feature")
    reconcile(archived)
    assert (archived.event_count(OTHER), lies(archived.store, OTHER)) == (6, ".archive")
    check_git(archived)


@pytest.mark.parametrize("back", [False, True], ids=["archived", "and unarchived"])
def test_a_commit_of_a_colleague_is_followed_by_the_store(story: World, tmp_path: Path, back: bool) -> None:
    git(story.project, "worktree", "add", "-q", "-b", "colleague", str(tmp_path / "theirs"))
    theirs = replace(story, project=tmp_path / "theirs")
    archive(theirs.workspace, OTHER)
    commit(theirs, "archived there")
    git(story.project, "merge", "-q", "colleague")
    assert steps(reconcile(story)) == [("archive", "later-commit", "store")]
    assert (lies(story.store, OTHER), lies(story.workspace, OTHER)) == (".archive", ".archive")
    check_git(story)
    if back:
        unarchive(theirs.workspace, OTHER)
        commit(theirs, "unarchived there")
        git(story.project, "merge", "-q", "colleague")
        assert steps(reconcile(story)) == [("unarchive", "later-commit", "store")]
        assert (lies(story.store, OTHER), lies(story.workspace, OTHER)) == ("conversations", "conversations")
        check_git(story)
        git(story.project, "checkout", "-q", "HEAD~1")
        assert asides(reconcile(story)) == ["displaced"]
        check_git(story)
        git(story.project, "checkout", "-q", "feature")
        assert (reconcile(story)["actions"], asides(reconcile(story))) == ([], [])
    else:
        story.reconcile("undo")
        assert lies(story.store, OTHER) == "conversations"
        check_git(story)


def test_a_later_commit_is_followed_from_an_older_one_too(archived: World, tmp_path: Path) -> None:
    """At the older one both stay as they are; with that the store has changed nothing."""
    git(archived.project, "worktree", "add", "-q", "-b", "colleague", str(tmp_path / "theirs"))
    theirs = replace(archived, project=tmp_path / "theirs")
    unarchive(theirs.workspace, OTHER)
    (theirs.workspace / f"{OTHER}-other").rename(theirs.workspace / f"{OTHER}-another")
    commit(theirs, "unarchived there")
    git(archived.project, "checkout", "-q", "HEAD~1")
    assert asides(reconcile(archived)) == ["displaced"]
    git(archived.project, "checkout", "-q", "--detach", "colleague")
    assert steps(reconcile(archived))[:1] == [("unarchive", "later-commit", "store")]
    assert (lies(archived.store, OTHER), lies(archived.workspace, OTHER)) == ("conversations", "conversations")
    check_git(archived)


def test_another_worktree_at_an_older_commit_waits_for_its_merge(story: World, tmp_path: Path) -> None:
    git(story.project, "worktree", "add", "-q", "-b", "second", str(tmp_path / "second"))
    second = replace(story, project=tmp_path / "second")
    reconcile(second)
    archive(story.store, OTHER)
    archive(story.workspace, OTHER)
    reconcile(story)
    commit(story, "archived")
    found = reconcile(second)
    assert (steps(found), asides(found)) == ([], ["displaced"])
    check_git(second)
    git(second.project, "merge", "-q", "feature")
    found = reconcile(second)
    assert (found["actions"], asides(found), lies(second.workspace, OTHER)) == ([], [], ".archive")
    check_git(second)


def test_a_new_worktree_at_an_older_commit_is_left_as_it_is(archived: World, tmp_path: Path) -> None:
    git(archived.project, "worktree", "add", "-q", "--detach", str(tmp_path / "second"), "HEAD~1")
    second = replace(archived, project=tmp_path / "second")
    for _ in range(2):
        found = reconcile(second)
        assert (steps(found), asides(found)) == ([], ["displaced"])
        check_git(second)
    git(second.project, "checkout", "-q", "--detach", "feature")
    assert reconcile(second)["aside"] == []


def test_what_jp_archives_in_the_store_alone_is_followed_as_long_as_no_commit_does_it(story: World) -> None:
    archive(story.store, OTHER)
    assert steps(reconcile(story)) == [("archive", "archived", "workspace")]
    commit(story, "archived")
    unarchive(story.store, OTHER)
    assert steps(reconcile(story)) == [("unarchive", "unarchived", "workspace")]
    git(story.project, "stash", "-qu")
    found = reconcile(story)
    assert (steps(found), asides(found), lies(story.store, OTHER)) == ([], ["displaced"], "conversations")
    git(story.project, "stash", "pop", "-q")
    assert reconcile(story)["aside"] == []


def test_what_is_moved_by_hand_goes_back_where_the_store_has_it(story: World) -> None:
    archive(story.workspace, OTHER)
    assert steps(reconcile(story)) == [("unarchive", "archived-here", "workspace")]
    check_git(story)


def test_a_parent_with_a_child_at_an_older_commit(story: World) -> None:
    """The child became a root with the archiving; where git has it below its parent, it stays."""
    archive(story.store, PARENT)
    assert ("archive", "archived", "workspace") in steps(reconcile(story))
    commit(story, "archived")
    before = contents(story.store)
    for way in ("HEAD~1", "feature", "HEAD~1"):
        git(story.project, "checkout", "-q", way)
        reconcile(story)
        check_git(story)
    assert lies(story.workspace, CHILD) == "conversations"
    assert contents(story.store) == before
    assert lies(story.store, PARENT) == ".archive"


def test_a_child_that_an_older_commit_has_in_its_archived_parent(story: World) -> None:
    """It was archived with its parent first, and by itself later on: that order is the commits' too."""
    for number in (PARENT, CHILD):
        archive(story.store, number)
        archive(story.workspace, number)
        commit(story, f"archived {number}")
    assert reconcile(story)["actions"] == []
    before = contents(story.store)
    for way in ("HEAD~1", "feature"):
        git(story.project, "checkout", "-q", way)
        found = reconcile(story)
        assert (steps(found), asides(found)) == ([], ["displaced"] if "~" in way else [])
        check_git(story)
        assert contents(story.store) == before


@pytest.mark.parametrize("side", ["store", "workspace"])
def test_a_decision_ends_it(archived: World, side: str) -> None:
    git(archived.project, "checkout", "-q", "HEAD~1")
    reconcile(archived)
    found = reconcile(archived, "resolve", str(OTHER), "--take", side)
    expected = ("archive", "archived", "workspace") if side == "store" else ("unarchive", "decided", "store")
    assert (steps(found), asides(found)) == ([expected], [])
    where = ".archive" if side == "store" else "conversations"
    assert (lies(archived.store, OTHER), lies(archived.workspace, OTHER)) == (where, where)
