"""Paths that can't be together on one side: one has a file where the other has a directory.

Both sides can have such paths only separately, so that nothing is compared: each is on one side alone. If the store's
is as the last sync has left it, the workspace's has replaced it: docs/design/decisions.md#rule-65.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


def folders_of(path: str) -> Iterator[str]:
    """Yield the directories above a file, the nearest first."""
    above = path.rpartition("/")[0]
    while above:
        yield above
        above = above.rpartition("/")[0]


def collisions(ones: Collection[str], others: Collection[str]) -> list[tuple[str, str]]:
    """Return the pairs of a path of each collection that collide, in their order."""
    if not ones or not others:
        return []
    pairs = [(path, above) for path in ones for above in folders_of(path) if above in others]
    pairs += [(above, path) for path in others for above in folders_of(path) if above in ones]
    return sorted(pairs)


def two_shapes(*, is_file_in_store: bool) -> str:
    """Return what a person has to do if one side has a file in the place of the other side's directory."""
    here, there = ("file", "directory") if is_file_in_store else ("directory", "file")
    return f"a {here} in the store, a {there} on the other side; rename the one in the store, and run again"
