"""What a person does with a session at a terminal only appends to its file: titles, compaction, going back."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from tests.agents.program import records
from tests.agents.stub import REPLY
from tests.support.formats.claude_code_project import Sides

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.agents.program import Program, Terminal
    from tests.conftest import Run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

UP = "\x1b[A"


@dataclass
class Person:
    """Types commands, and looks at the sessions after each of them."""

    program: Program
    project: Path
    terminal: Terminal
    files: dict[Path, bytes] = field(default_factory=dict)

    def enters(self, text: str, until: Callable[[str], object]) -> list[dict[str, Any]]:
        """Enter it and wait; return the lines that were added, of all sessions."""
        self.terminal.enter(text)
        self.terminal.until(until)
        return self.added()

    def added(self) -> list[dict[str, Any]]:
        """Return the lines that were added since the last look, after a second without a new one.

        No byte that was there is another one.
        """
        before = self.files
        while (content := self._content()) != self.files or content == before:
            self.files = content
            time.sleep(1)
        assert content.keys() >= before.keys()
        lines: list[dict[str, Any]] = []
        for path, now in content.items():
            assert now.startswith(before.get(path, b"")), f"{path.name} was rewritten"
            assert now.endswith(b"\n")
            lines += map(json.loads, now[len(before.get(path, b"")) :].splitlines())
        return lines

    def _content(self) -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in self.program.sessions(self.project)}


def has_replied(shown: str) -> bool:
    return REPLY in shown


def test_commands_at_a_terminal_only_append(program: Program, project: Path) -> None:
    with program.terminal(cwd=project) as terminal:
        person = Person(program, project, terminal)
        for prompt in ("Begun.", "Gone on."):
            person.enters(prompt, has_replied)
        (session,) = person.files

        renamed = person.enters("/rename a new name", lambda shown: "renamed" in shown)
        assert {"type": "custom-title", "customTitle": "a new name", "sessionId": session.stem} in renamed

        compacted = person.enters("/compact", lambda shown: "Compacted" in shown)
        (boundary,) = [each for each in compacted if each.get("subtype") == "compact_boundary"]
        assert boundary["parentUuid"] is None
        assert boundary["logicalParentUuid"] in {each.get("uuid") for each in records(session)}
        (summary,) = [each for each in compacted if each.get("isCompactSummary")]
        assert summary["parentUuid"] == boundary["uuid"]

        person.enters("To be undone.", has_replied)
        terminal.enter("/rewind")
        terminal.until(lambda shown: "(current)" in shown)
        terminal.press(UP)
        time.sleep(1)
        terminal.press("\r")
        terminal.until(lambda shown: "Restore conversation" in shown)
        time.sleep(1)  # a key that comes with the menu is lost
        terminal.press("\r")
        terminal.until(lambda shown: "To be" in shown)
        time.sleep(1)
        branch = person.enters(" Another way.", has_replied)
        undone, instead = (
            next(each["parentUuid"] for each in lines if _prompt(each).endswith(text))
            for lines, text in ((records(session), "undone."), (branch, "Another way."))
        )
        assert undone == instead

        assert [*person.files] == [session]
        cleared = person.enters("/clear", lambda shown: "Another way." not in shown)
        (new,) = person.files.keys() - {session}
        assert {"type": "custom-title", "customTitle": "a new name", "sessionId": new.stem} in cleared


def test_a_compacted_session_that_was_lost_goes_on_from_its_summary(
    program: Program, project: Path, session: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(program.home))
    sides = Sides(project, run)
    with program.terminal("--resume", session.stem, cwd=project) as terminal:
        person = Person(program, project, terminal)
        person.enters("Before it.", has_replied)
        person.enters("/compact", lambda shown: "Compacted" in shown)
        person.enters("After it.", has_replied)
    sides.reconcile()
    before = session.read_bytes()
    sides.lose()
    sides.reconcile("recover", "--yes")
    assert session.read_bytes() == before
    turn = program.say("Resumed.", cwd=project, resume=session.stem)
    assert any("continued from a previous conversation" in text for text in turn.sent)
    assert [text for text in turn.sent if text in ("After it.", "Resumed.")] == ["After it.", "Resumed."]


def _prompt(record: dict[str, Any]) -> str:
    content = record.get("message", {}).get("content")
    return content if record.get("type") == "user" and isinstance(content, str) else ""
