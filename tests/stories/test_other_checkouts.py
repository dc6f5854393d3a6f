"""A run that was killed in one checkout, and a run in another one of the same store before anything else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.faults.fault_points import dies_at
from tests.support.projects.three_conversations import FIRST, three
from tests.support.projects.world import LONG_AGO, SECOND, files, make_project, set_key

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run
    from tests.support.projects.world import World


def test_what_a_killed_run_left_in_its_checkout_is_cleaned_there(world: World, tmp_path: Path, run: Run) -> None:
    three(world)
    other = make_project(tmp_path / "other", run)
    world.reconcile()
    assert other.store == world.store
    set_key(world.store / f"{FIRST}-it", "colour", "green", LONG_AGO + SECOND)
    step = 0
    while not list(world.workspace.glob(".reconcile-*/*")):
        step += 1
        assert dies_at(step, lambda: world.run("--workspace", world.project)), "nothing was ever staged"
    before = {path.name for path in files(world.store)}
    other.reconcile()
    world.reconcile()
    assert not list(world.workspace.glob(".*"))
    assert {path.name for path in files(world.store)} == before
