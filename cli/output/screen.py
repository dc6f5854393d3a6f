"""Lines that fit the terminal, and the pager. Into a pipe or a file, nothing is cut."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

from .text import show, width

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .text import Style


_CODES = r"\x1b\[[0-9;]*m"
"""The codes of colours and of bold and dim text."""
_COMMAND = r"`[^`]+`|(?<=: )reconcile [^;,()`]+$"
_QUOTED = r"""(?:'[^']*'|"[^"]*"|[^ ])+"""
"""A word of a command, with the spaces in its quotes."""
_NAME = r"(\w+:)?\d{10,}-"
"""The beginning of a directory's name that has an id."""


def wrap(
    text: str, columns: int | None, indent: str = "", hanging: str | None = None, *, is_command: bool = False
) -> list[str]:
    """Break a text at spaces into lines of at most so many columns; None: one line.

    A word that is wider is broken after a slash if it is a path, and after the id if it is a directory's name. Ids are
    never broken. A command in backticks, or behind a colon at the end, is one word unless it is wider than a line.
    ``hanging``: the indentation of all lines but the first. ``is_command``: the text is one, whose words stay whole.
    """
    if columns is None or width(indent) + width(text) <= columns:
        return [indent + text]
    further = indent if hanging is None else hanging
    lines, line = [], indent
    is_empty = True
    begin = width(further)
    room, taken = columns - begin, width(indent)
    for word in re.findall(_QUOTED, text) if is_command else _pieces(text, room):
        gap = "" if is_empty or word.startswith("\0") else " "
        piece = word.removeprefix("\0")
        needed = len(gap) + width(piece)
        if not is_empty and taken + needed > columns:
            lines.append(line.rstrip())
            line, gap, is_empty = further, "", True
            taken, needed = begin, width(piece)
        if piece or not is_empty:
            line += gap + piece
            taken += needed
            is_empty = False
    return [*lines, line.rstrip()]


def _pieces(text: str, room: int) -> Iterator[str]:
    """Yield the words of a text; of a long path its parts, of which all but the first begin with a NUL.

    Of a part that is still too wide, the id at its beginning is one piece, and each of the words after it.
    Wide characters, such as Chinese ones, are pieces of their own.
    """
    for word in _words(text, room):
        parts = re.findall(r"[^/]+/?|/", word) if width(word) > room and "/" in word else [word]
        pieces = [
            piece
            for part in parts
            for piece in (re.findall(r"[^-]+-?|-", part) if width(part) > room and re.match(_NAME, part) else [part])
        ]
        if not word.isascii() and any(width(piece) > room for piece in pieces):
            from .glyphs import parts_of  # here: most text is ASCII

            pieces = [part for piece in pieces for part in (parts_of(piece) if width(piece) > room else [piece])]
        yield pieces[0]
        yield from (f"\0{piece}" for piece in pieces[1:])


def _words(text: str, room: int) -> list[str]:
    """Return the words of a text; those of a command are one, if a line has room for it."""
    if "`" not in text and ": reconcile " not in text:
        return text.split(" ")

    def whole(code: re.Match[str]) -> str:
        return code[0].replace(" ", "\0") if width(code[0]) <= room else code[0]

    return [word.replace("\0", " ") for word in re.sub(_COMMAND, whole, text).split(" ")]


def fit(lines: Iterable[str], style: Style) -> Iterator[str]:
    """Yield lines, of which those that are too wide are wrapped, without their colours."""
    for line in lines:
        plain = re.sub(_CODES, "", line) if style.colored else line
        if style.columns is None or width(plain) <= style.columns:
            yield line
        else:
            text = plain.lstrip(" ")
            indent = plain[: len(plain) - len(text)]
            yield from wrap(text, style.columns, indent, f"{indent}  ")


def command_lines(command: str, columns: int | None, indent: str) -> list[str]:
    """Return a command that can be copied from the screen: a long one is continued with a backslash."""
    if columns is None or len(indent) + width(command) <= columns:
        return [indent + command]
    lines = wrap(command, columns - 2, indent, f"{indent}  ", is_command=True)
    return [*(f"{line} \\" for line in lines[:-1]), lines[-1]]


def show_paged(lines: Iterable[str], style: Style) -> None:
    """Print lines; at a terminal that has fewer rows, through a pager."""
    listed = list(lines)
    if style.columns is None or not sys.stdin.isatty() or not _is_long(listed) or not (pager := _pager()):
        show(listed)
    else:
        _page(listed, pager)


def _is_long(lines: Sequence[str]) -> bool:
    try:
        rows = os.get_terminal_size(sys.stdout.fileno()).lines
    except (OSError, ValueError):
        return False
    return 0 < rows <= sum(line.count("\n") + 1 for line in lines)


def _pager() -> str:
    """Return the command of the pager, as git chooses it; empty: none."""
    import click  # here, as below: most output is short

    context = click.get_current_context(silent=True)
    is_refused = context is not None and getattr(context.find_root().obj, "no_pager", False)
    if is_refused or os.environ.get("TERM") == "dumb":
        return ""
    command = os.environ.get("RECONCILE_PAGER", os.environ.get("PAGER", "less")).strip()
    return "" if command == "cat" else command


def _page(lines: Sequence[str], pager: str) -> None:
    """Show lines with a pager, and wait for its end. Print them if it can't be started."""
    import shlex
    import signal
    import subprocess

    sys.stdout.flush()
    # As git does: less ends by itself if all is on one screen, and keeps colours and the screen.
    environ = {"LESS": "FRX", "LV": "-c", **os.environ}
    before = signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C is for the pager, which runs on
    try:
        process = subprocess.Popen(shlex.split(pager), stdin=subprocess.PIPE, env=environ)  # noqa: S603 - the user's own
    except (OSError, ValueError):
        show(lines)
    else:
        text = "".join(f"{line}\n" for line in lines)
        process.communicate(text.encode(sys.stdout.encoding, "replace"))  # which ignores a pager that has ended
    finally:
        signal.signal(signal.SIGINT, before)
