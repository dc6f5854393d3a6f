"""`reconcile watch` beside real git (docs/watch.md): it waits until git is through, then takes up what has changed."""

from __future__ import annotations

import shutil
import threading
import time
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from tests.support.projects.git_world import CHILD, OTHER, PARENT, check_git, check_private, commit, git, place
from tests.support.projects.watcher import Watching, until
from tests.support.projects.world import LONG_AGO, SECOND, append, digest_of, events, listing, write_conversation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.projects.world import World

pytestmark = [pytest.mark.long, pytest.mark.skipif(shutil.which("git") is None, reason="no git")]

QUIET = 1.0
"""Seconds in which a watcher would have done what it has to wait with."""


@pytest.fixture
def forked(story: World) -> World:
    """Two branches, `ours` and `theirs`, that conflict over the parent; `theirs` has a continued other one, too."""
    git(story.project, "switch", "-qc", "theirs")
    append(place(story, OTHER), 2, "t", LONG_AGO + 80 * SECOND)
    commit(story, "the other one goes on")
    append(place(story, PARENT), 2, "h", LONG_AGO + 90 * SECOND)
    commit(story, "theirs")
    git(story.project, "switch", "-qc", "ours", "feature")
    append(place(story, PARENT), 2, "g", LONG_AGO + 100 * SECOND)
    commit(story, "ours")
    story.reconcile()
    return story


@pytest.fixture
def linked(forked: World, tmp_path: Path) -> World:
    """A linked worktree, in which `.git` is a file, at `ours`; the main one is at `feature`."""
    git(forked.project, "switch", "-q", "feature")
    git(forked.project, "worktree", "add", "-q", str(tmp_path / "linked"), "ours")
    tree = replace(forked, project=tmp_path / "linked")
    tree.reconcile()
    return tree


def alike(world: World, *numbers: int) -> bool:
    """Tell whether both sides have the same of these conversations."""
    for number in numbers:
        (stored,) = world.store.glob(f"{number}-*")
        here = place(world, number)
        if any(digest_of(stored / name) != digest_of(here / name) for name in ("metadata.json", "events.json")):
            return False
    return True


def runs(world: World) -> int:
    return len(world.remembered()["run"])


STOPPED = [
    (("merge", "theirs"), ("merge", "--continue"), "a merge"),
    (("rebase", "theirs"), ("rebase", "--continue"), "a rebase"),
    (("rebase", "--apply", "theirs"), ("rebase", "--continue"), "a rebase"),
    (("cherry-pick", "theirs~1", "theirs"), ("cherry-pick", "--continue"), "a cherry-pick"),
]
REVERTED = ("revert", "ours~1"), ("revert", "--continue"), "a revert"


@pytest.mark.parametrize(("begin", "go_on", "words"), STOPPED)
def test_stopped_half_way(forked: World, begin: tuple[str, ...], go_on: tuple[str, ...], words: str) -> None:
    check_waits(forked, begin, go_on, words)
    assert alike(forked, PARENT, CHILD, OTHER)


def test_stopped_half_way_in_a_linked_worktree(linked: World) -> None:
    check_waits(linked, *STOPPED[1])
    assert alike(linked, PARENT, CHILD, OTHER)


def test_a_revert_stopped_half_way(forked: World) -> None:
    """What it puts back are old versions, and set aside as such."""
    check_waits(forked, *REVERTED)
    assert {row[1] for row in forked.remembered()["aside"]} == {f"jp-c{PARENT}", f"jp-c{CHILD}"}


def check_waits(world: World, begin: tuple[str, ...], go_on: tuple[str, ...], words: str) -> None:
    """Neither side is written until git is through; then all that has changed is taken up in one pass."""
    with Watching(world) as watcher:
        git(world.project, *begin, check=False)
        watcher.hears("waiting", words)
        (stored,) = world.store.glob(f"{CHILD}-*")
        append(stored, 1, "k", LONG_AGO + 200 * SECOND)
        before, store, count = listing(world.workspace), listing(world.store), runs(world)
        time.sleep(QUIET)
        assert (listing(world.workspace), listing(world.store), runs(world)) == (before, store, count)
        git(world.project, "checkout", "--theirs", "--", ".jp", check=False)
        git(world.project, "add", "-A")
        git(world.project, "-c", "core.editor=true", *go_on)
        watcher.hears("resumed")
        until(lambda: runs(world) > count)
        time.sleep(QUIET)
        assert runs(world) - count == 1
        assert watcher.stop() == 0
    assert not watcher.said("held")
    check_private(world)
    world.check_settled()


@pytest.mark.parametrize(("begin", "go_on", "words"), [STOPPED[0], STOPPED[1]])
def test_given_up(forked: World, begin: tuple[str, ...], go_on: tuple[str, ...], words: str) -> None:
    """What was there only meanwhile has never been."""
    before = listing(forked.store)
    with Watching(forked) as watcher:
        git(forked.project, *begin, check=False)
        watcher.hears("waiting", words)
        git(forked.project, go_on[0], "--abort")
        watcher.hears("resumed")
        check_git(forked)
        append(place(forked, OTHER), 1, "z", LONG_AGO + 300 * SECOND)
        until(lambda: forked.event_count(OTHER) == 5)
        assert watcher.stop() == 0
    assert watcher.done() == [("copy", f"jp-c{OTHER}", "stream")]
    (stored,) = forked.store.glob(f"{OTHER}-*")
    others = {path: found for path, found in listing(forked.store).items() if not path.startswith(stored.name)}
    assert others == {path: found for path, found in before.items() if not path.startswith(stored.name)}


