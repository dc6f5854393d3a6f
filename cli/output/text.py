"""Text for a terminal: colours, widths, tables, the lines that reports begin and end with, and nothing raw in names.

Loaded at every start, and loads next to nothing.
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
"""The colour of a run after which nothing waits."""
MAX_COLUMNS = 200
"""Columns of what is shown in full, unless it is absurd."""
MAX_INDENT = 16
"""Levels by which text is put to the right."""


def title_and_id(title: str | None, conversation: str, style: Style) -> str:
    """Return a conversation's title with its id, or the one that both are."""
    shown = style(shorten(clean(title or "(no title)"), MAX_COLUMNS), bold=True)
    return shown if title == conversation else f"{shown}  {clean(conversation)}"


def clean(text: str) -> str:
    """Make control characters, direction marks and undecodable bytes visible instead of acting."""
    return "".join(_visible(char) for char in text)


def _visible(char: str) -> str:
    if char.isascii() and char.isprintable():
        return char
    import unicodedata  # here, as the next one: most text is plain

    category = unicodedata.category(char)
    if category == "Cs" and "\udc80" <= char <= "\udcff":
        return f"\\x{ord(char) - 0xDC00:02x}"
    if category in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
        return f"\\u{ord(char):04x}" if ord(char) > 0xFF else f"\\x{ord(char):02x}"
    return char


def width(text: str) -> int:
    """Return the columns that a text takes."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def pad(text: str, columns: int) -> str:
    """Fill a text up with spaces."""
    return text + " " * max(0, columns - width(text))


def shorten(text: str, columns: int) -> str:
    """Cut a text to so many columns, with an ellipsis, and to four characters a column: marks take none."""
    some = text[: 4 * columns]
    if text == some and width(text) <= columns:
        return text
    ends = accumulate(width(char) for char in some)
    kept = "".join(char for char, end in zip(some, ends, strict=True) if end < columns)
    return kept + "…"


def indented(depth: int, text: str) -> str:
    """Put a text so many levels to the right; below the last one that is shown so, the number of the level stands."""
    return f"{'  ' * depth}{text}" if depth <= MAX_INDENT else f"{'  ' * MAX_INDENT}{depth}: {text}"


def size(count: int) -> str:
    """Return bytes in words."""
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
        """Use colours, or don't."""
        self.colored = colored

    @classmethod
    def choose(cls, when: str) -> Style:
        """Decide by ``--color``, ``NO_COLOR`` and whether standard output is a terminal."""
        if when != "auto":
            return cls(when == "always")
        return cls(sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb")

    def __call__(self, text: str, color: str | None = None, *, bold: bool = False, dim: bool = False) -> str:
        """Return the text in a colour."""
        if not self.colored:
            return text
        import click

        return click.style(text, fg=color, bold=bold or None, dim=dim or None)


def heading(roots: Roots, layout: str, style: Style) -> str:
    """Say which two sides the run is about."""
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
    """Return the one line that counts everything: steps, what waits, and how many records are in which state."""
    text = f"{'Done' if done else 'Plan'}: {', '.join(steps) if steps else 'nothing to do'}"
    text = "; ".join((text, *waits))
    if states:
        total = sum(count for _, count in states)
        each = ", ".join(f"{count} {state}" for state, count in states)
        text += f". {total} {noun}{'' if total == 1 else 's'}: {each}"
    return text + "."


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]], style: Style) -> None:
    """Print rows of cells below a bold heading."""
    widths = [max(map(width, column)) for column in zip(head, *rows, strict=True)]
    lines = []
    for number, cells in enumerate((head, *rows)):
        line = "  ".join(pad(cell, columns) for cell, columns in zip(cells, widths, strict=True)).rstrip()
        lines.append(line if number else style(line, bold=True))
    show(lines)
