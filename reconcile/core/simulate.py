"""What a plan must lead to: the second, independent statement of what each action means.

It knows nothing of how the planner thinks; it replays the steps on listings of files. After every applied plan,
a new scan equals its result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from reconcile.core.model import WHOLE, Place
from reconcile.core.plan import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reconcile.core.model import Digest, Snapshot
    from reconcile.core.plan import Action, Plan


@dataclass(frozen=True, slots=True)
class FileState:
    """A file as a listing shows it."""

    size: int
    mtime_ns: int
    digest: Digest | None


Listing: TypeAlias = dict[Place, FileState]
"""Every file of every conversation on both sides, by place."""


class ContradictionError(ValueError):
    """An action's expectations don't hold on the listing it is replayed on."""


def listing_of(*snapshots: Snapshot) -> Listing:
    """Return the listing of what scans have found."""
    return {
        Place(copy.side, f"{copy.path}/{file.name}"): FileState(file.size, file.mtime_ns, file.digest)
        for snapshot in snapshots
        for copy in snapshot.copies
        for file in copy.files
    }


def simulate(plan: Plan, before: Listing) -> Listing:
    """Return the listing that carrying out the whole plan leads to.

    Raises:
        ContradictionError: a step expects something else than the steps before it have made.
    """
    after = dict(before)
    for action in plan.actions:
        _check(action, after)
        _replay(action, after)
    return after


def _check(action: Action, listing: Listing) -> None:
    for expect in action.expect:
        found = listing.get(expect.place)
        if expect.absent:
            wrong = found is not None or any(_below(place, expect.place) for place in listing)
        else:
            wrong = found != FileState(expect.size, expect.mtime_ns, expect.digest or None)
        if wrong:
            message = f"action {action.id} expects {expect}, found {found}"
            raise ContradictionError(message)


def _replay(action: Action, listing: Listing) -> None:
    if action.kind in (Kind.MOVE, Kind.ARCHIVE, Kind.UNARCHIVE):
        assert action.source is not None  # noqa: S101 - a move has one
        _rename(listing, action.source, action.target)
    elif action.kind is Kind.AGE:
        for expect in action.expect:
            state = listing[expect.place]
            listing[expect.place] = FileState(state.size, action.mtime_ns or 0, state.digest)
    elif action.kind in (Kind.REMOVE_STALE, Kind.REMOVE):
        gone = action.removes if action.unit != WHOLE else tuple(_under(listing, action.target))
        for place in gone:
            del listing[place]
    else:
        for write in action.writes:
            listing[write.target] = FileState(write.size, write.mtime_ns, write.digest)
        for place in action.removes:
            listing.pop(place, None)


def _rename(listing: Listing, source: Place, target: Place) -> None:
    for place in list(_under(listing, source)):
        listing[Place(target.side, target.path + place.path[len(source.path) :])] = listing.pop(place)


def _under(listing: Listing, directory: Place) -> Iterable[Place]:
    return [place for place in listing if _below(place, directory)]


def _below(place: Place, directory: Place) -> bool:
    return place.side is directory.side and place.path.startswith(directory.path + "/")
