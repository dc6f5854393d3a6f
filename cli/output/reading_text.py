"""Markdown on a terminal: prose is wrapped at its width, code stays as it is, and nothing of it takes effect."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .screen import wrap
from .text import clean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .text import Style

TAB = 4
"""Columns of a tab."""
_FENCE = re.compile(r" {0,3}(?P<ticks>`{3,})")
_BULLET = re.compile(r" *(?:[-*+>]|[0-9]{1,9}[.)]) +")
_HEADING = re.compile(r"#{1,6} ")


def markdown_lines(text: str, style: Style) -> Iterator[str]:
    """Yield the lines of a text in Markdown; headings are bold, and notes yellow."""
    fence = ""
    for raw in text.removesuffix("\n").split("\n"):
        line = visible(raw)
        if fence:
            yield line
            match = _FENCE.fullmatch(line.rstrip())
            fence = "" if match and match["ticks"] >= fence else fence
            continue
        match = _FENCE.match(line)
        if match and "`" not in line[match.end() :]:
            fence = match["ticks"]
            yield line
        elif _HEADING.match(line):
            yield from (style(each, bold=True) for each in wrap(line, style.columns, "", "  "))
        elif line.startswith("> note: "):
            yield from (style(each, "yellow") for each in wrap(line, style.columns, "", "  "))
        else:
            yield from _wrapped(line, style.columns)


def visible(line: str) -> str:
    """Return a line with its tabs as spaces, and without control characters that take effect."""
    return clean(line.removesuffix("\r").expandtabs(TAB))


def _wrapped(line: str, columns: int | None) -> list[str]:
    start = _BULLET.match(line)
    indent = len(start[0]) if start else len(line) - len(line.lstrip(" "))
    if columns is None or columns <= indent:
        return [line]
    return wrap(line[indent:], columns, line[:indent], " " * indent)
