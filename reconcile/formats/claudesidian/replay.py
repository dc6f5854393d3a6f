"""Replays the event files of the hybrid era, as the program does when it fills its cache again.

See docs/design/formats/claudesidian.md#replay. The events of each file are applied by time, those of one time in the
order of the file. A `Remark` reports what the program does silently: an update of a missing record, a message that is
counted twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from reconcile.formats.claudesidian.finding import Severity
from reconcile.formats.claudesidian.record_files import Kind, number
from reconcile.formats.json import javascript
from reconcile.formats.json.strict import InvalidContentError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from reconcile.formats.claudesidian.events import Event, EventFile
    from reconcile.formats.claudesidian.record_files import Value


class Remark(Struct, frozen=True):
    """A remark about the replay of a file; ``lines`` are line numbers of the file."""

    kind: Kind
    file: str
    severity: Severity
    words: str
    lines: tuple[int, ...]


class Cache(Struct):
    """The content of the program's cache after a rebuild, by id. Columns have the names of the members of events."""

    workspaces: dict[str, Value] = field(default_factory=dict)
    sessions: dict[str, Value] = field(default_factory=dict)
    states: dict[str, Value] = field(default_factory=dict)
    traces: dict[str, Value] = field(default_factory=dict)
    conversations: dict[str, Value] = field(default_factory=dict)
    messages: dict[str, Value] = field(default_factory=dict)
    remarks: tuple[Remark, ...] = ()

    def workspace(self, id_: str) -> Value:
        """Return a workspace in the form of its file in the split era."""
        row = self.workspaces[id_]
        value: Value = {
            name: row[name] for name in ("id", "name", "description", "rootFolder", "created") if name in row
        }
        value |= {"lastAccessed": row.get("lastAccessed"), "isActive": row.get("isActive"), "sessions": {}}
        if (context := parsed(row.get("contextJson"))) is not None:
            value["context"] = context
        for key, session in self.sessions.items():
            if session["workspaceId"] == id_:
                own = {name: member for name, member in session.items() if name != "workspaceId"}
                value["sessions"][key] = {**own, "memoryTraces": {}, "states": {}}
        for key, trace in self.traces.items():
            if trace["workspaceId"] == id_ and trace["sessionId"] in value["sessions"]:
                value["sessions"][trace["sessionId"]]["memoryTraces"][key] = _trace(trace)
        for key, state in self.states.items():
            if state["workspaceId"] == id_ and state["sessionId"] in value["sessions"]:
                value["sessions"][state["sessionId"]]["states"][key] = _state(state)
        return value


def parsed(text: object) -> Value | None:
    """Return the object in a `*Json` member, which is JSON inside a text."""
    if not isinstance(text, str):
        return None
    try:
        value = javascript.parse(text.encode("utf-8", "surrogatepass"))
    except InvalidContentError:
        return None
    return value if isinstance(value, dict) else None


def replay(files: Mapping[Kind, Mapping[str, EventFile]]) -> Cache:
    """Return the cache of these files, replayed by kind and name."""
    cache = Cache()
    for kind in Kind:
        for name in sorted(files.get(kind, {})):
            _Replaying(cache, kind, name).run(files[kind][name])
    return cache


