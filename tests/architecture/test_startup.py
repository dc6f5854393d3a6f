"""Starting costs what a command needs and no more."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.support.projects.world import LONG_AGO, append, events, make_project, write_conversation

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

HEAVY = {
    "asyncio",
    "filelock",
    "importlib.metadata",
    "msgspec",
    "pydantic",
    "rich",
    "sqlite3",
    "textual",
    "watchdog",
    "xxhash",
}


NEEDED_TO_TELL_THE_VERSION = {
    "errno",
    "importlib",
    "reconcile",
    "reconcile.errors",
    "reconcile.signals",
    "reconcile.version",
    "reconcile_cli",
    "reconcile_cli.output",
    "reconcile_cli.output.errors",
    "reconcile_cli.output.streams",
    "reconcile_cli.start",
    "warnings",
}


def imported_by(script: str) -> set[str]:
    ran = subprocess.run(
        [sys.executable, "-I", "-X", "importtime", "-c", script], capture_output=True, text=True, check=True
    )
    return {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines()}


@pytest.fixture(scope="module")
def imported_anyway() -> set[str]:
    """What an empty script imports, the hook of an editable install included."""
    return imported_by("pass")


def test_the_library_alone_is_free(imported_anyway: set[str]) -> None:
    assert imported_by("import reconcile") - imported_anyway == {"reconcile", "reconcile.version"}


def test_the_version_is_told_at_once(imported_anyway: set[str]) -> None:
    script = (
        "import sys, importlib; sys.argv[1:] = ['--version']; importlib.import_module('reconcile_cli.start').start()"
    )
    loaded = imported_by(script)
    assert not (loaded - imported_anyway) & (HEAVY | {"click"})
    assert {name for name in loaded if not name.startswith("_")} - imported_anyway <= NEEDED_TO_TELL_THE_VERSION


@pytest.mark.parametrize("word", ["--version", "--help", "--unknown"])
def test_the_end_takes_nothing_apart(word: str) -> None:
    """What a command has loaded and computed takes the interpreter a tenth of its time."""
    script = f"import atexit, sys\nsys.argv[1:] = ['{word}']\natexit.register(print, 'taken apart')\n"
    script += "from reconcile_cli.start import start\nstart()"
    ran = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=False)
    assert ran.returncode == (2 if word == "--unknown" else 0)
    assert ran.stdout + ran.stderr
    assert "taken apart" not in ran.stdout


def test_the_command_line_loads_no_command(imported_anyway: set[str]) -> None:
    loaded = imported_by("import reconcile_cli.app") - imported_anyway
    assert not loaded & HEAVY
    packages = {name.split(".")[1] for name in loaded if name.startswith("reconcile.")}
    assert not packages & {"adapters", "engine", "fs", "index", "model", "planning", "scan", "state"}


def test_what_is_only_looked_at_is_loaded_when_it_is_asked_for(imported_anyway: set[str]) -> None:
    script = (
        "import reconcile_cli.commands.doctor, reconcile_cli.commands.brief, reconcile_cli.commands.ls, "
        "reconcile_cli.plain, "
        "reconcile.engine.session"
    )
    assert not {name for name in imported_by(script) - imported_anyway if "claudesidian" in name or "leslie" in name}


def test_what_a_run_without_changes_needs_is_light(imported_anyway: set[str]) -> None:
    loaded = imported_by("import reconcile_cli.plain") - imported_anyway
    assert not loaded & HEAVY
    assert not loaded & {"reconcile.engine.session", "reconcile.planning.planner", "reconcile.serialization.plan_json"}


def test_an_answer_that_is_known_needs_no_parser(imported_anyway: set[str]) -> None:
    loaded = imported_by("import reconcile_cli.start, reconcile_cli.unchanged, gc") - imported_anyway
    assert not loaded & (
        HEAVY | {"click", "inspect", "re", "dataclasses", "reconcile.model.plan", "reconcile.model.snapshot"}
    )


def test_a_run_with_one_change_loads_only_what_it_uses(
    imported_anyway: set[str], tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock's package is a tenth of what such a run costs: nothing else may be loaded beside the work itself."""
    world = make_project(tmp_path / "project", run)
    monkeypatch.chdir(world.project)
    directory = write_conversation(world.workspace / "17528832001-it", "It", events(2))
    for _ in range(3):
        run()
        time.sleep(0.1)  # what was written a moment ago is looked at once more
    append(directory, 1, "b", LONG_AGO + 10)
    script = "import sys, importlib; sys.argv[1:] = []; importlib.import_module('reconcile_cli.start').start()"
    loaded = imported_by(script) - imported_anyway
    assert world.event_count(17528832001, world.store) == 3
    assert "filelock" in loaded
    assert not loaded & {"asyncio", "click", "mmap", "pydantic", "shlex", "signal", "subprocess", "watchdog"}
    assert not {name for name in loaded if name.startswith("reconcile.") and "secret" in name}, "nothing is published"
    (stored,) = world.store.iterdir()
    append(stored, 1, "c", LONG_AGO + 20)
    loaded = imported_by(script) - imported_anyway
    assert world.event_count(17528832001, world.workspace) == 4
    assert "reconcile.secrets.rules" in loaded


