"""Findings about the two indexes (docs/design/formats/claudesidian.md#failures)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.formats.claudesidian.finding import Finding, Repair, Severity, counted, some
from reconcile.formats.claudesidian.index import (
    BLOCKS,
    TIMES,
    Difference,
    Sort,
    compare,
    in_shape,
    keeping,
    rebuild,
    written,
)
from reconcile.formats.claudesidian.record_files import INDEX, number
from reconcile.formats.claudesidian.repair import mended
from reconcile.formats.json import javascript
from reconcile.formats.json.strict import InvalidContentError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reconcile.formats.claudesidian.record_files import Value
    from reconcile.formats.claudesidian.vault import Records

_CODES = {
    Sort.UNINDEXED: ("C4", Severity.ERROR),
    Sort.MISSING: ("C4", Severity.ERROR),
    Sort.GHOST: ("C3", Severity.ERROR),
    Sort.STALE: ("C5", Severity.WARNING),
    Sort.STALE_TOKEN: ("C5", Severity.NOTE),
    Sort.LOST: ("C6", Severity.WARNING),
    Sort.REPLACED: ("C6", Severity.WARNING),
    Sort.BREAKING: ("C4", Severity.NOTE),
}
_EVIDENCE = frozenset({Sort.LOST, Sort.REPLACED})


def rebuilt(records: Records, now_ms: int) -> Value:
    """The index that the records say. Ranges of dates are made where the stored index has some."""
    ranges = (records.index or {}).get("byDateRange")
    values = [mended(item) for item in records.current.values()]
    time = _time(records, now_ms)
    return rebuild(records.kind, values, time, buckets=isinstance(ranges, list) and bool(ranges))


def _time(records: Records, now_ms: int) -> int:
    """The time of an index: after all that its records name, and not before that of the index that it replaces.

    Not that of the rebuild: two worktrees that rebuild the same index must write the same bytes. Times to come are a
    wrong clock's.
    """
    named = [number(item.value.get(name)) + 1 for item in records.current.values() for name in TIMES]
    named.append(number((records.index or {}).get("lastUpdated")))
    return int(max((time for time in named if 1 < time <= now_ms), default=now_ms))


class Rebuild(Struct, frozen=True):
    """An index that isn't what its records say: the file as it should be, and why, in words.

    ``before`` is None where there is no file that can be read. ``reads`` are the files that ``after`` was derived
    from. ``evidence``: the index knows more than the files, so it is the last trace of what was lost, and is
    overwritten on request only (docs/design/formats/claudesidian.md#edge-case-20).
    """

    path: str
    before: bytes | None
    after: bytes
    reads: tuple[str, ...]
    problem: str | None
    differences: tuple[Difference, ...]

    @property
    def evidence(self) -> bool:
        """It is to be looked at before it is overwritten."""
        return any(each.sort in _EVIDENCE for each in self.differences)


def rebuild_of(records: Records, now_ms: int) -> Rebuild | None:
    """What is to be done about one index; None where it is in order, or where there is nothing to index."""
    if not records.items and INDEX not in records.contents:
        return None
    index = rebuilt(records, now_ms)
    differences = _evidence(records, index)
    if records.index is not None:
        differences = compare(records.kind, records.index, index, records.unread)
    if records.index is not None and not differences:
        return None
    if records.index is not None:
        index = keeping(records.kind, index, records.index, records.unread)
    before = records.contents.get(INDEX)
    return Rebuild(
        records.place(INDEX),
        before if isinstance(before, bytes) else None,
        written(index, records.index),
        tuple(item.path for item in records.current.values()),
        records.index_problem,
        differences,
    )


def _evidence(records: Records, index: Value) -> tuple[Difference, ...]:
    """What an index that can't be used still says of what was lost: it may lack a part, and count all the same."""
    content = records.contents.get(INDEX)
    if records.index is not None or not isinstance(content, bytes):
        return ()
    try:
        stored = in_shape(records.kind, javascript.parse(content))
    except InvalidContentError:
        return ()
    found = () if stored is None else compare(records.kind, stored, index, records.unread)
    return tuple(each for each in found if each.sort in _EVIDENCE)


def check_index(records: Records, now_ms: int) -> list[Finding]:
    """Everything that is wrong with one index. All findings have one repair: the index, written anew."""
    found = rebuild_of(records, now_ms)
    if found is None:
        return []
    repair = Repair(found.path, found.after)
    differences = found.differences
    mend = "rebuild it from the files"
    if found.evidence:
        mend = "look for what is lost (a backup, another device), then rebuild it: until then it is the only evidence"
    if found.problem is not None:
        every = [("C1", Severity.ERROR, _unreadable(records)), *_spoken(differences)]
        mend = mend if found.evidence else "rebuild it from the files before the program writes it"
        return _with_one_repair(every, mend, repair, on_request=found.evidence)
    if (few := _few(records, differences)) is not None:
        differences = tuple(each for each in differences if each.sort is not Sort.UNINDEXED)
    every = [*([few] if few else []), *_spoken(differences)]
    return _with_one_repair(every, mend, repair, on_request=found.evidence)


def _with_one_repair(
    every: Iterable[tuple[str, Severity, str]], mend: str, repair: Repair, *, on_request: bool
) -> list[Finding]:
    return [
        Finding(code, severity, repair.path, words, mend, (repair,), on_request=on_request)
        for code, severity, words in every
    ]


def _unreadable(records: Records) -> str:
    """The program takes an index that it can't read for an empty one, and writes over it.

    See docs/design/formats/claudesidian.md#c1.
    """
    ids = list(records.current)
    what = counted(len(ids), records.kind)
    return f"{records.index_problem}: the program shows no {records.kind}, and there are {what} ({some(ids)})"


def _few(records: Records, found: Sequence[Difference]) -> tuple[str, Severity, str] | None:
    """After the program's next write: one entry, where there are more files than that.

    See docs/design/formats/claudesidian.md#c1.
    """
    unindexed = [each.id for each in found if each.sort is Sort.UNINDEXED]
    if len((records.index or {})[BLOCKS[records.kind]]) != 1 or len(unindexed) < 2:
        return None
    words = f"1 of {len(records.current)} {records.kind}s: it was begun anew, without {some(unindexed)}"
    return "C1", Severity.ERROR, words


def _spoken(found: Iterable[Difference]) -> list[tuple[str, Severity, str]]:
    """One line for what is wrong in one way at one record."""
    grouped: dict[tuple[str, Severity, str], list[str]] = {}
    for each in found:
        code, severity = _CODES[each.sort]
        if "message_count" in each.fields:
            code = "C8"
        grouped.setdefault((code, severity, each.id), []).append(each.words)
    return [(code, severity, f"{id_}: {'; '.join(words)}") for (code, severity, id_), words in grouped.items()]
