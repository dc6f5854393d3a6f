"""Every project of a home, kept beside the running program."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.formats.claude_code_project import Sides, carried
from tests.support.projects.git_world import git
from tests.support.projects.watcher import Watching, until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.agents.program import Program
    from tests.conftest import Run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_turns_in_new_projects_are_kept_and_resumed_after_a_rename(
    program: Program, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watcher has started before the program's first start in this home."""
    monkeypatch.setenv("HOME", str(program.home))
    one, other = Sides(tmp_path / "one", run), Sides(tmp_path / "two words", run)
    with Watching(None) as watching:
        for each in (one, other):
            each.project.mkdir()
        git(one.project, "init", "--quiet")
        for each in (one, other):
            program.say("The first prompt.", cwd=each.project)
            program.say("The second prompt.", cwd=each.project, cont=True)
            until(lambda each=each: each.live.is_dir() and carried(each.store) == carried(each.live))  # type: ignore[misc]
        before = carried(one.live)
        one.project.rename(tmp_path / "renamed")
        assert watching.stop() == 0
    assert run("--all").exit_code == 0
    renamed = Sides(tmp_path / "renamed", run)
    result = run("recover", "--from", one.project, "--yes", "-w", renamed.project)
    assert result.exit_code == 0, result.output
    assert carried(renamed.live) == before
    turn = program.say("Continued.", cwd=renamed.project, cont=True)
    assert [text for text in turn.sent if "prompt" in text] == ["The first prompt.", "The second prompt."]
    assert run("--all").exit_code == 0
    assert carried(renamed.store) == carried(renamed.live)
