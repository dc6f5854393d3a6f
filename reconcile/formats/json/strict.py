"""Strict JSON: what is valid content, words for what is not, and arrays that are larger than memory.

See docs/design/formats/jp.md#validity. Valid content is JSON for JP's reader too: UTF-8 without a byte order mark, no
NaN, no lone surrogates, no nesting of 128 or more (docs/design/formats/jp.md#bytes). msgspec decodes at C speed. In
fields that it skips it checks neither UTF-8 nor nesting, so this module checks both separately. One gap is left open: a
number such as 1e999 in a skipped field of an event.
"""

from __future__ import annotations

import json
import math
import re
from codecs import getincrementaldecoder
from collections import Counter
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


_NESTING = 127
"""The deepest nesting that JP reads (docs/design/formats/jp.md#bytes)."""
TOO_DEEP = f"JSON nested more than {_NESTING} levels deep"

_LEAST, _GREATEST = -(2**63), 2**64 - 1
"""The range of integers that the reader of JP accepts."""

_QUOTED = 40
"""The greatest length of a quoted text in a message, in characters."""

_ANY = msgspec.json.Decoder(msgspec.Raw)
_ELEMENTS = msgspec.json.Decoder(list[msgspec.Raw])
_CHUNK = 1 << 20
"""Bytes that are processed at a time: a stream may fill most of the memory."""
_NO_BACKSLASH = re.compile(rb"[^\\]")
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_NOT_OPENING = bytes(set(range(256)) - set(b"[{"))
_SQUARE = bytes.maketrans(b"{}", b"[]")

_MARKER = rb"(?m)^(?:<{7}|\|{7}|={7}|>{7})(?=[ \r\n]|\Z)"  # not compiled here, as only invalid content needs it
_SURROGATE = re.compile(
    rb"\\(?:u(?P<high>[dD][89abAB]..)(?P<low>\\u[dD][c-fC-F]..)?|u(?P<lone>[dD][c-fC-F]..)|.)", re.DOTALL
)
_NOT_A_NUMBER = re.compile(rb"-?(?:NaN|Infinity)")
_MESSAGE = r"(?:JSON is malformed: )?(?P<detail>.*) \(byte (?P<byte>[0-9]+)\)"  # as above


class InvalidContentError(ValueError):
    """Content that is invalid; ``found`` is a phrase without a verb, as that of a `Fault`."""

    def __init__(self, problem: str) -> None:
        """Keep the words for the `Fault`."""
        super().__init__(problem)
        self.found = problem


def check_text(content: bytes) -> None:
    """Raise `InvalidContentError` unless the bytes are valid UTF-8.

    JSON parsers do not check the text of a field that they skip, so this is a separate check.
    """
    try:
        _decode(content)
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":
            problem = _truncated(content)
        else:
            problem = f"invalid UTF-8 in {_line(content, error.start)}"
        raise InvalidContentError(known_damage(content) or problem) from None


def check_nesting(content: bytes, objects: int = 1) -> None:
    """Raise `InvalidContentError` if the content, otherwise valid JSON, is nested deeper than JP reads.

    ``objects``: the content is an array of so many objects, each with at least one pair of brackets of its own. The
    algorithm removes strings, keeps the brackets, and removes the innermost level in each pass.
    """
    if _has_few_brackets(content, _NESTING + max(objects, 1) - 1) or _is_shallow_array(content):
        return
    open_before = 0
    for outside_strings in _outside_strings(content):
        brackets = b"[" * open_before + outside_strings.translate(_SQUARE, _NOT_BRACKETS)
        open_before = 2 * brackets.count(b"[") - len(brackets)
        brackets += b"]" * open_before
        for _ in range(_NESTING):
            if not brackets:
                break
            brackets = brackets.replace(b"[]", b"")
        if brackets:
            raise InvalidContentError(TOO_DEEP)


