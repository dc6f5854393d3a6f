"""Claude Code through the whole engine: recorded sessions in the user's home, and their durable store."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reconcile.formats.claude_code.forks import forked
from tests.agents.program import OLDER, VERSIONS
from tests.support.formats.claude_code_project import Sides, carried
from tests.support.projects.git_world import git
from tests.support.projects.terminal import Session, at_terminal, watched_at_terminal
from tests.support.projects.watcher import Watching, until
from tests.support.projects.world import command, files

if TYPE_CHECKING:
    from tests.conftest import Run

LINE = b'{"type":"mode","mode":"%s"}\n'
UNKNOWN = "00000000-0000-4000-8000-000000000000"
DAY = 24 * 3600

PEAK = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], capture_output=True, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10)
"""


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    version: str = request.param
    return version


@pytest.fixture
def sides(tmp_path: Path, run: Run) -> Sides:
    return Sides(tmp_path / "project", run).private()


@pytest.fixture
def whole(sides: Sides, version: str) -> Sides:
    """A session, and a fork of it with a subagent, a long result and notes; in sync."""
    sides.play(version, "continued").play(version, "subagent")
    notes = sides.live / "memory" / "MEMORY.md"
    notes.parent.mkdir()
    notes.write_text("Remember the milk.\n")
    sides.reconcile()
    assert sides.in_sync()
    return sides


def first(sides: Sides) -> Path:
    """The session without files beside it."""
    (path,) = (path for path in sides.live.glob("*.jsonl") if not path.with_suffix("").exists())
    return path


def fork(sides: Sides) -> Path:
    """The session with a subagent."""
    (path,) = (path for path in sides.live.glob("*.jsonl") if path.with_suffix("").exists())
    return path


def add(path: Path, *contents: bytes) -> bytes:
    """Append to a file as the program does; return its content."""
    with path.open("ab") as file:
        file.writelines(contents)
    return path.read_bytes()


def sweep(session: Path) -> None:
    """Delete an old session with the files beside it, as the program does."""
    session.unlink()
    if session.with_suffix("").exists():
        shutil.rmtree(session.with_suffix(""))


# Saving.


def test_the_first_run_saves_every_file_as_it_is(sides: Sides, version: str) -> None:
    sides.play(version, "continued").play(version, "subagent")
    before = carried(sides.live)
    assert len(before) == 5
    assert sides.dry() == [f"copy store:{path}" for path in sorted(before)]
    sides.reconcile()
    assert carried(sides.store) == carried(sides.live) == before
    assert "Nothing to do" in sides.read()


def test_a_session_counts_once_with_the_files_beside_it(sides: Sides, version: str) -> None:
    """As `ls` lists it. A subagent that goes on is a change of its session."""
    sides.play(version, "continued").play(version, "subagent")
    assert "Done: 2 added to the store." in sides.reconcile().output
    assert sides.read() == "Nothing to do. 2 sessions: 2 up to date.\n"
    add(next(sides.live.rglob("agent-*.jsonl")), LINE % b"plan")
    assert "2 sessions: 1 up to date, 1 changed in workspace." in sides.read("status")
    assert "Done: 1 updated in the store." in sides.reconcile().output
    assert "1 updated in the store" in sides.read("log")
    assert "no session has the id or title 'nothing'" in sides.read("show", "nothing", code=2)


@pytest.mark.parametrize("option", ["--only", "--below"])
def test_a_run_of_one_session_saves_the_files_beside_it_and_no_other_ones(
    sides: Sides, version: str, option: str
) -> None:
    """Both are removed and forked together; the notes and other sessions are not its own."""
    sides.play(version, "continued").play(version, "subagent")
    (sides.live / "memory").mkdir()
    (sides.live / "memory" / "MEMORY.md").write_text("Remember the milk.\n")
    session = fork(sides).stem
    assert {line.partition(":")[2].split("/")[0] for line in sides.dry(option, session)} == {
        session,
        f"{session}.jsonl",
    }
    sides.run("--workspace", sides.project, option, session)
    assert carried(sides.store) == {
        name: data for name, data in carried(sides.live).items() if name.startswith(session)
    }
    assert len(carried(sides.store)) == 4


def test_a_mistyped_id_of_a_session_gets_a_suggestion(sides: Sides, version: str) -> None:
    """Of the session, not of the files beside it."""
    sides.play(version, "continued").play(version, "subagent").reconcile()
    id_ = next(path.stem for path in sides.live.glob("*.jsonl") if path.with_suffix("").exists())
    for length in (8, 36):
        mistyped = id_[:3] + ("0" if id_[3] != "0" else "1") + id_[4:length]
        assert f"did you mean {id_}" in sides.read("show", mistyped, code=2)


def test_a_turn_is_appended(sides: Sides, version: str) -> None:
    sides.play(version, "plain").reconcile()
    path = first(sides.play(version, "continued"))
    assert sides.dry() == [f"copy store:{path.name}"]
    sides.reconcile()
    assert sides.in_sync()


@pytest.mark.parametrize("how", ["completed", "newline first", "appended to", "newline of another program"])
def test_a_torn_line_is_saved_and_continued(sides: Sides, version: str, how: str) -> None:
    path = first(sides.play(version, "torn"))
    sides.reconcile()
    assert sides.in_sync()
    if how == "completed":
        sides.play(version, "continued")
    else:
        add(path, b"" if how == "appended to" else b"\n", LINE % b"normal")
    sides.reconcile()
    assert sides.in_sync()


def test_a_store_with_a_torn_line_follows_a_session_without_it(sides: Sides, version: str) -> None:
    """A crash of the system can cut the live file shorter than the store's."""
    path = first(sides.play(version, "torn"))
    sides.reconcile()
    content = path.read_bytes()
    path.write_bytes(content[: content.rindex(b"\n") + 1])
    add(path, LINE % b"a mode that is longer than the torn line was, which is needed to show the longer version" * 20)
    sides.reconcile()
    assert sides.in_sync()


def test_lines_that_are_no_object_are_kept(whole: Sides) -> None:
    added = add(first(whole), b"no object\n", b"\0" * 100 + b"\n", b"[1]\n\n", LINE % b"plan", b"\xff")
    whole.reconcile()
    assert carried(whole.store)[first(whole).name] == added
    assert whole.read("show", first(whole).stem).count("no JSON object") == 4


