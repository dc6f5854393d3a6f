"""The program's own deletion of old sessions, and the sessions that come back after it (`make agents`).

It comes ten minutes after a start at a terminal, so both versions run at once.
"""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.agents.program import VERSIONS, Program, UnavailableError, install
from tests.agents.sessions import FIRST, age, fork_by_hand, has_history
from tests.agents.stub import LONG_OUTPUT, SUBAGENT, Stub
from tests.support.formats.claude_code_project import Sides, carried

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import Run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

DAYS = 2
"""The shortest period that spares a restored session; the program takes 1, too."""
PATIENCE = 900
"""Seconds until the deletion at most. It came 632 to 638 seconds after the start."""


@dataclass(frozen=True)
class Home:
    """A version with an old session, that has files beside it, and a younger one, that came back before."""

    program: Program
    project: Path
    run: Run
    old: Path
    restored: Path

    @property
    def sides(self) -> Sides:
        return Sides(self.project, self.run)

    def wait_for_the_sweep(self) -> None:
        with self.program.terminal(cwd=self.project) as terminal:
            terminal.enter("Typed.")
            terminal.until(lambda _: not self.old.exists(), PATIENCE)
            time.sleep(2)


@pytest.fixture
def homes(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Home]]:
    with Stub(tmp_path / "log") as stub:
        made = {}
        for version in VERSIONS:
            try:
                program = Program(install(version), tmp_path / version / "home", stub)
            except UnavailableError as error:
                pytest.skip(str(error))
            monkeypatch.setenv("HOME", str(program.home))
            made[version] = _home(program, tmp_path / version / "project", run)
        yield made


def _home(program: Program, project: Path, run: Run) -> Home:
    for prompt in (FIRST, LONG_OUTPUT, SUBAGENT):
        program.say(prompt, cwd=project, cont=prompt != FIRST)
    (old,) = program.sessions(project)
    notes = old.parent / "memory" / "MEMORY.md"
    notes.parent.mkdir(exist_ok=True)
    notes.write_text("Remember the milk.\n")
    restored = fork_by_hand(old)
    home = Home(program, project, run, old, restored)
    for path in (*old.with_suffix("").rglob("*"), old, notes, restored):
        age(path, 40)
    home.sides.reconcile()
    restored.unlink()
    home.sides.reconcile()
    home.sides.reconcile("recover", "--yes")
    assert restored.exists()
    (program.config / "settings.json").write_text(json.dumps({"cleanupPeriodDays": DAYS}))
    return home


def test_swept_sessions_come_back_and_go_on(homes: dict[str, Home], monkeypatch: pytest.MonkeyPatch) -> None:
    with ThreadPoolExecutor(len(homes)) as pool:
        list(pool.map(Home.wait_for_the_sweep, homes.values()))
    for home in homes.values():
        monkeypatch.setenv("HOME", str(home.program.home))
        assert not home.old.with_suffix("").exists(), "the files beside a session are deleted with it"
        assert home.restored.exists(), "what reconcile has brought back is spared"
        assert (home.old.parent / "memory" / "MEMORY.md").exists(), "notes are spared"
        assert (home.program.config / ".last-cleanup").exists()
        before = carried(home.sides.store)
        home.sides.reconcile()
        home.sides.reconcile("recover", "--yes")
        assert {name: content for name, content in carried(home.sides.live).items() if name in before} == before
        turn = home.program.say("Resumed.", cwd=home.project, resume=home.old.stem)
        assert has_history(turn)
        assert SUBAGENT in turn.sent
        assert home.program.say("Continued.", cwd=home.project, cont=True).sent[-2:] == [
            turn.output.strip(),
            "Continued.",
        ]
        home.sides.reconcile()
