"""What the stories begin with."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reconcile.fs.paths import generation_of
from tests.support.projects.git_world import tell
from tests.support.projects.three_conversations import three

if TYPE_CHECKING:
    from collections.abc import Iterator

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


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """Return a directory of a file system that gives the inode of a removed directory to the next one."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        inodes = set()
        for name in "ab":
            path = Path(directory, name)
            path.mkdir()
            inodes.add(path.stat().st_ino)
            path.rmdir()
        if len(inodes) > 1 or generation_of(directory) is None:
            pytest.skip("inodes are not used again, or have no generation")
        yield Path(directory)
