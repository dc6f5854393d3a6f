"""A JSON array that is larger than memory, cut between its elements into arrays that are not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from reconcile.formats.json.strict import InvalidContentError, known_damage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?P<closed>"?)|(?P<opening>[\[{])|[\]}]', re.DOTALL)
"""A string, or a bracket. Nothing is ever looked at twice: a string may be as long as the file."""
_SPACE = b" \t\r\n"
_COMMA = re.compile(rb"[ \t\r\n]*,")


def fragments(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, int]]:
    """Yield arrays that together hold the elements of one, each about as long as a chunk or as its largest element,
    with how many newlines stand before it.

    Where one of them is no valid array, neither is the whole; elements that are no objects come in one piece.

    Raises:
        InvalidContentError: what begins is no array, or something comes after its end.
    """
    cutter = _Cutter()
    for chunk in chunks:
        cutter.buffer += chunk
        yield from cutter.cut()
    yield from cutter.rest()


class _Cutter:
    """What was read and not yet given away: ``buffer`` begins with the bracket, or the comma, before an element."""

    def __init__(self) -> None:
        self.buffer = bytearray()
        self._newlines = 0
        self._given = False
        self._seen = 0
        """Bytes of the buffer that were looked at."""
        self._depth = 0
        self._again_at = 0
        """How long the buffer must be, once what has ended is taken, before a string is looked at again that isn't
        closed yet."""
        self._end: int | None = None
        """Just before the bracket that closes the array, once it was seen."""

    def cut(self) -> Iterator[tuple[bytes, int]]:
        """Yield what is complete: up to the last element that has ended."""
        if self._end is not None or len(self.buffer) < self._again_at:
            return
        if not self._depth and not self._opened():
            return
        if at := self._look():
            yield self._taken(at)

    def rest(self) -> Iterator[tuple[bytes, int]]:
        """Yield the last elements; where the array isn't closed, they aren't valid, which says where."""
        self._again_at = 0
        yield from self.cut()
        if not self._depth and self._end is None:
            yield bytes(self.buffer), 0
        elif self._end is None:
            yield self._taken(len(self.buffer), closed=False)
        elif self.buffer[self._end + 1 :].strip(_SPACE):
            raise InvalidContentError(f"something after the end of the array in line {self._line(self._end)}")
        elif self.buffer[: self._end].strip(_SPACE):
            yield self._taken(self._end)

    def _line(self, at: int) -> int:
        return self._newlines + self.buffer.count(b"\n", 0, at) + 1

    def _opened(self) -> bool:
        begin = self.buffer.find(b"[")
        if self.buffer[: begin if begin >= 0 else None].strip(_SPACE):
            raise InvalidContentError(known_damage(bytes(self.buffer)) or "something that doesn't begin as an array")
        if begin < 0:
            return False
        self._newlines += self.buffer.count(b"\n", 0, begin)
        # In the place of the bracket: every fragment begins with what separates it from the one before.
        self.buffer[: begin + 1] = b","
        self._seen, self._depth = 1, 1
        return True

    def _look(self) -> int:
        """Look at what is new; return where the last element that has ended ends, or 0."""
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
                        raise InvalidContentError(f"a brace that closes the array in line {self._line(token.start())}")
                    self._end = token.start()
                    return ended
        self._seen = len(self.buffer)
        return ended

    def _taken(self, end: int, *, closed: bool = True) -> tuple[bytes, int]:
        found, before = bytes(self.buffer[:end]), self._newlines
        comma = _COMMA.match(found)
        body = found[: comma.end() - 1] + b"[" + found[comma.end() :] if comma else b"[0" + found
        if comma and self._given and not found[comma.end() :].strip(_SPACE):
            body = found.replace(b",", b"[,")
        self._given = True
        self._newlines += found.count(b"\n")
        del self.buffer[:end]
        self._seen -= end
        if self._end is not None:
            self._end -= end
        return body + b"]" if closed else body, before
