"""Requests that wait, with real git and real locks: they are shown, done, and publish nothing private."""

from __future__ import annotations

import errno
import json
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from reconcile import Workspace
from reconcile.apply.actions import DirectoryRemoval
from reconcile.model.snapshot import Side
from tests.support.faults.disturbances import hold
from tests.support.library.conversations import mutable, say
from tests.support.projects.git_world import OTHER, PARENT, check_private, commit, git, place
from tests.support.projects.three_conversations import FIRST, THIRD, three
from tests.support.projects.world import (
    LONG_AGO,
    SECOND,
    append,
    contents,
    events,
    make_project,
    write_conversation,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run
    from tests.support.projects.world import World

NINTH = 17500000009
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="no git")


def merging(world: World) -> Path:
    """Have git be in the middle of a merge; return the file that says so."""
    if not (world.project / ".git").is_dir():
        git(world.project, "init", "-q")
    sign = world.project / ".git" / "MERGE_HEAD"
    sign.write_text(f"{'0' * 40}\n")
    return sign


def requested(world: World) -> dict[str, str]:
    """Return what `status` says that waits."""
    found = json.loads(world.reconcile("status", "--json", settled=False).stdout)["conversations"]
    return {each["conversation"]: each["detail"] for each in found if each["word"] == "requested"}


@needs_git
@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("local", str(FIRST)), f"`local jp-c{FIRST}` waits since run"),
        (("rm", str(FIRST), "--cascade", "--yes"), f"`rm jp-c{FIRST}` waits since run"),
    ],
)
def test_what_waits_for_the_end_of_a_merge_is_shown_and_done_then(
    world: World, command: tuple[str, ...], words: str
) -> None:
    three(world, parent=FIRST)
    world.reconcile()
    sign = merging(world)
    said = world.reconcile(*command, code=4, settled=False).stdout
    assert "until it is done" in said
    assert "saved. After that, the next run carries" in " ".join(said.split())
    assert words in requested(world)[f"jp-c{FIRST}"]
    assert "a merge" in requested(world)[f"jp-c{FIRST}"]
    again = world.reconcile(code=4, settled=False).stdout
    assert words in again
    assert list(world.workspace.rglob(f"{FIRST}-*"))
    sign.unlink()
    assert {each["reason"] for each in world.plan()["notes"]} >= {"requested"}
    assert words not in world.reconcile().stdout, "it is carried out"
    assert not list(world.workspace.rglob(f"{FIRST}-*"))
    assert bool(list(world.store.rglob(f"{FIRST}-*"))) == (command[0] == "local")
    assert not requested(world)
    assert "Nothing to do" in world.reconcile().stdout


@needs_git
def test_a_local_that_waits_stays_private_when_the_state_is_lost(world: World) -> None:
    """The request is lost, the decision isn't: nothing is published, and each run names the directory that is left."""
    three(world)
    world.reconcile()
    sign = merging(world)
    world.reconcile("local", str(FIRST), code=4, settled=False)
    world.reconcile("rm", str(THIRD), "--yes", code=4, settled=False)
    for path in world.state.glob("state.sqlite*"):
        path.unlink()
    sign.unlink()
    (stored,) = world.store.glob(f"{FIRST}-*")
    append(stored, 5, "p", LONG_AGO + 900 * SECOND)
    for _ in range(2):
        assert f"reconcile local jp-c{FIRST}" in world.reconcile(settled=False).stdout
        assert world.event_count(FIRST, world.workspace) == 3
        assert list(world.store.glob(f"{THIRD}-*"))
    assert "local, copy here" in world.reconcile("status").stdout
    world.reconcile("local", str(FIRST))
    assert not list(world.workspace.glob(f"{FIRST}-*"))


@needs_git
@pytest.mark.parametrize("command", [("local", str(FIRST)), ()])
@pytest.mark.parametrize("end", [("merge", "--abort"), ("commit", "-qm", "merged")])
def test_what_is_in_the_middle_of_a_merge_is_not_the_newest_version(
    world: World, command: tuple[str, ...], end: tuple[str, ...]
) -> None:
    """A branch has replaced the last events, and `git merge --no-commit` has put them there."""
    three(world)
    git(world.project, "init", "-q", ".")
    commit(world, "first")
    git(world.project, "switch", "-qc", "feature")
    append(place(world, FIRST), 2, "x", LONG_AGO + 50 * SECOND)
    commit(world, "theirs")
    git(world.project, "switch", "-q", "main")
    append(place(world, FIRST), 1, "y", LONG_AGO + 60 * SECOND)
    commit(world, "ours")
    world.reconcile()
    ours = contents(world.store)
    git(world.project, "merge", "-q", "-X", "theirs", "--no-commit", "feature")
    assert not contents(world.workspace) <= ours
    said = world.reconcile(*command, code=4, settled=False).output
    assert "the workspace's version is copied when git is done" in said
    assert contents(world.store) == ours
    git(world.project, *end)
    world.reconcile()
    assert bool(list(world.workspace.glob(f"{FIRST}-*"))) == (not command)
    assert (contents(world.store) == ours) == ("--abort" in end)
    assert (world.event_count(FIRST) == 4) == ("--abort" in end)


