"""The reports of a watcher, as values for people and for programs; nothing is reported twice."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.apply.executor import Result
from reconcile.model.reasons import Reason
from reconcile.planning.conflicts import restore_command

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from reconcile.apply.executor import Outcome
    from reconcile.inspect.losses import Losses
    from reconcile.model.plan import Action, Item, Plan

    About = Callable[[str | None], bool]


class EventKind(StrEnum):
    """The kinds of events that a watcher reports; the values are part of ``--json``."""

    WATCHING = "watching"
    """Both sides were scanned, and changes are noticed from now on."""
    POLLING = "polling"
    """The system sends no events; both sides are scanned every few seconds."""
    BEGUN = "begun"
    """A run with many actions has begun; ``ENDED`` follows after the last one."""
    ENDED = "ended"
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"
    HELD = "held"
    RELEASED = "released"
    NOTED = "noted"
    """A notice without a decision: an ``item`` that is set aside until a side changes, or a ``message``."""
    WAITING = "waiting"
    """Work is suspended: git is busy, a side is gone, or another reconcile has the lock."""
    RESUMED = "resumed"
    MESSAGE = "message"
    STOPPED = "stopped"


class WatchEvent(Struct, frozen=True, kw_only=True):
    """One report; ``action`` and ``item`` are set if it is about one."""

    kind: EventKind
    message: str = ""
    project: str = ""
    """The project, if several are watched."""
    action: Action | None = None
    item: Item | None = None
    is_conflict: bool = False
    """Whether the message is about a conflict that a run has decided."""
    is_loss: bool = False
    """Whether the message is about conversations that the program of the workspace has removed."""
    is_public: bool = True
    """Whether others see the workspace that the action is about: it lies in the project."""


class WatchStatus(Struct, frozen=True):
    """The numbers of watched, held and busy conversations, and the noun for one."""

    conversations: int = 0
    held: int = 0
    busy: int = 0
    noun: str = "conversation"


_Key = tuple[str | None, str, Reason]
_RESULTS = {Result.DONE: EventKind.DONE, Result.SKIPPED: EventKind.SKIPPED, Result.FAILED: EventKind.FAILED}
_TRANSIENT = (Reason.DRIFT, Reason.NEEDS_SKIPPED)
"""Reasons that are not reported: the action is tried again at once, or its cause was reported."""
MANY = 60
"""Runs with more actions than this are announced."""


class Reporter:
    """Reports each fact once. ``conversations`` is their number, for the status, and ``noun`` the word for one."""

    def __init__(self, emit: Callable[[WatchEvent, WatchStatus], None]) -> None:
        self._emit = emit
        self._held: dict[_Key, Item] = {}
        self._delayed: dict[_Key, tuple[Item, int]] = {}
        """Items that are reported at a time, in ns of a monotonic clock."""
        self._not_done: dict[str, tuple[Reason | None, str]] = {}
        self._noted: set[_Key] = set()
        self._waiting: str | None = None
        self._polling: str | None = None
        self.conversations = 0
        self.noun = "conversation"

    @property
    def held(self) -> int:
        """The number of held items that were reported."""
        return len(self._held)

    def emit(self, event: WatchEvent) -> None:
        """Report an event, with the status."""
        busy = sum(reason is Reason.BUSY for reason, _ in self._not_done.values())
        self._emit(event, WatchStatus(self.conversations, len(self._held), busy, self.noun))

    def report_waiting(self, message: str) -> None:
        """Report why work is suspended, unless that was the last message."""
        if self._waiting != message:
            self._waiting = message
            self.emit(WatchEvent(kind=EventKind.WAITING, message=message))

    def report_resumed(self) -> None:
        """Report that work goes on, if it was suspended."""
        if self._waiting is not None:
            self._waiting = None
            self.emit(WatchEvent(kind=EventKind.RESUMED))

    def report_polling(self, message: str) -> None:
        """Report why both sides are polled, unless that was the last message."""
        if self._polling != message:
            self._polling = message
            self.emit(WatchEvent(kind=EventKind.POLLING, message=message))

    def report_events(self) -> None:
        """Report that the system sends events again, if both sides were polled."""
        if self._polling is not None:
            self._polling = None
            self.emit(WatchEvent(kind=EventKind.RESUMED))

    def report_begin(self, actions: int) -> None:
        """Announce a run with many actions."""
        if actions > MANY:
            self.emit(WatchEvent(kind=EventKind.BEGUN, message=f"{actions} actions"))

    def report_actions(self, outcome: Outcome, conversations: frozenset[str], *, is_public: bool = True) -> None:
        """Report the result of each action of a run over these conversations; a repeated failure is reported once.

        ``is_public``: the workspace lies in the project.
        """
        before = {id_: self._not_done.pop(id_) for id_ in conversations if id_ in self._not_done}
        for deed in outcome.results.values():
            conversation, not_done = deed.action.conversation, (deed.reason, deed.message)
            if deed.reason in _TRANSIENT or before.get(conversation) == not_done:
                self._not_done |= {conversation: not_done} if deed.reason not in _TRANSIENT else {}
                continue
            if deed.result is not Result.DONE:
                self._not_done[conversation] = not_done
            kind = _RESULTS[deed.result]
            self.emit(WatchEvent(kind=kind, message=deed.message, action=deed.action, is_public=is_public))
        if len(outcome.results) > MANY:
            self.emit(
                WatchEvent(
                    kind=EventKind.ENDED, message=f"{outcome.count(Result.DONE)} of {len(outcome.results)} actions done"
                )
            )

    def report_held(self, items: Collection[Item], is_about: About, late_ns: int) -> None:
        """Report newly held and released items of a run's conversations.

        An invalid file may be half written: it is reported at ``late_ns``, unless it is valid by then.
        """
        held: dict[_Key, Item] = {(item.conversation, item.unit, item.reason): item for item in items}
        for key in [key for key in self._held if is_about(key[0])]:
            if key not in held:
                self.emit(WatchEvent(kind=EventKind.RELEASED, item=self._held.pop(key)))
        for key in [key for key in self._delayed if is_about(key[0])]:
            if key not in held:
                del self._delayed[key]
        for key, item in held.items():
            if key not in self._held and key not in self._delayed:
                self._delayed[key] = item, late_ns if item.reason is Reason.INVALID else 0
        self.report_delayed(1)

    def report_losses(self, losses: Losses | None, sides: str = "") -> bool:
        """Report in one event what a program has removed from its workspace, and tell whether that was reported.

        ``sides``: the options for the two sides, which the command that restores it needs.
        """
        if losses is None or not losses.is_usual:
            return False
        self.emit(WatchEvent(kind=EventKind.NOTED, message=losses.words(sides), is_loss=True))
        return True

    def report_notes(
        self, plan: Plan, is_about: About, run: str | None, *, are_old: bool = False, but: Collection[Reason] = ()
    ) -> None:
        """Report items that are newly set aside, and new notes, of a run's conversations; old ones are only remembered.

        A conflict that the run has decided comes with the command that brings the other version back. ``but``: the
        reasons of notes that were reported in another way.
        """
        conflicts = {(conflict.conversation, conflict.unit): conflict for conflict in plan.conflicts}
        events: dict[_Key, WatchEvent] = {}
        for item in plan.aside:
            events[item.conversation, item.unit, item.reason] = WatchEvent(kind=EventKind.NOTED, item=item)
        for note in plan.notes:
            if note.conversation is not None and note.reason not in but:
                message = f"{note.conversation}: {note.message}"
                conflict = conflicts.get((note.conversation, note.unit))
                is_decided = False
                if note.reason is Reason.CONFLICT and conflict is not None and run is not None:
                    message = f"{message}; the other version: {restore_command(conflict, run)}"
                    is_decided = True
                event = WatchEvent(kind=EventKind.NOTED, message=message, is_conflict=is_decided)
                events[note.conversation, note.unit, note.reason] = event
        for key, event in events.items():
            if key not in self._noted and not are_old:
                self.emit(event)
        self._noted = {key for key in self._noted if not is_about(key[0])} | events.keys()

    def report_delayed(self, now_ns: int) -> None:
        """Report the held items whose delay has passed."""
        for key, (item, due) in list(self._delayed.items()):
            if due < now_ns:
                self._held[key] = item
                del self._delayed[key]
                self.emit(WatchEvent(kind=EventKind.HELD, item=item))