@pytest.mark.parametrize("end", ["--abort", "--continue"])
def test_what_was_made_local_during_a_merge_leaves_at_its_end(forked: World, end: str) -> None:
    """The watcher carries out what a command has recorded; the command itself saves what the merge has brought."""
    with Watching(forked) as watcher:
        git(forked.project, "merge", "theirs", check=False)
        watcher.hears("waiting", "a merge")
        forked.reconcile("local", str(OTHER), code=4, settled=False)
        time.sleep(QUIET)
        assert place(forked, OTHER).is_dir()
        if end == "--continue":
            git(forked.project, "checkout", "--theirs", "--", ".jp", check=False)
            git(forked.project, "add", "-A")
        git(forked.project, "-c", "core.editor=true", "merge", end)
        watcher.hears("resumed")
        until(lambda: not list(forked.workspace.rglob(f"{OTHER}-*")), "its directory leaves")
        assert watcher.stop() == 0
    assert ("remove-stale", f"jp-c{OTHER}", "conversation") in watcher.done()
    assert forked.event_count(OTHER) == 6
    assert "local" in forked.reconcile("status", str(OTHER)).stdout
    check_private(forked)
    forked.check_settled()


def test_a_bisect(forked: World) -> None:
    """It checks out one old version after the other, and nothing of that is seen."""
    before, count = listing(forked.store), runs(forked)
    with Watching(forked) as watcher:
        git(forked.project, "bisect", "start", "ours", "main")
        watcher.hears("waiting", "a bisect")
        git(forked.project, "bisect", "good")
        time.sleep(QUIET)
        git(forked.project, "bisect", "reset")
        watcher.hears("resumed")
        check_git(forked)
        append(place(forked, OTHER), 1, "z", LONG_AGO + 300 * SECOND)
        until(lambda: forked.event_count(OTHER) == 5)
        assert watcher.stop() == 0
    assert runs(forked) - count == 1
    (stored,) = forked.store.glob(f"{OTHER}-*")
    changed = {path.split("/")[0] for path, found in listing(forked.store).items() if before.get(path) != found}
    assert changed == {stored.name}


def test_stashed_and_popped(story: World) -> None:
    with Watching(story) as watcher:
        append(place(story, OTHER), 2, "s", LONG_AGO + 300 * SECOND)
        until(lambda: story.event_count(OTHER) == 6)
        git(story.project, "stash", "-q")
        watcher.hears("noted", "behind")
        check_git(story)
        assert story.event_count(OTHER) == 6
        git(story.project, "stash", "pop", "-q")
        append(place(story, CHILD), 1, "s", LONG_AGO + 300 * SECOND)
        until(lambda: alike(story, CHILD, OTHER))
        assert watcher.stop() == 0
    assert story.event_count(OTHER, story.workspace) == 6
    story.check_settled()


def test_branches_are_switched_while_jp_goes_on(story: World) -> None:
    """What was written into the workspace is an edit like any other: committed, it is never in git's way."""
    count = 4
    with Watching(story) as watcher:
        (stored,) = story.store.glob(f"{OTHER}-*")
        for number in range(4):
            git(story.project, "switch", "-qc", f"next-{number}")
            append(stored, 1, chr(ord("f") + number), LONG_AGO + (400 + number) * SECOND)
            count += 1
            until(lambda count=count: story.event_count(OTHER, story.workspace) == count)  # type: ignore[misc]
            commit(story, f"next {number}")
            git(story.project, "switch", "-q", "main")
            until(lambda: story.remembered()["aside"], "the old versions are behind")
            check_git(story)
            git(story.project, "switch", "-q", f"next-{number}")
            until(lambda: not story.remembered()["aside"], "they have come back")
            check_git(story)
        assert watcher.stop() == 0
    assert story.event_count(OTHER) == count
    story.check_settled()


def test_a_switch_that_takes_its_time(story: World) -> None:
    """Much of it is quiet long before git is through: all of it is taken up together nevertheless."""
    many = [17500000100 + number for number in range(12)]
    for number in many:
        write_conversation(story.workspace / f"{number}-it", "It", events(2))
    commit(story, "before")
    git(story.project, "switch", "-qc", "after")
    for number in many:
        append(story.workspace / f"{number}-it", 1, "w", LONG_AGO + 10 * SECOND)
    commit(story, "after")
    story.reconcile()
    git(story.project, "config", "filter.slow.smudge", "sleep 0.08; cat")
    (story.project / ".git" / "info" / "attributes").write_text("events.json filter=slow\n")
    with Watching(story) as watcher:
        for branch, behind in (("feature", len(many)), ("after", 0)):
            count = runs(story)
            git(story.project, "switch", "-q", branch)
            until(lambda behind=behind: len(story.remembered()["aside"]) == behind, branch)  # type: ignore[misc]
            time.sleep(QUIET)
            assert runs(story) - count <= 1
        assert watcher.stop() == 0
    story.check_settled()


@pytest.fixture
def restless(story: World) -> Iterator[World]:
    """Somebody asks git how things stand, again and again: the lock of the index is there half of the time."""
    lock, stop = story.project / ".git" / "index.lock", threading.Event()

    def ask() -> None:
        while not stop.wait(0.004):
            lock.touch()
            stop.wait(0.004)
            lock.unlink()

    thread = threading.Thread(target=ask)
    thread.start()
    yield story
    stop.set()
    thread.join()


def test_git_begins_while_a_pass_is_planned(restless: World) -> None:
    """Nothing is said of that, and what had to wait is done as soon as git is through."""
    (stored,) = restless.store.glob(f"{OTHER}-*")
    with Watching(restless) as watcher:
        for count in range(5, 9):
            append(stored, 1, chr(ord("a") + count), LONG_AGO + (400 + count) * SECOND)
            until(lambda count=count: restless.event_count(OTHER, restless.workspace) == count)  # type: ignore[misc]
        assert watcher.stop() == 0
    assert not watcher.said("held")
