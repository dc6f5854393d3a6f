"""The two eras side by side: what the migration has not carried over, while the older form still has it.

See docs/design/formats/claudesidian.md#migration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.formats.claudesidian.finding import Finding, note, warning
from reconcile.formats.claudesidian.record_files import Kind, messages_of, sessions_of, states_of, traces_of
from reconcile.formats.claudesidian.vault import NEXUS, STATUS, event_file
from reconcile.formats.claudesidian.words import counted, some
from reconcile.formats.json import javascript
from reconcile.formats.json.strict import InvalidContentError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from reconcile.formats.claudesidian.events.parse import Event, EventFile
    from reconcile.formats.claudesidian.record_files import Item, Value
    from reconcile.formats.claudesidian.vault import Content, Records

_OF_MESSAGES = ("usage", "cost", "provider", "model", "toolName", "toolParams", "toolResult", "metadata")
"""Members of a message that no event has."""
_MADE_BY = {
    "session": "session_created",
    "trace": "trace_added",
    "state": "state_saved",
    "message": "message",
}


def is_completed(status: Content | None) -> bool:
    """Tell whether the migration has come to its end: then `.nexus` is the truth and the older form an archive."""
    try:
        value = javascript.parse(status) if isinstance(status, bytes) else None
    except InvalidContentError:
        return False
    return isinstance(value, dict) and value.get("completed") is True


def check_status(status: Content | None) -> Iterator[Finding]:
    """A status that can't be read: the program migrates again, which does nothing where there are files."""
    try:
        value = javascript.parse(status) if isinstance(status, bytes) else {}
        found = None if isinstance(value, dict) else "no JSON object"
    except InvalidContentError as error:
        found = error.found
    if found is not None:
        mend = "nothing: the program begins again, and leaves out what has a file already"
        yield note("migration", f"{NEXUS}/{STATUS}", found, mend)


def check_migration(
    records: Mapping[Kind, Records], files: Mapping[Kind, Mapping[str, EventFile]], *, completed: bool
) -> Iterator[Finding]:
    """What each record of the older form has that its event file hasn't.

    See docs/design/formats/claudesidian.md#edge-case-23 and docs/design/formats/claudesidian.md#edge-case-24.
    """
    for kind, found in records.items():
        for item in found.current.values():
            name = event_file(kind, item.id)
            file = files.get(kind, {}).get(name)
            missing = _missing(item, file.events if file else ())
            if file is None or missing:
                yield _unfinished(item, name, missing, begun=file is not None, completed=completed)
            if file is not None and completed and (left := list(_left_out(item, file.events))):
                words = f"left out by the migration: {', '.join(left)}"
                yield note("migration", item.path, words, "keep this file: it is the only one that has them")


def _unfinished(item: Item, name: str, missing: Mapping[str, list[str]], *, begun: bool, completed: bool) -> Finding:
    told = "; ".join(f"{counted(len(ids), what)} ({some(ids)})" for what, ids in missing.items())
    held = f", without {told}" if told else ""
    if begun:
        found = f"not migrated in whole: {NEXUS}/{item.kind}s/{name} is there{held}"
        mend = (
            "keep this file; the program takes what has an event file for done, so move that away to have it made anew"
        )
    else:
        found = f"not migrated: there is no {NEXUS}/{item.kind}s/{name}{held}"
        mend = "keep this file" if completed else "start the program again: it goes on with what has no event file"
    return warning("migration", item.path, found, mend)


def _missing(item: Item, events: Iterable[Event]) -> dict[str, list[str]]:
    """The ids of what a record holds that no event makes."""
    made: dict[str, set[str | None]] = {}
    for event in events:
        made.setdefault(event.type, set()).add(event.made)
    lacks = {what: [id_ for id_ in ids if id_ not in made.get(_MADE_BY[what], ())] for what, ids in _held(item).items()}
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
    """What the events of a migrated record don't say, in words."""
    times = {event.made: event.timestamp for event in events if event.type in ("trace_added", "message")}
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
