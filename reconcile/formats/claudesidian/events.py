"""The event files of `.nexus/`: append-only streams, one JSON object in each line.

Their form is in docs/design/formats/claudesidian.md#lines. The program splits a file at line feeds, and skips blank
lines and lines that do not parse. This module keeps such lines apart, so that a finding can report them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.formats.fixed import Line, merged
from reconcile.formats.json import javascript
from reconcile.formats.json.strict import InvalidContentError, kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reconcile.formats.claudesidian.record_files import Value


_MARKS = (b"<<<<<<< ", b"=======", b">>>>>>> ")
_ENDS = "it ends"


class Event(Struct, frozen=True):
    """One line with an event. ``text`` has no end of line, so that files with CRLF compare equal."""

    number: int
    text: bytes
    value: Value

    @property
    def id(self) -> str | None:
        """The id of the event, which no other event has."""
        value = self.value.get("id")
        return value if isinstance(value, str) else None

    @property
    def key(self) -> str | bytes:
        """The key that identifies the event: its id, or the whole line."""
        return self.id or self.text

    @property
    def type(self) -> str:
        """The type of the event; empty if there is none."""
        value = self.value.get("type")
        return "" if value is None else str(value)

    @property
    def timestamp(self) -> float:
        """The time when the line was appended, in ms; 0 if it is not stated."""
        value = self.value.get("timestamp")
        return value if isinstance(value, (int, float)) else 0

    @property
    def data(self) -> Value:
        """The member `data`; empty if it is not an object."""
        value = self.value.get("data")
        return value if isinstance(value, dict) else {}

    @property
    def created_id(self) -> str | None:
        """The id of the object that the event creates; None if it creates none."""
        value = self.data.get("id")
        return value if isinstance(value, str) else None

    def named(self, member: str) -> str:
        """Return the id in a member: the owner of the event or the object that it changes; empty if there is none."""
        value = self.value.get(member)
        return value if isinstance(value, str) else ""


class Unreadable(Struct, frozen=True):
    """A line that is no event, which the program skips. ``torn``: it is the last one, and was written only in part."""

    number: int
    text: bytes
    found: str
    torn: bool


class EventFile(Struct, frozen=True):
    """The lines of one file, in their order."""

    events: tuple[Event, ...]
    unreadable: tuple[Unreadable, ...]


class Relation(StrEnum):
    """The relation of one version of an event file to another, by their events."""

    EQUAL = "equal"
    AHEAD = "ahead"
    BEHIND = "behind"
    DIVERGED = "diverged"


def read_events(content: bytes) -> EventFile:
    """Read the events of a file, and the lines that are none; blank lines are ignored.

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
            problem = None if isinstance(value, dict) else kind(value)
        except InvalidContentError as error:
            value, problem = None, _in_one_line(error.found)
        if problem is None:
            events.append(Event(number, text, value))
        else:
            torn = number == len(lines) and _is_cut(text, problem)
            unreadable.append(Unreadable(number, text, problem, torn))
    return EventFile(tuple(events), tuple(unreadable))


def _is_cut(text: bytes, problem: str) -> bool:
    """Tell whether a last line may be the beginning of an event: neither a whole object nor a conflict marker."""
    whole = text.startswith(b"{") and text.endswith(b"}") and not problem.startswith(_ENDS)
    return not whole and not text.startswith(_MARKS)


def _in_one_line(problem: str) -> str:
    """Return the words about a file as words about one line of it."""
    return (
        problem.replace("a truncated file, which ends", _ENDS).replace(" in line 1 ", " in ").replace(" in line 1", "")
    )


def holds_events(content: bytes) -> bool:
    """Tell whether at least one line is an event."""
    return any(read_events(line).events for line in content.split(b"\n"))


def is_cut_short(content: bytes) -> bool:
    """Tell whether the file is empty, or has only a truncated first line."""
    file = read_events(content)
    return not file.events and all(line.torn for line in file.unreadable)


def is_held_by(file: EventFile, version: EventFile) -> bool:
    """Tell whether a version has all events of a file, unchanged."""
    return _texts(file.events) <= _texts(version.events)


def lacks_events(before: EventFile, after: EventFile) -> bool:
    """Tell whether an edit has lost events. An event with another text under its id was edited, not lost."""
    known, left = _texts(before.events), _texts(after.events)
    edited = {event.key for event in after.events if event.text not in known}
    return any(event.text not in left and event.key not in edited for event in before.events)


def clashing(first: EventFile, second: EventFile) -> list[str]:
    """Return the ids of events that both files have, but without a text in common."""
    first_texts, second_texts = _by_key(first.events), _by_key(second.events)
    return [
        str(key) for key, texts in first_texts.items() if key in second_texts and texts.isdisjoint(second_texts[key])
    ]


def relation(first: EventFile, second: EventFile) -> Relation:
    """Return the relation of the first file to the second. A version that only lacks events is no conflict.

    Events never change: two versions diverge if events share an id and differ.
    """
    if [event.text for event in first.events] == [event.text for event in second.events]:
        return Relation.EQUAL
    if is_held_by(second, first):
        return Relation.AHEAD
    return Relation.BEHIND if is_held_by(first, second) else Relation.DIVERGED


def merge(first: EventFile, second: EventFile) -> bytes | None:
    """Merge the events of both files (`fixed.merged`), each once; the order of the two files does not matter.

    A line in between that is no event keeps its place: the program skips it, and its meaning is unknown. A truncated
    last line is left out. None: both have an event that differs, or one has conflict markers of git.
    """
    if clashing(first, second) or any(is_marked(file) for file in (first, second)):
        return None
    return joined(line.text for line in merged(_lines(first), _lines(second)))


def is_marked(file: EventFile) -> bool:
    """Tell whether the file has conflict markers of git."""
    return any(line.text.startswith(_MARKS) for line in file.unreadable)


def joined(texts: Iterable[bytes]) -> bytes:
    """Return the bytes of a file with these lines."""
    return b"".join(text + b"\n" for text in texts)


def line(value: Value) -> bytes:
    """Return one event as the program writes it: JSON without blanks."""
    return compact(value).encode()


def compact(value: object) -> str:
    """Return the text of ``JSON.stringify(value)``. A parsed value is never deeper than the stack."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{javascript.text(key)}:{compact(value[key])}" for key in javascript.keys(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(compact, value)) + "]"
    return javascript.stringify(value).decode()


def _texts(events: Iterable[Event]) -> set[bytes]:
    return {event.text for event in events}


def _by_key(events: Iterable[Event]) -> dict[str | bytes, set[bytes]]:
    texts: dict[str | bytes, set[bytes]] = {}
    for event in events:
        texts.setdefault(event.key, set()).add(event.text)
    return texts


def _lines(file: EventFile) -> list[Line]:
    """Return the lines that a merge keeps, in their order, each once."""
    lines = [(event.number, event.timestamp, event.text) for event in file.events]
    lines += [(line.number, 0.0, line.text) for line in file.unreadable if not line.torn]
    kept = (Line(text, time, text) for _, time, text in sorted(lines))
    return list({line.key: line for line in kept}.values())
