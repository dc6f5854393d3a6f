"""Tables that fit the terminal: they leave columns out, and cut titles, where there is no room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from .text import pad, shorten, width

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .text import Style

LEAST = 12
"""The columns that a column which may be cut keeps."""
ROOM = 24
"""The columns that a title keeps as long as there is another column to be left out."""
_GAP = "  "


class Column(Struct, frozen=True):
    """A column of a table. ``shrinks``: it may be cut; ``drops``: whether it is left out where there is no room.

    ``drops_last``: it is left out only if nothing else helps. ``brief``: the characters to which its cells are cut,
    without a mark, before a column is left out: the day of a time.
    """

    head: str
    shrinks: bool = False
    drops: bool = False
    right: bool = False
    drops_last: bool = False
    brief: int = 0


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]], style: Style) -> list[str]:
    """Return the lines of a table below a bold heading.

    It leaves out an empty column that may be left out. Too wide for the terminal, it leaves out the last of these, and
    so on, before it cuts titles to less than `ROOM`.
    """
    widths = _widths(columns, rows)
    shown = [number for number, column in enumerate(columns) if not column.drops or any(row[number] for row in rows)]
    if style.columns is not None:
        brief = _fit(columns, widths, shown, style.columns)
        most = [column.brief if number in brief else None for number, column in enumerate(columns)]
        rows = [[cell[:end] for cell, end in zip(row, most, strict=True)] for row in rows] if brief else rows

    template = _GAP.join(f"{{{number}:{'>' if columns[number].right else '<'}{widths[number]}}}" for number in shown)
    full = sum(widths[number] for number in shown) + len(_GAP) * (len(shown) - 1)

    def line(cells: Sequence[str]) -> str:
        text = template.format(*cells)
        if len(text) > full or not text.isascii():  # a cell is too wide, or has characters of another width
            filled = [_filled(cells[number], widths[number], right=columns[number].right) for number in shown]
            text = _GAP.join(filled)
        return text.rstrip()

    return [style(line([column.head for column in columns]), bold=True), *map(line, rows)]


def _filled(cell: str, room: int, *, right: bool) -> str:
    cell = shorten(cell, room)
    return " " * (room - width(cell)) + cell if right else pad(cell, room)


def natural_width(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> int:
    """Return the columns that a table takes if nothing is cut."""
    return sum(_widths(columns, rows)) + len(_GAP) * (len(columns) - 1)


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[int]:
    heads = [column.head for column in columns]
    return [max(map(len if "".join(cells).isascii() else width, cells)) for cells in zip(heads, *rows, strict=True)]


def _fit(columns: Sequence[Column], widths: list[int], shown: list[int], most: int) -> set[int]:
    """Leave columns out of ``shown``, and reduce ``widths``, until a table takes at most so many columns.

    Return the columns whose cells are to be cut to their brief form.
    """

    def excess() -> int:
        return sum(widths[number] for number in shown) + len(_GAP) * (len(shown) - 1) - most

    def spare(title: int = LEAST) -> int:
        least = [LEAST if column.drops or column.drops_last else title for column in columns]
        return sum(max(0, widths[number] - least[number]) for number in shown if columns[number].shrinks)

    brief: set[int] = set()
    for number in reversed(shown.copy()):
        column = columns[number]
        if column.brief and excess() > spare(ROOM):
            widths[number] = max(len(column.head), column.brief)
            brief.add(number)
        if column.drops and excess() > spare(ROOM):
            shown.remove(number)
    for number in reversed(shown.copy()):
        if columns[number].drops_last and excess() > spare():
            shown.remove(number)
    while (over := excess()) > 0 and spare() > 0:
        number = max((number for number in shown if columns[number].shrinks), key=lambda number: widths[number])
        widths[number] = max(LEAST, widths[number] - over)
    return brief
