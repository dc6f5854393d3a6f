"""A run that finds what the last one found writes nothing, also of its own state, whatever is held or set aside."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.support.projects.three_conversations import FIRST, SECOND_ID, THIRD, three
from tests.support.projects.world import LONG_AGO, SECOND, append, files, set_key, stamps, write_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.projects.world import World


def held(world: World) -> None:
    (world.workspace / f"{FIRST}-it" / "metadata.json").write_text("<<<<<<< HEAD\n")


def behind(world: World) -> None:
    path = world.workspace / f"{FIRST}-it" / "events.json"
    old = path.read_bytes()
    append(path.parent, 1, "b", LONG_AGO + SECOND)
    world.reconcile()
    path.write_bytes(old)


def local_present(world: World) -> None:
    directory = world.workspace / f"{FIRST}-it"
    kept = {path.name: path.read_bytes() for path in directory.iterdir()}
    world.reconcile("local", str(FIRST))
    directory.mkdir()
    for name, content in kept.items():
        (directory / name).write_bytes(content)


def undone(world: World) -> None:
    append(world.workspace / f"{FIRST}-it", 1, "b", LONG_AGO + SECOND)
    world.reconcile()
    world.reconcile("undo")


def conflict(world: World) -> None:
    set_key(world.store / f"{FIRST}-it", "title", "One", LONG_AGO + SECOND)
    set_key(world.workspace / f"{FIRST}-it", "title", "Other", LONG_AGO + 2 * SECOND)


def noted(world: World) -> None:
    write_json(world.workspace / "README", "no conversation", LONG_AGO)
    set_key(world.workspace / f"{SECOND_ID}-it", "parent_id", f"jp-c{THIRD + 5}", LONG_AGO + SECOND)


CASES: dict[str, Callable[[World], None]] = {
    each.__name__: each for each in (held, behind, local_present, undone, conflict, noted)
}

LISTINGS = (("status",), ("ls",), ("doctor",), ("log",), ("vault",), ("-n",), ("--check", "--json"))


def state(world: World) -> dict[str, bytes]:
    """Return all that is in the state's directory."""
    return {str(path): path.read_bytes() for path in files(world.state)}


@pytest.mark.parametrize("words", [(), ("--json",)], ids=["text", "json"])
@pytest.mark.parametrize("case", CASES)
def test_nothing_is_written(world: World, case: str, words: tuple[str, ...]) -> None:
    three(world)
    world.reconcile()
    CASES[case](world)
    world.run("-w", world.project)
    time.sleep(0.1)  # what was written a moment ago is looked at once more
    world.run(*words, "-w", world.project)
    before, known = state(world), stamps(world.workspace) | stamps(world.store)
    for _ in range(2):
        world.run(*words, "-w", world.project)
    after = state(world)
    assert {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)} == set()
    assert stamps(world.workspace) | stamps(world.store) == known


@pytest.mark.parametrize("case", CASES)
def test_listings_write_nothing(world: World, case: str) -> None:
    three(world)
    world.reconcile()
    CASES[case](world)
    world.run("-w", world.project)
    before = stamps(world.state)
    for words in (
        ("status",),
        ("ls",),
        ("doctor",),
        ("log",),
        ("diff", str(SECOND_ID)),
        ("-n",),
        ("--check", "--json"),
    ):
        world.run(*words, "-w", world.project)
        assert {path for path, status in stamps(world.state).items() if before.get(path) != status} == set(), words
