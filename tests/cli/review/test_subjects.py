"""The subjects of a plan: their order, their state, and the choices that each offers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reconcile.model.baseline import Baseline
from reconcile.model.options import OnConflict, Prefer, Take
from reconcile.model.policy import Policy
from reconcile.model.snapshot import METADATA, STREAM, WHOLE
from tests.cli.modules import module
from tests.support.scenarios.building import agreed_on, here, plan_of, stored

if TYPE_CHECKING:
    from typing import Any

SUBJECTS = module("review.subjects")
Choice, Status = SUBJECTS.Choice, SUBJECTS.Status
A = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
B = '2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1]'
C = '3-c  metadata 09:00 title "C" parent 2  stream 09:00 [1]'
BELOW = ("1-a/conversations/", "1-a/conversations/2-b/conversations/")
AGREED = (A, f"{BELOW[0]}{B}", f"{BELOW[1]}{C}")
TITLES = ('"A"', '"S"', '"W"')


def titled(line: str, title: str, time: str) -> str:
    return line.replace('"A"', f'"{title}"').replace("metadata 09:00", f"metadata {time}")


def continued(line: str, event: str, time: str) -> str:
    return line.replace("stream 09:00 [1]", f"stream {time} [1 {event}]")


STORED, OURS = titled(A, "S", "10:00"), titled(A, "W", "10:30")
LONGER, OTHER = continued(A, "2", "10:00"), continued(A, "3", "10:30")


def subjects(store: tuple[str, ...], workspace: tuple[str, ...], policy: Policy | None = None, **more: Any) -> Any:
    baseline = more.pop("baseline", None) or agreed_on(*AGREED)
    return SUBJECTS.subjects_of(plan_of(stored(*store), here(*workspace), baseline, policy), **more)


def only(store: str, workspace: str, policy: Policy | None = None, **more: Any) -> Any:
    (subject,) = subjects((store,), (workspace,), policy, baseline=agreed_on(A), **more)
    return subject


def test_the_order_is_that_of_the_tree_and_an_ancestor_comes_along() -> None:
    edited = continued(C, "2", "10:00")
    found = subjects((A, B, C), (A, AGREED[1], f"{BELOW[1]}{edited}"))
    assert [(each.title, each.depth, each.above) for each in found] == [("A", 0, -1), ("B", 1, 0), ("C", 2, 1)]
    assert [each.status for each in found] == [Status.ABOVE, Status.ABOVE, Status.PLANNED]
    assert [each.word for each in found] == ["", "", "-> store"]
    assert [each.offered() for each in found[:2]] == [(), ()]


def test_what_the_plan_does_not_concern_is_left_out() -> None:
    found = subjects((A, B, C), (continued(A, "2", "10:00"), *AGREED[1:]))
    assert [each.title for each in found] == ["A"]
    assert subjects((A, B, C), AGREED) == ()


def test_a_conflict_offers_both_sides_skip_and_hold() -> None:
    subject = only(STORED, OURS)
    assert (subject.status, subject.word, subject.is_question) == (Status.CONFLICT, "conflict", True)
    assert subject.offered() == (Choice.STORE, Choice.WORKSPACE, Choice.SKIP, Choice.HOLD)
    assert subject.offered(METADATA) == (Choice.STORE, Choice.WORKSPACE, Choice.SKIP)
    assert subject.newer() is Choice.WORKSPACE
    assert subject.newer(STREAM) is None


def test_of_two_continuations_both_stay_with_every_side_and_one_alone_is_offered_for_all_of_it() -> None:
    subject = only(LONGER, OTHER)
    assert subject.offered() == (
        Choice.STORE,
        Choice.WORKSPACE,
        Choice.STORE_ALONE,
        Choice.WORKSPACE_ALONE,
        Choice.SKIP,
        Choice.HOLD,
    )
    assert subject.offered(STREAM) == (Choice.STORE, Choice.WORKSPACE, Choice.SKIP)


def test_of_two_edits_of_one_event_both_can_be_kept() -> None:
    subject = only(A.replace("09:00 [1]", "10:00 [1x]"), A.replace("09:00 [1]", "10:30 [1y]"))
    assert Choice.BOTH in subject.offered()
    assert Choice.BOTH in subject.offered(STREAM)
    assert Choice.STORE_ALONE not in subject.offered()


def test_the_fork_of_a_conflict_is_no_subject_of_its_own() -> None:
    assert only(LONGER, OTHER).title == "A"


@pytest.mark.parametrize("policy", [Policy(prefer=Prefer.STORE), Policy(choices={("jp-c1", METADATA): Take.STORE})])
def test_what_is_decided_already_is_no_question(policy: Policy) -> None:
    subject = only(STORED, OURS, policy)
    assert (subject.conflicts, subject.is_question, subject.status) == ((), False, Status.PLANNED)
    assert {Choice.STORE, Choice.WORKSPACE} <= set(subject.offered())


def test_a_blocked_conflict_can_be_decided() -> None:
    subject = only(STORED, OURS, Policy(conflict=OnConflict.HOLD))
    assert (subject.status, subject.is_question, subject.blocked) == (Status.CONFLICT, True, ())
    assert {Choice.STORE, Choice.WORKSPACE, Choice.HOLD} <= set(subject.offered())


def test_a_broken_file_can_be_replaced_by_the_other_sides() -> None:
    broken = ("1-a  stream 09:00 [1]", '1-a/metadata.json  09:30 "<<<<<<< HEAD"')
    (subject,) = subjects((A,), broken, baseline=agreed_on(A))
    assert (subject.status, subject.word, len(subject.blocked)) == (Status.BLOCKED, "blocked", 1)
    assert subject.offered() == (Choice.STORE, Choice.SKIP, Choice.HOLD)


def test_an_older_version_is_left_alone_and_may_be_taken() -> None:
    newer, older = continued(A, "2", "10:00"), A.replace("stream 09:00", "stream 11:00")
    (subject,) = subjects((newer,), (older,), baseline=Baseline())
    assert (subject.is_question, Choice.STORE in subject.offered(), len(subject.aside)) == (False, True, 1)


def test_a_whole_side_comes_first_and_offers_nothing() -> None:
    found = subjects((A, B, C), (), baseline=agreed_on(*AGREED))
    assert found[0].conversation == ""
    assert found[0].name == "both sides"
    assert found[0].offered() == ()


@pytest.mark.parametrize("allowed", [frozenset({Choice.SKIP}), frozenset()])
def test_a_plan_that_is_made_already_leaves_few_choices(allowed: frozenset[Any]) -> None:
    subject = only(STORED, OURS, allowed=allowed)
    assert subject.conflicts
    assert not subject.is_question
    assert set(subject.offered()) == allowed
    assert subject.offered(METADATA) == ()


def test_a_conversation_without_a_title_is_called_by_its_id() -> None:
    subject = SUBJECTS.Subject(conversation="jp-c1", title=None)
    assert (subject.name, subject.status, subject.offered()) == ("jp-c1", Status.ABOVE, ())
    assert subject.offered(WHOLE) == ()


def test_new_conversations_are_planned() -> None:
    (subject,) = subjects((), (A,), baseline=Baseline())
    assert (subject.word, subject.offered()) == ("-> store", (Choice.SKIP,))
