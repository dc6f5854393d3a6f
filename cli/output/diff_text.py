"""The differences between two versions as lines: below each other, or side by side, with the changed words marked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reconcile.inspect.differences import value_text
from reconcile.inspect.text_diff import RowKind, merged_spans, rows_of_pairs

from .reading_text import visible
from .screen import fit
from .spans import broken, columns_of, painted, signed
from .text import MAX_COLUMNS, clean, pad, shorten, width

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from reconcile.inspect.alignment import Span
    from reconcile.inspect.differences import Differences
    from reconcile.inspect.text_diff import Row

    from .spans import Piece
    from .text import Style

_LEAST_COLUMNS = 40
"""The width from which two columns are readable."""
_INDENT = "  "


def diff_lines(
    differences: Differences,
    labels: tuple[str, str],
    style: Style,
    *,
    columns: int | None = None,
    is_full: bool = False,
) -> Iterator[str]:
    """Yield the lines of differences. ``columns``: the width for two columns; None: one below the other.

    ``is_full``: events without a difference are shown too.
    """
    if differences.is_empty:
        yield "  no differences"
        if not is_full:
            return
    two = columns if columns is not None and columns >= _LEAST_COLUMNS else None
    room = max(map(width, labels))
    for note in differences.comparison.notes:
        yield from fit([f"  {style('note', 'yellow')} {clean(note)}"], style)
    for key, own, other in differences.metadata:
        yield from fit([f"  metadata {clean(key)}"], style)
        yield from _values(own, other, labels, room, style)
    for key, own, other in differences.configuration:
        yield from fit([f"  base_config.json {clean(key)}"], style)
        yield from _values(own, other, labels, room, style)
    if differences.comparison.base_config_differs and not differences.configuration:
        yield "  base_config.json differs"
    if differences.is_turn_changed or is_full:
        if differences.comparison.common:
            yield f"  events: {_first(differences.comparison.common)}"
        yield ""
        yield from _heads(labels, style, two)
        yield from row_lines(rows_of_pairs(differences.pairs, is_full=is_full), style, two)
    elif differences.comparison.store_only or differences.comparison.workspace_only:
        yield "  events: the same, written in another form"
    for other in differences.others:
        yield from fit([f"  {clean(other.name)}: {other.state}"], style)
        yield from row_lines(other.rows, style, two)


def _first(count: int) -> str:
    return "the first is the same" if count == 1 else f"the first {count} are the same"


def _values(own: Any, other: Any, labels: tuple[str, str], room: int, style: Style) -> Iterator[str]:
    for mark, label, value, color in (("-", labels[0], own, "red"), ("+", labels[1], other, "green")):
        text = shorten(clean(value_text(value)), MAX_COLUMNS)
        yield from (style(line, color) for line in _value_lines(f"    {mark} {pad(label, room)}  ", text, style))


def _value_lines(start: str, text: str, style: Style) -> Iterator[str]:
    """Yield a value behind its beginning; on a narrow screen it begins in a line of its own."""
    if style.columns is None:
        yield start + text
        return
    room = style.columns - width(start)
    indent = start
    if room < _LEAST_COLUMNS // 2 and width(text) > room:
        yield start.rstrip()
        indent, room = " " * 6, max(1, style.columns - 6)
    for line in broken([(" ", text)], room):
        yield (indent + "".join(piece for _, piece in line)).rstrip()
        indent = " " * width(indent)


def _heads(labels: tuple[str, str], style: Style, two: int | None) -> Iterator[str]:
    """Yield the names of both versions."""
    if two is None:
        yield style(f"--- {labels[0]}", "red", bold=True)
        yield style(f"+++ {labels[1]}", "green", bold=True)
        return
    cell = (two - 3) // 2
    left, right = (shorten(label, cell) for label in labels)
    yield f"{style(pad(left, cell), 'red', bold=True)}   {style(right, 'green', bold=True)}".rstrip()


def row_lines(rows: Iterable[Row], style: Style, columns: int | None = None) -> Iterator[str]:
    """Yield the lines of rows; ``columns``: the width for two columns, None: one below the other."""
    for row in rows:
        yield from _unified(row, style) if columns is None else _side_by_side(row, style, columns)


def _unified(row: Row, style: Style) -> Iterator[str]:
    indent = _INDENT if row.kind is RowKind.LINE else ""
    if row.is_edited:
        assert row.left is not None  # noqa: S101 - both sides have a version
        assert row.right is not None  # noqa: S101 - as above
        pieces = signed(((mark, visible_text(text)) for mark, text in merged_spans(row.left, row.right)), style)
        yield from _hung(f"~ {indent}", pieces, style, "")
    elif not row.is_changed:
        mark = "#" if row.kind is RowKind.HEADING else "." if row.kind is RowKind.SKIPPED else " "
        yield from _hung(f"  {indent}", [(mark, _text(row.right or ()))], style, "")
    else:
        mark, spans = ("-", row.left) if row.left is not None else ("+", row.right or ())
        yield from _hung(f"{mark} {indent}", [(mark, _text(spans))], style, mark)


def _hung(prefix: str, pieces: Sequence[Piece], style: Style, mark: str) -> Iterator[str]:
    """Yield a line below its prefix, which is repeated in each line that it needs on the screen."""
    columns = None if style.columns is None else max(1, style.columns - len(prefix))
    for line in broken(pieces, columns):
        yield (painted([(mark or " ", prefix)], style) + painted(line, style)).rstrip()


def _side_by_side(row: Row, style: Style, columns: int) -> Iterator[str]:
    if row.kind is RowKind.SKIPPED:
        yield painted([(".", _text(row.left or ()))], style)
        return
    indent = _INDENT if row.kind is RowKind.LINE else ""
    cell = (columns - 3) // 2 - len(indent)
    sides = (_cell(row, row.left, "-", style), _cell(row, row.right, "+", style))
    left, right = (broken(pieces, cell) for pieces in sides)
    gutter = "|" if row.is_edited else " " if not row.is_changed else "<" if row.right is None else ">"
    for number in range(max(len(left), len(right))):
        own = left[number] if number < len(left) else []
        other = right[number] if number < len(right) else []
        filled = " " * max(0, cell - columns_of(own))
        yield f"{indent}{painted(own, style)}{filled} {gutter} {indent}{painted(other, style)}".rstrip()


def _cell(row: Row, spans: Sequence[Span] | None, mark: str, style: Style) -> list[Piece]:
    """Return the pieces of one side's line."""
    if spans is None:
        return []
    if row.is_edited:
        return signed(((mark if span.is_changed else " ", visible_text(span.text)) for span in spans), style)
    plain = "#" if row.kind is RowKind.HEADING else " "
    return [(mark if row.is_changed else plain, _text(spans))]


def _text(spans: Sequence[Span]) -> str:
    return visible("".join(span.text for span in spans))


def visible_text(text: str) -> str:
    """Return a part of a line without control characters that take effect."""
    return clean(text.replace("\t", "    ").removesuffix("\r"))
