"""A run about a part comes to the same as one about everything, in random stories and small worlds."""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import pytest
from hypothesis.stateful import run_state_machine_as_test

from tests.properties.parts import PartLevel
from tests.properties.passes import PassesLevel
from tests.properties.shortening import breaks
from tests.properties.stories import PARENTS, STREAMS, Stories
from tests.properties.telling import tell
from tests.properties.test_stories import SECONDS, for_seconds, told
from tests.support.scenarios.line_reader import DAY_NS
from tests.support.scenarios.listing import read_tree
from tests.support.scenarios.notation import METADATA

if TYPE_CHECKING:
    from tests.properties.resuming import ResumingLevel
    from tests.support.scenarios.disk_level import RunCommand


NUMBERS = tuple("1234567")


class StoriesOfParts(Stories):
    def __init__(self) -> None:
        super().__init__()
        self.world = PartLevel()


def test_a_part_of_a_story() -> None:
    run_state_machine_as_test(StoriesOfParts, settings=told(60, 25))


class Watched(Stories):
    """A store and its checkouts by chance. A plain run in the first is a pass over one session that stays open; others
    are other processes.
    """

    def __init__(self, level: PassesLevel | ResumingLevel) -> None:
        super().__init__()
        self.beside = self.level = level

    def telling(self) -> str:
        """Return the story as it was; shortened, it would be one without passes."""
        return "\n".join(tell(self.frames))

    def wander(self, chance: random.Random, steps: int) -> None:
        """Begin with conversations that are there already; then change one thing or two, and run, again and again."""
        lines = [f'{number}-a metadata 08:00 title "A" stream 08:00 [1 2]' for number in NUMBERS]
        self.begin()
        self.trees |= {"store": read_tree(lines), "workspace": read_tree(lines[:-1])}
        self._run("reconcile")
        for _ in range(steps):
            for _ in range(chance.choice((1, 1, 1, 2, 3))):
                self.change_one(chance)
            self._run("reconcile")
        self._run("reconcile --allow-bulk-removal")

    def change_one(self, chance: random.Random) -> None:
        side, pick, suffix = chance.choice(("store", "workspace")), chance.randrange(12), chance.choice("ab")
        above, time = chance.randrange(12), f"{chance.randrange(8, 12):02}:00"
        stream = f"stream {time} {chance.choice(STREAMS)}"
        metadata = f'metadata {time} title "{chance.choice("AB")}" {chance.choice(PARENTS)}'
        match chance.choice("rrrrrreejjppmmmaxsoct"):
            case "r":
                self.rewrite(side=side, pick=pick, unit=chance.choice((stream, metadata)))
            case "e":
                self.extra(side=side, pick=pick, name=chance.choice(("NOTE.md", "sub/x.txt")), time=time, text=suffix)
            case "j":
                self.jp_writes(side=side, pick=pick, minutes=chance.randrange(3))
            case "p":
                number = chance.choice(NUMBERS)
                self.put(side=side, number=number, above=above, suffix=suffix, metadata=metadata, stream=stream)
            case "m":
                self.move(side="workspace", pick=pick, onto=above, suffix=suffix)
            case "a":
                self.archive(pick=pick)
            case "x":
                chance.choice((self.remove, self.jp_removes))(side=side, pick=pick)
            case "o":
                self.put("workspace2", chance.choice(NUMBERS), above, suffix, metadata, stream)
                self._run("reconcile @2")
            case "c":
                self.resolve(chance.choice(NUMBERS), chance.choice(("--take store", "--take workspace", "--keep")))
            case "t":
                command = chance.choice(("local {}", "project {}", "rm {} --promote", "set-parent {} {}", "fork {}"))
                there = {path.rpartition("/")[2].split("-")[0] for path in self.dirs("store")}
                if there:  # what isn't might be the beginning of another's id
                    self.tree_command(chance.choice((1, 2)), command, pick, chance.choice(sorted(there)))
            case _:
                self.spoil(side=side, pick=pick, name=METADATA, time=time, text='"{"')


Wander = Callable[[int, int], Counter[str]]


@pytest.fixture
def wander(tmp_path: Path, run: RunCommand, monkeypatch: pytest.MonkeyPatch) -> Wander:
    """Return what lets a story happen, by seed and length; it counts the passes."""
    config = Path(os.environ["XDG_CONFIG_HOME"], "reconcile", "reconcile.toml")
    monkeypatch.setenv("JP_USER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr(os, "fsync", lambda _: None)  # only the power's failing would tell

    def one(seed: int, steps: int) -> Counter[str]:
        level = PassesLevel(tmp_path / str(seed), run, config, clock_ns=DAY_NS)
        monkeypatch.setenv("RECONCILE_STATE_DIR", str(level.state))
        story = Watched(level)
        try:
            story.wander(random.Random(seed), steps)
        except AssertionError as error:
            if not breaks(story.frames):
                error.add_note(f"seed {seed}, {steps} steps")
                raise
            level.counts["cut short"] += 1  # a law that breaks without passes is for other stories to find
        finally:
            level.forget_session()
            shutil.rmtree(level.root)
        return level.counts

    return one


def test_passes_by_chance(wander: Wander) -> None:
    counts = sum((wander(seed, 20) for seed in range(3)), Counter[str]())
    assert counts["part"] > 20, counts


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_many_passes_by_chance(wander: Wander, record_property: Callable[[str, object], None]) -> None:
    counts: Counter[str] = Counter()
    end, seed = monotonic() + SECONDS, int(monotonic() * 1000)
    while monotonic() < end:
        counts += wander(seed, 60)
        seed += 1
    for name, count in counts.items():
        record_property(f"passes: {name}", count)


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_parts_of_many_stories(record_property: Callable[[str, object], None]) -> None:
    record_property("stories of parts", for_seconds(StoriesOfParts, 200))
