"""The texts of a file, event by event, decoded: JSON's escapes, and texts in base64, as JP stores them.

A file may have any form: an array of events, an object with lists of messages, one JSON value a line, or plain text.
"""

from __future__ import annotations

import binascii
import json
import re
from binascii import a2b_base64
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterator, Sequence

_BASE64: Final = re.compile(r"[A-Za-z0-9+/]{8,}={0,2}")
_SHORTEST: Final = 24
_LENIENT_BASE64: Final = r"[A-Za-z0-9+/_-]{24,}(?:\r?\n[A-Za-z0-9+/_-]+)*={0,2}\s{0,2}"
"""Base64 without its padding, in lines, or in the alphabet of URLs. Most texts are none: it is compiled late."""
_QUOTED_BASE64: Final = r"\"([A-Za-z0-9+/_-]{24,}={0,2})\""
_ESCAPE: Final = r"\\(?:u(?P<code>[0-9A-Fa-f]{4})|.)"
_ESCAPES: Final = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_FIRST_OF_A_KEY: Final = (b"-----BEGIN ", b"PuTTY-User-Key-File-")
_OF_A_KEY: Final = re.compile(rb"[\s>|\"',+]*+(?:[A-Za-z-]++:[^\n]*+|[A-Za-z0-9+/=]*+[\s\"',+]*+)")
"""A line after the first one: base64, or a name with a value."""
_LINES_OF_A_KEY: Final = 400
_URLSAFE: Final = str.maketrans("-_", "+/", "\r\n=")
_ALSO_RAW: Final = 200
"""Characters up to which a text that is valid base64 counts as it is, too: it may be a key."""
_DEEPEST: Final = 8
"""JSON and base64 in texts are decoded up to this depth."""
_LONG_NAME: Final = 16
"""Characters from which a name in an object may be a secret."""
_ENCODED: Final = 200
"""Bytes in which one that is 0 tells that a file is binary, or in UTF-16."""
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


def new_texts(content: bytes, before: Collection[bytes] = (), is_wanted: Callable[[bytes], bool] = bool) -> Texts:
    """Return the decoded texts of a file's events, without those events that a version ``before`` has, too.

    A value in an object has its key in front: ``key: value``. An object in an array is decoded if its bytes are wanted.
    """
    if content in before:
        return Texts([])
    if may_be_wide(content):
        plain, known = _without_zeros(content), [_without_zeros(each) for each in before]
        return Texts([*_of_whole(content, before), *_of_whole(plain, known)])
    if content[:_BEGINNING].lstrip()[:1] == b"[" and (appended := _of_appended(content, before)) is not None:
        return appended
    return Texts(_of_whole(content, before, is_wanted))


def may_be_wide(content: bytes) -> bool:
    """Tell whether a content may be in UTF-16 or UTF-32, by a zero near its beginning or by the mark there."""
    return b"\0" in content[:_ENCODED] or content.startswith((BOM_UTF16_LE, BOM_UTF16_BE))


def _without_zeros(content: bytes) -> bytes:
    """Return the ASCII characters of a text in UTF-16 or UTF-32, in any order of the bytes."""
    return content.removeprefix(BOM_UTF16_LE).removeprefix(BOM_UTF16_BE).replace(b"\0", b"")


def _of_whole(content: bytes, before: Collection[bytes], is_wanted: Callable[[bytes], bool] = bool) -> list[Piece]:
    if content[:_BEGINNING].lstrip()[:1] == b"[" and (pieces := _of_array(content, before, is_wanted)) is not None:
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
        events = _loaded(b"[" + content[start:])
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


def _of_array(content: bytes, before: Collection[bytes], is_wanted: Callable[[bytes], bool]) -> list[Piece] | None:
    """Return the texts of the wanted elements that no version before has, by their bytes; None: it is no array.

    Only an object can be unwanted: elements that are texts may be the lines of one key.
    """
    try:
        raw = [bytes(each) for each in _RAW.decode(content)]
        known = {bytes(each) for version in before for each in _raw_elements(version)}
        values = [
            (number, _loaded(each))
            for number, each in enumerate(raw, 1)
            if each not in known and (each[:1] != b"{" or is_wanted(each))
        ]
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
            pieces += [Piece(key)] if len(key) >= _LONG_NAME else []
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
    lines = content.splitlines()
    wanted = _of_new_keys(lines, known) if known else set()
    pieces: list[Piece] = []
    for number, line in enumerate(lines, 1):
        if line in known and number not in wanted:
            continue
        bare = line.removeprefix(BOM_UTF8).strip()
        value = _parsed(bare) if bare[:1] in (b"{", b"[") and bare[-1:] in (b"}", b"]") else None
        if value is None:
            text = line.decode(errors="replace")
            texts = [text, *_of_quoted(text), *_of_escaped(text)]
        else:
            texts = [*_texts(value)]
        pieces += [Piece(each, None, number) for each in texts]
    return pieces


