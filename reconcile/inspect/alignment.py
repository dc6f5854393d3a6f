"""Two versions of a conversation side by side: which turns belong together, and which words of them differ.

Turns are compared by their keys, so that equal turns cost nothing. All functions are pure.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from reconcile.model.transcript import Turn

_MOST_COMPARED = 1 << 20
"""Pairs of items of two ranges that are compared in full: the time grows with their number."""
_MOST_STEPS = 1 << 24
"""Steps of `difflib` for two sequences. Its time is cubic where items are repeated."""
_SIMILAR = 0.5
"""The share of equal words from which two turns count as versions of one."""
_SIDEWAYS = 40
"""The greatest distance of two turns that are compared by their words."""
_ALONE = r"\u2e80-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
"""Ideographs and kana, which have no spaces between words: each is a word of its own."""
_WORD = re.compile(rf"[{_ALONE}]|[^\W{_ALONE}]+|[^\S\n]+|.", re.DOTALL)


class Pair(Struct, frozen=True):
    """Two versions of one turn; None: the side lacks it. ``is_same``: both are the same event."""

    left: Turn | None
    right: Turn | None
    is_same: bool


class Span(Struct, frozen=True):
    """A part of a text; ``is_changed``: the other text lacks it."""

    text: str
    is_changed: bool


class Bag(NamedTuple):
    """The words of a text, whatever their order, and their number."""

    counts: Counter[str]
    total: int


class Block(NamedTuple):
    """A range of the left items and one of the right ones. ``is_equal``: they are as long, and equal one by one."""

    left: range
    right: range
    is_equal: bool


def aligned(left: Sequence[Turn], right: Sequence[Turn]) -> list[Pair]:
    """Return the turns of both sides in order: pairs of equal turns, of edited turns, and turns of one side.

    An edited turn keeps its time and type, or most of its words. In other places, the turns of the left side are first.
    """
    pairs: list[Pair] = []
    for block in matched([turn.key for turn in left], [turn.key for turn in right]):
        if block.is_equal:
            pairs += [Pair(left[i], right[j], is_same=True) for i, j in zip(block.left, block.right, strict=True)]
        else:
            pairs += _edited(left[block.left.start : block.left.stop], right[block.right.start : block.right.stop])
    return pairs


def _edited(left: Sequence[Turn], right: Sequence[Turn]) -> Iterator[Pair]:
    """Yield the turns of two sides that have no equal ones: first those of the same time and type are paired."""
    for block in matched(list(map(_identity, left)), list(map(_identity, right))):
        if block.is_equal:
            for i, j in zip(block.left, block.right, strict=True):
                yield Pair(left[i], right[j], is_same=False)
        else:
            ours, theirs = left[block.left.start : block.left.stop], right[block.right.start : block.right.stop]
            yield from _similar(ours, theirs)


def _identity(turn: Turn) -> Hashable:
    # Without a time, only the text can identify a turn.
    return (turn.time, turn.kind, turn.speaker) if turn.time else (turn.text, turn.kind, turn.speaker)


def _similar(left: Sequence[Turn], right: Sequence[Turn]) -> Iterator[Pair]:
    """Yield turns; two of one speaker without a time that share most words are a pair."""
    bag = cache(bag_of)
    following = 0
    for turn in left:
        for j in range(following, min(following + _SIDEWAYS, len(right))):
            if _is_version(turn, right[j], bag):
                yield from (Pair(None, other, is_same=False) for other in right[following:j])
                yield Pair(turn, right[j], is_same=False)
                following = j + 1
                break
        else:
            yield Pair(turn, None, is_same=False)
    yield from (Pair(None, other, is_same=False) for other in right[following:])


def _is_version(left: Turn, right: Turn, bag: Callable[[str], Bag]) -> bool:
    if (left.kind, left.speaker) != (right.kind, right.speaker) or (left.time and right.time):
        return False
    return similarity(bag(left.text), bag(right.text)) >= _SIMILAR


def bag_of(text: str) -> Bag:
    """Return the words of a text."""
    words = _words(text)
    return Bag(Counter(words), len(words))


def similarity(left: Bag, right: Bag) -> float:
    """Return the share of words that two texts have in common: 0 to 1."""
    total = left.total + right.total
    common = left.counts.keys() & right.counts.keys()
    return 2 * sum(min(left.counts[word], right.counts[word]) for word in common) / total if total else 1.0


def _words(text: str) -> list[str]:
    return [word for word in _WORD.findall(text) if not word.isspace()]


def word_changes(left: str, right: str) -> tuple[list[Span], list[Span]]:
    """Return both texts in spans, of which those that the other text lacks are changed.

    White space between two changed words is changed too.
    """
    ours, theirs = _WORD.findall(left), _WORD.findall(right)
    blocks = _without_islands(ours, matched(ours, theirs))
    return (
        _spans((ours[block.left.start : block.left.stop], block.is_equal) for block in blocks),
        _spans((theirs[block.right.start : block.right.stop], block.is_equal) for block in blocks),
    )


def _without_islands(words: Sequence[str], blocks: list[Block]) -> list[Block]:
    """Return the blocks, with equal ones of white space alone taken as changed if they are between changes."""
    return [
        block._replace(is_equal=False)
        if block.is_equal
        and 0 < number < len(blocks) - 1
        and all(word.isspace() and "\n" not in word for word in words[block.left.start : block.left.stop])
        else block
        for number, block in enumerate(blocks)
    ]


def _spans(parts: Iterator[tuple[Sequence[str], bool]]) -> list[Span]:
    spans: list[Span] = []
    for words, is_equal in parts:
        text = "".join(words)
        if not text:
            continue
        if spans and spans[-1].is_changed is not is_equal:  # the same state as that of the last span
            spans[-1] = Span(spans[-1].text + text, not is_equal)
        else:
            spans.append(Span(text, not is_equal))
    return spans


def matched(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[Block]:
    """Return blocks that cover both sequences in order: equal ranges, and ranges without a match.

    The common beginning and end are found first, then items that both have once, as in a patience diff. What remains
    between those is compared in full if it is short enough.
    """
    matches: list[tuple[int, int, int]] = []
    steps = _MOST_STEPS
    start = _common(left, right, 0, 0)
    end = _common_end(left, right, start)
    middle = range(start, len(left) - end), range(start, len(right) - end)
    matches.append((0, 0, start))
    i = j = start
    for i_next, j_next in (*_anchors(left, right, *middle), (middle[0].stop, middle[1].stop)):
        if i_next >= i and j_next >= j:
            found, taken = _compared(left, right, range(i, i_next), range(j, j_next), steps)
            matches += found
            steps -= taken
            i, j = i_next, j_next
    matches.append((len(left) - end, len(right) - end, end))
    return _blocks(matches, len(left), len(right))


def _blocks(matches: Iterable[tuple[int, int, int]], left: int, right: int) -> list[Block]:
    """Return the blocks of matches, each a position on either side and a length; neighbours become one."""
    blocks: list[Block] = []
    i = j = 0
    for i_match, j_match, size in (*matches, (left, right, 0)):
        if i_match > i or j_match > j:
            blocks.append(Block(range(i, i_match), range(j, j_match), is_equal=False))
        if size:
            equal = Block(range(i_match, i_match + size), range(j_match, j_match + size), is_equal=True)
            if blocks and blocks[-1].is_equal:
                before = blocks.pop()
                equal = Block(
                    range(before.left.start, equal.left.stop),
                    range(before.right.start, equal.right.stop),
                    is_equal=True,
                )
            blocks.append(equal)
        i, j = i_match + size, j_match + size
    return blocks


def _common(left: Sequence[Hashable], right: Sequence[Hashable], i: int, j: int) -> int:
    """Return the number of equal items from two positions on."""
    most, count = min(len(left) - i, len(right) - j), 0
    while count < most and left[i + count] == right[j + count]:
        count += 1
    return count


def _common_end(left: Sequence[Hashable], right: Sequence[Hashable], start: int) -> int:
    """Return the number of equal items at the end, after a common beginning."""
    most, count = min(len(left), len(right)) - start, 0
    while count < most and left[-1 - count] == right[-1 - count]:
        count += 1
    return count


def _anchors(
    left: Sequence[Hashable], right: Sequence[Hashable], i_range: range, j_range: range
) -> Sequence[tuple[int, int]]:
    """Return the positions of items that both ranges have once: the longest sequence that is in order on both sides."""
    ours, theirs = Counter(left[i] for i in i_range), Counter(right[j] for j in j_range)
    places = {right[j]: j for j in j_range if theirs[right[j]] == 1}
    pairs = [(i, places[left[i]]) for i in i_range if ours[left[i]] == 1 and left[i] in places]
    tails: list[int] = []  # the least last position on the right of a sequence of each length
    ends: list[int] = []  # the index of its pair
    before: list[int] = []
    for number, (_, j) in enumerate(pairs):
        length = bisect_left(tails, j)
        before.append(ends[length - 1] if length else -1)
        tails[length : length + 1] = [j]
        ends[length : length + 1] = [number]
    found = []
    number = ends[-1] if ends else -1
    while number >= 0:
        found.append(pairs[number])
        number = before[number]
    return found[::-1]


def _compared(
    left: Sequence[Hashable], right: Sequence[Hashable], i_range: range, j_range: range, most: int
) -> tuple[list[tuple[int, int, int]], int]:
    """Return the matches of two ranges, of which the first items may be equal, and the steps that this took.

    There are no others if the ranges are too long. If `difflib` could need more than so many steps, their longest
    common sequence is taken.
    """
    i, j, same = i_range.start, j_range.start, 0
    while same < min(len(i_range), len(j_range)) and left[i + same] == right[j + same]:
        same += 1
    found = [(i, j, same)] if same else []
    ours, theirs = left[i + same : i_range.stop], right[j + same : j_range.stop]
    if not ours or not theirs or len(ours) * len(theirs) > _MOST_COMPARED:
        return found, 0
    counts = Counter(theirs)
    pairs = sum(counts[item] for item in ours)
    steps = (len(ours) + pairs) * min(len(ours), len(theirs), pairs)
    if steps > most:
        return [*found, *((i + same + a, j + same + b, 1) for a, b in _longest_common(ours, theirs))], 0
    from difflib import SequenceMatcher  # here: most conversations are equal, or one continues the other

    matching = SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks()
    return [*found, *((i + same + each.a, j + same + each.b, each.size) for each in matching if each.size)], steps


def _longest_common(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Return the positions of the longest common sequence.

    It is computed with a bit for each item of the shorter sequence (Hyyrö, "Bit-Parallel LCS-length Computation
    Revisited", 2004).
    """
    if len(right) > len(left):
        return [(i, j) for j, i in _longest_common(right, left)]
    bits: dict[Hashable, int] = {}
    for j, item in enumerate(right):
        bits[item] = bits.get(item, 0) | 1 << j
    every = row = (1 << len(right)) - 1
    rows = []  # of each beginning of the left sequence; a zero is an item with which the common sequence is longer
    for item in left:
        equal = row & bits.get(item, 0)
        row = (row + equal | row - equal) & every
        rows.append(row)
    found = []
    i, j = len(left), len(right)
    while i and j:
        if rows[i - 1] >> j - 1 & 1:
            j -= 1
        elif i > 1 and not rows[i - 2] >> j - 1 & 1:
            i -= 1
        else:
            i, j = i - 1, j - 1
            found.append((i, j))
    return found[::-1]
