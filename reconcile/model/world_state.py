"""What one look at both sides has found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from reconcile.model.baseline import Memory
    from reconcile.model.snapshot import Snapshot


class Look(Struct, frozen=True):
    """Both sides and the memory at one moment."""

    store: Snapshot
    workspace: Snapshot
    memory: Memory
