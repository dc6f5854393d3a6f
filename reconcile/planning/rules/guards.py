"""The conclusions that a run must not draw when a side as a whole looks wrong (docs/design/guards.md)."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from reconcile.model.format import Entry
from reconcile.model.snapshot import ARCHIVE, TRASH, Partition, Side, is_same_directory, joined

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from reconcile.model.baseline import Baseline
    from reconcile.model.format import Format
    from reconcile.model.snapshot import Copy, Foreign, Snapshot

BULK_ABOVE = 3
"""Removing more than this many directories, and more than a third of all, is a bulk removal."""


class Sides(Struct, frozen=True):
    """How the sides as wholes compare with the baseline.

    ``store_emptied``, ``workspace_emptied``: the side is empty though the baseline has entries; this is never taken for
    deletions. ``store_replaced``: the store is another directory than last time (wiped, restored, merged, another
    ``--store``), or a run in another checkout found that it was lost.
    """

    store_emptied: bool
    store_replaced: bool
    workspace_emptied: bool
    workspace_cleared: bool = False
    """The workspace is as empty, but its program deletes old records itself: each of them counts as removed."""
    store_hidden: bool = False
    """The store, or a partition of it, could not be read completely: any conversation may be there."""
    store_doubtful: tuple[str, ...] = ()
    """Directories and links of the store below which the scan may have missed something."""
    obstacles: Mapping[str, Foreign] = field(default_factory=dict)
    """Conversations at whose place the store has something else, such as a symbolic link."""
    workspace_links: frozenset[str] = frozenset()
    """The paths of the workspace's symbolic links."""
    workspace_hidden: tuple[str, ...] = ()
    """Directories of the workspace that could not be read completely, and links; an empty path means all of it."""

    @property
    def store_renewed(self) -> bool:
        """The store isn't the one of the baseline: absence there is no removal."""
        return self.store_emptied or self.store_replaced

    def of_known_store(self) -> Sides:
        """Return the same comparison for a store that is the one of the baseline."""
        return replace(self, store_emptied=False, store_replaced=False)

    def believes_removal(self, conversation: str, *, buried: bool = False) -> bool:
        """Tell whether a conversation that is absent from the store was removed from it (case 7).

        ``buried``: a run has removed it deliberately, which holds whatever happened to the store.
        """
        renewed = self.store_renewed and not buried
        return not (renewed or self.store_hidden or self.store_doubtful or conversation in self.obstacles)

    def believes_absence(self, store_path: str) -> bool:
        """Tell whether a file that is absent from a directory of a known store was removed from it."""
        return not (self.store_hidden or any(path.startswith(f"{store_path}/") for path in self.store_doubtful))

    def hides(self, place: str) -> bool:
        """Tell whether a workspace directory may exist although the scan has not seen it."""
        return any(not path or place == path or place.startswith(f"{path}/") for path in self.workspace_hidden)

    def link_above(self, place: str) -> str | None:
        """Return the symbolic link of the workspace at a directory's place, or above it."""
        above = accumulate(place.split("/"), "{}/{}".format)
        return next((path for path in above if path in self.workspace_links), None)

    def may_forget(self, conversation: str, place: str) -> bool:
        """Tell whether absence on both sides is certain (docs/design/guards.md#rule-39)."""
        return self.believes_removal(conversation) and not self.workspace_emptied and not self.hides(place)


class Whole(Struct, frozen=True):
    """The facts about both sides as wholes that a plan of a part needs."""

    sides: Sides
    directories: int
    """The number of directories in the workspace."""
    stored: int = 0
    """The number of directories in the store."""
    taken: Container[str] = frozenset()
    """Ids that are taken although the plan isn't about them."""

    def directories_of(self, side: Side) -> int:
        """Return the number of directories of a side."""
        return self.stored if side is Side.STORE else self.directories


def whole_of(store: Snapshot, workspace: Snapshot, baseline: Baseline, fmt: Format) -> Whole:
    """Return the facts for a plan of everything."""
    return Whole(compare_sides(store, workspace, baseline, fmt), len(workspace.copies), len(store.copies))


