"""The manners of a terminal, with real processes: colours, the pager, and the progress of long work."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli.modules import module
from tests.support.projects.terminal import at_terminal
from tests.support.projects.world import command, events, make_project, write_conversation

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run
    from tests.support.projects.world import World

pytestmark = pytest.mark.long

FIRST, COUNT = 17500000000, 1000
COLOURS = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "RECONCILE_PAGER", "PAGER", "LESS")
ERASED = "\r\x1b[2K"


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in COLOURS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.fixture
def world(tmp_path: Path, run: Run) -> World:
    """Thirty conversations in step: more lines than the terminals of these tests have rows."""
    world = make_project(tmp_path / "project", run)
    for number in range(30):
        write_conversation(world.workspace / f"{FIRST + number}-it", f"Title {number}", events(2))
    world.reconcile()
    return world


PRECEDENCE: dict[str, tuple[dict[str, str], bool, bool]] = {
    "nothing is said": ({}, True, False),
    "NO_COLOR": ({"NO_COLOR": "1"}, False, False),
    "NO_COLOR is empty": ({"NO_COLOR": ""}, True, False),
    "FORCE_COLOR": ({"FORCE_COLOR": "1"}, True, True),
    "FORCE_COLOR is empty": ({"FORCE_COLOR": ""}, True, False),
    "FORCE_COLOR at a dumb terminal": ({"FORCE_COLOR": "1", "TERM": "dumb"}, True, True),
    "CLICOLOR=0": ({"CLICOLOR": "0"}, False, False),
    "CLICOLOR=1": ({"CLICOLOR": "1"}, True, False),
    "CLICOLOR_FORCE": ({"CLICOLOR_FORCE": "1"}, True, True),
    "CLICOLOR_FORCE=0": ({"CLICOLOR_FORCE": "0"}, True, False),
    "CLICOLOR_FORCE wins over CLICOLOR": ({"CLICOLOR": "0", "CLICOLOR_FORCE": "1"}, True, True),
    "FORCE_COLOR wins over CLICOLOR": ({"CLICOLOR": "0", "FORCE_COLOR": "1"}, True, True),
    "NO_COLOR wins over both": ({"NO_COLOR": "1", "FORCE_COLOR": "1", "CLICOLOR_FORCE": "1"}, False, False),
    "a dumb terminal": ({"TERM": "dumb"}, False, False),
}
"""Variables, whether colours are shown at a terminal, and whether they are written into a pipe."""


@pytest.mark.parametrize(("environ", "at", "piped"), PRECEDENCE.values(), ids=PRECEDENCE)
def test_colours_follow_the_variables(world: World, environ: dict[str, str], at: bool, piped: bool) -> None:
    words = ("-w", world.project, "--dry-run")
    code, shown = at_terminal(*words, environ=environ)
    assert (code, "\x1b[" in shown) == (0, at)
    into_pipe = subprocess.run(command(*words), env={**os.environ, **environ}, capture_output=True, check=True)
    assert (b"\x1b[" in into_pipe.stdout) is piped
    assert "Nothing to do" in shown
    assert b"Nothing to do" in into_pipe.stdout


@pytest.mark.parametrize("environ", [{}, {"NO_COLOR": "1"}, {"FORCE_COLOR": "1"}], ids=str)
def test_the_option_wins_over_every_variable(world: World, environ: dict[str, str]) -> None:
    for when in ("always", "never"):
        _, shown = at_terminal("-w", world.project, "--dry-run", f"--color={when}", environ=environ)
        assert ("\x1b[" in shown) is (when == "always")


@pytest.fixture
def pager(tmp_path: Path) -> str:
    """A pager that marks each line it is given."""
    program = tmp_path / "pager"
    program.write_text("#!/bin/sh\nexec sed 's/^/PAGED /'\n")
    program.chmod(0o755)
    return str(program)


def paged(shown: str) -> int:
    return shown.count("PAGED ")


def test_long_output_at_a_terminal_is_paged_as_git_chooses_the_pager(world: World, pager: str) -> None:
    words = ("-w", world.project, "ls")
    rows, columns = 24, 80
    whole = at_terminal(*words, rows=100, columns=80)[1].splitlines()
    assert len(whole) > 30
    code, shown = at_terminal(*words, environ={"PAGER": pager}, rows=rows, columns=columns)
    assert (code, shown.splitlines()) == (0, [f"PAGED {line}" for line in whole])
    for other, own, is_paged in (("false", pager, True), (pager, "cat", False), (pager, "", False)):
        code, shown = at_terminal(*words, environ={"PAGER": other, "RECONCILE_PAGER": own}, rows=rows, columns=columns)
        assert (code, bool(paged(shown))) == (0, is_paged)
    whole = at_terminal(*words, environ={"NO_COLOR": "1"}, rows=100, columns=80)[1].splitlines()
    for environ in ({"PAGER": "cat"}, {"PAGER": ""}, {"PAGER": pager, "TERM": "dumb"}):
        environ["NO_COLOR"] = "1"
        assert at_terminal(*words, environ=environ, rows=rows, columns=columns) == (
            0,
            "".join(f"{line}\n" for line in whole),
        )


def test_a_pager_can_have_arguments(world: World) -> None:
    environ = {"PAGER": "sed 's/^/PAGED now /'"}
    _, shown = at_terminal("-w", world.project, "ls", environ=environ, rows=24, columns=80)
    assert shown.count("PAGED now ") > 30


def test_short_output_and_other_output_is_not_paged(world: World, pager: str) -> None:
    environ = {"PAGER": pager}
    for words in (("ls", "--json"), ("--no-pager", "ls"), ("ls", "--no-pager"), ("ls", "--help"), ()):
        code, shown = at_terminal("-w", world.project, *words, environ=environ, rows=24, columns=80)
        assert (code, paged(shown)) == (0, 0), words
        assert shown
    assert paged(at_terminal("-w", world.project, "ls", environ=environ, rows=100, columns=80)[1]) == 0
    variables = {**os.environ, **environ}
    into_pipe = subprocess.run(command("-w", world.project, "ls"), env=variables, capture_output=True, check=True)
    assert b"PAGED" not in into_pipe.stdout


@pytest.mark.parametrize("quitter", ["true", "head -n 1", "false"])
def test_a_pager_that_is_quit_early_is_no_error(many: World, quitter: str) -> None:
    """The output is longer than a pipe holds, so that the pager ends before all of it is written."""
    (newest, *_) = json.loads(many.run("log", "--json", "-w", many.project).stdout)["runs"]
    words = ("-w", many.project, "log", newest["id"], "-v")
    whole = subprocess.run(command(*words), capture_output=True, check=True).stdout
    assert len(whole) > 65536
    code, shown = at_terminal(*words, environ={"PAGER": quitter}, rows=24, columns=200)
    assert (code, len(shown.splitlines())) == (0, 1 if "head" in quitter else 0)


def test_ctrl_c_is_for_the_pager(world: World) -> None:
    """The command waits for the pager's own end, as a pager goes on after it."""
    environ = {"PAGER": "sh -c 'cat >/dev/null; kill -INT $PPID; sleep 0.3; echo the pager has ended'"}
    shown = at_terminal("-w", world.project, "ls", environ=environ, rows=24, columns=80)
    assert shown == (0, "the pager has ended\n")


