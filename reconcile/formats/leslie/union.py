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
from reconcile.formats.leslie.operations import Command, Operation, spawned, status_of
from reconcile.formats.leslie.rebuild import collation_key, rebuild, rebuild_objectives
from reconcile.formats.leslie.replay import replay
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


class United(Struct, frozen=True):
    """The merged content, or None if a person has to decide first about ``conflicts``."""

    content: bytes | None
    conflicts: tuple[str, ...]


def conflicting_sides(content: bytes) -> tuple[bytes, bytes] | None:
    """Return both sides of a file with conflict markers of git; None if there are none."""
    if _CONFLICT.search(content) is None:
        return None
    return _CONFLICT.sub(lambda match: match["ours"], content), _CONFLICT.sub(lambda match: match["theirs"], content)


def unite_marked(content: bytes) -> United | Fault:
    """Merge the two sides of a relations file with conflict markers."""
    sides = conflicting_sides(content)
    if sides is None:
        return Fault(RELATIONS, "no conflict that is marked from end to end", "git's markers around both versions")
    ours, theirs = map(read_relations, sides)
    if isinstance(ours, Fault):
        return ours
    return theirs if isinstance(theirs, Fault) else unite(ours, theirs)


def unite(ours: Document, theirs: Document) -> United:
    """Merge two versions: the result has everything that either has."""
    conflicts: list[str] = []
    operations = _operations(ours, theirs, conflicts)
    mine, other = replay(ours), replay(theirs)
    threads = dict(ours.threads)
    for thread, record in theirs.threads.items():
        threads[thread] = (
            _record(thread, (threads[thread], mine), (record, other), conflicts) if thread in threads else record
        )
    order = _thread_order(operations, threads)
    metadata = _metadata(ours.value.get("metadata"), theirs.value.get("metadata"))
    value: Object = {**theirs.value, **ours.value, "metadata": metadata, "operations": operations}
    value["threads"] = {thread: threads[thread] for thread in order}
    value["relations"] = _relations(ours, theirs)
    if ours.value.get("version") != theirs.value.get("version"):
        versions = (document.value.get("version", "none") for document in (ours, theirs))
        conflicts.append(f"version: {' and '.join(map(str, versions))}")
    if conflicts:
        return United(None, tuple(conflicts))
    united = read_relations(written(value))
    assert not isinstance(united, Fault)  # noqa: S101 - it is made of what was read
    # A status that either log determined is now determined by the merged log, also if it becomes active.
    strange = _underived(ours, mine) | _underived(theirs, other)
    return United(rebuild(united, replay(united), frozenset(), threads.keys() - strange).content, ())


def unite_objectives(ours: ObjectivesDocument, theirs: ObjectivesDocument, threads: Mapping[str, Object]) -> United:
    """Merge as `unite`. Derived fields follow from the merged threads."""
    conflicts: list[str] = []
    objectives = dict(ours.objectives)
    for objective, record in theirs.objectives.items():
        mine = objectives.setdefault(objective, record)
        if mine.get("title") != record.get("title"):
            conflicts.append(f"{objective}: title {_quoted(mine.get('title'))} and {_quoted(record.get('title'))}")
        first, second = texts(mine.get("thread_ids")), texts(record.get("thread_ids"))
        listed = first if first == second else sorted({*first, *second}, key=collation_key)
        objectives[objective] = {**_newer(mine, record), "thread_ids": listed}
    metadata = _metadata(ours.value.get("metadata"), theirs.value.get("metadata"))
    value = {**theirs.value, **ours.value, "objectives": objectives, "metadata": metadata}
    if conflicts:
        return United(None, tuple(conflicts))
    made = type(ours)(written(value), value, ())
    return United(rebuild_objectives(made, threads, {}).content, ())


def _operations(ours: Document, theirs: Document, conflicts: list[str]) -> list[Object]:
    entries: dict[str, Object] = {}
    lines: list[list[str]] = []
    for document in (ours, theirs):
        line: list[str] = []
        for number, entry in enumerate(document.operations):
            key = Operation(entry).id or f"\0{number}"
            if entries.setdefault(key, entry) != entry:
                conflicts.append(f"operation {key}: two that differ")
            line.append(key)
        lines.append(list(dict.fromkeys(line)))
    order = _merged(lines, entries)
    if order is None:
        conflicts.append("operations: both versions have the same ones in another order")
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
    thread: str, ours: tuple[Object, Replayed], theirs: tuple[Object, Replayed], conflicts: list[str]
) -> Object:
    """Merge two records. Differences that the log explains need no decision; other fields are those of the newer."""
    (mine, log), (other, its) = ours, theirs
    record = dict(_newer(mine, other))
    for key in _DECIDED:
        first, second = mine.get(key), other.get(key)
        if first == second or (_explained(thread, key, first, log) and _explained(thread, key, second, its)):
            continue
        conflicts.append(f"{thread}: {key} {_quoted(first)} and {_quoted(second)}")
    for key, value in (*mine.items(), *other.items()):
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


def _newer(mine: Object, other: Object) -> Object:
    """Return the record that was written last."""
    return mine if (newness(mine), written(mine)) >= (newness(other), written(other)) else other


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


def _relations(ours: Document, theirs: Document) -> Object:
    """Return the union of the stored relations, from which a replay takes what the log does not determine."""
    entries = {thread: dict(entry) for thread, entry in ours.relations.items()}
    for thread, entry in theirs.relations.items():
        mine = entries.setdefault(thread, entry)
        for name, members in entry.items():
            mine[name] = list(dict.fromkeys([*mine[name], *members]))
    return entries


def _metadata(mine: Any, other: Any) -> Any:
    if not isinstance(mine, dict) or not isinstance(other, dict):
        return mine if isinstance(mine, dict) else other
    return _newer_by("last_updated", mine, other)


def _newer_by(key: str, mine: Object, other: Object) -> Object:
    return mine if _time(mine.get(key)) >= _time(other.get(key)) else other


def _time(value: object) -> int:
    return (times.instant_ns(value) if isinstance(value, str) else None) or 0


def _quoted(value: object) -> str:
    string = text(value)
    return strict.quoted(string) if string is not None else strict.kind(value)
