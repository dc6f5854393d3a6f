"""Ctrl-C that waits for a moment: while modules are loaded or a process is forked, it could end in a traceback.

An extension module that is interrupted while it makes its classes may even crash. This module is loaded at every start,
and loads next to nothing.
"""

from __future__ import annotations


class Uninterrupted:
    """A block in which an interrupt waits for its end. There is no other thread yet, which would get it."""

    def __enter__(self) -> None:
        """Have it wait."""
        import signal  # here: few starts need it

        if hasattr(signal, "pthread_sigmask"):
            self._before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})

    def __exit__(self, *_: object) -> None:
        """Let it come."""
        import signal

        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_SETMASK, self._before)
