"""What the faults begin with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.world import make_project

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run
    from tests.support.world import World


@pytest.fixture
def world(tmp_path: Path, run: Run) -> World:
    """A project without conversations, and no store yet."""
    return make_project(tmp_path / "project", run)
