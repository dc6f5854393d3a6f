"""Random stories of two sides, with every law checked after every run (DESIGN.md 11).

`STORIES=20000 pytest -m slow tests/properties` tells as many more. A story that breaks a law is printed as a
scenario, shortened; it can be saved under fixtures/scenarios/found as it is.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from reconcile.core.planner import make_plan
from reconcile.core.policy import Take
from reconcile.core.quiet import quiet_plan
from reconcile.planjson import plan_to_json
from reconcile.schema import read_plan
from tests.properties.shortening import shortened
from tests.properties.stories import Story
from tests.properties.telling import Frame, command_of
from tests.properties.telling import tell as replay
from tests.support.playing import play
from tests.support.pure_level import RULES, PureLevel
from tests.support.scenario import read_scenario
from tests.support.words import DAY_NS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from reconcile.core.memory import Memory
    from reconcile.core.model import Snapshot
    from reconcile.core.policy import Policy

BATCH = 50
MORE = int(os.environ.get("STORIES", "2000"))


def tell(first: int, steps: int, count: int = BATCH) -> None:
    for seed in range(first, first + count):
        story = Story(seed)
        try:
            story.tell(steps)
        except Exception as error:
            found = "\n".join(replay(shortened(story.frames)))
            message = f"the story {seed} of {steps} runs, shortened:\n\n{found}"
            raise AssertionError(message) from error


@pytest.mark.parametrize("first", range(0, 500, BATCH))
def test_short_stories(first: int) -> None:
    tell(first, steps=4)


@pytest.mark.parametrize("first", range(1000, 1000 + 2 * BATCH, BATCH))
def test_long_stories(first: int) -> None:
    tell(first, steps=9)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", range(10_000, 10_000 + MORE, 10 * BATCH))
def test_many_stories(first: int) -> None:
    tell(first, steps=6, count=10 * BATCH)


def test_a_seed_always_tells_the_same_story() -> None:
    one, other = Story(7), Story(7)
    one.tell(5)
    other.tell(5)
    assert one.frames == other.frames
    assert len(one.frames) == 5


def test_a_story_is_printed_as_a_scenario(tmp_path: Path) -> None:
    story = Story(3)
    story.tell(4)
    path = tmp_path / "story.scenario"
    path.write_text("\n".join(["A story.", "", *replay(story.frames)]), encoding="utf-8")
    level = PureLevel()
    assert not play(read_scenario(path), level).complaint()
    assert level.trees == story.world.trees


def test_a_story_that_goes_wrong_is_shortened_to_what_is_wrong() -> None:
    story = Story(3)
    story.tell(3)
    frames = shortened([*story.frames, Frame(story.frames[-1].trees, "reconcile --prefer nonsense")])
    assert frames == [Frame({"store": {}, "workspace": {}}, "reconcile --prefer nonsense")]
    assert "invalid Prefer value" in replay(frames)[-1]


def told(seed: int) -> Iterator[tuple[Snapshot, Snapshot, Memory, Policy]]:
    """Yield what each run of a story plans from, and what it leaves."""
    story = Story(seed)
    story.tell(4)
    level = PureLevel()
    for frame in story.frames:
        level.trees = {side: dict(tree) for side, tree in frame.trees.items()}
        command = command_of(frame.command)
        policy = command.under(level.config, level.git_busy)
        for run in (True, False):
            memory = level.memories.of(command.workspace)
            yield (*level._scan(command, memory), memory, policy)
            if run:
                level.run(command)


@pytest.mark.parametrize("seed", range(40))
def test_a_plan_survives_being_saved(seed: int) -> None:
    for store, workspace, memory, policy in told(seed):
        plan = make_plan(store, workspace, memory, policy, RULES, DAY_NS)
        text = json.dumps(plan_to_json(plan, workspace="/w", store="/s"))
        assert read_plan(text, "a plan") == (replace(plan, states=(), quiet=False), "/w", "/s")


@pytest.mark.parametrize("first", range(0, 100, 50))
def test_what_is_quiet_at_a_glance_is_quiet_to_the_planner(first: int) -> None:
    glances = 0
    for seed in range(first, first + 50):
        for store, workspace, memory, policy in told(seed):
            quiet = quiet_plan(store, workspace, memory, policy, RULES)
            if quiet is not None:
                slow = replace(policy, decisions={"nobody": Take.STORE})
                plan = make_plan(store, workspace, memory, slow, RULES, DAY_NS)
                found = replace(plan, outline=(), places=(), rooted=())
                assert found == replace(quiet, quiet=False, policy=slow, now_ns=DAY_NS)
                glances += 1
    assert glances > 10
