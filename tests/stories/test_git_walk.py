"""Walks through the history of a repository: no version that git knows to be older comes back into the store."""

from __future__ import annotations

import os
import shutil
import time
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from tests.support.git_walk import Walk
from tests.support.git_world import git

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.world import World

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git")

MIRROR = os.environ.get("RECONCILE_JP_MIRROR", "")
"""Read at import, as the tests' surroundings have no RECONCILE_* variables."""
STEPS = int(os.environ.get("RECONCILE_WALK_STEPS", "500"))
SEED = int(os.environ.get("RECONCILE_WALK_SEED", "1"))


@pytest.mark.slow
@pytest.mark.skipif(not MIRROR, reason="RECONCILE_JP_MIRROR names no clone of JP's own repository")
def test_jps_own_history(world: World, tmp_path: Path) -> None:
    checkout = tmp_path / "jp"
    git(tmp_path, "clone", "-q", "--no-checkout", MIRROR, str(checkout))
    for remote in git(checkout, "for-each-ref", "--format=%(refname:lstrip=3)", "refs/remotes/origin").split():
        git(checkout, "branch", "-q", "--no-track", f"known/{remote}", f"refs/remotes/origin/{remote}", check=False)
    git(checkout, "sparse-checkout", "set", ".jp")
    git(checkout, "checkout", "-q", "--detach", "HEAD")
    walk = Walk(replace(world, project=checkout), SEED)
    walk.reconcile(walk.first)
    begun = time.monotonic()
    for _ in range(STEPS):
        walk.step()
    print(f"{STEPS} steps from seed {SEED} in {time.monotonic() - begun:.0f} seconds: {walk.counts}")
