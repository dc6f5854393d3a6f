"""Which of two contents git knows to be the older one: real repositories, also of kinds that are meant to mislead."""

from __future__ import annotations

import os
import shutil
import stat
from typing import TYPE_CHECKING

import pytest
from msgspec import Struct
from msgspec.structs import replace

from reconcile.formats import get_format
from reconcile.fs import git as asking
from reconcile.fs.git import Git, GitError
from reconcile.fs.hashing import digest
from reconcile.model.baseline import Baseline, CommittedPlace
from reconcile.model.snapshot import STREAM, Copy, File, Partition, Side
from reconcile.model.units import Unit
from reconcile.planning.rules.commit_order import PARTITION, Doubt, Order, split_archives
from reconcile.scan import outdated
from reconcile.scan.outdated import KeptHistory, committed_of, file_at, history_of, outdated_of
from tests.support.projects.git_world import git
from tests.support.scenarios import building
from tests.support.scenarios.pure_level import RULES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git")

JP = get_format("jp")
ID, NAME = "jp-c17500000001", "17500000001-one"
KEY = ID, STREAM
EVENTS, BASE = "events.json", "base_config.json"


class Repository(Struct, frozen=True):
    """A checkout with one conversation, and a store."""

    top: Path
    store: Path

    @property
    def conversations(self) -> Path:
        return self.top / "chats"

    @property
    def kept(self) -> KeptHistory:
        """What git said before, as the next process finds it: it must never make a difference."""
        return kept_in(self.store)

    def commit(self, content: str, *options: str, name: str = NAME) -> str:
        """Commit a version of the conversation's events; return the commit."""
        write(self.conversations / name, {EVENTS: content})
        git(self.top, "add", "-A")
        git(self.top, "commit", "-q", "--allow-empty", "-m", content, *options)
        return git(self.top, "rev-parse", "HEAD").strip()

    def go(self, to: str) -> None:
        git(self.top, "checkout", "-q", "--detach", to)

    def older(self, *past: str, stored: str | None = None, name: str = NAME) -> Side | None:
        """Return the side that git knows to have the older content."""
        if stored is not None:
            write(self.store / NAME, {EVENTS: stored})
        ours, theirs = unit_at(self.store, Side.STORE, NAME), unit_at(self.conversations, Side.WORKSPACE, name)
        doubt = Doubt(ours, theirs, tuple(digest(each.encode()) for each in past))
        places = {Side.STORE: str(self.store), Side.WORKSPACE: str(self.conversations)}
        found = outdated_of([doubt], places, JP, self.kept)
        assert found.keys() <= {KEY}
        if KEY not in found:
            return None
        assert (found[KEY].store, found[KEY].workspace) == (ours.raw, theirs.raw)
        return found[KEY].side


def kept_in(store: Path) -> KeptHistory:
    return KeptHistory(str(store.with_name("kept")), readonly=False)


