"""Two versions of a conversation side by side: pairs of turns, and words that differ."""

from __future__ import annotations

import time
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from reconcile.inspect.alignment import Pair, Span, _longest_common, aligned, bag_of, matched, similarity, word_changes
from reconcile.model.transcript import Speaker, Turn


def turn(text: str, position: int = 1, at: str = "", speaker: Speaker = Speaker.USER, kind: str = "message") -> Turn:
    return Turn(position, speaker, kind, at, text, f"{at}{kind}{text}")


def turns(*texts: str) -> list[Turn]:
    return [turn(text, position) for position, text in enumerate(texts, 1)]


def shown(pairs: list[Pair]) -> list[tuple[str | None, str | None, bool]]:
    return [(_text(pair.left), _text(pair.right), pair.is_same) for pair in pairs]


def _text(turn: Turn | None) -> str | None:
    return None if turn is None else turn.text


def changed(spans: list[Span]) -> list[str]:
    return [span.text for span in spans if span.is_changed]


def test_equal_turns_are_pairs() -> None:
    assert shown(aligned(turns("a", "b"), turns("a", "b"))) == [("a", "a", True), ("b", "b", True)]


def test_turns_of_one_side_stand_alone() -> None:
    assert shown(aligned(turns("a", "c"), turns("a", "b", "c"))) == [
        ("a", "a", True),
        (None, "b", False),
        ("c", "c", True),
    ]
    assert shown(aligned(turns("a"), [])) == [("a", None, False)]
    assert shown(aligned([], turns("a"))) == [(None, "a", False)]
    assert aligned([], []) == []


def test_both_sides_continue_after_a_common_beginning() -> None:
    left = [*turns("a"), turn("store", at="1")]
    right = [*turns("a"), turn("workspace", at="2")]
    assert shown(aligned(left, right)) == [("a", "a", True), ("store", None, False), (None, "workspace", False)]


def test_an_edited_turn_keeps_its_time_and_type() -> None:
    left = [turn("old", at="1"), turn("x", at="2"), turn("old", at="3")]
    right = [turn("quite new", at="1"), turn("x", at="2"), turn("other", at="3", kind="reply")]
    assert shown(aligned(left, right)) == [
        ("old", "quite new", False),
        ("x", "x", True),
        ("old", None, False),
        (None, "other", False),
    ]


def test_a_turn_without_a_time_is_edited_if_most_words_are_the_same() -> None:
    left = turns("the quick brown fox", "one two three")
    right = turns("inserted here", "the quick red fox", "something else entirely")
    assert shown(aligned(left, right)) == [
        (None, "inserted here", False),
        ("the quick brown fox", "the quick red fox", False),
        ("one two three", None, False),
        (None, "something else entirely", False),
    ]


def test_a_turn_of_another_time_with_the_same_text_is_another_turn() -> None:
    assert shown(aligned([turn("go on", at="1")], [turn("go on", at="2")])) == [
        ("go on", None, False),
        (None, "go on", False),
    ]


@given(st.lists(st.sampled_from("abcde")), st.lists(st.sampled_from("abcde")))
def test_every_turn_is_in_the_pairs_once_and_in_order(left: list[str], right: list[str]) -> None:
    ours, theirs = turns(*left), turns(*right)
    pairs = aligned(ours, theirs)
    assert [pair.left for pair in pairs if pair.left] == ours
    assert [pair.right for pair in pairs if pair.right] == theirs
    for pair in pairs:
        keys = [turn.key for turn in (pair.left, pair.right) if turn]
        assert pair.is_same == (len(keys) == 2 and keys[0] == keys[1])


