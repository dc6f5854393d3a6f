"""What a run may conclude, and what it refuses, when a side as a whole looks wrong (section 4, "Further")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconcile.core.memory import IntentKind
from reconcile.core.model import ARCHIVE, TRASH, Partition

if TYPE_CHECKING:
    from reconcile.core.memory import Memory
    from reconcile.core.model import Snapshot

BULK_AT_LEAST = 3
"""More than this many directories, and more than a third of all, are a bulk removal."""


@dataclass(frozen=True, slots=True)
class Sides:
    """How the sides as wholes stand against what is remembered.

    ``store_emptied``, ``workspace_emptied``: nothing is there where the baseline knows some; never read as deletions.
    ``store_replaced``: another directory than last time (wiped, restored, merged, another ``--store``).
    """

    store_emptied: bool
    store_replaced: bool
    workspace_emptied: bool
    store_hidden: bool = False
    """The store, or a partition of it, could not be read whole: what seems absent may be there."""
    workspace_hidden: tuple[str, ...] = ()
    """Directories of the workspace that could not be read whole; an empty path is all of it."""

    def hides(self, place: str) -> bool:
        """Tell whether a workspace directory may be there although the scan has not seen it."""
        return any(not path or place == path or place.startswith(f"{path}/") for path in self.workspace_hidden)

    def may_forget(self, place: str) -> bool:
        """Tell whether absence on both sides may be believed (row 6)."""
        doubtful = self.store_emptied or self.store_replaced or self.store_hidden or self.workspace_emptied
        return not doubtful and not self.hides(place)


def look_at_sides(store: Snapshot, workspace: Snapshot, memory: Memory) -> Sides:
    """Compare both sides as wholes with the memory."""
    expected = any(_expected_here(memory, conversation) for conversation in memory.agreed)
    return Sides(
        store_emptied=bool(memory.agreed) and not _live_or_archived(store),
        store_replaced=memory.store_identity is not None and memory.store_identity != store.identity,
        workspace_emptied=expected and not _live_or_archived(workspace),
        store_hidden=any(path in ("", ARCHIVE, TRASH) for path in hidden_directories(store)),
        workspace_hidden=hidden_directories(workspace),
    )


def hidden_directories(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the directories of which a scan says that it could not read them whole.

    Problems with single files hide nothing: those files are listed in their copies.
    """
    if not snapshot.problems:
        return ()
    files = {f"{copy.path}/{file.name}" for copy in snapshot.copies for file in copy.files}
    return tuple(problem.path for problem in snapshot.problems if problem.path not in files)


def _expected_here(memory: Memory, conversation: str) -> bool:
    intent = memory.intents.get(conversation)
    return intent is None or (intent.kind is IntentKind.PROJECTED and intent.waits_for is None)


def _live_or_archived(snapshot: Snapshot) -> bool:
    return any(copy.partition is not Partition.TRASH for copy in snapshot.copies)


def is_bulk(removed: int, directories: int) -> bool:
    """Tell whether one run would remove too many directories without being told to."""
    return removed > BULK_AT_LEAST and removed * 3 > directories