def write(directory: Path, contents: Mapping[str, str]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (directory / name).write_bytes(content.encode())


def unit_at(root: Path, side: Side, name: str) -> Unit:
    """Return the stream in a directory."""
    paths = sorted(path for path in (root / name).iterdir() if path.is_file())
    files = tuple(File(path.name, path.stat().st_size, 0, digest(path.read_bytes())) for path in paths)
    copy = Copy(side, ID, name, Partition.LIVE, None, files, None, None)
    return Unit(STREAM, copy, files, "+".join(str(file.digest) for file in files), None)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    top = tmp_path / "project"
    top.mkdir()
    git(top, "init", "-q", ".")
    return Repository(top, tmp_path / "store")


@pytest.fixture
def line(repository: Repository) -> Repository:
    """Three versions, and HEAD at the second."""
    for content in ("one", "two", "three"):
        repository.commit(content)
        git(repository.top, "tag", content)
    repository.go("two")
    return repository


def test_before_and_after_along_a_line(line: Repository) -> None:
    assert line.older(stored="one") is Side.STORE
    assert line.older(stored="three") is Side.WORKSPACE
    assert line.older(stored="never committed") is None


def test_a_file_that_is_not_as_head_has_it(line: Repository) -> None:
    """An older version that was put there counts as that; an edit as nothing."""
    write(line.conversations / NAME, {EVENTS: "one"})
    assert line.older(stored="three") is Side.WORKSPACE
    write(line.conversations / NAME, {EVENTS: "mine"})
    assert line.older(stored="three") is None


def test_a_store_that_went_on_from_a_committed_version(line: Repository) -> None:
    assert line.older("one", "three", stored="three and more") is Side.WORKSPACE
    assert line.older("three", "gone on", stored="three and more") is Side.WORKSPACE
    assert line.older("three", "one", stored="three and more") is Side.WORKSPACE
    assert line.older("one", "two", stored="two and more") is None
    assert line.older("one", stored="one and more") is None, "both have gone on since"


def test_a_conversation_that_was_moved_and_renamed(line: Repository) -> None:
    line.go("three")
    other = f"17500000002-two/conversations/{NAME}-renamed"
    (line.conversations / other).parent.mkdir(parents=True)
    git(line.top, "mv", f"chats/{NAME}", f"chats/{other}")
    line.commit("four", name=other)
    assert line.older(stored="two", name=other) is Side.STORE
    line.go("two")
    assert line.older(stored="four") is Side.WORKSPACE


def test_branches_amended_commits_stashes_and_rebases(line: Repository) -> None:
    git(line.top, "switch", "-qc", "side", "two")
    line.commit("side")
    assert line.older(stored="three") is None
    assert line.older(stored="two") is Side.STORE
    line.commit("amended", "--amend")
    line.go("two")
    assert line.older(stored="side") is Side.WORKSPACE, "no branch has it any more"
    write(line.conversations / NAME, {EVENTS: "stashed"})
    git(line.top, "stash", "-q")
    assert line.older(stored="stashed") is Side.WORKSPACE
    git(line.top, "switch", "-qc", "rebased", "one")
    write(line.top, {"other": "x"})
    line.commit("one")
    git(line.top, "cherry-pick", "two", "three")
    git(line.top, "branch", "-f", "side", "two")
    git(line.top, "tag", "-d", "three")
    assert line.older(stored="two") is Side.STORE
    line.go("rebased~1")
    assert line.older(stored="three") is Side.WORKSPACE
    assert line.older(stored="one") is Side.STORE


def test_a_worktree_of_a_bare_repository_and_a_submodule(line: Repository, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(line.top), "bare")
    git(tmp_path / "bare", "worktree", "add", "-q", "--detach", str(tmp_path / "tree"), "two")
    git(tmp_path, "init", "-q", "outer")
    local = ("-c", "protocol.file.allow=always")
    git(tmp_path / "outer", *local, "submodule", "--quiet", "add", str(line.top), "inner")
    git(tmp_path / "outer" / "inner", "checkout", "-q", "two")
    for top in (tmp_path / "tree", tmp_path / "outer" / "inner"):
        assert (top / ".git").is_file()
        other = Repository(top, line.store)
        assert other.older(stored="three") is Side.WORKSPACE
        assert other.older(stored="one") is Side.STORE


def test_a_repository_with_other_names_for_its_objects(tmp_path: Path) -> None:
    found = Repository(tmp_path / "project", tmp_path / "store")
    found.top.mkdir()
    git(found.top, "init", "-q", "--object-format=sha256", ".")
    for content in ("one", "two"):
        found.commit(content)
    assert found.older(stored="one") is Side.STORE


def test_a_shallow_clone_knows_what_it_has(line: Repository, tmp_path: Path) -> None:
    url = line.top.as_uri()
    git(tmp_path, "clone", "-q", "--depth", "2", "--branch", "three", url, "shallow")
    shallow = Repository(tmp_path / "shallow", line.store)
    assert shallow.older(stored="two") is Side.STORE
    assert shallow.older(stored="one") is None
    git(shallow.top, "checkout", "-q", "HEAD~1")
    assert shallow.older(stored="three") is Side.WORKSPACE


def test_a_partial_clone_fetches_nothing(line: Repository, tmp_path: Path) -> None:
    """Trees that aren't there give no answer, and old blobs aren't needed."""
    git(line.top, "config", "uploadpack.allowFilter", "true")
    for kind, expected in (("tree:0", None), ("blob:none", Side.STORE)):
        name = kind.replace(":", "-")
        git(tmp_path, "clone", "-q", "--filter", kind, "--branch", "three", line.top.as_uri(), name)
        partial = Repository(tmp_path / name, line.store)
        before = stamps(partial.top / ".git")
        assert partial.older(stored="one") is expected
        assert partial.older("one", stored="one and more") is None
        assert stamps(partial.top / ".git") == before


def stamps(directory: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.lstat().st_mtime_ns, path.lstat().st_size) for path in directory.rglob("*")}


