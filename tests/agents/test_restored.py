"""Sessions that the program deleted or lost, and that reconcile brings back: the program goes on with them."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

import pytest

from tests.agents.sessions import FIRST, age, fork_by_hand, has_history
from tests.agents.stub import LONG_OUTPUT, REPLY, SUBAGENT
from tests.support.formats.claude_code_project import Sides, carried
from tests.support.projects.git_world import git
from tests.support.projects.three_conversations import three
from tests.support.projects.world import make_project

if TYPE_CHECKING:
    from pathlib import Path

    from tests.agents.program import Program
    from tests.conftest import Run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def sweep(session: Path) -> None:
    """Delete an old session with the files beside it, as the program does."""
    session.unlink()
    shutil.rmtree(session.with_suffix(""), ignore_errors=True)


def written_by_now(session: Path) -> bytes:
    """Return the content of a session after a second without a new line: the program writes a moment later."""
    content = b""
    while content != (content := session.read_bytes()):
        time.sleep(1)
    return content


@pytest.mark.parametrize("lost", ["swept", "the whole home"])
def test_a_session_that_comes_back_is_resumed(
    program: Program, project: Path, session: Path, sides: Sides, lost: str
) -> None:
    for prompt in (LONG_OUTPUT, SUBAGENT):
        program.say(prompt, cwd=project, resume=session.stem)
    age(session, 40)
    sides.reconcile()
    before = carried(sides.live)
    if lost == "swept":
        sweep(session)
    else:
        shutil.rmtree(program.home)
    sides.run("-w", project)
    assert not session.exists()
    sides.run("recover", "--yes", "-w", project)
    assert carried(sides.live) == before
    turn = program.say("Resumed.", cwd=project, resume=session.stem)
    assert has_history(turn)
    assert turn.sent[-1] == "Resumed."
    assert program.say("Continued.", cwd=project, cont=True).sent[-2:] == [turn.output.strip(), "Continued."]
    assert session.read_bytes().startswith(before[session.name])
    sides.reconcile()
    assert carried(sides.store) == carried(sides.live)


def test_continue_takes_what_was_used_last_before_the_sweep(
    program: Program, project: Path, session: Path, sides: Sides
) -> None:
    other = fork_by_hand(session)
    program.say("The older one.", cwd=project, resume=other.stem)
    age(session, 40)
    age(other, 50)
    sides.reconcile()
    shutil.rmtree(program.config)
    sides.run("recover", "--yes", "-w", project)
    assert session.stat().st_mtime - other.stat().st_mtime > 1
    turn = program.say("Continued.", cwd=project, cont=True)
    assert has_history(turn)
    assert "The older one." not in turn.sent
    assert "Continued." in session.read_text()


def test_continue_takes_what_was_used_since_the_sweep(
    program: Program, project: Path, session: Path, sides: Sides
) -> None:
    age(session, 31)
    sides.reconcile()
    sweep(session)
    assert program.say("Begun anew.", cwd=project, cont=True).sent == ["Begun anew."]
    sides.reconcile()
    sides.reconcile("recover", "--yes")
    assert program.say("Continued.", cwd=project, cont=True).sent[0] == "Begun anew."
    assert has_history(program.say("Resumed.", cwd=project, resume=session.stem))
    assert program.say("Continued.", cwd=project, cont=True).sent[0] == FIRST


def test_a_session_in_use_waits_until_the_program_ends(
    program: Program, project: Path, session: Path, sides: Sides
) -> None:
    sides.reconcile()
    before = len(program.stub.requests())
    with program.stub.silent():
        process = program.start("Wait.", cwd=project, resume=session.stem)
        while len(program.stub.requests()) == before:
            assert process.poll() is None
        content, inode = written_by_now(session), session.stat().st_ino
        ahead = content + b'{"type":"mode","mode":"from elsewhere"}\n'
        (sides.store / session.name).write_bytes(ahead)
        held = sides.run("-w", project)
        assert held.exit_code == 4, held.output
        assert "Claude Code has it open" in held.output
        assert (session.read_bytes(), session.stat().st_ino) == (content, inode)
    process.communicate()
    sides.reconcile()
    assert session.read_bytes().startswith(content)
    assert has_history(program.say("Resumed.", cwd=project, resume=session.stem))
    assert any(b"from elsewhere" in each for each in carried(sides.store).values())


def test_both_of_two_continuations_are_resumed(
    program: Program, project: Path, tmp_path: Path, session: Path, sides: Sides
) -> None:
    sides.reconcile()
    base = session.read_bytes()
    program.say("Here.", cwd=project, resume=session.stem)
    here = session.read_bytes()
    session.write_bytes(base)
    program.say("There.", cwd=project, resume=session.stem)
    (sides.store / session.name).write_bytes(here)
    sides.reconcile()
    prompts = set()
    for path in program.sessions(project):
        turn = program.say("Resumed.", cwd=project, resume=path.stem)
        assert has_history(turn)
        assert turn.sent[3].startswith(REPLY)
        prompts.add(turn.sent[2])
    assert prompts == {"Here.", "There."}


def test_a_project_of_another_program_keeps_its_sessions_too(
    program: Program, project: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program writes where reconcile looks for sessions beside a `.jp`."""
    monkeypatch.setenv("HOME", str(program.home))
    world = make_project(project, run)
    three(world)
    program.say(FIRST, cwd=project)
    (session,) = program.sessions(project)
    written_by_now(session)
    assert run("-w", project).stdout.count("\nstore ") == 2
    before = carried(world.workspace), carried(session.parent)
    shutil.rmtree(program.config)
    shutil.rmtree(world.workspace)
    assert run("recover", "--yes", "-w", project).exit_code == 0
    assert (carried(world.workspace), carried(session.parent)) == before
    assert has_history(program.say("Continued.", cwd=project, cont=True))


