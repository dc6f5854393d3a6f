"""Machines as processes of their own that sync at once, and are killed: nothing is lost, and all end equal."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from tests.support.projects.machines import git, make_bare, make_machine
from tests.support.projects.world import LONG_AGO, SECOND, command

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run
    from tests.support.projects.machines import Machine

A, B = 17528832000, 17528832100
ROUNDS = 12


def start(machine: Machine) -> subprocess.Popen[bytes]:
    words = command("--workspace", machine.project, "sync", "--allow-bulk-removal")
    return subprocess.Popen(
        words,
        env=os.environ | machine.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(2))
def test_machines_that_are_killed_lose_nothing(tmp_path: Path, run: Run, seed: int) -> None:
    chance = random.Random(seed)
    bare = make_bare(tmp_path / "r.git")
    machines = [make_machine(tmp_path / name, run) for name in ("laptop", "desktop", "server")]
    machines[0].write(A)
    for machine in machines:
        machine.sync(str(bare))
    written = set[str]()
    for number in range(ROUNDS):
        running = []
        for at, machine in enumerate(machines):
            voice = "bcd"[at]
            if machine.directory(A).exists() and chance.random() < 0.5:
                machine.append(A, 1, voice, LONG_AGO + (number * 3 + at + 1) * SECOND)
            new = B + number * 10 + at
            machine.write(new, title=f"{voice}{number}")
            written.add(str(new))
            running.append(start(machine))
        for process in running:
            if chance.random() < 0.5:
                time.sleep(chance.random())
                os.killpg(process.pid, signal.SIGKILL)
        for process in running:
            process.wait()
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
    names = {path.parent.name.partition("-")[0] for path in machines[0].store.glob("*/events.json")}
    assert written <= names
    git(bare, "fsck", "--strict")