def test_no_repository_no_commit_and_a_broken_one(tmp_path: Path) -> None:
    found = Repository(tmp_path / "project", tmp_path / "store")
    write(found.conversations / NAME, {EVENTS: "one"})
    assert found.older(stored="two") is None
    git(found.top, "init", "-q", ".")
    assert found.older(stored="two") is None
    found.commit("one")
    found.commit("two")
    assert found.older(stored="one") is Side.STORE
    (found.top / ".git" / "HEAD").write_text("nonsense")
    assert found.older(stored="one") is None


def test_no_git_a_silent_one_and_one_that_answers_nonsense(
    line: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = os.environ["PATH"]
    monkeypatch.setenv("PATH", str(tmp_path))
    assert line.older(stored="one") is None
    monkeypatch.setattr(asking, "TIME_LIMIT", 0.3)
    for text in ("sleep 60", "echo nonsense", "exit 1"):
        program(tmp_path / "git", text)
        monkeypatch.setenv("PATH", f"{tmp_path}:{path}")
        assert line.older(stored="one") is None


def program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\nexec {text}\n" if not text.startswith("exit") else f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_a_repository_of_another_owner_is_refused_by_git(line: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a directory to another user")
    for path in (line.top, *line.top.rglob("*")):
        os.lchown(path, 12345, 12345)
    monkeypatch.delenv("SUDO_UID", raising=False)
    assert line.older(stored="one") is None


