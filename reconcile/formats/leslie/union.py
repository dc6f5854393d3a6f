"""Merges two versions of a control file: the union of their logs (docs/design/formats/leslie.md#order).

Each side keeps its own order. Operations of different sides are ordered by time, and the spawn of a thread comes before
every operation that names it. Derived data follow from the merged log. A conflict that neither the log nor a time can
decide is left to a person.
"""

from __future__ import annotations

import re
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from reconcile.formats.jp import times
from reconcile.formats.json import strict
from reconcile.formats.leslie.document import RELATIONS, read_relations, text, texts, written
from reconcile.formats.leslie.rebuild import collation_key, rebuild, rebuild_objectives
from reconcile.formats.leslie.replay import Command, Operation, replay, spawned, status_of
from reconcile.model.snapshot import Fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reconcile.formats.leslie.document import Document, Object, ObjectivesDocument
    from reconcile.formats.leslie.replay import Replayed

_CONFLICT = re.compile(
    rb"^<{7}[^\n]*\n(?P<ours>.*?)(?:^\|{7}[^\n]*\n.*?)?^={7}[^\n]*\n(?P<theirs>.*?)^>{7}[^\n]*(?:\n|\Z)",
    re.MULTILINE | re.DOTALL,
)
_DECIDED = ("title", "objective", "status", "parent_id")
"""Fields of a thread that a person decides about if the log can't."""


class Merged(Struct, frozen=True):
    """The merged content, or None if a person has to decide first about ``conflicts``."""

    content: bytes | None
    conflicts: tuple[str, ...]


def conflicting_sides(content: bytes) -> tuple[bytes, bytes] | None:
    """Return both sides of a file with conflict markers of git; None if there are none."""
    if _CONFLICT.search(content) is None:
        return None
    return _CONFLICT.sub(lambda match: match["ours"], content), _CONFLICT.sub(lambda match: match["theirs"], content)


def merge_marked(content: bytes) -> Merged | Fault:
    """Merge the two sides of a relations file with conflict markers."""
    sides = conflicting_sides(content)
    if sides is None:
        return Fault(RELATIONS, "an incomplete conflict", "git's markers around both versions")
    first, second = map(read_relations, sides)
    if isinstance(first, Fault):
        return first
    return second if isinstance(second, Fault) else merge(first, second)


def merge(first: Document, second: Document) -> Merged:
    """Merge two versions: the result has everything that either has."""
    conflicts: list[str] = []
    operations = _operations(first, second, conflicts)
    first_log, second_log = replay(first), replay(second)
    threads = dict(first.threads)
    for thread, record in second.threads.items():
        threads[thread] = (
            _record(thread, (threads[thread], first_log), (record, second_log), conflicts)
            if thread in threads
            else record
        )
    order = _thread_order(operations, threads)
    metadata = _metadata(first.value.get("metadata"), second.value.get("metadata"))
    value: Object = {**second.value, **first.value, "metadata": metadata, "operations": operations}
    value["threads"] = {thread: threads[thread] for thread in order}
    value["relations"] = _relations(first, second)
    if first.value.get("version") != second.value.get("version"):
        versions = (document.value.get("version", "none") for document in (first, second))
        conflicts.append(f"version: {' and '.join(map(str, versions))}")
    if conflicts:
        return Merged(None, tuple(conflicts))
    merged = read_relations(written(value))
    assert not isinstance(merged, Fault)  # noqa: S101 - it consists of values that were read
    # A status that either log determined is now determined by the merged log, also if it becomes active.
    undetermined = _underived(first, first_log) | _underived(second, second_log)
    return Merged(rebuild(merged, replay(merged), frozenset(), threads.keys() - undetermined).content, ())


def merge_objectives(first: ObjectivesDocument, second: ObjectivesDocument, threads: Mapping[str, Object]) -> Merged:
    """Merge as `merge`. Derived fields follow from the merged threads."""
    conflicts: list[str] = []
    objectives = dict(first.objectives)
    for objective, record in second.objectives.items():
        stored = objectives.setdefault(objective, record)
        if stored.get("title") != record.get("title"):
            conflicts.append(f"{objective}: title {_quoted(stored.get('title'))} and {_quoted(record.get('title'))}")
        first_ids, second_ids = texts(stored.get("thread_ids")), texts(record.get("thread_ids"))
        listed = first_ids if first_ids == second_ids else sorted({*first_ids, *second_ids}, key=collation_key)
        objectives[objective] = {**_newer(stored, record), "thread_ids": listed}
    metadata = _metadata(first.value.get("metadata"), second.value.get("metadata"))
    value = {**second.value, **first.value, "objectives": objectives, "metadata": metadata}
    if conflicts:
        return Merged(None, tuple(conflicts))
    made = type(first)(written(value), value, ())
    return Merged(rebuild_objectives(made, threads, {}).content, ())


