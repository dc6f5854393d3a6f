"""A file system of its own for one of the three places: full at different levels, or read-only."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.projects.three_conversations import FIRST, SECOND_ID, THIRD, three
from tests.support.projects.watcher import Watching
from tests.support.projects.world import LONG_AGO, SECOND, append, events, listing, shown, write_conversation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.projects.world import World

PLACES = ("store", "workspace", "state")
NEW = 17500000009
ROOM_KB = 2048


def mount(*args: str) -> str:
    """Call mount(8); return what it complains about."""
    return subprocess.run(["mount", *args], check=False, capture_output=True, text=True).stderr.strip()


@contextlib.contextmanager
def mounted(path: Path) -> Iterator[None]:
    """Have a small file system at a path while the block runs."""
    path.mkdir(parents=True, exist_ok=True)
    complaint = mount("-t", "tmpfs", "-o", f"size={ROOM_KB}k", "tmpfs", str(path))
    if complaint:
        pytest.skip(f"nothing may be mounted here: {complaint}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def fill(path: Path, free_kb: int) -> Path:
    """Leave so much room in a file system; return the file that takes up the rest."""
    filler = path / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"x" * 4096):
            pass
    os.truncate(filler, max(0, filler.stat().st_size - free_kb * 1024))
    return filler


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, world: World) -> Iterator[Path]:
    """Where one of the three places is mounted; both sides then need a change, and each a new conversation."""
    path = {
        "store": Path(os.environ["JP_USER_DATA_DIR"]),
        "workspace": world.workspace,
        "state": Path(os.environ["XDG_DATA_HOME"]) / "reconcile",
    }[request.param]
    with mounted(path):
        three(world)
        world.reconcile()
        append(world.workspace / f"{FIRST}-it", 60, "b", LONG_AGO + 10 * SECOND)
        append(world.store / f"{SECOND_ID}-it", 60, "b", LONG_AGO + 10 * SECOND)
        append(world.workspace / f"{THIRD}-it", 60, "c", LONG_AGO + 10 * SECOND)
        append(world.store / f"{THIRD}-it", 60, "b", LONG_AGO + 20 * SECOND)
        write_conversation(world.workspace / f"{NEW}-it", "It", events(90))
        yield path


def run_into_trouble(world: World, place: Path) -> int:
    """Run, and return the exit code: nothing may be lost, and what is wrong is said in lines that name the place."""
    before = world.kept()
    result = world.run("--workspace", world.project)
    assert "Traceback" not in result.output
    assert result.exit_code in (0, 1, 4), result.output
    if result.exit_code:
        assert f"{shown(place)}/" in result.output, "a failure, and it isn't said where"
    assert before <= world.kept(), f"lost by the run:\n{result.output}"
    return result.exit_code


def converge(world: World) -> None:
    world.reconcile()
    assert {name.split("/", 1)[1] for name in listing(world.workspace)} == {
        name.split("/", 1)[1] for name in listing(world.store) if "diverged" not in name
    }
    assert world.event_count(FIRST) == world.event_count(SECOND_ID, world.workspace) == 63
    assert world.event_count(NEW) == 90


def test_full_at_every_level(world: World, place: Path) -> None:
    codes = []
    for free_kb in (0, 4, 8, 16, 32, 64, 128):
        filler = fill(place, free_kb)
        codes.append(run_into_trouble(world, place))
        filler.unlink()
    assert codes[0] == 1, "with no room at all nothing can be done"
    converge(world)


def test_read_only(world: World, place: Path) -> None:
    assert not mount("-o", "remount,ro", str(place))
    assert run_into_trouble(world, place) in (1, 4)
    found = world.run("doctor", "-w", world.project)
    assert (found.exit_code, "not writable (read-only file system)" in found.stdout) == (4, True), found.output
    if place == world.workspace:
        assert world.event_count(FIRST) == 63, "the other side is saved to all the same"
    if place == Path(os.environ["XDG_DATA_HOME"]) / "reconcile":
        refused = world.run("--workspace", world.project)
        assert "hint: make the disk writable (remount it)" in refused.stderr
    assert not mount("-o", "remount,rw", str(place))
    converge(world)


@pytest.mark.long
@pytest.mark.parametrize("every", [False, True])
def test_a_watcher_waits_between_two_attempts_at_a_read_only_store(world: World, *, every: bool) -> None:
    store = Path(os.environ["JP_USER_DATA_DIR"])
    with mounted(store):
        three(world)
        world.reconcile()
        assert not mount("-o", "remount,ro", str(store))
        append(world.workspace / f"{FIRST}-it", 60, "b", LONG_AGO + 10 * SECOND)
        with Watching(None if every else world) as watcher:
            watcher.hears("skipped", "Read-only file system")
            time.sleep(3)
            assert watcher.stop() == 0
        runs = json.loads(world.run("log", "--json", "-w", world.project).stdout)["runs"]
        assert sum(run["command"].startswith("watch") for run in runs) == 1, runs
        assert not mount("-o", "remount,rw", str(store))
        world.reconcile()
        assert world.event_count(FIRST) == 63


def test_an_undo_in_a_read_only_store_names_the_way_to_go_on(world: World) -> None:
    store = Path(os.environ["JP_USER_DATA_DIR"])
    with mounted(store):
        three(world)
        world.reconcile()
        append(world.workspace / f"{FIRST}-it", 60, "b", LONG_AGO + 10 * SECOND)
        world.reconcile()
        assert not mount("-o", "remount,ro", str(store))
        refused = world.run("undo", "--yes", "-w", world.project)
        assert refused.exit_code in (1, 4)
        hint = next(line for line in refused.stdout.splitlines() if line.startswith("hint: "))
        assert hint.startswith("hint: make the disk writable (remount it), then run undo again: reconcile undo ")
        newest = world.run("log", "-w", world.project).stdout.splitlines()[0]
        assert "1 skipped  reconcile undo --yes" in newest
        assert "(did not undo 2" in newest
        assert not mount("-o", "remount,rw", str(store))
        run = hint.partition("reconcile undo ")[2].split()[0]
        world.reconcile("undo", run, "--yes", settled=False)
        assert world.event_count(FIRST) == 3
