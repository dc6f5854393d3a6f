"""Lines of styled text: wrapped to a width, and set side by side.

A style is a name, and each view has its own look of it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..output.text import clean, pad, shorten, width

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Piece = tuple[str, str]
    """A text and the name of its style; the empty name is plain text."""
    Line = tuple[Piece, ...]

PLAIN, TITLE, DIM, ASKED, CHOSEN, KEY, STORE, WORKSPACE, STORE_CHANGED, WORKSPACE_CHANGED = (
    "",
    "title",
    "dim",
    "asked",
    "chosen",
    "key",
    "store",
    "workspace",
    "store-changed",
    "workspace-changed",
)
BETWEEN = " | "
"""Between two columns."""
TAB = 4


def plain(line: Line) -> str:
    """Return the text of a line."""
    return "".join(text for text, _ in line)


def columns_of(line: Line) -> int:
    """Return the columns that a line takes."""
    return sum(width(text) for text, _ in line)


def wrapped(pieces: Iterable[Piece], columns: int, indent: str = "", first: str | None = None) -> Iterator[Line]:
    """Yield the lines of a text, at most as wide as the columns; breaks in the text end a line.

    ``indent`` begins each line, ``first`` the first one. Control characters are shown escaped.
    """
    before = indent if first is None else first
    line: list[Piece] = []
    used, gap, gap_style = 0, "", PLAIN
    for word in _words(pieces):
        if word is None:
            yield _line(before, line)
            line, used, gap, before = [], 0, "", indent
            continue
        text = plain(tuple(word))
        if text.isspace():
            gap, gap_style = text, word[0][1]
            continue
        room = max(1, columns - width(before))
        if line and used + width(gap) + width(text) > room:
            yield _line(before, line)
            line, used, gap, before = [], 0, "", indent
            room = max(1, columns - width(before))
        if gap:
            line.append((gap[: room - 1], gap_style))
            used += width(line[-1][0])
        for part, style in word:
            rest = part
            while rest:
                start = _beginning(rest, room - used)
                if used and used + width(start) > room:
                    yield _line(before, line)
                    line, used, before = [], 0, indent
                    room = max(1, columns - width(before))
                    start = _beginning(rest, room)
                line.append((start, style))
                used += width(start)
                rest = rest[len(start) :]
        gap = ""
    if line:
        yield _line(before, line)


def _line(before: str, line: Sequence[Piece]) -> Line:
    return ((before, PLAIN), *line) if before and line else tuple(line)


def _words(pieces: Iterable[Piece]) -> Iterator[list[Piece] | None]:
    """Yield words and the spaces between them, cleaned, each as its pieces; None: the line ends."""
    word: list[Piece] = []
    for text, style in pieces:
        for number, part in enumerate(text.split("\n")):
            if number:
                if word:
                    yield word
                word = []
                yield None
            for run in re.findall(r" +|[^ ]+", part.expandtabs(TAB)):
                if word and word[-1][0].isspace() != run.isspace():
                    yield word
                    word = []
                word.append((clean(run), style))
    if word:
        yield word


def _beginning(text: str, columns: int) -> str:
    """Return as much of a text as fits; at least one character."""
    end = min(max(1, columns), len(text))
    while end > 1 and width(text[:end]) > columns:
        end -= 1
    return text[:end]


def beside(left: Sequence[Line], right: Sequence[Line], columns: int) -> Iterator[Line]:
    """Yield two texts side by side, each in a half of the columns."""
    half = (columns - len(BETWEEN)) // 2
    for number in range(max(len(left), len(right))):
        ours = left[number] if number < len(left) else ()
        theirs = right[number] if number < len(right) else ()
        yield (*ours, (" " * max(0, half - columns_of(ours)), PLAIN), (BETWEEN, DIM), *theirs)


def cut(text: str, columns: int) -> str:
    """Return a text that is exactly as wide as the columns."""
    return pad(shorten(clean(text), max(columns, 1)), columns)