def _has_few_brackets(content: bytes, levels: int) -> bool:
    """Tell whether there are so few brackets that the nesting can't be deeper.

    Each level has an opening bracket, and brackets in strings only add to their number. Leaving out all other bytes
    takes a quarter of the time of two counts.
    """
    chunks = (content,) if len(content) <= _CHUNK else (content[at : at + _CHUNK] for at in _starts(content))
    return sum(len(chunk.translate(None, _NOT_OPENING)) for chunk in chunks) <= levels


def _is_shallow_array(content: bytes) -> bool:
    """Tell whether this is an array without a deeply nested element; a stream may have many events.

    Return False for a large array, whose elements may not fit into memory.
    """
    if len(content) > _CHUNK or not content.startswith(b"["):
        return False
    try:
        elements = _ELEMENTS.decode(content)
    except RecursionError:
        return False
    return all(_has_few_brackets(bytes(element), _NESTING - 1) for element in elements)


def _outside_strings(content: bytes) -> Iterator[bytes]:
    """Yield the parts of valid JSON outside of strings, chunk by chunk."""
    start, inside = 0, False
    while start < len(content):
        # An escape is never split: a run of backslashes and the next byte are in the same chunk.
        last = _NO_BACKSLASH.search(content, start + _CHUNK - 1)
        end = last.end() if last else len(content)
        parts = content[start:end].replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        yield b"".join(parts[inside::2])
        inside ^= len(parts) % 2 == 0
        start = end


def _starts(content: bytes) -> range:
    return range(0, len(content), _CHUNK)


def _decode(content: bytes) -> None:
    """Raise `UnicodeDecodeError` unless the content is UTF-8, with the position in the whole content."""
    if content.isascii():
        return
    decode = getincrementaldecoder("utf-8")().decode
    try:
        for start in _starts(content):
            decode(content[start : start + _CHUNK])
        decode(b"", final=True)
    except UnicodeDecodeError:
        content.decode()


def check_syntax(content: bytes) -> None:
    """Raise `InvalidContentError` unless the content is one strict JSON value."""
    check_text(content)
    try:
        _ANY.decode(content)
    except RecursionError:
        raise InvalidContentError(TOO_DEEP) from None
    except msgspec.DecodeError as error:
        raise InvalidContentError(_diagnosis(content, str(error))) from None
    check_nesting(content)


def load(content: bytes) -> object:
    """Return the value of a small strict JSON file, with its order of keys.

    In addition to `check_syntax`, a repeated key in the outermost object and numbers that no reader can hold raise
    `InvalidContentError`: their meaning depends on the reader.
    """
    check_syntax(content)
    value = _loads(content)
    if isinstance(value, _Doubled):
        raise InvalidContentError(f"the key {quoted(value.key)} twice")
    return value


def load_object(content: bytes) -> dict[str, Any]:
    """Load a file as `load`, and raise `InvalidContentError` unless it holds one object."""
    value = load(content)
    if not isinstance(value, dict):
        raise InvalidContentError(kind(value))
    return value


