"""Logs of Leslie: one side has a file in the place of the other side's directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reconcile.formats.leslie.format import LeslieFormat
from reconcile.fs.hashing import digest
from reconcile.model.baseline import Baseline, BaselineEntry, Intent, IntentKind, WorldState
from reconcile.model.policy import Policy, ProjectRequest, RemoveRequest
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import METADATA, Copy, File, Metadata, Partition, Problem, Side, Snapshot
from reconcile.model.units import Rules
from reconcile.planning.incremental.scope import SnapshotIndex
from reconcile.planning.planner import make_plan

if TYPE_CHECKING:
    from reconcile.model.plan import Plan

RULES = Rules(LeslieFormat(), digest)
NOW = 10**18
FILE_IN_STORE = "a file in the store, a directory on the other side; rename the one in the store, and run again"
FILE_HERE = "a directory in the store, a file on the other side; rename the one in the store, and run again"
MANY = tuple(f"logs/x/{number}" for number in range(6))


def logs(side: Side, *names: str, problems: tuple[Problem, ...] = ()) -> Snapshot:
    """Return a side with these logs; each has its name as content."""
    copies = []
    for name in sorted(names):
        content = name.encode()
        metadata = RULES.format.read_metadata(content)
        assert isinstance(metadata, Metadata)
        file = File("", len(content), 1, digest(content))
        copies.append(Copy(side, name, name, Partition.LIVE, None, (file,), metadata, None))
    return Snapshot(side, exists=True, identity="1:1", copies=tuple(copies), problems=problems)


def remembered(*names: str, **more: object) -> Baseline:
    """Return what is known after a run with these logs on both sides."""
    agreed = {name: BaselineEntry({METADATA: digest(name.encode())}, None, None, None, name) for name in names}
    return Baseline(agreed=agreed, store_identity="1:1", **more)  # type: ignore[arg-type]


def said(plan: Plan) -> dict[str | None, tuple[str, ...]]:
    """Return the words and the commands of each record that is in the way, and of no other item."""
    assert {item.reason for item in plan.held} <= {Reason.OBSTRUCTED}
    return {item.conversation: (item.message, *item.resolve) for item in plan.held}


@pytest.mark.parametrize(
    ("kept", "ways"),
    [
        (("logs/x",), ["reconcile rm logs/x"]),
        (MANY[:2], ["reconcile rm logs/x/0 logs/x/1"]),
        (MANY[:5], [f"reconcile rm {' '.join(MANY[:5])}"]),
        (MANY, []),
    ],
)
def test_the_message_names_the_removal_of_a_few_records(kept: tuple[str, ...], ways: list[str]) -> None:
    new = "logs/x/new" if kept == ("logs/x",) else "logs/x"
    store, here = logs(Side.STORE, *kept, "logs/gone"), logs(Side.WORKSPACE, new, "logs/other")
    plan = make_plan(store, here, remembered(*kept, "logs/gone"), Policy(), RULES, NOW)
    assert said(plan) == {"logs/x": (FILE_IN_STORE if kept == ("logs/x",) else FILE_HERE, *ways)}
    assert [action.conversation for action in plan.actions] == ["logs/other"]


def test_a_record_that_makes_room_says_nothing_of_the_next_name() -> None:
    store, here = logs(Side.STORE, "logs/a", "logs/b"), logs(Side.WORKSPACE, "logs/a/x", "logs/b/y")
    plan = make_plan(store, here, remembered("logs/a/x", "logs/b"), Policy(), RULES, NOW)
    assert said(plan) == {"logs/b": (FILE_IN_STORE, "reconcile rm logs/b")}
    assert {action.conversation for action in plan.actions} >= {"logs/a/x"}


def test_two_new_records_wait_for_another_name() -> None:
    plan = make_plan(logs(Side.STORE, "logs/x"), logs(Side.WORKSPACE, "logs/x/a"), Baseline(), Policy(), RULES, NOW)
    assert [(item.conversation, item.reason, item.resolve) for item in plan.held] == [("logs/x", Reason.OBSTRUCTED, ())]
    assert not plan.actions


def test_records_that_no_run_would_copy_are_not_held() -> None:
    """The store can't be read, so that nothing is copied to it."""
    store = logs(Side.STORE, "logs/x", problems=(Problem("", "closed"),))
    here = logs(Side.WORKSPACE, "logs/x/a")
    plan = make_plan(store, here, remembered("logs/x"), Policy(), RULES, NOW)
    assert "logs/x" not in {item.conversation for item in plan.held}
    assert not plan.actions


