"""Sessions of versions with other layouts, and of later ones (docs/design/formats/claude-code.md#older-versions)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from reconcile.formats import get_format
from reconcile.formats.claude_code.format import ClaudeCodeFormat
from reconcile.model.snapshot import Metadata
from reconcile.model.transcript import Speaker
from tests.agents.program import OLDER, VERSIONS
from tests.agents.record import RECORDED

if TYPE_CHECKING:
    from pathlib import Path

    from reconcile.model.transcript import Transcript

CLAUDE = get_format("claude-code")
PLACES = ClaudeCodeFormat()
EVERY = [*OLDER, *VERSIONS]
OF_TOMORROW = [
    b'{"type":"a-kind-of-tomorrow","uuid":"11111111-0000-4000-8000-000000000000","payload":{"n":[1]}}',
    b'{"type":"another-state","sessionId":"x"}',
    b'{"kind":7}',
    b"{}",
]


def read(path: Path, content: bytes | None = None) -> Transcript:
    return CLAUDE.transcript(path.name, {"": path.read_bytes() if content is None else content})


def sessions(version: str) -> list[Path]:
    return sorted((RECORDED / version).glob("*/*-*-*-*-*.jsonl"))


@pytest.mark.parametrize("version", OLDER)
def test_an_older_session_is_read(version: str) -> None:
    (path,) = (RECORDED / version).glob("continued/*.jsonl")
    transcript = read(path)
    spoken = [turn for turn in transcript.turns if turn.speaker in (Speaker.USER, Speaker.ASSISTANT)]
    assert [turn.text for turn in spoken if turn.speaker is Speaker.USER] == ["The first prompt.", "Continued."]
    assert [turn.time for turn in spoken] == sorted(turn.time for turn in spoken)
    assert all(turn.time.startswith("2026-") for turn in spoken)
    assert transcript.notes == ()
    assert dict(transcript.about)["version"] == version


@pytest.mark.parametrize("version", OLDER)
def test_an_older_subagent_is_read(version: str) -> None:
    directory = RECORDED / version / "subagent"
    texts = [turn.text for path in directory.glob("*.jsonl") for turn in read(path).turns]
    assert any("Calls the tool `Task`." in text for text in texts)
    agents = [path.name for path in directory.glob("agent-*.jsonl")]
    assert all(PLACES.entry(name, directory=False).name == "RECORD" for name in agents)
    assert bool(agents) is (version != "1.0.128"), "1.0 has it in the session itself"


@pytest.mark.parametrize("path", [path for each in EVERY for path in sessions(each)], ids=lambda path: path.parent.name)
def test_a_version_that_adds_kinds_and_members_changes_nothing(path: Path) -> None:
    before = read(path)
    lines = []
    for number, line in enumerate(path.read_bytes().splitlines()):
        lines += [OF_TOMORROW[number % len(OF_TOMORROW)]]
        try:
            lines += [json.dumps({"ofTomorrow": {"a": [None]}, **json.loads(line)}, ensure_ascii=False).encode()]
        except ValueError:  # a line that is torn
            lines += [line]
    content = b"\n".join(lines) + b"\n"
    after = read(path, content)
    assert after.title == before.title
    assert [(turn.speaker, turn.time, turn.text) for turn in after.turns] == [
        (turn.speaker, turn.time, turn.text) for turn in before.turns
    ]
    assert len(after.notes) == len(before.notes)
    assert isinstance(PLACES.read_log(path.name, [content]).record, Metadata)
