"""A control file as a value: its content, its dialect, and every value for which the program rejects it.

See docs/design/formats/leslie.md#schema. One bad value anywhere makes the program treat the file as corrupt, without a
message. So all of them are listed, not just the first.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from reconcile.formats.json import javascript, strict
from reconcile.model.snapshot import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Path: TypeAlias = tuple[str | int, ...]
    Check: TypeAlias = Callable[[Any, Path], Iterator["Violation"]]
    Object: TypeAlias = dict[str, Any]


STATUSES = ("active", "suspended", "completed", "cancelled", "archived", "frozen", "waiting_human")
PENDING = "pending"
"""The program reads it as active, and writes it as active at its next change."""
EXECUTORS = ("human", "agent", "system")

_TIME = "a time in UTC such as 2026-01-31T12:00:00.000Z"
_NOTHING = "missing"
_DATETIME = re.compile(
    r"(?:(?:[0-9]{2}[2468][048]|[0-9]{2}[13579][26]|[0-9]{2}0[48]|[02468][048]00|[13579][26]00)-02-29"
    r"|[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    r"|02-(?:0[1-9]|1[0-9]|2[0-8])))"
    r"T(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]+)?)?Z"
)
"""It ends in Z. Seconds and their fraction may be missing."""


class Violation(Struct, frozen=True):
    """One value that the program rejects."""

    path: Path
    found: str
    expected: str

    def __str__(self) -> str:
        """Return one line: the place, the value found, the value expected."""
        return f"{dotted(self.path)}: {self.found} (expected {self.expected})"


class Shape(Struct, frozen=True):
    """An object with known keys. Other keys are accepted, and the program drops them at its next change."""

    required: Mapping[str, Check | Shape]
    optional: Mapping[str, Check | Shape]
    record: Shape | None = None
    """The shape of each member, whatever its key; set in place of known keys."""
    array: Shape | None = None


def dotted(path: Path) -> str:
    """Return the path of a value in a file, as people write it."""
    return (
        "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".") or "the file"
    )


def is_time(value: object) -> bool:
    """Tell whether the program accepts this as a time."""
    return isinstance(value, str) and _DATETIME.fullmatch(value) is not None


def relations_violations(value: object) -> tuple[Violation, ...]:
    """Return every value for which the program rejects ``thread_relations.json``."""
    return tuple(_check(value, (), _RELATIONS))


def objectives_violations(value: object) -> tuple[Violation, ...]:
    """Return every value for which the program rejects ``objectives.json``."""
    return tuple(_check(value, (), _OBJECTIVES))


def unknown_keys(value: object) -> tuple[str, ...]:
    """Return the keys of a relations file that the program drops at its next change.

    See docs/design/formats/leslie.md#edge-case-27.
    """
    return tuple(dotted(path) for path in _unknown(value, (), _RELATIONS))


def _filled(value: Any, path: Path) -> Iterator[Violation]:
    if not isinstance(value, str) or not value:
        yield Violation(path, strict.kind(value), "a text that isn't empty")


def _text(value: Any, path: Path) -> Iterator[Violation]:
    if not isinstance(value, str):
        yield Violation(path, strict.kind(value), "a text")


def _text_or_null(value: Any, path: Path) -> Iterator[Violation]:
    if value is not None and not isinstance(value, str):
        yield Violation(path, strict.kind(value), "the id of a thread, or null")


def _texts(value: Any, path: Path) -> Iterator[Violation]:
    if not isinstance(value, list):
        yield Violation(path, strict.kind(value), "an array of texts")
        return
    for number, element in enumerate(value):
        yield from _text(element, (*path, number))


def _time(value: Any, path: Path) -> Iterator[Violation]:
    if not is_time(value):
        yield Violation(path, strict.kind(value), _TIME)


def _count(value: Any, path: Path) -> Iterator[Violation]:
    whole = isinstance(value, (int, float)) and not isinstance(value, bool) and float(value).is_integer()
    if not whole or value < 0:
        kind = f"the number {value}" if isinstance(value, float) or whole else strict.kind(value)
        yield Violation(path, kind, "a whole number from 0")


def _object(value: Any, path: Path) -> Iterator[Violation]:
    if not isinstance(value, dict):
        yield Violation(path, strict.kind(value), "an object")


def _one_of(*words: str) -> Check:
    def check(value: Any, path: Path) -> Iterator[Violation]:
        if value not in words or not isinstance(value, str):
            yield Violation(path, strict.kind(value), "one of " + ", ".join(words))

    return check


_THREAD = Shape(
    required={
        "id": _filled,
        "title": _filled,
        "objective": _filled,
        "created_at": _time,
        "status": _one_of(*STATUSES, PENDING),
        "parent_id": _text_or_null,
        "storage_path": _filled,
        "executor": _one_of(*EXECUTORS),
        "updated_at": _time,
    },
    optional={"tags": _texts, "session_id": _text},
)
_OPERATION = Shape(
    required={
        "id": _filled,
        "timestamp": _time,
        "command": _filled,
        "operator": _one_of("user", "system", "agent"),
        "params": _object,
    },
    optional={},
)
RELATION = ("children", "references_to", "referenced_by", "depends_on")
_RELATION = Shape(required=dict.fromkeys(RELATION, _texts), optional={})
_RELATIONS = Shape(
    required={
        "version": _filled,
        "metadata": Shape(required={"last_updated": _time, "thread_count": _count}, optional={}),
        "threads": Shape({}, {}, record=_THREAD),
        "operations": Shape({}, {}, array=_OPERATION),
        "relations": Shape({}, {}, record=_RELATION),
    },
    optional={},
)
_OBJECTIVE = Shape(
    required={
        "id": _filled,
        "title": _filled,
        "created_at": _time,
        "updated_at": _time,
        "status": _one_of("active", "completed"),
        "thread_ids": _texts,
    },
    optional={},
)
_OBJECTIVES = Shape(
    required={
        "version": _filled,
        "objectives": Shape({}, {}, record=_OBJECTIVE),
        "metadata": Shape(required={"last_updated": _time, "objective_count": _count}, optional={}),
    },
    optional={},
)


def _check(value: Any, path: Path, rule: Check | Shape) -> Iterator[Violation]:
    if not isinstance(rule, Shape):
        yield from rule(value, path)
        return
    if not _is_container(value, rule):
        yield Violation(path, strict.kind(value), "an object" if rule.array is None else "an array")
        return
    for name, wanted in rule.required.items():
        if name not in value:
            yield Violation((*path, name), _NOTHING, _wanted(wanted))
    for key, member, inner in _members(value, rule):
        if inner is not None:
            yield from _check(member, (*path, key), inner)


def _unknown(value: Any, path: Path, rule: Check | Shape) -> Iterator[Path]:
    if not isinstance(rule, Shape) or not _is_container(value, rule):
        return
    for key, member, inner in _members(value, rule):
        if inner is None:
            yield (*path, key)
        else:
            yield from _unknown(member, (*path, key), inner)


def _is_container(value: Any, rule: Shape) -> bool:
    return isinstance(value, dict) if rule.array is None else isinstance(value, list)


def _members(value: Any, rule: Shape) -> Iterator[tuple[str | int, Any, Check | Shape | None]]:
    """Yield the members of a container of the right type, each with its rule; None marks an unknown key."""
    if rule.array is not None:
        for number, member in enumerate(value):
            yield number, member, rule.array
        return
    for key, member in value.items():
        yield key, member, rule.record or rule.required.get(key) or rule.optional.get(key)


def _wanted(rule: Check | Shape) -> str:
    """Return what a missing member should be: the expectation that its rule states for a value that it rejects."""
    (violation, *_) = _check(False, (), rule)  # noqa: FBT003 - no rule accepts it
    return violation.expected


DIRECTORY = ".leslie"
RELATIONS = "thread_relations.json"
OBJECTIVES = "objectives.json"
CONTROL = (RELATIONS, OBJECTIVES)
BACKUP = ".bak"
THREADS = "threads"

_LATER_FIELDS = ("executor", "updated_at")
"""Fields that only records of the program have, not those of the design text.

