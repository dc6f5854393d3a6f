"""Which words a file may contain, by its bytes: a fast test before anything is parsed.

A JSON file has texts in UTF-8 or with escapes, and JP keeps some of them in base64 (docs/formats.md). The test may find
a word that no text has, but misses none.
"""

from __future__ import annotations

import binascii
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reconcile.inspect.search.words import Word

_ESCAPES = re.compile(rb"(?:\\u[0-9A-Fa-f]{4})+")
_ANY_ESCAPE = re.compile(rb"\\u")
# The many escapes of control characters and of other alphabets must cost no time for a word in ASCII.
_ASCII_ESCAPE = re.compile(rb"\\u00[2-7]")


class RawTest:
    """The test for all words of a search. Sets of words are bit masks: the first word is 1."""

    def __init__(self, words: Sequence[Word]) -> None:
        """Prepare the test."""
        self.all = (1 << len(words)) - 1
        bits = [(1 << at, word) for at, word in enumerate(words)]
        self._folded = [(bit, word.pieces) for bit, word in bits if not word.is_exact]
        self._exact = [(bit, word.pieces) for bit, word in bits if word.is_exact]
        self._escaped = (_ASCII_ESCAPE if all(word.is_ascii for word in words) else _ANY_ESCAPE).search
        least = min((min((piece.least for piece in word.pieces), default=1) for word in words), default=1)
        self._encoded = re.compile(rb'"([A-Za-z0-9+/]{%d,}+={0,2})"' % max(2, -(-least * 4 // 3))).findall

    def words_in(self, data: bytes) -> int:
        """Return the words that a JSON file, or a part of one, may contain."""
        found = self._words_in(data)
        if found != self.all and self._escaped(data):
            found |= self._words_in(_ESCAPES.sub(_unescaped, data))
        if found != self.all and (encoded := self._encoded(data)):
            found |= self._words_in(b"\n".join(_decoded(encoded)))
        return found

    def _words_in(self, data: bytes) -> int:
        found = 0
        if self._folded:
            folded = data.lower()
            found = sum(bit for bit, pieces in self._folded if all(piece.may_be_in(folded) for piece in pieces))
        return found + sum(bit for bit, pieces in self._exact if all(piece.may_be_in(data) for piece in pieces))


def _decoded(encoded: Sequence[bytes]) -> Iterator[bytes]:
    decode = binascii.a2b_base64
    for text in encoded:
        try:
            yield decode(text)
        except binascii.Error:  # no base64, but a word of a text
            continue


def _unescaped(match: re.Match[bytes]) -> bytes:
    units = bytes.fromhex(match[0].replace(b"\\u", b"").decode())
    return units.decode("utf-16-be", "surrogatepass").encode("utf-8", "surrogatepass")
