"""Locks of conversations: readers and a writer inside this process, JP's locks between processes, and waiting for both.

JP's rules are in docs/design/formats/jp.md#lock-files.
"""

from __future__ import annotations

import os
import random
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar
from weakref import WeakValueDictionary

from msgspec import Struct

from reconcile.adapters.jp.locks import Busy, Lease, LockRoots, Locks, LockSet, NullLockSet
from reconcile.formats import get_format
from reconcile.library.errors import LockError, MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reconcile.adapters.roots import Roots


_CHECK_EVERY_S = 1.0
_inside = threading.local()


@contextmanager
def inside_library() -> Iterator[None]:
    """Mark this thread as inside the library: a finalizer that runs meanwhile must hand its work to another thread."""
    _inside.depth = getattr(_inside, "depth", 0) + 1
    try:
        yield
    finally:
        _inside.depth -= 1


def is_inside() -> bool:
    """Return whether this thread is inside the library, and so may hold locks."""
    return getattr(_inside, "depth", 0) > 0


class ReadWriteLock:
    """The readers, the writer and the claim of one conversation in this process.

    A claim lasts as long as the conversation's lock; reading and writing are short. Ctrl-C may interrupt at any moment.
    Therefore a reader or writer first removes its entry, in one step and without the mutex. Then it notifies the
    others, which also check from time to time: the notification may have been interrupted.
    """

    def __init__(self, conversation: str) -> None:
        """Begin without claim, readers and writer."""
        self.conversation = conversation
        self._owner: object = None
        self._changed = threading.Condition(threading.RLock())
        self._readers: set[object] = set()
        self._writer: int | None = None
        self._waiting: set[object] = set()

    def acquire(self, claim: Claim) -> bool:
        """Set the claim if there is none; return whether this claim is set now."""
        with self._changed:
            if self._owner is None:
                self._owner = claim
            return self._owner is claim

    def release(self, claim: Claim) -> None:
        """Remove the claim, if it is the one that is set."""
        if self._owner is claim:
            self._owner = None

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold a read lock: waits for the writer. Raises `MisuseError` if this thread is the writer."""
        reader = object()
        try:
            with self._changed:
                self.refuse_inside()
                # A waiting writer goes first, or else overlapping readers would keep it out forever.
                self._wait(lambda: self._writer is None and not self._waiting)
                self._readers.add(reader)
            yield
        finally:
            self._readers.discard(reader)
            self._notify()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the write lock: waits for readers and writer. Raises `MisuseError` if this thread is the writer."""
        thread, is_writer = threading.get_ident(), False
        try:
            with self._changed:
                self.refuse_inside()
                self._waiting.add(thread)
                self._wait(lambda: self._writer is None and not self._readers)
                self._writer, is_writer = thread, True
                self._waiting.discard(thread)
            yield
        finally:
            if is_writer:
                self._writer = None
            self._waiting.discard(thread)
            self._notify()

    def _wait(self, is_over: Callable[[], bool]) -> None:
        while not self._changed.wait_for(is_over, _CHECK_EVERY_S):
            pass

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def refuse_inside(self) -> None:
        """Raise `MisuseError` if this thread is inside a callback that changes the conversation."""
        if self._writer == threading.get_ident():
            raise MisuseError(
                f"{self.conversation}: a callback can't read or change it again; use the argument of the callback"
            )


class Claim:
    """The claim of one lock to a conversation in this process."""

    def __init__(self, rw_lock: ReadWriteLock) -> None:
        """Begin without the claim being set."""
        self.rw_lock = rw_lock

    def acquire(self) -> bool:
        """Return whether the conversation is claimed now; another claim keeps it."""
        return self.rw_lock.acquire(self)

    def release(self) -> None:
        """Release the claim; a second call does nothing."""
        self.rw_lock.release(self)


