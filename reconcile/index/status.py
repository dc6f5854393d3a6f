"""The status of all conversations at the end of a run: where a few paths have changed, it tells what these concern.

The next run plans that alone.
"""

from __future__ import annotations

from itertools import compress
from operator import ne
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Changes: TypeAlias = tuple[dict[str, Any], ...]
"""By mapping of a status, the entries that have changed; None: the entry is gone."""
_NO_CHANGES: Changes = ({}, {}, {}, {}, {})


class SideStatus(Struct, frozen=True):
    """A side's identity, its copies' paths with their conversations, and its foreign entries."""

    identity: str
    conversations: Mapping[str, str]
    foreign: tuple[tuple[str, str, bool, bool], ...]


class Status(Struct, frozen=True):
    """The knowledge of both sides at the end of a run; ``sides`` has the store's first.

    ``above``, ``remembered`` and ``inhabited`` are those of `SnapshotIndex`. ``counted``
    is the state that each conversation is counted under. ``incomplete``: by side, the paths of copies that can't be
    built from their rows: the next run has to scan them again. ``changes``: what is not as in the file of
    everything, whose key is ``base``.
    """

    sides: tuple[SideStatus, SideStatus]
    above: Mapping[str, frozenset[str]]
    remembered: frozenset[str]
    inhabited: tuple[bool, bool]
    counted: Mapping[str, str]
    incomplete: tuple[tuple[str, ...], tuple[str, ...]]
    base: bytes = b""
    changes: Changes = _NO_CHANGES

    def since(self, before: Status) -> Status:
        """Return the same as changes of an earlier status."""
        changes = (
            changed_entries(before.sides[0].conversations, self.sides[0].conversations),
            changed_entries(before.sides[1].conversations, self.sides[1].conversations),
            changed_entries(before.above, self.above),
            dict.fromkeys(before.remembered - self.remembered) | dict.fromkeys(self.remembered - before.remembered, 1),
            changed_entries(before.counted, self.counted),
        )
        merged = tuple(older | newer for older, newer in zip(before.changes, changes, strict=True))
        return replace(self, base=before.base, changes=merged)

    def is_compact(self, share: int) -> bool:
        """Tell whether at most one entry in ``share`` has changed."""
        return sum(map(len, self.changes)) * share <= sum(len(side.conversations) for side in self.sides)

    def encode(self, paths: Sequence[Sequence[str]]) -> tuple[object, ...]:
        """Return all of it as plain values; ``paths`` are those of the rows, whose own section has them."""
        sides = []
        for side, known in zip(self.sides, paths, strict=True):
            others = dict(side.conversations)
            sides.append((side.identity, [others.pop(path, None) for path in known], others, side.foreign))
        return (sides, self.above, self.remembered, self.inhabited, self.counted, self.incomplete)

    def encode_changes(self) -> tuple[object, ...]:
        """Return the changes as plain values, with the small fields whole."""
        sides = [(side.identity, side.foreign) for side in self.sides]
        return (sides, self.inhabited, self.incomplete, self.changes)

    @classmethod
    def decode(
        cls, values: Sequence[Any], changed: Sequence[Any] | None, paths: Sequence[Sequence[str]], base: bytes
    ) -> Status:
        """Return what `encode` and `encode_changes` have returned; ``base`` is the key of the file of everything."""
        stored, above, remembered, inhabited, counted, incomplete = values
        sides, changes = [], _NO_CHANGES
        for (identity, conversations, others, foreign), known in zip(stored, paths, strict=True):
            mapping = dict(zip(known, conversations, strict=True)) | others
            if None in conversations:
                mapping = _without_none(mapping)
            sides.append(SideStatus(identity, mapping, foreign))
        if changed is not None:
            small, inhabited, incomplete, changes = changed
            for number, (identity, foreign) in enumerate(small):
                conversations = with_changes(sides[number].conversations, changes[number])
                sides[number] = SideStatus(identity, conversations, foreign)
            above = with_changes(above, changes[2])
            remembered = frozenset(with_changes(dict.fromkeys(remembered, 1), changes[3]))
            counted = with_changes(counted, changes[4])
        store, workspace = sides
        return cls((store, workspace), above, remembered, inhabited, counted, incomplete, base, changes)


def changed_entries(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries that are not as they were; None: one is gone."""
    if before == now:
        return {}
    changed: dict[str, Any] = dict.fromkeys(before.keys() - now.keys())
    differs = map(ne, map(before.get, now), now.values())  # without a loop: there may be 100,000
    changed.update(compress(now.items(), differs))
    return changed


def with_changes(before: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mapping as it was when `changed_entries` has compared it with the one before."""
    merged = {**before, **changes}
    return _without_none(merged) if None in changes.values() else merged


def _without_none(mapping: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in mapping.items() if value is not None}
