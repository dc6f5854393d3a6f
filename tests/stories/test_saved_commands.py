"""Every command that changes something: as a saved plan, carried out later, and taken back."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.support.projects.three_conversations import FIRST, SECOND_ID, THIRD, three
from tests.support.projects.world import LONG_AGO, SECOND, listing, set_key

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.projects.world import World


@dataclass(frozen=True, slots=True)
class Case:
    """What is asked for (``RUN``: the newest run), and what happens before."""

    args: tuple[str, ...]
    before: Callable[[World], object] = lambda _: None


def newest_run(world: World) -> str:
    found = json.loads(world.run("log", "--json", "-w", world.project).stdout)["runs"]
    return str(found[0]["id"])


def expire(world: World) -> None:
    set_key(world.store / f"{THIRD}-it", "expires_at", "2020-01-01 00:00:00.0", LONG_AGO + SECOND)
    world.reconcile()


def make_local(world: World) -> None:
    world.reconcile("local", str(FIRST))


def wipe(world: World) -> None:
    shutil.rmtree(world.workspace)


def double(world: World) -> None:
    shutil.copytree(world.workspace / f"{THIRD}-it", world.workspace / f"{THIRD}-too")


def break_one(world: World) -> None:
    (world.workspace / f"{THIRD}-it" / "metadata.json").write_text("<<<<<<< HEAD\n")


def edit(world: World) -> None:
    set_key(world.workspace / f"{THIRD}-it", "user", "me", LONG_AGO + SECOND)
    world.reconcile()


CASES = {
    "rm": Case(("rm", str(THIRD))),
    "rm --cascade": Case(("rm", str(FIRST), "--cascade")),
    "rm --promote": Case(("rm", str(FIRST), "--promote")),
    "local": Case(("local", str(FIRST))),
    "project": Case(("project", str(FIRST)), make_local),
    "project --with-ancestors": Case(("project", str(SECOND_ID), "--with-ancestors"), make_local),
    "set-parent": Case(("set-parent", str(THIRD), str(SECOND_ID))),
    "set-parent --none": Case(("set-parent", str(SECOND_ID), "--none")),
    "fork": Case(("fork", str(FIRST), "--last", "1", "--title", "Another way")),
    "gc": Case(("gc",), expire),
    "recover": Case(("recover",), wipe),
    "doctor --repair": Case(("doctor", "--repair"), double),
    "doctor --quarantine": Case(("doctor", "--quarantine", str(THIRD)), break_one),
    "undo": Case(("undo",), edit),
    "restore": Case(("restore", f"{THIRD}@RUN:metadata"), edit),
}


@pytest.mark.parametrize("name", CASES)
def test_a_command_is_saved_carried_out_and_taken_back(world: World, tmp_path: Path, name: str) -> None:
    case = CASES[name]
    three(world, parent=FIRST)
    world.reconcile()
    case.before(world)
    before = (listing(world.store), listing(world.workspace))
    saved = tmp_path / "plan.json"
    args = [word.replace("RUN", newest_run(world)) for word in case.args]
    planned = world.run("-w", world.project, *args, "--dry-run", "--json")
    assert planned.exit_code == 0, planned.output
    saved.write_text(planned.stdout)
    assert (listing(world.store), listing(world.workspace)) == before
    world.reconcile("apply", saved)
    assert (listing(world.store), listing(world.workspace)) != before
    world.reconcile("undo", newest_run(world), settled=False)
    assert (listing(world.store), listing(world.workspace)) == before
