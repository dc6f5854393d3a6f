"""The differences of two transcripts as rows of text: changed turns with their lines, and the words that differ.

A row has a left and a right line. One screen prints them below each other, and another one side by side.
"""

from __future__ import annotations

from enum import Enum, auto
from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.inspect.alignment import Span, aligned, bag_of, matched, similarity, word_changes
from reconcile.inspect.markdown import heading_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from reconcile.inspect.alignment import Bag, Pair
    from reconcile.model.transcript import Turn

CONTEXT = 3
"""Unchanged lines that are shown around a changed one."""
_ALIKE = 0.4
"""The share of common words from which two lines are versions of one line."""
_LONGEST = 20_000
"""Characters of a line whose words are compared."""


class RowKind(Enum):
    """The kinds of rows."""

    HEADING = auto()
    """The heading of a turn."""
    LINE = auto()
    SKIPPED = auto()
    """A text in place of what is left out."""


class Row(Struct, frozen=True):
    """A line of each side, in spans; None: the side lacks it. Lines without a changed span are the same on both."""

    kind: RowKind
    left: tuple[Span, ...] | None
    right: tuple[Span, ...] | None

    @property
    def is_changed(self) -> bool:
        """Whether the two lines differ."""
        return self.left is None or self.right is None or any(span.is_changed for span in (*self.left, *self.right))

    @property
    def is_edited(self) -> bool:
        """Whether both sides have a version of the line, and they differ in some of their words."""
        return self.left is not None and self.right is not None and self.is_changed


def rows_of(left: Sequence[Turn], right: Sequence[Turn], *, is_full: bool = False) -> Iterator[Row]:
    """Yield the rows of all turns that differ, each run of them with one unchanged turn before and after it.

    ``is_full``: all turns are shown, with all their lines.
    """
    yield from rows_of_pairs(aligned(left, right), is_full=is_full)


def rows_of_pairs(pairs: Sequence[Pair], *, is_full: bool = False) -> Iterator[Row]:
    """Yield the rows of aligned turns, as `rows_of`."""
    if is_full:
        for pair in pairs:
            yield from _pair_rows(pair, None)
        return
    changed = [number for number, pair in enumerate(pairs) if not pair.is_same]
    near = {number + offset for number in changed for offset in (-1, 0, 1)}
    skipped = 0
    for number, pair in enumerate(pairs):
        if number not in near:
            skipped += 1
            continue
        if skipped:
            yield _skipped_turns(skipped)
            skipped = 0
        is_before = number + 1 < len(pairs) and not pairs[number + 1].is_same
        yield from _context_rows(pair, is_before=is_before) if pair.is_same else _pair_rows(pair, CONTEXT)
    if skipped and changed:
        yield _skipped_turns(skipped)


def _skipped_turns(count: int) -> Row:
    return _skipped("... 1 event is the same" if count == 1 else f"... {count} events are the same")


def _skipped(text: str) -> Row:
    spans = (Span(text, is_changed=False),)
    return Row(RowKind.SKIPPED, spans, spans)


def _same(kind: RowKind, text: str, other: str | None = None) -> Row:
    return Row(kind, (Span(text, is_changed=False),), (Span(text if other is None else other, is_changed=False),))


def _one_sided(kind: RowKind, text: str, *, is_left: bool) -> Row:
    spans = (Span(text, is_changed=True),)
    return Row(kind, spans, None) if is_left else Row(kind, None, spans)


def _context_rows(pair: Pair, *, is_before: bool) -> Iterator[Row]:
    """Yield an unchanged turn beside a changed one: its last lines before that, or its first lines after it."""
    assert pair.left is not None  # noqa: S101 - both sides have an unchanged turn
    assert pair.right is not None  # noqa: S101 - as above
    yield _same(RowKind.HEADING, heading_of(pair.left), heading_of(pair.right))
    lines = _lines_of(pair.left)
    shown = lines[-CONTEXT:] if is_before else lines[:CONTEXT]
    if is_before and len(shown) < len(lines):
        yield _skipped("...")
    yield from (_same(RowKind.LINE, line) for line in shown)
    if not is_before and len(shown) < len(lines):
        yield _skipped("...")


