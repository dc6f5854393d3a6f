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


_LOOK_AGAIN_S = 1.0
_inside = threading.local()


@contextmanager
def entered() -> Iterator[None]:
    """Note that this thread is inside of the library: what the garbage collector finds then is for another one."""
    _inside.depth = getattr(_inside, "depth", 0) + 1
    try:
        yield
    finally:
        _inside.depth -= 1


def is_inside() -> bool:
    """Tell whether this thread may hold something that others wait for."""
    return getattr(_inside, "depth", 0) > 0


class Exclusion:
    """Of one conversation. One may claim it, for as long as he has its lock; reading and writing are short.

    Ctrl-C comes at any moment: who ends takes his own name out first, in one step and without the mutex, and tells the
    others then. Those look by themselves now and then, in case that he came no further.
    """

    def __init__(self, conversation: str) -> None:
        """Have nobody at it."""
        self.conversation = conversation
        self._owner: object = None
        self._changed = threading.Condition(threading.RLock())
        self._readers: set[object] = set()
        self._writer: int | None = None
        self._waiting: set[object] = set()

    def claim(self, who: Claim) -> bool:
        """Tell whether it is this one's now: it was nobody's, or his already."""
        with self._changed:
            if self._owner is None:
                self._owner = who
            return self._owner is who

    def give_up(self, who: Claim) -> None:
        """Have it be nobody's, where it was this one's."""
        if self._owner is who:
            self._owner = None

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Wait until nobody writes. Raises `MisuseError` where this thread does."""
        me = object()
        try:
            with self._changed:
                self.refuse_inside()
                # Who waits to write goes first, or readers that overlap would keep him out for ever.
                self._wait(lambda: self._writer is None and not self._waiting)
                self._readers.add(me)
            yield
        finally:
            self._readers.discard(me)
            self._tell()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Wait until nobody reads or writes. Raises `MisuseError` where this thread writes already."""
        me, mine = threading.get_ident(), False
        try:
            with self._changed:
                self.refuse_inside()
                self._waiting.add(me)
                self._wait(lambda: self._writer is None and not self._readers)
                self._writer, mine = me, True
                self._waiting.discard(me)
            yield
        finally:
            if mine:
                self._writer = None
            self._waiting.discard(me)
            self._tell()

    def _wait(self, is_over: Callable[[], bool]) -> None:
        while not self._changed.wait_for(is_over, _LOOK_AGAIN_S):
            pass

    def _tell(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def refuse_inside(self) -> None:
        """Raise `MisuseError` where this thread is in a callback that changes the conversation."""
        if self._writer == threading.get_ident():
            raise MisuseError(
                f"{self.conversation}: a callback that changes it has asked for it again; "
                "use what the callback was given"
            )


class Claim:
    """One attempt to have a conversation, and what came of it."""

    def __init__(self, exclusion: Exclusion) -> None:
        """Claim nothing yet."""
        self.exclusion = exclusion

    def make(self) -> bool:
        """Tell whether nobody else has it."""
        return self.exclusion.claim(self)

    def give_up(self) -> None:
        """Leave it to others; more than once does nothing."""
        self.exclusion.give_up(self)


class Exclusions:
    """Those of all conversations, each made when it is first needed, and gone with its last user."""

    def __init__(self) -> None:
        """Know of none."""
        self._mutex = threading.RLock()
        self._of: WeakValueDictionary[str, Exclusion] = WeakValueDictionary()

    def of(self, conversation: str) -> Exclusion:
        """Return that of a conversation."""
        with self._mutex:
            found = self._of.get(conversation)
            if found is None:
                found = self._of[conversation] = Exclusion(conversation)
            return found


class LockBackend(Protocol):
    """Locks of single conversations, across processes."""

    @property
    def others(self) -> Locks:
        """How the locks of other conversations are taken, where a change concerns those too."""

    def take(self, conversation: str, session: str | None) -> Lease | Busy:
        """Try once, without waiting; ``session`` is what others are told of who holds it."""


class JpLocks:
    """JP's own: a running JP and this process exclude each other."""

    def __init__(self, roots: Roots) -> None:
        self._format = get_format(roots.format)
        self._new = None if roots.store_exists else roots.store
        self._locks = LockSet(LockRoots(roots.store, roots.workspace))

    @property
    def others(self) -> Locks:
        """The same locks, for the executor."""
        return self._locks

    def take(self, conversation: str, session: str | None) -> Lease | Busy:
        """Try to flock JP's lock file."""
        name = self._format.lock_name(conversation)
        assert name is not None  # noqa: S101 - JP's conversations have one
        if self._new is not None:  # the first conversation of a project: there is no store yet
            os.makedirs(self._new, exist_ok=True)
        return self._locks.take(name, session)


class NoLocks:
    """Nobody is kept out, and no lock file is made: for tests, and where nothing is written."""

    others: Locks = NullLockSet()

    def take(self, conversation: str, session: str | None) -> Lease | Busy:  # noqa: ARG002 - nobody is told
        """Succeed."""
        return _Nothing(conversation)


class _Nothing(Struct, frozen=True):
    name: str

    def still_held(self) -> bool:
        return True

    def release(self) -> None:
        pass


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
