"""Starting costs what a command needs and no more."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"asyncio", "filelock", "importlib.metadata", "msgspec", "pydantic", "sqlite3", "watchdog", "xxhash"}


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
    assert not (imported_by(script) - imported_anyway) & (HEAVY | {"click"})


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
