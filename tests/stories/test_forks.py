"""What is printed of forks: their ids, and their lines."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

import pytest

from tests.support.faults.fault_points import Mode, under_fault
from tests.support.projects.three_conversations import FIRST, SECOND_ID, THIRD, three
from tests.support.projects.world import LONG_AGO, SECOND, append

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.projects.world import World


def test_a_dry_run_names_no_id_that_the_run_will_not_use(world: World, tmp_path: Path) -> None:
    """A saved plan and a run name the ids of their forks. The two lines of a fork have the same columns."""
    three(world)
    world.reconcile()
    named = re.compile(r"^ *Again  (\S.*)$", re.MULTILINE)
    words = ("fork", str(FIRST), "--title", "Again")
    (shown,) = named.findall(world.reconcile(*words, "--dry-run").stdout)
    assert shown == "a new fork"
    (saved,) = named.findall(world.reconcile(*words, "--out", tmp_path / "plan.json", settled=False).stdout)
    done = world.reconcile("apply", tmp_path / "plan.json")
    assert named.findall(done.stdout) == [saved]
    assert re.fullmatch(r"jp-c\d+", saved)
    first, second = (line for line in done.stdout.splitlines() if "forked on request" in line)
    assert [first.index(part) for part in (" B ", "+3 events")] == [second.index(part) for part in (" B ", "+3 events")]


def test_a_fork_of_a_conflict_has_no_id_before_the_run(world: World) -> None:
    three(world)
    world.reconcile()
    append(world.store / f"{FIRST}-it", 2, "b", LONG_AGO + 2 * SECOND)
    append(world.workspace / f"{FIRST}-it", 1, "c", LONG_AGO + SECOND)
    dry = world.reconcile("-n", settled=False).stdout
    assert "a new fork" in dry
    done = world.reconcile(settled=False).stdout
    assert "a new fork" not in done
    (new,) = {path.name.partition("-")[0] for path in world.store.iterdir()} - {str(FIRST), str(SECOND_ID), str(THIRD)}
    assert f"jp-c{new}" in done


@pytest.mark.long
@pytest.mark.parametrize("mode", [Mode.FULL, Mode.KILLED])
def test_a_fork_that_was_not_made_leaves_no_intent(world: World, mode: Mode) -> None:
    """A conversation that gets the same id later is published only on request."""
    three(world)
    world.reconcile()
    failed = 0
    for step in itertools.count(1):
        words = ("fork", str(FIRST), "--title", f"At {step}")
        if not under_fault(mode, step, lambda: world.run("--workspace", world.project, *words)):  # noqa: B023
            break
        world.reconcile()
        there = {f"jp-c{path.name.partition('-')[0]}" for path in world.store.iterdir()}
        kept = {str(row[1]) for row in world.remembered()["intent"]}
        assert kept <= there, f"at step {step}"
        failed += not any(f"at-{step}" in path.name for path in world.store.iterdir())
    assert failed
