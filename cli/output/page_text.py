"""A page of the documentation as text for the terminal: ``reconcile help TOPIC``."""

from __future__ import annotations

import io
import os
import re
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markdown import CodeBlock, Markdown, TableElement
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from .screen import command_lines, wrap
from .text import width

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import ConsoleOptions, RenderResult

    from .text import Style

_LINK = r"!?\[((?:[^\[\]`]|`[^`]*`)*)\]\(([^)\s]+)\)"
_ALONE = rf"[ \n]\({_LINK}\)"
"""A link that is all of a parenthesis."""
_THEME = {f"markdown.{name}": "bold" for name in ("h1", "h2", "h3", "code", "table.header")} | {
    f"markdown.{name}": "none" for name in ("item.bullet", "item.number", "table.border")
}
"""Code in another colour would be unreadable on some backgrounds."""
_CODES = r"\x1b\[[0-9;]*m"
"""The codes of colours and of bold text."""
_FENCE = "```"
_INDENT = "  "
_QUOTED = r"'[^']*'|\"[^\"]*\""
_HARD_SPACE = "\u00a0"
"""No line is broken at one. In the output it is a space again."""


class _Table(TableElement):
    """A table with room for paths, which can be copied then; a word that still is wider than its cell is broken."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for part in super().__rich_console__(console, options):
            if isinstance(part, Table):
                _give_room(part, options.max_width)
            yield part


def _give_room(table: Table, columns: int) -> None:
    """Make a column as wide as its widest word, if its share of the line is less, and the others keep enough."""
    texts = [[str(cell) for cell in (column.header, *column.cells)] for column in table.columns]
    whole = [max(map(width, each)) for each in texts]
    words = [max(width(word) for text in each for word in text.split(" ")) for each in texts]
    beside = len(_INDENT) * len(texts)
    is_tight = sum(whole) + beside > columns >= sum(words) + beside
    for column, widest in zip(table.columns, words, strict=True):
        column.overflow = "fold"
        if is_tight and widest > (columns - beside) // len(words):
            column.width = widest


class _Code(CodeBlock):
    """Code that can be pasted: a long command is continued with a backslash, and has its comment above it."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns = options.max_width
        for line in str(self.text).splitlines():
            if not (self.lexer_name == "sh" or line.startswith("$ ")):
                yield Text(f"{_INDENT}{line}", overflow="fold")
                continue
            code, mark, comment = line.partition("  # ")
            parts = [f"# {comment}", code.rstrip()] if mark and len(_INDENT) + width(line) > columns else [line]
            for part in parts:
                whole = re.sub(_QUOTED, lambda quoted: quoted[0].replace(" ", _HARD_SPACE), part)
                comment_lines = wrap(part, columns, _INDENT, f"{_INDENT}# ") if part.startswith("# ") else None
                lines = comment_lines or command_lines(whole, columns, _INDENT)
                yield Text("\n".join(lines), no_wrap=True, overflow="ignore")


class _Page(Markdown):
    elements = {  # noqa: RUF012 - as the class has it
        **Markdown.elements,
        "table_open": _Table,
        "fence": _Code,
        "code_block": _Code,
    }


def section(text: str, anchor: str) -> str:
    """Return the part of a page below the heading with this anchor, with the heading."""
    lines, start, level = text.splitlines(), None, 0
    is_code = False
    for number, line in enumerate(lines):
        is_code ^= line.startswith(_FENCE)
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
    is_colored = style.colored
    console = Console(
        file=io.StringIO(),
        width=columns,
        height=25,  # any: with both, rich reads no COLUMNS, which may be no number
        color_system="standard" if is_colored else None,
        no_color=not is_colored,
        force_terminal=is_colored,
        theme=Theme(_THEME),
    )
    with console.capture() as captured:
        console.print(_Page("\n".join(_prepared(text, folder, topics))), crop=False)
    lines = captured.get().replace(_HARD_SPACE, " ").splitlines()
    printed = "\n".join(line.rstrip() if re.sub(_CODES, "", line).strip() else "" for line in lines)
    yield from re.sub(r"\n{3,}", "\n\n", printed).strip("\n").splitlines()
    if named := sorted({_topic(each[2], folder, topics) for each in re.finditer(_LINK, text)} - {""}):
        yield ""
        yield style("See also", bold=True)
        yield from (f"  reconcile help {name}" for name in named)


def _topic(target: str, folder: str, topics: Mapping[str, str]) -> str:
    """Return the topic of the page that a link leads to; empty if it is none."""
    page, _, anchor = target.partition("#")
    path = os.path.normpath(os.path.join(folder, page))
    return topics.get(f"{path}#{anchor}") or topics.get(path) or ""


def _prepared(text: str, folder: str, topics: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of a page without links and comments; a picture is its description.

    A link in parentheses becomes the command for its topic, and is left out if it leads to another page that is none.
    Code keeps its marks, which are all that sets it apart without colours, and a command stays in one line.
    """
    text = re.sub(r"<!--.*?-->\n", "", text)
    text = re.sub(r"^!\[(.*)\]\(.*$", r"*Picture:* \1", text, flags=re.MULTILINE)

    def alone(link: re.Match[str]) -> str:
        if (topic := _topic(link[2], folder, topics)) or not link[2].startswith("#"):
            return f"{link[0][0]}(`reconcile help {topic}`)" if topic else ""
        return link[0]

    text = re.sub(_LINK, r"\1", re.sub(_ALONE, alone, text))
    for part in re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL):
        if part.startswith(_FENCE):
            yield part
            continue
        for line in part.splitlines():
            space = " " if line.startswith("|") else _HARD_SPACE  # a cell may be narrower than a command
            yield re.sub(r"`([^`]+)`", lambda code, space=space: f"`` `{code[1].replace(' ', space)}` ``", line)
