"""Lines of styled text: wrapped, beside each other, and exactly as wide as they may be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.cli.modules import module

LINES = module("review.lines")


def texts(pieces: list[tuple[str, str]], columns: int, indent: str = "", first: str | None = None) -> list[str]:
    return [LINES.plain(line) for line in LINES.wrapped(pieces, columns, indent, first)]


def test_lines_break_at_spaces() -> None:
    assert texts([("one two three", "")], 7) == ["one two", "three"]
    assert texts([("one two three", "")], 9, "  ", "> ") == ["> one two", "  three"]


def test_a_word_that_is_too_wide_is_broken() -> None:
    assert texts([("abcdefgh", "")], 3) == ["abc", "def", "gh"]


def test_a_line_break_of_the_text_stays() -> None:
    assert texts([("one\n\ntwo", "")], 20) == ["one", "", "two"]


def test_styles_stay_with_their_words() -> None:
    (line,) = LINES.wrapped([("old", "store-changed"), (" and ", ""), ("new", "workspace-changed")], 20)
    assert [style for text, style in line if text.strip()] == ["store-changed", "", "workspace-changed"]


def test_control_characters_are_shown_and_not_sent() -> None:
    (text,) = texts([("a\x1b[31mb", "")], 40)
    assert "\x1b" not in text


def test_wide_characters_take_two_columns() -> None:
    assert texts([("漢字漢字", "")], 4) == ["漢字", "漢字"]
    assert LINES.columns_of((("漢字", ""), ("a", ""))) == 5


def test_two_texts_are_set_beside_each_other() -> None:
    left = [(("one", ""),), (("two", ""),)]
    lines = [LINES.plain(line) for line in LINES.beside(left, [(("a", ""),)], 11)]
    assert lines == ["one  | a", "two  | "]


def test_a_cut_text_has_the_width() -> None:
    assert LINES.cut("abc", 5) == "abc  "
    assert len(LINES.cut("abcdefgh", 5)) == 5


@given(st.lists(st.text(max_size=30), max_size=4), st.integers(3, 30))
def test_no_line_is_wider_than_the_columns(parts: list[str], columns: int) -> None:
    for line in LINES.wrapped([(part, "") for part in parts], columns, " "):
        assert LINES.columns_of(line) <= columns


@given(st.text(st.characters(codec="ascii", categories=("L", "N", "P")), max_size=60), st.integers(2, 30))
def test_no_word_is_lost(text: str, columns: int) -> None:
    assert "".join("".join(texts([(text, "")], columns)).split()) == "".join(text.split())
