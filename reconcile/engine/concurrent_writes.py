"""What other processes have written to the state since the last pass of this one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reconcile.state.database import State


class Others:
    """Tells what others remember anew of conversations from what this process has written itself.

    Every pass is between `begin` or `changed`, and `end`; reconcile's own lock is held meanwhile.
    """

    def __init__(self, state: State, checkout: int | None, most: int) -> None:
        """Know nothing yet; of more conversations than ``most`` it isn't told which they are."""
        self._state = state
        self._checkout = checkout
        self._most = most
        self._written = -1
        self._number = 0
        self._standing: tuple[object, ...] | None = None

    def begin(self) -> None:
        """Whatever was written so far is taken in: everything is being looked at."""
        self._written = self._state.data_version()
        self._number = self._state.newest_change()
        self._standing = self._state.checkout_row(self._checkout)

    def changed(self) -> frozenset[str] | None:
        """Return the conversations of which others have changed what is remembered.

        None: there are too many, or others have been at work in this very checkout, of which more is remembered than
        its conversations.
        """
        written = self._state.data_version()
        if written == self._written:
            return frozenset()
        if self._state.checkout_row(self._checkout) != self._standing:
            return None
        found = self._state.changed_since(self._number, self._most + 1)
        self._written = written
        return found if len(found) <= self._most else None

    def have_written(self) -> bool:
        """Tell whether anybody else has written since."""
        return self._state.data_version() != self._written

    def end(self) -> None:
        """Pass over what was written since: that was this process alone, or it is all looked at next time."""
        if self._state.data_version() == self._written:
            self._number = self._state.newest_change()
            self._standing = self._state.checkout_row(self._checkout)
