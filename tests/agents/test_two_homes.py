"""Two homes with a clone each, whose sessions come through a store that is copied, or through the repository."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from tests.agents.sessions import FIRST, has_history
from tests.agents.stub import LONG_OUTPUT
from tests.support.formats.claude_code_project import Sides, carried
from tests.support.projects.git_world import git

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.agents.program import Program, Turn
    from tests.conftest import Run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@dataclass(frozen=True)
class Machine:
    """A home with a clone at its own path, and reconcile's data."""

    program: Program
    project: Path
    run: Run

    @contextmanager
    def here(self) -> Iterator[Sides]:
        """Be this machine's user."""
        with pytest.MonkeyPatch.context() as patch:
            for name, below in {"HOME": "", "XDG_DATA_HOME": ".data", "XDG_STATE_HOME": ".state"}.items():
                patch.setenv(name, str(self.program.home / below))
            yield Sides(self.project, self.run)

    def reconcile(self, *args: str) -> None:
        with self.here() as sides:
            sides.reconcile(*args)

    def sync(self, *args: str) -> None:
        """Run it where it may write into the repository."""
        with self.here():
            result = self.run(*args, "-w", self.project)
        assert result.exit_code == 0, result.output

    def say(self, prompt: str, session: str) -> Turn:
        return self.program.say(prompt, cwd=self.project, resume=session)

    def sessions(self) -> list[str]:
        return [path.stem for path in self.program.sessions(self.project)]

    def send_store(self, other: Machine) -> None:
        """Copy the store over that of another machine, times and all, as ``rsync -a`` does."""
        with self.here() as ours:
            source = ours.store
        with other.here() as theirs:
            shutil.copytree(source, theirs.store, dirs_exist_ok=True)

    def stored(self) -> dict[str, bytes]:
        with self.here() as sides:
            return carried(sides.store)


@pytest.fixture
def machines(program: Program, tmp_path: Path, run: Run) -> tuple[Machine, Machine]:
    """Two machines whose clones have the same oldest commit."""
    first = tmp_path / "work" / "project"
    first.mkdir(parents=True)
    git(first, "init", "-q")
    git(first, "commit", "-q", "--allow-empty", "-m", "The first commit.")
    second = tmp_path / "elsewhere"
    git(tmp_path, "clone", "-q", str(first), str(second))
    homes = tmp_path / "home", tmp_path / "other-home"
    return tuple(  # type: ignore[return-value]
        Machine(replace(program, home=home), project, run) for home, project in zip(homes, (first, second), strict=True)
    )


def test_two_continuations_are_resumed_in_both_homes(machines: tuple[Machine, Machine]) -> None:
    here, there = machines
    here.program.say(FIRST, cwd=here.project)
    (session,) = here.sessions()
    here.say(LONG_OUTPUT, session)
    here.reconcile()
    here.send_store(there)
    there.reconcile("recover", "--all", "--yes")
    assert there.sessions() == [session]

    assert has_history(here.say("Here.", session))
    assert has_history(there.say("There.", session))
    for machine in machines:
        machine.reconcile()
    here.send_store(there)
    there.reconcile()
    there.send_store(here)
    here.reconcile()
    here.send_store(there)
    there.reconcile()

    assert here.stored() == there.stored()
    assert set(here.sessions()) == set(there.sessions())
    assert len(here.sessions()) == 2
    for machine in machines:
        prompts = set()
        for each in machine.sessions():
            turn = machine.say("Resumed.", each)
            assert has_history(turn)
            assert turn.sent[-1] == "Resumed."
            prompts |= {"Here.", "There."} & set(turn.sent)
            assert len({"Here.", "There."} & set(turn.sent)) == 1
        assert prompts == {"Here.", "There."}


def test_a_session_that_the_repository_shares_is_resumed_in_the_other_home(machines: tuple[Machine, Machine]) -> None:
    """The other home gets it from a commit, and gives its own lines back with one."""
    here, there = machines
    here.program.say(FIRST, cwd=here.project)
    (session,) = here.sessions()
    here.say(LONG_OUTPUT, session)
    here.sync("project", session)
    commit(here.project)
    assert there.sessions() == []
    git(there.project, "pull", "-q")
    there.sync()
    assert there.sessions() == [session]
    turn = there.say("There.", session)
    assert has_history(turn)
    assert turn.sent[-1] == "There."

    there.sync()
    commit(there.project)
    git(here.project, "pull", "-q", str(there.project), "HEAD")
    here.sync()
    assert here.sessions() == [session]
    turn = here.say("Here.", session)
    assert has_history(turn)
    assert [text for text in turn.sent if text in ("There.", "Here.")] == ["There.", "Here."]


def commit(project: Path) -> None:
    git(project, "add", ".claude-sessions")
    git(project, "commit", "-q", "-m", "A session.")
