"""Random stories of Leslie and Claudesidian with their own failures: two checkouts that share a durable copy.

After every command: no entry that the store or that checkout had validly is gone from all of them. In the end, after
two runs in each: every such entry is in the store, and in both checkouts.
"""

from __future__ import annotations

import json
import os
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.support.formats.lossy_programs import PROGRAMS

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

    from tests.conftest import Run
    from tests.support.formats.lossy_programs import Entry

ROUNDS = int(os.environ.get("LOSSY_ROUNDS", "1000"))
LONG = 40
"""Rounds of one story."""


class Story:
    """Two checkouts, the store, and every entry that was there when a command began."""

    def __init__(self, name: str, seed: int, directory: Path, run: Run) -> None:
        self.chance = Random(seed)
        self.program = PROGRAMS[name](self.chance)
        self.run, self.directory, self.seed = run, directory, seed
        self.store = directory / "store"
        self.store.mkdir(parents=True)
        self.known: set[Entry] = set()
        self.told: list[str] = [f"{name}, seed {seed}"]

    def root(self, checkout: str) -> Path:
        return self.directory / checkout / self.program.folder

    def tell(self, rounds: int) -> None:
        for checkout in ("a", "b"):
            (self.directory / checkout).mkdir()
        for number in range(rounds):
            checkout = "a" if number == 0 else self.chance.choice("ab")
            for _ in range(self.chance.randrange(1, 4)):
                fails = number > 1 and self.chance.random() < 0.4
                did = (self.program.fail if fails else self.program.work)(self.root(checkout))
                self.told.append(f"{checkout}: {did}")
            self.reconcile(checkout)
        self.end()

    def end(self) -> None:
        """Bring both together, as people would: each works on, and does what a run and the doctor tell."""
        for checkout in ("a", "b"):
            self.reconcile(checkout)
            self.decide(checkout)
            self.program.touch_all(self.root(checkout))
            self.reconcile(checkout)
        for checkout in ("a", "b", "a", "b"):
            self.reconcile(checkout, "recover", "--yes")
            held = self.reconcile(checkout)
            assert not held, (held, self.told)
        for side in (self.store, self.root("a"), self.root("b")):
            missing = self.known - self.program.entries(side)
            assert not missing, (side.name, sorted(missing), self.told)

    def reconcile(self, checkout: str, *command: str) -> list[str]:
        """Run a command; nothing that was there may be gone. Return what it holds."""
        self.known |= self.program.entries(self.root(checkout)) | self.program.entries(self.store)
        there = self.everywhere()
        plain = not command
        command = command or self.chance.choice(((), (), ("doctor", "--repair")))
        result = self.invoke(checkout, *command, "--json")
        self.told.append(f"run in {checkout} {' '.join(command)}: {result.exit_code}")
        assert result.exit_code in (0, 4), (result.output, self.told)
        gone = there - self.everywhere()
        assert not gone, (sorted(gone), result.output, self.told)
        held = json.loads(result.stdout).get("held", [])
        if held and plain and self.chance.random() < 0.5:
            self.decide(checkout)
        return [f"{each['conversation']}: {each['message']}" for each in held]

    def decide(self, checkout: str) -> None:
        """Do what the doctor offers, and take the store's version of what else can't be read."""
        found = json.loads(self.invoke(checkout, "doctor", "--json").stdout)["findings"]
        offered = [each["id"] for each in found if each["on_request"] and each["kind"] in ("C2", "F1", "F2")]
        for each in offered:
            self.reconcile(checkout, "doctor", "--mend", each)
        for each in json.loads(self.invoke(checkout, "--dry-run", "--json").stdout).get("held", []):
            commands = [line for line in each["resolve"] if line.endswith("--take store")]
            if each["reason"] == "invalid" and commands:
                self.reconcile(checkout, *commands[0].split()[1:])

    def everywhere(self) -> set[Entry]:
        sides = (self.store, self.root("a"), self.root("b"))
        return set().union(*(self.program.entries(side) for side in sides))

    def invoke(self, checkout: str, *command: str) -> Result:
        sides = ("-w", self.directory / checkout, "--store", self.store, "--format", self.program.format)
        result = self.run(*command, *sides)
        assert "Traceback" not in result.output, (result.output, self.told)
        return result


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("seed", range(2))
def test_a_story(name: str, seed: int, tmp_path: Path, run: Run) -> None:
    Story(name, seed, tmp_path, run).tell(LONG // 2)


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_thousand_rounds(name: str, tmp_path: Path, run: Run) -> None:
    """So many rounds with a command each; `-rP` prints what there was."""
    stories, known = -(-ROUNDS // LONG), 0
    for number in range(stories):
        story = Story(name, 1000 + number, tmp_path / str(number), run)
        story.tell(LONG)
        known += len(story.known)
    print(f"{name}: {stories} stories of {LONG} rounds each, {known} entries, none missing in the end")
