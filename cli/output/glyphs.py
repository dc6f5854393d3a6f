"""The columns that characters take in a terminal: wide ones, marks, and emoji.

Only texts that aren't ASCII need this module.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_EMOJI_PRESENTATION = "\ufe0f"
"""Makes a character that is narrow as a text a wide emoji."""
_KEYS = "#*0123456789"
_KNOWN = 1 << 14
"""Characters of which the columns are remembered."""
_NEVER_ALONE = ((0x1160, 0x11FF), (0xD7B0, 0xD7FF), (0x1F3FB, 0x1F3FF))
"""Vowels and last consonants of Hangul, and skin tones: a terminal draws them into the character before."""


def width_of(text: str) -> int:
    """Return the number of columns that a text takes."""
    if _EMOJI_PRESENTATION in text:
        return sum(columns for _, columns in _glyphs(text))
    return sum(map(_columns_of, text))  # what is drawn into the character before takes none


def beginning(text: str, columns: int) -> str:
    """Return the longest beginning of a text that takes at most so many columns, without half of a character."""
    shown, total = [], 0
    for glyph, taken in _glyphs(text):
        total += taken
        if total > columns:
            break
        shown.append(glyph)
    return "".join(shown)


def lines_of(text: str, columns: int) -> Iterator[str]:
    """Yield the parts of a text that each take at most so many columns; a character that takes more is one of them."""
    if text.isascii():
        yield from (text[at : at + columns] for at in range(0, len(text), columns))
        return
    shown: list[str] = []
    total = 0
    for glyph, taken in _glyphs(text):
        if shown and total + taken > columns:
            yield "".join(shown)
            shown, total = [], 0
        shown.append(glyph)
        total += taken
    yield "".join(shown)


def parts_of(text: str) -> Iterator[str]:
    """Yield the parts of a word between which a line may end: before each wide character that is no punctuation."""
    part, was_wide = "", False
    for glyph, columns in _glyphs(text):
        is_wide = columns == 2
        if part and (is_wide or was_wide) and not unicodedata.category(glyph[0]).startswith("P"):
            yield part
            part = ""
        part += glyph
        was_wide = is_wide
    yield part


def _glyphs(text: str) -> Iterator[tuple[str, int]]:
    """Yield characters, each with the marks that belong to it, and the columns that it takes."""
    glyph, columns = "", 0
    for char in text:
        if glyph and not _columns_of(char):
            if char == _EMOJI_PRESENTATION and _may_be_emoji(glyph[0]):
                columns = 2
            glyph += char
            continue
        if glyph:
            yield glyph, columns
        glyph, columns = char, _columns_of(char)
    if glyph:
        yield glyph, columns


@lru_cache(_KNOWN)
def _columns_of(char: str) -> int:
    """Return the columns of a character; 0: it is drawn into the one before."""
    if char.isascii():
        return 1
    if unicodedata.category(char) in ("Mn", "Me") or any(low <= ord(char) <= high for low, high in _NEVER_ALONE):
        return 0
    return 1 + (unicodedata.east_asian_width(char) in "WF")


def _may_be_emoji(char: str) -> bool:
    return char in _KEYS or not (char.isascii() or (char.isalpha() and char != "\u2139"))
