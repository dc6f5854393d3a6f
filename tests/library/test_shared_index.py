"""A look at everything, which takes its time, beside threads that work on single conversations."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from reconcile import PROMOTE
from tests.support.library.conversations import check, directory, locked, mutable, say, texts
from tests.support.projects.three_conversations import FIRST, SECOND_ID, THIRD
from tests.support.projects.world import events, write_conversation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reconcile import Workspace
    from tests.support.projects.world import World

PATIENCE_S = 10.0
FOURTH = 17500000004


class Looks:
    """Those at everything; the first one has seen both sides, and doesn't end before it may."""

    def __init__(self, workspace: Workspace, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        seen, self._may_end = threading.Event(), threading.Event()
        storage: Any = workspace._opened
        session = storage._index.session
        scan = session.scan

        def hold() -> Any:
            self.count += 1
            found = scan()
            if not seen.is_set():
                seen.set()
                assert self._may_end.wait(PATIENCE_S)
            return found

        monkeypatch.setattr(session, "scan", hold)
        self._first = pool.submit(workspace.refresh)
        assert seen.wait(PATIENCE_S)

    def end(self) -> None:
        self._may_end.set()
        self._first.result(PATIENCE_S)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as opened:
        yield opened


@pytest.fixture
def held(workspace: Workspace, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch) -> Iterator[Looks]:
    """A look that goes on for as long as the test wants it to."""
    looks = Looks(workspace, pool, monkeypatch)
    try:
        yield looks
    finally:
        looks.end()


def test_who_does_not_need_it_does_not_wait(
    world: World, workspace: Workspace, held: Looks, pool: ThreadPoolExecutor
) -> None:
    """Writing, reading, the tree, and conversations that are new; and what came of it isn't forgotten afterwards."""
    first, third = workspace.acquire(str(FIRST)), workspace.acquire(str(THIRD))

    def work() -> str:
        with mutable(workspace, THIRD) as mut:
            say(mut, "meanwhile")
            mut.update_metadata(lambda metadata: metadata.update(mine="meanwhile"))
        with workspace.create_conversation(title="Meanwhile", parent=first) as new:
            say(new, "hello")
        with locked(workspace, SECOND_ID) as lock:
            assert len(lock.events) == 3
        assert workspace.events(third)[-1]["content"] == "meanwhile"
        return new.id

    def known(new: str) -> None:
        assert [each.id for each in workspace.children_of(first)] == [f"jp-c{SECOND_ID}", new]
        assert [each.id for each in workspace.conversations()] == sorted(
            [*(f"jp-c{number}" for number in (FIRST, SECOND_ID, THIRD)), new]
        )
        assert workspace.metadata(third)["mine"] == "meanwhile"

    new = pool.submit(work).result(PATIENCE_S)
    known(new)
    held.end()
    known(new)
    check(world)
    with mutable(workspace, int(new.removeprefix("jp-c"))) as mut:
        say(mut, "again")
    assert texts(directory(world.workspace, int(new.removeprefix("jp-c")))) == ["hello", "again"]
    assert held.count == 1


def test_what_began_before_does_not_count(
    world: World, workspace: Workspace, held: Looks, pool: ThreadPoolExecutor
) -> None:
    """Who asks for a look gets one that has begun since; those who have asked by then get the same."""
    write_conversation(world.store / f"{FOURTH}-other", "Made by another program", events(2))
    asking = [threading.Event() for _ in range(3)]

    def refresh(asks: threading.Event) -> list[str]:
        asks.set()
        workspace.refresh()
        return [each.id for each in workspace.conversations()]

    asked = [pool.submit(refresh, asks) for asks in asking]
    for asks in asking:
        assert asks.wait(PATIENCE_S)
    assert f"jp-c{FOURTH}" not in [each.id for each in workspace.conversations()]
    held.end()
    for each in asked:
        assert f"jp-c{FOURTH}" in each.result(PATIENCE_S)
    assert 2 <= held.count <= 4


def test_a_new_title_waits_for_a_look_of_its_own(
    world: World, workspace: Workspace, held: Looks, pool: ThreadPoolExecutor
) -> None:
    def rename() -> None:
        with mutable(workspace, THIRD) as mut:
            mut.update_metadata(lambda metadata: metadata.update(title="Another"))

    renamed = pool.submit(rename)
    with pytest.raises(TimeoutError):
        renamed.result(0.1)
    held.end()
    renamed.result(PATIENCE_S)
    assert (world.store / f"{THIRD}-another").is_dir()
    assert held.count == 3
    check(world)


def test_threads_that_do_everything_at_once_agree_with_the_next_look(
    world: World, workspace: Workspace, pool: ThreadPoolExecutor
) -> None:
    """What is new is known to who has made it, what was removed isn't, and nothing is forgotten by a look beside it."""
    ended = threading.Event()

    def look() -> None:
        while not ended.is_set():
            workspace.refresh()

    def work(name: int) -> None:
        chance, mine = random.Random(name), [workspace.acquire(str(FIRST))]
        for turn in range(8):
            with workspace.create_conversation(title=f"{name} {turn}", parent=chance.choice(mine)) as new:
                say(new, "hello")
            assert new.handle in workspace.conversations()
            mine.append(new.handle)
            lock = workspace.lock_conversation(chance.choice(mine[1:]))
            assert lock is not None
            with lock.into_mut() as mut:
                if turn % 4 == 1:
                    workspace.remove_conversation(mut, PROMOTE)
                    mine.remove(mut.handle)
                    assert mut.handle not in workspace.conversations()
                elif turn % 4 == 2:
                    mut.update_metadata(lambda metadata: metadata.update(title="Another"))
                else:
                    say(mut, "again")

    looking = pool.submit(look)
    for working in [pool.submit(work, name) for name in range(3)]:
        working.result()
    ended.set()
    looking.result()
    known = {each: workspace.parent_of(each) for each in workspace.conversations()}
    assert len(known) == 3 + 3 * (8 - 2)
    workspace.refresh()
    assert known == {each: workspace.parent_of(each) for each in workspace.conversations()}
    check(world)