def test_nothing_that_a_repository_configures_is_run(line: Repository, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    run = f"touch {seen}; cat"
    for key in (
        *(
            "core.fsmonitor",
            "core.pager",
            "core.sshCommand",
            "core.editor",
            "core.gitProxy",
            "core.alternateRefsCommand",
        ),
        *(
            "diff.external",
            "diff.x.textconv",
            "diff.x.command",
            "filter.x.clean",
            "filter.x.smudge",
            "filter.x.process",
        ),
        *("pager.rev-list", "pager.diff-tree", "pager.cat-file", "gpg.program", "credential.helper"),
        *("alias.rev-list", "alias.diff-tree", "alias.cat-file", "uploadpack.packObjectsHook"),
    ):
        git(line.top, "config", key, f"!{run}" if key.startswith("alias") else run)
    for key, value in (("core.hooksPath", str(tmp_path)), ("log.showSignature", "true"), ("diff.renames", "copies")):
        git(line.top, "config", key, value)
    for hook in ("post-index-change", "reference-transaction", "post-checkout", "fsmonitor-watchman"):
        program(tmp_path / hook, f"touch {seen}")
    (line.top / ".git" / "info").mkdir(exist_ok=True)
    (line.top / ".git" / "info" / "attributes").write_text("*.json diff=x filter=x\n")
    before = stamps(line.top / ".git")
    assert line.older(stored="one") is Side.STORE
    assert line.older(stored="three") is Side.WORKSPACE
    assert not seen.exists()
    assert stamps(line.top / ".git") == before, "git was asked to read alone"


def test_what_misleads_is_left_out(line: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of a hook, replaced objects, grafts, and a branch with the name of a file."""
    git(tmp_path, "init", "-q", "other")
    for name, value in {
        "GIT_DIR": str(tmp_path / "other" / ".git"),
        "GIT_WORK_TREE": str(tmp_path),
        "GIT_INDEX_FILE": str(tmp_path / "index"),
        "GIT_OBJECT_DIRECTORY": str(tmp_path / "objects"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.worktree",
        "GIT_CONFIG_VALUE_0": str(tmp_path),
    }.items():
        monkeypatch.setenv(name, value)
    assert line.older(stored="one") is Side.STORE
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_CONFIG_COUNT"):
        monkeypatch.delenv(name)
    git(line.top, "branch", "chats")
    git(line.top, "replace", "--graft", "three")
    git(line.top, "replace", "--graft", "two", "three")
    assert line.older(stored="three") is Side.WORKSPACE
    assert line.older(stored="one") is Side.STORE


def test_line_ends_that_git_converts_give_no_order(line: Repository) -> None:
    git(line.top, "config", "core.autocrlf", "true")
    (line.top / ".gitattributes").write_text("*.json text eol=crlf\n")
    line.commit("four\r\n")
    line.commit("five\r\n")
    assert git(line.top, "status", "--porcelain") == ""
    assert line.older(stored="four\r\n") is None


def test_a_file_that_changed_since_it_was_seen_gives_no_order(line: Repository) -> None:
    write(line.store / NAME, {EVENTS: "one"})
    doubt = Doubt(unit_at(line.store, Side.STORE, NAME), unit_at(line.conversations, Side.WORKSPACE, NAME), ())
    places = {Side.STORE: str(line.store), Side.WORKSPACE: str(line.conversations)}
    assert outdated_of([doubt], places, JP, line.kept)[KEY].side is Side.STORE
    write(line.store / NAME, {EVENTS: "three"})
    assert outdated_of([doubt], places, JP, line.kept) == {}
    write(line.conversations / NAME, {EVENTS: "three"})
    assert outdated_of([doubt], places, JP, line.kept) == {}
    shutil.rmtree(line.conversations / NAME)
    assert outdated_of([doubt], places, JP, line.kept) == {}


def test_what_the_workspace_was_given_is_only_outdated_by_what_was_committed(line: Repository) -> None:
    """The store's edit that nobody committed is brought to the workspace as ever."""
    places = {Side.STORE: str(line.store), Side.WORKSPACE: str(line.conversations)}
    for content, side in (("three", Side.WORKSPACE), ("one", Side.STORE), ("three and more", None)):
        write(line.store / NAME, {EVENTS: content})
        ours, theirs = unit_at(line.store, Side.STORE, NAME), unit_at(line.conversations, Side.WORKSPACE, NAME)
        found = outdated_of([Doubt(ours, theirs, (digest(b"three"),), at_rest=True)], places, JP, line.kept)
        assert (found[KEY].side if found else None) is side


def test_what_the_workspace_was_given_stays_where_git_has_both_on_two_branches(line: Repository) -> None:
    """A file that nobody edited would be changed by us, and git would refuse the next checkout because of it."""
    git(line.top, "switch", "-qc", "side", "two")
    line.commit("side")
    places = {Side.STORE: str(line.store), Side.WORKSPACE: str(line.conversations)}
    for content, side in (("three", Side.WORKSPACE), ("three and more", None)):
        write(line.store / NAME, {EVENTS: content})
        ours, theirs = unit_at(line.store, Side.STORE, NAME), unit_at(line.conversations, Side.WORKSPACE, NAME)
        found = outdated_of([Doubt(ours, theirs, (digest(b"three"),), at_rest=True)], places, JP, line.kept)
        assert (found[KEY].side if found else None) is side


def test_a_revert_does_not_make_what_it_reverted_the_newest(line: Repository) -> None:
    """What followed HEAD's version is still later, also where the store's, or one that it had, came before as well."""
    line.go("three")
    line.commit("one")
    line.go("two")
    assert line.older(stored="one") is None, "older and newer, and nothing else is known"
    assert line.older("three", "one", stored="one") is Side.WORKSPACE, "three, which the store had, replaced two"
    assert line.older("one", stored="one and more") is Side.WORKSPACE, "one came again after two"
    git(line.top, "checkout", "-q", "--detach", "one")
    line.commit("side")
    assert line.older("three", "one", stored="one") is Side.STORE, "HEAD went on from one, and three from two"


def test_a_file_that_is_large_and_a_history_that_is_long_give_no_order(
    line: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(outdated, "LARGE", 2)
        assert line.older(stored="one") is None
    monkeypatch.setattr(asking, "MOST", 2)
    assert line.older(stored="one") is None


def test_two_files_must_say_the_same(line: Repository) -> None:
    """Of a stream in two files each that differs is asked about; one that only one side has says nothing."""
    for number in "123":
        write(line.conversations / NAME, {BASE: f"b{number}"})
        line.commit(f"e{number}")
    line.go("HEAD~1")
    for stored, side in (
        ({BASE: "b1", EVENTS: "e1"}, Side.STORE),
        ({BASE: "b2", EVENTS: "e1"}, Side.STORE),
        ({BASE: "b3", EVENTS: "e3"}, Side.WORKSPACE),
        ({BASE: "b1", EVENTS: "e3"}, None),
        ({BASE: "b0", EVENTS: "e1"}, None),
        ({EVENTS: "e1"}, Side.STORE),
    ):
        shutil.rmtree(line.store, ignore_errors=True)
        write(line.store / NAME, stored)
        assert line.older() is side, stored


def test_a_file_that_was_put_back_leaves_it_to_the_other(line: Repository) -> None:
    for base, events in (("b1", "e1"), ("b2", "e2"), ("b3", "e1")):
        write(line.conversations / NAME, {BASE: base})
        line.commit(events)
    write(line.store / NAME, {BASE: "b3", EVENTS: "e1"})
    line.go("HEAD~1")
    assert line.older() is Side.WORKSPACE


def test_versions_in_two_files_that_were_in_sync(line: Repository) -> None:
    """The past names whole versions; of one in a single file that is the last."""
    write(line.store / NAME, {BASE: "b", EVENTS: "three and more"})
    ours, theirs = unit_at(line.store, Side.STORE, NAME), unit_at(line.conversations, Side.WORKSPACE, NAME)
    places = {Side.STORE: str(line.store), Side.WORKSPACE: str(line.conversations)}
    three = digest(b"three")
    for past in (three, f"{digest(b'b')}+{three}"):
        found = outdated_of([Doubt(ours, theirs, (past,))], places, JP, line.kept)
        assert found[KEY].side is Side.WORKSPACE
    assert outdated_of([Doubt(ours, theirs, (f"{three}+{digest(b'b')}",))], places, JP, line.kept) == {}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (f"{NAME}/{EVENTS}", (ID, EVENTS, Partition.LIVE)),
        (f"{NAME}/sub/x", (ID, "sub/x", Partition.LIVE)),
        (f".archive/{NAME}/{EVENTS}", (ID, EVENTS, Partition.ARCHIVE)),
        (f"17500000002-b/conversations/{NAME}/{EVENTS}", (ID, EVENTS, Partition.LIVE)),
        (f"17500000002-b/conversations/.trash/{NAME}/{EVENTS}", (ID, EVENTS, Partition.TRASH)),
        (f".archive/17500000002-b/conversations/{NAME}/{EVENTS}", (ID, EVENTS, Partition.LIVE)),
        (f".trash/17500000002-b/conversations/{NAME}/{EVENTS}", (ID, EVENTS, Partition.TRASH)),
        ("17500000001-one/conversations/README", (ID, "conversations/README", Partition.LIVE)),
        ("17500000001-one/conversations/x/y", (ID, "conversations/x/y", Partition.LIVE)),
        ("README", None),
        (".archive", None),
        ("notes/17500000001-one/events.json", None),
        (NAME, None),
    ],
)
def test_the_conversation_that_a_path_is_of(path: str, found: tuple[str, str, Partition] | None) -> None:
    assert file_at(path, JP) == found


def test_the_order_of_partitions(repository: Repository) -> None:
    write(repository.conversations / NAME, {"metadata.json": "m"})
    repository.commit("one")
    (repository.conversations / ".archive").mkdir()
    git(repository.top, "mv", f"chats/{NAME}", f"chats/.archive/{NAME}")
    git(repository.top, "commit", "-qm", "archived")
    commits = history_of(Git(str(repository.top)), "chats", JP, repository.kept)
    key = ID, PARTITION
    assert commits.contents(key) == {Partition.LIVE, Partition.ARCHIVE}
    assert commits.order(key, Partition.ARCHIVE, Partition.LIVE, at_head=True) is Order.NEWER
    repository.go("HEAD~1")
    commits = history_of(Git(str(repository.top)), "chats", JP, repository.kept)
    assert commits.order(key, Partition.LIVE, Partition.ARCHIVE, at_head=True) is Order.OLDER


def test_a_directory_that_is_the_top_itself(repository: Repository) -> None:
    flat = Repository(repository.top, repository.store)
    for content in ("one", "two"):
        write(flat.top / NAME, {EVENTS: content})
        git(flat.top, "add", "-A")
        git(flat.top, "commit", "-qm", content)
    write(flat.store / NAME, {EVENTS: "one"})
    doubt = Doubt(unit_at(flat.store, Side.STORE, NAME), unit_at(flat.top, Side.WORKSPACE, NAME), ())
    assert (
        outdated_of([doubt], {Side.STORE: str(flat.store), Side.WORKSPACE: str(flat.top)}, JP, flat.kept)[KEY].side
        is Side.STORE
    )


def test_git_is_given_up_where_it_fails(line: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(GitError):
        Git(str(line.top / "nowhere")).names(["HEAD"])
    program(tmp_path / "git", "true")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(GitError):
        Git(str(line.top)).tips()


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file with a line for each git that was started."""
    seen, directory = tmp_path / "calls", tmp_path / "bin"
    directory.mkdir()
    program(directory / "git", f'sh -c \'echo "$@" >>{seen}; exec {shutil.which("git")} "$@"\' git "$@"')
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")
    return seen


def walks(calls: Path) -> int:
    """Count the walks through a history since the last count."""
    lines = calls.read_text().splitlines() if calls.exists() else []
    calls.unlink(missing_ok=True)
    return sum(line.count("--simplify-merges") for line in lines)


def test_no_doubt_no_process(line: Repository, calls: Path) -> None:
    seen = calls
    assert outdated_of([], {Side.WORKSPACE: str(line.conversations)}, JP, line.kept) == {}
    assert not seen.exists()
    write(line.conversations / NAME, {EVENTS: "mine"})
    assert line.older(stored="one") is None
    assert len(seen.read_text().splitlines()) == 1, "an edit that was never committed costs one question"
    write(line.conversations / NAME, {EVENTS: "two"})
    assert line.older(stored="one") is Side.STORE
    assert len(seen.read_text().splitlines()) == 6


def test_the_history_is_walked_once(line: Repository, calls: Path) -> None:
    assert line.older(stored="one") is Side.STORE
    assert walks(calls) == 1
    assert line.older(stored="three") is Side.WORKSPACE
    assert line.older("one", "three", stored="three and more") is Side.WORKSPACE
    seen = calls.read_text()
    assert walks(calls) == 0
    assert len(seen.splitlines()) == len(("names", "tips", "names", "tips", "contents"))
    assert stat.S_IMODE(line.store.with_name("kept").stat().st_mode) == 0o600


def test_every_change_of_what_git_begins_with_is_noticed(line: Repository, calls: Path) -> None:
    """Of the commits, HEAD and the reflogs; what is kept then is never told."""
    assert line.older(stored="one") is Side.STORE
    git(line.top, "switch", "-qc", "side")
    line.commit("side")
    assert walks(calls) == 1
    assert line.older(stored="two") is Side.STORE, "a new commit"
    assert walks(calls) == 1
    line.go("two")
    walks(calls)
    assert line.older(stored="side") is Side.WORKSPACE, "another HEAD, at a commit that was known"
    assert walks(calls) == 1
    write(line.conversations / NAME, {EVENTS: "stashed"})
    git(line.top, "stash", "-q")
    assert line.older(stored="stashed") is Side.WORKSPACE
    git(line.top, "stash", "drop", "-q")
    assert line.older(stored="stashed") is None, "a stash that was dropped"
    git(line.top, "branch", "-qf", "side", "two")
    assert line.older(stored="side") is Side.WORKSPACE, "its reflog has it"
    git(line.top, "reflog", "expire", "--expire=now", "--all")
    assert line.older(stored="side") is None, "a reflog that expired"
    walks(calls)
    assert line.older(stored="side") is None
    git(line.top, "branch", "-qD", "main")
    assert line.older(stored="side") is None
    git(line.top, "tag", "-d", "three")
    assert line.older(stored="side") is None
    assert walks(calls) == 1, "a commit that lost one of its names is there, one that lost the last is not"


def test_a_clone_that_was_deepened_is_asked_again(line: Repository, tmp_path: Path, calls: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth", "2", "--branch", "three", line.top.as_uri(), "shallow")
    git(tmp_path / "shallow", "worktree", "add", "-q", "--detach", str(tmp_path / "tree"))
    for top in (tmp_path / "shallow", tmp_path / "tree"):
        assert Repository(top, top / "store").older(stored="one") is None
    tips = git(tmp_path / "shallow", "rev-list", "--no-walk", "--all", "--reflog", "HEAD")
    git(tmp_path / "shallow", "fetch", "-q", "--unshallow", "origin", "tag", "three", "--no-tags")
    assert git(tmp_path / "shallow", "rev-list", "--no-walk", "--all", "--reflog", "HEAD") == tips
    for top in (tmp_path / "shallow", tmp_path / "tree"):
        assert Repository(top, top / "store").older(stored="one") is Side.STORE


def test_where_a_clone_ends_must_be_known(line: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that can't be read, and a clone that is deepened while git is asked: nothing is kept of that."""
    ends = iter((b"", b"deeper"))
    monkeypatch.setattr(outdated, "shallow_commits", lambda _: next(ends))
    assert line.older(stored="one") is Side.STORE
    assert not line.store.with_name("kept").exists()

    def unreadable(_: str) -> bytes:
        raise PermissionError

    monkeypatch.setattr(outdated, "shallow_commits", unreadable)
    assert line.older(stored="one") is None


def test_without_git_nothing_is_known_whatever_is_kept(line: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    assert line.older(stored="one") is Side.STORE
    (line.top / ".git" / "HEAD").write_text("nonsense")
    assert line.older(stored="one") is None
    (line.top / ".git" / "HEAD").write_text("ref: refs/heads/nowhere\n")
    assert line.older(stored="one") is None
    line.go("two")
    monkeypatch.setenv("PATH", str(line.store))
    assert line.older(stored="one") is None


def test_what_is_kept_of_another_directory_or_torn_is_none(line: Repository, calls: Path) -> None:
    asked = Git(str(line.top))
    assert line.kept.of(asked, "elsewhere").parents == {}
    once = line.kept.of(asked, "chats")
    assert len(once.parents) == len(("one", "two", "three"))
    assert walks(calls) == 1 + 1
    kept = line.store.with_name("kept")
    whole = kept.read_bytes()
    for broken in (whole[:-1], whole[: len(whole) // 2], b"", whole[:-1] + b"x"):
        kept.write_bytes(broken)
        assert line.kept.of(asked, "chats") == once
        assert walks(calls) == 1
        assert kept.read_bytes() == whole


def test_a_dry_run_reads_what_is_kept_and_writes_nothing(line: Repository, calls: Path) -> None:
    path = line.store.with_name("kept")
    git_of, dry = Git(str(line.top)), KeptHistory(str(path), readonly=True)
    once = dry.of(git_of, "chats")
    assert dry.of(git_of, "chats") == once
    assert walks(calls) == 1, "it is in memory"
    assert not path.exists()
    line.kept.of(git_of, "chats")
    before = path.stat()
    walks(calls)
    assert KeptHistory(str(path), readonly=True).of(git_of, "chats") == once
    assert walks(calls) == 0
    assert list(path.parent.glob("kept*")) == [path]
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_history_of_too_many_files_is_not_kept(line: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outdated, "LARGEST_HISTORY", 2)
    assert line.older(stored="one") is Side.STORE
    assert not line.store.with_name("kept").exists()


def split(repository: Repository, store: str, workspace: str) -> dict[str, CommittedPlace]:
    """Ask about a conversation that lies in these places."""
    line = "metadata 09:00  stream 09:00 [1]"
    views = split_archives(
        building.stored(f"{store}  {line}"), building.here(f"{workspace}  {line}"), Baseline(), RULES
    )
    assert len(views) == 1
    return committed_of(views, str(repository.conversations), JP, repository.kept)


def test_what_commits_say_of_directories_in_another_partition(repository: Repository) -> None:
    name, archived = "1-a", ".archive/1-a"
    write(repository.conversations / name, {"metadata.json": "{}"})
    first = repository.commit("live", name=name)
    (repository.conversations / ".archive").mkdir()
    assert split(repository, archived, name) == {"jp-c1": CommittedPlace(name, None, first)}
    (repository.conversations / name).rename(repository.conversations / archived)
    assert split(repository, name, archived) == {}, "HEAD has it elsewhere"
    second = repository.commit("archived", name=archived)
    assert split(repository, name, archived) == {"jp-c1": CommittedPlace(archived, Side.STORE, second)}
    repository.go(first)
    assert split(repository, archived, name) == {"jp-c1": CommittedPlace(name, Side.WORKSPACE, first)}
    line = "metadata 09:00  stream 09:00 [1]"
    views = split_archives(
        building.stored(f"{archived}  {line}"), building.here(f'"1-a\\nb"  {line}'), Baseline(), RULES
    )
    assert committed_of(views, str(repository.conversations), JP, repository.kept) == {}


def test_of_no_directory_git_is_not_asked(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Git, "_run", lambda *_: pytest.fail("git is run"))
    assert committed_of((), str(repository.conversations), JP, repository.kept) == {}
    (tmp_path / "bare").mkdir()
    outside = replace(repository, top=tmp_path / "bare")
    monkeypatch.setattr(outdated, "checkout_top", lambda _: None)
    assert split(outside, ".archive/1-a", "1-a") == {}


def test_a_git_that_has_no_answer_says_nothing_of_directories(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(repository.conversations / "1-a", {"metadata.json": "{}"})
    repository.commit("live", name="1-a")
    monkeypatch.setattr(asking, "MOST", 0)
    assert split(repository, ".archive/1-a", "1-a") == {}
