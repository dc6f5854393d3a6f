"""What a run does about one conversation doesn't depend on whether an unrelated one has changed.

Each small world gets a neighbour that is in sync on both sides. Before and after its last run, the plan is made twice:
with the neighbour as it was, and with a change of it. Both must say the same of everything else. Sides that are empty
as wholes, and removals in bulk, are about all conversations: the neighbour is always there on both sides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from reconcile.planning.planner import make_plan
from tests.properties.telling import command_of, tell
from tests.properties.worlds import NUMBERS, some_worlds
from tests.support.scenarios.listing import read_tree
from tests.support.scenarios.pure_level import RULES, PureLevel

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reconcile.model.plan import Plan
    from tests.properties.telling import Frame

NEIGHBOUR = "8"
BESIDE = read_tree([f'{NEIGHBOUR}-z  metadata 09:00 title "Z"  stream 09:00 [1 2]'])
CHANGES = {
    "goes on in the store": {"store": ["8-z  stream 10:00 [1 2 3]"]},
    "goes on in the workspace": {"workspace": ["8-z  stream 10:00 [1 2 3]"]},
    "goes on in both": {"store": ["8-z  stream 10:00 [1 2 3]"], "workspace": ["8-z  stream 11:00 [1 2 4]"]},
    "gets another title": {"workspace": ['8-z  metadata 10:00 title "Y"']},
    "gets a note": {"workspace": ['8-z/NOTE.md  10:00 "a"']},
    "is damaged": {"workspace": ['8-z/events.json  10:00 "{"']},
    "gets a child": {"workspace": ['8-z/conversations/9-y  metadata 10:00 title "Y" parent 8  stream 10:00 [1]']},
    "is not alone": {"store": ['9-y  metadata 10:00 title "Y"  stream 10:00 [1]']},
}


def beside(frames: Iterable[Frame]) -> list[Frame]:
    """Return frames with the neighbour in each."""
    return [
        replace(each, trees={side: {**(tree or {}), **BESIDE} for side, tree in each.trees.items()}) for each in frames
    ]


def plan_of(level: PureLevel) -> Plan:
    command = command_of("reconcile")
    store, workspace = level._scan(command)
    policy = command.under(level.config, level.git_busy)
    return make_plan(store, workspace, level.memories.of("workspace"), policy, RULES, level.now_ns)


def said_of_others(plan: Plan) -> list[tuple[object, ...]]:
    """Return what a plan does, says and remembers of all but the neighbour and what was added to it."""
    others = {f"jp-c{number}" for number in NUMBERS}
    found: list[tuple[str | None, tuple[object, ...]]] = []
    for each in plan.actions:
        said = (each.kind, each.unit, each.reason, str(each.source), str(each.target), each.writes, each.removes)
        found.append((each.conversation, said))
    found += [(each.conversation, (each.unit, each.reason, each.message)) for each in (*plan.held, *plan.aside)]
    found += [(each.conversation, (each.unit, each.reason, each.message)) for each in plan.notes]
    found += [(key, (intent,)) for key, intent in plan.intents]
    found += [(key, digests) for key, digests in plan.tombstones]
    found += [(key, (unit, record)) for (key, unit), record in plan.asides]
    return sorted(((of, *said) for of, said in found if of in others), key=str)


def with_change(level: PureLevel, change: dict[str, list[str]]) -> PureLevel:
    trees = {side: {**(tree or {}), **read_tree(change.get(side, ()))} for side, tree in level.trees.items()}
    return PureLevel(trees=dict(trees), memories=level.memories, config=level.config, now_ns=level.now_ns)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_of_a_neighbour_changes_nothing_else(change: dict[str, list[str]]) -> None:
    for world in some_worlds(31, 60):
        frames, level = beside(world.frames), PureLevel()
        for frame in frames[:-1]:
            frame.play(level)
        frames[-1].prepare(level)
        for run in (True, False):
            before, after = (said_of_others(plan_of(each)) for each in (level, with_change(level, change)))
            assert after == before, "\n".join([f"{world}:", *tell(frames), f"then {change}", f"{before}", f"{after}"])
            if run:
                frames[-1].play(level)
