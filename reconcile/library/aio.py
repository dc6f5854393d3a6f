"""Locks for asyncio: waiting sleeps in the event loop, and disk access runs in a thread."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

from reconcile.library.errors import BusyError, log_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import TracebackType

    from reconcile.library.locks import LockAttempts

T = TypeVar("T")


class Guard(Protocol):
    """A lock that ``async with`` releases at its end."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


G = TypeVar("G", bound=Guard)


async def in_thread(call: Callable[[], T]) -> T:
    """Run a call in a thread until it has ended; a task that is cancelled meanwhile ends only after the call."""
    # An executor of its own: all threads of the loop's executor may wait for the lock that this call releases.
    executor = ThreadPoolExecutor(1, "reconcile")
    running = asyncio.get_running_loop().run_in_executor(executor, call)
    executor.shutdown(wait=False)
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None:
        return running.result()
    if (failure := running.exception()) is not None:
        cancelled.add_note(f"and the call of the cancelled task failed: {failure}")
        log_failure("the call of a cancelled task failed", failure)
    raise cancelled


class Locking(Generic[G]):
    """A lock that is being acquired: await it for the lock or None, or use ``async with``.

    ``async with`` raises `BusyError` instead of returning None.
    """

    def __init__(self, wait: Callable[[], LockAttempts[G]]) -> None:
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

    async def _take(self, wait: LockAttempts[G] | None = None) -> G | None:
        wait = wait or self._wait()
        # Polling: no event is sent when another process releases its lock.
        while (lock := wait.attempt()) is None and not wait.is_over():  # noqa: ASYNC110
            await asyncio.sleep(wait.pause())
        return lock
