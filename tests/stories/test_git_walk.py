"""Walks through the history of a repository: no version that git knows to be older comes back into the store.

`make walk` takes the real one of JP's own repository, where RECONCILE_JP_MIRROR names a clone of it.
"""

from __future__ import annotations

import os
import random
import shutil
import time
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from tests.support.projects.git_walk import Walk
from tests.support.projects.git_world import commit, git
from tests.support.projects.world import LONG_AGO, SECOND, append, events, make_project, write_conversation, write_json

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run
    from tests.support.projects.world import World

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git")

MIRROR = os.environ.get("RECONCILE_JP_MIRROR", "")
"""Read at import, as the tests' surroundings have no RECONCILE_* variables."""
STEPS = int(os.environ.get("RECONCILE_WALK_STEPS", "500"))
SEED = int(os.environ.get("RECONCILE_WALK_SEED", "1"))


BEGUN = LONG_AGO // SECOND
NUMBERS = (17500000001, 17500000002, 17500000003)


def small(world: World, chance: random.Random) -> None:
    """Make a repository like JP's in small: base configurations that change, events cut out or added, branches."""
    git(world.project, "init", "-q", ".")
    for number in NUMBERS:
        write_conversation(world.workspace / f"{number}-it", f"It {number}", events(4))
    commit(world, "first", BEGUN)
    for step in range(1, 9):
        if chance.random() < 0.3:
            git(
                world.project, "switch", "-qc", f"side-{step}", chance.choice(("HEAD", "HEAD~1", "main~0")), check=False
            )
        place = next(world.workspace.glob(f"{chance.choice(NUMBERS)}*"))
        write_json(place / "base_config.json", {"assistant": {"name": f"step {step}"}}, LONG_AGO + step * SECOND)
        kind = chance.random()
        if kind < 0.2:
            write_json(place / "events.json", [*events(1), *events(3, "b")], LONG_AGO + step * SECOND)
        elif kind < 0.5:
            append(place, 2, chr(ord("c") + step), LONG_AGO + step * SECOND)
        elif kind < 0.6:
            place.rename(place.with_name(f"{place.name.partition('-')[0]}-renamed-{step}"))
        commit(world, f"step {step}", BEGUN + step)


def tell(world: World, seed: int, steps: int) -> None:
    small(world, random.Random(seed))
    walk = Walk(world, seed)
    walk.reconcile(walk.first)
    for _ in range(steps):
        walk.step()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [10, 100, *(pytest.param(each, marks=pytest.mark.long) for each in (139, 178))])
def test_a_small_history(world: World, seed: int) -> None:
    """Those that found a fault once: a checkout that was refused, and reverts that were taken for the newest."""
    tell(world, seed, 35)


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_small_histories(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as there is time for (`make stories`), each in a project with a store of its own."""
    end = time.monotonic() + float(os.environ.get("STORIES_FOR", "60"))
    seed = SEED
    while time.monotonic() < end:
        home = tmp_path / str(seed)
        for name in ("JP_USER_DATA_DIR", "XDG_DATA_HOME"):
            monkeypatch.setenv(name, str(home / name))
        tell(make_project(home / "project", run), seed, 30)
        seed += 1
    print(f"{seed - SEED} histories, from seed {SEED}")


@pytest.mark.slow
@pytest.mark.timeout(0)
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
