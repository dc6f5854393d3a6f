"""The recorded sessions: they have what the program writes, and no text but ours."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.agents.program import OLDER, VERSIONS, records
from tests.agents.record import RECORDED, plain_file

if TYPE_CHECKING:
    from pathlib import Path

FILES = sorted(path for path in RECORDED.rglob("*") if path.is_file() and "torn" not in path.parts)
STORIES = ["continued", "forked", "plain", "subagent", "torn"]


@pytest.fixture(params=(*OLDER, *VERSIONS))
def recorded(request: pytest.FixtureRequest) -> Path:
    directory: Path = RECORDED / request.param
    assert sorted(path.name for path in directory.iterdir()) == STORIES
    return directory


def session_in(directory: Path) -> Path:
    (session,) = directory.glob("*-*-*-*-*.jsonl")
    return session


@pytest.mark.parametrize("file", FILES, ids=[str(file.relative_to(RECORDED)) for file in FILES])
def test_no_text_is_the_vendors(file: Path) -> None:
    assert plain_file(file, {}) == file.read_text()
    assert file.stat().st_size < 40_000


def test_the_stories_are_what_their_names_say(recorded: Path) -> None:
    plain, continued = session_in(recorded / "plain"), session_in(recorded / "continued")
    assert continued.name == plain.name
    assert continued.read_bytes().startswith(plain.read_bytes())
    fork = session_in(recorded / "subagent")
    ids = {each["uuid"] for each in records(plain) if "uuid" in each}
    assert ids < {each["uuid"] for each in records(recorded / "forked" / fork.name) if "uuid" in each}
    if recorded.name in VERSIONS:
        assert list(recorded.glob("subagent/*/subagents/agent-*.jsonl"))
        assert list(recorded.glob("subagent/*/tool-results/*.txt"))
        return
    agents = list(recorded.glob("subagent/**/agent-*.jsonl")) or [fork]
    sidechains = [each for path in agents for each in records(path) if each.get("isSidechain")]
    assert {each["sessionId"] for each in sidechains} == {fork.stem}


def test_the_last_line_is_torn(recorded: Path) -> None:
    content = session_in(recorded / "torn").read_bytes()
    assert session_in(recorded / "continued").read_bytes().startswith(content)
    torn = content.rpartition(b"\n")[2]
    assert torn
    with pytest.raises(json.JSONDecodeError):
        json.loads(torn)
