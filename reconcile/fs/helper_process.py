"""A second process for one half of some work: threads would take turns, as the interpreter has one lock.

The other process is a copy of this one, which works out some bytes and ends. It must only read files, and leave alone
what this one holds: databases, locks, whatever is to be printed.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from reconcile.signals import Uninterrupted

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

_KILLED = 9
_STANDARD = 3
"""So many descriptors are everybody's."""
_MANY = 4096
"""More than are open: the least that is free is taken each time, and a pass has few."""


class Second:
    """A process that is at work; it ends with the block at the latest."""

    __slots__ = ("_child", "_reading")

    def __init__(self, child: int | None, reading: int | None) -> None:
        """Take what `begun` has started; None: nothing."""
        self._child, self._reading = child, reading

    @classmethod
    def begun(cls, work: Callable[[], bytes]) -> Second:
        """Have the work begun, where there can be a second process, and a processor for it."""
        if not is_possible():
            return cls(None, None)
        ends: tuple[int, ...] = ()
        try:
            ends = reading, writing = os.pipe()
            with Uninterrupted():
                child = os.fork()
                if child == 0:
                    _work(work, writing)  # for good, and the interrupt is for the other process
        except OSError:  # there may be no more descriptors, or processes
            for fd in ends:
                os.close(fd)
            return cls(None, None)
        os.close(writing)
        return cls(child, reading)

    @property
    def is_begun(self) -> bool:
        """Tell whether there is such a process."""
        return self._child is not None

    def result(self) -> bytes | None:
        """Wait for what was worked out; None where it was not begun, or came to no end."""
        if self._child is None or self._reading is None:
            return None
        with open(self._reading, "rb") as pipe:
            self._reading = None
            told = pipe.read()
        child, self._child = self._child, None
        _, status = os.waitpid(child, 0)
        return None if status else told

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._reading is not None:
            os.close(self._reading)
        if self._child is not None:
            os.kill(self._child, _KILLED)
            os.waitpid(self._child, 0)


def is_possible() -> bool:
    """Tell whether work can be shared.

    Beside other threads a copy of a process could wait for them for ever. Where somebody else is told of processes that
    end, or nobody is (whoever starts a program may have it ignore that), how this one ended can't be asked for.
    """
    if not hasattr(os, "fork") or (os.cpu_count() or 1) < 2:
        return False
    import signal  # here: few runs ask

    threading = sys.modules.get("threading")
    alone = threading is None or threading.active_count() == 1
    return alone and signal.getsignal(signal.SIGCHLD) is signal.SIG_DFL


def _work(work: Callable[[], bytes], writing: int) -> None:
    """Write the result into a pipe, and end this process, whatever happens.

    If the other one is killed, its locks must not be held from here; and who writes to nobody ends.
    """
    status = 1
    try:
        _let_go_of_all_but(writing)
        with open(writing, "wb") as pipe:
            pipe.write(work())
        status = 0
    finally:
        os._exit(status)


def _let_go_of_all_but(fd: int) -> None:
    os.closerange(_STANDARD, fd)
    os.closerange(fd + 1, _MANY)
