"""Readable turns of a session (docs/design/formats/claude-code.md#lines)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from reconcile.formats import get_format
from reconcile.model.transcript import Speaker
from tests.agents.program import VERSIONS
from tests.agents.record import RECORDED

if TYPE_CHECKING:
    from pathlib import Path

    from reconcile.model.transcript import Transcript

CLAUDE = get_format("claude-code")
SESSION = "83fbb9a0-7f21-4118-8828-12337376277a.jsonl"
TIME = "2026-11-28T07:10:02.533Z"
TURNS = [
    (Speaker.USER, "The first prompt."),
    (Speaker.ASSISTANT, "This is reply 1."),
    (Speaker.USER, "Continued."),
    (Speaker.ASSISTANT, "This is reply 2."),
]


@pytest.fixture(params=VERSIONS)
def recorded(request: pytest.FixtureRequest) -> Path:
    directory: Path = RECORDED / request.param
    return directory


def shown(*lines: bytes | dict[str, Any]) -> Transcript:
    content = b"".join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines)
    return CLAUDE.transcript(SESSION, {"": content})


def spoken(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": role, "uuid": "u", "timestamp": TIME, "message": {"role": role, "content": content}, **more}


def text_of(*parts: Any) -> str:
    (turn,) = shown(spoken("assistant", list(parts))).turns
    return turn.text


def read(path: Path) -> Transcript:
    return CLAUDE.transcript(path.name, {"": path.read_bytes()})


def test_a_session_of_two_turns(recorded: Path) -> None:
    (path,) = recorded.glob("continued/*.jsonl")
    transcript = read(path)
    assert [(turn.speaker, turn.text) for turn in transcript.turns] == TURNS
    assert (transcript.title, transcript.notes) == ("The first prompt.", ())
    assert dict(transcript.about) == {"cwd": "/home/ada/project", "gitBranch": "HEAD", "version": recorded.name}
    positions = [turn.position for turn in transcript.turns]
    assert positions == sorted(set(positions))
    assert all(turn.time.startswith("2026-11-28T") for turn in transcript.turns)
    assert len({turn.key for turn in transcript.turns}) == 4


def test_turns_do_not_depend_on_later_lines(recorded: Path) -> None:
    plain, continued, torn = (next(recorded.glob(f"{story}/*.jsonl")) for story in ("plain", "continued", "torn"))
    assert read(plain).turns == read(continued).turns[:2]
    assert read(torn).turns == read(continued).turns
    assert read(torn).notes == (f"line {len(torn.read_bytes().splitlines())}: no JSON object",)


def test_tools_and_a_subagent(recorded: Path) -> None:
    (path,) = recorded.glob("subagent/*.jsonl")
    turns = read(path).turns
    texts = [turn.text for turn in turns if turn.speaker is Speaker.ASSISTANT]
    assert "Calls the tool `Bash`.\n\n- command: `seq 20000`" in texts
    assert sum(text.startswith("Calls the tool `Agent`.") for text in texts) == 1
    results = [turn for turn in turns if turn.speaker is Speaker.TOOL]
    assert len(results) == 2
    assert all(turn.text.startswith("The tool returned:") for turn in results)
    (agent,) = recorded.glob("subagent/*/subagents/*.jsonl")
    assert next(iter(read(agent).turns)).text == "Count to three."
    assert read(agent).title == "Count to three."


def test_other_files_are_texts(recorded: Path) -> None:
    (result,) = recorded.glob("subagent/*/tool-results/*.txt")
    (turn,) = read(result).turns
    assert turn.text.splitlines() == [str(number) for number in range(1, 11)]
    assert CLAUDE.transcript(SESSION, {}).turns == ()


PARTS: list[tuple[Any, str]] = [
    ({"type": "text", "text": "A *text*."}, "A *text*."),
    ({"type": "text", "text": None}, ""),
    ({"type": "thinking", "thinking": "Hm."}, "*Reasoning:*\n\nHm."),
    ({"type": "thinking", "thinking": ""}, ""),
    ({"type": "tool_use", "name": "Read", "input": {"path": "a"}}, "Calls the tool `Read`.\n\n- path: `a`"),
    ({"type": "tool_use", "name": "Odd", "input": [1]}, "Calls the tool `Odd`.\n\n```json\n[\n  1\n]\n```"),
    ({"type": "tool_result", "content": "ok"}, "The tool returned:\n\n```\nok\n```"),
    ({"type": "tool_result", "content": "no", "is_error": True}, "The tool failed:\n\n```\nno\n```"),
    ({"type": "tool_result", "content": [{"type": "text", "text": "ok"}]}, "The tool returned:\n\nok"),
    ({"type": "tool_result", "content": None}, "The tool returned:"),
    ({"type": "image", "source": {"data": "AAAA"}}, "*(image)*"),
    ({"type": "document", "source": {}}, "*(document)*"),
    ({"type": "new-kind"}, '```json\n{\n  "type": "new-kind"\n}\n```'),
    (5, "```json\n5\n```"),
]


@pytest.mark.parametrize(("part", "text"), PARTS)
def test_the_parts_of_a_message(part: Any, text: str) -> None:
    assert text_of(part) == text


def test_parts_are_paragraphs() -> None:
    assert text_of({"type": "text", "text": "One."}, {"type": "image"}, {"type": "text", "text": "Two."}) == (
        "One.\n\n*(image)*\n\nTwo."
    )


def test_the_speaker_of_a_turn() -> None:
    result = [{"type": "tool_result", "content": "ok"}]
    lines = spoken("user", "a"), spoken("assistant", "b"), spoken("user", result), spoken("other", "c")
    speakers = [turn.speaker for turn in shown(*lines).turns]
    assert speakers == [Speaker.USER, Speaker.ASSISTANT, Speaker.TOOL, Speaker.SYSTEM]


def test_members_that_the_text_lacks_are_details() -> None:
    (turn,) = shown(spoken("user", "a", gitBranch="main", toolUseResult="not repeated")).turns
    assert turn.details.splitlines() == ["uuid: u", "gitBranch: main"]
    assert (turn.kind, turn.time) == ("user", TIME)


ODD: list[bytes | dict[str, Any]] = [
    b"no object",
    b"[]",
    b'{"torn',
    b"\0\xff",
    {"type": "user", "uuid": 5, "message": {}},
    {"type": "user", "uuid": "u", "message": "text"},
    {"uuid": "u", "message": {}},
    {"type": {}, "uuid": "u", "message": {"content": 5, "role": []}, "timestamp": [], "cwd": {"a": 1}},
]


@pytest.mark.parametrize("line", ODD)
def test_an_odd_line_hides_no_turn(line: bytes | dict[str, Any]) -> None:
    transcript = shown(line, spoken("user", "Typed."))
    assert transcript.turns[-1].text == "Typed."
    assert transcript.notes == (("line 1: no JSON object",) if isinstance(line, bytes) else ())


def test_half_of_a_pair_is_shown_escaped() -> None:
    transcript = shown(spoken("user", "cut \ud83d"), {"type": "ai-title", "aiTitle": "Cut \ud83d"})
    (turn,) = transcript.turns
    assert (turn.text, transcript.title, transcript.notes) == ("cut \\ud83d", "Cut \ufffd", ())


def test_a_line_that_is_nested_too_deeply_is_a_note() -> None:
    deep = b'{"uuid":"u","message":{"content":' + b"[" * 100_000 + b"]" * 100_000 + b"}}"
    transcript = shown(deep, spoken("user", "Typed."))
    assert [turn.text for turn in transcript.turns] == ["Typed."]
    assert len(transcript.notes) == 1
