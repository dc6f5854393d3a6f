"""Forks of a session: the id in its lines, the part that is kept, and the title."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reconcile.formats.claude_code.format import ClaudeCodeFormat
from reconcile.model.format import EventSelection

CLAUDE = ClaudeCodeFormat()
ID, NEW = "83fbb9a0-7f21-4118-8828-12337376277a", "034ea297-b3cf-45ab-a5fb-4b4f6e1aca99"
SESSION = f"{ID}.jsonl"
NOON_NS = 1_769_860_800 * 10**9


def line(**members: Any) -> bytes:
    return json.dumps({"sessionId": ID, **members}, separators=(",", ":")).encode() + b"\n"


def said(number: int, minute: int | None = None) -> bytes:
    time = {} if minute is None else {"timestamp": f"2026-01-31T12:{minute:02}:00.000Z"}
    return line(type="user", uuid=f"00000000-0000-4000-8000-00000000000{number}", **time)


STATE = line(type="mode", mode="plan")
LATE = line(type="queue-operation", timestamp="2026-01-31T13:00:00.000Z")
A, B, C = said(1, 1), said(2, 2), said(3, 3)
TITLE = line(type="ai-title", aiTitle="A title")
WHOLE = LATE + A + STATE + B + TITLE + STATE + C + STATE


def cut(content: bytes, **part: Any) -> bytes:
    return CLAUDE.cut_stream({"": content}, EventSelection(**part))[""]


def minute(number: int) -> int:
    return NOON_NS + number * 60 * 10**9


@pytest.mark.parametrize(
    ("content", "part", "kept"),
    [
        (WHOLE, {}, A + B + TITLE + C),
        (WHOLE + TITLE + b'{"torn', {}, A + B + TITLE + C + TITLE),
        (WHOLE + C[:-1], {}, A + B + TITLE + C + C),
        (WHOLE, {"until_ns": minute(2)}, A + B),
        (WHOLE, {"until_ns": minute(9)}, A + B + TITLE + C),
        (A + said(2) + C, {"until_ns": minute(1)}, A + said(2)),
        (A + b"no object\n" + line(uuid=1) + B, {"until_ns": minute(1)}, A),
        (WHOLE, {"event": "00000000-0000-4000-8000-000000000002"}, A + B),
        (WHOLE, {"event": "00000000-0000-4000-8000-000000000003"}, A + B + TITLE + C),
    ],
)
def test_the_part_that_is_kept(content: bytes, part: dict[str, Any], kept: bytes) -> None:
    assert cut(content, **part) == kept


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"from_ns": 0}, "begins with the session"),
        ({"last": 1}, "begins with the session"),
        ({"until_ns": 0}, "no line of the conversation up to there"),
        ({"event": NEW}, "no line has this uuid"),
    ],
)
def test_a_part_that_is_none(part: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        cut(WHOLE, **part)


def test_a_fork_has_its_id_in_its_name_and_in_each_line() -> None:
    nested = line(toolUseResult={"sessionId": ID})
    new, content = CLAUDE.forked(SESSION, WHOLE + nested, NEW)
    assert new == f"{NEW}.jsonl"
    assert content == WHOLE.replace(ID.encode(), NEW.encode()) + nested.replace(ID.encode(), NEW.encode(), 1)
    assert CLAUDE.forked(f"{ID}/subagents/agent-a.jsonl", A, NEW) == (
        f"{NEW}/subagents/agent-a.jsonl",
        A.replace(ID.encode(), NEW.encode()),
    )
    assert CLAUDE.forked(f"{ID}/tool-results/a.txt", A, NEW) == (f"{NEW}/tool-results/a.txt", A)


def test_a_fork_without_a_name_has_one_by_its_content() -> None:
    (one, content), (two, _) = CLAUDE.forked(SESSION, A), CLAUDE.forked(SESSION, A + B)
    assert CLAUDE.forked(SESSION, A) == (one, content)
    assert len({one, two, SESSION}) == 3


def test_a_title_is_written_as_the_program_writes_one() -> None:
    titled = CLAUDE.forked_metadata(A, parent=SESSION, title='A "title"')
    assert CLAUDE.forked_metadata(A, parent=SESSION, title=None) == A
    assert json.loads(titled.splitlines()[-1]) == {"type": "custom-title", "customTitle": 'A "title"', "sessionId": ID}