def test_a_file_without_an_object_is_held_with_one_line(whole: Sides) -> None:
    before, session = carried(whole.store), first(whole)
    odd = whole.live / f"{UNKNOWN}.jsonl"
    odd.write_text("<a new format>\nno object\n" * 100)
    content = add(session, LINE % b"plan")
    held = whole.reconcile(code=4)
    lines = [line for line in held.output.splitlines() if "no line with a JSON object" in line]
    assert len(lines) == 1
    assert carried(whole.store) == before | {session.name: content}
    odd.unlink()
    whole.reconcile()


def test_a_session_in_another_format_does_not_replace_the_stores(whole: Sides) -> None:
    before = carried(whole.store)
    first(whole).write_text("<a new format>\n" * 1000)
    whole.reconcile(code=4)
    assert carried(whole.store) == before


def test_files_that_are_no_sessions_are_left_alone(whole: Sides) -> None:
    before = carried(whole.store)
    for name in ("sessions-index.json", "notes.txt", f"{UNKNOWN}.jsonl.bak", "other/a.jsonl"):
        (whole.live / name).parent.mkdir(exist_ok=True)
        (whole.live / name).write_text("{}\n")
    assert "Nothing to do" in whole.read()
    assert carried(whole.store) == before


def test_the_directory_of_the_program_can_be_chosen(
    sides: Sides, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sides.play(version, "continued")
    before, config = carried(sides.live), tmp_path / "config"
    shutil.move(sides.config, config)
    live = config / "projects" / sides.live.name
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(config))
    assert sides.run("-w", sides.project).exit_code == 0
    assert carried(sides.store) == before
    shutil.rmtree(live)
    assert sides.run("recover", "--yes", "-w", sides.project).exit_code == 0
    assert carried(live) == before
    assert not sides.config.exists()


# What the program deletes.


def test_what_was_swept_stays_in_the_store_and_comes_back(whole: Sides) -> None:
    before = carried(whole.live)
    session = fork(whole)
    sweep(session)
    result = whole.reconcile()
    assert "deleted from the workspace, still in the store" in result.output
    assert carried(whole.store) == before
    places = {each["record"]: each["where"] for each in json.loads(whole.read("ls", "--json"))["sessions"]}
    assert places == {session.name: "store", first(whole).name: "both"}
    whole.reconcile("recover", "--yes")
    assert carried(whole.live) == carried(whole.store) == before


def test_what_comes_back_is_older_than_what_was_used_since_and_spared_by_the_next_sweep(
    sides: Sides, version: str
) -> None:
    """`--continue` takes the newest session; the next sweep takes those that are older than 30 days."""
    used = first(sides.play(version, "plain"))
    swept = [used.with_stem(f"{UNKNOWN[:-1]}{number}") for number in range(3)]
    for days, path in zip((40, 400, 31), swept, strict=True):
        shutil.copy(used, path)
        os.utime(path, (time.time() - days * DAY,) * 2)
    before = carried(sides.live)
    sides.reconcile()
    for path in swept:
        sweep(path)
    sides.reconcile()
    sides.reconcile("recover", "--yes")
    assert carried(sides.live) == before
    by_age = sorted((used, *swept), key=lambda path: -path.stat().st_mtime_ns)
    assert by_age == [used, swept[2], swept[0], swept[1]]
    assert time.time() - by_age[-1].stat().st_mtime < 2 * DAY


def test_one_session_that_was_swept_comes_back_with_all_that_belongs_to_it(whole: Sides) -> None:
    before = carried(whole.live)
    for session in (kept := fork(whole), other := first(whole)):
        sweep(session)
    result = whole.reconcile()
    assert f"restore it: reconcile recover {other.name}" in result.output
    whole.reconcile("recover", kept.stem)
    assert carried(whole.live) == {path: content for path, content in before.items() if path != other.name}
    refused = whole.read("recover", kept.stem, "--all", code=2)
    assert "--all" in refused


def test_everything_that_was_swept_comes_back(whole: Sides) -> None:
    before = carried(whole.live)
    for session in (fork(whole), first(whole)):
        sweep(session)
    whole.reconcile()
    assert carried(whole.store) == before
    whole.reconcile("recover", "--yes")
    assert carried(whole.live) == before


@pytest.mark.parametrize("how", ["the directory is empty", "the directory is gone"])
def test_the_sweep_of_the_last_session_is_noted_once(sides: Sides, version: str, how: str) -> None:
    sides.play(version, "continued").play(version, "subagent").reconcile()
    before = carried(sides.live)
    sweep(first(sides))
    sides.reconcile()
    sweep(fork(sides))
    if how == "the directory is gone":
        sides.live.rmdir()
    status = sides.read("status")
    assert (
        "no session is left in the workspace; the store keeps 2 sessions; restore them: reconcile recover"
        in (result := sides.reconcile()).output
    )
    assert "reconcile recover" in status
    assert "restore it: reconcile recover" not in result.output, "one note counts all"
    assert "no session is left" not in sides.reconcile().output
    status = sides.read("status")
    assert "Nothing to do" not in status
    assert status.split("Next:")[1].split()[:2] == ["reconcile", "recover"]
    assert "deleted from this workspace" not in status, "after a year, there are hundreds"
    assert "deleted from this workspace" in sides.read("status", "-v")
    sides.reconcile("recover", "--all", "--yes")
    assert carried(sides.live) == carried(sides.store) == before


def test_a_lost_home_comes_back(whole: Sides) -> None:
    before = carried(whole.live)
    whole.lose()
    noted = whole.run("-w", whole.project)
    assert (noted.exit_code, whole.config.exists()) == (0, False), noted.output
    assert "restore them: reconcile recover" in noted.output
    result = whole.run("recover", "--yes", "-w", whole.project)
    assert result.exit_code == 0, result.output
    assert carried(whole.live) == carried(whole.store) == before
    assert [path.name for path in whole.config.iterdir()] == ["projects"]
    assert [path.name for path in whole.live.parent.iterdir()] == [whole.live.name]
    assert "Nothing to do" in whole.read()


