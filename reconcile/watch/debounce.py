"""Debounces events: one write causes many events, and a half-written conversation must not be reconciled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from reconcile.model.snapshot import Side

if TYPE_CHECKING:
    from collections.abc import Iterable

FEW = 20
"""If more conversations than this are pending, a branch was probably switched. They are taken together: at the end of
the first one's maximum wait, as far as they are quiet by then.
"""

Directories = dict[Side, set[str]]
"""Changed directories of each side, relative to its directory of conversations."""


class _Pending(Struct):
    """One pending conversation; times are in ns of a monotonic clock."""

    first: int
    due: int
    directories: Directories = field(default_factory=lambda: {side: set() for side in Side})


class Debouncer:
    """Pending conversations by id; the empty id stands for the directory of conversations itself.

    A conversation is due ``quiet_ns`` after its last event, and at the latest ``at_most_ns`` after its first one: a
    program may write all day.
    """

    def __init__(self, quiet_ns: int, at_most_ns: int) -> None:
        self._quiet_ns = quiet_ns
        self._at_most_ns = at_most_ns
        self._pending: dict[str, _Pending] = {}

    def __bool__(self) -> bool:
        return bool(self._pending)

    @property
    def in_flight(self) -> frozenset[str]:
        """The conversations that are pending: a run must leave them alone."""
        return frozenset(self._pending)

    def touch(self, conversation: str, side: Side, directories: Iterable[str], now: int) -> None:
        """Record an event of a conversation: it is postponed until it is quiet."""
        pending = self._pending.setdefault(conversation, _Pending(now, now))
        pending.due = min(now + self._quiet_ns, max(pending.first + self._at_most_ns, now))
        pending.directories[side].update(directories)

    def schedule(self, conversation: str, directories: Directories, at: int) -> None:
        """Schedule a conversation for a time; an event may make it due earlier."""
        pending = self._pending.setdefault(conversation, _Pending(at, at))
        for side, changed in directories.items():
            pending.directories[side] |= changed

    def due_at(self) -> int | None:
        """Return when the next conversations are due; None if none is pending."""
        if not self._pending:
            return None
        dues = [pending.due for pending in self._pending.values()]
        if len(dues) <= FEW:
            return min(dues)
        first_ns = min(pending.first for pending in self._pending.values())
        return max(min(dues), min(max(dues), first_ns + self._at_most_ns))

    def all_due_at(self) -> int:
        """Return when all pending conversations are due; 0 if none is pending."""
        return max((pending.due for pending in self._pending.values()), default=0)

    def is_due(self, now: int) -> bool:
        """Return whether a conversation is due now."""
        due = self.due_at()
        return due is not None and due <= now

    def take(self, now: int) -> Directories:
        """Remove the conversations that are due, and return their changed directories."""
        due = [conversation for conversation, pending in self._pending.items() if pending.due <= now]
        directories: Directories = {side: set() for side in Side}
        for conversation in due:
            for side, changed in self._pending.pop(conversation).directories.items():
                directories[side] |= changed
        return directories
