"""JP at work at the same time: real processes, real flock, and the two ways in which JP takes a lock's name away."""

from __future__ import annotations

import contextlib
import json
import shutil
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from reconcile.adapters.jp.locks import Acquired, LockSet
from reconcile.fs.locks import try_lock
from reconcile.fs.mutations import Root
from tests.support.projects.jp_process import JpProcess
from tests.support.projects.three_conversations import FIRST, SECOND_ID, THIRD, results, three
from tests.support.projects.world import LONG_AGO, SECOND, append, contents, set_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.support.projects.world import World


@pytest.fixture
def jp(world: World) -> Iterator[JpProcess]:
    """A JP; the world has a parent with a child, and another conversation, both sides in sync."""
    three(world, parent=FIRST)
    world.reconcile()
    with JpProcess(world.silo, world.project / ".jp") as process:
        yield process


@pytest.fixture
def another(world: World) -> Iterator[JpProcess]:
    with JpProcess(world.silo, world.project / ".jp") as process:
        yield process


def edit(world: World, number: int) -> None:
    (directory,) = (path.parent for path in world.workspace.rglob(f"{number}-*/events.json"))
    append(directory, 2, "w", LONG_AGO + 10 * SECOND)


@contextlib.contextmanager
def once_locked(then: Callable[[], None]) -> Iterator[None]:
    """Have something happen when the locks were had."""
    acquire = LockSet.acquire

    def acquired(locks: LockSet, names: Sequence[str]) -> Acquired:
        got = acquire(locks, names)
        then()
        return got

    with mock.patch.object(LockSet, "acquire", acquired):
        yield


@contextlib.contextmanager
def at_the_rename(then: Callable[[], None]) -> Iterator[None]:
    exchange = Root.exchange

    def exchanged(root: Root, *args: str) -> bool:
        then()
        return exchange(root, *args)

    with mock.patch.object(Root, "exchange", exchanged):
        yield


@pytest.mark.parametrize("locked", [FIRST, SECOND_ID])
def test_a_child_is_saved_while_jp_has_its_parent_and_the_other_way_round(
    world: World, jp: JpProcess, locked: int
) -> None:
    """Content of one conversation needs no lock of another."""
    assert jp.take(locked)
    for number in (FIRST, SECOND_ID, THIRD):
        edit(world, number)
    found = json.loads(world.reconcile("--json", code=4, settled=False).stdout)
    free = SECOND_ID if locked == FIRST else FIRST
    assert results(found) == {
        f"jp-c{locked}": {("skipped", "busy")},
        f"jp-c{free}": {("done", None)},
        f"jp-c{THIRD}": {("done", None)},
    }
    assert world.event_count(locked) == 3
    assert world.event_count(free) == 5
    jp.release(locked)
    world.reconcile()
    assert world.event_count(locked) == 5


@pytest.mark.parametrize("locked", [FIRST, SECOND_ID])
def test_no_directory_goes_while_jp_has_what_is_in_it_or_around_it(world: World, jp: JpProcess, locked: int) -> None:
    """The parent was removed from the store: its directory holds the child's."""
    shutil.rmtree(world.store / f"{FIRST}-it")
    assert jp.take(locked)
    before = contents(world.workspace)
    world.reconcile("--allow-bulk-removal", code=4, settled=False)
    assert contents(world.workspace) == before
    jp.release(locked)
    world.reconcile()
    assert not list(world.workspace.rglob(f"{FIRST}-*"))
    assert [str(path.relative_to(world.workspace)) for path in world.workspace.glob(f"{SECOND_ID}-*")]


def test_what_local_could_not_take_out_goes_when_it_is_free(world: World, jp: JpProcess) -> None:
    """The directory goes with all that is in it, or not at all; who has asked once need not ask again."""
    assert jp.take(SECOND_ID)
    before = contents(world.workspace)
    world.reconcile("local", str(FIRST), "--yes", code=4, settled=False)
    assert contents(world.workspace) == before
    jp.release(SECOND_ID)
    world.reconcile()
    assert not list(world.workspace.rglob(f"{FIRST}-*"))
    assert not list(world.workspace.rglob(f"{SECOND_ID}-*"))


def test_a_parent_that_jp_has_is_not_renamed_around_its_child(world: World, jp: JpProcess) -> None:
    set_key(world.workspace / f"{FIRST}-it", "title", "New", LONG_AGO + 10 * SECOND)
    assert jp.take(SECOND_ID)
    world.reconcile(code=4, settled=False)
    assert (world.workspace / f"{FIRST}-it").is_dir()
    jp.release(SECOND_ID)
    world.reconcile()
    assert (world.workspace / f"{FIRST}-new" / "conversations" / f"{SECOND_ID}-it").is_dir()


def test_a_release_that_unlinks_the_name_under_our_lock(
    world: World, jp: JpProcess, another: JpProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JP closes, we lock the file that it still has a name for, JP unlinks: our lock would be seen by nobody."""
    assert jp.take(FIRST)
    edit(world, FIRST)
    due, gets = [FIRST], []

    def between(fd: int) -> bool:
        if due:
            jp.close(due[0])
        locked = try_lock(fd)
        if due:
            jp.unlink(due.pop())
        return locked

    monkeypatch.setattr("reconcile.adapters.jp.locks.try_lock", between)
    with at_the_rename(lambda: gets.append(another.take(FIRST))):
        world.reconcile()
    assert gets == [False], "two held the lock of one conversation"
    assert world.event_count(FIRST) == 5


def test_a_sweep_of_the_name_that_we_have_locked_meanwhile(world: World, jp: JpProcess, another: JpProcess) -> None:
    """JP found the lock free at the end of its run, and unlinks it later: the name is put back."""
    edit(world, FIRST)
    world.reconcile()
    edit(world, FIRST)
    jp.probe()
    gets: list[bool] = []
    with once_locked(lambda: swept.append(jp.sweep())), at_the_rename(lambda: gets.append(another.take(FIRST))):
        swept: list[int] = []
        world.reconcile()
    assert swept[0]
    assert gets == [False], "two held the lock of one conversation"
    assert world.event_count(FIRST) == 7


def test_a_sweep_and_a_jp_that_has_the_lock_by_now(world: World, jp: JpProcess, another: JpProcess) -> None:
    edit(world, FIRST)
    world.reconcile()
    edit(world, FIRST)
    edit(world, THIRD)
    jp.probe()

    def lose() -> None:
        if jp.sweep():
            assert another.take(FIRST)

    before: Any = world.event_count(FIRST)
    with once_locked(lose):
        found = json.loads(world.reconcile("--json", code=4, settled=False).stdout)
    assert results(found)[f"jp-c{FIRST}"] == {("skipped", "busy")}
    assert results(found)[f"jp-c{THIRD}"] == {("done", None)}
    assert world.event_count(FIRST) == before
    another.release(FIRST)
    world.reconcile()
    assert world.event_count(FIRST) == before + 2
