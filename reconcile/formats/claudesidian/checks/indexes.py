"""Checks of the two indexes (docs/design/formats/claudesidian.md#failures)."""

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
from reconcile.formats.claudesidian.repair import indexed_form
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
    """Return the index that follows from the records, with date ranges if the stored index has some."""
    ranges = (records.index or {}).get("byDateRange")
    values = [indexed_form(item) for item in records.current.values()]
    time = _time(records, now_ms)
    return rebuild(records.kind, values, time, buckets=isinstance(ranges, list) and bool(ranges))


def _time(records: Records, now_ms: int) -> int:
    """Return the time of an index: after all times in its records, and not before that of the replaced index.

    It is not the time of the rebuild: two worktrees that rebuild the same index must write the same bytes. Future times
    come from a wrong clock.
    """
    named = [number(item.value.get(name)) + 1 for item in records.current.values() for name in TIMES]
    named.append(number((records.index or {}).get("lastUpdated")))
    return int(max((time for time in named if 1 < time <= now_ms), default=now_ms))


class Rebuild(Struct, frozen=True):
    """A replacement of an index that differs from its records: the file as it should be, and the differences.

    ``before`` is None if there is no file that can be read. ``reads`` are the files from which ``after`` was derived.
    ``evidence``: the index knows more than the files, so it is the last trace of a loss, and is overwritten on request
    only (docs/design/formats/claudesidian.md#edge-case-20).
    """

    path: str
    before: bytes | None
    after: bytes
    reads: tuple[str, ...]
    problem: str | None
    differences: tuple[Difference, ...]

    @property
    def evidence(self) -> bool:
        """Whether the index should be looked at before it is overwritten."""
        return any(difference.sort in _EVIDENCE for difference in self.differences)


def rebuild_of(records: Records, now_ms: int) -> Rebuild | None:
    """Return the replacement of an index; None if it is correct or if there is nothing to index."""
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
    """Return the evidence of losses in an index that can't be used: it may lack a part and still have counts."""
    content = records.contents.get(INDEX)
    if records.index is not None or not isinstance(content, bytes):
        return ()
    try:
        stored = in_shape(records.kind, javascript.parse(content))
    except InvalidContentError:
        return ()
    differences = () if stored is None else compare(records.kind, stored, index, records.unread)
    return tuple(difference for difference in differences if difference.sort in _EVIDENCE)


def check_index(records: Records, now_ms: int) -> list[Finding]:
    """Return all findings about one index. They share one repair: the index, written again."""
    rebuild_ = rebuild_of(records, now_ms)
    if rebuild_ is None:
        return []
    repair = Repair(rebuild_.path, rebuild_.after)
    differences = rebuild_.differences
    mend = "rebuild it from the files"
    if rebuild_.evidence:
        mend = (
            "look for the lost records first (a backup, another device), then rebuild the index from the files; "
            "until then it is the only evidence"
        )
    if rebuild_.problem is not None:
        problems = [("C1", Severity.ERROR, _unreadable(records)), *_spoken(differences)]
        mend = mend if rebuild_.evidence else "rebuild it from the files before the program writes it"
        return _with_one_repair(problems, mend, repair, on_request=rebuild_.evidence)
    if (few := _few(records, differences)) is not None:
        differences = tuple(difference for difference in differences if difference.sort is not Sort.UNINDEXED)
    problems = [*([few] if few else []), *_spoken(differences)]
    return _with_one_repair(problems, mend, repair, on_request=rebuild_.evidence)


def _with_one_repair(
    problems: Iterable[tuple[str, Severity, str]], mend: str, repair: Repair, *, on_request: bool
) -> list[Finding]:
    return [
        Finding(code, severity, repair.path, words, mend, (repair,), on_request=on_request)
        for code, severity, words in problems
    ]


def _unreadable(records: Records) -> str:
    """Return the words about an unreadable index, which the program treats as empty and overwrites.

    See docs/design/formats/claudesidian.md#c1.
    """
    ids = list(records.current)
    what = f"{counted(len(ids), records.kind)} {'exists' if len(ids) == 1 else 'exist'}"
    return f"{records.index_problem}: the program shows no {records.kind}, but {what} ({some(ids)})"


def _few(records: Records, differences: Sequence[Difference]) -> tuple[str, Severity, str] | None:
    """Return a problem if the index has one entry and there are more files: the program has begun a new index.

    See docs/design/formats/claudesidian.md#c1.
    """
    unindexed = [difference.id for difference in differences if difference.sort is Sort.UNINDEXED]
    if len((records.index or {})[BLOCKS[records.kind]]) != 1 or len(unindexed) < 2:
        return None
    words = f"1 of {len(records.current)} {records.kind}s: the program started a new index, without {some(unindexed)}"
    return "C1", Severity.ERROR, words


def _spoken(differences: Iterable[Difference]) -> list[tuple[str, Severity, str]]:
    """Return one line for each record and code."""
    grouped: dict[tuple[str, Severity, str], list[str]] = {}
    for difference in differences:
        code, severity = _CODES[difference.sort]
        if "message_count" in difference.fields:
            code = "C8"
        grouped.setdefault((code, severity, difference.id), []).append(difference.words)
    return [(code, severity, f"{id_}: {'; '.join(words)}") for (code, severity, id_), words in grouped.items()]
