"""Findings about `.nexus/`: C11 and C12 of section 8, and what its replay passes over."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import NAMESPACE_OID, uuid5

from reconcile.core.model import Fault
from reconcile.formats.claudesidian.events import compact, joined, line, read_events
from reconcile.formats.claudesidian.finding import Finding, Repair, Severity, error, note, warning
from reconcile.formats.claudesidian.items import Item, Kind, sessions_of, states_of
from reconcile.formats.claudesidian.replay import parsed
from reconcile.formats.claudesidian.vault import NEXUS
from reconcile.formats.claudesidian.words import counted, some
from reconcile.formats.strict import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from reconcile.formats.claudesidian.events import Event, EventFile
    from reconcile.formats.claudesidian.items import Value
    from reconcile.formats.claudesidian.replay import Cache
    from reconcile.formats.claudesidian.vault import NexusFiles


def read_nexus(nexus: NexusFiles) -> dict[Kind, dict[str, EventFile]]:
    """Parse the event files that can be read."""
    return {
        kind: {name: read_events(content) for name, content in files.items() if isinstance(content, bytes)}
        for kind, files in nexus.events.items()
    }


def place(kind: Kind, name: str) -> str:
    """The path of an event file in the vault."""
    return f"{NEXUS}/{kind}s/{name}"


def check_events(
    nexus: NexusFiles,
    files: Mapping[Kind, Mapping[str, EventFile]],
    cache: Cache,
    older: Mapping[str, Item],
    now_ms: int,
) -> Iterator[Finding]:
    """Everything that is wrong with the event files; ``older`` are the workspaces of the split era by id."""
    for kind in Kind:
        for name, content in sorted(nexus.events.get(kind, {}).items()):
            if isinstance(content, Fault):
                found = f"{content.found}, expected {content.expected}"
                yield error("C12", place(kind, name), found, "put a copy from elsewhere in its place")
            else:
                yield from _lines(place(kind, name), files[kind][name])
                yield from _payloads(place(kind, name), files[kind][name], content, older, now_ms)
    for remark in cache.remarks:
        where = f"line {', '.join(map(str, remark.lines))}"
        mend = "nothing is lost in the file; write it again in the program, if it matters"
        if remark.severity is Severity.NOTE:
            mend = "nothing"
        yield Finding("C12", remark.severity, place(remark.kind, remark.file), f"{remark.words} ({where})", mend)
    yield from _names(cache)


def _lines(path: str, file: EventFile) -> Iterator[Finding]:
    """C12: lines that the program skips, and events that are there twice."""
    kept = joined(event.text for event in file.events)
    for each in file.unreadable:
        if each.torn:
            found = f"a torn last line ({each.found}), which the program skips"
            yield warning(
                "C12", path, found, "set it aside: the next event would be written behind it", Repair(path, kept)
            )
        else:
            found = f"no event in line {each.number} ({each.found}), which the program skips"
            yield warning(
                "C12",
                path,
                found,
                "see what it should be: on request it is set aside",
                Repair(path, kept),
                on_request=True,
            )
    first: dict[str | bytes, Event] = {}
    again: list[Event] = [event for event in file.events if first.setdefault(event.key, event) is not event]
    if differing := [str(event.id) for event in again if event.text != first[event.key].text]:
        yield warning(
            "C12", path, f"events that share an id and differ: {some(differing)}", "keep both, and see which is right"
        )
    same = [event for event in again if event.text == first[event.key].text]
    if same:
        lines = ", ".join(str(event.number) for event in same)
        once = joined(event.text for event in file.events if event not in same)
        found = f"events that are there already, in line {lines}"
        yield warning(
            "C12", path, found, "keep the first of each", Repair(path, once), on_request=bool(file.unreadable)
        )


def _payloads(path: str, file: EventFile, content: bytes, older: Mapping[str, Item], now_ms: int) -> Iterator[Finding]:
    """C11: states of which only the name was migrated, once their content was called `snapshot`."""
    latest: dict[str, Event] = {}
    for event in sorted(file.events, key=lambda each: each.timestamp):
        if event.type == "state_saved" and event.made is not None:
            latest[event.made] = event
        elif event.type == "state_deleted":
            latest.pop(event.named("stateId"), None)
    empty = [event for event in latest.values() if parsed(event.data.get("stateJson")) is None]
    if not empty:
        return
    ids = some(str(event.made) for event in empty)
    found = f"{counted(len(empty), 'state')} without content, which can't be opened: {ids}"
    again = [text for event in empty if (text := _saved_again(event, older, now_ms)) is not None]
    if not again:
        yield error("C11", path, found, "look for the .workspaces/ that they were migrated from: it has the content")
        return
    begun = content if content.endswith(b"\n") or not content else content + b"\n"
    where = older[empty[0].named("workspaceId")].path
    mend = (
        f"save {len(again)} of them again with the content that {where} has"
        if len(again) < len(empty)
        else (f"save them again with the content that {where} has")
    )
    yield error("C11", path, found, mend, Repair(path, begun + joined(again)))


def _saved_again(event: Event, older: Mapping[str, Item], now_ms: int) -> bytes | None:
    """The event that a migration without the fault would have written, after all others."""
    item = older.get(event.named("workspaceId"))
    session = sessions_of(item.value).get(event.named("sessionId")) if item else None
    state = states_of(session).get(str(event.made)) if session else None
    payload = state.get("state", state.get("snapshot")) if state else None
    if not isinstance(payload, dict):
        return None
    changed: Value = {
        **event.value,
        "data": {**event.data, "stateJson": compact(payload)},
        "id": str(uuid5(NAMESPACE_OID, f"{event.key!r} with its content")),
        "timestamp": max(now_ms, int(event.timestamp) + 1),
    }
    return line(changed)


def _names(cache: Cache) -> Iterator[Finding]:
    """The program's cache holds one workspace of a name (section 6, "Known contradictions")."""
    by_name: dict[str, list[str]] = {}
    for id_, row in cache.workspaces.items():
        by_name.setdefault(str(row.get("name")), []).append(id_)
    for name, ids in by_name.items():
        if len(ids) > 1:
            found = f"{len(ids)} workspaces called {quoted(name)}, of which the program shows the last: {some(ids)}"
            yield note("C12", f"{NEXUS}/workspaces", found, "rename one of them")