def test_a_lost_home_with_a_new_session_comes_back(whole: Sides, version: str) -> None:
    """The program has begun anew before anyone noticed."""
    before = carried(whole.live)
    whole.lose()
    whole.live.mkdir(parents=True)
    new = whole.live / f"{UNKNOWN}.jsonl"
    new.write_bytes(json.dumps({"type": "user", "cwd": str(whole.project), "version": version}).encode() + b"\n")
    whole.run("-w", whole.project)
    assert carried(whole.store).items() >= before.items()
    whole.reconcile("recover", "--yes")
    assert carried(whole.live) == before | {new.name: new.read_bytes()}


def test_a_session_that_is_nowhere_any_more_is_restored_from_the_vault(whole: Sides) -> None:
    """Its file is deleted from the store, and a run removes it here, too: the vault has it."""
    contents = {p.relative_to(whole.store): p.read_bytes() for p in files(whole.store) if p.suffix != ".md"}
    runs = {}
    for name in contents:
        (whole.store / name).unlink()
        removed = whole.reconcile("--allow-bulk-removal").stdout
        runs[name] = removed.partition("(run ")[2].partition(";")[0]
    assert not [path for path in files(whole.live) if path.suffix != ".md"]
    for name, content in contents.items():
        restored = whole.run("restore", f"{name}@{runs[name]}", "-w", whole.project)
        assert restored.exit_code == 0, restored.output
        assert (whole.store / name).read_bytes() == content
    whole.reconcile("recover", "--all", "--yes")
    assert {p.relative_to(whole.live): p.read_bytes() for p in files(whole.live) if p.suffix != ".md"} == contents


def test_a_session_that_was_cut_short_is_restored(whole: Sides) -> None:
    before = carried(whole.live)
    for content in (before[first(whole).name][:1000], b"", b"\0" * 500):
        first(whole).write_bytes(content)
        whole.reconcile()
        assert carried(whole.live) == carried(whole.store) == before


def test_notes_that_were_deleted_or_emptied_stay_in_the_store(whole: Sides) -> None:
    note = whole.live / "memory" / "MEMORY.md"
    before = carried(whole.store)
    note.write_bytes(b"")
    whole.reconcile()
    assert carried(whole.store) == before
    note.unlink()
    whole.reconcile()
    assert carried(whole.store) == before
    note.write_text("New notes.\n")
    whole.reconcile()
    assert whole.in_sync()


# Two checkouts of one repository.


@pytest.fixture(params=["worktree", "clone"])
def two(tmp_path: Path, run: Run, version: str, request: pytest.FixtureRequest) -> tuple[Sides, Sides]:
    """Two checkouts of one repository, each with a session of its own; both are saved."""
    one, other = Sides(tmp_path / "first", run), Sides(tmp_path / "second", run)
    one.project.mkdir()
    git(one.project, "init", "--quiet")
    (one.project / "file").write_text("x")
    git(one.project, "add", "file")
    git(one.project, "commit", "--quiet", "--message", "x")
    if request.param == "worktree":
        git(one.project, "worktree", "add", "--quiet", "../second")
    else:
        git(tmp_path, "clone", "--quiet", "first", "second")
    one.play(version, "plain").reconcile()
    other.play(VERSIONS[VERSIONS.index(version) - 1], "plain").reconcile()
    return one, other


def test_two_checkouts_share_a_store_and_no_session_moves_unasked(two: tuple[Sides, Sides], version: str) -> None:
    one, other = two
    assert os.path.realpath(one.store) == os.path.realpath(other.store)
    before = carried(one.live), carried(other.live)
    for sides in (*two, *two):
        sides.reconcile()
    assert (carried(one.live), carried(other.live)) == before
    assert carried(one.store) == before[0] | before[1]
    one.play(version, "continued").reconcile()
    other.reconcile()
    assert carried(other.live) == before[1]
    assert carried(one.store) == carried(one.live) | before[1]


def test_what_was_swept_here_does_not_come_back_there(two: tuple[Sides, Sides]) -> None:
    one, other = two
    before = carried(one.live), carried(other.live)
    sweep(first(one))
    one.run("-w", one.project)
    other.reconcile()
    assert carried(other.live) == before[1]
    other.reconcile("recover", "--yes")
    assert carried(other.live) == before[1]
    one.reconcile("recover", "--yes")
    assert (carried(one.live), carried(other.live)) == before


def test_a_session_that_is_live_elsewhere_is_not_restored_here(two: tuple[Sides, Sides]) -> None:
    one, other = two
    before = carried(other.live)
    for args in (("recover", first(one).stem, "--yes"), ("recover", "--all", "--yes")):
        result = other.reconcile(*args)
        assert f"left out: {first(one).name} is in " in result.output
        assert carried(other.live) == before
    session = first(one)
    sweep(session)
    other.reconcile("recover", session.stem, "--yes")
    assert carried(other.live).keys() == before.keys() | {session.name}


def copy_by_hand(one: Sides, other: Sides) -> Path:
    """Copy a session into the other live directory, as users do, and run there; return the copy."""
    shutil.copy(first(one), other.live)
    other.reconcile()
    return other.live / first(one).name


def test_a_session_that_was_copied_by_hand_is_followed_then(two: tuple[Sides, Sides], version: str) -> None:
    one, other = two
    own = carried(other.live)
    copy_by_hand(one, other)
    assert carried(other.live) == own | carried(one.live)
    one.play(version, "continued").reconcile()
    other.reconcile()
    assert carried(other.live) == own | carried(one.live)


def test_every_run_names_the_same_store(tmp_path: Path, run: Run) -> None:
    """The first run in a repository makes the link by which the next ones find the store."""
    sides = Sides(tmp_path / "first", run)
    sides.project.mkdir()
    git(sides.project, "init", "--quiet")
    git(sides.project, "commit", "--quiet", "--allow-empty", "--message", "x")
    shown = [sides.play(VERSIONS[0], "plain").run("-w", sides.project).stdout, sides.read("status")]
    store = shown[0].splitlines()[1]
    assert "/git-" in store
    assert store in shown[1]


def test_two_continuations_both_stay(two: tuple[Sides, Sides]) -> None:
    one, other = two
    session, copy = first(one), copy_by_hand(one, other)
    contents = {add(session, LINE % b"one"), add(copy, LINE % b"other")}
    known = set(carried(one.store))
    one.reconcile()
    other.reconcile()
    (new,) = set(carried(one.store)) - known
    kept = {carried(one.store)[name] for name in (session.name, new)}
    assert {content.replace(new[:-6].encode(), session.stem.encode()) for content in kept} == contents
    for _ in range(2):
        one.reconcile()
        other.reconcile()
    assert set(carried(one.store)) == {*known, new}
    assert copy.read_bytes() == session.read_bytes() == carried(one.store)[session.name]


