"""Readable turns of JP and plain conversations (docs/design/formats/jp.md#events and #base64)."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from reconcile.formats import get_format
from reconcile.model.transcript import Speaker, Transcript, Turn

JP, PLAIN = get_format("jp"), get_format("plain")
TIME = "2026-05-13 09:00:00.5"
DEMO = Path(__file__).parents[3] / "fixtures" / "demo" / "store"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def read(*events: Any, metadata: bytes = b"{}", form: Any = JP) -> Transcript:
    contents = {"metadata.json": metadata, "base_config.json": b"{}", "events.json": json.dumps(events).encode()}
    transcript: Transcript = form.transcript("jp-c1", contents)
    return transcript


def only(event: Any) -> Turn:
    (turn,) = read(event).turns
    return turn


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"timestamp": TIME, "type": kind, **fields}


SAMPLES = [
    (event("turn_start"), Speaker.SYSTEM, ""),
    (event("chat_request", content="Hello\n\nthere\n"), Speaker.USER, "Hello\n\nthere"),
    (event("chat_request", content="Hi", author="Ann"), Speaker.USER, "*Ann:*\n\nHi"),
    (event("chat_response", message="Yes."), Speaker.ASSISTANT, "Yes."),
    (event("chat_response", reasoning="Hm."), Speaker.ASSISTANT, "*Reasoning:*\n\nHm."),
    (event("chat_response", data={"a": 1}), Speaker.ASSISTANT, '```json\n{\n  "a": 1\n}\n```'),
    (
        event("tool_call_request", id="t1", name="read", arguments={"path": encoded("src/é.rs"), "lines": [1, 2]}),
        Speaker.ASSISTANT,
        "Calls the tool `read`.\n\n- path: `src/é.rs`\n- lines:\n\n```json\n[\n  1,\n  2\n]\n```",
    ),
    (
        event("tool_call_request", id="t1", name="edit", arguments={"patterns": [{"old": encoded("a"), "new": "é"}]}),
        Speaker.ASSISTANT,
        'Calls the tool `edit`.\n\n- patterns:\n\n```json\n[\n  {\n    "old": "a",\n    "new": "é"\n  }\n]\n```',
    ),
    (
        event("tool_call_response", id="t1", content=encoded("fn main() {}\n"), is_error=False),
        Speaker.TOOL,
        "The tool returned:\n\n```\nfn main() {}\n```",
    ),
    (
        event("tool_call_response", id="t1", content="edited by hand, é", is_error=True),
        Speaker.TOOL,
        "The tool failed:\n\n```\nedited by hand, é\n```",
    ),
    (event("tool_call_response", id="t1", content="", is_error=False), Speaker.TOOL, "The tool returned nothing."),
    (
        event(
            "inquiry_request",
            id="t1.apply",
            source={"source": "tool", "name": "fs_modify_file"},
            question={"text": "Apply?", "answer_type": {"type": "boolean"}, "default": True},
        ),
        Speaker.TOOL,
        (
            "The tool `fs_modify_file` asks:\n\nApply?\n\n"
            '- answer_type:\n\n```json\n{\n  "type": "boolean"\n}\n```\n\n- default: true'
        ),
    ),
    (event("inquiry_response", id="t1.apply", answer=True), Speaker.USER, "Answer: yes"),
    (event("inquiry_response", id="t1.apply", answer="later"), Speaker.USER, "Answer: later"),
    (
        event("config_delta", delta={"model": {"id": "x"}, "assistant": {}}),
        Speaker.SYSTEM,
        "Sets the configuration: assistant, model",
    ),
    (event("config_delta", inherit=True), Speaker.SYSTEM, "Sets the configuration: inherit"),
    (
        event("compaction", from_turn=0, to_turn=4, summary="They agreed."),
        Speaker.SYSTEM,
        "Replaces turns 0 to 4 by a summary:\n\nThey agreed.",
    ),
    (event("of_tomorrow", note="é"), Speaker.SYSTEM, '```json\n{\n  "note": "é"\n}\n```'),
]


@pytest.mark.parametrize(("element", "speaker", "text"), SAMPLES, ids=lambda value: str(value)[:60])
def test_each_type_of_event_is_readable(element: Any, speaker: Speaker, text: str) -> None:
    turn = only(element)
    assert (turn.position, turn.speaker, turn.kind, turn.time) == (1, speaker, element["type"], TIME)
    assert turn.text == text


def test_the_rest_of_an_event_is_its_details_with_decoded_metadata() -> None:
    turn = only(event("chat_response", message="Yes.", metadata={"signature": encoded("abc"), "n": 1}))
    assert turn.text == "Yes."
    assert turn.details == 'metadata: {"signature": "abc", "n": 1}'


def test_a_configuration_is_a_line_of_keys_and_its_values_are_details() -> None:
    assert only(event("config_delta", delta={"model": "x"})).details == 'delta: {"model": "x"}'


def test_equal_events_have_equal_keys_however_they_are_written() -> None:
    rewritten = {"type": "chat_request", "content": "Hi", "timestamp": "2026-05-13T09:00:00.500Z"}
    assert only(event("chat_request", content="Hi")).key == only(rewritten).key
    assert only(event("chat_request", content="Hi")).key != only(event("chat_request", content="Ho")).key
    assert only(event("turn_start")).key != only(event("turn_start", extra=1)).key


def test_metadata_and_title_are_for_the_heading() -> None:
    transcript = read(metadata=b'{"title": "A", "last_activated_at": "2026-05-13 09:00:00.0", "labels": {"a": "b"}}')
    assert transcript.title == "A"
    assert transcript.about == (("last_activated_at", "2026-05-13 09:00:00.0"), ("labels", '{"a": "b"}'))
    assert transcript.notes == ()


def test_broken_files_are_notes() -> None:
    contents = {"metadata.json": b"[]", "base_config.json": b"{", "events.json": b'{"a": 1}'}
    transcript = JP.transcript("jp-c1", contents)
    assert transcript.turns == ()
    assert [note.split(":")[0] for note in transcript.notes] == ["metadata.json", "base_config.json", "events.json"]


def test_elements_that_are_no_events_are_shown_as_they_are() -> None:
    turns = read(5, {"timestamp": 1, "type": None, "x": "y"}).turns
    assert [turn.text for turn in turns] == ["```json\n5\n```", '```json\n{\n  "x": "y"\n}\n```']


def test_plain_shows_any_text() -> None:
    contents = {"metadata.json": b"name: x", "events.json": b"Ann: hello\nBen: hi\n"}
    transcript = PLAIN.transcript("ROOT_A", contents)
    assert [turn.text for turn in transcript.turns] == ["Ann: hello\nBen: hi"]
    assert transcript.about == (("metadata.json", "name: x"),)
    assert transcript.notes == ()
    assert PLAIN.transcript("ROOT_A", {"events.json": b"\0"}).turns[0].text == "(binary, 1 bytes)"


def test_plain_reads_the_events_of_jp() -> None:
    assert read(event("chat_request", content="Hi"), form=PLAIN).turns == (only(event("chat_request", content="Hi")),)


def test_the_demo_is_readable() -> None:
    directory = DEMO / "17780300000-release-notes"
    transcript = JP.transcript("jp-c17780300000", {file.name: file.read_bytes() for file in directory.iterdir()})
    assert transcript.title == "Release notes"
    assert [(turn.speaker.value, turn.text) for turn in transcript.turns] == [
        ("system", ""),
        ("user", "Write the release notes."),
        ("assistant", "Here is a draft."),
    ]
