"""Snapshots, memories and plans for unit tests, from the lines that scenarios are written in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.model.baseline import Baseline
from reconcile.model.policy import Policy
from reconcile.model.snapshot import METADATA, STREAM, Foreign, Problem, Side, Unreadable
from reconcile.planning.decide import decide
from reconcile.planning.planner import make_plan
from reconcile.planning.rules.views import views_of
from tests.support.scenarios.commands import read_command
from tests.support.scenarios.line_reader import DAY_NS
from tests.support.scenarios.listing import read_tree
from tests.support.scenarios.pure_level import FORMAT, RULES, PureLevel
from tests.support.scenarios.pure_scan import scan_tree

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reconcile.model.plan import Plan
    from reconcile.model.snapshot import Copy, Snapshot
    from reconcile.model.units import Rules
    from reconcile.planning.context import PlanningContext
    from reconcile.planning.rules.views import View

Lines = list[str]
IDS = frozenset(f"jp-c{number}" for number in range(100))
NOW_NS = DAY_NS


def seen(side: Side, lines: Iterable[str], identity: str = "") -> Snapshot:
    """Look at a side as the scan would, with the events of every stream."""
    return scan_tree(read_tree(lines), side, identity or f"{side}:0", FORMAT, IDS)


def stored(*lines: str) -> Snapshot:
    return seen(Side.STORE, lines)


def here(*lines: str) -> Snapshot:
    return seen(Side.WORKSPACE, lines)


def doubtful_sides(store: Snapshot, workspace: Snapshot) -> dict[str, tuple[Snapshot, Snapshot]]:
    """Return both sides with something on one of them that the scan could not read or name."""
    problem, foreign = (Problem("9-z", "denied"),), (Foreign("x", "no id"),)
    return {
        "a problem in the store": (replace(store, problems=problem), workspace),
        "a problem in the workspace": (store, replace(workspace, problems=problem)),
        "a foreign name in the store": (replace(store, foreign=foreign), workspace),
        "a foreign name in the workspace": (store, replace(workspace, foreign=foreign)),
    }


def agreed_on(*lines: str) -> Baseline:
    """Return what is remembered once both sides hold these conversations."""
    level = PureLevel()
    level.trees = {"store": read_tree(line.rpartition("conversations/")[2] for line in lines)}
    level.trees["workspace"] = read_tree(lines)
    level.run(read_command("reconcile"))
    return level.memories.of("workspace")


def view_of(
    store: Snapshot, workspace: Snapshot, baseline: Baseline | None = None, conversation: str = "jp-c1"
) -> View:
    return views_of(store, workspace, baseline or Baseline(), RULES)[conversation]


def quiet_plan(store: Snapshot, workspace: Snapshot, baseline: Baseline, policy: Policy, rules: Rules) -> Plan | None:
    """Return the plan where the classification alone finds nothing to do; None where the rules were asked."""
    plan = make_plan(store, workspace, baseline, policy, rules, NOW_NS)
    return plan if plan.quiet else None


def plan_of(
    store: Snapshot, workspace: Snapshot, baseline: Baseline | None = None, policy: Policy | None = None
) -> Plan:
    return make_plan(store, workspace, baseline or Baseline(), policy or Policy(), RULES, NOW_NS)


def context_of(
    store: Snapshot, workspace: Snapshot, baseline: Baseline | None = None, policy: Policy | None = None
) -> PlanningContext:
    return decide(store, workspace, baseline or Baseline(), policy or Policy(), RULES, NOW_NS)


def unreadable(snapshot: Snapshot, path: str) -> Snapshot:
    """Return the side as the scan sees it where one file can't be read."""
    copies = tuple(_unreadable(copy, path) for copy in snapshot.copies)
    return replace(snapshot, copies=copies)


def _unreadable(copy: Copy, path: str) -> Copy:
    name = path.removeprefix(copy.path + "/")
    files = tuple(replace(file, digest=None) if file.name == name else file for file in copy.files)
    fault = Unreadable(name, "", "a readable file")
    unit = FORMAT.unit_of(name) if files != copy.files else None
    return replace(
        copy,
        files=files,
        metadata=fault if unit == METADATA else copy.metadata,
        stream=fault if unit == STREAM else copy.stream,
    )
