"""Who may do what to a conversation inside this process: one lock of it at a time, many readers or one writer."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from reconcile.library.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


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
