"""A second reader of JSON, written from the rules alone, that what the formats accept is compared with.

Small and slow: it is for inputs of a few kilobytes. It shares no code with `reconcile.formats.json.strict`, only
`json.loads` for the escapes inside of one string.
"""

from __future__ import annotations

import json
import re
from typing import Any

NESTING = 127
_DIGITS = 4300
"""Digits of the longest integer that Python converts."""

_SPACE = re.compile(r"[ \t\n\r]*")
_TEXT = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORDS = {"true": True, "false": False, "null": None}


class RefusedError(Exception):
    """This is no strict JSON."""


class Reader:
    """One text and a position in it. ``far`` after reading: some number in it is out of range.

    ``twice`` after reading: the outermost object has a key twice.
    """

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._text = ""
        self._at = 0
        self.far = False
        self.twice = False

    def read(self) -> Any:
        """Return the value, the only one in the text."""
        try:
            self._text = self._content.decode()
        except UnicodeDecodeError as error:
            raise RefusedError from error
        value = self._value(1)
        self._space()
        if self._at < len(self._text):
            raise RefusedError
        return value

    def _value(self, depth: int) -> Any:
        self._space()
        if self._next("{") or self._next("["):
            if depth > NESTING:
                raise RefusedError
            return self._object(depth) if self._text[self._at - 1] == "{" else self._array(depth)
        if self._text.startswith('"', self._at):
            return self._string()
        for word, meaning in _WORDS.items():
            if self._next(word):
                return meaning
        return self._number()

    def _object(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self._space()
        if self._next("}"):
            return found
        while True:
            self._space()
            key = self._string()
            self._space()
            self._must(":")
            self.twice |= depth == 1 and key in found
            found[key] = self._value(depth + 1)
            self._space()
            if self._next("}"):
                return found
            self._must(",")

    def _array(self, depth: int) -> list[Any]:
        found: list[Any] = []
        self._space()
        if self._next("]"):
            return found
        while True:
            found.append(self._value(depth + 1))
            self._space()
            if self._next("]"):
                return found
            self._must(",")

    def _string(self) -> str:
        text = str(json.loads(self._take(_TEXT)[0]))
        if re.search("[\ud800-\udfff]", text):
            raise RefusedError
        return text

    def _number(self) -> int | float:
        match = self._take(_NUMBER)
        number = float(match[0])
        self.far |= abs(number) == float("inf")
        if match[1] or match[2]:
            return number
        return 0 if len(match[0].lstrip("-")) > _DIGITS else int(match[0])

    def _space(self) -> None:
        self._take(_SPACE)

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str]:
        match = pattern.match(self._text, self._at)
        if match is None:
            raise RefusedError
        self._at = match.end()
        return match

    def _next(self, word: str) -> bool:
        found = self._text.startswith(word, self._at)
        self._at += len(word) * found
        return found

    def _must(self, word: str) -> None:
        if not self._next(word):
            raise RefusedError