def test_without_the_pager_the_output_is_printed(world: World) -> None:
    for missing in ("no-such-program --at all", "'unbalanced"):
        code, shown = at_terminal("-w", world.project, "ls", environ={"PAGER": missing}, rows=24, columns=80)
        assert (code, shown.count("Title")) == (0, 31)  # with the head of the table


def test_a_closed_pipe_is_silent(many: World) -> None:
    line = f"set -o pipefail; {command('-w', many.project, 'ls')[0]} -w '{many.project}' ls | head -n 1"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 141)
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1


@pytest.fixture
def many(tmp_path: Path, run: Run) -> World:
    """A thousand conversations, of which each is copied by the first run."""
    world = new_world(tmp_path, run)
    world.reconcile()
    return world


def new_world(tmp_path: Path, run: Run) -> World:
    world = make_project(tmp_path / "project", run)
    for number in range(COUNT):
        title = f"A title that is long enough to fill more than a pipe {number}"
        write_conversation(world.workspace / f"{FIRST + number}-it", title, events(1))
    return world


def test_long_work_at_a_terminal_shows_counts_and_erases_them(tmp_path: Path, run: Run) -> None:
    world = new_world(tmp_path, run)
    code, shown = at_terminal("-w", world.project, "-y", rows=24, columns=80)
    assert code == 0
    assert f"{ERASED}reading about {COUNT} directories" in shown
    assert f"{ERASED}planning {COUNT} conversations" in shown
    left = [line.rpartition(ERASED)[2] for line in shown.splitlines()]
    assert not [line for line in left if re.match("reading about|planning|applying", line)]
    assert f"Done: {COUNT} added to the store" in shown


