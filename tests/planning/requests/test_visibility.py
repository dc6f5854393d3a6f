"""What a `local` that was cut short leaves to the next run (docs/design/intents.md#rule-32)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from reconcile.model.baseline import Baseline, Intent, IntentKind, PendingRequest, Verb
from reconcile.model.policy import Policy
from reconcile.model.reasons import Reason
from tests.support.scenarios.building import agreed_on, here, plan_of, stored

if TYPE_CHECKING:
    from reconcile.model.plan import Plan

A = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
B = '2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1]'
C = '3-c  metadata 09:00 title "C" parent 1  stream 09:00 [1]'
H = '8-h  metadata 09:00 title "H"  stream 09:00 [1]'
IN_A = "1-a/conversations/"
ALL = agreed_on(A, IN_A + B, IN_A + C, H)
LOCAL = Intent(IntentKind.LOCAL)


def waits(*left: str, along: tuple[str, ...] = ()) -> dict[tuple[str, Verb], PendingRequest]:
    """Return what a `local` of the first has left to do, which takes the others along."""
    return {(left[0], Verb.LOCAL): PendingRequest(along=along or left[1:])} if left else {}


def cut_short(*left: str, intent: Intent = LOCAL) -> Baseline:
    return replace(ALL, intents={"jp-c1": intent}, waiting=waits(*left))


def gone(plan: Plan) -> list[tuple[str, Reason]]:
    return [(action.conversation, action.reason) for action in plan.actions]


def test_the_next_run_takes_out_what_was_left() -> None:
    plan = plan_of(stored(A, B, C, H), here(A, IN_A + B, IN_A + C, H), cut_short("jp-c1", "jp-c2", "jp-c3"))
    assert set(gone(plan)) == {
        ("jp-c1", Reason.LOCALIZED),
        ("jp-c2", Reason.WITH_ANCESTOR),
        ("jp-c3", Reason.WITH_ANCESTOR),
    }
    assert not plan.aside
    waiting = Intent(IntentKind.PROJECTED, waits_for="jp-c1", place="1-a/conversations/2-b")
    assert dict(plan.intents)["jp-c2"] == waiting


def test_the_rest_of_the_run_goes_on_as_ever() -> None:
    edited = H.replace("[1]", "[1 2]").replace("09:00 [", "10:00 [")
    plan = plan_of(stored(A, H), here(A, edited), cut_short("jp-c1"))
    assert [action.conversation for action in plan.actions] == ["jp-c8", "jp-c1"]


def test_it_is_no_bulk_change() -> None:
    """Who was asked once isn't asked again."""
    many = [f'1{n:02}-x  metadata 09:00 title "X" parent 1  stream 09:00 [1]' for n in range(60)]
    inside = [IN_A + each for each in many]
    baseline = replace(agreed_on(A, *inside, H), intents={"jp-c1": LOCAL})
    left = waits("jp-c1", along=tuple(each for each in baseline.agreed if each != "jp-c8"))
    plan = plan_of(stored(A, *many, H), here(A, *inside, H), replace(baseline, waiting=left))
    assert len(plan.actions) == 61
    assert not plan.held


@pytest.mark.parametrize(
    ("baseline", "what"),
    [
        pytest.param(cut_short("jp-c1", "jp-c2"), "another came into the directory since", id="another inside"),
        pytest.param(cut_short(), "a later run has not taken it up", id="later"),
        pytest.param(
            cut_short("jp-c1", "jp-c2", "jp-c3", intent=Intent(IntentKind.PROJECTED)), "it is wanted again", id="wanted"
        ),
        pytest.param(cut_short("jp-c2", "jp-c3"), "the child was never local itself", id="children"),
    ],
)
def test_a_directory_stays_where(baseline: Baseline, what: str) -> None:
    plan = plan_of(stored(A, B, C, H), here(A, IN_A + B, IN_A + C, H), baseline)
    assert not plan.actions, what


def test_it_keeps_to_what_the_run_is_limited_to() -> None:
    baseline = cut_short("jp-c1")
    for only, count in ((frozenset({"jp-c8"}), 0), (frozenset({"jp-c1"}), 1)):
        plan = plan_of(stored(A, H), here(A, H), baseline, policy=Policy(only=only))
        assert len(plan.actions) == count


def test_what_went_before_the_end_is_nobodys_business() -> None:
    assert not plan_of(stored(A, H), here(H), cut_short("jp-c1")).actions


def test_what_is_nowhere_any_more_or_has_left_by_now_needs_nothing() -> None:
    plan = plan_of(stored(A, H), here(H), cut_short("jp-c1", "jp-c77"))
    assert (plan.actions, plan.intents, plan.held) == ((), (), ())


def test_what_was_left_is_taken_out_in_the_order_of_ids() -> None:
    """Whatever order a set has them in."""
    line = '{0}-x  metadata 09:00 title "X"{1}  stream 09:00 [1]'
    tops = [line.format(n, "") for n in range(10, 18)]
    inside = [f"{n}-x/conversations/{line.format(n + 10, f' parent {n}')}" for n in range(10, 18)]
    ids = [f"jp-c{n}" for n in range(10, 18)]
    baseline = replace(agreed_on(*tops, *inside, H), intents=dict.fromkeys(ids, LOCAL))
    left = {(f"jp-c{n}", Verb.LOCAL): PendingRequest(along=(f"jp-c{n + 10}",)) for n in range(17, 9, -1)}
    store = stored(*tops, *(each.partition("conversations/")[2] for each in inside), H)
    plan = plan_of(store, here(*tops, *inside, H), replace(baseline, waiting=left))
    assert [note.conversation for note in plan.notes if note.reason is Reason.TAKEN_ALONG] == ids


def test_removals_that_nobody_asked_for_are_still_a_bulk() -> None:
    many = [f'1{n:02}-x  metadata 09:00 title "X"  stream 09:00 [1]' for n in range(6)]
    baseline = replace(agreed_on(A, *many, H), intents={"jp-c1": LOCAL}, waiting=waits("jp-c1"))
    plan = plan_of(stored(A, H), here(A, *many, H), baseline)
    assert [item.reason for item in plan.held] == [Reason.BULK]
    assert [action.conversation for action in plan.actions] == ["jp-c1"]


def test_what_was_removed_from_the_store_since_goes_as_that() -> None:
    plan = plan_of(stored(H), here(A, H), cut_short("jp-c1"))
    assert gone(plan) == [("jp-c1", Reason.REMOVED_IN_STORE)]
    assert not plan.held
