"""Text for a terminal: colours, widths, tables, times, escaped characters, and the first and last line of a report.

Every start loads this module, so that it imports little.
"""

from __future__ import annotations

import os
import sys
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reconcile.adapters.roots import Roots

SETTLED_COLOR = "green"
"""The colour of the last line if nothing is left to do."""
MAX_COLUMNS = 200
"""Columns of texts that are shown in full unless they are absurdly long."""
MAX_INDENT = 16
"""Levels of a tree that are shown by indentation."""


def title_and_id(title: str | None, conversation: str, style: Style) -> str:
    """Return a conversation's title with its id, or only one of them if they are the same."""
    shown = style(shorten(clean(title or "(no title)"), MAX_COLUMNS), bold=True)
    return shown if title == conversation else f"{shown}  {clean(conversation)}"


def clean(text: str) -> str:
    """Escape control characters, direction marks and undecodable bytes, so that none takes effect."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_visible, text))


def _visible(char: str) -> str:
    if char.isascii() and char.isprintable():
        return char
    import unicodedata  # here, as below: most text is ASCII

    category = unicodedata.category(char)
    if category == "Cs" and "\udc80" <= char <= "\udcff":
        return f"\\x{ord(char) - 0xDC00:02x}"
    if category in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
        return f"\\u{ord(char):04x}" if ord(char) > 0xFF else f"\\x{ord(char):02x}"
    return char


def format_time(time_ns: int) -> str:
    """Return a time (ns since the epoch) in the local time zone, to the second; outside of the calendar, the number."""
    from datetime import datetime  # here: most runs show no time

    try:
        return datetime.fromtimestamp(time_ns // 10**9).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return f"{time_ns} ns"


def width(text: str) -> int:
    """Return the number of columns that a text takes in a terminal."""
    if text.isascii():
        return len(text)
    import unicodedata

    columns = len(text)
    for char in text:
        if not char.isascii():
            columns += -1 if unicodedata.combining(char) else unicodedata.east_asian_width(char) in "WF"
    return columns


def pad(text: str, columns: int) -> str:
    """Return a text filled up with spaces to a number of columns."""
    return text + " " * max(0, columns - width(text))


def shorten(text: str, columns: int) -> str:
    """Cut a text to a number of columns, with an ellipsis.

    It is also cut to four characters a column: combining marks take no column.
    """
    start = text[: 4 * columns]
    if text == start and width(text) <= columns:
        return text
    if start.isascii():
        return start[: columns - 1] + "…"
    ends = accumulate(width(char) for char in start)
    kept = "".join(char for char, end in zip(start, ends, strict=True) if end < columns)
    return kept + "…"


def indented(depth: int, text: str) -> str:
    """Indent a text by a number of levels. Below `MAX_INDENT`, the number of the level is printed."""
    return f"{'  ' * depth}{text}" if depth <= MAX_INDENT else f"{'  ' * MAX_INDENT}{depth}: {text}"


def size(count: int) -> str:
    """Return a number of bytes with a unit: 999 B, 1.2 kB, 3.4 MB, 5.6 GB."""
    if count < 1000:
        return f"{count} B"
    value = count / 1000
    for unit in ("kB", "MB"):
        if round(value, 1) < 1000:
            return f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


class Style:
    """Colours, or none of them."""

    __slots__ = ("colored",)

    def __init__(self, colored: bool) -> None:
        """Choose whether to use colours."""
        self.colored = colored

    @classmethod
    def choose(cls, when: str) -> Style:
        """Decide by ``--color``, ``NO_COLOR``, ``TERM`` and whether standard output is a terminal."""
        if when != "auto":
            return cls(when == "always")
        return cls(sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb")

    def __call__(self, text: str, color: str | None = None, *, bold: bool = False, dim: bool = False) -> str:
        """Return the text in a colour, if colours are used."""
        if not self.colored:
            return text
        import click

        return click.style(text, fg=color, bold=bold or None, dim=dim or None)


def heading(roots: Roots, layout: str, style: Style) -> str:
    """Return the two lines that name the workspace and the store, and the layout."""
    home = os.path.expanduser("~")

    def show(path: str) -> str:
        return clean("~" + path[len(home) :] if path.startswith(home + os.sep) else path)

    how = f" ({layout})" if roots.inner else ""
    text = f"workspace {show(roots.workspace)}{how}\nstore     {show(roots.store)}"
    return style(text, dim=True)


def show(lines: Iterable[str]) -> None:
    """Print lines."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def count_line(
    steps: Sequence[str], waits: Sequence[str], states: Sequence[tuple[str, int]], noun: str, *, done: bool
) -> str:
    """Return the last line of a report: the steps, what waits, and how many records are in which state.

    ``done``: the steps are done, and not only planned.
    """
    text = f"{'Done' if done else 'Plan'}: {', '.join(steps) if steps else 'nothing to do'}"
    text = "; ".join((text, *waits))
    if states:
        total = sum(count for _, count in states)
        counts = ", ".join(f"{count} {state}" for state, count in states)
        text += f". {total} {noun}{'' if total == 1 else 's'}: {counts}"
    return text + "."


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]], style: Style) -> None:
    """Print rows of cells below a bold heading."""
    widths = [max(map(width, column)) for column in zip(head, *rows, strict=True)]
    lines = []
    for number, cells in enumerate((head, *rows)):
        line = "  ".join(pad(cell, columns) for cell, columns in zip(cells, widths, strict=True)).rstrip()
        lines.append(line if number else style(line, bold=True))
    show(lines)
