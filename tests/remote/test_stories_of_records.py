"""Random stories of Leslie and Claudesidian on several machines, with the failures of these programs.

Each machine works, runs and syncs on its own; some have two worktrees of the project. Syncs are killed at every
operation, and some machines can't reach the remote for a while. At the end all stores are equal after some quiet
rounds. No entry that a store ever had is missing from a store or from a workspace, but for those of records that
someone has removed. `make machines` plays more.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from reconcile.model.snapshot import EXTRA, joined
from reconcile.remote.engine import RemoteError, UnreachableError
from reconcile.remote.known import Half, Report
from tests.support.formats.lossy_programs import PROGRAMS
from tests.support.projects.machines import make_bare
from tests.support.projects.memory_engine import Host
from tests.support.projects.mortal_syncs import AnyHost, Killed, engine_of, sync_with
from tests.support.projects.record_machines import RECORD_MACHINES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Run
    from tests.support.formats.lossy_programs import Entry
    from tests.support.projects.record_machines import RecordMachine

    Maker = Callable[[Path, Run], RecordMachine]

SECONDS = float(os.environ.get("MACHINES_FOR", "600"))
STEPS, ROUNDS = 40, 3
ONE_IN = 8
"""One story in so many has the program git and a bare repository. The others have a remote in memory."""
KINDS = "wwwwwwwwfrrrrpqdsssssskkkuvx"
"""The steps: work, failure, run, another file, another shape, removal, kinds of syncs, and no network for a while."""


class Story:
    """The machines, and the entries that a store had: those that are removed knowingly are not looked for."""

    def __init__(self, path: Path, run: Run, name: str, seed: int) -> None:
        self.chance = random.Random(seed)
        self.program = PROGRAMS[name](self.chance)
        make: Maker = RECORD_MACHINES[name]
        self.machines = [make(path / f"m{at}", run) for at in range(self.chance.randint(2, 4))]
        self.checkouts = [*self.machines]
        self.host: AnyHost = Host() if seed % ONE_IN else make_bare(path / "remote.git")
        self.is_encrypted = self.chance.random() < 0.3
        self.known: set[Entry] = set()
        self.removed: set[str] = set()
        self.cut_off: dict[int, int] = {}
        self.log: list[str] = []
        self.renamed = 0
        for machine in self.machines if self.is_encrypted else ():
            machine.take_key()

    def tell(self) -> None:
        for machine in self.machines:
            self.program.work(machine.side)
            self.save(machine)
            if self.chance.random() < 0.5:
                self.checkouts.append(machine.in_worktree())
        for number in range(STEPS):
            self.step(number)
        self.end()

    def step(self, number: int) -> None:
        kind = self.chance.choice(KINDS)
        at = self.chance.randrange(len(self.checkouts if kind in "wfrq" else self.machines))
        machine = self.checkouts[at]
        self.log.append(f"{kind} {at}")
        if kind == "w":
            self.log[-1] += f" {self.program.work(machine.side)}"
        elif kind == "f":
            self.log[-1] += f" {self.program.fail(machine.side)}"
        elif kind == "r":
            self.save(machine)
        elif kind == "p":
            self.put(machine, f"file{self.chance.randrange(3)}", f"of {number}")
        elif kind == "q":
            self.reshape(machine, number)
        elif kind == "d":
            self.remove(machine)
        elif kind == "x":
            self.cut_off[at] = number + self.chance.randrange(3, 15)
        elif self.cut_off.get(at, 0) > number:
            with pytest.raises(UnreachableError):
                sync_with(machine, engine_of(self.host, machine, reaches=False))
        else:
            half = {"u": Half.PULL, "v": Half.PUSH}.get(kind, Half.BOTH)
            with suppress(Killed, RemoteError):
                self.sync(machine, half, dies=kind == "k")

    def sync(self, machine: RecordMachine, half: Half = Half.BOTH, *, dies: bool = False) -> Report:
        engine = engine_of(self.host, machine, self.chance if dies else None)
        return sync_with(machine, engine, half, is_encrypted=self.is_encrypted)

    def save(self, machine: RecordMachine, *command: str) -> list[dict[str, object]]:
        """Run a command; nothing of the store may be gone, unless it was removed. Return what it holds."""
        before = self.looked_for(machine.store)
        result = machine.result(*command, "--json")
        assert result.exit_code in (0, 4), result.output
        there = self.program.entries(machine.store)
        assert before <= there, (command, before - there)
        self.known |= there
        return list(json.loads(result.stdout).get("held", []))

    def looked_for(self, side: Path) -> set[Entry]:
        """Return the entries of records that nobody has removed."""
        return {each for each in self.program.entries(side) if each[0] not in self.removed}

    def put(self, machine: RecordMachine, name: str, text: str) -> None:
        """Write another file into the store, or remove it there."""
        path = machine.store / machine.other_place / name
        if path.exists() and self.chance.random() < 0.4:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def reshape(self, machine: RecordMachine, number: int) -> None:
        """Write a record of the workspace, or a file of one, as a file or as a directory, whatever it was."""
        place = self.chance.choice(("other", *machine.other_shapes))
        path = machine.side / place
        self.removed |= {place, f"{place}/one"}  # a person replaces it, or gives it another name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        if self.chance.random() < 0.5:
            path.mkdir(parents=True)
            path /= "one"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"shape {number}")
        self.log[-1] += f" {path.relative_to(machine.side)}"

    def rename(self, machine: RecordMachine, path: str) -> None:
        """Do what a run tells if the two sides have something in two shapes."""
        self.renamed += 1
        (machine.store / path).rename(machine.store / f"{path}-{self.renamed}")

    def remove(self, machine: RecordMachine) -> None:
        there = sorted(name for name in machine.contents if not name.startswith(machine.never_removed))
        if there:
            name = machine.record_of(self.chance.choice(there))
            self.log[-1] += f" {name}"
            machine.result("rm", name, "--yes")
            self.removed.add(name)

    def end(self) -> None:
        """Bring all together, as people would: each works on, and does what a run and the doctor tell."""
        for machine in self.checkouts:
            self.save(machine)
            self.decide(machine)
            self.program.touch_all(machine.side)
            self.save(machine)
        for _ in range(ROUNDS):
            for machine in self.checkouts:
                for each in (each for each in self.sync(machine).held if "rename the one in the store" in each):
                    *path, _ = each.split(": ")
                    self.rename(machine, "/".join(path))
                self.sync(machine)
                self.save(machine)
                self.decide(machine)
                self.save(machine, "recover", "--all", "--yes")
        first = self.machines[0]
        for machine in self.machines:
            report = self.sync(machine)
            assert report == Report(), "a quiet round has nothing to do"
            assert machine.contents == first.contents
        for machine in self.checkouts:
            assert not self.save(machine)
            for side in (machine.store, machine.side):
                missing = {each for each in self.known if each[0] not in self.removed} - self.program.entries(side)
                assert not missing, (side, missing)

    def decide(self, machine: RecordMachine) -> None:
        """Do what the doctor offers, and take the store's version of what else can't be read."""
        found = json.loads(machine.result("doctor", "--json").stdout)["findings"]
        for each in found:
            if each["on_request"] and each["kind"] in ("C2", "F1", "F2"):
                self.save(machine, "doctor", "--mend", each["id"])
        for held in self.save(machine, "--dry-run"):
            resolve = held["resolve"]
            assert isinstance(resolve, list)
            if held["reason"] == "obstructed":
                unit = str(held["unit"])
                name = unit.removeprefix(EXTRA) if unit.startswith(EXTRA) else ""
                self.rename(machine, joined(str(held["conversation"]), name))
                self.save(machine)
            if held["reason"] == "invalid" and (lines := [line for line in resolve if line.endswith("--take store")]):
                self.save(machine, *lines[0].split()[1:])


def play(path: Path, run: Run, name: str, seed: int) -> None:
    story = Story(path, run, name, seed)
    try:
        story.tell()
    except BaseException as error:
        error.add_note(f"{name}, seed {seed}: {', '.join(story.log)}")
        raise


@pytest.mark.long
@pytest.mark.parametrize("name", RECORD_MACHINES)
@pytest.mark.parametrize("seed", range(2))
def test_a_story_of_records(tmp_path: Path, run: Run, name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECONCILE_VERIFY", "1")
    play(tmp_path, run, name, seed)


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 300)
@pytest.mark.parametrize("name", RECORD_MACHINES)
def test_many_stories_of_records(tmp_path: Path, run: Run, name: str) -> None:
    end, seed = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        seed += 1
        play(tmp_path / str(seed), run, name, seed)
        shutil.rmtree(tmp_path / str(seed))
    print(f"{name}: {seed} stories")