def test_watch_asks_at_a_terminal_until_it_gets_a_yes(sides: Sides) -> None:
    sides.play(VERSIONS[-1], "continued")
    for _ in range(2):
        refused = Session("watch", "--workspace", sides.project)
        refused.type("n\n", after="Continue?")
        assert refused.end()[0] == 4
    agreed = Session("watch", "--workspace", sides.project)
    agreed.type("y\n", after="Continue?")
    agreed.wait("watching 1 session")
    agreed.process.terminate()
    assert agreed.end()[0] == 0
    assert carried(sides.store) == carried(sides.live)


@pytest.mark.long
def test_watch_calls_nothing_published_that_stays_in_the_home(two: tuple[Sides, Sides]) -> None:
    one, other = two
    session, copy = first(one), copy_by_hand(one, other)
    add(session, LINE % b"one")
    add(copy, LINE % b"other")
    one.reconcile()
    _, shown = watched_at_terminal(other.project, "watching", "--color=never")
    assert "-> workspace" in shown
    assert "publish" not in shown


def test_a_session_in_use_is_not_replaced_by_another_continuation(two: tuple[Sides, Sides]) -> None:
    one, other = two
    session = first(one)
    content = add(copy_by_hand(one, other), LINE % b"other")
    add(session, LINE % b"one")
    later = (other.live / session.name).stat().st_mtime + 60
    os.utime(session, (later, later))  # the older continuation gives way: the one that is open
    one.reconcile()
    file = other.open_in(os.getpid(), session.stem)
    other.reconcile(code=4)
    assert (other.live / session.name).read_bytes() == content
    file.unlink()
    other.reconcile()
    assert any((LINE % b"other") in each for each in carried(one.store).values())


@pytest.mark.parametrize("name", ["MEMORY.md", "topics/build.md"])
def test_no_line_of_a_note_is_lost_between_two_checkouts(two: tuple[Sides, Sides], name: str) -> None:
    one, other = two
    notes = [sides.live / "memory" / name for sides in two]
    for note, own in zip(notes, (b"one", b"other"), strict=True):
        note.parent.mkdir(parents=True)
        note.write_bytes(b"# Notes\n\n- %s\n" % own)
    for sides in (*two, *two):
        sides.reconcile()
    both = b"# Notes\n\n- one\n- other\n"
    assert [note.read_bytes() for note in notes] == [both, both]
    for note, own in zip(notes, (b"first", b"second"), strict=True):
        note.write_bytes(note.read_bytes() + b"- %s\n" % own)
    for sides in (other, one, other):
        sides.reconcile()
    assert [note.read_bytes() for note in notes] == [both + b"- first\n- second\n"] * 2
    fewer = notes[0].read_bytes().replace(b"- one\n", b"")
    notes[0].write_bytes(fewer)
    for sides in (one, other):
        sides.reconcile()
    assert [note.read_bytes() for note in notes] == [fewer, fewer], "a line that one has removed"


def test_notes_of_one_checkout_stay_there(two: tuple[Sides, Sides]) -> None:
    one, other = two
    note = one.live / "memory" / "MEMORY.md"
    note.parent.mkdir()
    note.write_bytes(b"one\n")
    for sides in (*two, *two):
        sides.reconcile()
    assert not (other.live / "memory").exists()


# Processes that run.


def test_a_session_in_use_is_read_and_never_replaced(whole: Sides) -> None:
    session, agent = fork(whole), next(fork(whole).with_suffix("").glob("subagents/*.jsonl"))
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    whole.open_in(child.pid, session.stem)
    add(session, LINE % b"in use")
    whole.reconcile()
    assert whole.in_sync()
    ahead = {path: add(whole.store / path.relative_to(whole.live), LINE % b"ahead") for path in (session, agent)}
    add(whole.store / first(whole).name, LINE % b"ahead")
    before = {path: (path.stat().st_ino, path.read_bytes()) for path in ahead}
    held = whole.reconcile(code=4)
    assert "Claude Code has it open; 2 changes wait" in held.output
    assert {path: (path.stat().st_ino, path.read_bytes()) for path in ahead} == before
    assert first(whole).read_bytes().endswith(LINE % b"ahead"), "no process has this one open"
    child.communicate(b"\n")
    whole.reconcile()
    assert {path: path.read_bytes() for path in ahead} == ahead


@pytest.mark.parametrize("how", ["ended", "another process", "damaged"])
def test_a_file_that_a_process_left_holds_nothing(whole: Sides, how: str) -> None:
    session = fork(whole)
    file = whole.open_in(os.getpid(), session.stem)
    if how == "ended":
        child = subprocess.Popen([sys.executable, "-c", ""])
        child.wait()
        file.write_text(json.dumps(json.loads(file.read_text()) | {"pid": child.pid}))
    elif how == "another process":
        file.write_text(json.dumps(json.loads(file.read_text()) | {"procStart": "1"}))
    else:
        file.write_text(file.read_text()[:-3])
    content = add(whole.store / session.name, LINE % b"ahead")
    whole.reconcile()
    assert session.read_bytes() == content


def test_no_session_in_use_is_restored_over(whole: Sides) -> None:
    """The program was resumed after the sweep, and writes the file anew."""
    session = fork(whole)
    whole.open_in(os.getpid(), session.stem)
    content = session.read_bytes()
    session.write_bytes(content[:2000])
    whole.reconcile(code=4)
    assert session.read_bytes() == content[:2000]
    assert carried(whole.store)[session.name] == content


# Commands.


def test_reading(whole: Sides) -> None:
    session = fork(whole)
    shown = whole.read("show", session.stem)
    assert shown.startswith("# The first prompt.\n")
    assert "This is reply 3." in shown
    assert "Calls the tool `Bash`." in shown
    for path in carried(whole.live):
        assert whole.read("show", path)
    listed = whole.read("ls")
    assert all(path.stem[:8] in listed for path in (session, first(whole)))
    matches = json.loads(whole.read("find", "--json", "reply 3"))
    assert session.name in json.dumps(matches)
    assert first(whole).name not in json.dumps(matches)
    assert "memory/MEMORY.md" in whole.read("find", "the milk")
    assert "No problems found" in whole.read("doctor")
    assert "up to date" in whole.read("status")


