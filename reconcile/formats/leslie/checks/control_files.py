"""Checks of the two control files: whether they can be read, and the best repair if not.

See docs/design/formats/leslie.md#f1, docs/design/formats/leslie.md#f2 and docs/design/formats/leslie.md#f14.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from reconcile.formats.leslie.checks.model import OLD, Finding, Kind, LeslieTree, Remove, Repair, Rewrite, Severity
from reconcile.formats.leslie.document import (
    BACKUP,
    OBJECTIVES,
    RELATIONS,
    Dialect,
    Document,
    ObjectivesDocument,
    read,
    read_objectives,
    texts,
    written,
)
from reconcile.formats.leslie.repair import RepairedFile, proposal, repair_objectives, repair_relations, salvage
from reconcile.formats.leslie.replay import Operation
from reconcile.model.snapshot import Fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    AnyDocument: TypeAlias = Document | ObjectivesDocument

_SHOWN = 8
"""The number of ids in a line; a truncated file may have lost thousands."""


class Control(Struct, frozen=True):
    """A control file: its document if it is sound, and the findings about the file."""

    name: str
    document: AnyDocument | None
    findings: tuple[Finding, ...]


def read_control(tree: LeslieTree, name: str) -> Control:
    """Read a control file with its backup and its temporary files."""
    file = tree.file(name)
    if file.instead:
        words = f"{file.instead} in the place of a file"
        advice = "put the file itself there" if "link" in file.instead else "check it, then run doctor again"
        return Control(name, None, (Finding(Kind.LINK, Severity.ERROR, name, words, advice),))
    document = None if file.content is None else _sound(name, file.content)
    if document is not None:
        return Control(name, document, (*_dialect(document), *_temporary_files(tree, name)))
    if file.content is None and tree.backup(name).content is None:
        return Control(name, None, ())
    return Control(name, None, (_damaged(tree, name, file.content),))


def _sound(name: str, content: bytes) -> AnyDocument | None:
    """Return the document, unless the program would treat the file as corrupt."""
    document = read(name, content)
    return None if isinstance(document, Fault) or document.damage else document


def _dialect(document: AnyDocument) -> Iterator[Finding]:
    if isinstance(document, Document) and document.dialect is Dialect.TEXT:
        words = f"records without executor and updated_at, as in {Dialect.TEXT} dialect (not {Dialect.PROGRAM})"
        yield Finding(Kind.DIALECT, Severity.NOTE, RELATIONS, words, "don't run a Leslie command on this file")


def _temporary_files(tree: LeslieTree, name: str) -> Iterator[Finding]:
    """Yield findings about temporary files beside a sound file."""
    for path, leftover in tree.leftovers.items():
        if leftover.target != name:
            continue
        if leftover.file.content is None:
            words = f"{leftover.file.instead or 'nothing'} in the place of a temporary file"
            yield Finding(Kind.LEFTOVER, Severity.NOTE, path, words, "check it, then move it away")
            continue
        words = f"a temporary file of {name}, {duration(leftover.age)} old"
        if leftover.age <= OLD:
            yield Finding(Kind.LEFTOVER, Severity.NOTE, path, words, "leave it: a program may still write it")
            continue
        repair = Repair.of(Remove(path, leftover.file.content, leftover.mtime_ns), f"{path} removed")
        yield Finding(Kind.LEFTOVER, Severity.WARNING, path, words, f"remove it: {name} is whole", repair=repair)


def _damaged(tree: LeslieTree, name: str, content: bytes | None) -> Finding:
    """Return a finding: damaged if something can be repaired (docs/design/formats/leslie.md#f1), lost otherwise."""
    problem = _said(name, content)
    repaired: RepairedFile | None = None
    if content is not None:
        backup = tree.backup(name).content
        repaired = repair_relations(content, backup) if name == RELATIONS else repair_objectives(content)
    if repaired is not None and repaired.content is None:
        decide = f"resolve the conflict in the file, then run doctor again: {listed(repaired.conflicts, '; ')}"
        return Finding(Kind.DAMAGED, Severity.ERROR, name, problem, decide)
    if repaired is not None and repaired.content is not None:
        repair = Repair.of(Rewrite(name, content, repaired.content), *repaired.words)
        advice = f"repair it in place without loss: {listed(repaired.words, '; ')}"
        if repaired.asks:
            repair = replace(repair, on_request=repaired.asks)
            advice = f"correct it by hand; or on request repair it in place, with loss: {listed(repaired.words, '; ')}"
        return Finding(Kind.DAMAGED, Severity.ERROR, name, problem, advice, repair=repair)
    copies = list(_copies(tree, name))
    by_hand = _by_hand(name, content)
    if not copies:
        if by_hand:
            return Finding(Kind.DAMAGED, Severity.ERROR, name, problem, by_hand)
        return _lost(tree, name, content, problem)
    place, best = max(copies, key=lambda copy: (_weight(copy[1]), copy[0].endswith(BACKUP)))
    loss = _loss(tree, content, best)
    words = (f"{name} restored from {place}", *loss)
    advice = f"restore it from {place}" + (f", which loses {' and '.join(loss)}" if loss else ", which is whole")
    repair = Repair.of(Rewrite(name, content, best.content), *words)
    if by_hand:
        repair = replace(repair, on_request="correcting the file by hand loses nothing")
        advice = f"{by_hand}; or on request {advice}"
    return Finding(Kind.DAMAGED, Severity.ERROR, name, problem, advice, repair=repair)


def _by_hand(name: str, content: bytes | None) -> str:
    """Return what a person can correct in a complete file with invalid values; empty if it is not complete."""
    document = None if content is None else read(name, content)
    if document is None or isinstance(document, Fault):
        return ""
    return f"correct it by hand: {listed(map(str, document.damage), '; ')}"


def _said(name: str, content: bytes | None) -> str:
    if content is None:
        return "the file is missing, but it has a backup"
    document = read(name, content)
    if isinstance(document, Fault):
        return document.words
    return f"{document.damage[0]}" + (f", and {len(document.damage) - 1} more" if len(document.damage) > 1 else "")


def _copies(tree: LeslieTree, name: str) -> Iterator[tuple[str, AnyDocument]]:
    """Yield older or unfinished copies of a control file that are sound."""
    candidates = [(name + BACKUP, tree.backup(name))]
    candidates += [(path, leftover.file) for path, leftover in tree.leftovers.items() if leftover.target == name]
    for place, file in candidates:
        document = None if file.content is None else _sound(name, file.content)
        if document is not None:
            yield place, document


def _weight(document: AnyDocument) -> tuple[int, int, str]:
    """Return a sort key for copies: the one with more content is greater."""
    metadata: Any = document.value.get("metadata")
    written_at = str(metadata.get("last_updated"))
    if isinstance(document, Document):
        return len(document.operations), len(document.threads), written_at
    return 0, len(document.objectives), written_at


def _loss(tree: LeslieTree, content: bytes | None, copy: AnyDocument) -> tuple[str, ...]:
    """Return what the damaged file still shows, or other places know, and the copy lacks."""
    left = salvage(content or b"")
    if isinstance(copy, ObjectivesDocument):
        gone = sorted(left.objectives.keys() - copy.objectives.keys())
        return (f"the objectives {listed(gone)}",) if gone else ()
    kept = {Operation(entry).id for entry in copy.operations}
    lost = [Operation(entry).id for entry in left.operations if Operation(entry).id not in kept]
    threads = [thread for thread in known_elsewhere(tree) if thread not in copy.threads]
    words = (f"the operations {listed(lost)}",) if lost else ()
    return (*words, f"the record of {listed(threads)}") if threads else words


def known_elsewhere(tree: LeslieTree) -> list[str]:
    """Return the ids of threads that directories and objectives contain."""
    listed_by: Iterable[str] = ()
    file = tree.file(OBJECTIVES).content
    if file is not None and isinstance(document := read_objectives(file), ObjectivesDocument):
        listed_by = [
            directory for objective in document.objectives.values() for directory in texts(objective.get("thread_ids"))
        ]
    directories = [thread for thread, directory in tree.threads.items() if directory.what == "a directory"]
    return sorted({*directories, *listed_by})


def _lost(tree: LeslieTree, name: str, content: bytes | None, words: str) -> Finding:
    contents = [content_left for content_left in (content, tree.backup(name).content) if content_left]
    backup = tree.backup(name)
    words += f"; {name}{BACKUP} is damaged too" if backup.content is not None else f"; {name}{BACKUP} is missing"
    if name != RELATIONS:
        return _salvaged(name, content, words, *_lost_objectives(contents))
    after = proposal(*contents)
    document = None if after is None else read(name, after)
    if after is None or not isinstance(document, Document) or document.damage:
        return _salvaged(name, content, words, None, "nothing")
    unrecorded = [thread for thread in known_elsewhere(tree) if thread not in document.threads]
    what = f"the records of {listed(document.threads)}" if document.threads else "no record"
    what += f"; {len(document.operations)} operations" if document.operations else "; no operation"
    if unrecorded:
        what += f"; only the id of {listed(unrecorded)}"
    return _salvaged(name, content, words, after, what)


def _lost_objectives(contents: Iterable[bytes]) -> tuple[bytes | None, str]:
    left = max(map(salvage, contents), key=lambda piece: len(piece.objectives), default=salvage(b""))
    made = written({"version": "1.0", **left.value, "objectives": left.objectives})
    repaired = repair_objectives(made)
    made = repaired.content if repaired is not None and repaired.content is not None else made
    sound = bool(left.objectives) and _sound(OBJECTIVES, made) is not None
    return (made, f"the objectives {listed(left.objectives)}") if sound else (None, "nothing")


def _salvaged(name: str, content: bytes | None, said: str, after: bytes | None, what: str) -> Finding:
    advice = f"run no Leslie command; on request this is recovered: {what}"
    repair = None
    if after is not None:
        asks = "a file that is rebuilt from damaged parts needs a check"
        repair = replace(Repair.of(Rewrite(name, content, after), what), on_request=asks)
    return Finding(Kind.LOST, Severity.ERROR, name, said, advice, repair=repair)


def listed(names: Iterable[str], between: str = ", ") -> str:
    """Return some names for a line."""
    every = list(names)
    omitted = len(every) - _SHOWN
    return between.join(every[:_SHOWN]) + (f" and {omitted} more" if omitted > 0 else "")


def duration(seconds: float) -> str:
    """Return a time in words, in the largest useful unit."""
    for unit, length in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.1f} seconds"
