"""The directory of what was never in sync gets the name of a new title also where a kill comes in between."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from reconcile import Workspace
from tests.support.faults.fault_points import Mode, under_fault
from tests.support.library.conversations import check, locked, mutable, read
from tests.support.projects.world import events, write_conversation

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.projects.world import World

FOURTH = 17500000004
NAMES = {"It": "it", "Another": "another"}


def rename(world: World, number: int) -> None:
    with Workspace.open(world.project) as workspace, mutable(workspace, number) as mut:
        mut.update_metadata(lambda metadata: metadata.update(title="Another"))


def by_a_run(world: World, _: int) -> None:
    assert world.run("--workspace", world.project).exit_code == 0


def by_the_next_scope(world: World, number: int) -> None:
    with Workspace.open(world.project) as workspace, locked(workspace, number) as lock:
        assert lock.metadata["title"] in NAMES


@pytest.mark.long
@pytest.mark.parametrize("next_one", [by_a_run, by_the_next_scope])
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_kill_between_a_title_and_the_name_that_goes_with_it(
    world: World, next_one: Callable[[World, int], None]
) -> None:
    """Nothing but the journal tells by then that the title was another one."""
    left = set()
    for number in range(FOURTH, FOURTH + 99):
        write_conversation(world.store / f"{number}-it", "It", events(2))
        hit = under_fault(Mode.KILLED, 1 + 3 * (number - FOURTH), partial(rename, world, number))
        left |= {(title_of(world, number), name_of(world, number))}
        next_one(world, number)
        assert name_of(world, number) == NAMES[title_of(world, number)]
        if not hit:
            break
    assert ("Another", "it") in left
    check(world)


def test_a_name_that_was_given_by_hand_since_stays(world: World) -> None:
    """What was left to do has been done by then, and isn't done again."""
    for number in range(FOURTH, FOURTH + 99):
        write_conversation(world.store / f"{number}-it", "It", events(2))
        under_fault(Mode.KILLED, 1 + 3 * (number - FOURTH), partial(rename, world, number))
        if (title_of(world, number), name_of(world, number)) == ("Another", "it"):
            break
    by_a_run(world, number)
    assert name_of(world, number) == "another"
    (world.store / f"{number}-another").rename(world.store / f"{number}-mine")
    by_a_run(world, number)
    assert name_of(world, number) == "mine"


def path_of(world: World, number: int) -> Path:
    (found,) = world.store.glob(f"{number}-*")
    return found


def name_of(world: World, number: int) -> str:
    return path_of(world, number).name.partition("-")[2]


def title_of(world: World, number: int) -> str:
    title: str = read(path_of(world, number) / "metadata.json")["title"]
    return title
