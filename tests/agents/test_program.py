"""The premises about Claude Code that reconcile relies on, each tried with the program itself (`make agents`)."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.agents.program import records
from tests.agents.sessions import FIRST, NEW, OLD, age, carry, fork_by_hand, has_history
from tests.agents.stub import LONG_OUTPUT, REPLY, SUBAGENT

if TYPE_CHECKING:
    from tests.agents.program import Program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_a_resumed_session_only_grows(program: Program, project: Path, session: Path) -> None:
    before = session.read_bytes()
    turn = program.say("Resumed.", cwd=project, resume=session.stem)
    assert has_history(turn)
    assert turn.sent[2:] == ["Resumed."]
    between = session.read_bytes()
    assert between.startswith(before)
    assert program.say("Continued.", cwd=project, cont=True).sent[-1] == "Continued."
    assert session.read_bytes().startswith(between)
    assert len(session.read_bytes()) > len(between)
    assert program.sessions(project) == [session]


def test_a_carried_session_keeps_its_old_paths(written: Path, program: Program, project: Path, session: Path) -> None:
    assert session.read_bytes() == written.read_bytes()
    assert has_history(program.say("Here.", cwd=project, resume=session.stem))
    old, new = records(written), records(session)
    assert new[: len(old)] == old
    assert str(project) not in {each.get("cwd") for each in old}
    assert {each["cwd"] for each in new[len(old) :] if "cwd" in each} == {str(project)}


def test_a_fork_has_the_lines_of_its_ancestor(version: str, program: Program, project: Path, session: Path) -> None:
    before = session.read_bytes()
    assert has_history(program.say("Forked.", cwd=project, resume=session.stem, fork=True))
    assert session.read_bytes() == before
    (fork,) = set(program.sessions(project)) - {session}
    assert {each["sessionId"] for each in records(fork)} == {fork.stem}
    assert next(each["lastPrompt"] for each in records(fork) if "lastPrompt" in each) == FIRST
    lines = [each for each in records(session) if "uuid" in each]
    copies = [each for each in records(fork) if "uuid" in each][: len(lines)]
    changed = set()
    for line, copy in zip(lines, copies, strict=True):
        assert copy["uuid"] == line["uuid"]
        changed |= {(line["type"], key) for key in line.keys() | copy.keys() if line.get(key) != copy.get(key)}
    everywhere = {(line["type"], key) for line in lines for key in ("sessionId", "cwd")}
    of_the_new = {("user", "promptId"), ("assistant", "requestSessionId")}
    assert changed == everywhere | (of_the_new if version == NEW else set())
    makers = {each["requestSessionId"] for each in copies if "requestSessionId" in each}
    assert makers == ({session.stem} if version == NEW else set())


def test_a_fork_made_by_hand_is_resumed_and_continued(program: Program, project: Path, session: Path) -> None:
    fork = fork_by_hand(session)
    before, other = fork.read_bytes(), session.read_bytes()
    assert has_history(program.say("By id.", cwd=project, resume=fork.stem))
    age(session, 1)
    assert program.say("Continued.", cwd=project, cont=True).sent[2] == "By id."
    assert fork.read_bytes().startswith(before)
    assert session.read_bytes() == other


def test_a_fork_made_by_hand_is_listed(program: Program, project: Path) -> None:
    program.say("Printed.", cwd=project)
    printed = program.sessions(project)

    def is_kept(_: str) -> bool:
        return any(REPLY in path.read_text() for path in program.sessions(project) if path not in printed)

    program.show(cwd=project, typed="Typed.", until=is_kept)
    (session,) = set(program.sessions(project)) - set(printed)
    fork = fork_by_hand(session)
    fork.write_bytes(fork.read_bytes().replace(b"Typed.", b"Forked by hand."))
    shown = program.show("--resume", cwd=project, until=lambda shown: "Typed." in shown)
    assert "Forked by hand." in shown
    assert "Printed." not in shown


def test_continue_takes_the_newest_mtime(program: Program, project: Path, session: Path) -> None:
    other = fork_by_hand(session)
    for newer, older in ((session, other), (other, session)):
        age(newer, 1)
        age(older, 2)
        before = older.read_bytes()
        assert has_history(program.say(f"To {newer.name}.", cwd=project, cont=True))
        assert f"To {newer.name}." in newer.read_text()
        assert older.read_bytes() == before


@pytest.mark.parametrize("name", ["a.b_c ~+@9", "ünïcode-日本", "one \N{BALLOON}", "long" * 60, "länger" * 30])
def test_the_name_of_a_project_directory(program: Program, tmp_path: Path, name: str) -> None:
    program.say(FIRST, cwd=tmp_path / name)
    (directory,) = (program.config / "projects").iterdir()
    assert directory == program.directory(tmp_path / name)


def test_subagents_and_long_results_are_beside_the_session(program: Program, project: Path, session: Path) -> None:
    before = session.read_bytes()
    assert has_history(program.say(LONG_OUTPUT, cwd=project, resume=session.stem))
    assert has_history(program.say(SUBAGENT, cwd=project, resume=session.stem))
    assert session.read_bytes().startswith(before)
    (result,) = session.with_suffix("").glob("tool-results/*.txt")
    assert result.read_text().splitlines() == [str(number) for number in range(1, 20001)]
    (agent,) = session.with_suffix("").glob("subagents/agent-*.jsonl")
    lines = [each for each in records(agent) if "uuid" in each]
    assert {(each["sessionId"], each["isSidechain"]) for each in lines} == {(session.stem, True)}
    assert lines[0]["parentUuid"] is None
    outcomes = [each["toolUseResult"] for each in records(session) if isinstance(each.get("toolUseResult"), dict)]
    assert [each["persistedOutputPath"] for each in outcomes if "persistedOutputPath" in each] == [str(result)]
    assert [each["agentId"] for each in outcomes if "agentId" in each] == [agent.stem.removeprefix("agent-")]
    assert json.loads(agent.with_suffix(".meta.json").read_text())["agentType"] == "general-purpose"


@pytest.mark.parametrize("torn", [b'{"type":"user","uuid":"00000000-0000', b'{"type":"a-kind"}'])
def test_a_line_after_a_torn_one(version: str, program: Program, project: Path, session: Path, torn: bytes) -> None:
    session.write_bytes(session.read_bytes() + torn)
    before = session.read_bytes()
    assert has_history(program.say("Appended.", cwd=project, resume=session.stem))
    assert session.read_bytes().startswith(before + (b"\n{" if version == NEW else b"{"))
    assert has_history(program.say("Again.", cwd=project, resume=session.stem))


def test_a_newline_after_a_torn_line_saves_the_next(program: Program, project: Path, session: Path) -> None:
    before = session.read_bytes() + b'{"type":"user","uuid":"00000000-0000\n'
    session.write_bytes(before)
    assert has_history(program.say("Appended.", cwd=project, resume=session.stem))
    added = session.read_bytes().removeprefix(before).splitlines()
    assert {json.loads(line)["sessionId"] for line in added} == {session.stem}


def test_a_session_of_another_project(version: str, program: Program, tmp_path: Path, session: Path) -> None:
    before = session.read_bytes()
    turn = program.say("From afar.", cwd=tmp_path / "moved", resume=session.stem)
    assert has_history(turn) is (version == NEW)
    assert ("No conversation found" in turn.output) is (version == OLD)
    assert (session.read_bytes() != before) is (version == NEW)
    assert program.sessions(tmp_path / "moved") == []


def test_the_same_id_in_two_projects(program: Program, tmp_path: Path, session: Path) -> None:
    copy = carry(session, program.directory(tmp_path / "second"))
    before = session.read_bytes()
    turn = program.say("From afar.", cwd=tmp_path / "third", resume=session.stem)
    assert turn.status != 0
    assert "No conversation found" in turn.output
    assert has_history(program.say("Of the second.", cwd=tmp_path / "second", resume=session.stem))
    assert session.read_bytes() == before
    assert copy.read_bytes().startswith(before)
    assert copy.read_bytes() != before


def test_continue_in_a_moved_project_begins_anew(program: Program, tmp_path: Path, session: Path) -> None:
    turn = program.say("From afar.", cwd=tmp_path / "moved", cont=True)
    assert turn.status == 0
    assert turn.sent == ["From afar."]


def test_memory_is_not_touched(program: Program, project: Path, session: Path) -> None:
    memory = session.parent / "memory" / "MEMORY.md"
    memory.parent.mkdir()
    memory.write_text("Remember the milk.\n")
    age(memory, 3)
    before = memory.stat().st_mtime_ns
    assert has_history(program.say("Resumed.", cwd=project, resume=session.stem))
    assert memory.read_text() == "Remember the milk.\n"
    assert memory.stat().st_mtime_ns == before
    assert [path.name for path in memory.parent.iterdir()] == [memory.name]


@pytest.mark.parametrize("killed", [False, True])
def test_a_running_session_has_a_file(
    version: str, program: Program, project: Path, session: Path, *, killed: bool
) -> None:
    before = len(program.stub.requests())
    with program.stub.silent():
        process = program.start("Wait.", cwd=project, resume=session.stem)
        file = program.config / "sessions" / f"{process.pid}.json"
        while len(program.stub.requests()) == before:
            assert process.poll() is None
            time.sleep(0.1)
        running = json.loads(file.read_text())
        started = Path(f"/proc/{process.pid}/stat").read_text().split()[21]
        if killed:
            process.kill()
    process.communicate()
    assert (running["pid"], running["procStart"], running["version"]) == (process.pid, started, version)
    assert (running["sessionId"], running["cwd"]) == (session.stem, str(project))
    assert running.get("status") == ("busy" if version == NEW else None)
    names = {path.name for path in file.parent.iterdir()}
    assert {name.partition(".")[0] for name in names} == ({str(process.pid)} if killed else set())
    assert any(name.endswith(".key") for name in names) is (killed and version == NEW)
    program.say("Next.", cwd=project)
    assert file.exists() is (killed and version == NEW)