@pytest.mark.parametrize("git_knows", [True, False], ids=["with git", "without git"])
def test_a_renamed_project_goes_on(
    program: Program, project: Path, session: Path, sides: Sides, *, git_knows: bool
) -> None:
    if git_knows:
        in_git(project)
    program.say("Of the old place.", cwd=project, resume=session.stem)
    sides.reconcile()
    before = session.read_bytes()
    moved = Sides(project.rename(project.with_name("renamed")), sides.run)
    options = () if git_knows else ("--from", project)
    moved.run("recover", "--yes", *options, "-w", moved.project)
    assert not session.exists()
    (home,) = program.sessions(moved.project)
    assert home.read_bytes() == before
    continued = program.say("Continued.", cwd=moved.project, cont=True)
    assert continued.sent[2] == "Of the old place."
    assert continued.sent[-1] == "Continued."
    assert has_history(program.say("Resumed.", cwd=moved.project, resume=session.stem))
    moved.reconcile()
    assert moved.in_sync()


def test_the_sessions_of_a_removed_worktree_go_on_in_another(program: Program, project: Path, sides: Sides) -> None:
    in_git(project)
    worktree = project.with_name("worktree")
    git(project, "worktree", "add", "-q", str(worktree))
    program.say(FIRST, cwd=worktree)
    (session,) = program.sessions(worktree)
    of_worktree = Sides(worktree, sides.run)
    of_worktree.reconcile()
    program.say("After the last run.", cwd=worktree, resume=session.stem)
    before = session.read_bytes()
    git(project, "worktree", "remove", "--force", str(worktree))
    sides.run("recover", "--yes", "--from", worktree, "-w", project)
    assert [path.read_bytes() for path in program.sessions(project)] == [before]
    assert not session.exists()
    continued = program.say("Continued.", cwd=project, cont=True)
    assert has_history(continued)
    assert continued.sent[2] == "After the last run."
    assert has_history(program.say("Resumed.", cwd=project, resume=session.stem))
    sides.reconcile()
    assert sides.in_sync()


def in_git(project: Path) -> None:
    git(project, "init", "-q")
    git(project, "commit", "-q", "--allow-empty", "-m", "The first commit.")
