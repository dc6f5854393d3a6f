"""The demo of fixtures/demo after its first run, made in this process."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from tests.conftest import Run

FIXTURES = Path(__file__).parents[3] / "fixtures" / "demo"
_MADE, _LATER = 1778839200, 1778925600
"""The times of the demo's files (s), and of the two that were written later."""


def demo(top: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the demo below ``top``, enter its project, reconcile it once, and return the project."""
    project, data = top / "project", top / "data"
    workspace, store = project / ".jp" / "conversations", data / "workspace" / "project-demo1" / "conversations"
    shutil.copytree(FIXTURES / "workspace", workspace)
    shutil.copytree(FIXTURES / "store", store)
    shutil.copy(FIXTURES / "workspace-id", project / ".jp" / ".id")
    for path in top.rglob("*.json"):
        os.utime(path, (_MADE, _MADE))
    for later in (*workspace.glob("*-release-notes/events.json"), *store.glob("*-ci-on-macos/events.json")):
        os.utime(later, (_LATER, _LATER))
    monkeypatch.setenv("JP_USER_DATA_DIR", str(data))
    monkeypatch.chdir(project)
    assert run().exit_code == 0
    return project
