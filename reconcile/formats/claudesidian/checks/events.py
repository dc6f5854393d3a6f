"""Checks of the event files in `.nexus/`, and of what the migration to them has not carried over.

See docs/design/formats/claudesidian.md#c11, docs/design/formats/claudesidian.md#c12 and
docs/design/formats/claudesidian.md#migration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import NAMESPACE_OID, uuid5

from reconcile.formats.claudesidian.events import compact, joined, line, read_events
from reconcile.formats.claudesidian.finding import Finding, Repair, Severity, counted, error, note, some, warning
from reconcile.formats.claudesidian.record_files import Item, Kind, messages_of, sessions_of, states_of, traces_of
from reconcile.formats.claudesidian.replay import parsed
from reconcile.formats.claudesidian.vault import NEXUS, STATUS, event_file
from reconcile.formats.json import javascript
from reconcile.formats.json.strict import InvalidContentError, quoted
from reconcile.model.snapshot import Fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from reconcile.formats.claudesidian.events import Event, EventFile, Unreadable
    from reconcile.formats.claudesidian.record_files import Value
    from reconcile.formats.claudesidian.replay import Cache
    from reconcile.formats.claudesidian.vault import Content, NexusFiles, Records


_LAST_MS = 2**53 - 2
"""The greatest number that JavaScript can still increment by one."""


def read_nexus(nexus: NexusFiles) -> dict[Kind, dict[str, EventFile]]:
    """Parse the event files that can be read."""
    return {
        kind: {name: read_events(content) for name, content in files.items() if isinstance(content, bytes)}
        for kind, files in nexus.events.items()
    }


def place(kind: Kind, name: str) -> str:
    """Return the path of an event file in the vault."""
    return f"{NEXUS}/{kind}s/{name}"


def check_events(
    nexus: NexusFiles,
    files: Mapping[Kind, Mapping[str, EventFile]],
    cache: Cache,
    older: Mapping[str, Item],
) -> Iterator[Finding]:
    """Yield all findings about the event files; ``older`` are the workspaces of the split era by id."""
    for kind in Kind:
        for name, content in sorted(nexus.events.get(kind, {}).items()):
            if isinstance(content, Fault):
                yield error("C12", place(kind, name), content.words, "replace it with a copy from elsewhere")
            else:
                yield from _Checking(place(kind, name), content, files[kind][name], older).findings()
    for remark in cache.remarks:
        where = f"line {', '.join(map(str, remark.lines))}"
        mend = "the file loses nothing; save the change again in the program if you need it"
        if remark.severity is Severity.NOTE:
            mend = "nothing to do"
        yield Finding("C12", remark.severity, place(remark.kind, remark.file), f"{remark.words} ({where})", mend)
    yield from _names(cache)


class _Checking:
    """The checks of one event file. All repairs that need no request are one repair of the file."""

    def __init__(self, path: str, content: bytes, file: EventFile, older: Mapping[str, Item]) -> None:
        self._path = path
        self._content = content
        self._file = file
        self._older = older
        first: dict[str | bytes, Event] = {}
        again = [event for event in file.events if first.setdefault(event.key, event) is not event]
        self._same = [event for event in again if event.text == first[event.key].text]
        self._differing = [event for event in again if event.text != first[event.key].text]
        self._empty = _without_content(file)
        saved = [(event, _saved_again(event, older)) for event in self._empty]
        self._saved = [(event, text) for event, text in saved if text is not None]

    def findings(self) -> Iterator[Finding]:
        """Yield findings about lines (docs/design/formats/claudesidian.md#c12) and about states."""
        if self._empty:
            yield self._payloads()
        for unreadable in self._file.unreadable:
            yield self._unreadable(unreadable)
        if self._differing:
            problem = f"different events with the same id: {some(str(event.id) for event in self._differing)}"
            yield warning("C12", self._path, problem, "compare them, and keep both until you know which is right")
        if self._same:
            problem = f"repeated events in line {', '.join(str(event.number) for event in self._same)}"
            yield warning("C12", self._path, problem, "keep only the first of each", self._repair())

    def _payloads(self) -> Finding:
        """Return a finding about states without content: a migration has copied only their names.

        The content was called `snapshot` then. See docs/design/formats/claudesidian.md#c11.
        """
        problem = f"{counted(len(self._empty), 'state')} without content, so they can't be opened: "
        problem += some(str(event.created_id) for event in self._empty)
        if not self._saved:
            mend = "look for the .workspaces/ before the migration: it has the content"
            return error("C11", self._path, problem, mend)
        which = "them" if len(self._saved) == len(self._empty) else f"{len(self._saved)} of them"
        first, _ = self._saved[0]
        where = self._older[first.named("workspaceId")].path
        mend = f"save {which} again with the content from {where}"
        return error("C11", self._path, problem, mend, self._repair())

    def _unreadable(self, line: Unreadable) -> Finding:
        if line.torn and not self._file.events:
            problem = f"only a truncated line ({line.found}), which the program skips"
            return error("C12", self._path, problem, "replace it with a copy from elsewhere")
        if line.torn:
            problem = f"a truncated last line ({line.found}), which the program skips"
            mend = "remove the line (the vault keeps it); the next event would be appended to it"
            return warning("C12", self._path, problem, mend, self._repair())
        problem = f"line {line.number} is not an event ({line.found}); the program skips it"
        mend = "check the line; on request all such lines are removed (the vault keeps them)"
        return warning("C12", self._path, problem, mend, self._repair(broken=True), on_request=True)

    def _repair(self, *, broken: bool = False) -> Repair:
        """Return the file without its truncated end and repeated events, and with the states that are saved again.

        ``broken``: also without the lines in between that are no events.
        """
        gone = {event.number for event in self._same}
        gone |= {line.number for line in self._file.unreadable if line.torn or broken}
        lines = self._content.removesuffix(b"\n").split(b"\n")
        kept = [line for number, line in enumerate(lines, 1) if number not in gone]
        return Repair(self._path, joined([*kept, *(text for _, text in self._saved)]))


def _without_content(file: EventFile) -> list[Event]:
    """Return the events by which states were saved last, if these have no content."""
    latest: dict[str, Event] = {}
    for event in sorted(file.events, key=lambda event_: event_.timestamp):
        if event.type == "state_saved" and event.created_id is not None:
            latest[event.created_id] = event
        elif event.type == "state_deleted":
            latest.pop(event.named("stateId"), None)
    return [event for event in latest.values() if parsed(event.data.get("stateJson")) is None]


def _saved_again(event: Event, older: Mapping[str, Item]) -> bytes | None:
    """Return the event that a migration without the fault would have written, after the one without content.

    Two worktrees that are repaired separately must get the same event: nothing in it depends on the time of the repair.
    """
    item = older.get(event.named("workspaceId"))
    session = sessions_of(item.value).get(event.named("sessionId")) if item else None
    state = states_of(session).get(str(event.created_id)) if session else None
    payload = state.get("state", state.get("snapshot")) if state else None
    if not isinstance(payload, dict):
        return None
    changed: Value = {
        **event.value,
        "data": {**event.data, "stateJson": compact(payload)},
        "id": str(uuid5(NAMESPACE_OID, f"{event.key!r} with its content")),
        "timestamp": int(max(-_LAST_MS, min(event.timestamp, _LAST_MS))) + 1,
    }
    return line(changed)


def _names(cache: Cache) -> Iterator[Finding]:
    """Yield findings about workspaces with the same name, of which the program's cache holds only one.

    See docs/design/formats/claudesidian.md#contradictions.
    """
    by_name: dict[str, list[str]] = {}
    for id_, row in cache.workspaces.items():
        by_name.setdefault(str(row.get("name") or "(unnamed)"), []).append(id_)
    for name, ids in by_name.items():
        if len(ids) > 1:
            problem = f"{len(ids)} workspaces have the name {quoted(name)}, and the program shows the last: {some(ids)}"
            yield note("C12", f"{NEXUS}/workspaces", problem, "rename one of them")


_OF_MESSAGES = ("usage", "cost", "provider", "model", "toolName", "toolParams", "toolResult", "metadata")
"""Members of a message that no event contains."""
_CREATED_BY = {
    "session": "session_created",
    "trace": "trace_added",
    "state": "state_saved",
    "message": "message",
}


def is_completed(status: Content | None) -> bool:
    """Tell whether the migration has ended: then `.nexus` is the truth, and the older form is an archive."""
    try:
        value = javascript.parse(status) if isinstance(status, bytes) else None
    except InvalidContentError:
        return False
    return isinstance(value, dict) and value.get("completed") is True


def check_status(status: Content | None) -> Iterator[Finding]:
    """Yield a finding about a status that can't be read: the program migrates again, which skips existing files."""
    try:
        value = javascript.parse(status) if isinstance(status, bytes) else {}
        problem = None if isinstance(value, dict) else "not a JSON object"
    except InvalidContentError as error:
        problem = error.found
    if problem is not None:
        mend = "nothing to do: the program migrates again, and skips records that have a file already"
        yield note("migration", f"{NEXUS}/{STATUS}", problem, mend)


def check_migration(
    records: Mapping[Kind, Records], files: Mapping[Kind, Mapping[str, EventFile]], *, completed: bool
) -> Iterator[Finding]:
    """Yield findings about content of the older form that the event files lack.

    See docs/design/formats/claudesidian.md#edge-case-23 and docs/design/formats/claudesidian.md#edge-case-24.
    """
    for kind, kind_records in records.items():
        for item in kind_records.current.values():
            name = event_file(kind, item.id)
            file = files.get(kind, {}).get(name)
            missing = _missing(item, file.events if file else ())
            if file is None or missing:
                yield _unfinished(item, name, missing, begun=file is not None, completed=completed)
            if file is not None and completed and (left := list(_left_out(item, file.events))):
                words = f"not migrated: {', '.join(left)}"
                yield note("migration", item.path, words, "keep this file, the only one that has them")


def _unfinished(item: Item, name: str, missing: Mapping[str, list[str]], *, begun: bool, completed: bool) -> Finding:
    lacks = "; ".join(f"{counted(len(ids), what)} ({some(ids)})" for what, ids in missing.items())
    held = f", without {lacks}" if lacks else ""
    if begun:
        problem = f"migrated only in part: {NEXUS}/{item.kind}s/{name} exists{held}"
        mend = "keep this file; to migrate it again, move the event file away and start the program"
    else:
        problem = f"not migrated: {NEXUS}/{item.kind}s/{name} is missing{held}"
        mend = "keep this file" if completed else "start the program again: it migrates records without an event file"
    return warning("migration", item.path, problem, mend)


def _missing(item: Item, events: Iterable[Event]) -> dict[str, list[str]]:
    """Return the ids in a record that no event creates."""
    made: dict[str, set[str | None]] = {}
    for event in events:
        made.setdefault(event.type, set()).add(event.created_id)
    lacks = {
        what: [id_ for id_ in ids if id_ not in made.get(_CREATED_BY[what], ())] for what, ids in _held(item).items()
    }
    return {what: ids for what, ids in lacks.items() if ids}


def _held(item: Item) -> dict[str, list[str]]:
    if item.kind is Kind.CONVERSATION:
        return {"message": [str(message.get("id") or "(no id)") for message in messages_of(item.value)]}
    sessions = sessions_of(item.value)
    return {
        "session": list(sessions),
        "trace": [id_ for session in sessions.values() for id_ in traces_of(session)],
        "state": [id_ for session in sessions.values() for id_ in states_of(session)],
    }


def _left_out(item: Item, events: Iterable[Event]) -> Iterator[str]:
    """Yield what the events of a migrated record leave out, in words."""
    times = {event.created_id: event.timestamp for event in events if event.type in ("trace_added", "message")}
    if item.kind is Kind.WORKSPACE:
        yield from (name for name in ("lastAccessed", "isActive") if name in item.value)
        sessions = sessions_of(item.value)
        yield from _of("endTime", sum("endTime" in session for session in sessions.values()), "session")
        traces = [(id_, trace) for session in sessions.values() for id_, trace in traces_of(session).items()]
        yield from _of("the time", _moved(traces, times), "trace")
        return
    messages = messages_of(item.value)
    yield from (name for name in ("updated", "cost") if name in item.value)
    metadata = item.value.get("metadata")
    if isinstance(metadata, dict) and (more := [name for name in metadata if name != "chatSettings"]):
        yield f"{', '.join(more)} of its metadata"
    yield from _of(
        "the time", _moved([(str(message.get("id") or "(no id)"), message) for message in messages], times), "message"
    )
    for name in _OF_MESSAGES:
        yield from _of(name, sum(name in message for message in messages), "message")
    yield from _of("tool results", sum(_has_results(message) for message in messages), "message")


def _moved(entries: Iterable[tuple[str, Value]], times: Mapping[str | None, float]) -> int:
    return sum(id_ in times and times[id_] != entry.get("timestamp") for id_, entry in entries)


def _has_results(message: Value) -> bool:
    calls = message.get("toolCalls")
    return isinstance(calls, list) and any(isinstance(call, dict) and "result" in call for call in calls)


def _of(what: str, count: int, owner: str) -> Iterator[str]:
    if count:
        yield f"{what} of {counted(count, owner)}"
