"""What a listing shows of a session by the two ends of its file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from reconcile.formats.claude_code.ends import FIRST, Ends, ends_of
from tests.agents.program import VERSIONS
from tests.agents.record import RECORDED

if TYPE_CHECKING:
    from pathlib import Path


def line(**members: Any) -> bytes:
    return json.dumps(members, separators=(",", ":")).encode() + b"\n"


def said(text: str, uuid: str = "", **members: Any) -> bytes:
    return line(type="user", uuid=uuid, message={"role": "user", "content": text}, **members)


def test_a_whole_file() -> None:
    content = (
        b"no object\n"
        + said("Begin.", "1", gitBranch="main", timestamp="T1")
        + said("Go on.", "2", gitBranch="topic", timestamp="T2")
        + line(type="mode")
        + line(type="queue-operation", timestamp="T3")
    )
    assert ends_of(content) == Ends("Begin.", "", "topic", "T3", ("1", "2"))
    assert ends_of(b"") == Ends(None, "", "", "", ())
    assert ends_of(line(gitBranch=1, timestamp=2, uuid=3)) == Ends(None, "", "", "", ())


def test_titles_of_both_ends() -> None:
    head = said("A prompt with a summary.", "1", gitBranch="main", timestamp="T1") + said("x" * 300)[:200]
    custom, generated = line(type="custom-title", customTitle="Mine"), line(type="ai-title", aiTitle="Its")
    assert ends_of(head, b'cut"}\n' + line(type="mode")) == Ends("A prompt with a summary.", "", "main", "T1", ("1",))
    assert ends_of(head, b"cut\n" + generated).title == "Its"
    assert ends_of(head, b"cut\n" + custom + generated).title == "Mine"
    assert ends_of(custom + head, b"cut\n" + generated).title == "Mine"


def test_a_title_of_the_last_part_is_the_newest() -> None:
    custom, generated = line(type="custom-title", customTitle="Mine"), line(type="ai-title", aiTitle="Its")
    assert ends_of(custom, b"cut\n" + generated).newest == ""
    assert ends_of(custom + said("x"), b"cut\n" + custom + said("y")).newest == "Mine"
    assert ends_of(custom + said("x")).newest == "Mine"


def test_only_the_first_uuids_count() -> None:
    assert ends_of(b"".join(said("x", str(number)) for number in range(40))).first == tuple(map(str, range(FIRST)))


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*/*/*.jsonl")), ids=lambda path: path.parent.name)
def test_recorded_sessions(path: Path) -> None:
    content = path.read_bytes()
    facts = ends_of(content)
    version = path.parent.parent.name
    assert facts.branch == ("HEAD" if version in VERSIONS else "")
    if path.name.startswith("agent-"):
        assert facts.title in (None, "Count to three.")
    elif b'"type":"summary"' in content:
        assert facts.title in ("This is reply 2.", "This is reply 4.")
    else:
        assert facts.title == "The first prompt."
    assert facts.last.startswith("20")
    if version in VERSIONS:  # in the short files of the older ones, the cut is in the only line with a title
        half = len(content) // 2
        assert ends_of(content[:half], content[half:]).title == facts.title
