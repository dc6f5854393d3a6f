"""The operations of the log in either dialect, and the state of a thread after each of them.

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
    """The known commands. Others are kept in the log, and a replay ignores them."""

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
"""The fields that an update may set, with a check of the new value.

Any other value would make the file unreadable for the program.
"""


class Operation:
    """One entry of the log, with typed access to its parameters."""

    __slots__ = ("entry", "params")

    def __init__(self, entry: Object) -> None:
        self.entry = entry
        params = entry.get("params")
        self.params: Object = params if isinstance(params, dict) else {}

    @property
    def id(self) -> str:
        """The id; empty if there is none."""
        return text(self.entry.get("id")) or ""

    @property
    def timestamp(self) -> str:
        """The time as written."""
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
    def in_text_dialect(self) -> bool:
        """Whether this is a spawn in the dialect of the design text."""
        return text(self.params.get("thread_id")) is None

    @property
    def thread(self) -> str | None:
        """The thread concerned: the one spawned, the one that refers, or the one whose state changes."""
        if self.command == Command.REFERENCE:
            return text(self.params.get("from_id"))
        if self.command == Command.SPAWN and self.in_text_dialect:
            return text(self.params.get("child_id"))
        if self.command == Command.MERGE:
            return text(self.params.get("target"))
        return text(self.params.get("thread_id"))

    @property
    def names(self) -> set[str]:
        """All threads that are named here. The spawn of each comes before this operation."""
        names = {self.thread, text(self.params.get("parent_id")), text(self.params.get("to_id"))}
        return {name for name in (*names, *texts(self.params.get("sources"))) if name is not None}

    def text(self, key: str) -> str | None:
        """Return a parameter that should be a text."""
        return text(self.params.get(key))

    @property
    def changes(self) -> dict[str, Any]:
        """The fields that an ``update`` sets, directly or below a key."""
        fields = dict(self.params)
        for key in ("fields", "changes", "updates"):
            if isinstance(inner := fields.get(key), dict):
                fields |= inner
        return {key: fields[key] for key, is_good in _CHANGED.items() if key in fields and is_good(fields[key])}


def spawned(operations: list[Object]) -> dict[str, Operation]:
    """Return the threads that the log spawns, in its order, each with its first spawn."""
    spawns: dict[str, Operation] = {}
    for entry in operations:
        operation = Operation(entry)
        if operation.command == Command.SPAWN and operation.thread is not None:
            spawns.setdefault(operation.thread, operation)
    return spawns


FINISHED = ("completed", "cancelled", "archived")
"""The final states: an objective is completed if all its threads are in one of them.

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


def next_status(command: str, action: str, before: str | None) -> tuple[str | None, bool]:
    """Return the state after an action, None if it is unknown, and whether the action may follow the state before.

    An unknown state before allows every action.
    """
    if command in _OLDER:
        target, sources = _OLDER[Command(command)]
        return target, before is None or before in sources
    return _TARGETS.get(action), before is None or action in _ALLOWED[before]


def status_of(stored: object) -> object:
    """Return the meaning of a stored status (docs/design/formats/leslie.md#edge-case-10)."""
    return "active" if stored == PENDING else stored
