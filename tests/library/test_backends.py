"""Where changes go: nowhere, into a list, or into memory; and locks that keep nobody out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reconcile import (
    CASCADE,
    PROMOTE,
    Change,
    HasChildrenError,
    NoLocks,
    NullBackend,
    PersistBackend,
    RecordingBackend,
    Removal,
    UnknownConversationError,
    Workspace,
)
from reconcile.adapters.roots import LocateError
from tests.support.library.conversations import check, locked, mutable, say
from tests.support.projects.jp_process import JpProcess
from tests.support.projects.three_conversations import FIRST, SECOND_ID
from tests.support.projects.world import LONG_AGO, append, listing, stamps

if TYPE_CHECKING:
    from tests.support.projects.world import World


def test_without_persisting_all_is_read_and_nothing_written(world: World) -> None:
    """Also what a run would have to do, and no lock file is made."""
    append(world.workspace / f"{FIRST}-it", 2, "h", LONG_AGO)
    before = [stamps(path) for path in (world.silo, world.project, world.state)]
    with Workspace.open(world.project, backend=NullBackend()) as workspace:
        handle = workspace.acquire(str(FIRST))
        assert len(workspace.events(handle)) == 5
        with mutable(workspace) as mut:
            say(mut, "hello")
        assert len(workspace.events(handle)) == 6
        with workspace.create_conversation(parent=handle, title="New") as new:
            say(new, "hello")
        assert new.handle in workspace.children_of(handle)
        with mutable(workspace) as mut:
            workspace.remove_conversation(mut, PROMOTE)
        assert workspace.parent_of(new.handle) is None
        with pytest.raises(UnknownConversationError):
            workspace.events(handle)
    assert [stamps(path) for path in (world.silo, world.project, world.state)] == before


def test_a_recording_backend_has_what_would_be_written(world: World) -> None:
    backend = RecordingBackend()
    with Workspace.open(world.project, backend=backend) as workspace:
        with mutable(workspace) as mut:
            say(mut, "hello")
            mut.flush()
            mut.flush()
            workspace.remove_conversation(mut, CASCADE)
        change, removal = backend.recorded
    assert isinstance(change, Change)
    assert (change.conversation, list(change.files)) == (f"jp-c{FIRST}", ["events.json"])
    assert b"hello" in change.files["events.json"]
    assert isinstance(removal, Removal)
    assert removal.strategy is CASCADE
    assert world.event_count(FIRST) == 3


def test_a_backend_that_fails_is_heard() -> None:
    class Fails(NullBackend):
        def persist(self, change: Change) -> tuple[str, ...]:
            raise OSError(28, f"no room for {change.conversation}")

    backend: PersistBackend = Fails()
    with Workspace.in_memory(backend=backend) as workspace:
        with pytest.raises(OSError, match="no room"), workspace.create_conversation():
            pass
        assert workspace.conversations() == []


def test_in_memory() -> None:
    with Workspace.in_memory() as workspace:
        with workspace.create_conversation(title="Root", labels={"b": "1", "a": ""}) as root:
            say(root, "hello")
        with workspace.create_conversation(parent=root.handle, local=True) as child:
            pass
        assert workspace.metadata(root.handle)["labels"] == {"a": "", "b": "1"}
        assert workspace.children_of(root.handle) == [child.handle]
        mut = mutable(workspace, int(root.id.removeprefix("jp-c")))
        with pytest.raises(HasChildrenError):
            workspace.remove_conversation(mut)
        workspace.remove_conversation(mut, CASCADE)
        assert workspace.conversations() == []


def test_a_test_lock_persists_for_real(world: World) -> None:
    with (
        JpProcess(world.silo, world.project / ".jp") as jp,
        Workspace.open(world.project, locks=NoLocks()) as workspace,
    ):
        assert jp.take(FIRST)
        with mutable(workspace) as mut:
            say(mut, "hello")
        assert world.event_count(FIRST) == world.event_count(FIRST, world.workspace) == 4
    check(world)


def test_a_test_lock_still_keeps_threads_apart(world: World) -> None:
    with Workspace.open(world.project, locks=NoLocks()) as workspace, locked(workspace, SECOND_ID):
        assert workspace.lock_conversation(workspace.acquire(str(SECOND_ID)), timeout=0) is None


def test_opening_leaves_everything_as_it_is(world: World) -> None:
    before = listing(world.silo), listing(world.project)
    with Workspace.open(world.project / ".jp", store=world.silo) as workspace:
        assert len(workspace.conversations()) == 3
    assert (listing(world.silo), listing(world.project)) == before


def test_a_place_without_a_workspace(world: World) -> None:
    with pytest.raises(LocateError, match="no workspace in"):
        Workspace.open(world.project.parent)
