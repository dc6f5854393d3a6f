"""A damaged control file made readable with the least change, or what is left of one that was cut off.

See docs/design/formats/leslie.md#f1 and docs/design/formats/leslie.md#edge-case-17. A repair is tried before any older
copy: everything is still there behind a byte order mark, conflict markers of git, another spelling of a time or a
missing field.
"""

from __future__ import annotations

import json
import re
from copy import deepcopy
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from reconcile.formats.leslie.document import (
    Document,
    ObjectivesDocument,
    dotted,
    is_time,
    read_objectives,
    read_relations,
    text,
    written,
)
from reconcile.formats.leslie.rebuild import rebuild
from reconcile.formats.leslie.replay import replay
from reconcile.formats.leslie.union import conflicting_sides, unite_marked, unite_objectives
from reconcile.model.snapshot import Fault

if TYPE_CHECKING:
    from reconcile.formats.leslie.document import Object, Violation
    from reconcile.formats.leslie.replay import Course, Replayed
    from reconcile.formats.leslie.union import United


_SPACE = re.compile(r"[ \t\n\r]*")
_LEVELS = 2
"""Containers that are gone into when they are torn: the file, and each section of it."""


class Salvaged(Struct, frozen=True):
    """The complete members of a torn file. ``closed`` names the sections that are whole."""

    value: Object
    closed: frozenset[str] = field(default_factory=frozenset)

    @property
    def threads(self) -> dict[str, Object]:
        """The complete records of threads."""
        return _objects(self.value.get("threads"))

    @property
    def operations(self) -> list[Object]:
        """The complete operations."""
        found = self.value.get("operations")
        return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []

    @property
    def objectives(self) -> dict[str, Object]:
        """The complete objectives."""
        return _objects(self.value.get("objectives"))


def salvage(content: bytes) -> Salvaged:
    """Read a file as far as it goes."""
    text = content.removeprefix(b"\xef\xbb\xbf").decode(errors="replace")
    closed: list[str] = []
    value, _ = _torn(text, _skip(text, 0), closed, _LEVELS)
    return Salvaged(value if isinstance(value, dict) else {}, frozenset(closed))


def from_whole_log(content: bytes) -> bytes | None:
    """The file again, where nothing but derived data was cut off: threads and operations are there to the last."""
    found = salvage(content)
    if not {"threads", "operations"} <= found.closed:
        return None
    return _written({**found.value, "relations": {}})


def proposal(*torn: bytes) -> bytes | None:
    """A file made of all that is left of several torn ones, None where that is nothing.

    See docs/design/formats/leslie.md#f2. The log is the longest one; records that no operation spawns stand for
    themselves.
    """
    pieces = sorted(map(salvage, torn), key=lambda each: (len(each.operations), len(each.threads)), reverse=True)
    threads = {thread: record for each in reversed(pieces) for thread, record in each.threads.items()}
    if not threads and not any(each.operations for each in pieces):
        return None
    best = pieces[0]
    parts = {"threads": threads, "operations": best.operations, "relations": {}}
    head: Object = {
        key: each.value[key] for key in ("version", "metadata") for each in reversed(pieces) if key in each.value
    }
    return _written({"version": "1.0", **head, **best.value, **parts})


def _written(value: Object) -> bytes | None:
    """A whole file; its derived data follow from its log."""
    found = read_relations(written(value))
    if isinstance(found, Fault):
        return None
    return _rebuilt(found)


def _rebuilt(document: Document) -> bytes:
    return rebuild(document, replay(document), frozenset()).content


def _objects(value: Any) -> dict[str, Object]:
    return {key: each for key, each in value.items() if isinstance(each, dict)} if isinstance(value, dict) else {}


def _torn(text: str, at: int, closed: list[str], levels: int) -> tuple[Any, bool]:
    """The container that begins at ``at``, as far as it goes, and whether it goes to its end."""
    opening = text[at : at + 1]
    if opening not in ("{", "[") or not opening:
        return None, False
    found: Any = {} if opening == "{" else []
    at = _skip(text, at + 1)
    if text[at : at + 1] in ("}", "]"):
        return found, True
    while True:
        key = None
        if opening == "{":
            key, at = _value(text, at)
            if not isinstance(key, str) or text[at : at + 1] != ":":
                return found, False
            at = _skip(text, at + 1)
        value, end = _value(text, at)
        whole = end >= 0
        if not whole and levels > 1:
            value, _ = _torn(text, at, closed, levels - 1)
        if whole and levels == _LEVELS and key is not None:
            closed.append(key)
        if whole or value is not None:
            _keep(found, key, value)
        if not whole or text[end : end + 1] != ",":
            return found, whole and text[end : end + 1] in ("}", "]")
        at = _skip(text, end + 1)


