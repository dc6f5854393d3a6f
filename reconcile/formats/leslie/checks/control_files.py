"""The two control files themselves: can they be read, and if not, what is the best that is left.

See docs/design/formats/leslie.md#f1, docs/design/formats/leslie.md#f2 and docs/design/formats/leslie.md#f14.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from reconcile.formats.leslie.checks.model import OLD, Finding, Found, Kind, Remove, Repair, Rewrite, Severity
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
from reconcile.formats.leslie.operations import Operation
from reconcile.formats.leslie.repair import Mended, mend_objectives, mend_relations, proposal, salvage
from reconcile.model.snapshot import Fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    AnyDocument: TypeAlias = Document | ObjectivesDocument

_SHOWN = 8
"""Ids in a line; a torn file may have lost thousands."""


class Control(Struct, frozen=True):
    """A control file: its document where it can be worked with, and what is wrong with the file."""

    name: str
    document: AnyDocument | None
    findings: tuple[Finding, ...]


def read_control(found: Found, name: str) -> Control:
    """A control file with its backup and its temporary files."""
    file = found.file(name)
    if file.instead:
        words = f"found {file.instead}, expected a file"
        advice = "put the file itself there" if "link" in file.instead else "see to what is there, then look again"
        return Control(name, None, (Finding(Kind.LINK, Severity.ERROR, name, words, advice),))
    document = None if file.content is None else _sound(name, file.content)
    if document is not None:
        return Control(name, document, (*_dialect(document), *_leftovers(found, name)))
    if file.content is None and found.backup(name).content is None:
        return Control(name, None, ())
    return Control(name, None, (_damaged(found, name, file.content),))


def _sound(name: str, content: bytes) -> AnyDocument | None:
    """The document, unless the program would take it for corrupt."""
    found = read(name, content)
    return None if isinstance(found, Fault) or found.damage else found


def _dialect(document: AnyDocument) -> Iterator[Finding]:
    if isinstance(document, Document) and document.dialect is Dialect.TEXT:
        words = f"found records without executor and updated_at, in {Dialect.TEXT} dialect, expected {Dialect.PROGRAM}"
        yield Finding(Kind.DIALECT, Severity.NOTE, RELATIONS, words, "don't run a Leslie command on it as it is")


def _leftovers(found: Found, name: str) -> Iterator[Finding]:
    """Temporary files beside a sound file."""
    for path, each in found.leftovers.items():
        if each.target != name:
            continue
        if each.file.content is None:
            words = f"found {each.file.instead or 'nothing'} in the place of a temporary file, expected none"
            yield Finding(Kind.LEFTOVER, Severity.NOTE, path, words, "see whose it is")
            continue
        words = f"found a temporary file of {name}, {duration(each.age)} old, expected none"
        if each.age <= OLD:
            yield Finding(Kind.LEFTOVER, Severity.NOTE, path, words, "leave it: it may still be written")
            continue
        repair = Repair.of(Remove(path, each.file.content, each.mtime_ns), f"{path} removed")
        yield Finding(Kind.LEFTOVER, Severity.WARNING, path, words, f"remove it: {name} is whole", repair=repair)


def _damaged(found: Found, name: str, content: bytes | None) -> Finding:
    """Damaged where something can be made of it (docs/design/formats/leslie.md#f1), lost where nothing can."""
    said = _said(name, content)
    mended: Mended | None = None
    if content is not None:
        mended = mend_relations(content) if name == RELATIONS else mend_objectives(content)
    if mended is not None and mended.content is None:
        decide = f"decide in the file, then look again: {listed(mended.conflicts, '; ')}"
        return Finding(Kind.DAMAGED, Severity.ERROR, name, said, decide)
    if mended is not None and mended.content is not None:
        repair = Repair.of(Rewrite(name, content, mended.content), *mended.words)
        advice = f"mend it in place, nothing is lost: {listed(mended.words, '; ')}"
        return Finding(Kind.DAMAGED, Severity.ERROR, name, said, advice, repair=repair)
    copies = list(_copies(found, name))
    by_hand = _by_hand(name, content)
    if not copies:
        if by_hand:
            return Finding(Kind.DAMAGED, Severity.ERROR, name, said, by_hand)
        return _lost(found, name, content, said)
    place, best = max(copies, key=lambda copy: (_weight(copy[1]), copy[0].endswith(BACKUP)))
    loss = _loss(found, content, best)
    words = (f"{name} taken from {place}", *loss)
    advice = f"take {place}, which is whole" + (f"; what that loses: {'; '.join(loss)}" if loss else "")
    repair = Repair.of(Rewrite(name, content, best.content), *words)
    if by_hand:
        repair = replace(repair, on_request="correcting the file by hand loses nothing")
        advice = f"{by_hand}; or, on request, {advice}"
    return Finding(Kind.DAMAGED, Severity.ERROR, name, said, advice, repair=repair)


def _by_hand(name: str, content: bytes | None) -> str:
    """What a person can do about a file that is whole, but for values that nothing tells; empty: it isn't."""
    found = None if content is None else read(name, content)
    if found is None or isinstance(found, Fault):
        return ""
    return f"correct it by hand: {listed(map(str, found.damage), '; ')}"


def _said(name: str, content: bytes | None) -> str:
    if content is None:
        return "found nothing, expected the file that its backup is of"
    found = read(name, content)
    if isinstance(found, Fault):
        return f"found {found.found}, expected {found.expected}"
    return f"{found.damage[0]}" + (f", and {len(found.damage) - 1} more" if len(found.damage) > 1 else "")


def _copies(found: Found, name: str) -> Iterator[tuple[str, AnyDocument]]:
    """Older or unfinished copies of a control file that are sound."""
    candidates = [(name + BACKUP, found.backup(name))]
    candidates += [(path, each.file) for path, each in found.leftovers.items() if each.target == name]
    for place, file in candidates:
        document = None if file.content is None else _sound(name, file.content)
        if document is not None:
            yield place, document


def _weight(document: AnyDocument) -> tuple[int, int, str]:
    """Which of two copies tells more."""
    metadata: Any = document.value.get("metadata")
    written_at = str(metadata.get("last_updated"))
    if isinstance(document, Document):
        return len(document.operations), len(document.threads), written_at
    return 0, len(document.objectives), written_at


def _loss(found: Found, content: bytes | None, copy: AnyDocument) -> tuple[str, ...]:
    """What the damaged file still shows, or other places know, and the copy lacks."""
    left = salvage(content or b"")
    if isinstance(copy, ObjectivesDocument):
        gone = sorted(left.objectives.keys() - copy.objectives.keys())
        return (f"the objectives {listed(gone)}",) if gone else ()
    kept = {Operation(entry).id for entry in copy.operations}
    lost = [Operation(entry).id for entry in left.operations if Operation(entry).id not in kept]
    threads = [thread for thread in known_elsewhere(found) if thread not in copy.threads]
    words = (f"the operations {listed(lost)}",) if lost else ()
    return (*words, f"the record of {listed(threads)}, which is only known elsewhere") if threads else words


def known_elsewhere(found: Found) -> list[str]:
    """Ids of threads that directories and objectives know."""
    listed_by: Iterable[str] = ()
    file = found.file(OBJECTIVES).content
    if file is not None and isinstance(document := read_objectives(file), ObjectivesDocument):
        listed_by = [each for objective in document.objectives.values() for each in texts(objective.get("thread_ids"))]
    directories = [thread for thread, each in found.threads.items() if each.what == "a directory"]
    return sorted({*directories, *listed_by})


def _lost(found: Found, name: str, content: bytes | None, said: str) -> Finding:
    torn = [each for each in (content, found.backup(name).content) if each]
    backup = found.backup(name)
    said += f"; {name}{BACKUP} is no better" if backup.content is not None else f"; there is no {name}{BACKUP}"
    if name != RELATIONS:
        return _salvaged(name, content, said, *_lost_objectives(torn))
    after = proposal(*torn)
    document = None if after is None else read(name, after)
    if after is None or not isinstance(document, Document) or document.damage:
        return _salvaged(name, content, said, None, "nothing")
    rest = [thread for thread in known_elsewhere(found) if thread not in document.threads]
    what = f"the records of {listed(document.threads)}" if document.threads else "no record"
    what += f"; {len(document.operations)} operations" if document.operations else "; no operation"
    if rest:
        what += f"; only the id of {listed(rest)}, by its directory or objective"
    return _salvaged(name, content, said, after, what)


def _lost_objectives(torn: Iterable[bytes]) -> tuple[bytes | None, str]:
    left = max(map(salvage, torn), key=lambda each: len(each.objectives), default=salvage(b""))
    made = written({"version": "1.0", **left.value, "objectives": left.objectives})
    mended = mend_objectives(made)
    made = mended.content if mended is not None and mended.content is not None else made
    sound = bool(left.objectives) and _sound(OBJECTIVES, made) is not None
    return (made, f"the objectives {listed(left.objectives)}") if sound else (None, "nothing")


def _salvaged(name: str, content: bytes | None, said: str, after: bytes | None, what: str) -> Finding:
    advice = f"run no Leslie command; what can be salvaged: {what}"
    repair = None
    if after is not None:
        asks = "what is put together from a torn file is a proposal"
        repair = replace(Repair.of(Rewrite(name, content, after), what), on_request=asks)
    return Finding(Kind.LOST, Severity.ERROR, name, said, advice, repair=repair)


def listed(names: Iterable[str], between: str = ", ") -> str:
    """Some names for a line."""
    found = list(names)
    rest = len(found) - _SHOWN
    return between.join(found[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def duration(seconds: float) -> str:
    """A time in words, in the unit that says most."""
    for unit, length in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.1f} seconds"
