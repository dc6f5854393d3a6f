"""Two versions of a note of Claude Code: no line is lost, and the result is the same on both sides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcile.formats.claude_code.notes import merged_notes

INDEX = b"# Memory\n\n- [Build](build.md)\n- [Tests](tests.md)\n"

TEXTS = st.lists(st.sampled_from([b"a", b"b", b"c", b"d", b"", b"  "]), max_size=6).map(b"\n".join)


@pytest.mark.parametrize(
    ("one", "other", "merged"),
    [
        (INDEX, INDEX + b"- [Style](style.md)\n", INDEX + b"- [Style](style.md)\n"),
        (INDEX + b"- b\n", INDEX + b"- a\n", INDEX + b"- a\n- b\n"),
        (INDEX.replace(b"# Memory", b"# Notes"), INDEX, INDEX.replace(b"# Memory\n", b"# Memory\n# Notes\n")),
        (b"a\nx\nz\n", b"a\ny\nz", b"a\nx\ny\nz\n"),
        (b"a\na\nb\n", b"a\nc\n", b"a\na\nb\nc\n"),
        (b"x\na\n", b"y\na\r\na\r\n", b"x\ny\na\na\n"),
        (b"a\nb\n", b"b\na\n", None),
        (b"a\n", b"a\n\n", None),
        (b"a\n", b"b\0\n", None),
    ],
)
def test_merging(one: bytes, other: bytes, merged: bytes | None) -> None:
    assert merged_notes(one, other) == merged_notes(other, one) == merged


@given(TEXTS, TEXTS)
def test_no_line_is_lost_and_merging_ends(one: bytes, other: bytes) -> None:
    merged = merged_notes(one, other)
    assert merged_notes(other, one) == merged
    if merged is None:
        assert sorted(filter(bytes.strip, one.split(b"\n"))) == sorted(filter(bytes.strip, other.split(b"\n")))
        return
    for version in (one, other):
        for line in filter(bytes.strip, version.split(b"\n")):
            assert merged.split(b"\n").count(line) >= version.split(b"\n").count(line)
        assert merged_notes(merged, version) in (None, merged)
