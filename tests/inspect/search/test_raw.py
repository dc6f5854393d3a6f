"""The test on bytes finds every word that a text has, however a file writes it."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from reconcile.inspect.search.raw import RawTest
from reconcile.inspect.search.words import Word

ASCII = "abKkSsIif \t\n\"'\\/<>&=+._-09"
OTHERS = "ßẞ\u017f\u0130\u0131ﬁé\u0301Åå\u03a3\u03c2\u03c3\u0416\u0436会😀"
LETTERS = st.text(st.sampled_from(ASCII + OTHERS), min_size=1, max_size=24)
TEXTS = st.one_of(LETTERS, st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=24))


def has(word: str, data: bytes) -> bool:
    return bool(RawTest([Word.of(word)]).words_in(data))


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@given(before=TEXTS, text=TEXTS, after=TEXTS, change=st.sampled_from([str, str.upper, str.lower, str.title]))
def test_a_word_that_matches_is_never_missed(before: str, text: str, after: str, change: type[str]) -> None:
    assume(text.strip())
    whole = before + change(text) + after
    assume(Word.of(text).pattern.search(whole))
    for form in (whole, encoded(whole)):
        for escapes in (False, True):
            data = json.dumps({"content": form}, ensure_ascii=escapes).encode()
            assert has(text, data), (form, escapes)


@pytest.mark.parametrize("shift", range(6))
def test_a_word_at_any_place_of_a_base64_text(shift: int) -> None:
    for word, text in (("cursor", "the CurSor moves"), ("größe", "die GRÖSSE zählt"), ("Cursor", "the Cursor")):
        data = json.dumps([{"content": encoded("x" * shift + text)}]).encode()
        assert has(word, data)
        assert not has("nowhere", data)


def test_only_the_words_that_are_there() -> None:
    test = RawTest([Word.of("alpha"), Word.of("Beta"), Word.of("gamma")])
    assert test.all == 0b111
    assert test.words_in(b'["ALPHA beta"]') == 0b001
    assert test.words_in(b'["Beta", "' + encoded("some Gamma rays").encode() + b'"]') == 0b110
    assert test.words_in(b"") == 0


def test_surrogates_and_broken_escapes_do_no_harm() -> None:
    assert has("😀é", b'["\\ud83d\\ude00\\u00E9"]')
    assert not has("😀", b'["\\ud83d"]')
    assert not has("é", b'["\\u00zz \\\\u00e8"]')
