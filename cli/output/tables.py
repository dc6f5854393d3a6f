"""Tables on a terminal: columns as wide as what is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .style import Style, pad, width

if TYPE_CHECKING:
    from collections.abc import Sequence


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]], style: Style) -> None:
    """Print rows of cells below a bold heading."""
    widths = [max(map(width, column)) for column in zip(head, *rows, strict=True)]
    for number, cells in enumerate((head, *rows)):
        line = "  ".join(pad(cell, columns) for cell, columns in zip(cells, widths, strict=True)).rstrip()
        click.echo(line if number else style(line, bold=True))
