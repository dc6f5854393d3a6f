"""Repairs a damaged control file with the least change, or returns what is left of a truncated one.

See docs/design/formats/leslie.md#f1 and docs/design/formats/leslie.md#edge-case-17. A repair is tried before any older
copy: behind a byte order mark, conflict markers of git, another spelling of a time or a missing field, everything is
still there.
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
from reconcile.formats.leslie.replay import replay, spawned
from reconcile.formats.leslie.union import conflicting_sides, merge_marked, merge_objectives
from reconcile.model.snapshot import Fault

if TYPE_CHECKING:
    from reconcile.formats.leslie.document import Object, Violation
    from reconcile.formats.leslie.replay import Course, Replayed
    from reconcile.formats.leslie.union import Merged


_SPACE = re.compile(r"[ \t\n\r]*")
_LEVELS = 2
"""Levels of truncated containers that are entered: the file, and each of its sections."""


class Salvaged(Struct, frozen=True):
    """The complete members of a truncated file. ``closed`` are the names of the complete sections.

    ``replaced`` says in words which parts of the text the value has only in another form.
    """

    value: Object
    closed: frozenset[str] = field(default_factory=frozenset)
    replaced: tuple[str, ...] = ()

    @property
    def threads(self) -> dict[str, Object]:
        """The complete records of threads."""
        return _objects(self.value.get("threads"))

    @property
    def operations(self) -> list[Object]:
        """The complete operations."""
        operations = self.value.get("operations")
        return (
            [operation for operation in operations if isinstance(operation, dict)]
            if isinstance(operations, list)
            else []
        )

    @property
    def relations(self) -> dict[str, Object]:
        """The complete entries of the relations."""
        return _objects(self.value.get("relations"))

    @property
    def objectives(self) -> dict[str, Object]:
        """The complete objectives."""
        return _objects(self.value.get("objectives"))


def salvage(content: bytes) -> Salvaged:
    """Read a truncated file as far as possible."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    replaced = ["bytes that are not UTF-8 replaced by U+FFFD"] if _is_in_another_encoding(content) else []
    constants: list[str] = []
    decoder = json.JSONDecoder(parse_constant=constants.append)  # it returns None, which is null
    text, closed = content.decode(errors="replace"), list[str]()
    value, _ = _container(decoder, text, _skip(text, 0), closed, _LEVELS)
    replaced += [f"{constant} replaced by null" for constant in dict.fromkeys(constants)]
    return Salvaged(value if isinstance(value, dict) else {}, frozenset(closed), tuple(replaced))


def _is_in_another_encoding(content: bytes) -> bool:
    """Tell whether bytes are not UTF-8, other than a character that is cut at the end."""
    try:
        content.decode()
    except UnicodeDecodeError as error:
        return error.reason != "unexpected end of data"
    return False


def _from_whole_log(content: bytes, backup: bytes | None) -> RepairedFile | None:
    """Return the whole file if only derived data was cut off: all threads and operations are complete.

    The log does not have the references of a thread that no operation spawns. They are those of its entry in the file,
    or else in its backup.
    """
    left, older = salvage(content), salvage(backup or b"")
    if not {"threads", "operations"} <= left.closed:
        return None
    relations = {**older.relations, **left.relations}
    made = _rebuilt_file({**left.value, "relations": relations})
    known = spawned(left.operations).keys() | relations.keys()
    gone = [f"without the references of {thread}" for thread in left.threads if thread not in known]
    done = "its end completed" if "relations" in left.closed else "the truncated relations rebuilt from the log"
    words = left.replaced if "relations" in left.closed and left.replaced else (done, *left.replaced)
    asks = "the repaired file lacks some of its text" if left.replaced else ""
    asks = "no operation spawns these threads, and no backup has their references" if gone else asks
    return None if made is None else RepairedFile(made, (*words, *gone), asks=asks)


def proposal(*truncated: bytes) -> bytes | None:
    """Return a file made of all that is left of several truncated ones, or None if nothing is left.

    See docs/design/formats/leslie.md#f2. The log is the longest of them. Records that no operation spawns are kept as
    they are.
    """
    pieces = sorted(
        map(salvage, truncated), key=lambda piece: (len(piece.operations), len(piece.threads)), reverse=True
    )
    threads = {thread: record for piece in reversed(pieces) for thread, record in piece.threads.items()}
    if not threads and not any(piece.operations for piece in pieces):
        return None
    best = pieces[0]
    relations = {thread: entry for piece in reversed(pieces) for thread, entry in piece.relations.items()}
    parts = {"threads": threads, "operations": best.operations, "relations": relations}
    head: Object = {
        key: piece.value[key] for key in ("version", "metadata") for piece in reversed(pieces) if key in piece.value
    }
    return _rebuilt_file({"version": "1.0", **head, **best.value, **parts})


def _rebuilt_file(value: Object) -> bytes | None:
    """Return a complete file whose derived data follow from its log; None if it can't be read."""
    document = read_relations(written(value))
    if isinstance(document, Fault):
        return None
    return _rebuilt_content(document)


