"""What reaches a watcher from other threads and from signal handlers: events, and what it is asked to do."""

from __future__ import annotations

from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reconcile.model.snapshot import Side

_SECOND = 10**9


class Inbox:
    """Events by side and path, relative to the directory of the side's conversations.

    ``stopping`` and ``reopening`` say what was asked for. All methods but `take` may be called from anywhere: putting
    something into this kind of queue is safe even in a signal handler that interrupts it.
    """

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[Side, str] | None] = SimpleQueue()
        self.stopping = False
        self.reopening = False

    def hear(self, side: Side, path: str) -> None:
        """Take an event in."""
        self._queue.put((side, path))

    def stop(self) -> None:
        """Ask the watcher to stop after the step in hand."""
        self.stopping = True
        self._queue.put(None)

    def reopen(self) -> None:
        """Ask the watcher to read the configuration again."""
        self.reopening = True
        self._queue.put(None)

    def take(self, timeout_ns: int) -> list[tuple[Side, str]]:
        """Wait for an event, for so long at most; return all that are there."""
        found = []
        try:
            found.append(self._queue.get(timeout=max(0, timeout_ns) / _SECOND))
            while True:
                found.append(self._queue.get_nowait())
        except Empty:
            return [event for event in found if event is not None]
