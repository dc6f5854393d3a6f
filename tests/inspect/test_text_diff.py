"""The rows of a diff: which turns and lines are shown, and which words are marked."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from reconcile.inspect.alignment import Span, word_changes
from reconcile.inspect.text_diff import Row, line_rows, merged_spans, rows_of
from reconcile.model.transcript import Speaker, Turn


def turn(text: str, position: int = 1, at: str = "1", details: str = "", key: str = "") -> Turn:
    return Turn(position, Speaker.USER, "message", at, text, key or f"{at}{text}{details}", details)


def shown(rows: list[Row]) -> list[str]:
    """Return rows as `git diff --word-diff` would print them."""
    lines = []
    for row in rows:
        if row.left is None or row.right is None:
            spans = row.left or row.right or ()
            lines.append(("- " if row.right is None else "+ ") + "".join(span.text for span in spans))
            continue
        signs = {" ": "{}", "-": "[-{}-]", "+": "{{+{}+}}"}
        text = "".join(signs[mark].format(text) for mark, text in merged_spans(row.left, row.right))
        lines.append(("~ " if row.is_edited else "  ") + text)
    return lines


def lines_of(left: str, right: str, context: int | None = 1) -> list[str]:
    return shown(list(line_rows(left.split("|"), right.split("|"), context)))


def test_changed_words_are_marked_in_lines_that_are_alike() -> None:
    assert lines_of("a|the old fox runs|b", "a|the new fox runs|b") == ["  a", "~ the [-old-]{+new+} fox runs", "  b"]


def test_other_lines_are_removed_and_added() -> None:
    assert lines_of("a|quite another thing|b", "a|one more|b") == ["  a", "- quite another thing", "+ one more", "  b"]
    assert lines_of("a|b", "a|x|b") == ["  a", "+ x", "  b"]
    assert lines_of("a", "a") == ["  ..."]


def test_lines_far_from_a_change_are_left_out() -> None:
    assert lines_of("1|2|3|x|4|5|6", "1|2|3|y|4|5|6") == ["  ...", "  3", "- x", "+ y", "  4", "  ..."]
    assert lines_of("1|2|x", "1|2|y", None) == ["  1", "  2", "- x", "+ y"]


def test_turns_that_differ_are_shown_with_their_neighbours() -> None:
    left = [turn(f"text {number}", number, str(number)) for number in range(1, 8)]
    right = [*left[:3], turn("text 4 edited", 4, "4"), *left[4:]]
    assert shown(list(rows_of(left, right))) == [
        "  ... 2 events are the same",
        "  3. User (message, 3)",
        "  text 3",
        "  4. User (message, 4)",
        "~ text 4{+ edited+}",
        "  5. User (message, 5)",
        "  text 5",
        "  ... 2 events are the same",
    ]
    assert list(rows_of(left, left)) == []
    assert len(list(rows_of(left, left, is_full=True))) == 14


def test_a_turn_of_one_side_is_whole() -> None:
    assert shown(list(rows_of([turn("a", 1, "1")], [turn("a", 1, "1"), turn("b|c".replace("|", "\n"), 2, "2")]))) == [
        "  1. User (message, 1)",
        "  a",
        "+ 2. User (message, 2)",
        "+ b",
        "+ c",
    ]


def test_details_are_shown_where_the_text_is_the_same() -> None:
    left, right = turn("a", details="id: 1\nmodel: x"), turn("a", details="id: 1\nmodel: y")
    assert shown(list(rows_of([left], [right]))) == ["  1. User (message, 1)", "  id: 1", "~ model: [-x-]{+y+}"]


def test_a_neighbour_with_a_long_text_is_cut_towards_the_change() -> None:
    long = turn("\n".join("abcdef"), 1, "1")
    assert shown(list(rows_of([long, turn("x", 2, "2"), long], [long, turn("y", 2, "2"), long]))) == [
        "  1. User (message, 1)",
        "  ...",
        "  d",
        "  e",
        "  f",
        "  2. User (message, 2)",
        "- x",
        "+ y",
        "  1. User (message, 1)",
        "  a",
        "  b",
        "  c",
        "  ...",
    ]


@given(st.text("ab cd\n"), st.text("ab cd\n"))
def test_merged_spans_hold_both_texts(left: str, right: str) -> None:
    merged = list(merged_spans(*word_changes(left, right)))
    assert "".join(text for mark, text in merged if mark != "+") == left
    assert "".join(text for mark, text in merged if mark != "-") == right


@given(st.lists(st.sampled_from(["a", "b c", "b d", ""])), st.lists(st.sampled_from(["a", "b c", "b d", ""])))
def test_full_rows_hold_both_texts(left: list[str], right: list[str]) -> None:
    rows = list(line_rows(left, right))
    assert ["".join(map(_text, row.left)) for row in rows if row.left is not None] == left
    assert ["".join(map(_text, row.right)) for row in rows if row.right is not None] == right


def _text(span: Span) -> str:
    return span.text


def test_ten_thousand_changed_lines_cost_little() -> None:
    left, right = (
        [" ".join(f"{side}_{number}_{word}" for word in range(40)) for number in range(10_000)]
        for side in ("left", "new")
    )
    started = time.process_time()
    assert len(list(line_rows(left, right, 3))) == 20_000
    assert time.process_time() - started < 3
