"""Walks through the history of a repository: no version that git knows to be older comes back into the store.

`make walk` takes the real one of JP's own repository, where RECONCILE_JP_MIRROR names a clone of it.
"""

from __future__ import annotations

import os
import shutil
import time
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from tests.support.git_walk import Walk
from tests.support.git_world import commit, git
from tests.support.world import LONG_AGO, SECOND, append, events, write_conversation, write_json

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.world import World

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git")

MIRROR = os.environ.get("RECONCILE_JP_MIRROR", "")
"""Read at import, as the tests' surroundings have no RECONCILE_* variables."""
STEPS = int(os.environ.get("RECONCILE_WALK_STEPS", "500"))
SEED = int(os.environ.get("RECONCILE_WALK_SEED", "1"))


NUMBERS = (17500000001, 17500000002, 17500000003)


def small(world: World) -> None:
    """Make a repository like JP's in small: base configurations that change, an event cut out, branches, a merge."""
    git(world.project, "init", "-q", ".")
    for number in NUMBERS:
        write_conversation(world.workspace / f"{number}-it", f"It {number}", events(4))
    commit(world, "first")
    for step, number in enumerate((*NUMBERS, *NUMBERS)):
        if step in (2, 4):
            git(world.project, "switch", "-qc", f"side-{step}", "HEAD~1")
        (place,) = world.workspace.glob(f"{number}*")
        write_json(place / "base_config.json", {"assistant": {"name": f"step {step}"}}, LONG_AGO + step * SECOND)
        if step == 1:
            write_json(place / "events.json", [*events(1), *events(3, "b")], LONG_AGO + step * SECOND)
        if step == 3:
            append(place, 2, "c", LONG_AGO + step * SECOND)
        commit(world, f"step {step}")
    git(world.project, "merge", "-q", "--no-edit", "-X", "theirs", "side-2")
    git(world.project, "mv", f".jp/conversations/{NUMBERS[0]}-it", f".jp/conversations/{NUMBERS[0]}-renamed")
    commit(world, "renamed")


@pytest.mark.parametrize("seed", [1, 2])
def test_a_small_history(world: World, seed: int) -> None:
    small(world)
    walk = Walk(world, seed)
    walk.reconcile(walk.first)
    for _ in range(25):
        walk.step()


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
