"""The operations of the log in either dialect, and their replay: relations, and the fields that the log determines.

See docs/design/formats/leslie.md#dialects, docs/design/formats/leslie.md#commands and
docs/design/formats/leslie.md#replay. Operations are applied in the order of the array, which is the order of the
lock. Their times need not be ascending.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from reconcile.formats.json import javascript
from reconcile.formats.leslie.document import EXECUTORS, PENDING, RELATION, STATUSES, text, texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from reconcile.formats.leslie.document import Document, Object

    Entry = dict[str, list[str]]


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


class Oddity(StrEnum):
    """A kind of note about an operation."""

    HOLE = "hole"
    """It can't follow the operations before it: the log is damaged or incomplete.

    See docs/design/formats/leslie.md#edge-case-9.
    """
    UNKNOWN = "unknown"
    """The command is not known (docs/design/formats/leslie.md#edge-case-26)."""


class Note(Struct, frozen=True):
    """A note about one operation."""

    oddity: Oddity
    operation: str
    thread: str | None
    words: str


class Course(Struct):
    """The course of one thread according to the log. A field that is missing in ``fields`` is unknown to the log.

    ``spawn`` is None for a thread that no operation has spawned. ``last`` is the time of the last operation that
    touches ``updated_at``.
    """

    spawn: Operation | None = None
    fields: dict[str, Any] = field(default_factory=dict)
    last: str = ""


class Replayed(Struct):
    """The result of a replay. The keys of ``relations`` have the order that the file should have.

    ``refreshed`` is the status of each objective as the program last wrote it. ``tolerated`` are entries of
    ``depends_on`` that no operation explains and that are kept. ``frozen`` are the targets of the frozen references of
    each thread that existed at that time.
    """

    courses: dict[str, Course]
    relations: dict[str, Entry]
    refreshed: dict[str, str]
    notes: list[Note]
    tolerated: list[tuple[str, str]]
    frozen: dict[str, list[str]]

    @property
    def holes(self) -> set[str]:
        """Threads for which the log is incomplete."""
        return {note.thread for note in self.notes if note.oddity is Oddity.HOLE and note.thread is not None}


def replay(document: Document) -> Replayed:
    """Replay the log of a file. Data that the log does not determine are copied from the file itself."""
    player = _Player(document)
    player.seed()
    seen: dict[str, Any] = {}
    for entry in document.operations:
        operation = Operation(entry)
        # An equal operation is a copy (docs/design/formats/leslie.md#f12), not a second operation.
        if operation.id and seen.setdefault(operation.id, entry) == entry and seen[operation.id] is not entry:
            continue
        player.play(operation)
    return player.finish()


class _Player:
    def __init__(self, document: Document) -> None:
        self._stored = document.threads
        self._before = document.relations
        self._spawned = spawned(document.operations)
        self._courses: dict[str, Course] = {}
        self._relations: dict[str, Entry] = {}
        self._notes: list[Note] = []
        self._unfinished: dict[str, set[str]] = {}
        self._refreshed: dict[str, str] = {}
        self._frozen: dict[str, list[str]] = {}
        self._edges: set[tuple[str, str, str]] = set()

    def seed(self) -> None:
        """Add the threads without a spawn, with the references between them: they exist from the beginning.

        See docs/design/formats/leslie.md#threads-without-a-spawn and docs/design/formats/leslie.md#edge-case-29.
        """
        genesis = [thread for thread in self._stored if thread not in self._spawned]
        for thread in genesis:
            parent = text(self._stored[thread].get("parent_id"))
            self._courses[thread] = Course()
            self._relations[thread] = _entry(parent)
            self._track_objective(thread)
        for thread in genesis:
            self._adopt(thread)
            for other in self._before.get(thread, {}).get("references_to", ()):
                self._refer(thread, other)
            for other in self._before.get(thread, {}).get("referenced_by", ()):
                self._refer(other, thread)

    def play(self, operation: Operation) -> None:
        """Apply one operation."""
        if not operation.is_known:
            self._note(Oddity.UNKNOWN, operation, f"the command {operation.command!r} is unknown; it is kept")
            return
        if operation.command in (Command.MERGE, Command.INJECT):
            return
        thread = operation.thread
        if thread is None:
            words = "it spawns no thread" if operation.command == Command.SPAWN else "it has no thread"
            self._note(Oddity.HOLE, operation, words)
        elif operation.command == Command.SPAWN:
            self._spawn(operation, thread)
        elif thread in self._courses:
            self._change(operation, thread)
        else:
            self._note(Oddity.HOLE, operation, f"its thread {thread} does not exist at this point")

    def _change(self, operation: Operation, thread: str) -> None:
        """Apply an operation to an existing thread and to the threads that it refers to."""
        if operation.command == Command.REFERENCE:
            target = operation.text("to_id")
            self._refer(thread, target)
            if target in self._relations and operation.text("binding") == "frozen":
                self._frozen.setdefault(thread, []).append(target)
            return
        course = self._courses[thread]
        course.last = operation.timestamp
        if operation.command == Command.TRANSFER:
            self._transfer(course, operation)
        elif operation.command == Command.UPDATE:
            self._update(thread, course, operation)
        else:
            self._change_status(thread, course, operation)
        self._track_objective(thread)
        if operation.command == Command.LIFECYCLE:
            self._refresh(thread)

    def finish(self) -> Replayed:
        """Add the data that the log does not determine, and sort everything."""
        for thread in self._courses:
            self._adopt(thread)
        tolerated = []
        for thread, entry in self._relations.items():
            for other in self._before.get(thread, {}).get("depends_on", ()):
                if other not in entry["depends_on"]:
                    entry["depends_on"].append(other)
                    tolerated.append((thread, other))
        order = javascript.keys(_order(list(self._spawned), list(self._stored)))
        relations = {thread: self._as_stored(thread) for thread in order if thread in self._relations}
        frozen = {thread: list(dict.fromkeys(targets)) for thread, targets in self._frozen.items()}
        return Replayed(self._courses, relations, self._refreshed, self._notes, tolerated, frozen)

    def _spawn(self, operation: Operation, thread: str) -> None:
        if thread in self._courses:
            self._note(Oddity.HOLE, operation, "it spawns a thread that exists already")
            return
        parent = operation.text("parent_id")
        fields: dict[str, Any] = {"id": thread, "parent_id": parent, "status": "active"}
        if operation.in_text_dialect:
            self._relations[thread] = _entry(None)
            self._relations[thread]["depends_on"] += texts(operation.params.get("depends_on"))
        else:
            title, objective = operation.text("intent"), operation.text("objective")
            carried = {"title": title, "objective": objective, "created_at": operation.timestamp}
            fields |= {key: value for key, value in carried.items() if value}
            self._relations[thread] = _entry(parent)
        self._courses[thread] = Course(operation, fields, operation.timestamp)
        self._adopt(thread)
        if operation.in_text_dialect and parent is not None and self._shares(operation, thread, parent):
            self._refer(thread, parent)
        self._track_objective(thread)
        self._refresh(thread)

    def _shares(self, operation: Operation, thread: str, parent: str) -> bool:
        """Tell whether the thread refers to its parent: the spawn says so, or either side shows the reference.

        Three documents derive three different relations from the same spawn.
        """
        return (
            bool(operation.params.get("shared_assets"))
            or parent in self._before.get(thread, {}).get("references_to", ())
            or thread in self._before.get(parent, {}).get("referenced_by", ())
        )

    def _refer(self, source: str, target: str | None) -> None:
        """Add a reference if its target exists at this point; otherwise do nothing, as the program.

        See docs/design/formats/leslie.md#f11.
        """
        if target is None or source not in self._relations or target not in self._relations:
            return
        for thread, name, other in ((source, "references_to", target), (target, "referenced_by", source)):
            self._add(thread, name, other)

    def _transfer(self, course: Course, operation: Operation) -> None:
        direction = operation.text("direction")
        if direction == "request_approval":
            course.fields["status"] = "waiting_human"
        elif direction in ("delegate", "handoff"):
            if (executor := operation.text("target_executor")) in EXECUTORS:
                course.fields["executor"] = executor
            if course.fields.get("status") == "waiting_human":
                course.fields["status"] = "active"
        else:
            words = "it has no direction" if direction is None else f"the direction {direction!r} is unknown"
            self._note(Oddity.HOLE, operation, words)

    def _change_status(self, thread: str, course: Course, operation: Operation) -> None:
        """Apply a lifecycle of the program, or a freeze or archive of the design text."""
        before = course.fields.get("status")
        action = (operation.text("action") or "") if operation.command == Command.LIFECYCLE else operation.command
        target, allowed = next_status(operation.command, action, before)
        if target is None:
            self._note(Oddity.HOLE, operation, f"the action {action!r} is unknown" if action else "it has no action")
            return
        if not allowed:
            self._note(Oddity.HOLE, operation, f"{action} of {thread}, which is {before} at this point")
        course.fields["status"] = target

    def _update(self, thread: str, course: Course, operation: Operation) -> None:
        changes = operation.changes
        if "parent_id" in changes:
            for above, entry in self._relations.items():
                if thread in entry["children"]:
                    entry["children"].remove(thread)
                    self._edges -= {(above, "children", thread)}
            course.fields["parent_id"] = changes["parent_id"]
            self._adopt(thread)
        course.fields |= changes

    def _adopt(self, thread: str) -> None:
        """Add the thread to the children of its parent."""
        fields = self._courses[thread].fields
        parent = fields["parent_id"] if "parent_id" in fields else text(self._stored[thread].get("parent_id"))
        if parent is not None and parent in self._relations:
            self._add(parent, "children", thread)

    def _add(self, thread: str, name: str, other: str) -> None:
        """Add an id to a list, unless it is there."""
        if (thread, name, other) not in self._edges:
            self._edges.add((thread, name, other))
            self._relations[thread][name].append(other)

    def _track_objective(self, thread: str) -> None:
        """Record whether the objective of a thread still waits for it."""
        fields, stored = self._courses[thread].fields, self._stored.get(thread, {})
        objective = text(fields.get("objective", stored.get("objective")))
        if objective is None:
            return
        waiting = self._unfinished.setdefault(objective, set())
        if fields.get("status", stored.get("status")) in FINISHED:
            waiting.discard(thread)
        else:
            waiting.add(thread)

    def _refresh(self, thread: str) -> None:
        fields, stored = self._courses[thread].fields, self._stored.get(thread, {})
        objective = text(fields.get("objective", stored.get("objective")))
        if objective is not None:
            self._refreshed[objective] = "active" if self._unfinished[objective] else "completed"

    def _as_stored(self, thread: str) -> Entry:
        """Return an entry of the relations, in the stored order if that is as good.

        It is as good if it differs only in the position of threads without a spawn.
        """
        entry = dict(self._relations[thread])
        for name, members in entry.items():
            stored = self._before.get(thread, {}).get(name, [])
            if members == stored or len(members) != len(stored) or set(members) != set(stored):
                continue
            if [thread_id for thread_id in members if thread_id in self._spawned] == [
                thread_id for thread_id in stored if thread_id in self._spawned
            ]:
                entry[name] = list(stored)
        return entry

    def _note(self, oddity: Oddity, operation: Operation, words: str) -> None:
        self._notes.append(Note(oddity, operation.id or "without an id", operation.thread, words))


def _entry(parent: str | None) -> Entry:
    entry: Entry = {name: [] for name in RELATION}
    if parent is not None:
        entry["depends_on"].append(parent)
    return entry


def _order(spawns: list[str], stored: Iterable[str]) -> list[str]:
    """Return the spawned threads in the order of the log, and each other thread after its predecessor in the file."""
    known = set(spawns)
    following: dict[str | None, list[str]] = {}
    before: str | None = None
    for thread in stored:
        if thread in known:
            before = thread
        else:
            following.setdefault(before, []).append(thread)
    ordered = following.get(None, [])
    for thread in spawns:
        ordered += [thread, *following.get(thread, ())]
    return ordered
