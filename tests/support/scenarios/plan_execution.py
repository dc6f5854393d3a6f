"""A plan carried out on trees: `simulate` says what becomes of the files that it knows, the others go along."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from reconcile.fs.hashing import digest
from reconcile.model.plan import Kind
from reconcile.model.snapshot import WHOLE, Place, Side
from reconcile.planning.simulate import simulate
from tests.support.scenarios.trees import Blob, Entry, Folder, Tree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconcile.model.plan import Action, Plan
    from reconcile.planning.simulate import Listing

Trees: TypeAlias = dict[Side, Tree | None]

MOVES = (Kind.MOVE, Kind.ARCHIVE, Kind.UNARCHIVE)


def is_directory_removal(action: Action) -> bool:
    return action.kind in (Kind.REMOVE, Kind.REMOVE_STALE) and action.unit == WHOLE


def carry_out(plan: Plan, before: Trees, listing: Listing, vault: Mapping[str, bytes] | None = None) -> Trees:
    """Return the sides as they are after the plan; ``listing`` is that of their conversations' files.

    ``vault``: what was kept earlier, by digest.
    """
    contents = dict(vault or {}) | {digest(content): content for content in blobs_of(before).values()}
    contents |= {write.digest: write.content for a in plan.actions for write in a.writes if write.content is not None}
    others: dict[Place, Entry] = {place: entry for place, entry in _entries(before).items() if place not in listing}
    for action in plan.actions:
        _take_over(action, others)
        _carry_along(action, others)
    after: Trees = {side: None if tree is None else {} for side, tree in before.items()}
    for place, state in simulate(plan, listing).items():
        tree = after[place.side]
        if tree is None:
            tree = after[place.side] = {}
        assert state.digest is not None
        tree[place.path] = Blob(contents[state.digest], state.mtime_ns)
    for place, entry in others.items():
        tree = after[place.side]
        if tree is not None:
            tree[place.path] = entry
    return after


def _carry_along(action: Action, others: dict[Place, Entry]) -> None:
    """Move or remove what no conversation owns, with the directory that it is in."""
    if action.kind in MOVES and action.source is not None:
        for place in inside(action.source, others):
            path = action.target.path + place.path[len(action.source.path) :]
            others[Place(action.target.side, path)] = others.pop(place)
    elif is_directory_removal(action):
        for place in inside(action.target, others):
            del others[place]


def _take_over(action: Action, others: dict[Place, Entry]) -> None:
    """Take away the directories with nothing in them that lay where another is put now."""
    if action.unit == WHOLE and not is_directory_removal(action):
        for place in inside(action.target, others):
            if isinstance(others[place], Folder):
                del others[place]


def inside(directory: Place, places: dict[Place, Entry] | Listing) -> list[Place]:
    """Return the places in a directory, or that directory itself."""
    prefix = directory.path + "/"
    return [
        place
        for place in places
        if place.side is directory.side and (place.path == directory.path or place.path.startswith(prefix))
    ]


def _entries(trees: Trees) -> dict[Place, Entry]:
    return {Place(side, path): entry for side, tree in trees.items() for path, entry in (tree or {}).items()}


def blobs_of(trees: Trees) -> dict[Place, bytes]:
    """Return the content of every file, whether anything knows it or not."""
    return {place: entry.content for place, entry in _entries(trees).items() if isinstance(entry, Blob)}
