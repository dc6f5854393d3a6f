"""Ctrl-C: raises `Interrupt` once, and waits while modules are imported or a process is forked.

An extension module that is interrupted while it creates its classes may crash. Every start loads this module, so that
it imports little: `_signal` is the module that `signal` wraps, without the enumerations that take a millisecond.

Python runs a handler between any two steps of the main thread, so that its exception may occur in a cleanup, or while
an earlier one is handled. Therefore the handler raises only once.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

AGAIN = 1.0
"""Seconds after the first Ctrl-C from which on another one ends the process at once, as a kill does.

Earlier ones count as the same: the terminal and a program in between may both send it, and keys bounce.
"""


class Interrupt(BaseException):
    """Ctrl-C. It isn't `KeyboardInterrupt`, which the parser of the command line handles itself."""


class Interrupts:
    """The handler of Ctrl-C in the process of a command."""

    def __init__(self, at_once: Callable[[], int]) -> None:
        """Install the handler, unless SIGINT is ignored. ``at_once`` prints a message, and returns the exit code."""
        self._at_once = at_once
        self._first: float | None = None
        if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
            _signal.signal(_signal.SIGINT, self._handle)
            sys.unraisablehook = self._raise_later

    def _handle(self, _number: int, _frame: object) -> None:
        if self._first is None:
            self._first = time.monotonic()
            raise Interrupt
        if time.monotonic() - self._first > AGAIN:
            os._exit(self._at_once())

    def _raise_later(self, unraisable: sys.UnraisableHookArgs) -> None:
        """Raise the interrupt again in a millisecond if it was lost in code that can't raise, such as a finalizer."""
        if not issubclass(unraisable.exc_type, Interrupt):
            sys.__unraisablehook__(unraisable)
            return
        self._first = None
        if hasattr(_signal, "setitimer"):
            _signal.signal(_signal.SIGALRM, self._handle)
            _signal.setitimer(_signal.ITIMER_REAL, 0.001)

    def end(self) -> None:
        """Ignore Ctrl-C from now on: the process ends."""
        if _signal.getsignal(_signal.SIGINT) == self._handle:
            _signal.signal(_signal.SIGINT, _signal.SIG_IGN)


class Uninterrupted:
    """A block that delays Ctrl-C until its end. No other thread may run yet: it would receive the signal."""

    def __enter__(self) -> None:
        """Block SIGINT."""
        if hasattr(_signal, "pthread_sigmask"):
            self._before = _signal.pthread_sigmask(_signal.SIG_BLOCK, {_signal.SIGINT})

    def __exit__(self, *_: object) -> None:
        """Restore the signal mask."""
        if hasattr(_signal, "pthread_sigmask"):
            _signal.pthread_sigmask(_signal.SIG_SETMASK, self._before)
