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
    assert imported_by("import reconcile") - imported_anyway == {"reconcile"}


def test_version_imports_nothing_heavy(imported_anyway: set[str]) -> None:
    script = "import sys, importlib; m = importlib.import_module('reconcile_cli.main'); m.main(['--version'])"
    assert (imported_by(script) - imported_anyway) & HEAVY == set()