@needs_git
def test_a_removal_that_waits_is_asked_for_first(world: World) -> None:
    three(world)
    world.reconcile()
    merging(world)
    assert "this needs a yes" in world.reconcile("rm", str(FIRST), code=4, settled=False).output
    assert not requested(world)


@needs_git
def test_a_run_that_finds_nothing_changed_still_tries_what_waits(world: World) -> None:
    """The quick answer of the run before isn't given again."""
    three(world)
    world.reconcile()
    lock = hold(world.store.parent / "locks" / f"jp-c{FIRST}.lock")
    world.reconcile("local", str(FIRST), code=4, settled=False)
    for _ in range(2):
        assert f"`local jp-c{FIRST}` waits since run" in world.reconcile(code=4, settled=False).stdout
    lock.close()
    world.reconcile()
    assert not list(world.workspace.rglob(f"{FIRST}-*"))


@pytest.mark.parametrize("request_", [["rm", "--yes"], ["local"]])
def test_what_was_edited_while_a_request_waited_is_synced_once_it_is_dropped(world: World, request_: list[str]) -> None:
    """The run that was undone has changed nothing, so that no run could repeat it."""
    three(world)
    world.reconcile()
    lock = hold(world.store.parent / "locks" / f"jp-c{FIRST}.lock")
    world.reconcile(*request_, str(FIRST), code=4, settled=False)
    lock.close()
    (here,) = world.workspace.rglob(f"{FIRST}-*")
    append(here, 5, "p", LONG_AGO + 900 * SECOND)
    world.reconcile("undo", settled=False)
    assert "left alone" not in world.reconcile().output
    (stored,) = world.store.glob(f"{FIRST}-*")
    assert (stored / "events.json").read_bytes() == (here / "events.json").read_bytes()


def test_a_later_undo_does_not_publish_what_was_made_local_while_its_lock_was_held(world: World) -> None:
    three(world)
    world.reconcile()
    lock = hold(world.store.parent / "locks" / f"jp-c{FIRST}.lock")
    world.reconcile("local", str(FIRST), code=4, settled=False)
    lock.close()
    world.reconcile("rm", str(FIRST), "--yes")
    world.reconcile("undo")
    (stored,) = world.store.glob(f"{FIRST}-*")
    append(stored, 5, "p", LONG_AGO + 900 * SECOND)
    world.reconcile()
    assert not list(world.workspace.rglob(f"{FIRST}-*"))
    assert "local" in world.reconcile("status", str(FIRST)).stdout


def test_the_undo_of_the_run_that_finished_a_local_does_not_end_it(world: World) -> None:
    three(world)
    world.reconcile()
    lock = hold(world.store.parent / "locks" / f"jp-c{FIRST}.lock")
    world.reconcile("local", str(FIRST), code=4, settled=False)
    lock.close()
    asked = str(world.remembered()["run"][-1][0])
    world.reconcile()
    for run in ((), (asked,)):
        said = world.reconcile("undo", *run, code=4).output
        assert f"reconcile project jp-c{FIRST} --workspace" in said
        assert not list(world.workspace.rglob(f"{FIRST}-*"))
    world.reconcile("project", str(FIRST))
    assert list(world.workspace.rglob(f"{FIRST}-*"))


@pytest.mark.parametrize("how", ["restore", "library"])
def test_what_is_written_meanwhile_does_not_end_a_local_that_waits(world: World, how: str) -> None:
    three(world)
    world.reconcile()
    append(place(world, FIRST), 2, "p", LONG_AGO + 900 * SECOND)
    world.reconcile()
    (older,) = (str(row[2]) for row in world.remembered()["version"])
    lock = hold(world.store.parent / "locks" / f"jp-c{FIRST}.lock")
    world.reconcile("local", str(FIRST), code=4, settled=False)
    lock.close()
    if how == "restore":
        world.reconcile("restore", older[:16], settled=False)
    else:
        with Workspace.open(world.project) as workspace, mutable(workspace) as mut:
            say(mut, "more")
    world.reconcile()
    assert not list(world.workspace.rglob(f"{FIRST}-*"))
    assert world.event_count(FIRST) == (3 if how == "restore" else 6)
    assert "local" in world.reconcile("status", str(FIRST)).stdout
    assert not requested(world)