def compare_sides(store: Snapshot, workspace: Snapshot, baseline: Baseline, fmt: Format) -> Sides:
    """Compare both sides as wholes with the baseline."""
    known = baseline.store_identity
    # The tree of a remote may have nothing left: its tombstones tell each removal, and absence alone is none.
    expected = not baseline.is_of_remote and any(_expected_here(baseline, id_) for id_ in baseline.agreed)
    hidden, is_read = hidden_directories(store), was_read(store)
    links = [foreign.path for foreign in store.foreign if foreign.link]
    is_empty = expected and not holds_any(workspace.copies, fmt)
    is_cleared = is_empty and fmt.places is not None and fmt.places.deletes_old
    workspace_links = frozenset(foreign.path for foreign in workspace.foreign if foreign.link)
    return Sides(
        store_emptied=is_read
        and not baseline.agreed.keys() <= baseline.tombstones.keys()
        and has_lost_all(store, baseline, fmt),
        store_replaced=is_read and known is not None and not is_same_directory(store.identity, known),
        workspace_emptied=is_empty and not is_cleared,
        workspace_cleared=is_cleared,
        store_hidden=any(path in ("", ARCHIVE, TRASH) for path in (*hidden, *links)),
        store_doubtful=(*hidden, *(path for path in links if _may_hide(path, fmt))),
        obstacles={key: each for each in store.foreign if (key := _obstructed_by(each, fmt)) is not None},
        workspace_links=workspace_links,
        workspace_hidden=(*hidden_directories(workspace), *sorted(workspace_links)),
    )


def _may_hide(link: str, fmt: Format) -> bool:
    """Tell whether conversations may be below a link of the store, whose ids aren't in its path."""
    if fmt.places is None:
        return "/" in link and _conversation_at(link, fmt) is None
    return "/" in link or fmt.places.entry(link, directory=True) is Entry.ENTER


def _obstructed_by(entry: Foreign, fmt: Format) -> str | None:
    """Return the id of the conversation in whose place an entry is. A link may be that of a directory at any depth."""
    is_at_top = entry.path.rpartition("/")[0] in ("", ARCHIVE)
    return _conversation_at(entry.path, fmt) if entry.link or is_at_top or fmt.places is not None else None


def _conversation_at(path: str, fmt: Format) -> str | None:
    """Return the id of the conversation whose place a path is; the path itself in a format with fixed places."""
    return fmt.id_of(path.rpartition("/")[2]) if fmt.places is None else path


def was_read(side: Snapshot) -> bool:
    """Tell whether a side's own directory was read, or is certainly not there."""
    return all(problem.path for problem in side.problems)


def hidden_directories(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the directories that the scan could not read completely.

    Problems with single files hide nothing: those files are listed in their copies.
    """
    if not snapshot.problems:
        return ()
    files = {joined(copy.path, file.name) for copy in snapshot.copies for file in copy.files}
    return tuple(problem.path for problem in snapshot.problems if problem.path not in files)


def has_lost_all(store: Snapshot, baseline: Baseline, fmt: Format) -> bool:
    """Tell whether the store is empty, or has none of the several conversations that any checkout has agreed on.

    If it has others, it is a new store.
    """
    if not holds_any(store.copies, fmt):
        return True
    there = {copy.conversation for copy in store.copies}
    if not baseline.agreed.keys().isdisjoint(there):
        return False
    known = {*baseline.agreed, *(conversation for conversation, _ in baseline.history)}
    return known.isdisjoint(there) and len(known - baseline.tombstones.keys()) > 1


def _expected_here(baseline: Baseline, conversation: str) -> bool:
    """Tell whether its directory existed at the end of the last run.

    It did not if it was removed deliberately, by a person, or is still to be created.
    """
    return conversation not in baseline.tombstones and conversation not in baseline.intents


def holds_any(copies: Iterable[Copy], fmt: Format) -> bool:
    """Tell whether a side has a conversation with a file of its own: JP makes a directory for the draft of a query.

    A record with a fixed place counts whatever is in it, unless it is derived from others.
    """
    places = fmt.places
    if places is not None:
        return any(not places.is_derived(copy.conversation) for copy in copies)
    there = (copy for copy in copies if copy.partition is not Partition.TRASH)
    return any(copy.metadata is not None or copy.stream is not None for copy in there)


def is_bulk(removed: int, directories: int) -> bool:
    """Tell whether a run would remove too many directories without permission."""
    return removed > BULK_ABOVE and removed * 3 > directories
