"""The database of the state is lost: nothing that was local is offered, or copied into a workspace, because of that."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reconcile.core.memory import IntentKind
from reconcile.disk.state import State
from tests.support.world import (
    DATABASE,
    LONG_AGO,
    SECOND,
    append,
    contents,
    events,
    make_project,
    write_conversation,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Run
    from tests.support.world import World

NUMBERS = tuple(range(17500000001, 17500000007))
PUBLISHING = ((), ("recover", "--yes"), ("project", "--all"), ("status",), ("gc",))


@pytest.fixture
def world(tmp_path: Path, run: Run) -> World:
    world = make_project(tmp_path / "project", run)
    for at, number in enumerate(NUMBERS):
        parent = NUMBERS[at - 2] if at in (3, 5) else None
        write_conversation(world.workspace / f"{number}-it", "It", events(3), parent=parent)
    world.reconcile()
    return world


def local(world: World) -> set[str]:
    with State.open(str(world.state), readonly=True) as state:
        return {key for key, intent in state.load(None).intents.items() if intent.kind is IntentKind.LOCAL}


def here(world: World, conversations: set[str]) -> dict[str, bytes]:
    """Return the workspace's files of these conversations."""
    wanted = tuple(each.removeprefix("jp-c") for each in conversations)
    found: dict[str, bytes] = {}
    for parent, _, names in os.walk(world.workspace):
        if Path(parent).name.startswith(wanted or ("none",)):
            found |= {os.path.join(parent, name): Path(parent, name).read_bytes() for name in names}
    return found


def delete(world: World) -> None:
    for path in world.state.glob(f"{DATABASE}*"):
        path.unlink()


LOSSES: tuple[Callable[[World], object], ...] = (
    delete,
    lambda world: (world.state / DATABASE).write_bytes(b""),
    lambda world: (world.state / DATABASE).write_bytes(b"a letter" * 4000),
    lambda world: os.truncate(world.state / DATABASE, 30000),
    lambda world: shutil.copy(world.state / "before", world.state / DATABASE),
)


@pytest.mark.parametrize("missing", ["intent", "reproject"])
@pytest.mark.parametrize("seed", range(3))
def test_nothing_local_is_published_after_a_loss(
    world: World, monkeypatch: pytest.MonkeyPatch, seed: int, missing: str
) -> None:
    chance, kept = random.Random(f"{seed} {missing}"), world.run
    monkeypatch.setenv("RECONCILE_MISSING", missing)
    shutil.copy(world.state / DATABASE, world.state / "before")
    saw = 0
    for step in range(14):
        number = chance.choice(NUMBERS)
        name = chance.choice(("local", "local", "project", "write", "copy"))
        if name == "write":
            for directory in world.store.glob(f"{number}*"):
                append(directory, 1, "b", LONG_AGO + step * SECOND)
        elif name == "copy":
            if (world.state / DATABASE).exists():
                shutil.copy(world.state / DATABASE, world.state / "before")
        else:
            kept("--workspace", world.project, name, str(number))
        if chance.random() < 0.5 and (world.state / DATABASE).exists():
            private, before = local(world), here(world, local(world))
            chance.choice(LOSSES)(world)
            assert private <= local(world), "for who only reads"
            for args in chance.sample(PUBLISHING, 3):
                result = kept("--workspace", world.project, *args)
                assert "Traceback" not in result.output
                assert private <= local(world), (args, result.output)
                new = {path for path in here(world, private) if path not in before}
                assert not new, (args, result.output)
            saw += len(private)
    assert saw
    assert contents(world.store)
