"""The lines of a session and its title (docs/design/formats/claude-code.md#lines)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcile.formats.claude_code.lines import LONGEST_TITLE, Titles, parsed, raw_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

PIECES = st.lists(st.sampled_from([b"{}", b"\n", b"\r\n", b" ", b"\t", b"\0", b'{"a":"', b'"}', b"\xc3", b"\xa9"]))


def title_of(*values: Any) -> str | None:
    titles = Titles()
    for value in values:
        line = parsed(json.dumps(value).encode())
        assert line is not None
        titles.add(line)
    return titles.title


def prompt(content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "user", "uuid": "u", "message": {"role": "user", "content": content}, **more}


def test_lines_without_blank_ones() -> None:
    content = b'{"a":1}\n\n \r\n{"b":2}\r\nno object\n{"torn'
    assert list(raw_lines([content])) == [
        (b'{"a":1}', True),
        (b'{"b":2}\r', True),
        (b"no object", True),
        (b'{"torn', False),
    ]
    assert list(raw_lines([])) == list(raw_lines([b"", b" "])) == []


@given(PIECES)
def test_the_borders_of_chunks_do_not_matter(chunks: list[bytes]) -> None:
    content = b"".join(chunks)
    *ended, last = content.split(b"\n")
    expected = [(line, True) for line in ended if line.strip()] + [(last, False)] * bool(last.strip())
    assert list(raw_lines(chunks)) == list(raw_lines([content])) == expected
    assert list(raw_lines(bytes([byte]) for byte in content)) == expected


def test_a_line_is_there_before_the_next_chunk_is_read() -> None:
    read = []

    def chunks() -> Iterator[bytes]:
        for number in range(3):
            read.append(number)
            yield b'{"n":%d}\n' % number

    assert next(raw_lines(chunks())) == (b'{"n":0}', True)
    assert read == [0]


OBJECTS = [b"{}", b'{"type":1,"cwd":[]}\r', b'{"message":5}', b' {"unknown":1e999}', rb'{"lastPrompt":"cut \ud83d"}']
OTHERS = [b"", b"[]", b'"text"', b"1", b"{} {}", b'{"torn', b"\0\0", b"\xef\xbb\xbf{}", b'{"type":"\xff"}']


@pytest.mark.parametrize("line", OBJECTS)
def test_an_object_with_any_members_is_a_line(line: bytes) -> None:
    assert parsed(line) is not None


@pytest.mark.parametrize("line", OTHERS)
def test_anything_else_is_none(line: bytes) -> None:
    assert parsed(line) is None


@pytest.mark.parametrize("member", [b"type", b"unknown"])
@pytest.mark.parametrize("deep", [b"[" * 100_000, b'{"a":' * 100_000])
def test_a_line_that_is_nested_too_deeply_is_none(member: bytes, deep: bytes) -> None:
    assert parsed(b'{"' + member + b'":' + deep) is None


def test_half_of_a_pair_is_as_good_as_any_character() -> None:
    """JavaScript cuts texts between the two halves, and writes one as an escape."""
    line = parsed(rb'{"type":"ai-title","cwd":"/\\ud83d/\uD83D\uDE00","aiTitle":"cut \uD83D \ude00 \\\ud83d"}')
    assert line is not None
    assert line.cwd == "/\\ud83d/\N{GRINNING FACE}"
    assert line.ai_title == "cut \ufffd \ufffd \\\ufffd"
    assert parsed(rb'{"a":"\ud83d","torn') is None


TITLES: list[tuple[list[dict[str, Any]], str | None]] = [
    ([], None),
    ([prompt("The first.\nMore."), prompt("The second.")], "The first."),
    ([prompt("\n  \n  Indented.  ")], "Indented."),
    ([prompt([{"type": "image"}, {"type": "text", "text": "With an image."}])], "With an image."),
    ([prompt([{"type": "tool_result", "content": "a result"}]), prompt("Typed.")], "Typed."),
    ([prompt("<command-name>/clear</command-name>"), prompt("Typed.")], "Typed."),
    ([prompt("A caveat.", isMeta=True), prompt("A subagent's.", isSidechain=True), prompt("Typed.")], "Typed."),
    ([prompt("Typed."), {"type": "summary", "summary": "Old"}, {"type": "summary", "summary": "New"}], "New"),
    (
        [{"type": "ai-title", "aiTitle": "Generated"}, prompt("Typed."), {"type": "summary", "summary": "S"}],
        "Generated",
    ),
    ([{"type": "custom-title", "customTitle": "Mine"}, {"type": "ai-title", "aiTitle": "Generated"}], "Mine"),
    ([{"type": "custom-title", "customTitle": "Old"}, {"type": "custom-title", "customTitle": "New"}], "New"),
    ([{"type": "custom-title", "customTitle": each} for each in ("Mine", "", 5, None, " \n")], "Mine"),
    ([{"type": "user"}, prompt(None), prompt(7), prompt([7, {"type": "text"}]), prompt({})], None),
    ([{"type": "user", "message": "a text"}, prompt("Typed.")], "Typed."),
    ([{"type": "assistant", "message": {"content": "A reply."}}], None),
    ([{"type": ["user"], "message": {"content": "Odd."}}], None),
]


@pytest.mark.parametrize(("values", "title"), TITLES)
def test_the_title(values: list[dict[str, Any]], title: str | None) -> None:
    assert title_of(*values) == title


def test_a_long_title_is_cut() -> None:
    longest = "x" * LONGEST_TITLE
    assert title_of(prompt(longest)) == longest
    cut = title_of(prompt(longest + "y"))
    assert cut == longest[:-1] + "…"