class ReadWriteLocks:
    """The locks of all conversations in this process; each exists as long as it is used."""

    def __init__(self) -> None:
        """Begin without locks."""
        self._mutex = threading.RLock()
        self._of: WeakValueDictionary[str, ReadWriteLock] = WeakValueDictionary()

    def of(self, conversation: str) -> ReadWriteLock:
        """Return the lock of a conversation."""
        with self._mutex:
            rw_lock = self._of.get(conversation)
            if rw_lock is None:
                rw_lock = self._of[conversation] = ReadWriteLock(conversation)
            return rw_lock


class LockBackend(Protocol):
    """Locks of single conversations between processes."""

    @property
    def others(self) -> Locks:
        """The locks of further conversations, for changes that concern several."""

    def take(self, conversation: str, session: str | None) -> Lease | Busy:
        """Try once, without waiting; other processes see ``session`` as the holder."""


class JpLocks:
    """JP's own locks: a running JP and this process exclude each other."""

    def __init__(self, roots: Roots) -> None:
        self._format = get_format(roots.format)
        self._new = None if roots.store_exists else roots.store
        self._locks = LockSet(LockRoots(roots.store, roots.workspace))

    @property
    def others(self) -> Locks:
        """The same locks, for the executor of plans."""
        return self._locks

    def take(self, conversation: str, session: str | None) -> Lease | Busy:
        """Try to lock JP's lock file with ``flock``."""
        name = self._format.lock_name(conversation)
        assert name is not None  # noqa: S101 - JP's conversations have one
        if self._new is not None:  # the first conversation of a project: there is no store yet
            os.makedirs(self._new, exist_ok=True)
        return self._locks.take(name, session)


class NoLocks:
    """No locks at all: for tests, and for workspaces that are only read."""

    others: Locks = NullLockSet()

    def take(self, conversation: str, session: str | None) -> Lease | Busy:  # noqa: ARG002 - no lock has a holder
        """Return a lease that locks nothing."""
        return _NoLease(conversation)


class _NoLease(Struct, frozen=True):
    name: str

    def still_held(self) -> bool:
        return True

    def release(self) -> None:
        pass


T = TypeVar("T")
_FIRST_S, _LONGEST_S = 0.001, 0.05


class LockAttempts(Generic[T]):
    """The attempts to acquire one lock. ``timeout`` is in seconds: 0 is one attempt, None waits without limit."""

    def __init__(
        self,
        claim: Claim,
        locks: LockBackend,
        session: str | None,
        timeout: float | None,
        create: Callable[[Claim, Lease], T],
    ) -> None:
        self._claim, self._locks, self._session, self._create = claim, locks, session, create
        self._conversation = claim.rw_lock.conversation
        self._ends = None if timeout is None else time.monotonic() + timeout
        self._pause = _FIRST_S
        self._busy: Busy | None = None

    def attempt(self) -> T | None:
        """Try once; return None if another holder has the lock. Raises `LockError` if it can never be acquired."""
        lock, lease = None, None
        try:
            if self._claim.acquire():
                with inside_library():
                    lease = self._locks.take(self._conversation, self._session)
                    if not isinstance(lease, Busy):
                        lock = self._create(self._claim, lease)
        finally:
            if lock is None:
                if lease is not None and not isinstance(lease, Busy):
                    lease.release()
                self._claim.release()
        self._busy = lease if isinstance(lease, Busy) else None
        if self._busy is not None and self._busy.impossible:
            raise LockError(f"{self._conversation}: can't be locked: {self._busy.detail}")
        return lock

    def is_over(self) -> bool:
        """Return whether the timeout has passed."""
        return self._ends is not None and time.monotonic() >= self._ends

    def pause(self) -> float:
        """Return the seconds until the next attempt: they grow, and are random so that waiting processes spread."""
        self._pause = min(self._pause * 1.5, _LONGEST_S)
        left = self._pause if self._ends is None else max(0.0, self._ends - time.monotonic())
        return min(left, self._pause * random.uniform(0.5, 1.0))  # noqa: S311 - no secret

    def words(self) -> str:
        """Return a message that names the holder."""
        holder = self._busy.detail if self._busy is not None else "locked by another part of this process"
        return f"{self._conversation}: {holder}"
