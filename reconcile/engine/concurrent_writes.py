"""Detects writes of other processes to the state since this process's last pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reconcile.state.database import State


class ConcurrentWrites:
    """Separates the baseline changes of other processes from those of this process.

    Every pass calls `begin` or `changed` first and `end` last, and holds the run lock in between.
    """

    def __init__(self, state: State, checkout: int | None, most: int) -> None:
        """Create the detector; `changed` returns at most ``most`` conversations."""
        self._state = state
        self._checkout = checkout
        self._most = most
        self._written = -1
        self._number = 0
        self._checkout_row: tuple[object, ...] | None = None

    def begin(self) -> None:
        """Accept all writes so far: a full scan reads everything."""
        self._written = self._state.data_version()
        self._number = self._state.newest_change()
        self._checkout_row = self._state.checkout_row(self._checkout)

    def changed(self) -> frozenset[str] | None:
        """Return the conversations whose baseline another process has changed.

        None: there are too many, or another process has changed this checkout's own row, which affects everything.
        """
        written = self._state.data_version()
        if written == self._written:
            return frozenset()
        if self._state.checkout_row(self._checkout) != self._checkout_row:
            return None
        conversations = self._state.changed_since(self._number, self._most + 1)
        self._written = written
        return conversations if len(conversations) <= self._most else None

    def have_written(self) -> bool:
        """Tell whether another process has written since."""
        return self._state.data_version() != self._written

    def end(self) -> None:
        """Skip this process's own writes; if another process has written too, the next pass reads all changes."""
        if self._state.data_version() == self._written:
            self._number = self._state.newest_change()
            self._checkout_row = self._state.checkout_row(self._checkout)