def test_a_plan_saved_before_a_local_publishes_nothing_of_it(world: World, tmp_path: Path) -> None:
    three(world)
    world.reconcile()
    (stored,) = world.store.glob(f"{FIRST}-*")
    append(stored, 5, "p", LONG_AGO + 900 * SECOND)
    world.reconcile("--out", tmp_path / "plan.json", settled=False)
    lock = hold(world.store.parent / "locks" / f"jp-c{FIRST}.lock")
    world.reconcile("local", str(FIRST), code=4, settled=False)
    lock.close()
    world.reconcile("apply", tmp_path / "plan.json", code=4, settled=False)
    assert world.event_count(FIRST, world.workspace) == 3
    world.reconcile()
    assert not list(world.workspace.glob(f"{FIRST}-*"))


def test_a_run_in_another_checkout_leaves_a_decision_as_it_is(world: World, tmp_path: Path, run: Run) -> None:
    three(world)
    world.reconcile()
    other = make_project(tmp_path / "other", run)
    other.reconcile("project", "--all")
    lock = hold(world.store.parent / "locks" / f"jp-c{FIRST}.lock")
    world.reconcile("local", str(FIRST), code=4, settled=False)
    lock.close()
    (stored,) = world.store.glob(f"{FIRST}-*")
    append(stored, 5, "p", LONG_AGO + 900 * SECOND)
    other.reconcile()
    assert other.event_count(FIRST, other.workspace) == 3
    found = json.loads(other.reconcile("status", "--json").stdout)["conversations"]
    assert {each["conversation"]: each["word"] for each in found}[f"jp-c{FIRST}"] == "local-present"
    world.reconcile()
    assert not list(world.workspace.glob(f"{FIRST}-*"))


def runs(world: World) -> list[dict[str, str]]:
    """Return the runs as `log --json` has them, the newest first."""
    found: list[dict[str, str]] = json.loads(world.run("log", "--json", "-w", world.project).stdout)["runs"]
    return found


def second(world: World, tmp_path: Path, run: Run) -> World:
    """Make a second checkout with a conversation of its own, and the same store."""
    other = make_project(tmp_path / "other", run)
    write_conversation(other.workspace / f"{NINTH + 1}-it", "Ten", events(1))
    other.reconcile()
    return other


def stored_alone(world: World) -> None:
    """Add a conversation to the store that no workspace has."""
    three(world)
    world.reconcile()
    write_conversation(world.store / f"{NINTH}-nine", "Nine", events(1))
    world.reconcile()


@needs_git
def test_a_local_ends_a_project_that_waits_in_another_checkout(world: World, tmp_path: Path, run: Run) -> None:
    stored_alone(world)
    other = second(world, tmp_path, run)
    sign = merging(other)
    other.reconcile("project", str(NINTH), code=4, settled=False)
    world.reconcile("local", str(NINTH))
    sign.unlink()
    world.reconcile("project", str(NINTH))
    other.reconcile()
    assert list(world.workspace.glob(f"{NINTH}-*"))
    assert not list(other.workspace.glob(f"{NINTH}-*"))


@needs_git
@pytest.mark.parametrize("command", ["local", "project"])
def test_a_removal_that_waits_ends_with_a_later_decision_in_another_checkout(
    world: World, tmp_path: Path, run: Run, command: str
) -> None:
    stored_alone(world)
    world.reconcile("project", str(NINTH))
    other = second(world, tmp_path, run)
    sign = merging(world)
    world.reconcile("rm", str(NINTH), "--yes", code=4, settled=False)
    other.reconcile(command, str(NINTH))
    sign.unlink()
    world.reconcile()
    other.reconcile()
    assert list(world.store.glob(f"{NINTH}-*"))
    assert bool(list(other.workspace.glob(f"{NINTH}-*"))) == (command == "project")