class _Replaying:
    """The replay of one file."""

    def __init__(self, cache: Cache, kind: Kind, name: str) -> None:
        self._cache = cache
        self._kind = kind
        self._name = name
        self._seen: dict[tuple[str, str], Event] = {}
        self._remarks: dict[tuple[Severity, str], list[int]] = {}
        self._created: set[tuple[str, str | None]] = set()

    def run(self, file: EventFile) -> None:
        """Apply the events, and collect the remarks."""
        apply: dict[str, Callable[[Event], None]] = {
            "workspace_created": self._workspace_created,
            "workspace_updated": self._workspace_updated,
            "workspace_deleted": self._workspace_deleted,
            "session_created": self._session_created,
            "session_updated": self._session_updated,
            "state_saved": self._state_saved,
            "state_deleted": self._state_deleted,
            "trace_added": self._trace_added,
            "metadata": self._conversation_created,
            "conversation_updated": self._conversation_updated,
            "message": self._message,
            "message_updated": self._message_updated,
        }
        self._created = {(_CREATES[event.type], event.created_id) for event in file.events if event.type in _CREATES}
        for event in sorted(file.events, key=lambda event_: event_.timestamp):
            if event.type in apply:
                apply[event.type](event)
            else:
                what = f"of the unknown type {event.type}" if event.type else "without a type"
                self._remark(event, Severity.NOTE, f"an event {what}; the program skips it")
        remarks = (
            Remark(self._kind, self._name, severity, words, tuple(sorted(lines)))
            for (severity, words), lines in self._remarks.items()
        )
        self._cache.remarks = (*self._cache.remarks, *remarks)

    def _remark(self, event: Event, severity: Severity, words: str) -> None:
        self._remarks.setdefault((severity, words), []).append(event.number)

    def _create(self, event: Event, table: dict[str, Value], row: Value) -> None:
        """Insert or replace a row: of two events for one object the later counts."""
        id_ = event.created_id
        if id_ is None:
            self._remark(event, Severity.WARNING, f"a {event.type} without an id")
            return
        what = _CREATES[event.type]
        before = self._seen.get((what, id_))
        if before is not None and before.id != event.id and not _completes(before, event):
            counted = ", but the program counts each" if what == "message" else ""
            self._remark(event, Severity.NOTE, f"{what} {id_} again: the latest is used{counted}")
        self._seen[what, id_] = event
        members = {name: value for name, value in event.data.items() if value is not None}
        table.pop(id_, None)
        table[id_] = {"id": id_, **members, **row}

    def _update(self, event: Event, table: dict[str, Value], id_: str, changes: Value) -> None:
        row = table.get(id_)
        if row is not None:
            row.update(changes)
            return
        what = event.type.partition("_")[0]
        if (what, id_) in self._created and (what, id_) not in self._seen:
            words = f"{event.type} is older than its {what} {id_}: the program ignores it"
            self._remark(event, Severity.WARNING, words)
        else:
            self._remark(event, Severity.NOTE, f"{event.type} of the {what} {id_}, which does not exist: no effect")

    def _belong(self, event: Event, what: str, table: Mapping[str, Value], id_: str) -> None:
        """Report a missing owner of an object that an event creates; the program does not check."""
        if id_ in table:
            return
        known = (what, id_) in self._created
        severity = Severity.NOTE if known else Severity.WARNING
        gone = "is deleted" if (what, id_) in self._seen else "is created later" if known else "was never created"
        self._remark(event, severity, f"{event.type} of the {what} {id_}, which {gone}: the program does not show it")

    def _workspace_created(self, event: Event) -> None:
        created = event.data.get("created", event.timestamp)
        row = {"created": created, "lastAccessed": created, "isActive": False}
        self._create(event, self._cache.workspaces, {"rootFolder": event.data.get("rootFolder", ""), **row})

    def _workspace_updated(self, event: Event) -> None:
        self._update(event, self._cache.workspaces, event.named("workspaceId"), event.data)

    def _workspace_deleted(self, event: Event) -> None:
        self._cache.workspaces.pop(event.named("workspaceId"), None)

    def _session_created(self, event: Event) -> None:
        workspace = self._workspace_of(event)
        self._create(event, self._cache.sessions, {"workspaceId": workspace, "isActive": True})

    def _session_updated(self, event: Event) -> None:
        self._update(event, self._cache.sessions, event.named("sessionId"), event.data)

    def _state_saved(self, event: Event) -> None:
        self._create(event, self._cache.states, self._in_session(event))

    def _state_deleted(self, event: Event) -> None:
        self._cache.states.pop(event.named("stateId"), None)

    def _trace_added(self, event: Event) -> None:
        self._create(event, self._cache.traces, {**self._in_session(event), "timestamp": event.timestamp})

    def _workspace_of(self, event: Event) -> str:
        workspace = event.named("workspaceId")
        self._belong(event, "workspace", self._cache.workspaces, workspace)
        return workspace

    def _in_session(self, event: Event) -> Value:
        workspace, session = self._workspace_of(event), event.named("sessionId")
        if workspace in self._cache.workspaces:
            self._belong(event, "session", self._cache.sessions, session)
        return {"workspaceId": workspace, "sessionId": session}

    def _conversation_created(self, event: Event) -> None:
        row = {"updated": event.data.get("created"), "message_count": 0}
        self._create(event, self._cache.conversations, row)

    def _conversation_updated(self, event: Event) -> None:
        changes = {"updated": event.timestamp, **event.data}
        self._update(event, self._cache.conversations, event.named("conversationId"), changes)

    def _message(self, event: Event) -> None:
        conversation = event.named("conversationId")
        self._belong(event, "conversation", self._cache.conversations, conversation)
        own = {"conversationId": conversation, "timestamp": event.timestamp}
        self._create(event, self._cache.messages, {"state": event.data.get("state", "complete"), **own})
        row = self._cache.conversations.get(conversation)
        if row is not None:
            row.update(message_count=number(row.get("message_count")) + 1, updated=event.timestamp)

    def _message_updated(self, event: Event) -> None:
        self._update(event, self._cache.messages, event.named("messageId"), event.data)


_CREATES = {
    "workspace_created": "workspace",
    "session_created": "session",
    "state_saved": "state",
    "trace_added": "trace",
    "metadata": "conversation",
    "message": "message",
}
"""The kind of object that each type of event creates."""


def _completes(before: Event, event: Event) -> bool:
    """Tell whether a state was saved again with its missing content (docs/design/formats/claudesidian.md#c11)."""
    return event.type == "state_saved" and "stateJson" not in before.data and "stateJson" in event.data


def _trace(row: Mapping[str, Any]) -> Value:
    metadata = parsed(row.get("metadataJson"))
    members = {
        "id": row["id"],
        "timestamp": row["timestamp"],
        "type": row.get("traceType"),
        "content": row.get("content"),
    }
    return members if metadata is None else {**members, "metadata": metadata}


def _state(row: Mapping[str, Any]) -> Value:
    members: Value = {name: row[name] for name in ("id", "name", "description", "created", "tags") if name in row}
    content = parsed(row.get("stateJson"))
    return members if content is None else {**members, "state": content}
