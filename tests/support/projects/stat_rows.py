"""Stat tables as lists to be compared."""

from __future__ import annotations

import os
from array import array

from reconcile.index.stat_table import StatList, StatTable


def whole(kept: StatTable) -> StatList:
    """Return the whole table as one list."""
    names: list[str] = []
    fingerprints = array("q")
    for some, numbers in kept.merged().pieces:
        names += os.fsdecode(some).split("\0")
        fingerprints.frombytes(numbers)
    return StatList(names, fingerprints)