def _operations(first: Document, second: Document, conflicts: list[str]) -> list[Object]:
    entries: dict[str, Object] = {}
    lines: list[list[str]] = []
    for document in (first, second):
        line: list[str] = []
        for number, entry in enumerate(document.operations):
            key = Operation(entry).id or f"\0{number}"
            if entries.setdefault(key, entry) != entry:
                conflicts.append(f"operation {key}: two different ones")
            line.append(key)
        lines.append(list(dict.fromkeys(line)))
    order = _merged(lines, entries)
    if order is None:
        conflicts.append("operations: the same ones in a different order")
        return []
    return [entries[key] for key in order]


def _merged(lines: list[list[str]], entries: dict[str, Object]) -> list[str] | None:
    """Return one order that keeps the orders of both lines; None if they contradict each other."""
    operations = {key: Operation(entry) for key, entry in entries.items()}
    links = {link for line in lines for link in pairwise(line)}
    latest_first = sorted(operations, key=lambda key: (_instant(operations[key]), key), reverse=True)
    births = {operations[key].thread: key for key in latest_first if operations[key].command == Command.SPAWN}
    named = {
        (births[name], key)
        for key, operation in operations.items()
        for name in operation.names
        if name in births and births[name] != key
    }
    # A line that names a thread before its spawn keeps its order.
    return _sorted(operations, links | named) or _sorted(operations, links)


def _sorted(operations: dict[str, Operation], links: Iterable[tuple[str, str]]) -> list[str] | None:
    """Sort topologically, and by time among the operations that wait for none; None: there is a cycle."""
    waiting = dict.fromkeys(operations, 0)
    after: dict[str, list[str]] = {}
    for before, key in links:
        waiting[key] += 1
        after.setdefault(before, []).append(key)
    ready = [(_instant(operations[key]), key) for key, count in waiting.items() if not count]
    heapify(ready)
    keys = []
    while ready:
        _, key = heappop(ready)
        keys.append(key)
        for other in after.get(key, ()):
            waiting[other] -= 1
            if not waiting[other]:
                heappush(ready, (_instant(operations[other]), other))
    return keys if len(keys) == len(operations) else None


def _instant(operation: Operation) -> int:
    return times.instant_ns(operation.timestamp) or 0


def _record(
    thread: str, first: tuple[Object, Replayed], second: tuple[Object, Replayed], conflicts: list[str]
) -> Object:
    """Merge two records. Differences that the log explains need no decision; other fields are those of the newer."""
    (first_record, first_log), (second_record, second_log) = first, second
    record = dict(_newer(first_record, second_record))
    for key in _DECIDED:
        first_value, second_value = first_record.get(key), second_record.get(key)
        if first_value == second_value or (
            _explained(thread, key, first_value, first_log) and _explained(thread, key, second_value, second_log)
        ):
            continue
        conflicts.append(f"{thread}: {key} {_quoted(first_value)} and {_quoted(second_value)}")
    for key, value in (*first_record.items(), *second_record.items()):
        record.setdefault(key, value)
    return record


def _explained(thread: str, key: str, value: object, replayed: Replayed) -> bool:
    fields = replayed.courses[thread].fields
    return key in fields and fields[key] == (status_of(value) if key == "status" else value)


def _underived(document: Document, replayed: Replayed) -> set[str]:
    """Return the threads of this version whose status differs from their log."""
    return {
        thread
        for thread, record in document.threads.items()
        if not _explained(thread, "status", record.get("status"), replayed)
    }


def _newer(first: Object, second: Object) -> Object:
    """Return the record that was written last."""
    return first if (newness(first), written(first)) >= (newness(second), written(second)) else second


def newness(record: Object) -> int:
    """Return when a thread or an objective was written last, in ns; 0 if it is not stated."""
    return _time(record.get("updated_at"))


def _thread_order(operations: list[Object], threads: dict[str, Object]) -> list[str]:
    """Return the threads in the order of their spawns, those without a spawn first."""
    spawns = spawned(operations)
    return [
        *(thread for thread in threads if thread not in spawns),
        *(thread_id for thread_id in spawns if thread_id in threads),
    ]


def _relations(first: Document, second: Document) -> Object:
    """Return the union of the stored relations, from which a replay takes what the log does not determine."""
    entries = {thread: dict(entry) for thread, entry in first.relations.items()}
    for thread, entry in second.relations.items():
        merged_entry = entries.setdefault(thread, entry)
        for name, members in entry.items():
            merged_entry[name] = list(dict.fromkeys([*merged_entry[name], *members]))
    return entries


def _metadata(first: Any, second: Any) -> Any:
    if not isinstance(first, dict) or not isinstance(second, dict):
        return first if isinstance(first, dict) else second
    return _newer_by("last_updated", first, second)


def _newer_by(key: str, first: Object, second: Object) -> Object:
    return first if _time(first.get(key)) >= _time(second.get(key)) else second


def _time(value: object) -> int:
    return (times.instant_ns(value) if isinstance(value, str) else None) or 0


def _quoted(value: object) -> str:
    string = text(value)
    return strict.quoted(string) if string is not None else strict.kind(value)
