"""What planning costs grows with the input and no faster: lines of code that run are counted, not time."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from reconcile.inspect.listing import MAX_DRAWN, Survey, flat, tree
from reconcile.model.baseline import Baseline
from reconcile.model.options import Layout, Missing
from reconcile.model.policy import Children, LocalRequest, Policy, ProjectRequest, RemoveRequest, SetParentRequest
from reconcile.model.snapshot import Side
from reconcile.planning.planner import make_plan
from reconcile.planning.simulate import listing_of, simulate
from reconcile.planning.status_listing import status_lines
from reconcile.serialization.plan_json import plan_to_json
from tests.support.scenarios.building import NOW_NS, context_of
from tests.support.scenarios.listing import read_tree
from tests.support.scenarios.pure_level import FORMAT, RULES
from tests.support.scenarios.pure_scan import scan_tree

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from reconcile.model.snapshot import Snapshot

    Shape = Callable[[int], list[str]]

FEW = 40
START = 10_000


def conversation(number: int, parent: int | None) -> str:
    stated = "" if parent is None else f" parent {START + parent}"
    return f'{START + number}-x  metadata 09:00 title "x"{stated}  stream 09:00 [1]'


def chain(count: int) -> list[str]:
    return [conversation(number, number - 1 if number else None) for number in range(count)]


def cycle(count: int) -> list[str]:
    return [conversation(number, (number + 1) % count) for number in range(count)]


def pairs(count: int) -> list[str]:
    """Many small cycles."""
    return [conversation(number, number ^ 1) for number in range(count)]


def star(count: int) -> list[str]:
    return [conversation(number, 0 if number else None) for number in range(count)]


def copies(count: int) -> list[str]:
    """One id in many directories."""
    return [conversation(0, None).replace("-x", f"-{number}") for number in range(count)]


def look(side: Side, lines: list[str]) -> Snapshot:
    ids = frozenset(f"jp-c{START + number}" for number in range(4 * FEW))
    return scan_tree(read_tree(lines), side, f"{side}:0", FORMAT, ids)


def ids(count: int) -> tuple[str, ...]:
    return tuple(f"jp-c{START + number}" for number in range(count))


PLAIN = Policy(path_limit=150)
"""Directories lie in each other no deeper than paths may be long; here that is reached soon."""
FLAT = replace(PLAIN, layout=Layout.FLAT)


def steps(work: Callable[[], object]) -> int:
    """Count the lines of reconcile that run."""
    count = 0

    def trace(frame: FrameType, event: str, _argument: object) -> object:
        nonlocal count
        if "/reconcile/" not in frame.f_code.co_filename:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)  # type: ignore[arg-type] # a trace function returns one
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def grows(work: Callable[[int], Callable[[], object]]) -> float:
    """Tell how much more a double input costs."""
    return steps(work(2 * FEW)) / steps(work(FEW))


MARGIN = 2.1
"""Twice as much costs about twice as much; a square would be four times."""


def judged(sides: tuple[Snapshot, Snapshot], policy: Policy) -> None:
    """Plan, replay the plan, and tell how everything stands."""
    plan = make_plan(*sides, Baseline(), policy, RULES, NOW_NS)
    simulate(plan, listing_of(*sides))
    board = context_of(*sides)
    status_lines(board, plan, {}, {})
    flat(Survey.of(board), archived=False)


@pytest.mark.parametrize("stored", [True, False], ids=["both sides", "workspace alone"])
@pytest.mark.parametrize("shape", [chain, cycle, pairs, star, copies])
def test_a_plain_run(shape: Shape, stored: bool) -> None:
    def work(count: int) -> Callable[[], None]:
        lines = shape(count)
        sides = look(Side.STORE, lines if stored else []), look(Side.WORKSPACE, lines)
        return lambda: judged(sides, PLAIN)

    assert grows(work) < MARGIN


COMMANDS: dict[str, Callable[[int], Policy]] = {
    "local": lambda count: replace(FLAT, request=LocalRequest(ids(count))),
    "rm --cascade": lambda count: replace(FLAT, request=RemoveRequest(ids(count), Children.CASCADE)),
    "rm --promote": lambda count: replace(FLAT, request=RemoveRequest(ids(count)[::2], Children.PROMOTE)),
    "rm": lambda count: replace(FLAT, request=RemoveRequest(ids(count)[::-1])),
    "set-parent": lambda count: replace(FLAT, request=SetParentRequest(ids(count)[-1], ids(count)[0])),
    "below": lambda count: replace(PLAIN, below=frozenset(ids(count))),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("shape", [chain, star])
def test_a_command_about_all(shape: Shape, command: Callable[[int], Policy]) -> None:
    def work(count: int) -> Callable[[], None]:
        lines = shape(count)
        sides = look(Side.STORE, lines), look(Side.WORKSPACE, lines)
        return lambda: judged(sides, command(count))

    assert grows(work) < MARGIN


def test_what_is_printed_of_a_directory_with_many_in_it_that_becomes_local() -> None:
    def length(count: int) -> int:
        lines = star(count)
        nested = [lines[0], *(f"{START}-x/conversations/{line}" for line in lines[1:])]
        sides = look(Side.STORE, lines), look(Side.WORKSPACE, nested)
        plan = make_plan(*sides, Baseline(), replace(PLAIN, request=LocalRequest(ids(1))), RULES, NOW_NS)
        assert len(plan.actions) == count
        return len(json.dumps(plan_to_json(plan, workspace="", store="")))

    assert length(2 * FEW) / length(FEW) < MARGIN


def test_a_drawing_is_no_wider_than_some_levels() -> None:
    rows = list(tree(Survey.of(context_of(look(Side.STORE, chain(2 * FEW)), look(Side.WORKSPACE, [])))))
    assert [len(row.branch) for row in rows[:3]] == [0, 4, 8]
    assert rows[MAX_DRAWN].branch.endswith("└── ")
    assert rows[MAX_DRAWN + 1].branch.strip() == f"{MAX_DRAWN + 1}:"
    assert max(len(row.branch) for row in rows) == len(rows[MAX_DRAWN + 1].branch)


PUBLISHED: dict[str, Callable[[int], Policy]] = {
    "each": lambda count: replace(PLAIN, request=ProjectRequest(ids(count))),
    "everything": lambda _count: replace(PLAIN, request=ProjectRequest((), everything=True)),
    "every second with what it lies in": lambda count: replace(
        PLAIN, request=ProjectRequest(ids(count)[::2], ancestors=True)
    ),
    "as a setting": lambda _count: replace(PLAIN, missing=Missing.REPROJECT),
}


@pytest.mark.parametrize("policy", PUBLISHED.values(), ids=PUBLISHED)
@pytest.mark.parametrize("shape", [chain, star])
def test_everything_published(shape: Shape, policy: Callable[[int], Policy]) -> None:
    def work(count: int) -> Callable[[], None]:
        sides = look(Side.STORE, shape(count)), look(Side.WORKSPACE, [])
        return lambda: judged(sides, policy(count))

    assert grows(work) < MARGIN
