"""A transcript as one readable text in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reconcile.model.transcript import Transcript, Turn

_NAMES = {"user": "User", "assistant": "Assistant", "tool": "Tool", "system": "System"}


def to_markdown(transcript: Transcript) -> str:
    """Return a transcript as Markdown: its title, metadata and notes, then each turn below a heading.

    A turn without a text, such as a mark of the program, is one line.
    """
    return "\n".join(_lines(transcript)) + "\n"


def _lines(transcript: Transcript) -> Iterator[str]:
    yield f"# {_one_line(transcript.title) or '(no title)'}"
    if transcript.about:
        yield ""
        yield from (f"- {key}: {_one_line(value)}" for key, value in transcript.about)
    if transcript.notes:
        yield ""
        yield from (f"> note: {_one_line(note)}" for note in transcript.notes)
    for turn in transcript.turns:
        yield ""
        if turn.text:
            yield f"## {heading_of(turn)}"
            yield ""
            yield from turn.text.split("\n")
        else:
            yield f"*{heading_of(turn)}*"


def heading_of(turn: Turn) -> str:
    """Return the heading of a turn: its number, speaker, type and time."""
    time = f", {short_time(turn.time)}" if turn.time else ""
    return _one_line(f"{turn.position}. {_NAMES[turn.speaker]} ({turn.kind}{time})")


def _one_line(text: str | None) -> str:
    """Return a text of the conversation without the ends of its lines: a second line could look like ours."""
    return (text or "").replace("\n", " ")


def short_time(time: str) -> str:
    """Return a time without the fraction of its second."""
    whole, point, rest = time.partition(".")
    return whole + rest.lstrip("0123456789") if point else time
