"""The texts of a file, event by event, decoded: JSON's escapes, and texts in base64, as JP stores them.

A file may have any form: an array of events, an object with lists of messages, one JSON value a line, or plain text.
"""

from __future__ import annotations

import binascii
import json
import re
from binascii import a2b_base64
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_BASE64: Final = re.compile(r"[A-Za-z0-9+/]{8,}={0,2}")
_ALSO_RAW: Final = 200
"""Characters up to which a text that is valid base64 counts as it is, too: it may be a key."""
_DEEPEST: Final = 3
"""JSON in texts in JSON is decoded up to this depth."""
_ELEMENT: Final = b"\n  {"
"""The beginning of an element, in an array that JP has written."""
_END: Final = b"\n  }"
_LAST: Final = b"\n]\n"
_BEGINNING: Final = 100
"""Bytes in which the first one that is no white space is looked for."""
_RAW: Final = msgspec.json.Decoder(list[msgspec.Raw])


class Piece(NamedTuple):
    """A decoded text, with the number of its event or of its line, from 1; None if the file has none."""

    text: str
    event: int | None = None
    line: int | None = None


class Texts(NamedTuple):
    """The texts of a file, or of its part from ``start`` on: an event's number then counts from there."""

    pieces: list[Piece]
    start: int = 0

    def events_before(self, content: bytes) -> int:
        """Return the number of events in front of the part."""
        return content.count(_ELEMENT, 0, self.start)


def new_texts(content: bytes, before: Collection[bytes] = ()) -> Texts:
    """Return the decoded texts of a file's events, without those events that a version ``before`` has, too.

    A value in an object has its key in front: ``key: value``.
    """
    if content in before:
        return Texts([])
    if content[:_BEGINNING].lstrip()[:1] == b"[" and (appended := _of_appended(content, before)) is not None:
        return appended
    return Texts(_of_whole(content, before))


def _of_whole(content: bytes, before: Collection[bytes]) -> list[Piece]:
    if content[:_BEGINNING].lstrip()[:1] == b"[" and (pieces := _of_array(content, before)) is not None:
        return pieces
    value = _parsed(content)
    if isinstance(value, dict):
        return _of_object(value, [known for each in before if isinstance(known := _parsed(each), dict)])
    if isinstance(value, list):
        return [Piece(text, number) for number, event in enumerate(value, 1) for text in _texts(event)]
    return _of_lines(content, before)


def _of_appended(content: bytes, before: Collection[bytes]) -> Texts | None:
    """Return the texts after the beginning that a version before has in common with this one.

    None: there is no such beginning. The cost is that of the new events, and of a comparison of bytes.
    """
    common = max((_common(content, each) for each in before), default=0)
    if content.startswith(b"," + _ELEMENT, common) and content.endswith(_END, 0, common):
        start = common + 1
    else:
        start = content.rfind(_ELEMENT, 0, common)
    if start <= 0:
        return None
    try:
        # It is an array only if the text found is at the beginning of an element: otherwise the brackets don't match.
        events = json.loads(b"[" + content[start:])
    except (ValueError, RecursionError):
        return None
    return Texts([Piece(text, number) for number, event in enumerate(events, 1) for text in _texts(event)], start)


def _common(one: bytes, other: bytes) -> int:
    """Return the length of the beginning that two contents have in common."""
    least, most = 0, min(len(one), len(other))
    if one.startswith(known := other[: -len(_LAST)]):  # usually, the other one without its end
        least, most = len(known), min(most, len(known) + len(_LAST))
    while least < most:
        middle = (least + most + 1) // 2
        if one[least:middle] == other[least:middle]:
            least = middle
        else:
            most = middle - 1
    return least


def _of_array(content: bytes, before: Collection[bytes]) -> list[Piece] | None:
    """Return the texts of the elements that no version before has, by their bytes; None: it is no array."""
    try:
        raw = [bytes(each) for each in _RAW.decode(content)]
        known = {bytes(each) for version in before for each in _raw_elements(version)}
        values = [(number, json.loads(each)) for number, each in enumerate(raw, 1) if each not in known]
    except (ValueError, RecursionError):
        return None
    return [Piece(text, number) for number, event in values for text in _texts(event)]


def _raw_elements(content: bytes) -> list[msgspec.Raw]:
    try:
        return _RAW.decode(content)
    except (ValueError, RecursionError):
        return []


def _of_object(value: dict[str, Any], before: list[dict[str, Any]]) -> list[Piece]:
    """Return the texts of an object. The elements of its lists are events, and have their numbers."""
    pieces: list[Piece] = []
    for key, part in value.items():
        known = [other[key] for other in before if key in other]
        if part in known:
            continue
        if isinstance(part, list):
            old = [element for other in known if isinstance(other, list) for element in other]
            pieces += [
                Piece(text, number)
                for number, element in enumerate(part, 1)
                if element not in old
                for text in _texts(element)
            ]
        else:
            pieces += [Piece(text) for text in _texts({key: part})]
    return pieces


def _of_lines(content: bytes, before: Collection[bytes]) -> list[Piece]:
    """Return the lines of a text that no version before has; a line in JSON is decoded."""
    known = {line for each in before for line in each.splitlines()}
    pieces: list[Piece] = []
    for number, line in enumerate(content.splitlines(), 1):
        if line in known:
            continue
        text = line.decode(errors="replace")
        value = _parsed(line) if line[:1] in (b"{", b"[") else None
        texts = [text] if value is None else [*_texts(value)]
        pieces += [Piece(each, None, number) for each in texts]
    return pieces


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _texts(value: Any, depth: int = 0) -> Iterator[str]:
    """Yield all texts of a value, decoded."""
    stack = [("", value)]
    while stack:
        key, part = stack.pop()
        if isinstance(part, str):
            for text in _decoded(part, depth):
                yield f"{key}: {text}" if key else text
        elif isinstance(part, dict):
            for name, inner in reversed(part.items()):
                stack.append((name, inner))
        elif isinstance(part, list) and all(isinstance(inner, str) for inner in part):
            lines = "\n".join([text for inner in part for text in _decoded(inner, depth)])
            yield f"{key}: {lines}" if key else lines
        elif isinstance(part, list):
            stack += [(key, inner) for inner in reversed(part)]


def _decoded(text: str, depth: int) -> Iterator[str]:
    """Yield a text as its program decodes it; of a text in JSON, also the texts in it."""
    if len(text) % 4 == 0 and _BASE64.fullmatch(text):
        if len(text) <= _ALSO_RAW:
            yield text
        try:
            text = a2b_base64(text, strict_mode=True).decode()
        except (binascii.Error, UnicodeError):
            if len(text) > _ALSO_RAW:
                yield text
            return
    yield text
    if depth < _DEEPEST and "\\" in text and text[:1] in ("{", "[", '"') and len(text) > 1:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return
        yield from _texts(value, depth + 1)