def _lines_of(turn: Turn) -> list[str]:
    return turn.text.split("\n") if turn.text else []


def _pair_rows(pair: Pair, context: int | None) -> Iterator[Row]:
    """Yield the heading and the lines of a turn; ``context``: unchanged lines around a change, None: all."""
    left, right = pair.left, pair.right
    if left is None or right is None:
        turn, is_left = (left, True) if left is not None else (right, False)
        assert turn is not None  # noqa: S101 - a pair has one turn at least
        yield _one_sided(RowKind.HEADING, heading_of(turn), is_left=is_left)
        yield from (_one_sided(RowKind.LINE, line, is_left=is_left) for line in _lines_of(turn))
        return
    yield from _headings(left, right)
    if pair.is_same:
        yield from (_same(RowKind.LINE, line) for line in _lines_of(left))
        return
    ours, theirs = _lines_of(left), _lines_of(right)
    if left.text == right.text and left.details != right.details:
        # Nothing that is read differs, so the rest of the event is shown.
        ours, theirs = left.details.split("\n"), right.details.split("\n")
    yield from line_rows(ours, theirs, context)


def _headings(left: Turn, right: Turn) -> Iterator[Row]:
    if (left.speaker, left.kind, left.time) == (right.speaker, right.kind, right.time):
        yield _same(RowKind.HEADING, heading_of(left), heading_of(right))
    else:
        yield _one_sided(RowKind.HEADING, heading_of(left), is_left=True)
        yield _one_sided(RowKind.HEADING, heading_of(right), is_left=False)


def line_rows(left: Sequence[str], right: Sequence[str], context: int | None = None) -> Iterator[Row]:
    """Yield the rows of two texts; ``context``: unchanged lines around a change, None: all."""
    blocks = matched(left, right)
    for number, block in enumerate(blocks):
        ours, theirs = left[block.left.start : block.left.stop], right[block.right.start : block.right.stop]
        if not block.is_equal:
            yield from _changed_rows(ours, theirs)
            continue
        shown = len(ours) if context is None else context
        before = 0 if number == 0 and context is not None else shown
        after = 0 if number == len(blocks) - 1 and context is not None else shown
        if before + after >= len(ours):
            yield from (_same(RowKind.LINE, line) for line in ours)
            continue
        yield from (_same(RowKind.LINE, line) for line in ours[:before])
        yield _skipped("...")
        yield from (_same(RowKind.LINE, line) for line in ours[len(ours) - after :])


def _changed_rows(left: Sequence[str], right: Sequence[str]) -> Iterator[Row]:
    """Yield lines without an equal one; two in the same order that are alike are versions of one line."""
    bag = cache(bag_of)
    following = 0
    for line in left:
        near = range(following, min(following + 5, len(right)))
        found = next((j for j in near if _is_version(line, right[j], bag)), None)
        if found is None:
            yield _one_sided(RowKind.LINE, line, is_left=True)
            continue
        yield from (_one_sided(RowKind.LINE, other, is_left=False) for other in right[following:found])
        ours, theirs = word_changes(line, right[found])
        yield Row(RowKind.LINE, tuple(ours), tuple(theirs))
        following = found + 1
    yield from (_one_sided(RowKind.LINE, other, is_left=False) for other in right[following:])


def _is_version(left: str, right: str, bag: Callable[[str], Bag]) -> bool:
    if not left.strip() or not right.strip() or max(len(left), len(right)) > _LONGEST:
        return False
    return similarity(bag(left), bag(right)) >= _ALIKE


def merged_spans(left: Sequence[Span], right: Sequence[Span]) -> Iterator[tuple[str, str]]:
    """Yield the parts of one line with both versions of each change: (``" "``, ``"-"`` or ``"+"``, text)."""
    ours, theirs = list(left), list(right)
    while ours or theirs:
        while ours and ours[0].is_changed:
            yield "-", ours.pop(0).text
        while theirs and theirs[0].is_changed:
            yield "+", theirs.pop(0).text
        if ours and theirs:
            size = min(len(ours[0].text), len(theirs[0].text))
            yield " ", ours[0].text[:size]
            for spans in (ours, theirs):
                rest = spans.pop(0).text[size:]
                if rest:
                    spans.insert(0, Span(rest, is_changed=False))
