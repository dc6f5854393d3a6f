"""Projections told at a glance: the same plan as by the rules, which plan whatever isn't certain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from reconcile.model.baseline import AsideKind, AsideRecord, Baseline, Intent, IntentKind
from reconcile.model.options import Layout, Missing
from reconcile.model.policy import Policy
from reconcile.model.snapshot import Side
from reconcile.planning.incremental.projection import projection_of
from reconcile.planning.planner import make_plan, plan_by_rules
from tests.support.scenarios.building import NOW_NS, agreed_on, here, plan_of, seen, stored, unreadable
from tests.support.scenarios.pure_level import RULES

if TYPE_CHECKING:
    from reconcile.model.snapshot import Snapshot

ONE = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
TWO = '2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1 2]'
THREE = '3-c  metadata 09:00 title "C" parent 2  stream 09:00 [1 2 3]'
OTHER = '4-d  metadata 09:00 title "D"  stream 09:00 [1]'
NOTE = '1-a/NOTE.md  09:00 "x"'
ALL = Policy(missing=Missing.REPROJECT)


def is_told(store: Snapshot, workspace: Snapshot, baseline: Baseline | None = None, policy: Policy = ALL) -> bool:
    """Tell whether a glance suffices; the plan is the rules' in any case."""
    baseline = baseline or Baseline()
    plan, by_rules = (make(store, workspace, baseline, policy, RULES, NOW_NS) for make in (make_plan, plan_by_rules))
    assert plan == by_rules
    assert plan.counted == by_rules.counted
    return projection_of(store, workspace, baseline, policy, RULES, NOW_NS) is not None


def test_everything_into_an_empty_workspace() -> None:
    assert is_told(stored(ONE, NOTE, TWO, THREE), here())
    plan = plan_of(stored(ONE, NOTE, TWO, THREE), here(), policy=ALL)
    assert [action.needs for action in plan.actions] == [(), ("1",), ("1", "2")]
    assert plan.actions[2].target.path == "1-a/conversations/2-b/conversations/3-c"


def test_below_what_is_there_already() -> None:
    assert is_told(stored(ONE, TWO, THREE), here(ONE))
    assert is_told(stored(ONE, TWO, THREE), here(ONE, f"1-a/conversations/{TWO}"))
    assert is_told(stored(ONE, TWO, OTHER), here(ONE, OTHER))


def test_in_the_flat_layout() -> None:
    assert is_told(stored(ONE, TWO, THREE), here(TWO), policy=Policy(missing=Missing.REPROJECT, layout=Layout.FLAT))


def test_beside_what_is_archived_or_local() -> None:
    local = Baseline(intents={"jp-c4": Intent(IntentKind.LOCAL)})
    assert is_told(stored(ONE, TWO, f".archive/{OTHER}"), here())
    assert is_told(stored(ONE, TWO, OTHER), here(), local)
    archived = f".archive/{OTHER}"
    assert is_told(stored(ONE, TWO, archived), here(ONE, archived), agreed_on(ONE, archived))


KEPT = {("jp-c1", "stream"): AsideRecord(AsideKind.KEPT, "x", "y")}
UNCERTAIN = {
    "below what is local": ((ONE, TWO, THREE), (), Baseline(intents={"jp-c1": Intent(IntentKind.LOCAL)})),
    "external": ((ONE,), (TWO,), Baseline()),
    "edited": ((ONE, TWO), ('1-a  metadata 09:00 title "A"  stream 09:00 [1 2]',), Baseline()),
    "it was removed": ((ONE, TWO), (), Baseline(intents={"jp-c2": Intent(IntentKind.REMOVED)})),
    "another parent is known": ((ONE, TWO), (), Baseline(parents={"jp-c2": None})),
    "no stream": (("1-a  metadata 09:00",), (), Baseline()),
    "two directories": ((ONE, '1-b  metadata 09:00 title "A"  stream 09:00 [1]'), (), Baseline()),
    "a cycle": (('1-a  metadata 09:00 title "A" parent 1  stream 09:00 [1]',), (), Baseline()),
    "gone on both sides": ((ONE, TWO), (ONE,), agreed_on(ONE, OTHER)),
    "it lies in another in the store": ((ONE, f"1-a/conversations/{TWO}"), (), Baseline()),
    "set aside": ((ONE, TWO), (ONE,), replace(agreed_on(ONE), asides=KEPT)),
    "lies elsewhere": ((ONE, TWO, THREE), (TWO,), Baseline()),
}


@pytest.mark.parametrize(("store", "workspace", "baseline"), UNCERTAIN.values(), ids=UNCERTAIN)
def test_what_is_not_certain(store: tuple[str, ...], workspace: tuple[str, ...], baseline: Baseline) -> None:
    assert not is_told(stored(*store), here(*workspace), baseline)


def test_what_nobody_can_read() -> None:
    store = unreadable(stored(ONE, TWO, '2-b/NOTE.md  09:00 "x"'), "2-b/NOTE.md")
    assert not is_told(store, here())


def test_another_store() -> None:
    assert is_told(stored(ONE, TWO), here(ONE), agreed_on(ONE))
    assert not is_told(seen(Side.STORE, [ONE, TWO], identity="store:1"), here(ONE), agreed_on(ONE))


def test_what_has_no_room() -> None:
    policy = Policy(missing=Missing.REPROJECT, path_limit=60)
    assert is_told(stored(ONE), here(), policy=policy)
    assert not is_told(stored(ONE, TWO), here(), policy=policy)


@pytest.mark.parametrize("policy", [Policy(), Policy(missing=Missing.REPROJECT, git_busy="a merge")])
def test_only_where_everything_may_be_projected(policy: Policy) -> None:
    assert not is_told(stored(ONE), here(), policy=policy)
