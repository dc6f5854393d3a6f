"""Checks of records, relations and the log (docs/design/formats/leslie.md#failures)."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.formats.jp import times
from reconcile.formats.leslie.checks.control_files import listed
from reconcile.formats.leslie.checks.model import Finding, Kind, LeslieTree, Repair, Rewrite, Severity
from reconcile.formats.leslie.document import (
    OBJECTIVES,
    RELATIONS,
    Dialect,
    Document,
    is_safe,
    text,
    unknown_keys,
    written,
)
from reconcile.formats.leslie.rebuild import Subject, rebuild, rebuild_objectives, storage_path
from reconcile.formats.leslie.replay import Oddity, Operation, Replayed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from reconcile.formats.leslie.document import ObjectivesDocument


def cycles(edges: Mapping[str, Iterable[str]]) -> list[tuple[str, ...]]:
    """Return one cycle of every strongly connected part, each beginning with its smallest member, sorted."""
    links = {node: {other for other in others if other in edges} for node, others in edges.items()}
    before: dict[str, list[str]] = {node: [] for node in links}
    for node, others in links.items():
        for other in others:
            before[other].append(node)
    _drop(links, before, [node for node, others in links.items() if not others])
    cycles_found = []
    for start in sorted(links):
        if start not in links:
            continue  # removed with an earlier cycle
        walk = {start: None}
        node = start
        while (node := min(links[node])) not in walk:
            walk[node] = None
        path = list(walk)
        cycle = path[path.index(node) :]
        first = cycle.index(min(cycle))
        cycles_found.append((*cycle[first:], *cycle[:first]))
        _drop(links, before, cycle)
    return sorted(cycles_found)


def _drop(links: dict[str, set[str]], before: Mapping[str, Iterable[str]], gone: list[str]) -> None:
    """Remove nodes, and all nodes that then lead nowhere."""
    todo = list(gone)
    while todo:
        node = todo.pop()
        if links.pop(node, None) is None:
            continue
        for above in before[node]:
            if above in links:
                links[above].discard(node)
                if not links[above]:
                    todo.append(above)


_SECOND = 10**9
_KINDS = {
    Subject.RECORD: Kind.NO_RECORD,
    Subject.STATUS: Kind.STATE,
    Subject.FIELD: Kind.STATE,
    Subject.RELATIONS: Kind.RELATIONS,
    Subject.COUNT: Kind.RELATIONS,
}
_ASKABLE = (Kind.STATE.number, Kind.NO_RECORD.number)
_FROM_THE_LOG = "rebuild it from the log"


def record_findings(
    tree: LeslieTree, document: Document, replayed: Replayed, wanted: Collection[str]
) -> Iterator[Finding]:
    """Yield all findings about a relations file that can be read."""
    yield from _derived(tree, document, replayed, wanted)
    yield from _trees(document, replayed)
    yield from _twice(document)
    yield from _places(tree, document)
    yield from _notes(document, replayed)


def objective_findings(
    document: Document, replayed: Replayed, objectives: ObjectivesDocument | None
) -> Iterator[Finding]:
    """Yield findings about what ``objectives.json`` states about the threads (docs/design/formats/leslie.md#f8)."""
    if objectives is not None:
        rebuilt = rebuild_objectives(objectives, document.threads, replayed.refreshed)
        repair = Repair.of(Rewrite(OBJECTIVES, objectives.content, rebuilt.content), *rebuilt.differences)
        for words in rebuilt.differences:
            advice, subject = "rebuild it from the threads", words.partition(":")[0]
            yield Finding(Kind.OBJECTIVE, Severity.WARNING, OBJECTIVES, words, advice, subject, repair)
        for words in rebuilt.lagging:
            yield Finding(Kind.LAG, Severity.NOTE, OBJECTIVES, words, "", words.partition(":")[0])
    elif document.dialect is Dialect.TEXT:
        return  # in that dialect an objective is free text
    known = objectives.objectives if objectives is not None else {}
    missing: dict[str, list[str]] = {}
    for thread, record in document.threads.items():
        if (objective := text(record.get("objective"))) is not None and objective not in known:
            missing.setdefault(objective, []).append(thread)
    for objective, threads in missing.items():
        words = f"the objective {objective} of {listed(threads)} is missing"
        yield Finding(
            Kind.NO_OBJECTIVE,
            Severity.WARNING,
            OBJECTIVES,
            words,
            f"restore {OBJECTIVES}, if there is a copy",
            objective,
        )


def _derived(tree: LeslieTree, document: Document, replayed: Replayed, wanted: Collection[str]) -> Iterator[Finding]:
    """Yield each difference from the log (docs/design/formats/leslie.md#f5).

    One rewrite repairs all differences that need no request or were requested.
    """
    asked = {subject for kind, _, subject in (difference.partition(":") for difference in wanted) if kind in _ASKABLE}
    rebuilt = rebuild(document, replayed, tree.threads, asked)
    done = tuple(difference.words for difference in rebuilt.done)
    together = Repair.of(Rewrite(RELATIONS, document.content, rebuilt.content), *done)
    for difference in rebuilt.differences:
        repair, advice = together, _FROM_THE_LOG
        if difference.asks and difference.thread is not None and difference.thread not in asked:
            alone = partial(_for_one, tree, document, replayed, difference.thread)
            repair = Repair(alone, (difference.words,), on_request=difference.asks)
            advice = f"{_FROM_THE_LOG} (on request: {difference.asks})"
        subject = difference.thread or difference.subject.value
        yield Finding(
            _KINDS[difference.subject], Severity.WARNING, RELATIONS, difference.words, advice, subject, repair
        )


def _for_one(tree: LeslieTree, document: Document, replayed: Replayed, thread: str) -> tuple[Rewrite]:
    rebuilt = rebuild(document, replayed, tree.threads, {thread})
    return (Rewrite(RELATIONS, document.content, rebuilt.content),)


def _trees(document: Document, replayed: Replayed) -> Iterator[Finding]:
    parents = {thread: text(record.get("parent_id")) for thread, record in document.threads.items()}
    for thread, parent in parents.items():
        if parent is not None and parent not in parents and parent not in replayed.courses:
            words = f"{thread}: its parent {parent} does not exist"
            yield Finding(Kind.TREE, Severity.WARNING, RELATIONS, words, "look for the lost thread", thread)
    above = {thread: [parent] if parent is not None else [] for thread, parent in parents.items()}
    references = {thread: entry["references_to"] for thread, entry in replayed.relations.items()}
    for what, edges in (("parents", above), ("references", references)):
        for cycle in cycles(edges):
            words = f"the {what} form a cycle: {' > '.join((*cycle, cycle[0]))}"
            advice = "correct the wrong one by hand"
            yield Finding(Kind.TREE, Severity.WARNING, RELATIONS, words, advice, cycle[0])


def _twice(document: Document) -> Iterator[Finding]:
    entries = document.operations
    counts = Counter(Operation(entry).id for entry in entries)
    for operation in (operation_id for operation_id, count in counts.items() if operation_id and count > 1):
        places = [number for number, entry in enumerate(entries) if Operation(entry).id == operation]
        same = all(entries[number] == entries[places[0]] for number in places)
        words = f"{operation}: {len(places)} operations have this id"
        if not same:
            advice = "they differ: decide which is right, and give the other one a new id"
            yield Finding(Kind.TWICE, Severity.WARNING, RELATIONS, words, advice, operation)
            continue
        if places[-1] - places[0] + 1 != len(places):
            advice = "they are equal, but other operations are between them; only one counts"
            yield Finding(Kind.TWICE, Severity.WARNING, RELATIONS, words, advice, operation)
            continue
        kept = [entry for number, entry in enumerate(entries) if number not in places[1:]]
        step = Rewrite(RELATIONS, document.content, written({**document.value, "operations": kept}))
        asks = "only a merge leaves copies, and it is unknown whether there was one"
        repair = replace(Repair.of(step, f"{operation} once"), on_request=asks)
        yield Finding(
            Kind.TWICE, Severity.WARNING, RELATIONS, words, f"keep one (on request: {asks})", operation, repair
        )


def _places(tree: LeslieTree, document: Document) -> Iterator[Finding]:
    """Yield findings about ids that are unsafe names, and records that state another place than theirs.

    See docs/design/formats/leslie.md#edge-case-14.
    """
    for thread, record in document.threads.items():
        if not is_safe(thread):
            words = f"the thread id {thread!r} can't be the name of a directory"
            yield Finding(Kind.UNSAFE, Severity.ERROR, RELATIONS, words, "rename it; reconcile does not use it", thread)
            continue
        stored = text(record.get("storage_path")) or ""
        expected = storage_path(thread, document.dialect)
        if stored.removesuffix("/") != expected.removesuffix("/") and stored.removesuffix("/") not in tree.storage:
            words = f"{thread}: its storage_path {stored} does not exist (expected {expected})"
            yield Finding(
                Kind.STORAGE, Severity.WARNING, RELATIONS, words, "correct it, or put the directory there", thread
            )


def _notes(document: Document, replayed: Replayed) -> Iterator[Finding]:
    """Yield findings that need no action."""

    def note(kind: Kind, words: str, subject: str = "", advice: str = "") -> Finding:
        return Finding(kind, Severity.NOTE, RELATIONS, words, advice, subject)

    for remark in replayed.notes:
        kind = Kind.HOLE if remark.oddity is Oddity.HOLE else Kind.UNKNOWN
        yield note(kind, f"operation {remark.operation}: {remark.words}", remark.operation)
    unspawned = [thread for thread, course in replayed.courses.items() if course.spawn is None]
    if unspawned:
        yield note(Kind.UNSPAWNED, f"no operation spawns {listed(unspawned)}")
    for thread, other in replayed.tolerated:
        yield note(Kind.UNEXPLAINED, f"{thread}: depends_on {other}", thread)
    if extra := unknown_keys(document.value):
        yield note(Kind.EXTRA, f"keys that Leslie does not know: {listed(extra)}", advice="move them into params")
    for thread, record in document.threads.items():
        course, updated = replayed.courses[thread], text(record.get("updated_at"))
        last, stored = times.instant_ns(course.last), times.instant_ns(updated or "")
        if last is not None and stored is not None and stored < last - _SECOND:
            words = f"{thread}: its updated_at {updated} is older than its last operation, {course.last}"
            yield note(Kind.CLOCK, words, thread)
