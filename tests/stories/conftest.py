"""What the stories begin with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.projects.git_world import tell
from tests.support.projects.three_conversations import three

if TYPE_CHECKING:
    from tests.support.projects.world import World


@pytest.fixture
def story(world: World) -> World:
    """Two branches of a repository, as `tell` says."""
    return tell(world)


@pytest.fixture
def watched(world: World) -> World:
    """Return three conversations that are in sync."""
    three(world)
    world.reconcile()
    return world
