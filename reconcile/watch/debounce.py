"""Which conversations are quiet by now: a write is many events, and half of one is nothing to act on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from reconcile.model.snapshot import Side

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

FEW = 20
"""More conversations than this are in motion at once where a branch is switched: they are taken up together, as far as
they are quiet when the first of them has waited for long enough.
"""

Places = dict[Side, set[str]]
"""Directories of each side, relative to that of its conversations, in which something has changed."""


class _Stir(Struct):
    """What is known of one conversation in motion; times are of a monotonic clock, in ns."""

    first: int
    due: int
    places: Places = field(default_factory=lambda: {side: set() for side in Side})


class Settling:
    """Conversations in motion, by id; the empty id stands for a directory of conversations itself.

    One is taken up once nothing has been heard of it for ``quiet_ns``, or when it was first heard of ``at_most_ns``
    ago: somebody may write all day.
    """

    def __init__(self, quiet_ns: int, at_most_ns: int) -> None:
        self._quiet_ns = quiet_ns
        self._at_most_ns = at_most_ns
        self._stirs: dict[str, _Stir] = {}

    def __bool__(self) -> bool:
        return bool(self._stirs)

    @property
    def moving(self) -> frozenset[str]:
        """The conversations that nothing is to be done for yet."""
        return frozenset(self._stirs)

    def stir(self, conversation: str, side: Side, places: Iterable[str], now: int) -> None:
        """Note that something has changed."""
        stir = self._stirs.setdefault(conversation, _Stir(now, now))
        stir.due = min(now + self._quiet_ns, max(stir.first + self._at_most_ns, now))
        stir.places[side].update(places)

    def again(self, conversation: str, places: Places, at: int) -> None:
        """Have a conversation looked at again at a given time, or earlier if something is heard of it."""
        stir = self._stirs.setdefault(conversation, _Stir(at, at))
        for side, found in places.items():
            stir.places[side] |= found

    def due_at(self) -> int | None:
        """Return when something is to be taken up."""
        if not self._stirs:
            return None
        dues = [stir.due for stir in self._stirs.values()]
        if len(dues) <= FEW:
            return min(dues)
        return max(min(dues), min(max(dues), min(stir.first for stir in self._stirs.values()) + self._at_most_ns))

    def all_due_at(self) -> int:
        """Return when everything that is in motion now is to be taken up; long ago where nothing is."""
        return max((stir.due for stir in self._stirs.values()), default=0)

    def is_due(self, now: int) -> bool:
        """Tell whether something is to be taken up now."""
        at = self.due_at()
        return at is not None and at <= now

    def take(self, now: int) -> Places:
        """Return where something is quiet by now; that is in motion no more."""
        return self._taken([each for each, stir in self._stirs.items() if stir.due <= now])

    def _taken(self, conversations: Collection[str]) -> Places:
        places: Places = {side: set() for side in Side}
        for each in conversations:
            for side, found in self._stirs.pop(each).places.items():
                places[side] |= found
        return places
