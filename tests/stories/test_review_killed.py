"""A run with a person's decisions is killed at any step: the next run finishes them, and reverses none."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING

import pytest

from tests.cli.modules import module
from tests.support.faults.fault_points import dies_at
from tests.support.projects.conflicts import conflicts, id_of
from tests.support.projects.world import ID_FILE, listing, make_project
from tests.support.review import decided_by, walk_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.conftest import Run
    from tests.support.projects.world import World

OLDER = {0: "store", 2: "store", 4: "store", 6: "store", 7: "store alone", 8: "store"}
"""Decisions for the older version: a run without them takes the workspace's."""
ALL_KINDS: Mapping[int, str] = {**OLDER, 1: "hold", 5: "both", 12: "store"}
STRIDE = 29
"""Each step is tried by one of the tests; most of them are slow."""


FROM_EACH_STEP = pytest.mark.parametrize(
    "first", [STRIDE, *(pytest.param(first, marks=pytest.mark.slow) for first in range(1, STRIDE))]
)


def fresh(directory: Path, run: Run, number: int) -> World:
    """Make a project with the prepared conflicts, and a store of its own."""
    world = make_project(directory / str(number) / "project", run)
    (world.project / ".jp" / ".id").write_text(ID_FILE.replace("ab1cd", f"ab{number:03}"))
    conflicts(world)
    return world


def save_decisions(world: World, choices: Mapping[int, str]) -> Path:
    """Save the plan of a walk in which these decisions were taken."""
    path = world.project.parent / "plan.json"
    with walk_of(world.project, out=str(path)) as walk:
        plan = decided_by(walk, {id_of(number): choice for number, choice in choices.items()})
        options = module("arguments").Options()
        options.out = str(path)
        options.workspace = str(world.project)
        module("run").save_plan(options, module("context").find_roots(options), plan)
    return path


def has_begun(world: World) -> bool:
    """Tell whether the run of the decisions is in the journal."""
    log = json.loads(world.run("log", "-w", world.project, "--json").stdout)
    return any(" apply " in each["command"] for each in log["runs"])


def ends(world: World) -> dict[int, str]:
    """Return, of each conversation that was decided, which side's version both sides have."""
    return {number: _end(world, number) for number in OLDER}


def _end(world: World, number: int) -> str:
    texts = []
    for side in (world.store, world.workspace):
        (directory,) = side.glob(f"**/{id_of(number)[4:]}-*")
        names = {4: "events.json", 6: "events.json", 7: "events.json", 8: "notes.txt"}
        texts.append((directory / names.get(number, "metadata.json")).read_text())
    words = {
        0: ("for June", "for May"),
        2: ("martina", "paul"),
        4: ("is out", "will be"),
        6: ("disk", "cut"),
        7: ("disk", "cut"),
        8: ("plan", "kept"),
    }
    sides = ["store" if words[number][0] in text else "workspace" for text in texts]
    assert [words[number][1] in text for text in texts] == [side == "workspace" for side in sides]
    return sides[0] if sides[0] == sides[1] else "different"


def test_without_decisions_a_run_takes_the_newer(tmp_path: Path, run: Run) -> None:
    world = fresh(tmp_path, run, 0)
    world.reconcile(code=4)
    assert set(ends(world).values()) == {"workspace"}


@FROM_EACH_STEP
@pytest.mark.long
def test_killed_at_any_step_the_next_run_finishes_the_decisions(tmp_path: Path, run: Run, first: int) -> None:
    begun = 0
    for step in itertools.count(first, STRIDE):
        world = fresh(tmp_path, run, step)
        before = world.kept()
        plan = save_decisions(world, ALL_KINDS)
        if not dies_at(step, lambda plan=plan: run("apply", plan)):  # type: ignore[misc]
            break
        is_begun = has_begun(world)
        begun += is_begun
        result = run("-w", world.project)
        assert before <= world.kept()
        if is_begun:
            assert set(ends(world).values()) == {"store"}, f"killed at step {step}\n{result.output}"
            assert "left alone" in run("status", "-w", world.project, id_of(1)).output
            forks = [path for path in world.store.iterdir() if "diverged" in path.name]
            assert len(forks) == 2, f"killed at step {step}: {forks}"
    assert begun > 3


@FROM_EACH_STEP
@pytest.mark.long
def test_killed_at_any_step_undo_takes_back_what_was_done(tmp_path: Path, run: Run, first: int) -> None:
    for step in itertools.count(first, STRIDE):
        world = fresh(tmp_path, run, step)
        before = [listing(side) for side in (world.store, world.workspace)]
        plan = save_decisions(world, ALL_KINDS)
        if not dies_at(step, lambda plan=plan: run("apply", plan)):  # type: ignore[misc]
            break
        if has_begun(world):
            result = run("undo", "-w", world.project, "--yes")
            after = [listing(side) for side in (world.store, world.workspace)]
            assert after == before, f"killed at step {step}\n{result.output}"
