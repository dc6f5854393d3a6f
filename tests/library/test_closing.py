"""How scopes, locks and workspaces end when something is in the way: what was taken over is written, or is told of."""

from __future__ import annotations

import errno
import re
import subprocess
import sys
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from reconcile import ChangedError, HasChildrenError, MisuseError, ReleasedError, Workspace
from tests.support.faults.interrupts import interrupted
from tests.support.library.conversations import check, directory, locked, mutable, say, texts
from tests.support.projects.three_conversations import FIRST, THIRD

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconcile import Change, ConversationLock, ConversationMut, Events
    from tests.support.projects.world import World


def test_a_workspace_that_was_closed(world: World) -> None:
    with Workspace.open(world.project) as workspace:
        handle = workspace.acquire(str(FIRST))
    uses: list[Callable[[], object]] = [
        lambda: workspace.metadata(handle),
        lambda: workspace.events(handle),
        lambda: workspace.acquire(str(FIRST)),
        lambda: workspace.children_of(handle),
        lambda: workspace.lock_conversation(handle, timeout=0),
        workspace.create_conversation,
        workspace.conversations,
        workspace.refresh,
    ]
    for use in uses:
        with pytest.raises(ReleasedError, match="the workspace is closed; open it again"):
            use()
    workspace.close()
    assert not list((world.silo / "locks").glob(".reconcile-*"))


@pytest.mark.parametrize("what", ["scope", "lock", "workspace"])
def test_nothing_is_closed_in_a_callback(world: World, workspace: Workspace, what: str) -> None:
    """What the callback is about to change would be written by nobody."""
    lock = locked(workspace)
    mut = lock.as_mut()
    closes = {"scope": mut.close, "lock": lock.close, "workspace": workspace.close}[what]

    def change(events: Events) -> None:
        events.append({"timestamp": "x", "type": "x"})
        closes()

    with pytest.raises(MisuseError, match="callback"):
        mut.update_events(change)
    assert not mut.closed
    assert say(mut, "hello") == 4
    lock.close()
    assert world.event_count(FIRST) == 4


