"""A second process for a part of some work. Threads would run in turns, because the interpreter has one lock.

The helper is a forked copy of this process: it computes some bytes and ends. It must only read files, and must not use
the databases, locks and output streams of this process.
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
"""The number of standard streams."""
_MANY = 4096
"""Above every open descriptor: the system gives the lowest free number, and a pass has few."""


class HelperProcess:
    """A running helper process; leaving the block ends it."""

    __slots__ = ("_child", "_reading")

    def __init__(self, child: int | None, reading: int | None) -> None:
        """Store the process and the pipe of `start`; both are None if no process was started."""
        self._child, self._reading = child, reading

    @classmethod
    def start(cls, work: Callable[[], bytes]) -> HelperProcess:
        """Start a helper that sends the result of ``work``, if the machine has a processor for it."""
        if not is_possible():
            return cls(None, None)
        ends: tuple[int, ...] = ()
        try:
            ends = reading, writing = os.pipe()
            with Uninterrupted():
                child = os.fork()
                if child == 0:
                    _work(work, writing)  # never returns; an interrupt is handled by the parent
        except OSError:  # no more descriptors or processes
            for fd in ends:
                os.close(fd)
            return cls(None, None)
        os.close(writing)
        return cls(child, reading)

    @property
    def is_running(self) -> bool:
        """Tell whether a helper was started and its result was not taken yet."""
        return self._child is not None

    def result(self) -> bytes | None:
        """Wait for the result; return None if no helper was started or if it failed."""
        if self._child is None or self._reading is None:
            return None
        with open(self._reading, "rb") as pipe:
            self._reading = None
            result = pipe.read()
        child, self._child = self._child, None
        _, status = os.waitpid(child, 0)
        return None if status else result

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._reading is not None:
            os.close(self._reading)
        if self._child is not None:
            os.kill(self._child, _KILLED)
            os.waitpid(self._child, 0)


def is_possible() -> bool:
    """Tell whether a helper process can be used.

    With other threads, a forked copy could wait forever for a lock of theirs. With a handler of SIGCHLD, or if the
    parent program ignores that signal, the exit status of the helper may be lost.
    """
    if not hasattr(os, "fork") or (os.cpu_count() or 1) < 2:
        return False
    import signal  # here: few runs need it

    threading = sys.modules.get("threading")
    alone = threading is None or threading.active_count() == 1
    return alone and signal.getsignal(signal.SIGCHLD) is signal.SIG_DFL


def _work(work: Callable[[], bytes], writing: int) -> None:
    """Write the result into the pipe and end this process, whatever happens.

    The inherited descriptors are closed first: the helper must not keep the locks of a parent that was killed. Then a
    write to the closed pipe ends the helper.
    """
    status = 1
    try:
        _close_all_except(writing)
        with open(writing, "wb") as pipe:
            pipe.write(work())
        status = 0
    finally:
        os._exit(status)


def _close_all_except(fd: int) -> None:
    os.closerange(_STANDARD, fd)
    os.closerange(fd + 1, _MANY)
