"""A run that goes on from the one before comes to the same as one that looks at everything, in random stories."""

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

from reconcile.index import stat_table
from tests.properties.resuming import ResumingLevel
from tests.properties.shortening import breaks
from tests.properties.test_parts import Watched
from tests.properties.test_stories import SECONDS
from tests.support.scenarios.line_reader import DAY_NS

if TYPE_CHECKING:
    from tests.support.scenarios.disk_level import RunCommand


class Resuming(Watched):
    """Now and then nothing changes between two runs, so that the next has something to go on from."""

    def change_one(self, chance: random.Random) -> None:
        if chance.random() < 0.5:
            self._run("reconcile")
        super().change_one(chance)


Wander = Callable[[int, int], Counter[str]]


@pytest.fixture
def wander(tmp_path: Path, run: RunCommand, monkeypatch: pytest.MonkeyPatch) -> Wander:
    """Return what lets a story happen, by seed and length; it counts the runs by what they went by."""
    config = Path(os.environ["XDG_CONFIG_HOME"], "reconcile", "reconcile.toml")
    monkeypatch.setenv("JP_USER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr(os, "fsync", lambda _: None)  # only the power's failing would tell

    def one(seed: int, steps: int) -> Counter[str]:
        # With a clock as fine as this what was just written is known, too; else all of it is looked at again.
        monkeypatch.setattr(stat_table, "_TICK_NS", 1 if seed % 2 else 20_000_000)
        level = ResumingLevel(tmp_path / str(seed), run, config, clock_ns=DAY_NS)
        monkeypatch.setenv("RECONCILE_STATE_DIR", str(level.state))
        story = Resuming(level)
        try:
            story.wander(random.Random(seed), steps)
        except AssertionError as error:
            if not breaks(story.frames):
                error.add_note(f"seed {seed}, {steps} steps")
                raise
            level.counts["cut short"] += 1  # a law that breaks without resuming is for other stories to find
        finally:
            shutil.rmtree(level.root)
        return level.counts

    return one


@pytest.mark.long
def test_runs_that_go_on_by_chance(wander: Wander) -> None:
    counts = sum((wander(seed, 15) for seed in range(2)), Counter[str]())
    assert counts["part"] > 5, counts


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_many_runs_that_go_on(wander: Wander, record_property: Callable[[str, object], None]) -> None:
    counts: Counter[str] = Counter()
    end, seed = monotonic() + SECONDS, int(monotonic() * 1000)
    while monotonic() < end:
        counts += wander(seed, 60)
        seed += 1
    for name, count in counts.items():
        record_property(f"runs: {name}", count)
