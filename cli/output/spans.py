"""Pieces of text with their marks, broken into lines by the columns that they take in a terminal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

from .text import width

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .text import Style

Piece: TypeAlias = tuple[str, str]
"""A mark and a text: ``-`` and ``+`` are the words of one version, ``#`` is a heading, ``.`` is dim, blank is plain."""

_COLORS = {"-": "red", "+": "green"}
_SIGNS = {"-": ("[-", "-]"), "+": ("{+", "+}")}
_ALONE = r"\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff"
"""Wide characters, between which a line may end."""
_WORDS = re.compile(rf" +|[{_ALONE}]|[^ {_ALONE}]+")


def signed(pieces: Iterable[Piece], style: Style) -> list[Piece]:
    """Return pieces of a line. Without colours, changed words have the signs of `git diff --word-diff`."""
    if style.colored:
        return list(pieces)
    signs = ((mark, text, *_SIGNS.get(mark, ("", ""))) for mark, text in pieces)
    return [(mark, f"{before}{text}{after}") for mark, text, before, after in signs]


def painted(pieces: Iterable[Piece], style: Style) -> str:
    """Return the text of pieces in the colours of their marks."""
    return "".join(
        style(text, _COLORS.get(mark), bold=mark == "#", dim=mark == ".") if mark.strip() else text
        for mark, text in pieces
    )


def columns_of(pieces: Iterable[Piece]) -> int:
    """Return the columns that pieces take."""
    return sum(width(text) for _, text in pieces)


def broken(pieces: Iterable[Piece], columns: int | None) -> list[list[Piece]]:
    """Return the lines of pieces, each of at most so many columns; None: one line.

    Lines break at spaces, which they lose, or inside of a word that is wider than a line.
    """
    if columns is None:
        return [list(pieces)]
    lines: list[list[Piece]] = [[]]
    room = columns
    for mark, text in pieces:
        for word in _WORDS.findall(text):
            taken = width(word)
            if taken <= room:
                lines[-1].append((mark, word))
                room -= taken
            elif word.isspace():
                room = 0  # a space that doesn't fit ends the line
            else:
                parts = [word]
                if taken > columns:
                    from .glyphs import lines_of  # here: most words fit

                    parts = list(lines_of(word, max(columns, 1)))
                for part in parts:
                    if lines[-1]:
                        _strip(lines[-1])
                        lines.append([])
                    lines[-1].append((mark, part))
                room = columns - width(parts[-1])
    return lines


def _strip(line: list[Piece]) -> None:
    if len(line) > 1 and line[-1][1].isspace():
        line.pop()