def kind(value: object) -> str:
    """Return the kind of a parsed JSON value, in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"the text {quoted(value)}"
    if isinstance(value, (int, float)):
        return "a number"
    return "a JSON array" if isinstance(value, list) else "a JSON object"


def quoted(text: str) -> str:
    """Return a text of any length for a message: in quotes, on one line, cut short."""
    return json.dumps(text if len(text) <= _QUOTED else text[: _QUOTED - 1] + "…", ensure_ascii=False)


class _Doubled(dict[str, Any]):
    """An object with a repeated key; the last value counts."""

    key = ""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    doubled = _Doubled(value)
    ((doubled.key, _),) = Counter(key for key, _ in pairs).most_common(1)
    return doubled


def _loads(content: bytes) -> object:
    try:
        return _READER.decode(content.decode())
    except InvalidContentError:
        raise
    except RecursionError:
        raise InvalidContentError(TOO_DEEP) from None
    except ValueError:  # Python refuses to convert integers of more than 4300 digits
        _out_of_range()


def fits(number: int) -> bool:
    """Tell whether the reader of JP takes an integer for one; a longer number is a float to it."""
    return _LEAST <= number <= _GREATEST


def as_float(text: str) -> float:
    """Return the float that the reader of JP makes of an integer that does not fit.

    It is the digits that fit, times a power of ten. Both are rounded, so this is not always the nearest float. Raises
    `InvalidContentError`.
    """
    digits = text.lstrip("-")
    known = digits[:20] if int(digits[:20]) <= _GREATEST else digits[:19]
    number = float(int(known)) * float(f"1e{len(digits) - len(known)}")
    return _finite(-number if text.startswith("-") else number)


def _integer(text: str) -> float:
    if text == "-0":
        return -0.0
    number = int(text)
    if not fits(number):
        as_float(text)
    return number


def _float(text: str) -> float:
    return _finite(float(text))


def _finite(number: float) -> float:
    if math.isinf(number):
        _out_of_range()
    return number


def _out_of_range() -> NoReturn:
    raise InvalidContentError("a number that is out of range")


_READER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_float, parse_int=_integer)


def _diagnosis(content: bytes, message: str) -> str:
    """Return words for content that the parser refused; a likely cause takes precedence over the parser's message."""
    if (known := known_damage(content)) is not None:
        return known
    if (surrogate := _lone_surrogate(content)) is not None:
        return f"half of a surrogate pair in {_line(content, surrogate)}"
    if "truncated" in message:
        return _truncated(content)
    match = re.fullmatch(_MESSAGE, message)
    if match is None:
        return "invalid JSON"
    detail, at = match["detail"], int(match["byte"])
    if number := _NOT_A_NUMBER.match(content, max(0, at - 1)) or _NOT_A_NUMBER.match(content, at):
        return f"invalid JSON in {_line(content, number.start())}: {number[0].decode()}"
    if detail == "trailing characters":
        at -= 1  # the parser is already past the first of them
        detail = "more text after the end of the value"
    elif detail.startswith("trailing comma"):
        at = len(content[:at].rstrip()) - 1  # the comma, not the bracket that it should not precede
    return f"invalid JSON in {_line(content, at)} column {_column(content, at)}: {detail}"


def known_damage(content: bytes) -> str | None:
    """Return the kind of a known damage, which crashes, merges and editors leave; None if there is none."""
    if not content:
        return "an empty file"
    if not content.strip():
        return "only white space"
    if not content.strip(b"\0"):
        return "only NUL bytes"
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16 text"
    if (nul := content.find(b"\0")) >= 0:
        return f"NUL bytes in {_line(content, nul)}"
    if marker := re.search(_MARKER, content):
        return f"a git conflict marker in {_line(content, marker.start())}"
    if content.startswith(b"\xef\xbb\xbf"):
        return "a byte order mark"
    return None


def _lone_surrogate(content: bytes) -> int | None:
    for match in _SURROGATE.finditer(content):
        if match["lone"] or (match["high"] and not match["low"]):
            return match.start()
    return None


def _truncated(content: bytes) -> str:
    return f"a truncated file, which ends inside a value in {_line(content, len(content.rstrip()))}"


def _line(content: bytes, at: int) -> str:
    newlines = content.count(b"\n", 0, at)
    return f"line {newlines + 1}"


def _column(content: bytes, at: int) -> int:
    start = content.rfind(b"\n", 0, at) + 1
    return len(content[start:at].decode(errors="replace")) + 1


_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?P<closed>"?)|(?P<opening>[\[{])|[\]}]', re.DOTALL)
"""A string, or a bracket. No byte is matched twice: a string may be as long as the file."""
_SPACE = b" \t\r\n"
_COMMA = re.compile(rb"[ \t\r\n]*,")