def test_reading_what_was_swept(whole: Sides) -> None:
    session = fork(whole)
    sweep(session)
    whole.reconcile()
    assert "This is reply 3." in whole.read("show", session.stem)
    found = whole.read("find", "reply 3")
    assert f"  {session.stem[:8]}\n" in found
    assert session.name not in found
    assert session.name in whole.read("find", "reply 3", "-v")


def test_plans_and_status_have_the_ids_of_the_listing(whole: Sides) -> None:
    """With -v they have the whole ids; commands take both."""
    session = first(whole)
    with session.open("ab") as file:
        file.write(LINE % b"plan")
    short = session.stem[:8]
    assert f"  {short}  " in whole.read("ls")
    for words in (("--dry-run",), ("status",)):
        shown, whole_ids = whole.read(*words), whole.read(*words, "-v")
        assert (f"  {short}\n" in shown, session.name in shown.replace(short + "/", "")) == (True, False), shown
        assert session.name in whole_ids
    assert whole.read("status", short).splitlines()[0].endswith(session.name)


def test_the_difference_is_the_turns_that_were_added(sides: Sides, version: str) -> None:
    sides.play(version, "plain").reconcile()
    path = first(sides.play(version, "continued"))
    shown = sides.read("diff", path.stem)
    assert "Continued." in shown
    assert "The first prompt." not in shown.replace("The first prompt.  " + path.name, "")


def test_removing_a_session_and_taking_it_back(whole: Sides) -> None:
    before = carried(whole.live)
    session = first(whole)
    whole.reconcile("rm", session.stem, "--yes")
    assert carried(whole.live) == carried(whole.store)
    assert carried(whole.live) == {path: content for path, content in before.items() if path != session.name}
    whole.reconcile("undo")
    assert carried(whole.live) == carried(whole.store) == before


def test_removing_a_session_takes_the_files_beside_it(whole: Sides) -> None:
    before, session = carried(whole.live), fork(whole)
    beside = {path for path in before if path.startswith(session.stem)}
    assert len(beside) == 4
    planned = whole.dry("rm", session.stem)
    assert len(planned) == 2 * len(beside)
    assert {each.rpartition(":")[2] for each in planned} == beside
    removed = whole.reconcile("rm", session.stem, "--yes").stdout
    assert (f"  {session.stem[:8]}\n" in removed, session.name in removed) == (True, False), removed
    assert carried(whole.live) == carried(whole.store)
    assert carried(whole.live) == {path: content for path, content in before.items() if path not in beside}
    assert not any(side.joinpath(session.stem).exists() for side in (whole.live, whole.store))
    back = whole.reconcile("undo").stdout
    assert (f"  {session.stem[:8]}\n" in back, session.name in back) == (True, False), back
    assert carried(whole.live) == carried(whole.store) == before


def test_removing_a_swept_session_takes_the_files_beside_it(whole: Sides) -> None:
    session = fork(whole)
    sweep(session)
    whole.reconcile()
    before = carried(whole.store)
    whole.reconcile("rm", session.stem, "--yes")
    assert carried(whole.live) == carried(whole.store)
    assert len(before) - len(carried(whole.store)) == 4
    whole.reconcile("undo")
    assert carried(whole.store) == before


def test_one_file_beside_a_session_is_removed_alone(whole: Sides) -> None:
    before, (agent,) = carried(whole.live), fork(whole).with_suffix("").glob("subagents/*.jsonl")
    removed = str(agent.relative_to(whole.live))
    whole.reconcile("rm", removed, "--yes")
    assert carried(whole.live) == carried(whole.store) == {each: before[each] for each in before if each != removed}


@pytest.mark.parametrize("how", ["session", "subagent", "list unreadable"])
def test_an_open_session_is_not_removed(whole: Sides, how: str) -> None:
    session, before = fork(whole), carried(whole.live)
    named = (
        next(path for path in before if path.endswith(".jsonl") and "/" in path) if how == "subagent" else session.stem
    )
    file = whole.open_in(os.getpid(), session.stem)
    if how == "list unreadable":
        shutil.rmtree(file.parent)
        file.parent.write_bytes(b"")
    refused = whole.reconcile("rm", named, "--yes", code=4)
    words = (
        "Claude Code, whose list of processes can't be read,"
        if "list" in how
        else f"Claude Code (process {os.getpid()})"
    )
    assert f"{words} has it open" in refused.output
    assert carried(whole.live) == carried(whole.store) == before
    if how != "list unreadable":
        file.unlink()
        whole.reconcile("rm", named, "--yes")
        assert carried(whole.live) == carried(whole.store) != before


def test_a_removal_that_was_cut_short_waits_for_a_session_that_is_open_now(whole: Sides) -> None:
    """Also of a waiting removal, both sides or none are changed."""
    session = first(whole)
    whole.reconcile("rm", session.stem, "--yes")
    whole.reconcile("undo")
    before = carried(whole.live)
    (whole.store / session.name).unlink()
    whole.open_in(os.getpid(), session.stem)
    whole.reconcile(code=4)
    assert carried(whole.live) == before


# Forks.


def forks(sides: Sides, *args: str, of: Path, code: int = 0) -> list[Path]:
    """Fork a session; return what is new."""
    known = set(sides.live.glob("*.jsonl"))
    result = sides.reconcile("fork", of.stem, *args, code=code)
    assert code == 0 or "Traceback" not in result.output
    return sorted(set(sides.live.glob("*.jsonl")) - known)