def _rebuilt_content(document: Document) -> bytes:
    return rebuild(document, replay(document), frozenset()).content


def _objects(value: Any) -> dict[str, Object]:
    return {key: member for key, member in value.items() if isinstance(member, dict)} if isinstance(value, dict) else {}


def _container(decoder: json.JSONDecoder, text: str, at: int, closed: list[str], levels: int) -> tuple[Any, bool]:
    """Return the container that begins at ``at``, as far as it is complete, and whether its end is reached."""
    opening = text[at : at + 1]
    if opening not in ("{", "[") or not opening:
        return None, False
    container: Any = {} if opening == "{" else []
    at = _skip(text, at + 1)
    if text[at : at + 1] in ("}", "]"):
        return container, True
    while True:
        key = None
        if opening == "{":
            key, at = _value(decoder, text, at)
            if not isinstance(key, str) or text[at : at + 1] != ":":
                return container, False
            at = _skip(text, at + 1)
        value, end = _value(decoder, text, at)
        whole = end >= 0
        if not whole and levels > 1:
            value, _ = _container(decoder, text, at, closed, levels - 1)
        if whole and levels == _LEVELS and key is not None:
            closed.append(key)
        if whole or value is not None:
            _add_member(container, key, value)
        if not whole or text[end : end + 1] != ",":
            return container, whole and text[end : end + 1] in ("}", "]")
        at = _skip(text, end + 1)


def _add_member(container: Any, key: str | None, value: Any) -> None:
    if key is None:
        container.append(value)
    else:
        container[key] = value


def _value(decoder: json.JSONDecoder, text: str, at: int) -> tuple[Any, int]:
    """Return a complete value, and the position after it and its white space; -1 if there is none."""
    try:
        value, end = decoder.raw_decode(text, at)
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
_NO_VALUE = object()


class RepairedFile(Struct, frozen=True):
    """The repaired content, and the repairs in words. Without content a person must decide about ``conflicts``.

    ``asks`` is the reason why it needs a request, because the repair loses something; empty: it loses nothing.
    """

    content: bytes | None
    words: tuple[str, ...]
    conflicts: tuple[str, ...] = ()
    asks: str = ""


def repair_relations(content: bytes, backup: bytes | None = None) -> RepairedFile | None:
    """Return the file with the least change after which it has no damage in its own dialect.

    ``backup`` may have what no log has.
    """
    words: list[str] = []
    asks = ""
    content = _stripped(content, words)
    document = read_relations(content)
    if isinstance(document, Fault):
        if conflicting_sides(content) is not None:
            merged = merge_marked(content)
            if isinstance(merged, Fault):
                return None
            if merged.content is None:
                return RepairedFile(None, (), merged.conflicts)
            content = merged.content
            words.append("both versions of the merge conflict merged by their operations")
        elif (whole := _from_whole_log(content, backup)) is not None and whole.content is not None:
            content, asks = whole.content, whole.asks
            words += whole.words
        else:
            return None
        document = read_relations(content)
    if isinstance(document, Fault):
        return None
    if document.damage:
        document = _with_values_repaired(document, words)
    return RepairedFile(document.content, tuple(words), asks=asks) if words and not document.damage else None


def repair_objectives(content: bytes) -> RepairedFile | None:
    """Repair ``objectives.json`` as `repair_relations`. Differences in derived data have a finding of their own."""
    words: list[str] = []
    content = _stripped(content, words)
    document = read_objectives(content)
    if isinstance(document, Fault):
        merged = _merged_objectives(content)
        if merged is None or merged.content is None:
            return None if merged is None else RepairedFile(None, (), merged.conflicts)
        words.append("both versions of the merge conflict merged")
        document = read_objectives(merged.content)
    if isinstance(document, Fault):
        return None
    value = deepcopy(document.value)
    for violation in document.violations:
        old = _value_at(value, violation)
        new = _in_utc(old) if isinstance(old, str) else _NO_VALUE
        if new is _NO_VALUE:
            new = _objective_replacement(violation, value)
        _set_value(value, violation, new, words)
    repaired = read_objectives(written(value)) if document.violations else document
    if isinstance(repaired, ObjectivesDocument) and words and not repaired.violations:
        return RepairedFile(repaired.content, tuple(words))
    return None


def _merged_objectives(content: bytes) -> Merged | None:
    sides = conflicting_sides(content)
    if sides is None:
        return None
    first, second = map(read_objectives, sides)
    if isinstance(first, Fault) or isinstance(second, Fault):
        return None
    return merge_objectives(first, second, {})


def _objective_replacement(violation: Violation, value: Object) -> Any:
    times = [record.get("updated_at") for record in value["objectives"].values()]
    head = _head(violation, "objective_count", len(value["objectives"]), times)
    derived = {"thread_ids": [], "status": "active"}
    return derived.get(str(violation.path[-1]), head) if len(violation.path) == 3 else head


