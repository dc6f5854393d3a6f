"""The operations of the log in either dialect, and the state of a thread that each of them leads to.

See docs/design/formats/leslie.md#dialects and docs/design/formats/leslie.md#commands.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from reconcile.formats.leslie.document import PENDING, STATUSES, text, texts

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconcile.formats.leslie.document import Object


class Command(StrEnum):
    """The commands that are known; others are kept, and mean nothing to a replay."""

    SPAWN = "spawn"
    REFERENCE = "reference"
    LIFECYCLE = "lifecycle"
    TRANSFER = "transfer"
    MERGE = "merge"
    INJECT = "inject"
    FREEZE = "freeze"
    ARCHIVE = "archive"
    UPDATE = "update"


_CHANGED: dict[str, Callable[[Any], bool]] = {
    "title": lambda value: text(value) is not None,
    "objective": lambda value: text(value) is not None,
    "tags": lambda value: isinstance(value, list) and texts(value) == value,
    "status": lambda value: value in STATUSES,
    "parent_id": lambda value: value is None or text(value) is not None,
}
"""What an update may set, and to what: something else would make the file unreadable for the program."""


class Operation:
    """One entry of the log, seen through its parameters."""

    __slots__ = ("entry", "params")

    def __init__(self, entry: Object) -> None:
        self.entry = entry
        params = entry.get("params")
        self.params: Object = params if isinstance(params, dict) else {}

    @property
    def id(self) -> str:
        """Its id, empty where it has none."""
        return text(self.entry.get("id")) or ""

    @property
    def timestamp(self) -> str:
        """Its time, as written."""
        return text(self.entry.get("timestamp")) or ""

    @property
    def command(self) -> str:
        """The command, known or not."""
        return text(self.entry.get("command")) or ""

    @property
    def is_known(self) -> bool:
        """Tell whether it is a command of either dialect."""
        return self.command in set(Command)

    @property
    def older(self) -> bool:
        """Whether it is a spawn as the design text has them."""
        return text(self.params.get("thread_id")) is None

    @property
    def thread(self) -> str | None:
        """The thread that it is about: the one spawned, the one that refers, the one whose state changes."""
        if self.command == Command.REFERENCE:
            return text(self.params.get("from_id"))
        if self.command == Command.SPAWN and self.older:
            return text(self.params.get("child_id"))
        if self.command == Command.MERGE:
            return text(self.params.get("target"))
        return text(self.params.get("thread_id"))

    @property
    def names(self) -> set[str]:
        """Every thread that it names; the spawn of each comes before it."""
        found = {self.thread, text(self.params.get("parent_id")), text(self.params.get("to_id"))}
        return {name for name in (*found, *texts(self.params.get("sources"))) if name is not None}

    def text(self, key: str) -> str | None:
        """A parameter that should be a text."""
        return text(self.params.get(key))

    @property
    def changes(self) -> dict[str, Any]:
        """The fields that an ``update`` sets, flat or below a key."""
        found = dict(self.params)
        for key in ("fields", "changes", "updates"):
            if isinstance(inner := found.get(key), dict):
                found |= inner
        return {key: found[key] for key, is_good in _CHANGED.items() if key in found and is_good(found[key])}


def spawned(operations: list[Object]) -> dict[str, Operation]:
    """The threads that the log spawns, in its order, each with its first spawn."""
    found: dict[str, Operation] = {}
    for entry in operations:
        operation = Operation(entry)
        if operation.command == Command.SPAWN and operation.thread is not None:
            found.setdefault(operation.thread, operation)
    return found


FINISHED = ("completed", "cancelled", "archived")
"""An objective whose threads are all in one of these is completed.

See docs/design/formats/leslie.md#derived-objectives.
"""

_TARGETS = {
    "suspend": "suspended",
    "resume": "active",
    "done": "completed",
    "cancel": "cancelled",
    "archive": "archived",
}
_ALLOWED = {
    "active": ("suspend", "done", "cancel"),
    "suspended": ("resume", "done", "cancel"),
    "completed": ("archive",),
    "cancelled": ("archive",),
    "frozen": ("archive",),
    "waiting_human": ("resume", "cancel"),
    "archived": (),
}
_OLDER = {
    Command.FREEZE: ("frozen", ("active",)),
    Command.ARCHIVE: ("archived", ("active", "frozen", "completed", "cancelled")),
}


def turned(command: str, action: str, before: str | None) -> tuple[str | None, bool]:
    """The state after an action, None where nobody knows it, and whether it may follow on the one before.

    A state before that isn't known forbids nothing.
    """
    if command in _OLDER:
        target, sources = _OLDER[Command(command)]
        return target, before is None or before in sources
    return _TARGETS.get(action), before is None or action in _ALLOWED[before]


def status_of(stored: object) -> object:
    """A stored status as it is meant (docs/design/formats/leslie.md#edge-case-10)."""
    return "active" if stored == PENDING else stored
