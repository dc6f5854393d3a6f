"""What one look at both sides has found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reconcile.core.memory import Memory
    from reconcile.core.model import Snapshot


@dataclass(frozen=True, slots=True)
class Look:
    """Both sides and the memory at one moment."""

    store: Snapshot
    workspace: Snapshot
    memory: Memory
