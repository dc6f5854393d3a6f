"""The states of a thread, and what each action makes of them (docs/design/formats/leslie.md#commands)."""

from __future__ import annotations

from reconcile.formats.leslie.log.operations import Command
from reconcile.formats.leslie.log.schema import PENDING

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
