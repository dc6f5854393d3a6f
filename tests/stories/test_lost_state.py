"""The database of the state is lost: nothing that was local is offered, or copied into a workspace, because of that."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reconcile.model.baseline import IntentKind
from reconcile.state.database import State
from tests.support.projects.world import (
    DATABASE,
    LONG_AGO,
    SECOND,
    append,
    contents,
    events,
    files,
    make_project,
    write_conversation,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Run
    from tests.support.projects.world import World

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


@pytest.mark.parametrize("loss", range(len(LOSSES)))
@pytest.mark.parametrize("partly", [False, True])
def test_what_was_removed_from_the_workspace_is_not_published_after_a_loss(
    world: World, loss: int, *, partly: bool
) -> None:
    """Also where one of its files comes back, and an old copy knows that it was here; `project` alone copies it."""
    shutil.copy(world.state / DATABASE, world.state / "before")
    number = NUMBERS[-2]
    (stored,) = world.store.glob(f"{number}-*")
    (place,) = world.workspace.rglob(stored.name)
    shutil.rmtree(place)
    world.reconcile()
    append(stored, 2, "p", LONG_AGO + 900 * SECOND)
    LOSSES[loss](world)
    if partly:
        place.mkdir()
        shutil.copy(stored / "metadata.json", place)
    for _ in range(2):
        world.reconcile(code=4 if partly else 0, settled=False)
        assert not list(world.workspace.rglob(f"{number}-*/events.json"))
        assert "removed" in world.reconcile("status", str(number), settled=False).stdout or partly
    if not partly:
        world.reconcile("project", str(number))
        assert world.event_count(number, world.workspace) == 5


def delete_beside(world: World, left: tuple[str, ...]) -> None:
    """Delete the database, but for what SQLite had beside it while it was open."""
    kept = {}
    with State.open(str(world.state)) as state:
        state.set_meta("a", "b")
        for suffix in left:
            kept[suffix] = (world.state / f"{DATABASE}{suffix}").read_bytes()
    delete(world)
    for suffix, content in kept.items():
        (world.state / f"{DATABASE}{suffix}").write_bytes(content)


@pytest.mark.parametrize("left", [(), ("-shm",), ("-wal",), ("-wal", "-shm")], ids="+".join)
@pytest.mark.parametrize("private", [True, False])
def test_a_run_says_that_the_database_was_deleted(world: World, left: tuple[str, ...], *, private: bool) -> None:
    number = NUMBERS[-1]
    if private:
        world.reconcile("local", str(number))
    append(next(world.workspace.glob(f"{NUMBERS[0]}-*")), 1, "n", LONG_AGO + SECOND)
    before = set(files(world.store)), set(files(world.workspace))
    delete_beside(world, left)
    for words in (("-n",), ("status",)):
        assert "state.sqlite: it is missing and counts as empty" in world.run(*words, "-w", world.project).output
    assert {path.name for path in world.state.glob(f"{DATABASE}*")} == {f"{DATABASE}{suffix}" for suffix in left}
    said = world.reconcile().output
    assert "state.sqlite: it was missing and is rebuilt" in said
    assert "missing" not in world.reconcile().output
    assert (set(files(world.store)), set(files(world.workspace))) == before
    assert local(world) == ({f"jp-c{number}"} if private else set())
    aside = {path.name for path in world.state.glob("*.damaged-1*")}
    assert aside == {f"{DATABASE}.damaged-1{suffix}" for suffix in left}


def test_a_first_run_misses_nothing(tmp_path: Path, run: Run) -> None:
    world = make_project(tmp_path / "new", run)
    write_conversation(world.workspace / f"{NUMBERS[0]}-it", "It", events(3))
    assert "missing" not in world.run("-n", "-w", world.project).output
    assert "missing" not in world.reconcile().output


@pytest.mark.parametrize("missing", ["intent", pytest.param("reproject", marks=pytest.mark.long)])
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
