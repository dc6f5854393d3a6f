"""Random stories of two sides and three checkouts, with every law checked after each run (docs/design/invariants.md).

`make stories` tells many more, ``STORIES_FOR=600`` for so many seconds: in memory, and on a real directory.
"""

from __future__ import annotations

import itertools
import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.properties.stories import Stories
from tests.properties.telling import Frame, tell
from tests.support.scenarios.disk_level import DiskLevel
from tests.support.scenarios.line_reader import DAY_NS
from tests.support.scenarios.listing import read_tree
from tests.support.scenarios.player import play
from tests.support.scenarios.pure_level import PureLevel
from tests.support.scenarios.scenario import read_scenario

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.scenarios.commands import Outcome
    from tests.support.scenarios.disk_level import RunCommand
    from tests.support.scenarios.trees import Tree

SECONDS = float(os.environ.get("STORIES_FOR", "300"))
QUIET = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)


def told(count: int, steps: int, *, fixed: bool = True) -> settings:
    """Tell so many stories; ``fixed``: the same ones every time. What goes wrong is shortened by `telling` itself."""
    return settings(
        max_examples=count,
        stateful_step_count=steps,
        derandomize=fixed,
        database=None,
        deadline=None,
        suppress_health_check=QUIET,
        phases=(Phase.generate,),
    )


def test_stories() -> None:
    run_state_machine_as_test(Stories, settings=told(120, 25))


@pytest.fixture
def on_disk(tmp_path: Path, run: RunCommand, monkeypatch: pytest.MonkeyPatch) -> type[Stories]:
    """Return what makes stories that are played on a real directory too."""
    config = Path(os.environ["XDG_CONFIG_HOME"], "reconcile", "reconcile.toml")
    numbers = itertools.count()
    monkeypatch.setenv("JP_USER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("RECONCILE_VERIFY", "1")
    monkeypatch.setattr(os, "fsync", lambda _: None)  # only the power's failing would tell

    class OnDisk(Stories):
        def __init__(self) -> None:
            super().__init__()
            config.unlink(missing_ok=True)  # of the story before
            self.root = tmp_path / str(next(numbers))
            self.beside = level = DiskLevel(self.root, run, config, clock_ns=DAY_NS)
            os.environ["RECONCILE_STATE_DIR"] = str(level.state)

        def teardown(self) -> None:
            try:
                super().teardown()
            finally:
                shutil.rmtree(self.root)

    return OnDisk


@pytest.mark.long
def test_stories_on_disk(on_disk: type[Stories]) -> None:
    run_state_machine_as_test(on_disk, settings=told(6, 25))


def for_seconds(factory: type[Stories], batch: int) -> int:
    """Tell new stories until the time is over; return how many that were."""
    end = time.monotonic() + SECONDS
    count = 0

    class Counted(factory):  # type: ignore[misc,valid-type]
        def __init__(self) -> None:
            nonlocal count
            count += 1
            super().__init__()

    while time.monotonic() < end:
        run_state_machine_as_test(Counted, settings=told(batch, 40, fixed=False))
    return count


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_many_stories(record_property: Callable[[str, object], None]) -> None:
    record_property("stories", for_seconds(Stories, 200))


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_many_stories_on_disk(on_disk: type[Stories], record_property: Callable[[str, object], None]) -> None:
    record_property("stories on disk", for_seconds(on_disk, 20))


def test_a_story_is_told_as_a_scenario(tmp_path: Path) -> None:
    one = read_tree(['1-a  metadata 09:00 title "A"  stream 09:00 [1 2]'])
    empty: dict[str, Tree] = {"store": {}, "workspace": {}, "workspace2": {}}
    frames = [
        Frame({**empty, "workspace": one}, "reconcile", ("clock -1", "killed at step 9")),
        Frame({**empty, "workspace": None, "workspace2": one}, "reconcile @2", renewed=frozenset({"store"})),
        Frame({**empty, "store": one, "workspace": None}, "reconcile"),
    ]
    path = tmp_path / "story.scenario"
    path.write_text("\n".join(["A story.", "", *tell(frames)]), encoding="utf-8")
    level = PureLevel()
    assert not play(read_scenario(path), level).complaint()
    assert level.trees == {**empty, "store": one, "workspace": None}


def test_a_story_that_goes_wrong_is_told() -> None:
    class Wrong(Stories):
        def _play(self, frame: Frame) -> Outcome:
            assert not any(frame.trees.values()), "something is there"
            return super()._play(frame)

    with pytest.raises(AssertionError, match="something is there") as caught:
        run_state_machine_as_test(Wrong, settings=told(50, 10))
    assert "given " in str(caught.value)
    assert "$ reconcile" in str(caught.value)
