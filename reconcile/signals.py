"""Ctrl-C: it ends a command once, with an exception, and waits while modules are loaded or a process is forked.

An extension module that is interrupted while it makes its classes may even crash. This module is loaded at every start,
and loads next to nothing: `_signal` is what `signal` wraps, without the enumerations that take a millisecond.

Premise: Python runs a handler between any two steps of the main thread; its exception may come up in a cleanup, or in
the handling of an earlier one. Therefore it raises one and no more.
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
"""Seconds from which on another Ctrl-C ends the process at once, as a kill does. Earlier ones are the same: a terminal
and a program in between may both send it, and fingers bounce."""


class Interrupt(BaseException):
    """Ctrl-C. Not `KeyboardInterrupt`, of which the parser makes something of its own."""


class Interrupts:
    """What Ctrl-C does to a process that is a command."""

    def __init__(self, at_once: Callable[[], int]) -> None:
        """Take it over, unless it is to be ignored; ``at_once`` says that it has come, and returns the exit code."""
        self._at_once = at_once
        self._first: float | None = None
        if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
            _signal.signal(_signal.SIGINT, self._come)
            sys.unraisablehook = self._lost

    def _come(self, _number: int, _frame: object) -> None:
        if self._first is None:
            self._first = time.monotonic()
            raise Interrupt
        if time.monotonic() - self._first > AGAIN:
            os._exit(self._at_once())

    def _lost(self, found: sys.UnraisableHookArgs) -> None:
        """Have it come once more, in a moment, where it came in what can't raise, as a finalizer."""
        if not issubclass(found.exc_type, Interrupt):
            sys.__unraisablehook__(found)
            return
        self._first = None
        if hasattr(_signal, "setitimer"):
            _signal.signal(_signal.SIGALRM, self._come)
            _signal.setitimer(_signal.ITIMER_REAL, 0.001)

    def end(self) -> None:
        """Ignore it from now on: the process ends."""
        if _signal.getsignal(_signal.SIGINT) == self._come:
            _signal.signal(_signal.SIGINT, _signal.SIG_IGN)


class Uninterrupted:
    """A block in which an interrupt waits for its end. There is no other thread yet, which would get it."""

    def __enter__(self) -> None:
        """Have it wait."""
        if hasattr(_signal, "pthread_sigmask"):
            self._before = _signal.pthread_sigmask(_signal.SIG_BLOCK, {_signal.SIGINT})

    def __exit__(self, *_: object) -> None:
        """Let it come."""
        if hasattr(_signal, "pthread_sigmask"):
            _signal.pthread_sigmask(_signal.SIG_SETMASK, self._before)