def test_what_is_changed_while_another_thread_closes(
    world: World, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes before the end and is written, or after it and is refused."""
    lock = locked(workspace)
    mut = lock.as_mut()
    say(mut, "first")
    backend: Any = workspace.backend
    persist, refused = backend.persist, []

    def late() -> None:
        try:
            say(mut, "late")
        except ReleasedError as error:
            refused.append(error)

    thread = threading.Thread(target=late)

    def slowly(change: Change) -> tuple[str, ...]:
        thread.start()
        thread.join(0.05)
        done: tuple[str, ...] = persist(change)
        return done

    monkeypatch.setattr(backend, "persist", slowly)
    lock.close()
    thread.join()
    assert refused
    assert texts(directory(world.store, FIRST))[3:] == ["first"]


def test_what_fails_when_a_workspace_closes_is_a_note_of_what_is_on_its_way(world: World) -> None:
    left: list[ConversationMut] = []
    with pytest.raises(KeyError, match="mine") as raised:
        leave_by_an_exception(world, left)
    notes = "\n".join(raised.value.__notes__)
    assert all(f"{mut.id}: events.json: a program without a lock changed it since it was read" in notes for mut in left)
    assert len(left) == 2


def test_everything_that_fails_when_a_workspace_closes_is_told(world: World) -> None:
    with pytest.raises(ChangedError) as raised, Workspace.open(world.project) as workspace:
        left = spoiled(world, workspace)
    told = "\n".join([str(raised.value), *raised.value.__notes__])
    assert all(f"{mut.id}: events.json: a program without a lock changed it since it was read" in told for mut in left)


def test_a_bug_does_not_cost_what_a_scope_was_to_write(
    world: World, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plan_change(*_: object) -> None:
        raise KeyError("a bug")

    mut = mutable(workspace)
    say(mut, "hello")
    monkeypatch.setattr("reconcile.library.disk.plan_change", plan_change)
    with pytest.raises(KeyError) as raised:
        mut.close()
    assert mut.closed
    (note,) = raised.value.__notes__
    (name,) = re.findall("[0-9a-f]{64}", note)
    assert "hello" in world.run("--workspace", world.project, "show", name).output


def test_a_side_that_can_not_be_read_at_the_end_hides_no_failure(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk of the store has failed, for example."""

    def is_directory(path: str) -> bool:
        raise OSError(errno.EIO, "I/O error", path)

    workspace = Workspace.open(world.project)
    left = spoiled(world, workspace)
    monkeypatch.setattr("reconcile.apply.run.is_directory", is_directory)
    with pytest.raises(ChangedError):
        workspace.close()
    assert all(mut.closed for mut in left)


def leave_by_an_exception(world: World, left: list[ConversationMut]) -> None:
    with Workspace.open(world.project) as workspace:
        left += spoiled(world, workspace)
        raise KeyError("mine")


def spoiled(world: World, workspace: Workspace) -> list[ConversationMut]:
    """Return two scopes that are dirty and can't be written."""
    left = [mutable(workspace, number) for number in (FIRST, THIRD)]
    for mut in left:
        say(mut, "hello")
        (directory(world.store, int(mut.id.removeprefix("jp-c"))) / "events.json").write_text("[]\n")
    return left


def test_a_traceback_says_what_to_do_next(workspace: Workspace) -> None:
    with mutable(workspace) as mut, pytest.raises(HasChildrenError) as raised:
        workspace.remove_conversation(mut)
    assert any("PROMOTE gives them its parent" in note for note in raised.value.__notes__)


def test_a_fork_that_ends_says_nothing_of_its_parents_scope(world: World) -> None:
    program = f"""
import os, sys
from reconcile import MisuseError, Workspace, new_event
workspace = Workspace.open({str(world.project)!r})
handle = workspace.acquire("{FIRST}")
mut = workspace.lock_conversation(handle).into_mut()
mut.update_events(lambda events: events.append(new_event("turn_start")))
if (pid := os.fork()) == 0:
    for use in (lambda: workspace.create_conversation(title="Of the child"), lambda: workspace.events(handle)):
        try:
            use()
        except MisuseError as error:
            assert "opened before a fork" in str(error), error
    sys.exit(3)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
mut.close()
workspace.close()
"""
    done = subprocess.run([sys.executable, "-X", "dev", "-c", program], check=True, capture_output=True, text=True)
    assert not done.stderr
    assert world.event_count(FIRST) == 4
    check(world)
    assert len(list(world.store.iterdir())) == 3


def test_a_fork_ends_while_a_thread_of_its_parent_has_looked_at_both_sides(world: World) -> None:
    program = f"""
import os, sys, threading
from reconcile import Workspace
workspace = Workspace.open({str(world.project)!r})
session, go, begun = workspace._opened._index.session, threading.Event(), threading.Event()
scan = session.scan
session.scan = lambda: (begun.set(), go.wait(), scan())[2]
thread = threading.Thread(target=workspace.refresh)
thread.start()
begun.wait()
if (pid := os.fork()) == 0:
    sys.exit(3)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
go.set()
thread.join()
workspace.close()
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=30)
    assert not done.stderr


def append(workspace: Workspace) -> None:
    lock: ConversationLock = locked(workspace, timeout=1)
    with lock.into_mut() as mut:
        say(mut, "hello")


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_ctrl_c_at_any_moment_leaves_a_workspace_of_use(world: World) -> None:
    """The lock goes, and who comes next finds everything in order; some moments of all."""
    before = 0
    for moment in range(3, 10_000, 89):
        with Workspace.open(world.project) as workspace:
            done = interrupted(moment, partial(append, workspace))
            append(workspace)
            now = world.event_count(FIRST)
            assert now - before in (1, 2) or not before, moment
            before = now
        if done:
            break
    else:
        raise AssertionError
    check(world)
