"""Checks of the directories of threads and of locks (docs/design/formats/leslie.md#failures)."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.formats.leslie.checks.control_files import duration, known_elsewhere, listed
from reconcile.formats.leslie.checks.model import (
    LEAD,
    LIVE,
    STALE_AFTER,
    STANDARD,
    Finding,
    Kind,
    LeslieTree,
    Make,
    RemoveLock,
    Repair,
    Rewrite,
    Severity,
)
from reconcile.formats.leslie.document import (
    BACKUP,
    RELATIONS,
    THREADS,
    Dialect,
    Document,
    is_safe,
    read_relations,
    texts,
    written,
)
from reconcile.formats.leslie.rebuild import rebuild, storage_path
from reconcile.formats.leslie.replay import Operation, replay
from reconcile.formats.leslie.union import merge
from reconcile.model.commands import typed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from reconcile.formats.leslie.checks.model import ThreadDirectory
    from reconcile.formats.leslie.document import Object, ObjectivesDocument
    from reconcile.formats.leslie.replay import Replayed

_TRANSCRIPT = re.compile(r"\.meta/transcripts/[0-9]{8}-[0-9]{4}-(?P<query>.+)\.txt")
_ASKS = "its origin is unknown, and a running scheduler starts an agent for it"


def place_findings(
    tree: LeslieTree,
    document: Document,
    replayed: Replayed,
    objectives: ObjectivesDocument | None,
    wanted: Collection[str],
) -> Iterator[Finding]:
    """Yield findings about directories without a record and records without a directory."""
    yield from _orphans(tree, document, replayed, objectives, wanted)
    if tree.blocked:
        words = f"{tree.blocked} in the place of a directory"
        yield Finding(Kind.LINK, Severity.ERROR, THREADS, words, "put the directory itself there")
        return
    for thread, record in document.threads.items():
        if not is_safe(thread):
            continue
        what = tree.threads[thread].what if thread in tree.threads else None
        if what not in (None, "a directory"):
            words, advice = f"{what} in the place of a directory", "put the directory itself there"
            yield Finding(Kind.NO_DIRECTORY, Severity.WARNING, f"{THREADS}/{thread}", words, advice, thread)
        elif what is not None:
            yield from _copies(tree.threads[thread], thread, replayed)
        elif str(record.get("storage_path")).removesuffix("/") not in tree.storage:
            step = Make(tuple(f"{THREADS}/{thread}/{name}" for name in STANDARD))
            repair = Repair.of(step, f"{THREADS}/{thread} made, empty")
            words = "the directory of a record is missing"
            advice = "create it, empty; its files are in the durable copy (reconcile recover ID) or in git"
            yield Finding(Kind.NO_DIRECTORY, Severity.NOTE, f"{THREADS}/{thread}", words, advice, thread, repair)


def lock_findings(tree: LeslieTree) -> Iterator[Finding]:
    """Yield findings about locks that no process holds or that can't be removed (docs/design/formats/leslie.md#f13).

    See docs/design/formats/leslie.md#edge-case-20 and docs/design/formats/leslie.md#edge-case-21.
    """
    for place, lock in tree.locks.items():
        age = f"{duration(lock.age)} old" if lock.age >= 0 else f"{duration(-lock.age)} ahead of the clock"
        kind, severity = Kind.LOCK, Severity.WARNING
        if lock.what != "a directory":
            words = f"{lock.what} in the place of a lock, {age}"
            yield Finding(kind, severity, place, words, "check it, then remove it by hand; Leslie can't")
        elif lock.is_live and not lock.names:
            words = f"a lock that is held, {age}"
            yield Finding(kind, Severity.NOTE, place, words, "wait until the command that holds it is done")
        elif lock.names:
            words = f"a lock that contains {listed(lock.names)}, {age} (a lock must be empty)"
            yield Finding(kind, severity, place, words, "check that, then remove it by hand; Leslie can't")
        elif lock.age < -LEAD:
            words = f"a lock that is {age} (at most {LEAD} seconds are valid)"
            yield Finding(kind, severity, place, words, "correct the clock; such a lock never becomes stale")
        else:
            words = f"a stale lock, {age} (after {STALE_AFTER:.0f} seconds a lock is stale)"
            repair = Repair.of(RemoveLock(place), f"{place} removed")
            yield Finding(kind, severity, place, words, "remove it: its holder is gone", repair=repair)


def _orphans(
    tree: LeslieTree,
    document: Document,
    replayed: Replayed,
    objectives: ObjectivesDocument | None,
    wanted: Collection[str],
) -> Iterator[Finding]:
    """Yield findings about threads without a record (docs/design/formats/leslie.md#f3).

    Those that are wanted are adopted together.
    """
    orphans = {
        thread: _aims(thread, objectives)
        for thread in known_elsewhere(tree)
        if thread not in document.threads and thread not in replayed.courses
    }
    homes = {thread: aims or _only_aim(objectives) for thread, aims in orphans.items()}
    saved = _saved(tree, document, orphans)
    able = document.dialect is Dialect.PROGRAM and tree.now
    adoptable = {thread: aims[0] for thread, aims in homes.items() if aims and is_safe(thread) and able}
    chosen = {thread: aim for thread, aim in adoptable.items() if f"{Kind.ORPHAN.number}:{thread}" in wanted}
    for thread, aims in orphans.items():
        directory = tree.threads.get(thread)
        seen = [_content(directory)] if directory is not None else []
        seen += [f"the objective {aim} lists it" for aim in aims]
        words = f"no record of the thread, but {' and '.join(seen)}"
        place = f"{THREADS}/{thread}"
        severity = Severity.NOTE if not aims and _is_transcripts(directory) else Severity.WARNING
        repair, advice = None, "check it, then move it away"
        if saved is not None and thread in saved.threads:
            step = Rewrite(RELATIONS, document.content, saved.content)
            asks = "the file has lost it, and it returns with its old status, perhaps active"
            repair = replace(Repair.of(step, f"{RELATIONS} merged with {RELATIONS}{BACKUP}"), on_request=asks)
            advice = f"on request its record and operations are restored from {RELATIONS}{BACKUP}: {asks}"
        elif thread in adoptable:
            adopted = chosen if thread in chosen else {thread: adoptable[thread]}
            words_of_repair = tuple(
                f"{adopted_thread}: adopted for {aim}, with a spawn by the system"
                for adopted_thread, aim in adopted.items()
            )
            asks = "" if thread in chosen else _ASKS
            repair = Repair(partial(_adopted, tree, document, adopted), words_of_repair, on_request=asks)
            advice = f"on request it is adopted: {_ASKS}"
        yield Finding(Kind.ORPHAN, severity, place, words, advice, thread, repair)


def _saved(tree: LeslieTree, document: Document, orphans: Collection[str]) -> Document | None:
    """Return the file merged with its backup, if the backup still has a missing thread; None otherwise.

    The backup has it after the file was lost and a command, even one that only reads, has written an empty file
    (docs/design/formats/leslie.md#backup).
    """
    content = tree.backup(RELATIONS).content
    backup = None if content is None else read_relations(content)
    if not isinstance(backup, Document) or backup.damage or backup.threads.keys().isdisjoint(orphans):
        return None
    merged = merge(document, backup).content
    whole = None if merged is None else read_relations(merged)
    return whole if isinstance(whole, Document) and not whole.damage else None


def _is_transcripts(directory: ThreadDirectory | None) -> bool:
    """Tell whether there are only transcripts, which Leslie writes for any id.

    See docs/design/formats/leslie.md#edge-case-23.
    """
    return directory is not None and bool(directory.files) and all(map(_TRANSCRIPT.fullmatch, directory.files))


def _content(directory: ThreadDirectory) -> str:
    return f"a directory with {listed(sorted(directory.files))}" if directory.files else "an empty directory"


def _aims(thread: str, objectives: ObjectivesDocument | None) -> list[str]:
    """Return the objectives that list a thread."""
    records = objectives.objectives if objectives is not None else {}
    return [objective for objective, record in records.items() if thread in texts(record.get("thread_ids"))]


def _only_aim(objectives: ObjectivesDocument | None) -> list[str]:
    return list(objectives.objectives) if objectives is not None and len(objectives.objectives) == 1 else []


def _adopted(tree: LeslieTree, document: Document, orphans: Mapping[str, str]) -> tuple[Rewrite]:
    """Append a spawn of each thread by the system to the log, and derive the rest; no parent is known."""
    threads, operations = dict(document.threads), list(document.operations)
    taken = {Operation(entry).id for entry in operations}
    for thread, aim in orphans.items():
        intent = _intent(thread, tree.threads.get(thread))
        params = {"thread_id": thread, "parent_id": None, "intent": intent, "objective": aim, "inherit": "none"}
        entry: Object = {"id": _new_id(thread, taken), "timestamp": tree.now, "command": "spawn"}
        operations.append(entry | {"operator": "system", "params": params | {"inherit_scope": [], "recovered": True}})
        record: Object = {"id": thread, "title": intent, "objective": aim, "created_at": tree.now, "status": "active"}
        record |= {"parent_id": None, "storage_path": storage_path(thread, Dialect.PROGRAM), "executor": "agent"}
        threads[thread] = record | {"updated_at": tree.now}
    value = {**document.value, "threads": threads, "operations": operations}
    made = type(document)(written(value), value, document.dialect, ())
    return (Rewrite(RELATIONS, document.content, rebuild(made, replay(made), tree.threads).content),)


def _intent(thread: str, directory: ThreadDirectory | None) -> str:
    """Return the title of the first transcript."""
    names = sorted(directory.files) if directory is not None else []
    queries = (match["query"] for name in names if (match := _TRANSCRIPT.fullmatch(name)))
    return next(queries, f"recovered {thread}")


def _new_id(thread: str, taken: set[str]) -> str:
    """Return an operation id that is made of the id of the thread, the same each time."""
    base = candidate = f"op-{thread.removeprefix('thread-')}"
    number = 1
    while candidate in taken:
        number += 1
        candidate = f"{base}-{number}"
    taken.add(candidate)
    return candidate


def _copies(directory: ThreadDirectory, thread: str, replayed: Replayed) -> Iterator[Finding]:
    """Yield a finding for each frozen reference that has no directory (F16): it has one even if it is empty.

    No program writes into ``context/live``. If that is missing too, git has carried the thread without its empty
    directories.
    """
    severity = Severity.WARNING if directory.has(LIVE) else Severity.NOTE
    for target in replayed.frozen.get(thread, ()):
        copy = f"context/inherited/{target}"
        if is_safe(target) and not directory.has(copy):
            words = f"{copy}, the frozen copy of a reference, is missing"
            advice = f"copy the present content: leslie reference --from {typed(thread)} --target {typed(target)}"
            yield Finding(Kind.NO_COPY, severity, f"{THREADS}/{thread}", words, advice, f"{thread}>{target}")
