"""Reading one line of a scenario word by word, and the errors that name file and line."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

DAY_NS = int(datetime(2025, 1, 2, tzinfo=UTC).timestamp()) * 10**9
"""Every time of day in a scenario is on this day."""

HOUR_NS = 3600 * 10**9

_WORD = re.compile(r"\S*")
_TIME = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?")
_STAMP = re.compile(r"@(-?\d+)")


class ScenarioError(Exception):
    """A line that is no scenario's: what was found and what was expected; the reader adds where."""


class Words:
    """A line and a position in it. Words end at spaces, ``#`` at the beginning of one ends the line."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def peek(self) -> str:
        """Return the next word without taking it, empty at the end."""
        self._skip()
        match = _WORD.match(self._text, self._at)
        word = match[0] if match else ""
        return "" if word.startswith("#") else word

    def word(self, expected: str) -> str:
        word = self.peek()
        if not word:
            raise ScenarioError(f"found the end of the line, expected {expected}")
        self._at += len(word)
        return word

    def take(self, *words: str) -> bool:
        """Take the next word if it is one of these."""
        if self.peek() not in words:
            return False
        self.word(words[0])
        return True

    def match(self, pattern: str, expected: str) -> re.Match[str]:
        """Take what matches here, spaces included."""
        self._skip()
        match = re.compile(pattern).match(self._text, self._at)
        if match is None:
            raise ScenarioError(f"found {self._text[self._at :]!r}, expected {expected}")
        self._at = match.end()
        return match

    def json(self, expected: str) -> Any:
        self._skip()
        try:
            value, self._at = json.JSONDecoder().raw_decode(self._text, self._at)
        except ValueError:
            raise ScenarioError(f"found {self._text[self._at :]!r}, expected {expected}") from None
        return value

    def path(self) -> str:
        """Take a path; one with spaces is written as a JSON string."""
        return str(self.json("a path") if self.peek().startswith('"') else self.word("a path"))

    def time(self) -> int:
        return time_ns(self.word("a time of day"))

    def end(self) -> None:
        if word := self.peek():
            raise ScenarioError(f"found {word!r}, expected the end of the line")

    def _skip(self) -> None:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1


def json_text(text: str) -> str:
    """Read a JSON string that is all there is."""
    words = Words(text)
    value = words.json('a text in quotes: "..."')
    words.end()
    return str(value)


def time_ns(text: str) -> int:
    """Read a time of day, ``09:30`` or ``09:30:00.000000001``, as nanoseconds since the epoch."""
    stamp = _STAMP.fullmatch(text)
    if stamp is not None:
        return int(stamp[1])
    match = _TIME.fullmatch(text)
    if match is None:
        raise ScenarioError(f"found {text!r}, expected a time of day such as 09:30")
    hours, minutes, seconds, fraction = match.groups()
    whole = int(hours) * 3600 + int(minutes) * 60 + int(seconds or 0)
    return DAY_NS + whole * 10**9 + int((fraction or "").ljust(9, "0"))


def show_time(time: int) -> str:
    """Write a time of day as briefly as it can be read again; ``@ns`` where it is on another day."""
    since = time - DAY_NS
    if not 0 <= since < 24 * 3600 * 10**9:
        return f"@{time}"
    seconds, fraction = divmod(since, 10**9)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}"
    if seconds % 60 or fraction:
        text += f":{seconds % 60:02}"
    return f"{text}.{fraction:09}".rstrip("0") if fraction else text


def is_time(text: str) -> bool:
    return bool(_TIME.fullmatch(text) or _STAMP.fullmatch(text))


def show_path(path: str) -> str:
    """Write a path as `Words.path` reads it."""
    return json.dumps(path) if not path or re.search(r'\s|^["#]', path) else path
