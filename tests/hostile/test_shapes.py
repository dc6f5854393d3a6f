"""Trees of absurd shapes: long chains, cycles, thousands of copies of one id; in time that grows with the input."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

import pytest

from tests.support.projects.world import events

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.projects.world import World

NUMBER = 17500000000
EVENTS = json.dumps(events(1)).encode()


def write(directory: Path, parent: int | None = None) -> None:
    """Write a small conversation quickly."""
    directory.mkdir(parents=True)
    described = {"title": "x", "last_activated_at": "2026-01-01 00:00:00.0"}
    if parent is not None:
        described["parent_id"] = f"jp-c{parent}"
    (directory / "metadata.json").write_text(json.dumps(described))
    (directory / "base_config.json").write_bytes(b"{}\n")
    (directory / "events.json").write_bytes(EVENTS)


def chain(world: World, count: int) -> None:
    """Every conversation is the child of the one before; both sides flat, as JP has them."""
    for at in range(count):
        write(world.workspace / f"{NUMBER + at}-x", NUMBER + at - 1 if at else None)


def cycle(world: World, count: int) -> None:
    for at in range(count):
        write(world.workspace / f"{NUMBER + at}-x", NUMBER + (at + 1) % count)


def copies(world: World, count: int) -> None:
    """One id in many directories."""
    for at in range(count):
        write(world.workspace / f"{NUMBER}-{at}")


def star(world: World, count: int) -> None:
    for at in range(count):
        write(world.workspace / f"{NUMBER + at}-x", NUMBER if at else None)


def backwards(world: World, count: int) -> None:
    """Every parent is younger than its child, and most of them are missing."""
    for at in range(count):
        write(world.workspace / f"{NUMBER + at * 2}-x", NUMBER + at * 2 + 2 + at % 2)


SHAPES = (chain, cycle, copies, star, backwards)


def seconds(world: World, *words: str) -> float:
    begin = time.process_time()
    result = world.run(*words, "--workspace", world.project)
    assert result.exit_code in (0, 4), result.output[:2000]
    return time.process_time() - begin


@pytest.mark.parametrize("shape", SHAPES)
def test_sixty_of_every_shape(world: World, shape: Callable[[World, int], None]) -> None:
    """Two runs, and everything that lists; what can't be placed is held, and nothing is lost."""
    shape(world, 60)
    before = world.kept()
    for words in ([], [], ["status"], ["ls", "--tree"], ["-n", "-v"], ["status", str(NUMBER)]):
        seconds(world, *words)
    assert before <= world.kept()
    again = world.run("--workspace", world.project, "--json", "-n")
    assert not json.loads(again.stdout)["actions"]


@pytest.mark.parametrize("length", [1, 2, 3, 7, 30])
def test_cycles_of_every_length_with_chains_that_lead_into_them(world: World, length: int) -> None:
    cycle(world, length)
    for at in range(5):
        write(world.workspace / f"{NUMBER + 1000 + at}-x", NUMBER + 999 + at if at else NUMBER + length - 1)
    world.reconcile()
    assert (world.workspace / f"{NUMBER}-x").is_dir(), "the smallest is the root"
    assert len(list(world.workspace.glob("1*"))) == 1


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("shape", SHAPES)
def test_five_times_as_much_takes_about_five_times_as_long(
    world: World, shape: Callable[[World, int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """1,000 and 5,000 of every shape (2,000 and 10,000 copies of one id), the dry run, the run and the next one."""
    small = 2000 if shape is copies else 1000
    took = {}
    for count in (small, 5 * small):
        os.rename(world.workspace, world.workspace.with_name(f"before-{count}"))
        world.workspace.mkdir()
        if world.state.exists():
            os.rename(world.state, world.state.with_name(f"before-{count}"))
        if world.silo.exists():
            os.rename(world.silo, world.silo.with_name(f"before-{count}"))
        shape(world, count)
        took[count] = [seconds(world, *words) for words in (["-n"], [], [], ["status"], ["ls", "--tree"])]
    with capsys.disabled():
        for count, times in took.items():
            print(f"\n{shape.__name__} {count}: " + " ".join(f"{each:.2f}" for each in times))
    for few, many in zip(*took.values(), strict=True):
        assert many < 10 * few + 1
