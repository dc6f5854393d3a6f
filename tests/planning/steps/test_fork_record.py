"""Two continuations of a record with a fixed place: the losing one becomes a record of its own on both sides."""

from __future__ import annotations

import pytest

from reconcile.model.baseline import Baseline, Intent, IntentKind
from reconcile.model.options import Missing
from reconcile.model.plan import Action, Kind, Plan
from reconcile.model.policy import Policy
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import WHOLE, Side
from reconcile.planning.planner import make_plan
from tests.support.formats.notes import BRANCHING, HOUR, Files, snapshot

THEIRS, OURS = b"one\ntwo\n", b"one\nthree\n"
FORK = "fork-a.md"


def planned(
    theirs: int, ours: int, store: Files | None = None, workspace: Files | None = None, **known: Intent
) -> Plan:
    """Plan for two continuations with these hours, and other files on either side."""
    sides = (
        snapshot(Side.STORE, {"a.md": (THEIRS, theirs * HOUR), **(store or {})}),
        snapshot(Side.WORKSPACE, {"a.md": (OURS, ours * HOUR), **(workspace or {})}),
    )
    return make_plan(*sides, Baseline(intents=known), Policy(), BRANCHING, 20 * HOUR)


def steps(plan: Plan) -> list[Action]:
    return [action for action in plan.actions if action.kind is not Kind.REBUILD]


def shown(plan: Plan) -> list[str]:
    return [f"{action.kind} {action.target}" for action in steps(plan)]


WINNERS = {
    "the workspace's is newer": (9, 10, THEIRS, Side.STORE),
    "the store's is newer": (10, 9, OURS, Side.WORKSPACE),
}


@pytest.mark.parametrize(("theirs", "ours", "loser", "target"), WINNERS.values(), ids=WINNERS)
def test_the_older_one_becomes_a_record_before_the_newer_one_replaces_it(
    theirs: int, ours: int, loser: bytes, target: Side
) -> None:
    fork, project, winner = steps(planned(theirs, ours))
    for step, kind, needs in ((fork, Kind.FORK, ()), (project, Kind.PROJECT, (fork.id,))):
        found = (step.kind, step.conversation, step.title, step.unit, step.reason, step.case, step.needs)
        assert found == (kind, FORK, "one", WHOLE, Reason.DIVERGED, 5, needs)
    content = loser + b"forked\n"
    for step, side, written in ((fork, Side.STORE, content), (project, Side.WORKSPACE, None)):
        (write,) = step.writes
        assert (write.target.side, write.target.path, write.content) == (side, FORK, written)
        assert (write.size, write.mtime_ns, write.digest) == (len(content), 9 * HOUR, BRANCHING.digest(content))
    assert project.writes[0].source == fork.writes[0].target
    assert (winner.target.side, winner.target.path, winner.conversation) == (target, "a.md", "a.md")
    assert fork.id in winner.needs


MADE: Files = {FORK: (OURS + b"forked\n", 9 * HOUR)}
ELSEWHERE = {
    "nowhere": ({}, {}, {}, [f"fork store:{FORK}", f"project workspace:{FORK}"]),
    "on both sides": (MADE, MADE, {}, []),
    "in the store, after an interruption": (
        MADE,
        {},
        {FORK: Intent(IntentKind.REMOVED)},
        [f"project workspace:{FORK}"],
    ),
    "in the store, and it comes here anyway": (MADE, {}, {}, [f"project workspace:{FORK}"]),
    "in the workspace": ({}, MADE, {}, [f"copy store:{FORK}"]),
}


@pytest.mark.parametrize(("store", "workspace", "intents", "found"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_where_the_fork_is_already_it_is_not_made_again(
    store: Files, workspace: Files, intents: dict[str, Intent], found: list[str]
) -> None:
    plan = planned(10, 9, store, workspace, **intents)
    assert sorted(shown(plan)) == sorted([*found, "project workspace:a.md"])


def test_where_everything_is_copied_to_the_workspace_the_fork_is_made_there_once() -> None:
    """A remote gets everything, for one."""
    sides = snapshot(Side.STORE, {"a.md": (THEIRS, 9 * HOUR)}), snapshot(Side.WORKSPACE, {"a.md": (OURS, 10 * HOUR)})
    plan = make_plan(*sides, Baseline(), Policy(missing=Missing.REPROJECT), BRANCHING, 20 * HOUR)
    assert shown(plan)[:2] == [f"fork store:{FORK}", f"project workspace:{FORK}"]
    assert [step.conversation for step in steps(plan)].count(FORK) == 2


def test_the_fork_is_listed_below_its_source() -> None:
    assert [(each.conversation, each.depth) for each in planned(9, 10).outline[:2]] == [("a.md", 0), (FORK, 1)]
