"""Logs of Leslie: one side has a file in the place of the other side's directory."""

from __future__ import annotations

import pytest

from reconcile.formats.leslie.format import LeslieFormat
from reconcile.fs.hashing import digest
from reconcile.model.baseline import Baseline, BaselineEntry, Intent, IntentKind, WorldState
from reconcile.model.policy import Policy, RemoveRequest
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import METADATA, Copy, File, Metadata, Partition, Problem, Side, Snapshot
from reconcile.model.units import Rules
from reconcile.planning.incremental.scope import SnapshotIndex
from reconcile.planning.planner import make_plan

RULES = Rules(LeslieFormat(), digest)
NOW = 10**18
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


@pytest.mark.parametrize(
    ("kept", "ways"),
    [(("logs/x",), ["reconcile rm logs/x"]), (MANY[:2], ["reconcile rm logs/x/0 logs/x/1"]), (MANY, [])],
)
def test_the_message_names_the_removal_of_a_few_records(kept: tuple[str, ...], ways: list[str]) -> None:
    new = "logs/x/new" if kept == ("logs/x",) else "logs/x"
    plan = make_plan(
        logs(Side.STORE, *kept), logs(Side.WORKSPACE, new, "logs/other"), remembered(*kept), Policy(), RULES, NOW
    )
    assert [(item.conversation, item.reason, list(item.resolve)) for item in plan.held] == [
        ("logs/x", Reason.OBSTRUCTED, ways)
    ]
    assert [action.conversation for action in plan.actions] == ["logs/other"]


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


def test_a_record_waits_while_a_request_removes_the_one_in_its_place() -> None:
    """It joins in the next run."""
    store, here = logs(Side.STORE, "logs/x", "logs/z"), logs(Side.WORKSPACE, "logs/x/a", "logs/z")
    policy = Policy(request=RemoveRequest(("logs/x",)), only=frozenset({"logs/x", "logs/x/a"}))
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