def test_a_fork_is_a_session_of_its_own_with_the_files_beside_it(whole: Sides) -> None:
    session, before = fork(whole), carried(whole.live)
    (new,) = forks(whole, of=session)
    assert carried(whole.live) == carried(whole.store)
    copied = {
        path.replace(new.stem, session.stem): content
        for path, content in carried(whole.live).items()
        if new.stem in path
    }
    old, own = session.stem.encode(), new.stem.encode()
    assert copied.keys() == {path for path in before if session.stem in path}
    for path, content in copied.items():
        lines = before[path].splitlines(keepends=True)
        if path == session.name:
            lines = [line for line in lines if "uuid" in json.loads(line)]
        if path.endswith(".jsonl"):
            lines = [line.replace(b'"sessionId":"%s"' % old, b'"sessionId":"%s"' % own) for line in lines]
        assert content == b"".join(lines)
    assert {path: carried(whole.live)[path] for path in before} == before
    assert new.stat().st_mtime > session.stat().st_mtime, "`--continue` takes the fork, as after the program's own"
    whole.reconcile("undo", "--allow-bulk-removal")
    assert carried(whole.live) == carried(whole.store) == before
    (other,) = forks(whole, of=session)
    assert other != new


def logged(sides: Sides) -> list[str]:
    return [run["id"] for run in json.loads(sides.read("log", "--json"))["runs"]]


def test_what_stays_in_the_home_is_never_called_published(whole: Sides) -> None:
    session = first(whole)
    session.unlink()
    shown = [whole.reconcile("recover", session.stem).output, whole.reconcile("fork", session.stem).output]
    shown += [whole.read("log"), whole.read("log", logged(whole)[0]), whole.read("status", session.stem)]
    assert "1 added to the workspace" in shown[1]
    assert "publish" not in "".join(shown)


@pytest.mark.long
@pytest.mark.parametrize("columns", [40, 60, 120])
def test_a_narrow_terminal_cuts_no_title_to_a_letter(whole: Sides, columns: int) -> None:
    session = first(whole)
    with session.open("ab") as file:
        file.write(LINE % b"plan")
    code, shown = at_terminal("status", "-w", whole.project, "--color=never", columns=columns)
    assert code == 0
    lines = shown.splitlines()
    assert any("The first prompt." in line for line in lines)
    assert any(session.stem[:8] in line and "reconcile" not in line for line in lines)
    words = (session.name, str(whole.project))  # they can't be broken
    assert max(map(len, lines)) <= max(columns, *(len(word) + 4 for word in words))


def test_a_fork_of_an_open_session_has_what_the_store_has_not_yet(whole: Sides) -> None:
    session = first(whole)
    whole.open_in(os.getpid(), session.stem)
    line = {"type": "user", "uuid": UNKNOWN, "sessionId": session.stem}
    content = add(session, json.dumps(line).encode() + b"\n")
    add(session, b'{"type":"mo')
    known = set(whole.live.glob("*.jsonl"))
    assert whole.run("fork", session.stem, "-w", whole.project).exit_code == 0
    (new,) = set(whole.live.glob("*.jsonl")) - known
    assert [json.loads(raw) for raw in new.read_bytes().splitlines()][-1] == line | {"sessionId": new.stem}
    assert session.read_bytes().startswith(content)


def test_a_fork_ends_at_a_line_or_at_a_time(whole: Sides) -> None:
    session = first(whole)
    lines = [line for line in session.read_bytes().splitlines() if "uuid" in json.loads(line)]
    number, at = next((n, line) for n, line in enumerate(map(json.loads, lines), 1) if line["type"] == "assistant")
    for end in (at["uuid"], at["timestamp"]):
        (new,) = forks(whole, "--until", end, "--title", "Another way", of=session)
        *kept, title = new.read_bytes().replace(new.stem.encode(), session.stem.encode()).splitlines()
        assert kept == lines[:number]
        assert json.loads(title) == {"type": "custom-title", "customTitle": "Another way", "sessionId": session.stem}
        assert "Another way" in whole.read("ls")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--last", "1"), "a part of a session begins with the session"),
        (("--until", UNKNOWN), "no line has this uuid"),
        (("--until", "2020-01-01"), "no line of the conversation up to there"),
    ],
)
def test_a_part_that_is_no_session_is_refused(whole: Sides, args: tuple[str, ...], words: str) -> None:
    before = carried(whole.live)
    assert words in whole.reconcile("fork", first(whole).stem, *args, code=4).output
    assert carried(whole.live) == before


def test_what_is_no_session_cannot_be_forked(whole: Sides) -> None:
    for path in carried(whole.live):
        if "/" in path:
            assert "does not apply" in whole.reconcile("fork", path, code=4).output


def test_a_local_fork_is_in_the_store_alone(whole: Sides) -> None:
    before, stored = carried(whole.live), carried(whole.store)
    assert forks(whole, "--local", of=fork(whole)) == []
    assert carried(whole.live) == before
    new = carried(whole.store).keys() - stored.keys()
    assert len(new) == 4
    whole.reconcile("recover", *new)
    assert carried(whole.live) == carried(whole.store)


def test_a_fork_of_a_swept_session(whole: Sides) -> None:
    session = fork(whole)
    sweep(session)
    whole.reconcile()
    (new,) = forks(whole, of=session)
    assert len([path for path in carried(whole.live) if path.startswith(new.stem)]) == 4
    assert not session.exists()


def test_a_saved_plan_of_a_fork(whole: Sides, tmp_path: Path) -> None:
    plan, known = tmp_path / "plan.json", set(whole.live.glob("*.jsonl"))
    whole.read("fork", first(whole).stem, "--out", plan)
    whole.reconcile("apply", plan)
    (new,) = set(whole.live.glob("*.jsonl")) - known
    assert new.stem in plan.read_text()


# Listings.