def test_a_command_that_only_looks_loads_nothing_to_write_with(imported_anyway: set[str]) -> None:
    script = "import reconcile_cli.commands.status, reconcile_cli.commands.diff, reconcile_cli.commands.doctor"
    script += "\nimport reconcile.engine.session, reconcile.formats.jp.format"
    loaded = imported_by(script) - imported_anyway
    assert not loaded & {"hashlib", "random", "shutil", "subprocess", "tempfile"}
    assert not loaded & {"difflib", "reconcile.planning.requests.edits"}


def test_what_is_loaded_beside_msgspec_defines_structs(imported_anyway: set[str]) -> None:
    """A NamedTuple takes ten times as long to define: only what every start loads, or what is unpacked, is one."""
    script = "import sys, typing\nmade = typing.NamedTupleMeta.__new__\n"
    script += (
        "def counted(*args):\n    print(args[3]['__module__'], args[1])\n    return made(*args)\n"
        "typing.NamedTupleMeta.__new__ = counted\nimport reconcile_cli.run, reconcile.engine.session"
    )
    ran = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    defined = {tuple(line.split()) for line in ran.stdout.splitlines() if line.startswith("reconcile")}
    light = imported_by("import reconcile_cli.plain") - imported_anyway
    unpacked = {("reconcile.index.rows", name) for name in ("Changes", "Packed", "Row")}
    unpacked.add(("reconcile.planning.filters", "DirectoryState"))
    assert {(module, name) for module, name in defined if module not in light} == unpacked


def test_a_project_without_sessions_loads_nothing_of_claude_code(
    imported_anyway: set[str], tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    """Only the names of its directories: whether there are sessions is told without reading any."""
    world = make_project(tmp_path / "project", run)
    monkeypatch.chdir(world.project)
    write_conversation(world.workspace / "17528832001-it", "It", events(2))
    (home / ".claude" / "projects" / "-another-project").mkdir(parents=True)
    for _ in range(3):
        run()
        time.sleep(0.1)  # what was written a moment ago is looked at once more
    script = "import sys, importlib; sys.argv[1:] = []; importlib.import_module('reconcile_cli.start').start()"
    loaded = imported_by(script) - imported_anyway
    assert {name for name in loaded if "claude_code" in name} == {
        "reconcile.adapters.claude_code",
        "reconcile.adapters.claude_code.places",
        "reconcile.formats.claude_code",
        "reconcile.formats.claude_code.names",
    }
    assert not {name for name in loaded if name.startswith("reconcile_cli.scope")}
    heavy = HEAVY - {"xxhash"} | {"click", "inspect", "dataclasses", "reconcile.model.snapshot"}
    assert loaded & heavy == set(), "the index is verified by xxhash, and nothing else is needed"


def test_no_other_command_loads_what_review_needs(imported_anyway: set[str]) -> None:
    loaded = imported_by("import reconcile_cli.plain, reconcile_cli.run, reconcile_cli.commands.requests")
    needed = {name for name in loaded - imported_anyway if name.split(".")[0] in ("textual", "rich")}
    assert not needed | {name for name in loaded if name.startswith("reconcile_cli.review")}
