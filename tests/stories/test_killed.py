"""Cut short: kill -9 at any moment, Ctrl-C, a disk that takes no more."""

from __future__ import annotations

import random
import resource
import shutil
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from reconcile.fs.mutations import Root
from tests.support.faults.fault_points import dies_before
from tests.support.projects.three_conversations import FIRST, SECOND_ID, THIRD, three
from tests.support.projects.world import (
    LONG_AGO,
    SECOND,
    append,
    command,
    digest_of,
    events,
    files,
    listing,
    make_project,
    write_conversation,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import Run
    from tests.support.projects.world import World

MANY = 60


def many(world: World) -> None:
    """Write chains of three, flat: a run imports and nests them."""
    for number in range(MANY):
        ident = 17500000000 + number
        parent = ident - 1 if number % 3 else None
        write_conversation(world.workspace / f"{ident}-n", "N", events(3 + number % 5), parent=parent)


def killed(world: World, delay: float) -> bool:
    """Start a run and kill it so long after it has begun to stage files; tell whether it was still at work."""
    with subprocess.Popen(
        command("--workspace", world.project), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        while process.poll() is None and not list(world.silo.glob("conversations/.reconcile-*")):
            time.sleep(0.001)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        return process.wait() == -signal.SIGKILL


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_killed_at_any_moment_the_next_run_gets_to_the_same_trees(
    world: World, tmp_path: Path, run: Run, seed: int
) -> None:
    many(world)
    whole = make_project(tmp_path / "other" / "project", run)
    many(whole)
    (whole.project / ".jp" / ".id").write_text("x\nother\n")
    begin = time.monotonic()
    whole.reconcile()
    took = time.monotonic() - begin
    before = {digest_of(path) for path in files(world.workspace)}
    chance, kills = random.Random(seed), 0
    for delay in (0, *(chance.uniform(0, took / 3) for _ in range(4))):
        kills += killed(world, delay)
        assert before <= world.kept()
    assert kills
    world.reconcile()
    assert listing(world.workspace) == listing(whole.workspace)
    assert listing(world.store) == listing(whole.store)
    world.reconcile("--check")


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Have programs take Ctrl-C also where these tests run in the background of a shell, which has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_interrupted_by_the_user(world: World) -> None:
    many(world)
    world.store.mkdir(parents=True)
    before = {digest_of(path) for path in files(world.workspace)}
    with subprocess.Popen(
        command("--workspace", world.project), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        while process.poll() is None and not list(world.silo.glob("conversations/.reconcile-*")):
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    assert errors.splitlines() == ["interrupted; run `reconcile` again to continue"]
    assert before <= world.kept()
    world.reconcile()
    world.reconcile("--check")


def upset(world: World) -> None:
    """After a first run, change every conversation: here, there, on both sides, or remove it from the store."""
    many(world)
    world.reconcile()
    for number in range(MANY):
        (stored,) = world.store.glob(f"{17500000000 + number}-*")
        (projected,) = (path.parent for path in world.workspace.rglob(f"{17500000000 + number}-*/events.json"))
        if number % 6 in (0, 1, 4):
            append(projected, 2, "w", LONG_AGO + 10 * SECOND)
        if number % 6 in (2, 4):
            append(stored, 2, "s", LONG_AGO + 20 * SECOND)
        if number % 12 == 5:
            shutil.rmtree(stored)


def told(world: World) -> tuple[dict[str, tuple[bytes, int]], list[bytes]]:
    """Return the workspace as it is, and the store's streams without the names of the directories."""
    return listing(world.workspace), sorted(path.read_bytes() for path in world.store.rglob("events.json"))


@pytest.mark.long
def test_killed_while_replacing_forking_and_removing(world: World, tmp_path: Path, run: Run) -> None:
    upset(world)
    whole = make_project(tmp_path / "other" / "project", run)
    (whole.project / ".jp" / ".id").write_text("x\nother\n")
    upset(whole)
    begin = time.monotonic()
    whole.reconcile()
    took = time.monotonic() - begin
    before, chance = world.sides(), random.Random(7)
    assert killed(world, 0)
    for _ in range(4):
        assert before <= world.kept()
        killed(world, chance.uniform(0, took / 3))
    world.reconcile()
    assert told(world) == told(whole)


def test_a_full_disk_leaves_nothing_half_done(world: World) -> None:
    """One file is larger than may be written: that conversation fails, the others are done."""
    three(world)
    big = [event | {"content": "x" * 10_000} for event in events(300)]
    write_conversation(world.workspace / f"{THIRD}-it", "It", big)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, limit[1]))
    try:
        result = world.reconcile(code=1, settled=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert "File too large" in result.stdout
    assert sorted(path.name for path in world.store.iterdir()) == [f"{FIRST}-it", f"{SECOND_ID}-it"]
    world.reconcile()
    assert listing(world.store) == listing(world.workspace)


def test_the_undo_of_a_run_that_did_the_rest_of_a_killed_one_names_the_command_for_that_one(world: World) -> None:
    three(world)
    world.reconcile()
    before = listing(world.store)
    for number in (FIRST, SECOND_ID, THIRD):
        append(world.workspace / f"{number}-it", 2, "b", LONG_AGO + 5 * SECOND)
    dies_before(Root, "exchange", 2, lambda: world.run("-w", world.project))
    rest = world.reconcile()
    assert "was interrupted; 1 of its 3 steps were done" in rest.stderr
    cut_short = rest.stderr.partition("run ")[2].partition(" ")[0]
    undone = world.reconcile("undo")
    command = f"reconcile undo {cut_short}"
    assert f"it did the rest of {cut_short}, which was interrupted" in undone.stderr
    assert undone.stderr.endswith(f"undo that run, too: {command} --workspace {world.project}\n")
    assert listing(world.store) != before
    whole = world.reconcile(*command.split()[1:])
    assert listing(world.store) == before
    assert "interrupted" not in whole.stderr
