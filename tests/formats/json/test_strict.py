"""A stream that is read piece by piece says what it says as a whole, however it is cut."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import hypothesis.strategies as st
import pytest
from hypothesis import given

from reconcile.formats import get_format
from reconcile.formats.json.strict import fragments
from reconcile.model.snapshot import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

JP = get_format("jp", ())
EVENTS = "events.json"
TEXT = st.text(st.sampled_from('a"\\[]{},:\n é'), max_size=6)
VALUE = st.recursive(st.none() | st.integers(0, 9) | TEXT, lambda inner: st.lists(inner, max_size=3), max_leaves=4)
EVENT = st.fixed_dictionaries({"timestamp": TEXT, "type": TEXT, "content": VALUE})
ELEMENTS = st.lists(st.one_of(EVENT, EVENT, EVENT, VALUE), max_size=6)


@st.composite
def contents(draw: st.DrawFn) -> bytes:
    """A stream, often a broken one."""
    indent, escaped = draw(st.sampled_from((None, 2))), draw(st.booleans())
    content = json.dumps(draw(ELEMENTS), indent=indent, ensure_ascii=escaped).encode()
    content = draw(st.sampled_from((b"", b"\n "))) + content + draw(st.sampled_from((b"", b"\n", b"]", b" x", b",")))
    if draw(st.booleans()):
        at = draw(st.integers(0, len(content)))
        piece = draw(st.sampled_from((b"", b",", b"[", b"]", b"}", b'"', b"\\", b"0", b"\xff", b"\n")))
        content = content[:at] + piece + content[at + draw(st.integers(0, 2)) :]
    return content


def chunked(content: bytes, sizes: list[int]) -> Iterator[bytes]:
    at = 0
    while at < len(content):
        size = sizes[at % len(sizes)]
        yield content[at : at + size]
        at += size


@given(contents(), st.lists(st.integers(1, 40), min_size=1, max_size=5), st.booleans())
def test_cut_or_whole_a_stream_says_the_same(content: bytes, sizes: list[int], events: bool) -> None:
    base = {"base_config.json": b"{}"}
    whole = JP.read_stream({**base, EVENTS: content}, events=events)
    cut = JP.read_stream({**base, EVENTS: JP.summarise(chunked(content, sizes), events=events)}, events=events)
    if isinstance(whole, Fault):
        assert isinstance(cut, Fault)
    else:
        assert cut == whole
    legacy = JP.read_stream({EVENTS: content}, events=events)
    assert isinstance(legacy, Fault) or legacy == JP.read_stream(
        {EVENTS: JP.summarise(chunked(content, sizes), events=events)}, events=events
    )


@given(st.lists(EVENT, min_size=1, max_size=8), st.integers(1, 30))
def test_each_fragment_is_about_as_long_as_a_chunk_or_an_element(elements: list[object], size: int) -> None:
    content = json.dumps(elements).encode()
    longest = max(len(json.dumps(each)) for each in elements)
    found = [part for part, _ in fragments(chunked(content, [size]))]
    assert max(map(len, found)) <= size + 3 * longest + 2
    assert [each for part in found for each in json.loads(part)] == elements


FAULTS = {
    b'[{"timestamp": "", "type": ""},\n1,\n{"timestamp": "", "type": ""}]': "a number as event 2",
    b'[\n{"timestamp": "", "type": ""},\n{"timestamp": "", "type": ""} {}]': "line 3",
    b'[{"timestamp": "", "type": ""},\n{"timestamp": "", "type": "': "which ends inside a value in line 2",
    b'[\n{"timestamp": "", "type": ""}\n]\nx': "more text after the end of the array in line 3",
    b'[{"timestamp": "", "type": ""}\n}': "invalid JSON in line 2: a brace closes the array",
    b'[{"timestamp": "", "type": ""},]': "invalid JSON",
    b'{"timestamp": "", "type": ""}': "text that does not begin as an array",
    b"\0\0\0\0": "only NUL bytes",
    b"": "an empty file",
    b" \n": "only white space",
}


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize(("content", "words"), FAULTS.items())
def test_what_is_wrong_is_told(content: bytes, words: str, size: int) -> None:
    found = JP.summarise(chunked(content, [size]), events=False)
    assert isinstance(found, Fault)
    assert words in found.found
