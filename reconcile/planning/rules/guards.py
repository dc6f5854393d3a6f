"""What a run may conclude, and what it refuses, when a side as a whole looks wrong (docs/design/guards.md)."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from reconcile.model.snapshot import ARCHIVE, TRASH, Partition, Side, joined

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from reconcile.model.baseline import Baseline
    from reconcile.model.format import Format
    from reconcile.model.snapshot import Copy, Snapshot

BULK_AT_LEAST = 3
"""More than this many directories, and more than a third of all, are a bulk removal."""


class Sides(Struct, frozen=True):
    """How the sides as wholes stand against what is remembered.

    ``store_emptied``, ``workspace_emptied``: nothing is there where the baseline knows some; never read as deletions.
    ``store_replaced``: another directory than last time (wiped, restored, merged, another ``--store``), or one that was
    lost since, as a run in another checkout has found.
    """

    store_emptied: bool
    store_replaced: bool
    workspace_emptied: bool
    store_hidden: bool = False
    """The store, or a partition of it, could not be read whole: any conversation may be there."""
    store_doubtful: tuple[str, ...] = ()
    """Directories and links of the store below which something may be that the scan has not seen."""
    linked: Mapping[str, str] = field(default_factory=dict)
    """Conversations in whose place the store has a symbolic link, with its path."""
    workspace_links: frozenset[str] = frozenset()
    """The paths of the workspace's symbolic links."""
    workspace_hidden: tuple[str, ...] = ()
    """Directories of the workspace that could not be read whole, and links; an empty path is all of it."""

    @property
    def store_renewed(self) -> bool:
        """The store isn't the one that the baseline speaks of: absence there is no removal."""
        return self.store_emptied or self.store_replaced

    def of_known_store(self) -> Sides:
        """Return the same of a store that is the one that the baseline speaks of."""
        return replace(self, store_emptied=False, store_replaced=False)

    def believes_removal(self, conversation: str, *, buried: bool = False) -> bool:
        """Tell whether a conversation that is absent from the store was removed from it (case 7).

        ``buried``: a run has removed it on purpose, which holds whatever became of the store.
        """
        renewed = self.store_renewed and not buried
        return not (renewed or self.store_hidden or self.store_doubtful or conversation in self.linked)

    def believes_absence(self, store_path: str) -> bool:
        """Tell whether a file that is absent from a store directory was removed from it."""
        if self.store_renewed or self.store_hidden:
            return False
        return not (self.store_doubtful and any(path.startswith(f"{store_path}/") for path in self.store_doubtful))

    def hides(self, place: str) -> bool:
        """Tell whether a workspace directory may be there although the scan has not seen it."""
        return any(not path or place == path or place.startswith(f"{path}/") for path in self.workspace_hidden)

    def link_above(self, place: str) -> str | None:
        """Return the symbolic link of the workspace in a directory's place, or above it."""
        above = accumulate(place.split("/"), "{}/{}".format)
        return next((path for path in above if path in self.workspace_links), None)

    def may_forget(self, conversation: str, place: str) -> bool:
        """Tell whether absence on both sides may be believed (docs/design/guards.md#rule-39)."""
        return self.believes_removal(conversation) and not self.workspace_emptied and not self.hides(place)


class Whole(Struct, frozen=True):
    """What a plan must know of both sides besides the conversations that it is about."""

    sides: Sides
    directories: int
    """How many the workspace has."""
    stored: int = 0
    """How many the store has."""
    taken: Container[str] = frozenset()
    """Ids that are not free although the plan isn't about them."""

    def directories_of(self, side: Side) -> int:
        """Return how many directories a side has."""
        return self.stored if side is Side.STORE else self.directories


def whole_of(store: Snapshot, workspace: Snapshot, baseline: Baseline, fmt: Format) -> Whole:
    """Return what there is to know where a plan is about everything."""
    return Whole(compare_sides(store, workspace, baseline, fmt), len(workspace.copies), len(store.copies))


def compare_sides(store: Snapshot, workspace: Snapshot, baseline: Baseline, fmt: Format) -> Sides:
    """Compare both sides as wholes with the memory."""
    expected = any(_expected_here(baseline, conversation) for conversation in baseline.agreed)
    hidden = hidden_directories(store)
    links = [foreign.path for foreign in store.foreign if foreign.link]
    names = [(path, path.rpartition("/")[2]) for path in links]
    theirs = frozenset(foreign.path for foreign in workspace.foreign if foreign.link)
    return Sides(
        store_emptied=bool(baseline.agreed) and has_lost_all(store, baseline, fmt),
        store_replaced=baseline.store_identity not in (None, store.identity),
        workspace_emptied=expected and not holds_any(workspace.copies, fmt),
        store_hidden=any(path in ("", ARCHIVE, TRASH) for path in (*hidden, *links)),
        store_doubtful=(*hidden, *(path for path, name in names if "/" in path and fmt.id_of(name) is None)),
        linked={found: path for path, name in names if (found := fmt.id_of(name)) is not None},
        workspace_links=theirs,
        workspace_hidden=(*hidden_directories(workspace), *sorted(theirs)),
    )


def hidden_directories(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the directories of which a scan says that it could not read them whole.

    Problems with single files hide nothing: those files are listed in their copies.
    """
    if not snapshot.problems:
        return ()
    files = {joined(copy.path, file.name) for copy in snapshot.copies for file in copy.files}
    return tuple(problem.path for problem in snapshot.problems if problem.path not in files)


def has_lost_all(store: Snapshot, baseline: Baseline, fmt: Format) -> bool:
    """Tell whether nothing is in the store, or none of several conversations that any checkout has agreed on.

    Where others are in it, somebody has begun anew there.
    """
    if not holds_any(store.copies, fmt):
        return True
    there = {copy.conversation for copy in store.copies}
    if not baseline.agreed.keys().isdisjoint(there):
        return False
    known = {*baseline.agreed, *(conversation for conversation, _ in baseline.history)}
    return known.isdisjoint(there) and len(known - baseline.tombstones.keys()) > 1


def _expected_here(baseline: Baseline, conversation: str) -> bool:
    """Tell whether its directory was there at the end of the last run: not if it was removed on purpose, if somebody
    has removed it, or if it is still to be made.
    """
    return conversation not in baseline.tombstones and conversation not in baseline.intents


def holds_any(copies: Iterable[Copy], fmt: Format) -> bool:
    """Tell whether a conversation is there, with a file of its own: JP makes a directory for the draft of a query.

    A record with a fixed place is there with whatever is in it, if it isn't derived from others.
    """
    places = fmt.places
    if places is not None:
        return any(not places.is_derived(copy.conversation) for copy in copies)
    there = (copy for copy in copies if copy.partition is not Partition.TRASH)
    return any(copy.metadata is not None or copy.stream is not None for copy in there)


def is_bulk(removed: int, directories: int) -> bool:
    """Tell whether one run would remove too many directories without being told to."""
    return removed > BULK_AT_LEAST and removed * 3 > directories