@pytest.mark.parametrize("words", [("--json",), ("--quiet",)], ids=str)
def test_no_progress_where_it_is_not_wanted(tmp_path: Path, run: Run, words: tuple[str, ...]) -> None:
    world = new_world(tmp_path, run)
    assert ERASED not in at_terminal("-w", world.project, "-y", *words)[1]


def test_no_progress_into_a_pipe(tmp_path: Path, run: Run) -> None:
    world = new_world(tmp_path, run)
    done = subprocess.run(command("-w", world.project, "-y"), capture_output=True, text=True, check=True)
    assert ERASED not in done.stdout + done.stderr
    assert "planning" not in done.stderr


class Clock:
    """The clock of the progress, which the test turns."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


class Screen(io.StringIO):
    """Standard error at a terminal."""

    def isatty(self) -> bool:
        return True

    def taken(self) -> str:
        """Return what was written since the last call."""
        text = self.getvalue()
        self.seek(0)
        self.truncate()
        return text


def clock_and_screen(monkeypatch: pytest.MonkeyPatch) -> tuple[Clock, Screen]:
    """Replace both. It is no fixture: pytest sets standard error again before the test itself."""
    clock, screen = Clock(), Screen()
    monkeypatch.setattr(module("output.interaction"), "time", clock)
    monkeypatch.setattr(sys, "stderr", screen)
    return clock, screen


def test_progress_appears_after_a_moment_and_not_for_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, screen = clock_and_screen(monkeypatch)
    with module("output.interaction").Progress(module("arguments").Options()) as progress:
        progress.advance(1, 300)
        clock.now += 0.4
        progress.advance(2, 300)
        assert screen.taken() == ""
        clock.now += 0.2
        progress.advance(100, 300)
        progress.advance(101, 300)
        assert screen.taken() == f"{ERASED}applying 100 of 300 steps"
        clock.now += 0.2
        progress.advance(200, 300)
        assert screen.taken() == f"{ERASED}applying 200 of 300 steps"
    assert screen.taken() == ERASED


def test_a_run_tells_how_many_steps_are_done(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    _, screen = clock_and_screen(monkeypatch)
    monkeypatch.setattr(module("output.interaction"), "PROGRESS_AFTER", 0)
    for number in range(3):
        write_conversation(world.workspace / f"{FIRST + 100 + number}-it", f"New {number}", events(2))
    module("app").main(["-w", str(world.project), "-y"], standalone_mode=False)
    shown = screen.taken()
    assert re.search(r"applying [123] of 3 steps", shown)
    assert shown.endswith(ERASED)


def test_the_line_is_erased_before_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    _, screen = clock_and_screen(monkeypatch)

    def fail() -> None:
        with module("output.interaction").Progress(module("arguments").Options()) as progress:
            progress.show("reading about 2000 directories", 2000)
            raise FileNotFoundError

    with pytest.raises(FileNotFoundError):
        fail()
    assert screen.taken() == f"{ERASED}reading about 2000 directories{ERASED}"
