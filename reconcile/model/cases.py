"""The decision table's numbers: exactly 15 cases for one thing seen in baseline, store and workspace."""

from __future__ import annotations

from typing import Final, TypeVar

T = TypeVar("T")

CASES: Final = {
    1: ("- - -", "nothing"),
    2: ("- - a", "new in the workspace (external)"),
    3: ("- a -", "only in the store, never seen here"),
    4: ("- a a", "equal"),
    5: ("- a b", "differ, no history"),
    6: ("a - -", "gone on both sides"),
    7: ("a - a", "removed on the store side"),
    8: ("a - b", "removed there, edited here"),
    9: ("a a -", "removed in the workspace"),
    10: ("a a a", "in sync"),
    11: ("a a b", "edited in the workspace"),
    12: ("a b -", "edited in the store, gone from the workspace"),
    13: ("a b a", "edited in the store"),
    14: ("a b b", "the same edit on both"),
    15: ("a b c", "edited on both"),
}
"""Number to (baseline store workspace, meaning); the same numbers in docs/cases.md and ``--json``."""

_NUMBERS: Final = {pattern: number for number, (pattern, _) in CASES.items()}


def case_of(base: T | None, store: T | None, workspace: T | None) -> int:
    """Return the number of the case; None means absent, equality is content."""
    letters: list[T] = []
    pattern = []
    for value in (base, store, workspace):
        if value is None:
            pattern.append("-")
        else:
            if value not in letters:
                letters.append(value)
            pattern.append("abc"[letters.index(value)])
    return _NUMBERS[" ".join(pattern)]
