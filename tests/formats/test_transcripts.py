"""What holds for the transcripts of every format: they never fail, and each text of theirs can be written."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcile.formats import get_format
from reconcile.inspect.markdown import to_markdown

FORMATS = ("jp", "plain", "leslie", "claudesidian")
CORPUS = Path(os.environ.get("RECONCILE_CORPUS") or Path(__file__).parents[3] / "shared" / "corpus")
RECORDS = (
    "thread_relations.json",
    "objectives.json",
    "logs/obj-1/objective.log",
    "logs/workers/thread-1.ndjson",
    "notes.txt",
    ".conversations/c.json",
    ".conversations/index.json",
    ".workspaces/w.json",
    ".nexus/conversations/conv_c.jsonl",
    ".nexus/workspaces/ws_w.jsonl",
)
FILES = ("metadata.json", "base_config.json", "events.json", "plan.md", ".meta/transcripts/1.txt")

_scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8)
_words = st.sampled_from(
    [
        "id",
        "title",
        "name",
        "type",
        "timestamp",
        "content",
        "message",
        "reasoning",
        "data",
        "arguments",
        "metadata",
        "question",
        "source",
        "answer",
        "delta",
        "summary",
        "threads",
        "operations",
        "relations",
        "params",
        "operator",
        "command",
        "objectives",
        "messages",
        "role",
        "toolCalls",
        "function",
        "result",
        "sessions",
        "memoryTraces",
        "states",
        "created",
        "event",
    ]
)
_kinds = st.sampled_from(
    [
        "chat_request",
        "chat_response",
        "tool_call_request",
        "tool_call_response",
        "inquiry_request",
        "inquiry_response",
        "config_delta",
        "compaction",
        "turn_start",
        "message",
        "metadata",
        "user",
        "assistant",
    ]
)
_values = st.recursive(
    _scalars | _kinds,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_words | st.text(max_size=3), inner, max_size=5),
    max_leaves=12,
)
_contents = st.binary(max_size=40) | _values.map(lambda value: json.dumps(value).encode())
_events = st.lists(
    st.dictionaries(_words, _values, max_size=5).flatmap(lambda event: _kinds.map(lambda kind: {**event, "type": kind}))
)


def check(name: str, conversation: str, contents: dict[str, bytes]) -> None:
    transcript = get_format(name).transcript(conversation, contents)
    to_markdown(transcript).encode()
    for turn in transcript.turns:
        for text in (turn.kind, turn.time, turn.text, turn.key, turn.details):
            text.encode()
    assert [turn.position for turn in transcript.turns] == list(range(1, len(transcript.turns) + 1))


@pytest.mark.parametrize("name", FORMATS)
@given(record=st.sampled_from(RECORDS), content=_contents)
def test_no_record_makes_it_fail(name: str, record: str, content: bytes) -> None:
    check(name, record, {"": content})


@pytest.mark.parametrize("name", FORMATS)
@given(contents=st.dictionaries(st.sampled_from(FILES), _contents))
def test_no_files_make_it_fail(name: str, contents: dict[str, bytes]) -> None:
    check(name, "threads/thread-1", contents)


@pytest.mark.long
@given(events=_events)
def test_no_values_of_events_make_it_fail(events: list[Any]) -> None:
    check("jp", "jp-c1", {"events.json": json.dumps(events).encode()})


@pytest.mark.parametrize("name", FORMATS)
def test_deep_nesting_is_a_note_or_a_text(name: str) -> None:
    for depth in (200, 990, 100_000):
        content = b'[{"type": "x", "arguments": ' + b"[" * depth + b"]" * depth + b"}]"
        check(name, "jp-c1", {"events.json": content})
        check(name, ".conversations/c.json", {"": content})


@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"no corpus at {CORPUS}; set RECONCILE_CORPUS")
def test_the_real_files_of_all_programs_are_readable() -> None:
    for events in sorted((CORPUS / "jp" / "head").rglob("events.json")):
        contents = {file.name: file.read_bytes() for file in events.parent.iterdir() if file.is_file()}
        check("jp", "jp-c1", contents)
        transcript = get_format("jp").transcript("jp-c1", contents)
        assert transcript.turns
        assert not transcript.notes
    for top, name in ((".leslie", "leslie"), ("", "claudesidian")):
        for file in sorted((CORPUS / name).rglob("*")):
            if file.is_file():
                below = file.relative_to(CORPUS / name).parts[1:]
                check(name, "/".join(below[1:] if below[0] == top else below), {"": file.read_bytes()})
