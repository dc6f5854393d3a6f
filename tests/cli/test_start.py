"""What is answered before the parser is loaded is said as the parser's command says it."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.support.projects.world import contents, events, make_project, write_conversation

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

COMMAND = os.path.join(os.path.dirname(sys.executable), "reconcile")


def ran(*words: str | Path, **environment: str) -> tuple[int, str, str]:
    found = subprocess.run(
        [COMMAND, *map(str, words)], env=os.environ | environment, capture_output=True, text=True, check=False
    )
    return found.returncode, found.stdout, found.stderr


@pytest.mark.parametrize("words", [[], ["--dry-run"], ["status"], ["recover"]])
def test_a_deleted_current_directory_is_one_error_with_a_hint(tmp_path: Path, words: list[str]) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    program = f"import os; os.chdir({str(gone)!r}); os.rmdir('../gone'); os.execv({COMMAND!r}, {[COMMAND, *words]!r})"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (1, "")
    assert found.stderr.splitlines() == [
        "error: the current directory was deleted or moved",
        "hint: change to a directory that exists: cd PROJECT",
    ]


@pytest.mark.parametrize("words", [[], ["-n"], ["-q"], ["--check", "-v"]])
def test_nothing_to_do_is_said_in_the_same_words(tmp_path: Path, run: Run, words: list[str]) -> None:
    world = make_project(tmp_path / "project", run)
    write_conversation(world.workspace / "17528832001-it", "It", events(2))
    where = ["-w", str(world.project)]
    for _ in range(3):
        run(*where)
        time.sleep(0.1)  # what was written a moment ago is looked at once more
    # With a word that is left to the parser.
    by_parser = run(*words, *where, "--color=auto")
    assert ran(*words, *where) == (by_parser.exit_code, by_parser.stdout, by_parser.stderr)
    assert words == ["-q"] or "Nothing to do. 1 conversation: 1 up to date." in by_parser.stdout


def test_what_goes_wrong_is_one_line(tmp_path: Path, run: Run) -> None:
    missing = tmp_path / "missing"
    by_parser = run("-w", missing, "--color=auto")
    assert ran("-w", missing) == (2, "", by_parser.stderr)
    assert by_parser.stderr.startswith(f"error: --workspace: {missing} does not exist\n")


@pytest.mark.parametrize("unset", [True, False])
def test_without_a_home_the_one_of_the_system_is_taken(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, unset: bool
) -> None:
    """And never the root directory, which an empty variable would stand for."""
    world = make_project(tmp_path / "project", run)
    write_conversation(world.workspace / "17528832001-it", "It", events(2))
    home = pwd.getpwuid(os.getuid()).pw_dir
    for name in [name for name in os.environ if name.startswith(("JP_", "XDG_", "RECONCILE_")) or name == "HOME"]:
        monkeypatch.delenv(name)
    if not unset:
        monkeypatch.setenv("HOME", "")
    plan, config = (json.loads(ran(name, "--json", "-w", world.project)[1]) for name in ("-n", "config"))
    assert plan["store"].startswith(f"{home}/")
    assert config["file"].startswith(f"{home}/")
    assert config["directories"]["state"].startswith(f"{home}/")


def test_a_relative_home_is_refused_before_anything_is_written(tmp_path: Path, run: Run) -> None:
    world = make_project(tmp_path / "project", run)
    write_conversation(world.workspace / "17528832001-it", "It", events(2))
    before = sorted(tmp_path.rglob("*"))
    said = "error: HOME is a relative path\nhint: set it to an absolute path: export HOME=DIR\n"
    for words in (("-w", str(world.project)), ("--yes", "-w", str(world.project)), ("status",), ("hooks", "run", "x")):
        for home in ("rel", "relative"):
            assert ran(*words, HOME=home) == (2, "", said)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_shell_is_told_how_to_complete_words() -> None:
    assert "_reconcile_completion" in ran(_RECONCILE_COMPLETE="bash_source")[1]


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_stream_may_be_closed(tmp_path: Path, run: Run, closed: str) -> None:
    world = make_project(tmp_path / "project", run)
    write_conversation(world.workspace / "17528832001-it", "It", events(2))
    for _ in range(3):
        ran = subprocess.run(["sh", "-c", f'"$0" -w "$1" {closed}', COMMAND, str(world.project)], check=False)
        assert ran.returncode == 0
        time.sleep(0.1)
    world.reconcile()
    assert contents(world.store) == contents(world.workspace)