def listed(sides: Sides, *args: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(sides.read("ls", "--json", *args))["sessions"]
    return rows


def test_forks_and_subagents_are_below_their_session(whole: Sides) -> None:
    """The program has made the session with a subagent as a fork of the other one."""
    program = fork(whole)
    (new,) = forks(whole, of=program)
    parents = {row["record"]: row["parent"] for row in listed(whole, "--tree")}
    agents = {path: f"{path[:36]}.jsonl" for path in carried(whole.live) if "/" in path and path.endswith(".jsonl")}
    assert agents.keys() == {path for path in parents if "/" in path}
    sessions = {first(whole).name: None, program.name: first(whole).name, new.name: program.name}
    assert parents == agents | sessions
    assert {row["parent"] for row in listed(whole)} == {None}


def test_a_listing_has_the_shortest_ids_that_commands_take(whole: Sides) -> None:
    """At least eight characters; a file beside a session can begin as the id of another one, too."""
    session = first(whole)
    alike = session.with_stem(f"{session.stem[:9]}{'1' if session.stem[9] == '0' else '0'}{session.stem[10:]}")
    shutil.copy(session, alike)
    beside = fork(whole).with_suffix("") / "tool-results" / f"{session.stem[:12]}x.txt"
    beside.parent.mkdir(parents=True, exist_ok=True)
    beside.write_text("a long result")
    whole.reconcile()
    shown = set(whole.read("ls").split())
    short = {path.stem: path.stem[:length] for path, length in ((session, 13), (alike, 10), (fork(whole), 8))}
    assert shown >= set(short.values())
    for stem, text in short.items():
        assert f"- id: {stem}.jsonl" in whole.read("show", text)
        assert len(text) == 8 or "ambiguous" in whole.read("show", text[:-1], code=2)


def test_a_listing_has_the_branch_and_the_last_activity(whole: Sides) -> None:
    session = first(whole)
    at = "2026-01-31T12:00:00.000Z"
    add(session, json.dumps({"type": "user", "uuid": UNKNOWN, "gitBranch": "topic", "timestamp": at}).encode() + b"\n")
    row = next(row for row in listed(whole) if row["record"] == session.name)
    assert (row["git_branch"], row["activity_ns"]) == ("topic", 1_769_860_800 * 10**9)
    assert row["last_ns"] == session.stat().st_mtime_ns
    assert "topic" in whole.read("ls")


def test_a_listing_reads_the_ends_of_a_large_session(whole: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    session = first(whole)
    filler = json.dumps({"type": "user", "message": {"content": "x" * 1000}}).encode() + b"\n"
    with session.open("ab") as file:
        file.write(filler * 20_000)
    add(session, b'{"type":"custom-title","customTitle":"A large one"}\n')
    read, pread = [0], os.pread

    def counted(fd: int, length: int, offset: int) -> bytes:
        content = pread(fd, length, offset)
        read[0] += len(content)
        return content

    monkeypatch.setattr(os, "pread", counted)
    assert "A large one" in whole.read("ls")
    assert 0 < read[0] < 1 << 18
    rows = whole.run("ls", "-w", whole.project)
    assert rows.exit_code == 0


def test_a_title_in_the_middle_of_a_large_session_is_listed_once_a_run_has_read_it(whole: Sides) -> None:
    session = first(whole)
    filler = json.dumps({"type": "user", "message": {"content": "x" * 1000}}).encode() + b"\n"
    add(session, filler * 600 + b'{"type":"custom-title","customTitle":"In the middle"}\n' + filler * 600)
    whole.reconcile()
    assert "In the middle" in whole.read("ls")
    add(session, filler)
    assert "In the middle" in whole.read("ls"), "no run has read the last line"
    add(session, b'{"type":"custom-title","customTitle":"At the end"}\n')
    assert "At the end" in whole.read("ls")
    whole.reconcile()
    assert "At the end" in whole.read("ls")
    shutil.rmtree(whole.config)
    assert "At the end" in whole.read("ls"), "the store's"


def test_undo_of_an_append_waits_for_the_next_line(sides: Sides, version: str) -> None:
    sides.play(version, "plain").reconcile()
    before = carried(sides.store)
    path = first(sides.play(version, "continued"))
    content = path.read_bytes()
    sides.reconcile()
    sides.reconcile("undo")
    assert carried(sides.store) == before
    assert path.read_bytes() == content
    add(path, LINE % b"plan")
    sides.reconcile()
    assert sides.in_sync()


def test_undo_of_the_first_run(sides: Sides, version: str) -> None:
    sides.play(version, "plain")
    before = carried(sides.live)
    sides.reconcile()
    sides.reconcile("undo", "--allow-bulk-removal")
    assert (carried(sides.live), carried(sides.store)) == (before, {})


def test_watching(sides: Sides, version: str) -> None:
    sides.play(version, "plain").reconcile()
    with Watching(sides) as watching:
        path = first(sides.play(version, "continued"))
        until(sides.in_sync, "the turn is saved")
        until(lambda: ("copy", path.name, "metadata") in watching.done(), "the turn is told of")
        sides.play(version, "subagent")
        until(sides.in_sync, "new files are saved")
        assert watching.stop(signal.SIGTERM) == 0
    assert "Nothing to do" in sides.read()


def test_an_empty_session_is_nothing_to_repair(whole: Sides) -> None:
    """Versions before 2.1 leave one at each resume."""
    empty = whole.live / f"{UNKNOWN}.jsonl"
    empty.touch()
    whole.reconcile()
    assert whole.in_sync()
    content = add(empty, LINE % b"begun")
    whole.reconcile()
    assert carried(whole.store)[empty.name] == content


def test_an_emptied_session_is_filled_again(whole: Sides) -> None:
    session = first(whole)
    before = session.read_bytes()
    session.write_bytes(b"")
    whole.reconcile()
    assert session.read_bytes() == before
    assert whole.in_sync()


@pytest.mark.parametrize("older", OLDER)
def test_a_session_of_an_older_version_comes_back(sides: Sides, older: str) -> None:
    for story in ("plain", "continued"):
        sides.play(older, story).reconcile()
        assert sides.in_sync()
    sides.play(older, "subagent").reconcile()
    before = carried(sides.live)
    sides.lose()
    sides.reconcile("recover", "--yes")
    assert carried(sides.live) == before


# Large sessions.


def peak(sides: Sides, *args: str) -> int:
    """Run the command in a process of its own; return the bytes of memory that it needed at most."""
    watched = [sys.executable, "-c", PEAK, *command(*args, "-w", sides.project)]
    return int(subprocess.run(watched, capture_output=True, text=True, check=True).stdout)


def test_a_large_session_needs_no_more_memory_than_a_small_one(sides: Sides) -> None:
    """30 MB were 34 to 36 MB of memory, and a small session 29."""
    path = first(sides.play(VERSIONS[-1], "plain"))
    small = peak(sides)
    large = path.with_stem(UNKNOWN)
    prompt = json.dumps({"type": "user", "message": {"role": "user", "content": "x" * 3000}}).encode() + b"\n"
    large.write_bytes(path.read_bytes() + prompt * (30 * 2**20 // len(prompt)))
    peaks = {"saved": peak(sides), "nothing to do": peak(sides)}
    assert sides.in_sync()
    add(large, prompt)
    peaks["appended"] = peak(sides)
    assert sides.in_sync()
    large.unlink()
    peaks["restored"] = peak(sides, "recover", "--yes")
    assert sides.in_sync()
    assert max(peaks.values()) < small + 15 * 2**20, peaks


def test_a_session_is_one_file_on_the_screen(sides: Sides, version: str) -> None:
    path = first(sides.play(version, "plain"))
    outputs = [sides.reconcile().output]
    add(path, LINE % b"more")
    outputs.append(sides.reconcile().output)
    assert all("  -> store      file " in output and "metadata" not in output for output in outputs)
    run = outputs[-1].partition("(run ")[2].partition(";")[0]
    told = [sides.read("log", run), sides.read("status", path.name), sides.read("vault")]
    assert not any("metadata" in output for output in told), told
    assert "  file  store:" in told[0]
    assert "\n  file: up to date" in told[1]
    (name,) = {word for word in told[0].split() if "@" in word}
    assert (name, sides.read("show", name)) == (f"{path.name}@{run}", sides.read("show", f"{name}:metadata"))


def test_a_search_counts_damaged_files_and_names_them_on_request(sides: Sides, version: str) -> None:
    path = first(sides.play(version, "plain"))
    add(path, b'{"type": "user", "mess')
    sides.reconcile()
    found = sides.run("find", "a", "-w", sides.project)
    assert "note: 1 file is damaged or incomplete" in found.stderr
    assert path.name not in found.stderr
    assert f"{path.name}: line " in sides.run("find", "a", "-v", "-w", sides.project).stderr
    assert "(no title)" not in found.stdout


def test_the_beginning_of_an_id_is_the_sessions(whole: Sides) -> None:
    session = fork(whole)
    assert whole.read("show", session.stem[:8]) == whole.read("show", session.stem)


def test_a_session_that_grows_fills_no_vault_and_every_version_is_there(sides: Sides) -> None:
    path = first(sides.play(VERSIONS[-1], "plain"))
    large = b'{"type":"user","message":{"content":"%s"}}\n' % (b"x" * 300_000)
    versions = [add(path, large)]
    sides.reconcile()
    for number in range(6):
        versions.append(add(path, LINE % b"%d" % number))
        sides.reconcile()
    objects = [
        each for each in Path(os.environ["XDG_DATA_HOME"]).rglob("*") if "objects" in each.parts and each.is_file()
    ]
    assert sum(each.stat().st_size for each in objects) < 1.1 * len(versions[-1])
    listed = json.loads(sides.read("vault", "--json"))["objects"]
    assert len(listed) == 6
    shown = {sides.read("show", each["digest"][:16]) for each in listed}
    assert len(shown) == 6
    assert "can't be read" not in sides.read("find", "first", "prompt")
    for before in reversed(versions[:-1]):
        sides.run("undo", "--yes", "-w", sides.project)
        assert (sides.store / path.name).read_bytes() == before


def test_doctor_names_what_is_no_session_and_the_way_on(whole: Sides) -> None:
    path = whole.live / f"{UNKNOWN}.jsonl"
    path.write_text("some text\nof another program\n")
    told = whole.read("doctor", code=4)
    assert "no line is a JSON object" in told
    assert f"mv {path} ~" in told.replace("\n", "")
    path.write_text("some text\n{}\n")
    assert "no line is a JSON object" not in whole.read("doctor")


def test_a_saved_plan_is_carried_out(sides: Sides, version: str, tmp_path: Path) -> None:
    sides.play(version, "subagent")
    plan = tmp_path / "plan.json"
    sides.read("--out", plan)
    sides.reconcile("apply", plan)
    assert sides.in_sync()


def test_what_a_run_makes_is_for_its_owner_alone(sides: Sides, version: str) -> None:
    sides.play(version, "subagent")
    sides.reconcile()
    shutil.rmtree(sides.live)
    sides.reconcile("recover", "--yes")
    for top in (sides.store, sides.live):
        assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in (top, *top.rglob("*"))} == {0}


def test_without_the_list_of_processes_every_session_counts_as_open(whole: Sides) -> None:
    session = first(whole)
    whole.reconcile()
    before = session.read_bytes()
    ahead = add(whole.store / session.name, LINE % b"ahead")
    listed = whole.config / "sessions"
    shutil.rmtree(listed, ignore_errors=True)
    listed.write_bytes(b"")
    held = whole.reconcile(code=4)
    assert ("Claude Code has it open" in held.output, session.read_bytes()) == (True, before)
    listed.unlink()
    whole.reconcile()
    assert session.read_bytes() == ahead


def diverged(sides: Sides) -> tuple[Path, bytes]:
    """Both sides continue a session, the workspace later; return it, and the store's version."""
    session = first(sides)
    sides.reconcile()
    older = add(sides.store / session.name, LINE % b"store")
    os.utime(sides.store / session.name, (0, 0))
    add(session, LINE % b"workspace")
    return session, older


def test_a_run_that_was_cut_short_between_the_copies_of_a_fork_is_finished(whole: Sides) -> None:
    session, older = diverged(whole)
    new, content = forked(session.stem, older)
    (whole.store / f"{new}.jsonl").write_bytes(content)
    whole.reconcile()
    assert whole.in_sync()
    assert (whole.live / f"{new}.jsonl").read_bytes() == content
    assert session.read_bytes().endswith(LINE % b"workspace")


def test_two_continuations_can_be_left_to_a_person(whole: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    session, older = diverged(whole)
    monkeypatch.setenv("RECONCILE_DIVERGED", "hold")
    known = set(carried(whole.store))
    whole.reconcile(code=4)
    assert (set(carried(whole.store)), (whole.store / session.name).read_bytes()) == (known, older)


def test_a_link_in_the_place_of_the_live_directory_is_never_followed(whole: Sides) -> None:
    whole.reconcile()
    first(whole).unlink()
    whole.reconcile()
    elsewhere = whole.live.with_name("elsewhere")
    whole.live.rename(elsewhere)
    whole.live.symlink_to(elsewhere)
    before = set(carried(elsewhere))
    refused = whole.read("recover", "--yes", code=2)
    assert ("a symbolic link" in refused, set(carried(elsewhere))) == (True, before)
