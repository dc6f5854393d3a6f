"""What a run may conclude, and what it refuses, when a side as a whole looks wrong (section 4, "Further")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconcile.core.memory import IntentKind
from reconcile.core.model import Partition

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


def look_at_sides(store: Snapshot, workspace: Snapshot, memory: Memory) -> Sides:
    """Compare both sides as wholes with the memory."""
    expected = any(_expected_here(memory, conversation) for conversation in memory.agreed)
    return Sides(
        store_emptied=bool(memory.agreed) and not _live_or_archived(store),
        store_replaced=memory.store_identity is not None and memory.store_identity != store.identity,
        workspace_emptied=expected and not _live_or_archived(workspace),
    )


def _expected_here(memory: Memory, conversation: str) -> bool:
    intent = memory.intents.get(conversation)
    return intent is None or (intent.kind is IntentKind.PROJECTED and intent.waits_for is None)


def _live_or_archived(snapshot: Snapshot) -> bool:
    return any(copy.partition is not Partition.TRASH for copy in snapshot.copies)


def is_bulk(removed: int, directories: int) -> bool:
    """Tell whether one run would remove too many directories without being told to."""
    return removed > BULK_AT_LEAST and removed * 3 > directories
