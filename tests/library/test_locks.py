"""Threads and asyncio: one conversation at a time by itself, and nobody waits for another one."""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from reconcile import BusyError, Events, PersistError, UnreadableError, Workspace
from reconcile.fs.durability import Durability
from reconcile.library.locks import ReadWriteLock
from tests.support.library.conversations import check, directory, locked, mutable, say, texts
from tests.support.projects.jp_process import JpProcess
from tests.support.projects.three_conversations import FIRST, SECOND_ID, THIRD
from tests.support.projects.world import LONG_AGO, append

if TYPE_CHECKING:
    from tests.support.projects.world import World


def test_threads_that_write_to_one_and_to_several(world: World, workspace: Workspace) -> None:
    numbers = (FIRST, SECOND_ID, THIRD)

    def work(name: int) -> None:
        for at in range(3):
            for number in (numbers[name % 3], FIRST):
                with mutable(workspace, number) as mut:
                    say(mut, f"{name} {at}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    said = {
        number: [text for text in texts(directory(world.workspace, number)) if text[1:2] == " "] for number in numbers
    }
    assert [len(said[number]) for number in numbers] == [6 + 12, 3, 3]
    for name in "0123":
        in_order = [text for text in said[FIRST] if text.startswith(name)]
        assert sorted(in_order) == in_order
    check(world)


def test_one_thread_waits_for_another(workspace: Workspace) -> None:
    lock = locked(workspace)
    handle = workspace.acquire(str(FIRST))
    began = time.monotonic()
    assert workspace.lock_conversation(handle, timeout=0.05) is None
    assert 0.04 < time.monotonic() - began < 5
    threading.Timer(0.05, lock.close).start()
    locked(workspace).close()


def test_a_reader_does_not_see_what_is_not_flushed(workspace: Workspace) -> None:
    handle = workspace.acquire(str(FIRST))
    with mutable(workspace) as mut:
        say(mut, "hello")
        assert len(workspace.events(handle)) == 3
        assert len(mut.events) == 4
    assert len(workspace.events(handle)) == 4


def test_a_callback_has_it_alone(workspace: Workspace) -> None:
    """Readers and other callbacks come after it."""
    handle, order = workspace.acquire(str(FIRST)), []

    def slowly(_: Events) -> None:
        reader.start()
        time.sleep(0.1)
        order.append("callback")

    def read() -> None:
        workspace.events(handle)
        order.append("reader")

    reader = threading.Thread(target=read)
    with mutable(workspace) as mut:
        mut.update_events(slowly)
        reader.join()
    assert order == ["callback", "reader"]


def test_readers_are_many_and_a_writer_is_not_kept_out() -> None:
    rw_lock, seen = ReadWriteLock("x"), []
    barrier = threading.Barrier(3)

    def read() -> None:
        with rw_lock.reading():
            barrier.wait(5)
            time.sleep(0.05)
            seen.append("reader")

    def write() -> None:
        with rw_lock.writing():
            seen.append("writer")

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    barrier.wait(5)
    writer = threading.Thread(target=write)
    writer.start()
    time.sleep(0.01)
    with rw_lock.reading():
        seen.append("late")
    for thread in (*threads, writer):
        thread.join()
    assert seen == ["reader", "reader", "writer", "late"]


