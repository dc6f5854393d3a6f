"""Machines as processes of their own that sync at once, and are killed: nothing is lost, and all end equal.

`make machines` has five machines do so for ``MACHINES_FOR`` seconds.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.support.projects.machines import git, make_bare, make_machine
from tests.support.projects.world import LONG_AGO, SECOND, command, event, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import Run
    from tests.support.projects.machines import Machine

A, B = 17528832000, 17528832100
SAID = 10
"""The minute of the first event that is appended: the events of a new conversation are before."""
NAMES = ("laptop", "desktop", "server", "container", "tablet")
SECONDS = float(os.environ.get("MACHINES_FOR", "600"))


def start(machine: Machine) -> subprocess.Popen[bytes]:
    words = command("--workspace", machine.project, "sync", "--allow-bulk-removal")
    return subprocess.Popen(
        words,
        env=os.environ | machine.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


class Raced(NamedTuple):
    """What a race had: the syncs that began, those that were killed, and the events that were appended."""

    syncs: int
    kills: int
    events: int


def say(machine: Machine, voice: str, number: int, at: int) -> str:
    """Append an event that no other machine and no other round has; return its content."""
    path, moment, content = machine.directory(A) / "events.json", number * len(NAMES) + at, f"{voice}{number}"
    stream = [*json.loads(path.read_bytes()), event(SAID + moment, content)]
    write_json(path, stream, LONG_AGO + (moment + 1) * SECOND)
    return content


def race(path: Path, run: Run, seed: int, count: int, rounds: Iterator[int], extra: tuple[str, ...] = ()) -> Raced:
    """Let machines write and sync at once, and kill some.

    At the end every conversation that one has made is on all machines, and every event: in the conversation that it
    was appended to, or in a fork of that. None may be in a vault alone, as nobody has removed or restored anything.
    """
    chance = random.Random(seed)
    bare = make_bare(path / "r.git")
    machines = [make_machine(path / name, run) for name in NAMES[:count]]
    machines[0].write(A)
    machines[0].run("remote", "add", *extra, str(bare))
    machines[0].sync()
    for machine in machines[1:]:
        if extra:
            key = machine.state.parent / "age-key.txt"
            key.parent.mkdir(parents=True)
            key.write_bytes((machines[0].state.parent / "age-key.txt").read_bytes())
        machine.sync(str(bare))
    written, said, begun, kills = set[str](), set[str](), 0, 0
    for number in rounds:
        running = []
        for at, machine in enumerate(machines):
            voice = "bcdef"[at]
            if machine.directory(A).exists() and chance.random() < 0.5:
                said.add(say(machine, voice, number, at))
            new = B + number * 10 + at
            machine.write(new, title=f"{voice}{number}")
            written.add(str(new))
            running.append(start(machine))
        begun += len(running)
        for process in running:
            if chance.random() < 0.5:
                time.sleep(chance.random())
                os.killpg(process.pid, signal.SIGKILL)
        kills += sum(process.wait() == -signal.SIGKILL for process in running)
    for _ in range(2):
        for machine in machines:
            machine.run()
            machine.sync()
    for machine in machines:
        found = machine.sync()
        assert not any(found[key] for key in ("sent", "taken", "forked", "removed_here", "removed_there", "held")), (
            found
        )
        assert machine.contents == machines[0].contents
    streams = list(machines[0].store.glob("*/events.json"))
    assert written <= {path.parent.name.partition("-")[0] for path in streams}
    family = [path for path in streams if path.parent == machines[0].directory(A) or is_fork(path.parent)]
    there = {line["content"] for path in family for line in json.loads(path.read_bytes())}
    assert said <= there, f"lost: {said - there}"
    git(bare, "fsck", "--strict")
    return Raced(begun, kills, len(said))


def is_fork(directory: Path) -> bool:
    """Tell whether a conversation is a fork of the first one, or of such a fork."""
    return "parent_id" in json.loads((directory / "metadata.json").read_bytes())


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("extra", [(), ("--encrypt",)], ids=["plain", "encrypted"])
def test_machines_that_are_killed_lose_nothing(tmp_path: Path, run: Run, extra: tuple[str, ...]) -> None:
    raced = race(tmp_path, run, len(extra), 3, iter(range(12)), extra)
    assert raced.kills
    assert raced.events > 6


@pytest.mark.long
def test_two_syncs_of_one_machine_at_once(laptop: Machine, desktop: Machine, bare: Path) -> None:
    for number in range(4):
        laptop.write(B + number)
        desktop.append(A, 1, "b", LONG_AGO + (number + 1) * SECOND)
        desktop.sync()
        processes = [start(laptop) for _ in range(2)]
        assert [process.wait() for process in processes] == [0, 0]
    desktop.sync()
    assert desktop.contents == laptop.contents
    assert desktop.events(A) == 7
    git(bare, "fsck", "--strict")


def for_seconds(seconds: float) -> Iterator[int]:
    end, number = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        yield number
        number += 1


@pytest.mark.slow
@pytest.mark.timeout(2 * SECONDS + 300)
def test_five_machines_race(tmp_path: Path, run: Run) -> None:
    raced = race(tmp_path, run, 1, 5, for_seconds(SECONDS))
    print(f"{raced.syncs} syncs, {raced.kills} of them killed, {raced.events} events")
