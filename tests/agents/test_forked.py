"""Sessions that `reconcile fork` has made, and `reconcile rm` removes: what the program does with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.agents.program import records
from tests.agents.sessions import FIRST, has_history
from tests.agents.stub import LONG_OUTPUT, REPLY, SUBAGENT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.agents.program import Program
    from tests.support.formats.claude_code_project import Sides

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def fork(sides: Sides, program: Program, *args: str) -> Path:
    """Fork the only session, and return the new one."""
    (known,) = program.sessions(sides.project)
    sides.reconcile()
    sides.reconcile("fork", known.stem, *args)
    (new,) = set(program.sessions(sides.project)) - {known}
    return new


def test_a_fork_is_resumed_and_continued(program: Program, project: Path, session: Path, sides: Sides) -> None:
    for prompt in (LONG_OUTPUT, SUBAGENT):
        program.say(prompt, cwd=project, resume=session.stem)
    new, before = fork(sides, program), session.read_bytes()
    turn = program.say("Resumed.", cwd=project, resume=new.stem)
    assert has_history(turn)
    assert LONG_OUTPUT in turn.sent
    assert turn.sent[-1] == "Resumed."
    assert program.say("Continued.", cwd=project, cont=True).sent[-2:] == [turn.output.strip(), "Continued."]
    assert session.read_bytes() == before
    assert "Resumed." not in program.say("Here.", cwd=project, resume=session.stem).sent
    sides.reconcile()
    listed = sides.read("ls", "--tree")
    assert listed.index(session.stem[:8]) < listed.index(new.stem[:8])


@pytest.mark.parametrize("kind", ["user", "assistant", "time"])
def test_a_fork_that_ends_in_the_middle_is_resumed(
    program: Program, project: Path, session: Path, sides: Sides, kind: str
) -> None:
    """At a reply, at a prompt that has no reply then, and at the time of the first reply."""
    program.say("Second.", cwd=project, resume=session.stem)
    program.say("Third.", cwd=project, resume=session.stem)
    said = [line for line in records(session) if line["type"] == ("user" if kind == "user" else "assistant")]
    end = said[0]["timestamp"] if kind == "time" else said[1]["uuid"]
    new = fork(sides, program, "--until", end)
    sent = program.say("Another way.", cwd=project, resume=new.stem).sent
    assert sent[0] == FIRST
    assert sent[1].startswith(REPLY)
    assert sent[-1].endswith("Another way.")
    assert ("Second." in "\n".join(sent), "Third." in "\n".join(sent)) == (kind != "time", False)


def test_a_fork_is_in_the_programs_list_by_its_title(
    program: Program, project: Path, session: Path, sides: Sides
) -> None:
    def begun() -> list[Path]:
        return [path for path in program.sessions(project) if path != session and REPLY in path.read_text()]

    program.show(cwd=project, typed="At a terminal.", until=lambda _: bool(begun()))
    sides.reconcile()
    sides.reconcile("fork", begun()[0].stem, "--title", "Another way")
    shown = program.show("--resume", cwd=project, until=lambda shown: "Another way" in shown)
    assert "At a terminal." in shown


def test_a_fork_is_removed_with_its_files(program: Program, project: Path, session: Path, sides: Sides) -> None:
    program.say(LONG_OUTPUT, cwd=project, resume=session.stem)
    new, before = fork(sides, program), len(program.stub.requests())
    with program.stub.silent():
        process = program.start("Wait.", cwd=project, resume=new.stem)
        while len(program.stub.requests()) == before:
            assert process.poll() is None
        refused = sides.run("rm", new.stem, "--yes", "-w", project)
        assert refused.exit_code == 4, refused.output
        assert f"Claude Code (process {process.pid}) has it open" in refused.output
        assert new.exists()
    process.communicate()
    sides.reconcile()
    sides.reconcile("rm", new.stem, "--yes")
    assert not new.exists()
    assert not new.with_suffix("").exists()
    assert has_history(program.say("Continued.", cwd=project, cont=True))
    assert program.sessions(project) == [session]
