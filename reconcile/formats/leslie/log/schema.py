"""What makes the program reject a control file: its whole schema, every violation with its place.

See docs/design/formats/leslie.md#schema. One bad value anywhere and the program takes the file for corrupt, without a
message; so all of them are listed, not just the first.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from reconcile.formats.json import strict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Path: TypeAlias = tuple[str | int, ...]
    Check: TypeAlias = Callable[[Any, Path], Iterator["Violation"]]

STATUSES = ("active", "suspended", "completed", "cancelled", "archived", "frozen", "waiting_human")
PENDING = "pending"
"""Read as active, and written as that at the next change."""
EXECUTORS = ("human", "agent", "system")

_TIME = "a time in UTC such as 2026-01-31T12:00:00.000Z"
_NOTHING = "nothing"
_DATETIME = re.compile(
    r"(?:(?:[0-9]{2}[2468][048]|[0-9]{2}[13579][26]|[0-9]{2}0[48]|[02468][048]00|[13579][26]00)-02-29"
    r"|[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    r"|02-(?:0[1-9]|1[0-9]|2[0-8])))"
    r"T(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]+)?)?Z"
)
"""Ends in Z; seconds, and digits after them, may be missing."""


class Violation(Struct, frozen=True):
    """One value that the program rejects."""

    path: Path
    found: str
    expected: str

    def __str__(self) -> str:
        """One line: where, what was found, what was expected."""
        return f"{dotted(self.path)}: found {self.found}, expected {self.expected}"


class Shape(Struct, frozen=True):
    """An object of known keys. Others pass, and the program drops them at its next change."""

    required: Mapping[str, Check | Shape]
    optional: Mapping[str, Check | Shape]
    record: Shape | None = None
    """An object of any keys, each with this shape, in place of known keys."""
    array: Shape | None = None


def dotted(path: Path) -> str:
    """A place in a file, as people write it."""
    return (
        "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".") or "the file"
    )


def is_time(value: object) -> bool:
    """Tell whether the program takes this for a time."""
    return isinstance(value, str) and _DATETIME.fullmatch(value) is not None


def relations_violations(value: object) -> tuple[Violation, ...]:
    """Everything for which the program would reject ``thread_relations.json``."""
    return tuple(_check(value, (), _RELATIONS))


def objectives_violations(value: object) -> tuple[Violation, ...]:
    """Everything for which the program would reject ``objectives.json``."""
    return tuple(_check(value, (), _OBJECTIVES))


def unknown_keys(value: object) -> tuple[str, ...]:
    """The keys of a relations file that the program drops at its next change.

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
    for number, each in enumerate(value):
        yield from _text(each, (*path, number))


def _time(value: Any, path: Path) -> Iterator[Violation]:
    if not is_time(value):
        yield Violation(path, strict.kind(value), _TIME)


def _count(value: Any, path: Path) -> Iterator[Violation]:
    whole = isinstance(value, (int, float)) and not isinstance(value, bool) and float(value).is_integer()
    if not whole or value < 0:
        found = f"the number {value}" if isinstance(value, float) or whole else strict.kind(value)
        yield Violation(path, found, "a whole number from 0")


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
    for key, each, inner in _members(value, rule):
        if inner is not None:
            yield from _check(each, (*path, key), inner)


def _unknown(value: Any, path: Path, rule: Check | Shape) -> Iterator[Path]:
    if not isinstance(rule, Shape) or not _is_container(value, rule):
        return
    for key, each, inner in _members(value, rule):
        if inner is None:
            yield (*path, key)
        else:
            yield from _unknown(each, (*path, key), inner)


def _is_container(value: Any, rule: Shape) -> bool:
    return isinstance(value, dict) if rule.array is None else isinstance(value, list)


def _members(value: Any, rule: Shape) -> Iterator[tuple[str | int, Any, Check | Shape | None]]:
    """The members of a container that has the right type, each with its rule; None: an unknown key."""
    if rule.array is not None:
        for number, each in enumerate(value):
            yield number, each, rule.array
        return
    for key, each in value.items():
        yield key, each, rule.record or rule.required.get(key) or rule.optional.get(key)


def _wanted(rule: Check | Shape) -> str:
    """What a missing member should be: what its rule says of a value that it can't accept."""
    (violation, *_) = _check(False, (), rule)  # noqa: FBT003 - no rule accepts it
    return violation.expected
