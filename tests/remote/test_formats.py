"""Stores of formats that no remote holds are refused, in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.projects.machines import make_bare

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run


@pytest.mark.parametrize("command", [["remote", "add"], ["sync"], ["pull"], ["push"]])
@pytest.mark.parametrize("name", ["leslie", "claudesidian", "plain"])
def test_another_format_is_refused(tmp_path: Path, run: Run, name: str, command: list[str]) -> None:
    bare, project, store = make_bare(tmp_path / "r.git"), tmp_path / "project", tmp_path / "store"
    (project / ".leslie").mkdir(parents=True)
    (project / ".leslie" / "objectives.json").write_text("{}")
    (project / ".conversations").mkdir()
    (store / "conversations").mkdir(parents=True)
    sides = ["--workspace", str(project), *(["--store", str(store)] if name == "plain" else []), "--format", name]
    found = run(*sides, *command, bare)
    assert found.exit_code == 4
    error, hint = found.stderr.strip().splitlines()
    assert error == (
        f"error: remotes hold conversations of JP and sessions of Claude Code, and this is a store of {name}"
    )
    assert hint.startswith("hint: its files are plain")
