"""A control file as it was read: its value, whose dialect it is in, and what the program would say to it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from reconcile.formats.json import javascript, strict
from reconcile.formats.leslie.log import schema
from reconcile.model.snapshot import Fault

if TYPE_CHECKING:
    from reconcile.formats.leslie.log.schema import Violation

    Object: TypeAlias = dict[str, Any]

DIRECTORY = ".leslie"
RELATIONS = "thread_relations.json"
OBJECTIVES = "objectives.json"
CONTROL = (RELATIONS, OBJECTIVES)
BACKUP = ".bak"
THREADS = "threads"

_LATER_FIELDS = ("executor", "updated_at")
"""What a record of the program has and one of the design text hasn't (docs/design/formats/leslie.md#dialects)."""


class Dialect(StrEnum):
    """Who writes files like this one."""

    TEXT = "the design text's"
    PROGRAM = "the program's"


class Document(Struct, frozen=True):
    """A file whose shape is good enough to be gone through. ``value`` is not to be changed.

    ``violations``: for these the program takes the file for corrupt. ``damage``: those of them that aren't just the
    older dialect.
    """

    content: bytes
    value: Object
    dialect: Dialect
    violations: tuple[Violation, ...]

    @property
    def damage(self) -> tuple[Violation, ...]:
        """What is wrong with it in its own dialect."""
        if self.dialect is Dialect.PROGRAM:
            return self.violations
        return tuple(each for each in self.violations if not (each.path[-1] in _LATER_FIELDS and len(each.path) == 3))

    @property
    def threads(self) -> dict[str, Object]:
        """The records by id, in order."""
        found: dict[str, Object] = self.value["threads"]
        return found

    @property
    def operations(self) -> list[Object]:
        """The log."""
        found: list[Object] = self.value["operations"]
        return found

    @property
    def relations(self) -> dict[str, dict[str, list[str]]]:
        """What of the stored relations has the right types; it is derived data, and may be anything."""
        found = self.value.get("relations")
        if not isinstance(found, dict):
            return {}
        return {
            key: {name: texts(entry.get(name)) for name in schema.RELATION}
            for key, entry in found.items()
            if isinstance(entry, dict)
        }


class ObjectivesDocument(Struct, frozen=True):
    """``objectives.json`` as it was read. ``value`` is not to be changed."""

    content: bytes
    value: Object
    violations: tuple[Violation, ...]

    @property
    def damage(self) -> tuple[Violation, ...]:
        """What is wrong with it: there is one dialect of it."""
        return self.violations

    @property
    def objectives(self) -> dict[str, Object]:
        """The objectives by id, in order."""
        found: dict[str, Object] = self.value["objectives"]
        return found


def read(name: str, content: bytes) -> Document | ObjectivesDocument | Fault:
    """A control file, by its name."""
    return read_relations(content) if name == RELATIONS else read_objectives(content)


def read_relations(content: bytes) -> Document | Fault:
    """The threads, the log and the relations of ``thread_relations.json``, in either dialect."""
    value = _load(content, RELATIONS)
    if isinstance(value, Fault):
        return value
    for key, expected, inner in (("threads", dict, "thread"), ("operations", list, "operation")):
        if not isinstance(members := value.get(key), expected):
            word = "an object" if expected is dict else "an array"
            found = strict.kind(members) if key in value else "nothing"
            return Fault(RELATIONS, f"{found} as {key}", word)
        for name, each in members.items() if isinstance(members, dict) else enumerate(members):
            if not isinstance(each, dict):
                return Fault(RELATIONS, f"{strict.kind(each)} as {inner} {name}", "an object")
    threads = value["threads"].values()
    older = bool(threads) and not any(field in thread for thread in threads for field in _LATER_FIELDS)
    dialect = Dialect.TEXT if older else Dialect.PROGRAM
    return Document(content, value, dialect, schema.relations_violations(value))


def read_objectives(content: bytes) -> ObjectivesDocument | Fault:
    """The objectives of ``objectives.json``."""
    value = _load(content, OBJECTIVES)
    if isinstance(value, Fault):
        return value
    if not isinstance(members := value.get("objectives"), dict):
        return Fault(OBJECTIVES, f"{strict.kind(members)} as objectives", "an object")
    for name, each in members.items():
        if not isinstance(each, dict):
            return Fault(OBJECTIVES, f"{strict.kind(each)} as objective {name}", "an object")
    return ObjectivesDocument(content, value, schema.objectives_violations(value))


def written(value: Object) -> bytes:
    """The bytes that the program writes (docs/design/formats/leslie.md#bytes)."""
    return javascript.stringify(value) + b"\n"


def texts(value: object) -> list[str]:
    """The texts of what should be an array of them."""
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def text(value: object) -> str | None:
    """A text that isn't empty."""
    return value if isinstance(value, str) and value else None


def is_safe(name: str) -> bool:
    """Tell whether an id can be the name of a directory, and of that directory alone.

    See docs/design/formats/leslie.md#ids.
    """
    return name not in ("", ".", "..") and not any(each in name for each in "/\\\0")


def _load(content: bytes, name: str) -> Object | Fault:
    try:
        value = javascript.parse(content)
    except strict.InvalidContentError as error:
        return Fault(name, error.found, "a JSON object")
    if not isinstance(value, dict):
        return Fault(name, strict.kind(value), "a JSON object")
    return value
