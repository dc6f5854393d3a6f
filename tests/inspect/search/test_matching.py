"""The lines that a search finds in one content."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from reconcile.formats import get_format
from reconcile.formats.json.strict import fragments
from reconcile.inspect.search.matching import DAMAGED, UNREADABLE, Hit, Matcher
from reconcile.inspect.search.raw import RawTest
from reconcile.inspect.search.words import words_of

EVENTS = "events.json"


def matcher(*words: str, form: str = "jp") -> Matcher:
    found = words_of(words)
    return Matcher(found, RawTest(found), get_format(form).transcript, EVENTS)


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def stream(*events: dict[str, Any]) -> bytes:
    return json.dumps([{"timestamp": "2026-01-01 00:00:00.0", **event} for event in events], indent=2).encode()


ASKED = {"type": "chat_request", "content": "first line\nWhere is the Cursor?\nlast line"}
ANSWERED = {"type": "chat_response", "message": "In the buffer, says the manual."}
CALLED = {"type": "tool_call_request", "id": "c", "name": "grep", "arguments": {"pattern": encoded("größe = 3")}}
RETURNED = {"type": "tool_call_response", "id": "c", "content": encoded("x\nDie GRÖSSE\ny"), "is_error": False}
ALL = stream({"type": "turn_start"}, ASKED, ANSWERED, CALLED, RETURNED)


def only(found: tuple[list[Hit], str]) -> Hit:
    (hit,), note = found
    assert note == ""
    return hit


def test_the_first_line_with_its_event_speaker_and_marks() -> None:
    hit = only(matcher("cursor").in_stream(ALL, 1))
    assert (hit.position, hit.speaker, hit.kind) == (2, "user", "chat_request")
    assert (hit.time, hit.line) == ("2026-01-01 00:00:00.0", "Where is the Cursor?")
    assert [hit.line[begin:end] for begin, end in hit.marks] == ["Cursor"]


def test_texts_in_base64_are_found_in_any_case() -> None:
    hit = only(matcher("grösse").in_stream(ALL, 1))
    assert (hit.position, hit.speaker) == (4, "assistant")
    hit = only(matcher("GRÖSSE").in_stream(ALL, 1))
    assert (hit.position, hit.speaker, hit.line) == (5, "tool", "Die GRÖSSE")


def test_a_name_of_a_key_is_no_text() -> None:
    assert matcher("timestamp").in_stream(ALL, 1) == ([], "")
    assert matcher("tool_call_request").in_stream(ALL, 1) == ([], "")


def test_several_words_have_a_line_each_unless_one_line_has_both() -> None:
    found, _ = matcher("cursor", "manual").in_stream(ALL, 3)
    assert [(hit.position, hit.words) for hit in found] == [(2, 1), (3, 2)]
    hit = only(matcher("manual", "buffer").in_stream(ALL, 3))
    assert (hit.words, [hit.line[begin:end] for begin, end in hit.marks]) == (3, ["buffer", "manual"])


def test_a_word_that_is_needed_and_missing_leaves_nothing() -> None:
    assert matcher("cursor", "nowhere").in_stream(ALL, 3) == ([], "")
    assert len(matcher("cursor", "nowhere").in_stream(ALL, 1)[0]) == 1, "the title has the other one"


def test_a_phrase_may_span_lines() -> None:
    hit = only(matcher("line where is").in_stream(ALL, 1))
    assert hit.line == "first line Where is the Cursor?"
    assert [hit.line[begin:end] for begin, end in hit.marks] == ["line Where is"]


def test_a_long_line_is_an_excerpt_around_the_match() -> None:
    text = "a" * 100_000 + " needle " + "b" * 100_000
    hit = only(matcher("needle").in_stream(stream({"type": "chat_request", "content": text}), 1))
    assert len(hit.line) < 600
    assert hit.line.startswith("…a")
    assert hit.line.endswith("b…")
    assert [hit.line[begin:end] for begin, end in hit.marks] == ["needle"]


@pytest.mark.parametrize("size", [1, 7, 100, 10_000])
def test_chunks_find_the_same(size: int) -> None:
    for words in (("cursor",), ("grösse",), ("cursor", "manual"), ("nowhere",)):
        pieces = (ALL[at : at + size] for at in range(0, len(ALL), size))
        chunks = (array for array, _ in fragments(pieces))
        needed = (1 << len(words)) - 1
        assert matcher(*words).in_chunks(chunks, needed) == matcher(*words).in_stream(ALL, needed)


def test_positions_are_those_of_the_whole_transcript() -> None:
    turns = get_format("jp").transcript("", {EVENTS: ALL}).turns
    for turn in turns:
        for word in turn.text.split():
            for hit in matcher(word).in_stream(ALL, 1)[0]:
                assert word in turns[hit.position - 1].text


def test_damaged_events_are_searched_as_text() -> None:
    torn = ALL[: ALL.index(b"last line")]
    (hit,), note = matcher("cursor").in_stream(torn, 1)
    assert (hit.position, hit.file, note) == (0, EVENTS, DAMAGED)
    assert "Where is the Cursor?" in hit.line
    assert matcher("nowhere").in_stream(torn, 1) == ([], "")


@pytest.mark.parametrize("text", [b"\xff needle", b'a", "n": ' + b"9" * 5_000 + b', "x": "needle'])
def test_an_event_that_cannot_be_read_is_searched_as_text(text: bytes) -> None:
    data = b'[{"type":"chat_request","content":"first"},{"type":"chat_request","content":"%s"}]' % text
    (hit,), note = matcher("needle").in_stream(data, 1)
    assert (hit.position, hit.file, note) == (0, EVENTS, DAMAGED)
    with pytest.raises(UNREADABLE):
        matcher("needle").in_chunks([data], 1)
    assert only(matcher("first").in_stream(data, 1)).position == 1


@pytest.mark.parametrize("before", ["", "\ufeff"])
def test_what_python_can_read_is_searched_by_events(before: str) -> None:
    """A lone surrogate is valid for `json`, as is a mark at the beginning of the file."""
    data = before.encode() + stream({"type": "chat_request", "content": "\ud800 Gr\u00f6\u00dfe"}, RETURNED)
    hit = only(matcher("gr\u00f6sse").in_stream(data, 1))
    assert (hit.position, hit.speaker) == (1, "user")
    assert only(matcher("die").in_stream(data, 1)).position == 2


def test_any_text_is_valid_in_the_plain_format() -> None:
    hit = only(matcher("cursor", form="plain").in_stream(b"one\nthe Cursor\n", 1))
    assert (hit.position, hit.line) == (0, "the Cursor")


def test_a_text_file_line_by_line_and_no_binary_one() -> None:
    (hit,) = matcher("cursor").in_text([b"one\n", b"two CURSOR\n"], 1, "NOTE.md")
    assert (hit.file, hit.position, hit.line) == ("NOTE.md", 0, "two CURSOR")
    assert matcher("cursor").in_text([b"\0cursor\n"], 1, "x.bin") == []
    (hit,) = matcher("cursor").in_text([b"\xff\xfe cursor \xff"], 1, "x.txt")
    assert hit.marks


def test_a_record_is_read_whole() -> None:
    content = json.dumps({"id": "c", "title": "t", "messages": [{"role": "user", "content": "the Cursor"}]}).encode()
    found = words_of(["cursor"])
    records = Matcher(found, RawTest(found), get_format("claudesidian").transcript, "")
    hits, _ = records.in_record(".conversations/c.json", {"": content}, 1)
    assert [hit.line for hit in hits] == ["the Cursor"]


def test_titles() -> None:
    assert matcher("a", "b").in_title("xAx") == 1
    assert matcher("a", "b").in_title("ba") == 3
    assert matcher("a").in_title(None) == 0
