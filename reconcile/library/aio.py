"""The same without blocking a loop: waiting for a lock sleeps in the loop, and what touches the disk is in a thread."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

from reconcile.library.errors import BusyError, report

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import TracebackType

    from reconcile.library.locks import Wait

T = TypeVar("T")


class Guard(Protocol):
    """What is let go at the end of ``async with``: a lock."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


G = TypeVar("G", bound=Guard)


async def in_thread(call: Callable[[], T]) -> T:
    """Run something in a thread, to its end: a task that is cancelled meanwhile ends only after it."""
    # One of its own: those of the loop may all be waiting for the lock that goes when this has ended.
    one = ThreadPoolExecutor(1, "reconcile")
    running = asyncio.get_running_loop().run_in_executor(one, call)
    one.shutdown(wait=False)
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None:
        return running.result()
    if (failure := running.exception()) is not None:
        cancelled.add_note(f"and what was done meanwhile has failed: {failure}")
        report("what a cancelled task had to do has failed", failure)
    raise cancelled


class Locking(Generic[G]):
    """To be awaited for a lock or None, or for ``async with``, which raises `BusyError` where there is None."""

    def __init__(self, wait: Callable[[], Wait[G]]) -> None:
        self._wait = wait
        self._lock: G | None = None

    def __await__(self) -> Generator[None, None, G | None]:
        return self._take().__await__()

    async def __aenter__(self) -> G:
        wait = self._wait()
        self._lock = await self._take(wait)
        if self._lock is None:
            raise BusyError(wait.words())
        return await self._lock.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lock is not None:
            await self._lock.__aexit__(kind, error, trace)

    async def _take(self, wait: Wait[G] | None = None) -> G | None:
        wait = wait or self._wait()
        # No event comes when another process lets go.
        while (lock := wait.attempt()) is None and not wait.is_over():  # noqa: ASYNC110
            await asyncio.sleep(wait.pause())
        return lock
