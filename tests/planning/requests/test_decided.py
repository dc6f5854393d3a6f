"""Decisions of a run that was killed: what the next run makes of each, and what ends them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from reconcile.model.baseline import DecidedUnit, PendingRequest, Verb
from reconcile.model.options import Take
from reconcile.model.plan import Kind
from reconcile.model.policy import Policy
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import METADATA, STREAM, Side
from reconcile.planning.baseline_update import update_baseline
from reconcile.planning.requests.decided import content_of, metadata_written, requests_of, with_written
from tests.support.scenarios.building import agreed_on, context_of, here, plan_of, stored, unreadable, view_of
from tests.support.scenarios.pure_level import RULES

if TYPE_CHECKING:
    from reconcile.model.baseline import Baseline
    from reconcile.model.plan import Plan

AGREED = '1-a  metadata 09:00 title "A" tag="x"  stream 09:00 [1 2]'
STORED = '1-a  metadata 10:00 title "S" tag="x"  stream 10:00 [1 2s]'
OURS = '1-a  metadata 10:30 title "W" tag="x"  stream 10:30 [1 2w]'
KNOWN = agreed_on(AGREED)
TITLE, EVENTS = ("jp-c1", METADATA), ("jp-c1", STREAM)
BY_UNIT = Policy(choices={TITLE: Take.STORE, EVENTS: Take.STORE})
WHOLE = Policy(decisions={"jp-c1": Take.STORE})
KEY = ("jp-c1", Verb.RESOLVE)


def killed(policy: Policy, store: str = STORED, ours: str = OURS) -> Baseline:
    """Return what is remembered after a run with these decisions that was killed before its first step."""
    plan = plan_of(stored(store), here(ours), KNOWN, policy)
    return replace(KNOWN, waiting={key: replace(each, run="r1", why="killed") for key, each in plan.waiting if each})


def planned(baseline: Baseline, store: str = STORED, ours: str = OURS, policy: Policy | None = None) -> Plan:
    return plan_of(stored(store), here(ours), baseline, policy)


def sides_of(plan: Plan, unit: str) -> set[Side]:
    return {action.target.side for action in plan.actions if action.unit == unit and action.kind is not Kind.MOVE}


def messages(plan: Plan, reason: Reason) -> list[str]:
    return [note.message for note in plan.notes if note.reason is reason]


def test_without_a_decision_the_newer_version_is_taken() -> None:
    assert sides_of(planned(KNOWN), METADATA) == sides_of(planned(KNOWN), STREAM) == {Side.STORE}


@pytest.mark.parametrize("policy", [BY_UNIT, WHOLE], ids=["by unit", "whole"])
def test_the_next_run_finishes_a_decision(policy: Policy) -> None:
    plan = planned(killed(policy))
    assert sides_of(plan, METADATA) == sides_of(plan, STREAM) == {Side.WORKSPACE}
    assert plan.waiting == ()
    (note,) = messages(plan, Reason.REQUESTED)
    decision = "your decision (metadata: store, events: store)" if policy is BY_UNIT else "`resolve jp-c1 --take store`"
    assert note == f"{decision} waits since run r1: killed"


@pytest.mark.parametrize("policy", [BY_UNIT, WHOLE], ids=["by unit", "whole"])
def test_what_was_written_before_the_kill_does_not_outdate_it(policy: Policy) -> None:
    half = '1-a  metadata 10:00 title "S" tag="x"  stream 10:30 [1 2w]'
    plan = planned(killed(policy), ours=half)
    assert (sides_of(plan, METADATA), sides_of(plan, STREAM), plan.waiting) == (set(), {Side.WORKSPACE}, ())
    assert not messages(plan, Reason.REQUEST_DROPPED)


def test_what_is_half_merged_does_not_outdate_it() -> None:
    """The workspace has changed another key too: the store gets the merge before the workspace does."""
    ours = OURS.replace('tag="x"', 'tag="y"')
    policy = Policy(choices={TITLE: Take.STORE})
    baseline = killed(policy, ours=ours)
    merge = next(each for each in planned(KNOWN, ours=ours, policy=policy).actions if each.unit == METADATA)
    assert merge.target.side is Side.STORE
    (decided,) = baseline.waiting[KEY].decided
    assert merge.writes[0].digest in decided.seen
    merged = STORED.replace('tag="x"', 'tag="y"')
    plan = planned(baseline, store=merged, ours=ours)
    assert sides_of(plan, METADATA) == {Side.WORKSPACE}
    assert not messages(plan, Reason.REQUEST_DROPPED)


def test_other_content_ends_an_answer_and_leaves_the_others() -> None:
    ours = OURS.replace("2w", "2v")
    plan = planned(killed(BY_UNIT), ours=ours)
    assert (sides_of(plan, METADATA), sides_of(plan, STREAM)) == ({Side.WORKSPACE}, {Side.STORE})
    (note,) = messages(plan, Reason.REQUEST_DROPPED)
    assert note == "your decision (events: store) is dropped, since a side has changed; decide again"
    ((key, left),) = plan.waiting
    assert key == KEY
    assert left is not None
    assert [(each.unit, each.take) for each in left.decided] == [(METADATA, "store")]


@pytest.mark.parametrize("ours", [OURS.replace("2w", "2v"), f'{OURS}\n1-a/notes.txt  10:00 "new"'])
def test_other_content_ends_a_decision_about_all_of_it(ours: str) -> None:
    plan = plan_of(stored(STORED), here(*ours.splitlines()), killed(WHOLE))
    assert plan.waiting == ((KEY, None),)
    (note,) = messages(plan, Reason.REQUEST_DROPPED)
    assert note == "`resolve jp-c1 --take store` is dropped, since a side has changed; decide again"


@pytest.mark.parametrize("policy", [BY_UNIT, WHOLE], ids=["by unit", "whole"])
@pytest.mark.parametrize("equal", [STORED, STORED.replace("2s", "2t").replace('"S"', '"T"')], ids=["chosen", "another"])
def test_it_ends_when_both_sides_are_equal(policy: Policy, equal: str) -> None:
    plan = planned(killed(policy), equal, equal)
    assert plan.waiting == ((KEY, None),)
    assert not messages(plan, Reason.REQUEST_DROPPED)
    changes = update_baseline(stored(equal), here(equal), killed(policy), plan, RULES)
    assert changes.waiting == {KEY: None}


def test_another_answer_replaces_an_earlier_one_and_keeps_the_others() -> None:
    policy = Policy(choices={TITLE: Take.WORKSPACE})
    plan = planned(killed(BY_UNIT), policy=policy)
    assert (sides_of(plan, METADATA), sides_of(plan, STREAM)) == ({Side.STORE}, {Side.WORKSPACE})
    ((_, left),) = plan.waiting
    assert left is not None
    assert [(each.unit, each.take) for each in left.decided] == [(METADATA, "workspace"), (STREAM, "store")]


def test_a_skipped_conflict_is_not_remembered() -> None:
    plan = planned(
        KNOWN, policy=Policy(choices={TITLE: Take.STORE, EVENTS: Take.KEEP, ("jp-c9", METADATA): Take.STORE})
    )
    ((key, left),) = plan.waiting
    assert key == KEY
    assert left is not None
    assert [each.unit for each in left.decided] == [METADATA]


@pytest.mark.parametrize(
    ("earlier", "changes"),
    [(Policy(choices={TITLE: Take.STORE}), ((KEY, None),)), (WHOLE, ())],
    ids=["an answer", "a decision about all of it"],
)
def test_who_skips_a_conflict_takes_back_the_answer_about_it_alone(earlier: Policy, changes: object) -> None:
    assert planned(killed(earlier), policy=Policy(choices={TITLE: Take.KEEP})).waiting == changes


@pytest.mark.parametrize("policy", [BY_UNIT, WHOLE], ids=["by unit", "whole"])
def test_the_same_decision_again_changes_nothing(policy: Policy) -> None:
    assert planned(killed(policy), policy=policy).waiting == ()


def test_a_decision_that_leads_to_no_step_is_not_recorded() -> None:
    """The store alone has the note: it stays there, whichever side is chosen."""
    plan = plan_of(stored(AGREED, '1-a/NOTE.md  09:00 "n"'), here(AGREED), KNOWN, WHOLE)
    assert (plan.actions, plan.waiting) == ((), ())


def test_resolve_replaces_answers() -> None:
    plan = planned(killed(BY_UNIT), policy=Policy(decisions={"jp-c1": Take.WORKSPACE}))
    assert sides_of(plan, METADATA) == sides_of(plan, STREAM) == {Side.STORE}
    assert [(each.value if each else None) for _, each in plan.waiting] == ["workspace"]


def test_what_an_earlier_version_has_recorded_is_about_all_files() -> None:
    view = view_of(stored(STORED), here(OURS), KNOWN)
    earlier = PendingRequest(
        value="store", store=content_of(view.store, RULES), workspace=content_of(view.workspace, RULES), run="r1"
    )
    baseline = replace(KNOWN, waiting={KEY: earlier})
    assert sides_of(planned(baseline), STREAM) == {Side.WORKSPACE}
    changed = planned(baseline, ours=OURS.replace("2w", "2v"))
    assert (sides_of(changed, STREAM), changed.waiting) == ({Side.STORE}, ((KEY, None),))


def test_a_decision_is_about_every_unit_of_either_side() -> None:
    context = context_of(stored(STORED, '1-a/NOTE.md  09:00 "n"'), here(OURS), KNOWN)
    (request,) = requests_of(context, {"jp-c1": Take.STORE}, {}).values()
    assert [(each.unit, None in each.seen) for each in request.decided] == [
        ("extra:NOTE.md", True),
        (METADATA, False),
        (STREAM, False),
    ]


@pytest.mark.parametrize(("conversation", "take"), [("jp-c1", Take.KEEP), ("jp-c9", Take.STORE)])
def test_what_is_left_alone_or_gone_is_not_requested(conversation: str, take: Take) -> None:
    context = context_of(stored(STORED), here(OURS), KNOWN)
    assert requests_of(context, {conversation: take}, {(conversation, METADATA): take}) == {}


def test_metadata_is_written_wherever_its_directory_is() -> None:
    parent, child = '2-b  metadata 09:00 title "B"  stream 09:00 [1]', STORED.replace("tag", "parent 2 tag")
    nested = f"2-b/conversations/{child}"
    edited = child.replace('tag="x"', 'tag="y"')
    plan = plan_of(stored(parent, edited), here(parent, nested), agreed_on(parent, nested))
    (written,) = metadata_written(plan.actions, "metadata.json").items()
    assert written[0] == "jp-c1"
    waiting = PendingRequest(decided=(DecidedUnit(METADATA, ("a",), None), DecidedUnit(STREAM, ("b",), None)))
    assert [each.seen for each in with_written(waiting, written[1]).decided] == [("a", *written[1]), ("b",)]


def test_the_content_of_a_side_is_all_files_in_whatever_directories() -> None:
    both = (STORED, OURS.replace("1-a", "1-z")), (STORED.replace("1-a", "1-z"), OURS)
    one, other = (content_of(view_of(stored(*lines), here()).store, RULES) for lines in both)
    assert one == other
    unread = content_of(view_of(unreadable(stored(*both[0]), "1-z/events.json"), here()).store, RULES)
    assert unread not in (None, one)
    assert content_of(view_of(stored(STORED), here()).workspace, RULES) is None
