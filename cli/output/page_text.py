"""A page of the documentation as text for the terminal: ``reconcile help TOPIC``.

The pages are plain Markdown with headings, paragraphs, lists, tables, fenced code and links. Nothing else is read.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from .screen import command_lines, fit, wrap
from .text import Style, pad, width

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_INDENT = "  "
_DRAWN = re.compile("[│├└┐┘─]")
"""Characters of trees and drawings."""
_ITEM = r"( *)([*-]|\d+\.) +(.*)"
_LINK = r"!?\[((?:[^\[\]`]|`[^`]*`)*)\]\(([^)\s]+)\)"


def section(text: str, anchor: str) -> str:
    """Return the part of a page below the heading with this anchor, with the heading."""
    lines, start, level = text.splitlines(), None, 0
    is_code = False
    for number, line in enumerate(lines):
        is_code ^= line.startswith("```")
        heading = None if is_code else re.match(r"(#+) (.*)", line)
        if heading is None:
            continue
        if start is not None and len(heading[1]) <= level:
            return "\n".join(lines[start:number])
        if start is None and _anchor(heading[2]) == anchor:
            start, level = number, len(heading[1])
    return "\n".join(lines[start or 0 :])


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def page_lines(text: str, style: Style, columns: int, folder: str, topics: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of a page, wrapped to so many columns, and last the commands for the topics that it links to.

    ``folder``: the page's directory, from which its links lead. ``topics``: the names of topics by their pages.
    """
    for number, block in enumerate(_blocks(text)):
        if number:
            yield ""
        if block[0].startswith("```"):
            yield from _code(block[1:-1], columns)
        elif block[0].startswith("|"):
            yield from _table(block, style, columns)
        elif heading := re.match(r"#+ (.*)", block[0]):
            yield from (style(line, bold=True) for line in wrap(_plain(heading[1]), columns))
        else:
            yield from _paragraphs(block, columns)
    linked = (os.path.normpath(os.path.join(folder, each[2].partition("#")[0])) for each in re.finditer(_LINK, text))
    if named := sorted({topics[page] for page in linked if page in topics}):
        yield ""
        yield style("See also", bold=True)
        yield from (f"{_INDENT}reconcile help {name}" for name in named)


def _blocks(text: str) -> Iterator[list[str]]:
    """Yield the lines of each heading, paragraph, list, table and fenced code of a page, without comments."""
    block: list[str] = []
    is_code = False
    for line in text.splitlines():
        is_fence = line.lstrip().startswith("```")
        if is_code:
            block.append(line)
            if not is_fence:
                continue
            yield [line.strip() if number in (0, len(block) - 1) else line for number, line in enumerate(block)]
            block, is_code = [], False
        elif is_fence or not line.strip() or line.startswith(("#", "<!--")):
            if block:
                yield block
            block, is_code = [line] if is_fence else [], is_fence
            if line.startswith("#"):
                yield [line]
        elif not line.startswith("!["):  # a picture
            block.append(line)
    if block:
        yield block


def _code(lines: Sequence[str], columns: int) -> Iterator[str]:
    """Yield the lines of fenced code; a line that is too wide goes on in the next one, but not that of a drawing."""
    for line in lines:
        shown = f"{_INDENT * 2}{line}".rstrip()
        if _DRAWN.search(line):
            yield shown
        elif line.startswith("reconcile "):
            yield from command_lines(line, columns, _INDENT * 2)
        else:
            yield from fit([shown], Style(colored=False, columns=columns))


def _paragraphs(block: Sequence[str], columns: int) -> Iterator[str]:
    """Yield a paragraph, or the items of a list with their further lines."""
    indent = hanging = _INDENT
    words: list[str] = []
    for line in block:
        if item := re.match(_ITEM, line):
            if words:
                yield from wrap(_plain(" ".join(words)), columns, indent, hanging)
            indent = f"{_INDENT}{item[1]}"
            hanging = indent + " " * (len(item[2]) + 1)
            words = [f"{item[2]} {item[3]}"]
        else:
            words.append(line.strip())
    yield from wrap(_plain(" ".join(words)), columns, indent, hanging)


def _table(block: Sequence[str], style: Style, columns: int) -> Iterator[str]:
    """Yield a table; one that is too wide as the first cell of each row, with the other cells below it."""
    head, _, *rows = [[_plain(cell.strip()) for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in block]
    widths = [max(map(width, cells)) for cells in zip(head, *rows, strict=True)]
    if len(_INDENT) + sum(widths) + 2 * (len(widths) - 1) <= columns:
        for number, row in enumerate((head, *rows)):
            line = _INDENT + "  ".join(map(pad, row, widths)).rstrip()
            yield line if number else style(line, bold=True)
        return
    for number, (first, *others) in enumerate(rows):
        if number:
            yield ""
        yield from (style(line, bold=True) for line in wrap(first, columns, _INDENT, _INDENT * 2))
        for name, cell in zip(head[1:], others, strict=True):
            if cell and len(head) > 2:
                yield from wrap(f"{name}: {cell}", columns, _INDENT * 2, _INDENT * 3)
            elif cell:
                yield from wrap(cell, columns, _INDENT * 2)


def _plain(text: str) -> str:
    """Return a text without the marks of links, strong words and emphasis; code keeps its marks."""
    text = re.sub(_LINK, r"\1", text.replace(r"\|", "|"))
    return "".join(
        part if part.startswith("`") else re.sub(r"(?<![\w*])(\*{1,2})(?=\S)(.+?)(?<=\S)\1(?![\w*])", r"\2", part)
        for part in re.split(r"(`[^`]*`)", text)
    )
