"""A conversation as people read it: turns with a speaker, a time and a text in Markdown.

A format makes it from the files of a conversation (`Format.transcript`). The commands that print, compare and search
texts use only these values, whatever the format is.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Speaker(StrEnum):
    """The one who speaks in a turn."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    SYSTEM = "system"
    """The program: marks, settings, and everything that no one says."""


class Turn(Struct, frozen=True):
    """One event in readable form.

    ``position`` is that of its event, from 1. ``kind`` is the event's type as its format names it. ``time`` is written
    as in the file, empty if it is unknown; numbers are converted to UTC. ``text`` is Markdown, with decoded contents;
    it may be empty. ``key`` is a hash of the whole event: equal events have equal keys. ``details`` are the event's
    other values, one ``name: value`` a line: they are printed only where nothing else differs.
    """

    position: int
    speaker: Speaker
    kind: str
    time: str
    text: str
    key: str
    details: str = ""


class Transcript(Struct, frozen=True):
    """A readable conversation.

    ``about`` has pairs of metadata, a key and a text, for a heading. ``notes`` name what can't be read.
    """

    title: str | None
    about: tuple[tuple[str, str], ...] = ()
    turns: tuple[Turn, ...] = ()
    notes: tuple[str, ...] = ()
