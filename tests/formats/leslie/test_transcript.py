"""Readable turns of Leslie's records (docs/design/formats/leslie.md)."""

from __future__ import annotations

import json
import time
from typing import Any

from reconcile.formats import get_format
from reconcile.model.transcript import Speaker

LESLIE = get_format("leslie")
TIME = "2026-11-21T20:21:30.400Z"


def texts(conversation: str, content: bytes) -> list[tuple[Speaker, str, str, str]]:
    turns = LESLIE.transcript(conversation, {"": content}).turns
    return [(turn.speaker, turn.kind, turn.time, turn.text) for turn in turns]


def test_operations_and_threads_are_turns() -> None:
    operation = {
        "id": "op-1",
        "timestamp": TIME,
        "command": "spawn",
        "operator": "agent",
        "params": {"thread_id": "thread-1", "parent_id": None, "intent": "Survey", "inherit_scope": []},
    }
    thread = {"id": "thread-1", "title": "Survey", "status": "active", "updated_at": TIME, "tags": ["a", "b"]}
    document: dict[str, Any] = {
        "version": "1.0",
        "metadata": {"thread_count": 1},
        "threads": {"thread-1": thread},
        "operations": [operation],
        "relations": {"thread-1": {"children": ["thread-2"], "depends_on": []}},
    }
    content = json.dumps(document).encode()
    assert texts("thread_relations.json", content) == [
        (Speaker.ASSISTANT, "spawn", TIME, "- thread_id: `thread-1`\n- intent: `Survey`"),
        (
            Speaker.SYSTEM,
            "thread",
            TIME,
            "**Survey** (thread-1)\n\n- status: `active`\n- tags: `a, b`\n- children: `thread-2`",
        ),
    ]
    transcript = LESLIE.transcript("thread_relations.json", {"": content})
    assert transcript.about == (("version", "1.0"), ("thread_count", "1"))
    assert transcript.turns[0].details == "id: op-1"


def test_objectives_are_turns() -> None:
    record = {"id": "obj-1", "title": "Research", "updated_at": TIME, "status": "active", "thread_ids": ["t1", "t2"]}
    assert texts("objectives.json", json.dumps({"objectives": {"obj-1": record}}).encode()) == [
        (Speaker.SYSTEM, "objective", TIME, "**Research** (obj-1)\n\n- status: `active`\n- thread_ids: `t1, t2`")
    ]


def test_a_broken_control_file_is_a_note() -> None:
    for name in ("thread_relations.json", "objectives.json"):
        transcript = LESLIE.transcript(name, {"": b"{"})
        assert transcript.turns == ()
        assert transcript.notes[0].startswith(f"{name}: ")


def test_lines_of_logs_are_turns() -> None:
    log = f'level=info msg="Objective \\"x\\" created" time={TIME} id=obj-1\n\nnot a pair\n'.encode()
    assert texts("logs/obj-1/objective.log", log) == [
        (Speaker.SYSTEM, "info", TIME, 'Objective "x" created\n\n- level: `info`\n- id: `obj-1`'),
        (Speaker.SYSTEM, "line", "", "not a pair"),
    ]
    line = {"event": "worker_started", "thread_id": "thread-1", "timestamp": TIME, "success": True}
    assert texts("logs/workers/thread-1.ndjson", json.dumps(line).encode() + b"\n") == [
        (Speaker.SYSTEM, "worker_started", TIME, "- thread_id: `thread-1`\n- success: true")
    ]


def test_a_truncated_line_with_much_in_it_takes_no_time() -> None:
    begin = time.monotonic()
    (turn,) = texts("logs/sdk/thread-1.ndjson", b'{"image":"' + b"A" * 200_000)
    assert turn[1] == "line"
    assert time.monotonic() - begin < 5


def test_the_files_of_a_thread_come_before_its_transcripts() -> None:
    said = "Thread ID: thread-1\n---\nuser:\nWhy?\n\nassistant:\nuser: is no heading here\n"
    contents = {".meta/transcripts/1-why.txt": said.encode(), "plan.md": b"# Plan\n", "learnings/a.md": b"\xff"}
    transcript = LESLIE.transcript("threads/thread-1", contents)
    assert transcript.title == "thread-1"
    assert [(turn.position, turn.speaker, turn.kind, turn.text) for turn in transcript.turns] == [
        (1, Speaker.SYSTEM, "learnings/a.md", "(binary, 1 bytes)"),
        (2, Speaker.SYSTEM, "plan.md", "# Plan"),
        (3, Speaker.SYSTEM, "1-why.txt", "Thread ID: thread-1"),
        (4, Speaker.USER, "message", "Why?"),
        (5, Speaker.ASSISTANT, "message", "user: is no heading here"),
    ]


def test_any_other_file_is_one_turn() -> None:
    assert texts("AGENTS.md", b"# Agents\n") == [(Speaker.SYSTEM, "file", "", "# Agents")]
