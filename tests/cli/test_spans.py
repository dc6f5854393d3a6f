"""Pieces of text with marks: signs and colours, and lines of a width in columns."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from tests.cli.modules import module

SPANS, TEXT = module("output.spans"), module("output.text")
PLAIN, COLORED = TEXT.Style(colored=False), TEXT.Style(colored=True)
PIECES = [(" ", "keep "), ("-", "old"), ("+", "new"), (" ", " end")]


def texts(lines: list[list[tuple[str, str]]]) -> list[str]:
    return ["".join(text for _, text in line) for line in lines]


def test_without_colours_changed_words_have_the_signs_of_git() -> None:
    assert SPANS.painted(SPANS.signed(PIECES, PLAIN), PLAIN) == "keep [-old-]{+new+} end"


def test_with_colours_they_have_none() -> None:
    assert SPANS.painted(SPANS.signed(PIECES, COLORED), COLORED) == "keep \x1b[31mold\x1b[0m\x1b[32mnew\x1b[0m end"


def test_lines_break_at_spaces_and_inside_of_long_words() -> None:
    assert texts(SPANS.broken([(" ", "one two three")], 7)) == ["one two", "three"]
    assert texts(SPANS.broken([(" ", "one "), ("-", "twofold"), (" ", " x")], 5)) == ["one", "twofo", "ld x"]
    assert texts(SPANS.broken([(" ", "    indented")], 20)) == ["    indented"]
    assert texts(SPANS.broken([(" ", "as it is")], None)) == ["as it is"]
    assert texts(SPANS.broken([], 10)) == [""]


def test_wide_characters_take_two_columns_and_break_anywhere() -> None:
    assert texts(SPANS.broken([(" ", "我今天去北京")], 5)) == ["我今", "天去", "北京"]
    assert SPANS.columns_of([(" ", "我a")]) == 3


def test_a_word_of_millions_of_characters_costs_little() -> None:
    started = time.process_time()
    lines = SPANS.broken([(" ", "x" * 4_000_000)], 80)
    assert (len(lines), sum(SPANS.columns_of(line) for line in lines)) == (50_000, 4_000_000)
    assert time.process_time() - started < 2


@given(
    st.lists(st.tuples(st.sampled_from(" -+"), st.text("ab 我。é-\u0301", max_size=12)), max_size=6), st.integers(2, 20)
)
def test_no_line_is_wider_and_no_character_is_lost(pieces: list[tuple[str, str]], columns: int) -> None:
    lines = SPANS.broken(pieces, columns)
    assert all(SPANS.columns_of(line) <= columns for line in lines)
    whole = "".join(text for _, text in pieces)
    assert "".join(texts(lines)).replace(" ", "") == whole.replace(" ", "")
    marks = ["".join(text for mark, text in pieces if mark == sign).replace(" ", "") for sign in " -+"]
    assert marks == [
        "".join(text for line in lines for mark, text in line if mark == sign).replace(" ", "") for sign in " -+"
    ]
