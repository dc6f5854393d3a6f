"""The event files of `.nexus/`: append-only streams, one JSON object in each line.

Their form is in docs/design/formats/claudesidian.md#lines. The program splits a file at line feeds, and skips blank
lines and lines that do not parse. This module keeps such lines apart, so that a finding can report them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.formats.append_only import Line, merged
from reconcile.formats.json import javascript
from reconcile.formats.json.strict import InvalidContentError, kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reconcile.formats.claudesidian.record_files import Value


_MARKS = (b"<<<<<<< ", b"=======", b">>>>>>> ")


class Event(Struct, frozen=True):
    """One line that holds an event. ``text`` has no end of line, so that files with CRLF compare equal."""

    number: int
    text: bytes
    value: Value

    @property
    def id(self) -> str | None:
        """The event's own id, which no other event has."""
        found = self.value.get("id")
        return found if isinstance(found, str) else None

    @property
    def key(self) -> str | bytes:
        """What tells it from other events: its id, or the whole line."""
        return self.id or self.text

    @property
    def type(self) -> str:
        """What happened; empty where that isn't said."""
        found = self.value.get("type")
        return "" if found is None else str(found)

    @property
    def timestamp(self) -> float:
        """When the line was appended, in ms; 0 where that isn't said."""
        found = self.value.get("timestamp")
        return found if isinstance(found, (int, float)) else 0

    @property
    def data(self) -> Value:
        """The member of that name, empty where it is none."""
        found = self.value.get("data")
        return found if isinstance(found, dict) else {}

    @property
    def made(self) -> str | None:
        """The id of what the event makes, if it makes something."""
        found = self.data.get("id")
        return found if isinstance(found, str) else None

    def named(self, member: str) -> str:
        """The id in a member: whose the event is, or what it changes. Empty where there is none."""
        found = self.value.get(member)
        return found if isinstance(found, str) else ""


class Unreadable(Struct, frozen=True):
    """A line that is no event, which the program skips; ``torn``: the last one, without its end of line."""

    number: int
    text: bytes
    found: str
    torn: bool


class EventFile(Struct, frozen=True):
    """The lines of one file, in their order."""

    events: tuple[Event, ...]
    unreadable: tuple[Unreadable, ...]


class Relation(StrEnum):
    """What one version of an event file is to another, by the events that it holds."""

    EQUAL = "equal"
    AHEAD = "ahead"
    BEHIND = "behind"
    DIVERGED = "diverged"


def read_events(content: bytes) -> EventFile:
    """The events of a file, and the lines that are none; blank lines are nothing.

    See docs/design/formats/claudesidian.md#edge-case-28.
    """
    events: list[Event] = []
    unreadable: list[Unreadable] = []
    lines = content.split(b"\n")
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text:
            continue
        try:
            value = javascript.parse(text)
            found = None if isinstance(value, dict) else kind(value)
        except InvalidContentError as error:
            value, found = None, error.found.replace(" in line 1", "").replace("at line 1 ", "at ")
        if found is None:
            events.append(Event(number, text, value))
        else:
            unreadable.append(Unreadable(number, text, found, torn=number == len(lines)))
    return EventFile(tuple(events), tuple(unreadable))


def holds_events(content: bytes) -> bool:
    """Tell whether at least one line is an event."""
    return any(read_events(line).events for line in content.split(b"\n"))


def is_cut_short(content: bytes) -> bool:
    """Tell whether there is nothing, or only a first line that was cut off."""
    found = read_events(content)
    return not found.events and all(line.torn for line in found.unreadable)


def is_held_by(mine: EventFile, theirs: EventFile) -> bool:
    """Tell whether their version lacks none of my events, each as it is."""
    return _texts(mine.events) <= _texts(theirs.events)


def lacks_events(before: EventFile, after: EventFile) -> bool:
    """Tell whether an edit has lost events. One that has another text under its id was edited, not lost."""
    known, left = _texts(before.events), _texts(after.events)
    edited = {event.key for event in after.events if event.text not in known}
    return any(event.text not in left and event.key not in edited for event in before.events)


def clashing(mine: EventFile, theirs: EventFile) -> list[str]:
    """The ids of events that both have, of which they have no text in common."""
    ours, others = _by_key(mine.events), _by_key(theirs.events)
    return [str(key) for key, texts in ours.items() if key in others and texts.isdisjoint(others[key])]


def relation(mine: EventFile, theirs: EventFile) -> Relation:
    """What mine is to theirs. A version that lacks nothing but events of the other is no conflict.

    Events never change: two that share an id and differ make the versions diverge.
    """
    if [event.text for event in mine.events] == [event.text for event in theirs.events]:
        return Relation.EQUAL
    if is_held_by(theirs, mine):
        return Relation.AHEAD
    return Relation.BEHIND if is_held_by(mine, theirs) else Relation.DIVERGED


def unite(mine: EventFile, theirs: EventFile) -> bytes | None:
    """One file with the events of both (`growing.merged`), each once. The same bytes whichever of the two comes first.

    A line in between that is no event stays where it was: the program skips it, and nobody knows what it was. A torn
    last line is left out. None where that can't be told: an event that both have and that differs, or lines that git
    has put around a conflict.
    """
    if clashing(mine, theirs) or any(is_marked(each) for each in (mine, theirs)):
        return None
    return joined(line.text for line in merged(_lines(mine), _lines(theirs)))


def is_marked(file: EventFile) -> bool:
    """Tell whether git's marks of a conflict are in it."""
    return any(line.text.startswith(_MARKS) for line in file.unreadable)


def joined(texts: Iterable[bytes]) -> bytes:
    """The bytes of a file with these lines."""
    return b"".join(text + b"\n" for text in texts)


def line(value: Value) -> bytes:
    """One event as the program writes it: JSON without blanks."""
    return compact(value).encode()


def compact(value: object) -> str:
    """The text of ``JSON.stringify(value)``. Values that were parsed are never deeper than the stack."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{javascript.text(key)}:{compact(value[key])}" for key in javascript.keys(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(compact, value)) + "]"
    return javascript.stringify(value).decode()


def _texts(events: Iterable[Event]) -> set[bytes]:
    return {event.text for event in events}


def _by_key(events: Iterable[Event]) -> dict[str | bytes, set[bytes]]:
    found: dict[str | bytes, set[bytes]] = {}
    for event in events:
        found.setdefault(event.key, set()).add(event.text)
    return found


def _lines(file: EventFile) -> list[Line]:
    """The lines that a union keeps, in their order, each once."""
    lines = [(event.number, event.timestamp, event.text) for event in file.events]
    lines += [(line.number, 0.0, line.text) for line in file.unreadable if not line.torn]
    found = (Line(text, time, text) for _, time, text in sorted(lines))
    return list({line.key: line for line in found}.values())
