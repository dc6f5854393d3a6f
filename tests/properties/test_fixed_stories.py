"""Random stories of two checkouts and one store, of records with fixed places (docs/examples/notes.py).

After every run: nothing is lost, what was planned for is there, and a second run has nothing to do. In the end, after
two runs in each, neither checkout has anything left to do, and the index of each says what its notes say.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from reconcile.model.policy import Policy
from reconcile.model.snapshot import Side
from reconcile.planning.baseline_update import update_baseline
from reconcile.planning.planner import make_plan
from reconcile.planning.rules.shapes import collisions
from tests.support.formats.notes import HOUR, RULES, Files, carried_out, notes, snapshot
from tests.support.scenarios.memories import Memories

if TYPE_CHECKING:
    from reconcile.model.plan import Plan
    from reconcile.model.snapshot import Snapshot

CHECKOUTS = ("workspace", "workspace2")
TRIP = ("trip/map", "trip/list", "trip/map/a", "trip/map/b")
PATHS = ("a.md", "b.md", "c.md", *TRIP, "box/x", "box/x/y", "log", "INDEX")
STORIES = 40


class Story:
    """Files with their times by place, and the vault: every content that a step has replaced or removed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.files: dict[str, Files] = {"store": {}, "workspace": {}, "workspace2": {}}
        self.memories = Memories()
        self.vault: set[bytes] = set()
        self.hour = 1
        self.told: list[str] = []

    def write(self) -> None:
        """Somebody edits, adds or removes something on a side."""
        where = self.files[self.random.choice([*CHECKOUTS, *CHECKOUTS, "store"])]
        path = self.random.choice(PATHS)
        self.hour += self.random.choice((0, 1, 1))
        if path in where and self.random.random() < 0.25:
            del where[path]
        else:
            old = where.get(path, (b"", 0))[0]
            ends = b"%d\n" % self.random.randrange(5)
            content = old + ends if path == "log" or self.random.random() < 0.5 else ends
            for other in [each for each in where if collisions({path}, {each})]:
                del where[other]  # a file in the place of a directory, or the other way round
            where[path] = (b"\xff" if self.random.random() < 0.03 else content, self.hour * HOUR)
        self.told.append(f"{path} of {next(name for name, files in self.files.items() if files is where)}")

    def run(self, checkout: str) -> Plan:
        """Plan, carry out, compare with `simulate`, remember."""
        before = {content for files in self.files.values() for content, _ in files.values()}
        plan = self.plan(checkout)
        self.told.append(f"run in {checkout}: {[f'{a.kind} {a.target}' for a in plan.actions]}")
        sides = {Side.STORE: self.files["store"], Side.WORKSPACE: self.files[checkout]}
        self.vault |= carried_out(plan, sides)
        found = self.sides(checkout)
        after = {content for files in self.files.values() for content, _ in files.values()}
        assert before <= after | self.vault, self.told
        assert not any(collisions(files.keys(), files.keys()) for files in self.files.values()), self.told
        self.memories.remember(checkout, update_baseline(*found, self.memories.of(checkout), plan, RULES))
        again = self.plan(checkout)
        assert not again.actions, (self.told, again.actions)
        return plan

    def plan(self, checkout: str) -> Plan:
        baseline = self.memories.of(checkout)
        plan = make_plan(*self.sides(checkout), baseline, Policy(), RULES, (self.hour + 1) * HOUR)
        assert plan == make_plan(*self.sides(checkout), baseline, Policy(), RULES, (self.hour + 1) * HOUR)
        return plan

    def sides(self, checkout: str) -> tuple[Snapshot, Snapshot]:
        return snapshot(Side.STORE, self.files["store"]), snapshot(Side.WORKSPACE, self.files[checkout])


@pytest.mark.parametrize("part", range(4))
def test_stories(part: int) -> None:
    for seed in range(part * STORIES, (part + 1) * STORIES):
        story = Story(seed)
        for _ in range(story.random.randrange(3, 16)):
            for _ in range(story.random.randrange(1, 4)):
                story.write()
            story.run(story.random.choice(CHECKOUTS))
        for checkout in (*CHECKOUTS, *CHECKOUTS):
            story.run(checkout)
        for checkout in CHECKOUTS:
            plan = story.plan(checkout)
            assert not plan.actions, (seed, story.told, plan.actions)
            files = {path: content for path, (content, _) in story.files[checkout].items() if "/" not in path}
            if files and not any(content == b"\xff" for content in files.values()):
                assert files.get("INDEX") == notes.index_of(files), (seed, story.told)
