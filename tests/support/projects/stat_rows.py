"""What was swept, as lists to be compared."""

from __future__ import annotations

import os
from array import array

from reconcile.index.stat_table import KeptSweep, Sweep


def whole(kept: KeptSweep) -> Sweep:
    """Return the sweep that was kept."""
    names: list[str] = []
    prints = array("q")
    for some, numbers in kept.merged().pieces:
        names += os.fsdecode(some).split("\0")
        prints.frombytes(numbers)
    return Sweep(names, prints)
