"""Readable turns of Claudesidian's records (docs/design/formats/claudesidian.md)."""

from __future__ import annotations

import json
from typing import Any

from reconcile.formats import get_format
from reconcile.model.transcript import Speaker, Transcript

CLAUDESIDIAN = get_format("claudesidian")
MS, TIME = 1795293642133, "2026-11-21 20:40:42.133Z"


def read(path: str, *values: Any) -> Transcript:
    content = b"".join(json.dumps(value).encode() + b"\n" for value in values)
    return CLAUDESIDIAN.transcript(path, {"": content})


def test_messages_and_their_tool_calls_are_turns() -> None:
    call = {
        "id": "call_1",
        "function": {"name": "read", "arguments": '{"filePath": "a.md"}'},
        "result": {"content": "x"},
        "success": True,
    }
    conversation = {
        "id": "c",
        "title": "Résumé",
        "created": MS,
        "messages": [
            {"id": "m1", "role": "user", "content": "Please review", "timestamp": MS, "state": "complete"},
            {"id": "m2", "role": "assistant", "content": "", "reasoning": "Hm.", "timestamp": MS, "toolCalls": [call]},
            {"id": "m3", "role": "tool", "content": None, "toolName": "x", "toolParams": {"a": 1}, "toolResult": "ok"},
        ],
    }
    transcript = read(".conversations/c.json", conversation)
    assert transcript.title == "Résumé"
    assert transcript.about == (("id", "c"), ("created", TIME))
    assert [(turn.speaker, turn.kind, turn.time, turn.text) for turn in transcript.turns] == [
        (Speaker.USER, "message", TIME, "Please review"),
        (
            Speaker.ASSISTANT,
            "message",
            TIME,
            (
                "*Reasoning:*\n\nHm.\n\nCalls the tool `read`.\n\n- filePath: `a.md`\n\n"
                'The tool returned:\n\n```json\n{\n  "content": "x"\n}\n```'
            ),
        ),
        (
            Speaker.TOOL,
            "message",
            "",
            "Calls the tool `x`.\n\n- a: 1\n\nThe tool returned:\n\n```\nok\n```",
        ),
    ]
    assert transcript.turns[0].details == "id: m1\nstate: complete"


def test_a_failed_call_has_its_error() -> None:
    call = {"name": "read", "parameters": {"a": "b"}, "success": False, "error": "no such file"}
    (turn,) = read(".conversations/c.json", {"id": "c", "messages": [{"role": "assistant", "toolCalls": [call]}]}).turns
    assert turn.text == "Calls the tool `read`.\n\n- a: `b`\n\nThe tool failed:\n\n```\nno such file\n```"


def test_sessions_traces_and_states_are_turns() -> None:
    session = {
        "id": "s",
        "name": "Setup",
        "startTime": MS,
        "memoryTraces": {"t": {"id": "t", "timestamp": MS, "type": "file_search", "content": "Found 3"}},
        "states": {"x": {"id": "x", "name": "Draft", "created": MS, "state": {"context": {}}}},
    }
    transcript = read(".workspaces/w.json", {"id": "w", "name": "Jobs", "sessions": {"s": session}})
    assert transcript.title == "Jobs"
    assert [(turn.kind, turn.time, turn.text) for turn in transcript.turns] == [
        ("session", TIME, "**Setup**"),
        ("file_search", TIME, "Found 3"),
        ("state", TIME, "**Draft**"),
    ]


def test_events_are_turns_and_the_newest_title_counts() -> None:
    transcript = read(
        ".nexus/conversations/conv_c.jsonl",
        {"type": "metadata", "data": {"id": "c", "title": "Old", "created": MS}, "id": "1", "timestamp": MS},
        {"type": "message", "data": {"id": "m", "role": "user", "content": "Hi"}, "id": "2", "timestamp": MS},
        {"type": "conversation_updated", "data": {"title": "New"}, "id": "3", "timestamp": MS},
        [],
    )
    assert transcript.title == "New"
    assert [(turn.speaker, turn.kind, turn.time, turn.text) for turn in transcript.turns] == [
        (Speaker.SYSTEM, "metadata", TIME, f"- id: `c`\n- title: `Old`\n- created: `{TIME}`"),
        (Speaker.USER, "message", TIME, "Hi"),
        (Speaker.SYSTEM, "conversation_updated", TIME, "- title: `New`"),
    ]
    assert transcript.notes == ("line 4: a JSON array",)


def test_a_text_of_json_in_an_event_is_unpacked() -> None:
    saved = {"type": "state_saved", "data": {"name": "A", "stateJson": '{"a": 1}'}, "id": "1", "timestamp": MS}
    (turn,) = read(".nexus/workspaces/ws_w.jsonl", saved).turns
    assert turn.text == '- name: `A`\n- stateJson:\n\n```json\n{\n  "a": 1\n}\n```'


def test_broken_records_are_notes_and_other_files_are_text() -> None:
    transcript = CLAUDESIDIAN.transcript(".conversations/c.json", {"": b"{"})
    assert transcript.turns == ()
    assert transcript.notes[0].startswith("c.json: ")
    (turn,) = CLAUDESIDIAN.transcript(".conversations/index.json", {"": b"{}"}).turns
    assert (turn.kind, turn.text) == ("file", "{}")
