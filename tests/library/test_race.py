"""Processes that append to the same conversations, with a watcher beside them, and all of them killed now and then."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.library.conversations import directory, texts
from tests.support.projects.three_conversations import FIRST, SECOND_ID, THIRD
from tests.support.projects.world import SCRIPT

if TYPE_CHECKING:
    from tests.support.projects.world import World

PROJECT = Path(__file__).parents[2]
WRITERS, EVENTS, KILLS = 8, 200, 60
"""Programs, events of each of them for each conversation, and how often somebody is killed meanwhile."""


@dataclass
class Writer:
    """One writer through all its lives. ``acknowledged``: numbers of flushed events, by conversation, in order."""

    name: str
    world: World
    count: int
    next: int = 0
    acknowledged: dict[str, list[int]] = field(default_factory=dict)
    process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        numbers = [str(number) for number in (THIRD, FIRST, SECOND_ID)]
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-W", "error", "-m", "tests.support.library.writer", str(self.world.project)),
                *(self.name, str(self.next), str(self.count - self.next), *numbers),
            ],
            cwd=PROJECT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def end(self, *, kill: bool = False) -> str:
        """Wait for its end, or bring it about; return what it complained of."""
        assert self.process is not None
        if kill:
            self.process.kill()
        out, err = self.process.communicate(timeout=3000)
        for line in out.splitlines(keepends=True):
            if line.endswith("\n"):
                conversation, number = line.split()
                self.acknowledged.setdefault(conversation, []).append(int(number))
        # Whether the event that came next is there isn't known; it is not said again, nor one of a shorter life.
        last = max((numbers[-1] for numbers in self.acknowledged.values()), default=-1)
        self.next = max(self.next, last + 1) + 1
        assert kill or self.process.returncode == 0, err
        return err


def watch(world: World) -> subprocess.Popen[bytes]:
    command = [str(SCRIPT), "--workspace", str(world.project), "watch"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def race(world: World, writers: int, count: int, kills: int, seconds: float) -> None:
    """Have all write, and kill somebody now and then for so many seconds, or for as long as they write."""
    chance = random.Random(1)
    watcher, everybody = watch(world), [Writer(f"w{number}", world, count) for number in range(writers)]
    try:
        for writer in everybody:
            writer.start()
        for _ in range(kills):
            time.sleep(chance.uniform(0.5, 1.5) * seconds / max(kills, 1))
            writer = chance.choice(everybody)
            assert writer.process is not None
            if writer.process.poll() is None:
                writer.end(kill=True)
                writer.start()
            if chance.random() < 0.2:
                watcher.kill()
                watcher.wait()
                watcher = watch(world)
        for writer in everybody:
            assert not writer.end()
    finally:
        watcher.terminate()
        watcher.wait()
        for writer in everybody:
            if writer.process is not None and writer.process.poll() is None:
                writer.process.kill()
                writer.process.communicate()
    assert_nothing_is_lost(world, everybody)


def assert_nothing_is_lost(world: World, writers: list[Writer]) -> None:
    """Everything acknowledged is there, once and in order, on both sides alike; nothing is left to do."""
    for empty in (path for side in (world.store, world.workspace) for path in side.glob(".reconcile-*")):
        # A writer that is killed before its first step leaves it, and the next one may have nothing to write. A run
        # removes it after ten minutes, because a living process would make it again.
        os.utime(empty, (0, 0))
    world.reconcile(settled=False)
    world.reconcile()
    for number in (FIRST, SECOND_ID, THIRD):
        ours, theirs = (directory(side, number) for side in (world.store, world.workspace))
        assert (ours / "events.json").read_bytes() == (theirs / "events.json").read_bytes()
        found = [text.split() for text in texts(ours) if text.startswith("w")]
        for writer in writers:
            mine = [int(said) for name, said in found if name == writer.name]
            assert mine == sorted(set(mine)), f"{writer.name} in {number}: not in order, or twice"
            lost = set(writer.acknowledged[str(number)]) - set(mine)
            assert not lost, f"{writer.name} in {number}: {lost}"
    assert [path.name for path in world.store.iterdir() if "diverged" in path.name] == []


@pytest.mark.long
def test_writers_that_race(world: World) -> None:
    race(world, writers=3, count=6, kills=4, seconds=3)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_writers_that_race_for_long(world: World) -> None:
    """RACE_EVENTS is how many events each of them appends to each conversation."""
    count = int(os.environ.get("RACE_EVENTS") or EVENTS)
    race(world, WRITERS, count, KILLS * count // EVENTS, seconds=count * 1.5)
