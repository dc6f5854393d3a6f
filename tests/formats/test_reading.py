"""The pieces of Markdown that all formats share, and files that can't be read."""

from __future__ import annotations

import pytest

from reconcile.formats.reading import code, decoded, fenced, key_of, listed, millisecond_time, parsed, turn
from reconcile.model.transcript import Speaker


def test_a_fence_is_longer_than_any_in_the_text() -> None:
    assert fenced("a\n```\nb\n````\n", "md") == "`````md\na\n```\nb\n````\n`````"


def test_code_with_backticks_has_more_of_them_around() -> None:
    assert code("ls") == "`ls`"
    assert code("a`b") == "``a`b``"
    assert code("`b") == "`` `b ``"


def test_members_are_a_list_with_blocks_for_long_texts() -> None:
    assert listed({"path": "a.py", "count": 3, "on": True, "text": "a\nb", "tags": ["x"], "none": []}) == (
        "- path: `a.py`\n- count: 3\n- on: true\n- text:\n\n```\na\nb\n```\n"
        '\n- tags:\n\n```json\n[\n  "x"\n]\n```\n\n- none: []'
    )


def test_the_key_depends_on_the_value_and_not_on_the_order_of_its_keys() -> None:
    assert key_of({"a": 1, "b": 2}) == key_of({"b": 2, "a": 1})
    assert key_of({"a": 1}) != key_of({"a": True})
    assert key_of({"a": 1}) != key_of({"a": 1.0})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1795293642133, "2026-11-21 20:40:42.133Z"),
        (0, "1970-01-01 00:00:00.000Z"),
        (None, ""),
        (True, "true"),
        (10**30, str(10**30)),
        (float("inf"), "inf"),
        ([1], "[1]"),
    ],
)
def test_milliseconds_are_times_in_utc(value: object, text: str) -> None:
    assert millisecond_time(value) == text


def test_what_is_wrong_with_a_file_is_in_words() -> None:
    assert parsed(b'{"a": 1}').value == {"a": 1}
    assert "conflict marker" in parsed(b"[\n<<<<<<< HEAD\n1\n=======\n2\n>>>>>>> other\n]").problem
    assert parsed(b"[" * 100_000).problem
    assert parsed(b"1" * 5000).problem


def test_binary_files_are_no_text() -> None:
    assert decoded("é".encode()) == "é"
    assert decoded(b"\xef\xbb\xbfa") == "a"
    assert decoded(b"\xff") is None
    assert decoded(b"a\0b") is None


def test_lone_surrogates_are_escaped_in_every_text() -> None:
    made = turn(1, Speaker.USER, "\ud800", "\udfff", "a\ud800\n", "key", "b: \ud800")
    assert (made.kind, made.time, made.text, made.details) == ("\\ud800", "\\udfff", "a\\ud800", "b: \\ud800")