def test_nobody_waits_for_another_conversation(
    world: World, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Measured: with a disk that takes its time to flush, four take as long as one."""
    created = [workspace.create_conversation(title=f"N{number}") for number in range(4)]
    for mut in created:
        mut.close()
    workspace.metadata(created[0].handle)
    flush = Durability.flush_all

    def slow(durability: Durability, *args: Any) -> None:
        time.sleep(0.05)
        flush(durability, *args)

    def work(number: int) -> float:
        began = time.monotonic()
        with mutable(workspace, int(created[number].id.removeprefix("jp-c"))) as mut:
            say(mut, "hello")
        return time.monotonic() - began

    with monkeypatch.context() as patched:
        patched.setattr(Durability, "flush_all", slow)
        alone = work(0)
        began = time.monotonic()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
        assert time.monotonic() - began < 2 * alone
    check(world)


def test_asyncio_goes_on_while_a_lock_is_waited_for(world: World, workspace: Workspace) -> None:
    handle = workspace.acquire(str(FIRST))

    async def tick(ticks: list[float]) -> None:
        while True:
            ticks.append(time.monotonic())
            await asyncio.sleep(0.005)

    async def story() -> list[float]:
        ticks: list[float] = []
        ticking = asyncio.create_task(tick(ticks))
        async with asyncio.timeout(20):
            async with workspace.lock_async(handle) as lock, lock.as_mut() as mut:
                say(mut, "hello")
        ticking.cancel()
        return ticks

    with JpProcess(world.silo, world.project / ".jp") as jp:
        assert jp.take(FIRST)
        timer = threading.Timer(0.2, jp.release, [FIRST])
        timer.start()
        assert len(asyncio.run(story())) > 10
        timer.join()
    assert world.event_count(FIRST) == 4
    check(world)


def test_asyncio_gives_up(workspace: Workspace) -> None:
    handle = workspace.acquire(str(FIRST))

    async def story() -> None:
        assert await workspace.lock_async(handle, timeout=0.02) is None
        with pytest.raises(BusyError, match="locked by another part of this process"):
            async with workspace.lock_async(handle, timeout=0.02):
                raise AssertionError

    with locked(workspace):
        asyncio.run(story())


def test_asyncio_many_tasks(world: World, workspace: Workspace) -> None:
    handle = workspace.acquire(str(FIRST))

    async def work(name: int) -> None:
        lock = await workspace.lock_async(handle)
        assert lock is not None
        async with lock.into_mut() as mut:
            say(mut, f"{name}")
            await asyncio.sleep(0)
            say(mut, f"{name} again")

    async def story() -> None:
        await asyncio.gather(*map(work, range(5)))

    asyncio.run(story())
    said = texts(directory(world.workspace, FIRST))[3:]
    assert len(said) == 10
    assert all(later == f"{first} again" for first, later in zip(said[::2], said[1::2], strict=True))


def test_a_task_that_is_cancelled_has_written(world: World, workspace: Workspace) -> None:
    """Also where that comes while it is being written: the lock never goes before that has ended."""
    handle = workspace.acquire(str(FIRST))

    async def work(inside: asyncio.Event) -> None:
        async with workspace.lock_async(handle) as lock, lock.as_mut() as mut:
            say(mut, "hello")
            inside.set()
            await asyncio.sleep(0)

    async def story() -> None:
        inside = asyncio.Event()
        task = asyncio.create_task(work(inside))
        await inside.wait()
        await asyncio.sleep(0.003)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert world.event_count(FIRST, world.workspace) == 4
        lock = await workspace.lock_async(handle, timeout=0)
        assert lock is not None
        lock.close()

    asyncio.run(story())


def test_what_fails_in_a_coroutine_raises_there(world: World, workspace: Workspace) -> None:
    handle = workspace.acquire(str(FIRST))

    async def story() -> None:
        async with workspace.lock_async(handle) as lock, lock.as_mut() as mut:
            say(mut, "hello")
            (directory(world.store, FIRST) / "events.json").write_text("[]\n")

    with pytest.raises(PersistError):
        asyncio.run(story())


def test_a_write_does_not_wait_for_the_loops_own_threads(world: World, workspace: Workspace) -> None:
    """All of those may wait for the very lock that goes with it."""
    handle = workspace.acquire(str(FIRST))

    def wait() -> None:
        lock = workspace.lock_conversation(handle, timeout=20)
        assert lock is not None
        lock.close()

    async def story() -> float:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(2))
        async with workspace.lock_async(handle) as lock, lock.as_mut() as mut:
            say(mut, "hello")
            waiting = [loop.run_in_executor(None, wait) for _ in range(4)]
            await asyncio.sleep(0.02)
            began = time.monotonic()
        took = time.monotonic() - began
        await asyncio.gather(*waiting)
        return took

    assert asyncio.run(story()) < 5
    check(world)


def test_asyncio_goes_on_while_what_came_before_is_brought_together(
    world: World, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = workspace.acquire(str(FIRST))
    append(directory(world.workspace, FIRST), 2, "h", LONG_AGO)
    flush, slow_s = Durability.flush_all, 0.3

    def slow(durability: Durability, *args: Any) -> None:
        time.sleep(slow_s)
        flush(durability, *args)

    async def story() -> float:
        ticks = [time.monotonic()]

        async def tick() -> None:
            while True:
                await asyncio.sleep(0.005)
                ticks.append(time.monotonic())

        ticking = asyncio.create_task(tick())
        async with workspace.lock_async(handle) as lock:
            assert len(lock.events) == 5
            await asyncio.sleep(0.01)
            mut = lock.into_mut()
        async with mut:
            say(mut, "hello")
        await asyncio.sleep(0.01)
        ticking.cancel()
        return max(after - before for before, after in itertools.pairwise(ticks))

    monkeypatch.setattr(Durability, "flush_all", slow)
    assert asyncio.run(story()) < slow_s
    assert world.event_count(FIRST) == 6


def test_what_can_not_be_read_is_said_where_it_is_asked_for(world: World, workspace: Workspace) -> None:
    handle = workspace.acquire(str(FIRST))
    (directory(world.store, FIRST) / "events.json").write_text("<<<<<<< ours\n")

    async def story() -> None:
        async with workspace.lock_async(handle) as lock, lock.as_mut() as mut:
            with pytest.raises(UnreadableError):
                say(mut, "hello")

    asyncio.run(story())


@pytest.mark.parametrize("how", ["lock", "scope"])
def test_a_task_that_is_cancelled_while_it_reads_lets_go(
    world: World, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """At once, and not when the garbage collector comes by."""
    handle = workspace.acquire(str(FIRST))
    backend: Any = workspace.backend
    prepare = backend.prepare
    held: list[object] = []

    def slowly(*args: Any) -> Any:
        time.sleep(0.05)
        return prepare(*args)

    async def work() -> None:
        if how == "lock":
            held.append(locking := workspace.lock_async(handle))
            async with locking:
                raise AssertionError
        lock = await workspace.lock_async(handle)
        assert lock is not None
        held.append(mut := lock.into_mut())
        async with mut:
            raise AssertionError

    async def story() -> None:
        task = asyncio.create_task(work())
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        lock = await workspace.lock_async(handle, timeout=0)
        assert lock is not None
        lock.close()

    monkeypatch.setattr(backend, "prepare", slowly)
    asyncio.run(story())
    assert held


def test_a_lock_ends_although_a_forked_copy_of_the_process_goes_on(workspace: Workspace) -> None:
    lock = locked(workspace)
    waits, ends = os.pipe()
    if (child := os.fork()) == 0:
        os.close(ends)
        os.read(waits, 1)
        os._exit(0)
    try:
        lock.close()
        locked(workspace).close()
    finally:
        os.close(ends)
        os.close(waits)
        os.waitpid(child, 0)