def test_a_removal_in_the_store_makes_room_in_the_workspace_first() -> None:
    store, here = logs(Side.STORE, "logs/x/a", "logs/x/b", "logs/z"), logs(Side.WORKSPACE, "logs/x", "logs/z")
    plan = make_plan(store, here, remembered("logs/x", "logs/z"), Policy(), RULES, NOW)
    first, *others = plan.actions
    assert (first.conversation, first.reason) == ("logs/x", Reason.REMOVED_IN_STORE)
    assert {action.conversation: action.needs for action in others} == dict.fromkeys(
        ("logs/x/a", "logs/x/b"), (first.id,)
    )


@pytest.mark.parametrize("only", [frozenset(), frozenset({"logs/x", "logs/x/a"})])
def test_a_record_waits_while_a_request_removes_the_one_in_its_place(only: frozenset[str]) -> None:
    """It joins in the next run."""
    store, here = logs(Side.STORE, "logs/x", "logs/z"), logs(Side.WORKSPACE, "logs/x/a", "logs/z")
    policy = Policy(request=RemoveRequest(("logs/x",)), only=only)
    plan = make_plan(store, here, remembered("logs/x", "logs/z"), policy, RULES, NOW)
    assert [(action.conversation, action.reason) for action in plan.actions] == [("logs/x", Reason.REMOVED_AS_ASKED)]
    assert not plan.held


@pytest.mark.parametrize("changed", ["logs/x", "logs/x/a"])
def test_a_part_has_both_shapes(changed: str) -> None:
    baseline = remembered("logs/x", "logs/z", intents={"logs/x": Intent(IntentKind.REMOVED)})
    store, here = logs(Side.STORE, "logs/x", "logs/z"), logs(Side.WORKSPACE, "logs/x/a", "logs/z")
    index = SnapshotIndex.of_world(WorldState(store, here, baseline), RULES)
    assert index.part({changed}, lambda _: baseline).conversations == {"logs/x", "logs/x/a"}
    assert index.part({"logs/z"}, lambda _: baseline).conversations == {"logs/z"}


def test_only_what_comes_in_its_place_waits_for_a_removal_and_the_removals_have_an_order() -> None:
    more = [f"logs/z/{number}" for number in range(30)]
    store, here = logs(Side.STORE, "logs/w", "logs/x", *more), logs(Side.WORKSPACE, "logs/new", *MANY, *more)
    plan = make_plan(store, here, remembered(*MANY, *more), Policy(), RULES, NOW)
    number = {action.conversation: action.id for action in plan.actions}
    assert list(number) == ["logs/new", "logs/w", *MANY, "logs/x"]
    needs = {action.conversation: action.needs for action in plan.actions if action.needs}
    assert needs == {"logs/x": tuple(number[name] for name in MANY)}
    assert not plan.held


def test_each_place_is_decided_for_itself() -> None:
    """There is room in the first and the second, and the others are held."""
    store = logs(Side.STORE, "logs/a/1", "logs/c/1", "logs/d", "logs/e", "logs/z")
    here = logs(Side.WORKSPACE, "logs/a", "logs/c", "logs/d/1", "logs/e/1", "logs/z")
    known = remembered("logs/a", "logs/c", "logs/d", "logs/z")
    plan = make_plan(store, here, known, Policy(), RULES, NOW)
    assert said(plan) == {"logs/d": (FILE_IN_STORE, "reconcile rm logs/d"), "logs/e": (FILE_IN_STORE,)}
    assert {action.conversation for action in plan.actions} == {"logs/a", "logs/a/1", "logs/c", "logs/c/1"}


@pytest.mark.parametrize("side", [Side.STORE, Side.WORKSPACE])
@pytest.mark.parametrize(("gone", "new"), [("logs/x", "logs/x/a"), ("logs/x/a", "logs/x")])
def test_a_record_that_is_on_no_side_is_in_no_place(side: Side, gone: str, new: str) -> None:
    store, here = (logs(each, *((new,) if each is side else ()), "logs/z") for each in (Side.STORE, Side.WORKSPACE))
    plan = make_plan(store, here, remembered(gone, "logs/z"), Policy(), RULES, NOW)
    assert [action.conversation for action in plan.actions] == [new]
    assert not plan.held


def test_what_is_asked_for_elsewhere_is_not_held() -> None:
    store, here = logs(Side.STORE, "logs/q", "logs/x/a", "logs/x/b", "logs/z"), logs(Side.WORKSPACE, "logs/x", "logs/z")
    policy = Policy(request=ProjectRequest(("logs/q", "logs/x/b")))
    plan = make_plan(store, here, remembered("logs/q", "logs/x/a", "logs/x/b", "logs/z"), policy, RULES, NOW)
    assert said(plan) == {"logs/x/b": (FILE_HERE,)}
    assert [action.conversation for action in plan.actions] == ["logs/q"]
