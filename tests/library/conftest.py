"""Three conversations on both sides, the second a child of the first, and a workspace opened over them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reconcile import Workspace
from tests.support.projects.three_conversations import FIRST, three
from tests.support.projects.world import make_project

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import Run
    from tests.support.projects.world import World


@pytest.fixture
def world(tmp_path: Path, run: Run) -> World:
    world = make_project(tmp_path / "project", run)
    three(world, parent=FIRST)
    world.reconcile()
    return world


@pytest.fixture
def workspace(world: World) -> Iterator[Workspace]:
    with Workspace.open(world.project) as opened:
        yield opened
