"""Who may do what to a conversation inside this process: one lock of it at a time, many readers or one writer."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from reconcile.library.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Iterator


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
    """Of one conversation. ``owner`` is held by who has its lock, for as long; reading and writing are short."""

    def __init__(self, conversation: str) -> None:
        """Have nobody at it."""
        self.owner = threading.Lock()
        self._conversation = conversation
        self._changed = threading.Condition(threading.RLock())
        self._readers = 0
        self._writer: int | None = None
        self._waiting = 0

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Wait until nobody writes. Raises `MisuseError` where this thread does."""
        with self._changed:
            self._refuse_inside()
            # Who waits to write goes first, or readers that overlap would keep him out for ever.
            self._changed.wait_for(lambda: self._writer is None and not self._waiting)
            self._readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
                self._changed.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Wait until nobody reads or writes. Raises `MisuseError` where this thread writes already."""
        with self._changed:
            self._refuse_inside()
            self._waiting += 1
            try:
                self._changed.wait_for(lambda: self._writer is None and not self._readers)
            finally:
                self._waiting -= 1
            self._writer = threading.get_ident()
        try:
            yield
        finally:
            with self._changed:
                self._writer = None
                self._changed.notify_all()

    def _refuse_inside(self) -> None:
        if self._writer == threading.get_ident():
            raise MisuseError(
                f"{self._conversation}: a callback that changes it has asked for it again; "
                "use what the callback was given"
            )


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
