"""The words of a search: which texts match, and which bytes of a file may contain them.

A word without an upper-case letter matches in any case, by Unicode's full case folding (``strasse`` matches
``Straße``). A letter with an accent is the same in one character and in two. White space in a phrase matches any white
space, also the end of a line.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import product
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_MOST = 8
"""Spellings of a part of a word that are searched in bytes."""
# Characters whose folded form does not lead back to them by `str.upper`, `str.title` or `str.swapcase`.
_OTHERS = {
    "k": "\u212a",
    "s": "\u017f",
    "\xe5": "\u212b",
    "\u03b2": "\u03d0",
    "\u03b5": "\u03f5",
    "\u03b8": "\u03d1\u03f4",
    "\u03b9": "\u0345\u1fbe",
    "\u03ba": "\u03f0",
    "\u03bc": "\xb5",
    "\u03c0": "\u03d6",
    "\u03c1": "\u03f1",
    "\u03c3": "\u03c2",
    "\u03c6": "\u03d5",
    "\u03c9": "\u2126",
    "\u0432": "\u1c80",
    "\u0434": "\u1c81",
    "\u043e": "\u1c82",
    "\u0441": "\u1c83",
    "\u0442": "\u1c84\u1c85",
    "\u044a": "\u1c86",
    "\u0463": "\u1c87",
    "\u1e61": "\u1e9b",
    "\ua64b": "\u1c88",
}
# Where the characters are that fold to several ones, such as the sharp s and the ligatures.
_LONGER = (*map(ord, "ßİŉǰΐΰև"), *range(0x1E96, 0x1E9F), *range(0x1F50, 0x1FFD), *range(0xFB00, 0xFB18))
_LONGEST = 3
# JSON may escape these in ways of its own, so that bytes are searched for the parts between them.
_BREAKS = re.compile(r"[\s\x00-\x1f\x7f\"\\/<>&'\u2028\u2029]+")


class Piece(Struct, frozen=True):
    """A part of a word that a matching file contains in one piece: as UTF-8, with ASCII letters in lower case.

    ``plain`` is the spelling in ASCII, None if there is none. ``spellings`` are those of some of its characters: any
    other text with the piece contains one of them. ``least`` is the number of bytes of the shortest text.
    """

    plain: bytes | None
    spellings: tuple[bytes, ...]
    least: int

    def may_be_in(self, data: bytes) -> bool:
        """Tell whether data, folded as the piece is, may contain the piece."""
        if self.plain is not None and self.plain in data:
            return True
        return bool(self.spellings) and not data.isascii() and any(each in data for each in self.spellings)


class Word(Struct, frozen=True):
    """One word or phrase of a search. ``is_exact``: case counts. ``pieces`` may be empty: then any file may match."""

    text: str
    is_exact: bool
    pattern: re.Pattern[str]
    pieces: tuple[Piece, ...]

    @classmethod
    def of(cls, text: str) -> Word:
        """Return the word for a text that is not blank."""
        is_exact = any(char.isupper() or char.istitle() for char in text)
        written = _composed(text.strip())
        folded = written if is_exact else written.casefold()
        pattern = re.compile("".join(_expressions(folded, is_exact=is_exact)))
        pieces = tuple(_piece(part, is_exact=is_exact) for part in _BREAKS.split(folded) if part)
        return cls(text, is_exact, pattern, pieces)

    @property
    def is_ascii(self) -> bool:
        """Whether it has no character of another alphabet."""
        return self.text.isascii()


def words_of(texts: Iterable[str]) -> tuple[Word, ...]:
    """Return the words of a search, each once; blank ones are left out."""
    return tuple(Word.of(text) for text in dict.fromkeys(texts) if text.strip())


def _composed(text: str) -> str:
    """Return a text with its letters and their accents as single characters; other characters stay as they are."""
    composed = unicodedata.normalize("NFC", text)
    return composed if len(composed) < len(text) else text


def _expressions(folded: str, *, is_exact: bool) -> Iterator[str]:
    for part in re.split(r"(\s+)", folded):
        if part.isspace():
            yield r"\s+"
        else:
            yield from (_expression(spellings) for spellings in _atoms(part, is_exact=is_exact))


def _expression(spellings: Sequence[str]) -> str:
    escaped = [re.escape(spelling) for spelling in spellings]
    if len(escaped) == 1:
        return escaped[0]
    is_class = all(len(spelling) == 1 for spelling in spellings)
    return f"[{''.join(escaped)}]" if is_class else f"(?:{'|'.join(escaped)})"


def _atoms(folded: str, *, is_exact: bool) -> Iterator[tuple[str, ...]]:
    """Yield the parts of a text, each as all texts that it matches: single characters, if possible.

    If case counts, these are the character and its decomposed form. Otherwise, the text is folded.
    """
    if is_exact:
        yield from map(_with_decomposed, folded)
        return
    longer = _longer()
    at = 0
    while at < len(folded):
        size = next((size for size in range(_LONGEST, 1, -1) if folded[at : at + size] in longer), 1)
        yield tuple(dict.fromkeys(_spellings(folded[at : at + size], longer)))
        at += size


def _spellings(folded: str, longer: dict[str, str]) -> Iterator[str]:
    if not folded:
        yield ""
    for size in range(1, len(folded) + 1):
        part = folded[:size]
        for first in _unfolded(part) if size == 1 else longer.get(part, ""):
            for rest in _spellings(folded[size:], longer):
                yield first + rest


def _unfolded(char: str) -> tuple[str, ...]:
    """Return the characters that fold to one, and that one."""
    others = (char.upper(), char.title(), char.swapcase())
    return _with_decomposed(char, *(each for each in others if each.casefold() == char), *_OTHERS.get(char, ""))


def _with_decomposed(*chars: str) -> tuple[str, ...]:
    """Return characters, each once, and then those with an accent as a letter and its accents."""
    return tuple(dict.fromkeys((*chars, *(unicodedata.normalize("NFD", char) for char in chars))))


def _longer() -> dict[str, str]:
    """Return the characters that fold to several ones, by what they fold to."""
    found: dict[str, str] = {}
    for code in _LONGER:
        folded = chr(code).casefold()
        if len(folded) > 1:
            found[folded] = found.get(folded, "") + chr(code)
    return found


def _piece(part: str, *, is_exact: bool) -> Piece:
    plain = part.encode() if part.isascii() else None
    atoms = [_encoded(spellings, is_exact=is_exact) for spellings in _atoms(part, is_exact=is_exact)]
    least = sum(min(map(len, spellings)) for spellings in atoms)
    spellings = tuple(map(b"".join, product(*_longest_run(atoms))))
    return Piece(plain, () if spellings == (plain,) else spellings, least)


def _encoded(spellings: Iterable[str], *, is_exact: bool) -> tuple[bytes, ...]:
    encoded = (each.encode("utf-8", "surrogatepass") for each in spellings)
    return tuple(dict.fromkeys(encoded if is_exact else (each.lower() for each in encoded)))


def _longest_run(atoms: list[tuple[bytes, ...]]) -> list[tuple[bytes, ...]]:
    """Return the longest run of parts that has few spellings."""
    best: list[tuple[bytes, ...]] = atoms[:1]
    begin, count = 0, 1
    for end, spellings in enumerate(atoms, 1):
        count *= len(spellings)
        while count > _MOST and begin < end - 1:
            count //= len(atoms[begin])
            begin += 1
        if end - begin > len(best):
            best = atoms[begin:end]
    return best
