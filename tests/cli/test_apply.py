"""`reconcile apply`: the commands that it suggests next."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.support.projects.demo import demo

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.conftest import Run


def planned(run: Run, top: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The demo's project, and a plan that copies a new title to the store."""
    project = demo(top, run, monkeypatch)
    (path,) = project.glob(".jp/conversations/*-release-notes/metadata.json")
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {"title": "Release letter"}), encoding="utf-8")
    assert run("--out", top / "plan.json").exit_code == 0
    return project, top / "plan.json"


def test_the_sides_are_not_repeated_in_the_plans_own_project(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, plan = planned(run, tmp_path, monkeypatch)
    assert run("apply", plan).stdout.endswith("undo with: reconcile undo)\n")


def test_the_sides_are_repeated_elsewhere(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project, plan = planned(run, tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    assert f"undo with: reconcile undo --workspace {project / '.jp'} --store" in run("apply", plan).stdout
