"""What a run knew of both sides at its end, for the next one: it looks at what has changed, and plans that alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from reconcile.fs.cache_file import cache_path, load_values, save_values

if TYPE_CHECKING:
    from collections.abc import Mapping

_KIND = "known"


class LastKnownSide(NamedTuple):
    """A side's identity, its copies' paths with their conversations, and what is nobody's."""

    identity: str
    conversations: Mapping[str, str]
    foreign: tuple[tuple[str, str, bool, bool], ...]


class LastKnown(NamedTuple):
    """Both sides, the store's first; ``above`` and ``remembered`` as in `SnapshotIndex`.

    ``counted``: the state that each conversation is counted under. ``key`` is that of the `LastAnswer` kept with it.
    """

    key: bytes
    sides: tuple[LastKnownSide, LastKnownSide]
    above: dict[str, frozenset[str]]
    remembered: frozenset[str]
    inhabited: tuple[bool, bool]
    counted: dict[str, str]

    @classmethod
    def load(cls, directory: str, checkout: str) -> LastKnown | None:
        """Return what was kept in a state's directory for a checkout."""
        values = load_values(cache_path(directory, _KIND, checkout), _KIND)
        if values is None:
            return None
        ((key, sides, *others),) = values
        store, workspace = (LastKnownSide(*side) for side in sides)
        return cls(key, (store, workspace), *others)

    def save(self, directory: str, checkout: str) -> None:
        """Keep it."""
        sides = tuple((identity, dict(paths), foreign) for identity, paths, foreign in self.sides)
        values = (self.key, sides, *self[2:])
        save_values(cache_path(directory, _KIND, checkout), _KIND, values)
