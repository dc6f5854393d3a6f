"""Decisions as values: taken, replaced, taken back, counted, and what they make of a policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reconcile.model.options import Take
from reconcile.model.policy import Policy, ProjectRequest
from reconcile.model.snapshot import METADATA, STREAM, WHOLE
from tests.cli.modules import module
from tests.support.scenarios.building import agreed_on, here, plan_of, stored

if TYPE_CHECKING:
    from typing import Any

DECISIONS, SUBJECTS = module("review.decisions"), module("review.subjects")
Choice, Decisions = SUBJECTS.Choice, DECISIONS.Decisions
BASE = (
    '1-a  metadata 09:00 title "A"  stream 09:00 [1]',
    '2-b  metadata 09:00 title "B"  stream 09:00 [1]',
    '3-c  metadata 09:00 title "C"  stream 09:00 [1]',
)
STORED = (
    '1-a  metadata 10:00 title "S"  stream 10:00 [1 2]',
    '2-b  metadata 10:00 title "S"  stream 09:00 [1]',
    '3-c  metadata 09:00 title "C"  stream 10:00 [1 2]',
)
OURS = (
    '1-a  metadata 10:30 title "W"  stream 10:30 [1 3]',
    '2-b  metadata 10:30 title "W"  stream 09:00 [1]',
    '3-c  metadata 09:00 title "C"  stream 09:00 [1]',
)
PLAN = plan_of(stored(*STORED), here(*OURS), agreed_on(*BASE))
ALL = SUBJECTS.subjects_of(PLAN)
IDS = {"jp-c1", "jp-c2", "jp-c3"}
TWO, ONE, NONE = ALL
"""A conversation with two conflicts, one with one, and one that only changes."""


def taken(*choices: tuple[Any, str, Any]) -> Any:
    decisions = Decisions()
    for subject, unit, choice in choices:
        decisions = decisions.with_choice(subject, unit, choice)
        assert decisions is not None
    return decisions


def test_the_subjects_are_as_described() -> None:
    assert [len(each.conflicts) for each in ALL] == [2, 1, 0]


def test_a_choice_about_all_replaces_those_about_its_conflicts() -> None:
    decisions = taken((TWO, METADATA, Choice.STORE), (TWO, WHOLE, Choice.WORKSPACE))
    assert dict(decisions.chosen) == {("jp-c1", WHOLE): Choice.WORKSPACE}
    assert decisions.of(TWO) is decisions.of(TWO, METADATA) is Choice.WORKSPACE
    assert not decisions.is_open(TWO)


def test_a_choice_about_one_conflict_leaves_the_others_as_they_were_decided() -> None:
    decisions = taken((TWO, WHOLE, Choice.STORE), (TWO, METADATA, Choice.WORKSPACE))
    assert dict(decisions.chosen) == {("jp-c1", METADATA): Choice.WORKSPACE, ("jp-c1", STREAM): Choice.STORE}
    assert decisions.of(TWO) is None
    assert taken((TWO, METADATA, Choice.STORE), (TWO, STREAM, Choice.STORE)).of(TWO) is Choice.STORE


def test_one_side_alone_says_nothing_about_a_single_conflict() -> None:
    decisions = taken((TWO, WHOLE, Choice.STORE_ALONE), (TWO, METADATA, Choice.WORKSPACE))
    assert dict(decisions.chosen) == {("jp-c1", METADATA): Choice.WORKSPACE}
    assert decisions.is_open(TWO, STREAM)


def test_what_is_not_offered_is_no_decision() -> None:
    assert Decisions().with_choice(ONE, WHOLE, Choice.BOTH) is None
    assert Decisions().with_choice(TWO, METADATA, Choice.HOLD) is None


def test_decisions_are_taken_back_one_by_one() -> None:
    first = taken((TWO, WHOLE, Choice.STORE))
    second = first.with_choice(TWO, WHOLE, Choice.HOLD)
    assert dict(second.taken_back().chosen) == dict(first.chosen)
    assert dict(second.taken_back().taken_back().chosen) == {}
    assert Decisions().taken_back() == Decisions()


def test_a_decision_is_removed_with_those_about_its_conflicts() -> None:
    decisions = taken((TWO, METADATA, Choice.STORE), (TWO, STREAM, Choice.STORE), (ONE, WHOLE, Choice.SKIP))
    assert dict(decisions.without(TWO).chosen) == {("jp-c2", WHOLE): Choice.SKIP}
    assert decisions.without(NONE) is decisions


@pytest.mark.parametrize(
    ("choices", "counts", "text", "words"),
    [
        ((), (3, 3, 0), "0 of 3 decided", ""),
        (((TWO, WHOLE, Choice.STORE),), (3, 1, 0), "2 of 3 decided", "2 store"),
        (((TWO, STREAM, Choice.STORE), (ONE, WHOLE, Choice.HOLD)), (3, 1, 0), "2 of 3 decided", "1 store, 1 hold"),
        (((NONE, WHOLE, Choice.SKIP),), (3, 3, 1), "0 of 3 decided, 1 more", "1 skip"),
    ],
)
def test_each_conflict_counts(choices: Any, counts: tuple[int, int, int], text: str, words: str) -> None:
    decisions = taken(*choices)
    assert (decisions.counts(ALL), decisions.counts(ALL).text, decisions.words(ALL)) == (counts, text, words)
    assert decisions.counts([NONE]).text.startswith("nothing to decide")


@pytest.mark.parametrize(
    ("choice", "take"),
    [(Choice.STORE, Take.STORE), (Choice.WORKSPACE, Take.WORKSPACE)],
)
def test_a_side_answers_each_conflict(choice: Any, take: Take) -> None:
    policy = taken((TWO, WHOLE, choice)).policy(PLAN, ALL)
    kept = {("jp-c2", METADATA): Take.KEEP}
    assert policy == Policy(choices={("jp-c1", METADATA): take, ("jp-c1", STREAM): take, **kept})


@pytest.mark.parametrize(
    ("choice", "take"),
    [(Choice.STORE_ALONE, Take.STORE), (Choice.WORKSPACE_ALONE, Take.WORKSPACE), (Choice.HOLD, Take.KEEP)],
)
def test_some_choices_are_about_the_whole_conversation(choice: Any, take: Take) -> None:
    policy = taken((TWO, WHOLE, choice)).policy(PLAN, ALL)
    assert policy.decisions == {"jp-c1": take}
    assert policy.choices == {("jp-c2", METADATA): Take.KEEP}


def test_an_undecided_conflict_is_kept_and_a_side_of_a_plain_change_is_a_decision() -> None:
    policy = taken((NONE, WHOLE, Choice.WORKSPACE)).policy(PLAN, ALL)
    assert policy.decisions == {"jp-c3": Take.WORKSPACE}
    assert set(policy.choices.values()) == {Take.KEEP}


def test_skipped_conversations_are_left_out_of_the_run() -> None:
    decisions = taken((TWO, WHOLE, Choice.SKIP))
    assert decisions.left_out(ALL) == {"jp-c1"}
    assert decisions.policy(PLAN, ALL).only & IDS == {"jp-c2", "jp-c3"}
    everything = taken(*((each, WHOLE, Choice.SKIP) for each in ALL))
    assert everything.policy(PLAN, ALL).only, "an empty selection would mean everything"
    assert not everything.policy(PLAN, ALL).only & IDS


def test_a_plan_that_is_made_already_keeps_its_policy() -> None:
    fixed = SUBJECTS.subjects_of(PLAN, frozenset({Choice.SKIP}))
    assert Decisions().policy(PLAN, fixed) == PLAN.policy
    policy = Decisions().with_choice(fixed[1], WHOLE, Choice.SKIP).policy(PLAN, fixed)
    assert (policy.only & IDS, policy.choices, policy.decisions) == ({"jp-c1", "jp-c3"}, {}, {})


def test_a_request_to_publish_forgets_what_was_skipped() -> None:
    policy = Policy(request=ProjectRequest(("jp-c1", "jp-c2")))
    plan = plan_of(stored(*BASE), here(), agreed_on(), policy)
    fixed = SUBJECTS.subjects_of(plan, frozenset({Choice.SKIP}))
    found = Decisions().with_choice(fixed[0], WHOLE, Choice.SKIP).policy(plan, fixed)
    assert found.request == ProjectRequest(("jp-c2",))