def test_a_restored_conversation_is_not_removed_by_the_rest_of_an_earlier_removal(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    three(world)
    world.reconcile()
    carry_out = DirectoryRemoval.carry_out

    def fails_here(self: DirectoryRemoval, *args: object) -> object:
        if self.action.target.side is Side.WORKSPACE:
            raise PermissionError(errno.EACCES, "no", self.action.target.path)
        return carry_out(self, *args)

    with monkeypatch.context() as patched:
        patched.setattr(DirectoryRemoval, "carry_out", fails_here)
        world.run("rm", str(FIRST), "--yes", "-w", world.project)
    assert list(world.workspace.glob(f"{FIRST}-*"))
    assert not list(world.store.glob(f"{FIRST}-*"))
    world.reconcile("restore", f"{FIRST}@{runs(world)[0]['id']}", settled=False)
    world.reconcile()
    assert list(world.store.glob(f"{FIRST}-*"))
    assert list(world.workspace.glob(f"{FIRST}-*"))


@needs_git
def test_a_restored_conversation_is_not_removed_after_a_merge(world: World) -> None:
    three(world)
    world.reconcile()
    append(world.workspace / f"{FIRST}-it", 1, "b", LONG_AGO + SECOND)
    world.reconcile()
    version = f"{FIRST}@{runs(world)[0]['id']}"
    world.reconcile("restore", version)
    sign = merging(world)
    world.reconcile("rm", str(FIRST), "--yes", code=4, settled=False)
    world.reconcile("restore", version, settled=False)
    sign.unlink()
    world.reconcile()
    assert list(world.store.glob(f"{FIRST}-*"))


@needs_git
@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_a_project_that_waits_ends_with_the_removal(world: World, tmp_path: Path, run: Run, where: str) -> None:
    stored_alone(world)
    other = second(world, tmp_path, run)
    asks = world if where == "here" else other
    sign = merging(asks)
    asks.reconcile("project", str(NINTH), code=4, settled=False)
    world.run("rm", str(NINTH), "--yes", "-w", world.project)
    sign.unlink()
    world.reconcile()
    other.reconcile()
    removal = max(each["id"] for each in runs(world) if each["command"].startswith("reconcile rm"))
    world.reconcile("restore", f"{NINTH}@{removal}", settled=False)
    assert list(world.store.glob(f"{NINTH}-*"))
    world.reconcile()
    other.reconcile()
    assert not list(asks.workspace.glob(f"{NINTH}-*"))


def test_an_undo_of_local_is_refused_after_local_in_another_checkout(world: World, tmp_path: Path, run: Run) -> None:
    three(world)
    world.reconcile()
    other = second(world, tmp_path, run)
    other.reconcile("project", str(FIRST))
    world.reconcile("local", str(FIRST))
    first = runs(world)[0]["id"]
    other.reconcile("local", str(FIRST))
    refused = world.run("undo", first, "-w", world.project)
    assert refused.exit_code == 4, refused.output
    other.reconcile()
    world.reconcile()
    assert [row[0] for row in world.remembered()["intent_local"]] == [f"jp-c{FIRST}"]
    assert not list(world.workspace.glob(f"{FIRST}-*"))


@needs_git
def test_a_clone_says_that_a_local_one_is_there_and_that_git_has_it(story: World, tmp_path: Path) -> None:
    git(story.project, "switch", "-q", "feature")
    said = story.reconcile("local", str(OTHER)).output
    assert f"jp-c{OTHER}: in git since " in said
    assert "commits stay in git's history" in said
    findings = json.loads(story.run("doctor", "--json", "-w", story.project).stdout)["findings"]
    (found,) = [each for each in findings if each["kind"].startswith("private")]
    assert (found["kind"], found["severity"], found["conversation"]) == ("private-in-git", "note", f"jp-c{OTHER}")
    check_private(story)
    (stored,) = story.store.glob(f"{OTHER}*")
    append(stored, 5, "k", LONG_AGO + 200 * SECOND)
    git(story.project, "checkout", "-q", "--", ".jp")
    listed = story.reconcile("status").stdout
    assert f"jp-c{OTHER}" in listed
    assert "local, copy here" in listed
    shutil.rmtree(place(story, OTHER))
    commit(story, "without")
    subprocess.run(["git", "-C", story.project, "rm", "-q", "-r", "--cached", ".jp"], check=True)
    git(story.project, "commit", "-qm", "none")
    assert "committed files" not in story.reconcile("local", str(PARENT), settled=False).output


@needs_git
def test_a_checkout_that_is_forgotten_says_which_requests_go_with_it(world: World) -> None:
    three(world)
    world.reconcile()
    merging(world)
    world.reconcile("local", str(FIRST), code=4, settled=False)
    said = world.run("checkouts", "--forget", world.project, "-w", world.project).stdout
    assert f"dropped: `reconcile local jp-c{FIRST}`, which waited there" in said