def _keep(container: Any, key: str | None, value: Any) -> None:
    if key is None:
        container.append(value)
    else:
        container[key] = value


def _value(text: str, at: int) -> tuple[Any, int]:
    """A whole value and the place after it and its white space; -1: there is none."""
    try:
        value, end = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None, -1
    after = _skip(text, end)
    # A number at the very end may be the beginning of a longer one.
    return (value, after) if after < len(text) or isinstance(value, (dict, list, str)) else (None, -1)


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None  # noqa: S101 - it matches nothing too
    return match.end()


_BOM = b"\xef\xbb\xbf"
_DECODER = json.JSONDecoder()
_NOT_MENDED = object()


class Mended(Struct, frozen=True):
    """A file made readable, and what was done to it; no content where that is for a person: ``conflicts`` say why."""

    content: bytes | None
    words: tuple[str, ...]
    conflicts: tuple[str, ...] = ()


def mend_relations(content: bytes) -> Mended | None:
    """The file with the least change that the program reads (in the design text's dialect: that has no damage)."""
    words: list[str] = []
    content = _stripped(content, words)
    found = read_relations(content)
    if isinstance(found, Fault):
        if conflicting_sides(content) is not None:
            united = unite_marked(content)
            if isinstance(united, Fault):
                return None
            if united.content is None:
                return Mended(None, (), united.conflicts)
            content, done = united.content, "both versions of the merge conflict united by their operations"
        elif (whole := from_whole_log(content)) is not None:
            content, done = whole, "the relations, which were cut off, written again from the log"
        else:
            return None
        words.append(done)
        found = read_relations(content)
    if isinstance(found, Fault):
        return None
    if found.damage:
        found = _repaired(found, words)
    return Mended(found.content, tuple(words)) if words and not found.damage else None


def mend_objectives(content: bytes) -> Mended | None:
    """As `mend_relations`, of ``objectives.json``; what is derived there is left for its own finding."""
    words: list[str] = []
    content = _stripped(content, words)
    found = read_objectives(content)
    if isinstance(found, Fault):
        united = _united_objectives(content)
        if united is None or united.content is None:
            return None if united is None else Mended(None, (), united.conflicts)
        words.append("both versions of the merge conflict united")
        found = read_objectives(united.content)
    if isinstance(found, Fault):
        return None
    value = deepcopy(found.value)
    for violation in found.violations:
        old = _at(value, violation)
        new = _in_utc(old) if isinstance(old, str) else _NOT_MENDED
        if new is _NOT_MENDED:
            new = _better_objective(violation, value)
        _put(value, violation, new, words)
    mended = read_objectives(written(value)) if found.violations else found
    if isinstance(mended, ObjectivesDocument) and words and not mended.violations:
        return Mended(mended.content, tuple(words))
    return None


def _united_objectives(content: bytes) -> United | None:
    sides = conflicting_sides(content)
    if sides is None:
        return None
    ours, theirs = map(read_objectives, sides)
    if isinstance(ours, Fault) or isinstance(theirs, Fault):
        return None
    return unite_objectives(ours, theirs, {})


def _better_objective(violation: Violation, value: Object) -> Any:
    times = [record.get("updated_at") for record in value["objectives"].values()]
    head = _head(violation, "objective_count", len(value["objectives"]), times)
    derived = {"thread_ids": [], "status": "active"}
    return derived.get(str(violation.path[-1]), head) if len(violation.path) == 3 else head


def _stripped(content: bytes, words: list[str]) -> bytes:
    """Without what stands before or behind the value."""
    if content.startswith(_BOM):
        words.append("without the byte order mark at its start")
        content = content[len(_BOM) :]
    try:
        decoded = content.decode()
        value, end = _DECODER.raw_decode(decoded)
    except (ValueError, RecursionError):
        return content
    rest = decoded[end:]
    if isinstance(value, dict) and rest.strip():
        words.append(f"without what stands behind its end ({len(rest.strip())} characters)")
        return (decoded[:end] + "\n").encode()
    return content


