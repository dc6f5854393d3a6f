"""What `make demo` leaves: a project to go on with, apart from the user's own data."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.projects.terminal import at_terminal, run_at_terminal
from tests.support.projects.three_conversations import three
from tests.support.projects.world import SCRIPT, files, make_project
from tests.support.projects.world import shown as path_shown

if TYPE_CHECKING:
    from tests.conftest import Run

pytestmark = pytest.mark.long

FIXTURES = Path(__file__).parents[2] / "fixtures" / "demo"


def surroundings() -> dict[str, str]:
    """Return the environment, with the command on the path."""
    return os.environ | {"PATH": f"{SCRIPT.parent}:{os.environ['PATH']}"}


def made(top: Path) -> str:
    """Make the demo in a clone of its own; return what it prints."""
    shutil.copytree(FIXTURES, top / "fixtures" / "demo")
    demo = str(top / "fixtures" / "demo" / "run")
    return subprocess.run([demo], env=surroundings(), check=True, capture_output=True, text=True).stdout


def test_the_demo_goes_on_without_the_users_data(tmp_path: Path, home: Path) -> None:
    home.mkdir(parents=True)
    top = tmp_path / "it's a clone"
    made(top)
    demo = top / ".demo"

    def ran(*words: str) -> str:
        command = [str(demo / "reconcile"), *words]
        found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return found.stdout + found.stderr

    stored = files(demo / "data")
    assert "Nothing to do" in ran()
    ran("local", "17779500000")
    assert len(files(demo / "project")) < len(stored)
    assert "undo of" in ran("undo")
    shutil.rmtree(demo / "project" / ".jp")
    ran("recover", "-y")
    assert len(list((demo / "project" / ".jp" / "conversations").rglob("metadata.json"))) == 5
    assert files(home) == [], "nothing of the user's was touched"


def test_what_the_demo_says_to_try_never_touches_the_users_data(tmp_path: Path, home: Path) -> None:
    """Nor does the same with the user's own command, where the demo's was forgotten: it finds no project there."""
    home.mkdir(parents=True)
    top = tmp_path / "clone"
    tried = [line for line in made(top).partition("Try next")[2].splitlines() if line.startswith("  ")]
    assert len(tried) == 5
    for line in tried:
        subprocess.run(["sh", "-c", line.replace("recover", "recover -y")], env=surroundings(), cwd=top, check=True)
        own = line.replace(".demo/reconcile", "reconcile").rpartition("&& ")[2]
        assert own.startswith(("  reconcile ", "reconcile "))
        for at in (top, top / ".demo"):
            found = subprocess.run(["sh", "-c", own], env=surroundings(), cwd=at, check=False, capture_output=True)
            assert found.returncode == 2
    assert files(home) == []


def test_the_demo_asks_nothing_and_opens_no_pager(tmp_path: Path) -> None:
    """At a terminal that is too small for its output, and where the answer to a question is the end of the input."""
    top = tmp_path / "clone"
    shutil.copytree(FIXTURES, top / "fixtures" / "demo")
    env = surroundings() | {"PAGER": "echo the pager", "TERM": "xterm"}
    code, shown = run_at_terminal([str(top / "fixtures" / "demo" / "run")], answers="\x04", env=env, rows=5)
    assert (code, "Continue?" in shown, "the pager" in shown) == (0, False, False), shown
    assert "Nothing to do" in shown


def test_a_store_that_a_run_makes_is_named(tmp_path: Path, run: Run) -> None:
    world = make_project(tmp_path / "project", run)
    for command in ((), ("-n",), ("project", "--all")):
        assert run("-w", world.project, *command).stderr == "", "with nothing to save, none is made"
    assert not world.silo.exists()
    three(world)
    told = f"this workspace has no store yet; creating {path_shown(world.silo)}\n"
    dry = run("-n", "-w", world.project)
    assert dry.stderr == told.replace("creating", "a run creates")
    assert not world.silo.exists()
    code, shown = at_terminal("-w", world.project, answers="n\n")
    assert (code, "Continue?" in shown, world.silo.exists()) == (4, True, False), shown
    assert run("-w", world.project).stderr == told, "nobody can be asked: a script's first run works"
    assert world.store.is_dir()
    assert run("-w", world.project).stderr == ""


def test_a_store_is_made_with_a_yes(tmp_path: Path, run: Run) -> None:
    world = make_project(tmp_path / "project", run)
    three(world)
    code, shown = at_terminal("-w", world.project, answers="y\n")
    assert (code, world.store.is_dir()) == (0, True), shown
    other = make_project(tmp_path / "other", run)
    (other.project / ".jp" / ".id").write_text("zz9zz\n")
    code, shown = at_terminal("-w", other.project, "-y")
    assert (code, "Continue?" in shown) == (0, False)