def _of_new_keys(lines: Sequence[bytes], known: Container[bytes]) -> set[int]:
    """Return the numbers of the lines of each private key that has a new line: a rule needs all of them.

    The first lines of a key are often those of a placeholder that was there before.
    """
    numbers: set[int] = set()
    for first, line in enumerate(lines, 1):
        if any(words in line for words in _FIRST_OF_A_KEY):
            last = first
            while last < len(lines) and last - first < _LINES_OF_A_KEY and _OF_A_KEY.fullmatch(lines[last]):
                last += 1
            if any(each not in known for each in lines[first - 1 : last]):
                numbers.update(range(first, last + 1))
    return numbers


def _parsed(content: str | bytes) -> Any:
    try:
        return _loaded(content)
    except (ValueError, RecursionError):
        return None


def _loaded(content: str | bytes) -> Any:
    """Decode JSON. A name that an object repeats has the list of its values; a long number is no error.

    Raises `ValueError`, `RecursionError`.
    """
    return json.loads(content, object_pairs_hook=_object, parse_int=float)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        values: dict[str, list[Any]] = {}
        for name, part in pairs:
            values.setdefault(name, []).append(part)
        value = {name: parts if len(parts) > 1 else parts[0] for name, parts in values.items()}
    return value


def _texts(value: Any, depth: int = 0) -> Iterator[str]:
    """Yield all texts of a value, decoded."""
    stack = [("", value)]
    while stack:
        key, part = stack.pop()
        if isinstance(part, str):
            for text in _decoded(part, depth):
                yield f"{key}: {text}" if key else text
            if _may_be_lenient(part):
                yield from _of_lenient(part, depth)
        elif isinstance(part, list) and all(isinstance(inner, str) for inner in part):
            lines = "\n".join([text for inner in part for text in _decoded(inner, depth)])
            yield f"{key}: {lines}" if key else lines
            for inner in filter(_may_be_lenient, part):
                yield from _of_lenient(inner, depth)
        elif isinstance(part, dict):
            for name, inner in reversed(part.items()):
                if len(name) >= _LONG_NAME and not isinstance(inner, str):
                    yield name
                stack.append((name, inner))
        elif isinstance(part, list):
            stack += [(key, inner) for inner in reversed(part)]


def _decoded(text: str, depth: int) -> Iterator[str]:
    """Yield a text as its program decodes it; of a text in JSON, also the texts in it.

    Base64 may hold UTF-16. Its zeros are left out, because no secret has one.
    """
    if len(text) % 4 == 0 and _BASE64.fullmatch(text):
        if len(text) <= _ALSO_RAW:
            yield text
        try:
            text = a2b_base64(text, strict_mode=True).decode().replace("\0", "")
        except (binascii.Error, UnicodeError):
            if len(text) > _ALSO_RAW:
                yield text
            return
        if depth < _DEEPEST and _may_be_lenient(text):
            yield from _in_every_form(text, depth + 1)
            return
    yield text
    if depth < _DEEPEST and "\\" in text and (start := text.lstrip()[:1]) and start in '{["' and len(text) > 1:
        value = _parsed(text)
        if value is not None:
            yield from _texts(value, depth + 1)
        elif "\n" in text:
            for line in text.splitlines():
                if "\\" in line and line[:1] in ("{", "[") and (value := _parsed(line)) is not None:
                    yield from _texts(value, depth + 1)


def _in_every_form(text: str, depth: int) -> Iterator[str]:
    yield from _decoded(text, depth)
    yield from _of_lenient(text, depth)


def _may_be_lenient(text: str) -> bool:
    return len(text) >= _SHORTEST and text[:_SHORTEST].isascii() and " " not in text[:_SHORTEST]


def _of_lenient(text: str, depth: int) -> Iterator[str]:
    """Yield the decoded text of base64 that is not as JP writes it, or that holds no UTF-8."""
    if not re.fullmatch(_LENIENT_BASE64, text):
        return
    coded = text.rstrip().translate(_URLSAFE)
    content = a2b_base64(coded[: len(coded) - (len(coded) % 4 == 1)] + "=" * (-len(coded) % 4))
    try:
        decoded = content.decode().replace("\0", "")
        if len(text) % 4 == 0 and _BASE64.fullmatch(text):
            return  # `_decoded` has yielded it
    except UnicodeError:
        decoded = content.decode("latin-1")
        if "\0" in decoded:
            yield decoded.replace("\0", "")
    if depth < _DEEPEST:
        yield from _in_every_form(decoded, depth + 1)
    else:
        yield decoded


def _of_escaped(text: str) -> Iterator[str]:
    """Yield a line that can't be read as JSON without the escapes of JSON in it, level by level."""
    for _ in range(_DEEPEST):
        if '\\"' not in text:
            return
        text = re.sub(_ESCAPE, _unescaped, text)
        yield text


def _unescaped(escape: re.Match[str]) -> str:
    if escape["code"]:
        return chr(int(escape["code"], 16))
    return _ESCAPES.get(escape[0][1], escape[0])


def _of_quoted(text: str) -> Iterator[str]:
    """Yield the decoded texts of base64 in quotes, in a line that can't be read as JSON."""
    for coded in re.findall(_QUOTED_BASE64, text) if len(text) > _SHORTEST and '"' in text else ():
        yield from _in_every_form(coded, _DEEPEST)
