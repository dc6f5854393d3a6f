"""JP's ids and directory names (docs/design/formats/jp.md#names), with the edge cases of
docs/design/formats/jp.md#cases-of-names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcile.formats import get_format
from reconcile.formats.jp.format import GREATEST_ID_NUMBER, JpFormat, decimal_of

if TYPE_CHECKING:
    from reconcile.model.format import Format

JP: Format = get_format("jp")
ID = "jp-c17457886043"

ENGLISH = "This is a longer title that definitely exceeds the sixty character limit of the slugs"
DEVANAGARI = "हिन्दी"

TITLES = [
    ("edge 1: a simple title", "Simple Title", "17457886043-simple-title"),
    (
        "edge 2: spaces and signs, one dash for each",
        " Title with spaces & chars!",
        "17457886043-title-with-spaces---chars",
    ),
    (
        "edge 3: cut at 60 characters, then at the last dash",
        ENGLISH,
        "17457886043-this-is-a-longer-title-that-definitely-exceeds-the-sixty",
    ),
    ("edge 4: no title", None, "17457886043"),
    ("edge 4: an empty title", "", "17457886043"),
    ("edge 4: only dashes", "---", "17457886043"),
    ("edge 4: only dots", "...", "17457886043"),
    ("edge 4: only spaces", "     ", "17457886043"),
    ("edge 5: one word of 61 bytes loses all of it", "x" * 61, "17457886043"),
    ("edge 5: one word of 60 bytes is kept", "x" * 60, "17457886043-" + "x" * 60),
    ("edge 6: trailing spaces count and cost the last word", "foo bar" + " " * 60, "17457886043-foo"),
    ("edge 7: 26 Japanese characters are over 60 bytes", "あ" * 26, "17457886043"),
    ("edge 7: 8 Japanese characters are kept", "会話の題名です日", "17457886043-会話の題名です日"),
    ("edge 8: a leading dash stays", "- a", "17457886043---a"),
    ("edge 8: a leading dot becomes a dash", ".trash", "17457886043--trash"),
    (
        "edge 8: the cut may leave trailing dashes",
        "word - " * 12,
        "17457886043-" + "word---" * 7 + "word--",
    ),
    ("edge 9: vowel signs stay, the virama becomes a dash", DEVANAGARI, "17457886043-हिन-दी"),
    ("edge 9: a combining accent becomes a dash", "e\u0301clair", "17457886043-e-clair"),
    ("U+001C is no white space for JP", "\x1ca", "17457886043--a"),
    ("U+3000 is white space", "\u3000a\u3000", "17457886043-a"),
    ("circled letters are alphabetic", "\u24b6", "17457886043-\u24d0"),
    ("a superscript is a number", "x\u00b2", "17457886043-x\u00b2"),
    ("a capital I with a dot lowers to two code points", "\u0130", "17457886043-i\u0307"),
    ("a final sigma", "ΟΔΟΣ", "17457886043-οδος"),
    ("an underscore is no letter", "a_b", "17457886043-a-b"),
    ("half a surrogate pair is no letter", "a\ud800b", "17457886043-a-b"),
]


@pytest.mark.parametrize(("title", "expected"), [row[1:] for row in TITLES], ids=[row[0] for row in TITLES])
def test_dirname_from_title(title: str | None, expected: str) -> None:
    assert JP.dirname(ID, title) == expected
    assert JP.id_of(expected) == ID


DIRNAMES = [
    ("the bare decimal", "17528832001", "jp-c17528832001"),
    ("with a slug", "17528832001-any-thing", "jp-c17528832001"),
    ("a dash with nothing after it", "17528832001-", "jp-c17528832001"),
    ("a slug with a newline in it", "17528832001-a\nb", "jp-c17528832001"),
    ("zero", "0", "jp-c0"),
    ("the greatest id", "92233720368-end", "jp-c92233720368"),
    ("one more than the greatest id", "92233720369", None),
    ("edge 10: letters right after the number", "17528832001x", None),
    ("edge 10: a word", "README", None),
    ("edge 10: the children's directory", "conversations", None),
    ("edge 11: leading zeros index in JP but never load", "0017528832001", None),
    ("edge 11: a plus sign does the same", "+17528832001-x", None),
    ("edge 12: a shorter number is another id, not a prefix", "1752883200", "jp-c1752883200"),
    (
        "edge 13: the name of a note carries the id too; that it is a file, the scan sees",
        "17528832001-notes.md",
        "jp-c17528832001",
    ),
    ("a backup", "17528832001.bak", None),
    ("an underscore", "17528832001_foo", None),
    ("negative", "-5", None),
    ("a newline after the number", "17528832001\n", None),
    ("other digits", "١٧٥٢٨٨٣٢٠٠١", None),
    ("a hidden directory", ".trash", None),
    ("a full id is no directory name", "jp-c17528832001", None),
    ("empty", "", None),
]


@pytest.mark.parametrize(("name", "expected"), [row[1:] for row in DIRNAMES], ids=[row[0] for row in DIRNAMES])
def test_id_of_dirname(name: str, expected: str | None) -> None:
    assert JP.id_of(name) == expected


SPELLINGS = [
    ("canonical", "jp-c17457886043", ID),
    ("edge 14: a workspace suffix is not compared", "jp-c17457886043-otvo8", ID),
    ("a plus sign", "jp-c+17457886043", ID),
    ("leading zeros", "jp-c0017457886043", ID),
    ("a bare decimal", "17457886043", ID),
    ("a directory name", "17457886043-simple-title", ID),
    ("a trailing dash", "jp-c17457886043-", None),
    ("an upper-case suffix", "jp-c17457886043-OTVO8", None),
    ("another letter", "jp-x17457886043", None),
    ("upper case", "JP-c17457886043", None),
    ("out of range", "jp-c92233720369", None),
    ("thousands of digits", "jp-c" + "9" * 5000, None),
    ("thousands of zeros", "jp-c" + "0" * 5000, "jp-c0"),
    ("a prefix of an id", "jp-c", None),
    ("a word", "latest", None),
]


@pytest.mark.parametrize(("text", "expected"), [row[1:] for row in SPELLINGS], ids=[row[0] for row in SPELLINGS])
def test_parse_id(text: str, expected: str | None) -> None:
    assert JP.parse_id(text) == expected


def test_a_short_id_is_not_found_through_a_longer_one() -> None:
    # edge 12: JP archives 17528832001 when asked for 1752883200
    assert JP.parse_id("1752883200") != JP.id_of("17528832001-long")
    assert JP.is_whole("1752883200")
    assert JP.is_whole("jp-c1752883200-otvo8")
    assert not JP.is_whole("175288320")
    assert not JP.is_whole("17528832001-lo")


def test_smaller_ids_come_first_by_number() -> None:
    conversations = ["jp-c100", "jp-c99", "jp-c17528832001"]
    assert sorted(conversations, key=JP.order) == ["jp-c99", "jp-c100", "jp-c17528832001"]
    assert JP.order("jp-c99") == (99, "")


def test_a_new_id_is_the_decisecond_or_the_next_free_one() -> None:
    now = 1_752_883_200_199_999_999
    assert JP.new_id(now, ()) == "jp-c17528832001"
    assert JP.new_id(now, {"jp-c17528832001", "jp-c17528832002"}) == "jp-c17528832003"
    assert JP.new_id(-5, ()) == "jp-c0"


def test_no_id_is_left_after_the_greatest() -> None:
    with pytest.raises(ValueError, match="no free conversation id for the time"):
        JP.new_id((GREATEST_ID_NUMBER + 1) * 10**8, ())


def test_the_lock_is_named_after_the_canonical_id() -> None:
    assert JP.lock_name(ID) == "jp-c17457886043.lock"


def test_the_name_is_what_the_option_takes() -> None:
    assert JpFormat().name == "jp"


CONVERSATIONS = st.integers(min_value=0, max_value=GREATEST_ID_NUMBER).map(lambda number: f"jp-c{number}")
SLUG_TITLES = st.none() | st.text(max_size=120) | st.text(alphabet="ab- .あ\u0301İ", max_size=120)


@given(CONVERSATIONS, SLUG_TITLES)
def test_every_directory_name_carries_its_id_and_fits(conversation: str, title: str | None) -> None:
    name = JP.dirname(conversation, title)
    assert JP.id_of(name) == conversation
    assert JP.parse_id(name) == conversation
    assert "/" not in name
    assert not name.startswith(".")
    # full lower-casing can lengthen a name (U+0130); JP's own bound of 252 bytes holds without it
    assert len(name.encode()) <= 252 or "\u0307" in name


@given(CONVERSATIONS)
def test_every_id_is_its_own_spelling(conversation: str) -> None:
    assert JP.parse_id(conversation) == conversation
    assert JP.parse_id(f"{conversation}-otvo8") == conversation
    assert JP.parse_id(decimal_of(conversation)) == conversation
