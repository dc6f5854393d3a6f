"""The words of a search: case, folding, phrases."""

from __future__ import annotations

import sys
import unicodedata
from typing import Literal

import pytest

from reconcile.inspect.search.raw import RawTest
from reconcile.inspect.search.words import Word, words_of


def finds(word: str, text: str) -> bool:
    return Word.of(word).pattern.search(text) is not None


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("cursor", "The Cursor moves"),
        ("cursor", "CURSOR"),
        ("grösse", "GRÖSSE"),
        ("grösse", "Größe"),
        ("straße", "Strasse"),
        ("masse", "MAẞE"),
        ("office", "oﬃce"),
        ("office", "oﬀice"),
        ("kelvin", "\u212aelvin"),
        ("привет", "ПРИВЕТ"),
        ("σοφος", "ΣΟΦΟΣ"),
        ("σοφοσ", "σοφος"),
        ("会議", "昨日の会議の"),
        ("inner join", "an INNER\n   join"),
        ("a+b", "A+B"),
        (".*", "all .* of it"),
        ("[x]", "- [X] done"),
        (" padded ", "unpadded"),
    ],
)
def test_a_word_in_lower_case_is_found_in_any_case(word: str, text: str) -> None:
    assert finds(word, text)


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("Cursor", "cursor"),
        ("cursoR", "CURSOR"),
        ("Größe", "GRÖSSE"),
        ("inner join", "innerjoin"),
        ("inner join", "inner left join"),
        (".*", "anything"),
    ],
)
def test_another_text_is_not_found(word: str, text: str) -> None:
    assert not finds(word, text)


@pytest.mark.parametrize("word", ["café", "Café", "straße ñandú", "ǘ", "한국어", "がぎ", "Ангел й", "ΐ"])
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_composed_and_decomposed_characters_are_the_same(word: str, form: Literal["NFC", "NFD"]) -> None:
    for other in ("NFC", "NFD"):
        text = f"x {unicodedata.normalize(other, word)} y"
        assert finds(unicodedata.normalize(form, word), text)
        assert RawTest(words_of([unicodedata.normalize(form, word)])).words_in(text.encode()) == 1


def test_a_character_is_found_as_it_was_typed() -> None:
    assert finds("\uf900", "a \uf900")


def test_an_upper_case_letter_makes_case_count() -> None:
    assert finds("Cursor", "The Cursor moves")
    assert [Word.of(text).is_exact for text in ("cursor", "Cursor", "über", "Über", "ǅ", "123")] == [
        False,
        True,
        False,
        True,
        True,
        False,
    ]


def test_every_character_is_found_by_what_it_folds_to() -> None:
    """The table of exceptions is complete for the Unicode of this Python."""
    missed = [
        char
        for char in map(chr, range(sys.maxunicode + 1))
        if (folded := char.casefold()) != char and not Word.of(folded).is_exact and not finds(folded, char)
    ]
    assert missed == []


def test_equal_and_blank_words_count_once_or_not_at_all() -> None:
    assert [word.text for word in words_of(["a", " ", "b", "a", ""])] == ["a", "b"]


def test_a_long_word_of_many_spellings_stays_cheap() -> None:
    word = Word.of("s" * 400)
    assert word.pattern.search("ß" * 200)
    assert sum(len(piece.spellings) for piece in word.pieces) <= 8