def fragments(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, int]]:
    """Yield arrays that together hold the elements of one array, with the number of newlines before each.

    Each is about as long as a chunk or as its largest element. If one of them is invalid, so is the whole. Elements
    that are no objects come in one piece.

    Raises:
        InvalidContentError: the content does not begin as an array, or continues after its end.
    """
    cutter = _Cutter()
    for chunk in chunks:
        cutter.buffer += chunk
        yield from cutter.cut()
    yield from cutter.rest()


class _Cutter:
    """The data that was read and not yet yielded: ``buffer`` begins with the bracket or the comma before an element."""

    def __init__(self) -> None:
        self.buffer = bytearray()
        self._newlines = 0
        self._given = False
        self._seen = 0
        """The number of bytes of the buffer that were searched."""
        self._depth = 0
        self._again_at = 0
        """The length of the buffer, without finished elements, at which an open string is searched again."""
        self._end: int | None = None
        """The position of the bracket that closes the array, once it was seen."""

    def cut(self) -> Iterator[tuple[bytes, int]]:
        """Yield the complete part: up to the end of the last finished element."""
        if self._end is not None or len(self.buffer) < self._again_at:
            return
        if not self._depth and not self._opened():
            return
        if at := self._search():
            yield self._taken(at)

    def rest(self) -> Iterator[tuple[bytes, int]]:
        """Yield the last elements. If the array is not closed they are not valid, and their error has the position."""
        self._again_at = 0
        yield from self.cut()
        if not self._depth and self._end is None:
            yield bytes(self.buffer), 0
        elif self._end is None:
            yield self._taken(len(self.buffer), closed=False)
        elif self.buffer[self._end + 1 :].strip(_SPACE):
            raise InvalidContentError(f"more text after the end of the array in line {self._line(self._end)}")
        elif self.buffer[: self._end].strip(_SPACE):
            yield self._taken(self._end)

    def _line(self, at: int) -> int:
        return self._newlines + self.buffer.count(b"\n", 0, at) + 1

    def _opened(self) -> bool:
        begin = self.buffer.find(b"[")
        if self.buffer[: begin if begin >= 0 else None].strip(_SPACE):
            raise InvalidContentError(known_damage(bytes(self.buffer)) or "text that does not begin as an array")
        if begin < 0:
            return False
        self._newlines += self.buffer.count(b"\n", 0, begin)
        # A comma replaces the bracket: every fragment begins with its separator.
        self.buffer[: begin + 1] = b","
        self._seen, self._depth = 1, 1
        return True

    def _search(self) -> int:
        """Search new data, and return the end of the last finished element, or 0."""
        ended = 0
        for token in _TOKEN.finditer(self.buffer, self._seen):
            if token["closed"] == b"":
                self._seen = token.start()
                self._again_at = 2 * (len(self.buffer) - ended)
                return ended
            if token["closed"] is None:
                self._depth += 1 if token["opening"] else -1
                if self._depth == 1 and not token["opening"]:
                    ended = token.end()
                elif not self._depth:
                    if token[0] != b"]":
                        raise InvalidContentError(
                            f"invalid JSON in line {self._line(token.start())}: a brace closes the array"
                        )
                    self._end = token.start()
                    return ended
        self._seen = len(self.buffer)
        return ended

    def _taken(self, end: int, *, closed: bool = True) -> tuple[bytes, int]:
        taken, before = bytes(self.buffer[:end]), self._newlines
        comma = _COMMA.match(taken)
        body = taken[: comma.end() - 1] + b"[" + taken[comma.end() :] if comma else b"[0" + taken
        if comma and self._given and not taken[comma.end() :].strip(_SPACE):
            body = taken.replace(b",", b"[,")
        self._given = True
        self._newlines += taken.count(b"\n")
        del self.buffer[:end]
        self._seen -= end
        if self._end is not None:
            self._end -= end
        return body + b"]" if closed else body, before