See docs/design/formats/leslie.md#dialects.
"""


class Dialect(StrEnum):
    """The program or the text that defines the form of a file."""

    TEXT = "the design text's"
    PROGRAM = "the program's"


class Document(Struct, frozen=True):
    """``thread_relations.json`` as it was read, with a shape that can be traversed. ``value`` must not be changed.

    ``violations`` are the reasons why the program treats the file as corrupt. ``damage`` are those of them that the
    older dialect does not explain.
    """

    content: bytes
    value: Object
    dialect: Dialect
    violations: tuple[Violation, ...]

    @property
    def damage(self) -> tuple[Violation, ...]:
        """The violations of its own dialect."""
        if self.dialect is Dialect.PROGRAM:
            return self.violations
        return tuple(
            violation
            for violation in self.violations
            if not (violation.path[-1] in _LATER_FIELDS and len(violation.path) == 3)
        )

    @property
    def threads(self) -> dict[str, Object]:
        """The records by id, in the order of the file."""
        threads: dict[str, Object] = self.value["threads"]
        return threads

    @property
    def operations(self) -> list[Object]:
        """The log."""
        operations: list[Object] = self.value["operations"]
        return operations

    @property
    def relations(self) -> dict[str, dict[str, list[str]]]:
        """The stored relations, as far as they have the right types. They are derived data and may contain anything."""
        relations = self.value.get("relations")
        if not isinstance(relations, dict):
            return {}
        return {
            key: {name: texts(entry.get(name)) for name in RELATION}
            for key, entry in relations.items()
            if isinstance(entry, dict)
        }


class ObjectivesDocument(Struct, frozen=True):
    """``objectives.json`` as it was read. ``value`` must not be changed."""

    content: bytes
    value: Object
    violations: tuple[Violation, ...]

    @property
    def damage(self) -> tuple[Violation, ...]:
        """The violations; this file has only one dialect."""
        return self.violations

    @property
    def objectives(self) -> dict[str, Object]:
        """The objectives by id, in the order of the file."""
        objectives: dict[str, Object] = self.value["objectives"]
        return objectives


def read(name: str, content: bytes) -> Document | ObjectivesDocument | Fault:
    """Read a control file by its name."""
    return read_relations(content) if name == RELATIONS else read_objectives(content)


def read_relations(content: bytes) -> Document | Fault:
    """Read the threads, the log and the relations of ``thread_relations.json``, in either dialect."""
    value = _load(content, RELATIONS)
    if isinstance(value, Fault):
        return value
    for key, expected, inner in (("threads", dict, "thread"), ("operations", list, "operation")):
        if not isinstance(members := value.get(key), expected):
            word = "an object" if expected is dict else "an array"
            return Fault(RELATIONS, f"{strict.kind(members)} as {key}" if key in value else f"no {key}", word)
        for name, member in members.items() if isinstance(members, dict) else enumerate(members):
            if not isinstance(member, dict):
                return Fault(RELATIONS, f"{strict.kind(member)} as {inner} {name}", "an object")
    threads = value["threads"].values()
    older = bool(threads) and not any(field in thread for thread in threads for field in _LATER_FIELDS)
    dialect = Dialect.TEXT if older else Dialect.PROGRAM
    return Document(content, value, dialect, relations_violations(value))


def read_objectives(content: bytes) -> ObjectivesDocument | Fault:
    """Read the objectives of ``objectives.json``."""
    value = _load(content, OBJECTIVES)
    if isinstance(value, Fault):
        return value
    if not isinstance(members := value.get("objectives"), dict):
        found = f"{strict.kind(members)} as objectives" if "objectives" in value else "no objectives"
        return Fault(OBJECTIVES, found, "an object")
    for name, record in members.items():
        if not isinstance(record, dict):
            return Fault(OBJECTIVES, f"{strict.kind(record)} as objective {name}", "an object")
    return ObjectivesDocument(content, value, objectives_violations(value))


def written(value: Object) -> bytes:
    """Return the bytes that the program writes for a value (docs/design/formats/leslie.md#bytes)."""
    return javascript.stringify(value) + b"\n"


def texts(value: object) -> list[str]:
    """Return the texts in a value that should be an array of texts."""
    return [element for element in value if isinstance(element, str)] if isinstance(value, list) else []


def text(value: object) -> str | None:
    """Return a text that is not empty, or None."""
    return value if isinstance(value, str) and value else None


def is_safe(name: str) -> bool:
    """Tell whether an id can be the name of a directory, and of no other directory.

    See docs/design/formats/leslie.md#ids.
    """
    return name not in ("", ".", "..") and not any(character in name for character in "/\\\0")


def _load(content: bytes, name: str) -> Object | Fault:
    try:
        value = javascript.parse(content)
    except strict.InvalidContentError as error:
        return Fault(name, error.found, "a JSON object")
    if not isinstance(value, dict):
        return Fault(name, strict.kind(value), "a JSON object")
    return value
