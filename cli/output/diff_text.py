"""The differences between two versions as lines: below each other, or side by side, with the changed words marked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reconcile.inspect.differences import value_text
from reconcile.inspect.text_diff import RowKind, merged_spans, rows_of_pairs

from .reading_text import visible
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
        yield f"  {style('note', 'yellow')} {clean(note)}"
    for key, ours, theirs in differences.metadata:
        yield f"  metadata {clean(key)}"
        yield from _values(ours, theirs, labels, room, style)
    for key, ours, theirs in differences.configuration:
        yield f"  base_config.json {clean(key)}"
        yield from _values(ours, theirs, labels, room, style)
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
        yield f"  {clean(other.name)}: {other.state}"
        yield from row_lines(other.rows, style, two)


def _first(count: int) -> str:
    return "the first is the same" if count == 1 else f"the first {count} are the same"


def _values(ours: Any, theirs: Any, labels: tuple[str, str], room: int, style: Style) -> Iterator[str]:
    for mark, label, value, color in (("-", labels[0], ours, "red"), ("+", labels[1], theirs, "green")):
        text = shorten(clean(value_text(value)), MAX_COLUMNS)
        yield style(f"    {mark} {pad(label, room)}  {text}", color)


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
        ours = left[number] if number < len(left) else []
        theirs = right[number] if number < len(right) else []
        filled = " " * max(0, cell - columns_of(ours))
        yield f"{indent}{painted(ours, style)}{filled} {gutter} {indent}{painted(theirs, style)}".rstrip()


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
