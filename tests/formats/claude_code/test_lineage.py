"""Which session is a fork of which other one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from reconcile.formats.claude_code.ends import ends_of
from reconcile.formats.claude_code.lineage import Lineage, families, parents
from tests.agents.program import VERSIONS
from tests.agents.record import RECORDED

if TYPE_CHECKING:
    from collections.abc import Mapping


def session(text: str, *, asked: str = "", used: int = 90) -> tuple[bytes, str]:
    """The lines of a session: a letter and the minute of each, such as ``a1 b2``; without a letter, of the program."""
    lines = []
    for word in text.split():
        key, number = word.rstrip("0123456789"), word.lstrip("abcdefghijklmnopqrstuvwxyz")
        line: dict[str, Any] = {"timestamp": time(int(number))} | ({"uuid": key} if key else {})
        lines.append(json.dumps(line | ({"requestSessionId": asked} if asked else {})))
    return "\n".join(lines).encode(), time(used)


def time(minute: int) -> str:
    return f"2026-01-31T12:{minute:02}:00.000Z"


def found(**sessions: tuple[bytes, str]) -> dict[str, str]:
    first = {name: ends_of(content).first for name, (content, _) in sessions.items()}
    above: dict[str, str] = {}
    for family in families(first):
        above |= parents({name: Lineage.of([sessions[name][0]], sessions[name][1]) for name in family}, first)
    return above


CASES: list[tuple[Mapping[str, tuple[bytes, str]], dict[str, str]]] = [
    ({"one": session("a1 b2"), "two": session("c1 d2")}, {}),
    ({"one": session("a1 b2 c3"), "two": session("a1 b2 d4")}, {"two": "one"}),
    ({"one": session("a1 b2", used=3), "two": session("a1 b2 d4", used=5)}, {"two": "one"}),
    ({"one": session("a1 b2 c3", used=4), "two": session("a1 b2", used=5)}, {"two": "one"}),
    ({"one": session("a1 b2", used=9), "two": session("a1 b2", used=5)}, {"one": "two"}),
    ({"one": session("a1 b2"), "two": session("a1 b2")}, {"two": "one"}),
    # The program's own line at the beginning is older than the copies.
    ({"one": session("1 a2 b3 d9"), "two": session("5 a2 b3 c6")}, {"two": "one"}),
    # A fork names the session that the model was asked in, also if that one went on later.
    ({"one": session("a1 b2 c9"), "two": session("a1 b2 d4", asked="one")}, {"two": "one"}),
    ({"two": session("a1 b2 c9"), "one": session("a1 b2 d4", asked="two")}, {"one": "two"}),
    # A fork of a fork has more lines in common with that.
    (
        {"one": session("a1 b2 c3"), "two": session("a1 b2 d4", used=4), "three": session("a1 b2 d4 e5")},
        {"two": "one", "three": "two"},
    ),
    # Of two that have the same lines in common, the oldest is the parent.
    (
        {"three": session("a1 b2 e5"), "two": session("a1 b2 d4"), "one": session("a1 b2 c3")},
        {"two": "one", "three": "one"},
    ),
    # Half of the first lines is not most of them.
    ({"one": session("a1 b2", used=2), "two": session("a1 b2 c3 d4")}, {}),
    ({"one": session("a1 b2"), "two": session("x1 a1 y2")}, {}),
    ({"one": session("a1 b2 e9"), "two": session("a1 b2 c3 d4")}, {"one": "two"}),
]


@pytest.mark.parametrize(("sessions", "above"), CASES)
def test_the_parent(sessions: Mapping[str, tuple[bytes, str]], above: dict[str, str]) -> None:
    assert found(**sessions) == above
    assert found(**{name: sessions[name] for name in reversed(tuple(sessions))}) == above


def test_families() -> None:
    first = {"a": ("1", "2"), "b": ("3",), "c": ("2", "4"), "d": ("4",), "e": (), "f": ("5",), "g": ("3", "5")}
    assert sorted(map(sorted, families(first))) == [["a", "c", "d"], ["b", "f", "g"]]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_fork_that_the_program_made(version: str) -> None:
    sessions = {path.stem: (path.read_bytes(), time(0)) for path in (RECORDED / version / "forked").glob("*.jsonl")}
    (ancestor,) = {path.stem for path in (RECORDED / version / "plain").glob("*.jsonl")}
    (fork,) = sessions.keys() - {ancestor}
    assert found(**sessions) == {fork: ancestor}