def _repaired(document: Document, words: list[str]) -> Document:
    value = deepcopy(document.value)
    replayed = replay(document)
    for violation in document.damage:
        _put(value, violation, _better(violation, value, replayed), words)
    derived = any(violation.path[0] == "relations" for violation in document.damage)
    if derived:
        raw = value.get("relations")
        entries = raw if isinstance(raw, dict) else {}
        value["relations"] = {thread: {**entries[thread], **entry} for thread, entry in document.relations.items()}
    mended = read_relations(written(value))
    if isinstance(mended, Fault):
        return document
    if derived:
        mended = read_relations(rebuild(mended, replay(mended), frozenset()).content)
        words.append("the relations written again from the log")
    return document if isinstance(mended, Fault) else mended


def _better(violation: Violation, value: Object, replayed: Replayed) -> Any:
    """What stands where the program rejects what is there; `_NOT_MENDED` where nothing says it."""
    path = violation.path
    old = _at(value, violation)
    if isinstance(old, str) and (instant := _in_utc(old)) is not _NOT_MENDED:
        return instant
    if len(path) == 3 and path[0] == "threads":
        thread = str(path[1])
        if path[2] == "status" and (
            thread in replayed.holes or replayed.courses[thread].fields.get("status") in (None, "active")
        ):
            return _NOT_MENDED  # the log doesn't say it, or an agent would be started by it
        return _better_field(str(path[2]), value["threads"][thread], replayed.courses[thread])
    if path[0] == "relations":
        return _NOT_MENDED  # all of it is written again
    times = [entry.get("timestamp") for entry in value["operations"]]
    times += [record.get(key) for record in value["threads"].values() for key in ("created_at", "updated_at")]
    return _head(violation, "thread_count", len(value["threads"]), times)


def _head(violation: Violation, counted: str, count: int, times: list[Any]) -> Any:
    """What stands in every file: its version, how many it holds, and its latest time."""
    good = (time for time in times if isinstance(time, str) and is_time(time))
    latest = max(good, default="1970-01-01T00:00:00.000Z")
    return {
        "version": "1.0",
        "metadata": {"last_updated": latest, counted: count},
        "metadata.last_updated": latest,
        f"metadata.{counted}": count,
    }.get(dotted(violation.path), _NOT_MENDED)


def _better_field(key: str, record: Object, course: Course) -> Any:
    if key == "tags":
        return None
    if course.fields.get(key):
        return course.fields[key]
    return {
        "executor": "agent",
        "parent_id": course.fields.get("parent_id"),
        "updated_at": course.last or text(record.get("created_at")) or _NOT_MENDED,
    }.get(key, _NOT_MENDED)


def _put(value: Object, violation: Violation, new: Any, words: list[str]) -> None:
    if new is _NOT_MENDED:
        return
    container: Any = value
    *above, last = violation.path
    for part in above:
        container = container[part]
    if last == "tags":
        del container[last]
        words.append(f"{dotted(violation.path)}: {violation.found} taken out")
        return
    container[last] = new
    shown = new if isinstance(new, str) else json.dumps(new)
    words.append(f"{dotted(violation.path)}: {violation.found} -> {shown}")


def _at(value: Any, violation: Violation) -> Any:
    for part in violation.path:
        if isinstance(value, dict) and part not in value:
            return None
        value = value[part]
    return value


def _in_utc(value: str) -> Any:
    """The same instant as the program spells it. A time without a zone could be any, and stays."""
    try:
        instant = datetime.fromisoformat(value)
    except ValueError:
        return _NOT_MENDED
    if instant.tzinfo is None or is_time(value):
        return _NOT_MENDED
    if not instant.utcoffset():
        whole = value[:10] + "T" + value[11:]
        for suffix in ("+00:00", "-00:00", "+0000", "+00", "z"):
            whole = whole.removesuffix(suffix)
        if is_time(spelled := whole.removesuffix("Z") + "Z"):
            return spelled
    exact = instant.astimezone(UTC).replace(tzinfo=None)
    return exact.isoformat(timespec="microseconds" if exact.microsecond % 1000 else "milliseconds") + "Z"