@given(st.lists(st.sampled_from("ab cd\n。中")), st.lists(st.sampled_from("ab cd\n。中")))
def test_the_spans_are_the_texts_and_unchanged_words_are_the_same(left: list[str], right: list[str]) -> None:
    ours, theirs = word_changes("".join(left), "".join(right))
    assert "".join(span.text for span in ours) == "".join(left)
    assert "".join(span.text for span in theirs) == "".join(right)
    assert all(a.is_changed is not b.is_changed for spans in (ours, theirs) for a, b in pairwise(spans))
    kept = ["".join(span.text for span in spans if not span.is_changed) for spans in (ours, theirs)]
    assert kept[0] == kept[1]


@given(st.lists(st.integers(0, 6)), st.lists(st.integers(0, 6)))
def test_blocks_cover_both_sequences(left: list[int], right: list[int]) -> None:
    i = j = 0
    for block in matched(left, right):
        assert (block.left.start, block.right.start) == (i, j)
        i, j = block.left.stop, block.right.stop
        if block.is_equal:
            assert left[block.left.start : i] == right[block.right.start : j]
        else:
            assert len(block.left) + len(block.right)
    assert (i, j) == (len(left), len(right))


def test_changed_words_are_marked_with_the_space_between_them() -> None:
    ours, theirs = word_changes("The quick brown fox jumps.", "The slow red fox jumps!")
    assert (changed(ours), changed(theirs)) == (["quick brown", "."], ["slow red", "!"])


def test_each_ideograph_is_a_word() -> None:
    ours, theirs = word_changes("我今天去北京", "我明天去上海")
    assert (changed(ours), changed(theirs)) == (["今", "北京"], ["明", "上海"])


def test_similarity_is_the_share_of_common_words() -> None:
    for left, right, share in (("a b c d", "a b x y", 0.5), ("a a b", "a b b", 2 / 3), ("", "", 1.0), ("a", "", 0.0)):
        assert similarity(bag_of(left), bag_of(right)) == share


def test_ten_thousand_turns_cost_little() -> None:
    left = [turn(f"text {number}", number, at=str(number)) for number in range(10_000)]
    edited = [turn(f"{each.text} edited", at=each.time) if number % 2 else each for number, each in enumerate(left)]
    started = time.process_time()
    assert len(aligned(left, left)) == 10_000
    same = time.process_time() - started
    assert sum(pair.is_same for pair in aligned(left, edited)) == 5_000
    assert len(aligned(left, left[::-1])) >= 10_000
    repeated = turns(*["again"] * 9_999)
    assert len(aligned(repeated, [*repeated[:4_000], turn("x"), *repeated[4_000:]])) == 10_000
    assert time.process_time() - started < 5
    assert same < 0.5


def test_sequences_of_few_different_items_cost_little() -> None:
    """The matches of `difflib` take cubic time if each of them is one item."""
    started = time.process_time()
    blocks = matched([0] * 1_000 + [9], [8] + [0, 1] * 500)
    assert sum(len(block.left) for block in blocks if block.is_equal) == 500
    assert time.process_time() - started < 2


@given(st.text("abc", max_size=12), st.text("abcd", max_size=12))
def test_the_longest_common_sequence_is_the_longest(left: str, right: str) -> None:
    found = _longest_common(left, right)
    assert all(left[i] == right[j] for i, j in found)
    assert all(before[0] < after[0] and before[1] < after[1] for before, after in pairwise(found))
    lengths = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i, one in enumerate(left, 1):
        for j, other in enumerate(right, 1):
            longer = lengths[i - 1][j - 1] + 1 if one == other else 0
            lengths[i][j] = max(longer, lengths[i - 1][j], lengths[i][j - 1])
    assert len(found) == lengths[-1][-1]


def test_many_versions_of_turns_without_a_time_cost_little() -> None:
    left = turns(*(" ".join(f"left {number} {word}" for word in range(40)) for number in range(1_000)))
    right = turns(*(" ".join(f"right {number} {word}" for word in range(200, 240)) for number in range(1_000)))
    started = time.process_time()
    assert len(aligned(left, right)) == 2_000
    assert time.process_time() - started < 2
