"""Waiting for a conversation's lock: inside this process first, then for other processes, by asking again."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Generic, TypeVar

from reconcile.library.errors import LockError
from reconcile.library.process_locks import Busy
from reconcile.library.rw_locks import entered

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconcile.library.process_locks import Lease, LockBackend
    from reconcile.library.rw_locks import Claim

T = TypeVar("T")
_FIRST_S, _LONGEST_S = 0.001, 0.05


class Wait(Generic[T]):
    """One wait for one lock. ``timeout``: seconds, 0 for one attempt, None for as long as it takes."""

    def __init__(
        self,
        claim: Claim,
        locks: LockBackend,
        session: str | None,
        timeout: float | None,
        made: Callable[[Claim, Lease], T],
    ) -> None:
        self._claim, self._locks, self._session, self._made = claim, locks, session, made
        self._conversation = claim.exclusion.conversation
        self._ends = None if timeout is None else time.monotonic() + timeout
        self._pause = _FIRST_S
        self._busy: Busy | None = None

    def attempt(self) -> T | None:
        """Try once. Raises `LockError` where nobody could have it."""
        lock, found = None, None
        try:
            if self._claim.make():
                with entered():
                    found = self._locks.take(self._conversation, self._session)
                    if not isinstance(found, Busy):
                        lock = self._made(self._claim, found)
        finally:
            if lock is None:
                if found is not None and not isinstance(found, Busy):
                    found.release()
                self._claim.give_up()
        self._busy = found if isinstance(found, Busy) else None
        if self._busy is not None and self._busy.impossible:
            raise LockError(f"{self._conversation}: can't be locked: {self._busy.detail}")
        return lock

    def is_over(self) -> bool:
        """Tell whether there is no time left."""
        return self._ends is not None and time.monotonic() >= self._ends

    def pause(self) -> float:
        """Return how long to wait until the next attempt: longer each time, and never all at once."""
        self._pause = min(self._pause * 1.5, _LONGEST_S)
        left = self._pause if self._ends is None else max(0.0, self._ends - time.monotonic())
        return min(left, self._pause * random.uniform(0.5, 1.0))  # noqa: S311 - no secret

    def words(self) -> str:
        """Say who had it in the end."""
        who = self._busy.detail if self._busy is not None else "locked elsewhere in this process"
        return f"{self._conversation}: {who}"