def _stripped(content: bytes, words: list[str]) -> bytes:
    """Remove a byte order mark, and what follows the end of the value."""
    if content.startswith(_BOM):
        words.append("without the byte order mark at its start")
        content = content[len(_BOM) :]
    try:
        decoded = content.decode()
        value, end = _DECODER.raw_decode(decoded)
    except (ValueError, RecursionError):
        return content
    trailing = decoded[end:]
    if isinstance(value, dict) and trailing.strip():
        words.append(f"without the text after its end ({len(trailing.strip())} characters)")
        return (decoded[:end] + "\n").encode()
    return content


def _with_values_repaired(document: Document, words: list[str]) -> Document:
    value = deepcopy(document.value)
    replayed = replay(document)
    for violation in document.damage:
        _set_value(value, violation, _replacement(violation, value, replayed), words)
    derived = any(violation.path[0] == "relations" for violation in document.damage)
    if derived:
        raw = value.get("relations")
        entries = raw if isinstance(raw, dict) else {}
        value["relations"] = {thread: {**entries[thread], **entry} for thread, entry in document.relations.items()}
    repaired = read_relations(written(value))
    if isinstance(repaired, Fault):
        return document
    if derived:
        repaired = read_relations(rebuild(repaired, replay(repaired), frozenset()).content)
        words.append("the relations rebuilt from the log")
    return document if isinstance(repaired, Fault) else repaired


def _replacement(violation: Violation, value: Object, replayed: Replayed) -> Any:
    """Return the value to write for a violation; `_NO_VALUE` if nothing determines it."""
    path = violation.path
    old = _value_at(value, violation)
    if isinstance(old, str) and (instant := _in_utc(old)) is not _NO_VALUE:
        return instant
    if len(path) == 3 and path[0] == "threads":
        thread = str(path[1])
        if path[2] == "status" and (
            thread in replayed.holes or replayed.courses[thread].fields.get("status") in (None, "active")
        ):
            return _NO_VALUE  # the log does not determine it, or it would start an agent
        return _field_replacement(str(path[2]), old, value["threads"][thread], replayed.courses[thread])
    if path[0] == "relations":
        return _NO_VALUE  # the whole section is rebuilt
    times = [entry.get("timestamp") for entry in value["operations"]]
    times += [record.get(key) for record in value["threads"].values() for key in ("created_at", "updated_at")]
    return _head(violation, "thread_count", len(value["threads"]), times)


def _head(violation: Violation, counted: str, count: int, times: list[Any]) -> Any:
    """Return the value of a member that every file has: its version, its number of records, its latest time."""
    good = (time for time in times if isinstance(time, str) and is_time(time))
    latest = max(good, default="1970-01-01T00:00:00.000Z")
    return {
        "version": "1.0",
        "metadata": {"last_updated": latest, counted: count},
        "metadata.last_updated": latest,
        f"metadata.{counted}": count,
    }.get(dotted(violation.path), _NO_VALUE)


def _field_replacement(key: str, old: Any, record: Object, course: Course) -> Any:
    """Return the value of a thread's field: from the log, or a default in place of nothing.

    No default replaces a value that somebody has written.
    """
    if key == "tags":
        return None if old is None else _NO_VALUE
    if course.fields.get(key):
        return course.fields[key]
    if key != "updated_at" and key not in course.fields and old not in (None, ""):
        return _NO_VALUE
    return {
        "executor": "agent",
        "parent_id": course.fields.get("parent_id"),
        "updated_at": course.last or text(record.get("created_at")) or _NO_VALUE,
    }.get(key, _NO_VALUE)


def _set_value(value: Object, violation: Violation, new: Any, words: list[str]) -> None:
    if new is _NO_VALUE:
        return
    container: Any = value
    *above, last = violation.path
    for part in above:
        container = container[part]
    if last == "tags":
        del container[last]
        words.append(f"{dotted(violation.path)}: {violation.found} removed")
        return
    container[last] = new
    shown = new if isinstance(new, str) else json.dumps(new)
    words.append(f"{dotted(violation.path)}: {violation.found} -> {shown}")


def _value_at(value: Any, violation: Violation) -> Any:
    for part in violation.path:
        if isinstance(value, dict) and part not in value:
            return None
        value = value[part]
    return value


def _in_utc(value: str) -> Any:
    """Return the same instant as the program spells it. A time without a zone is ambiguous and stays."""
    try:
        instant = datetime.fromisoformat(value)
    except ValueError:
        return _NO_VALUE
    if instant.tzinfo is None or is_time(value):
        return _NO_VALUE
    if not instant.utcoffset():
        whole = value[:10] + "T" + value[11:]
        for suffix in ("+00:00", "-00:00", "+0000", "+00", "z"):
            whole = whole.removesuffix(suffix)
        if is_time(spelled := whole.removesuffix("Z") + "Z"):
            return spelled
    try:
        exact = instant.astimezone(UTC).replace(tzinfo=None)
    except OverflowError:  # before the year 1 or after the year 9999
        return _NO_VALUE
    return exact.isoformat(timespec="microseconds" if exact.microsecond % 1000 else "milliseconds") + "Z"
