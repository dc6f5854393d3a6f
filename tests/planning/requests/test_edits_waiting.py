"""Requests that a run could not carry out: what the next run makes of them, and what ends them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconcile.model.baseline import Baseline, Intent, IntentKind, PendingRequest, Verb
from reconcile.model.options import Take
from reconcile.model.plan import Kind
from reconcile.model.policy import Children, LocalRequest, Policy, ProjectRequest, RemoveRequest, SetParentRequest
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import Problem
from reconcile.planning.baseline_update import update_baseline
from reconcile.planning.requests.decided import content_of
from reconcile.planning.revalidate import agreeing
from reconcile.planning.status_listing import status_lines
from tests.support.scenarios.building import agreed_on, context_of, here, plan_of, stored, view_of
from tests.support.scenarios.pure_level import RULES

A = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
B = '2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1]'
D = '4-d  metadata 09:00 title "D"  stream 09:00 [1]'
H = '8-h  metadata 09:00 title "H"  stream 09:00 [1]'
NESTED = f"1-a/conversations/{B}"
ALL = (A, B, D, H)
THERE = (A, NESTED, D, H)
KNOWN = agreed_on(*THERE)
THEIRS = D.replace("09:00 [1]", "10:00 [1 3]")
OURS = D.replace("09:00 [1]", "10:30 [1 2]")
LOCAL = Intent(IntentKind.LOCAL)
MERGE = Policy(git_busy="a merge")


def asked(policy: Policy, *, baseline: Baseline = KNOWN) -> dict[tuple[str, Verb], PendingRequest | None]:
    return dict(plan_of(stored(*ALL), here(*THERE), baseline, policy).waiting)


def remembering(policy: Policy) -> Baseline:
    """Return what is remembered after a command that met a merge."""
    plan = plan_of(stored(*ALL), here(*THERE), KNOWN, replace(policy, git_busy="a merge"))
    waiting = {key: replace(each, run="r1", why="git") for key, each in plan.waiting if each is not None}
    intents = {key: each for key, each in plan.intents if each is not None}
    return replace(KNOWN, waiting=waiting, intents=intents)


def test_a_command_records_what_a_later_run_can_do() -> None:
    assert asked(Policy(request=LocalRequest(("jp-c1",)))) == {("jp-c1", Verb.LOCAL): PendingRequest(along=("jp-c2",))}
    view = view_of(stored(*ALL), here(*THERE), KNOWN, conversation="jp-c4")
    content = content_of(view.store, RULES)
    assert content == content_of(view.workspace, RULES)
    gone = PendingRequest(value="refuse", store=content, workspace=content)
    assert asked(Policy(request=RemoveRequest(("jp-c4",)))) == {("jp-c4", Verb.REMOVE): gone}
    moved = {("jp-c4", Verb.REPARENT): PendingRequest(value="jp-c1")}
    assert asked(Policy(request=SetParentRequest("jp-c4", "jp-c1"))) == moved
    assert asked(Policy(request=ProjectRequest(("jp-c4",)))) == {}
    assert asked(Policy(decisions={"jp-c4": Take.STORE})) == {}, "there is nothing to take"


def test_what_says_the_same_again_changes_nothing() -> None:
    policy = Policy(request=LocalRequest(("jp-c1",)))
    assert asked(policy, baseline=remembering(policy)) == {}


@pytest.mark.parametrize(
    ("first", "opposite", "verb"),
    [
        (LocalRequest(("jp-c4",)), Policy(request=ProjectRequest(("jp-c4",))), Verb.LOCAL),
        (RemoveRequest(("jp-c4",)), Policy(request=ProjectRequest(("jp-c4",))), Verb.REMOVE),
        (RemoveRequest(("jp-c4",)), Policy(request=LocalRequest(("jp-c4",))), Verb.REMOVE),
        (SetParentRequest("jp-c4", "jp-c1"), Policy(request=RemoveRequest(("jp-c4",))), Verb.REPARENT),
        (LocalRequest(("jp-c4",)), Policy(decisions={"jp-c4": Take.KEEP}), Verb.LOCAL),
    ],
)
def test_an_opposite_command_drops_a_request(first: LocalRequest, opposite: Policy, verb: Verb) -> None:
    found = asked(opposite, baseline=remembering(Policy(request=first)))
    assert found["jp-c4", verb] is None


def test_a_removal_does_not_end_a_decision_to_keep_private() -> None:
    found = asked(
        Policy(request=RemoveRequest(("jp-c4",))), baseline=remembering(Policy(request=LocalRequest(("jp-c4",))))
    )
    assert ("jp-c4", Verb.LOCAL) not in found


def test_the_next_run_says_why_it_does_what_waited() -> None:
    plan = plan_of(stored(*ALL), here(*THERE), remembering(Policy(request=SetParentRequest("jp-c4", "jp-c1"))))
    assert {action.kind for action in plan.actions} == {Kind.SET_PARENT, Kind.MOVE}
    (note,) = plan.notes
    assert (note.conversation, note.reason) == ("jp-c4", Reason.REQUESTED)
    assert note.message == "`set-parent jp-c4 jp-c1` waits since run r1: git"


def test_a_parent_that_somebody_else_has_given_meanwhile_stays() -> None:
    baseline = remembering(Policy(request=SetParentRequest("jp-c4", "jp-c1")))
    other = D.replace('"D"', '"D" parent 8')
    plan = plan_of(stored(A, B, other, H), here(*THERE), baseline)
    assert plan.waiting == ((("jp-c4", Verb.REPARENT), None),)
    (note,) = [note for note in plan.notes if note.reason is Reason.REQUEST_DROPPED]
    assert note.message == "the parent jp-c1 is not set, since its parent is jp-c8 now"
    gone = plan_of(stored(D, H), here(D, H), replace(baseline, agreed=agreed_on(D, H).agreed))
    (note,) = [note for note in gone.notes if note.reason is Reason.REQUEST_DROPPED]
    assert note.message == "the parent jp-c1 is not set, since jp-c1 can't be its parent any more"


def test_what_is_nowhere_any_more_ends() -> None:
    baseline = replace(agreed_on(H), waiting={("jp-c4", Verb.LOCAL): PendingRequest()})
    assert plan_of(stored(H), here(H), baseline).waiting == ((("jp-c4", Verb.LOCAL), None),)


def test_nothing_is_removed_while_a_side_is_away() -> None:
    baseline = remembering(Policy(request=RemoveRequest(("jp-c4",))))
    hidden = replace(stored(*ALL), problems=(Problem("", "permission denied"),))
    assert not plan_of(hidden, here(*THERE), baseline).actions
    unseen = replace(here(A, NESTED, H), problems=(Problem("4-d", "permission denied"),))
    plan = plan_of(stored(*ALL), unseen, baseline)
    assert (plan.actions, plan.waiting) == ((), ())


def decided() -> Baseline:
    """Return what is remembered after a decision for the store's version that met a merge."""
    policy = Policy(decisions={"jp-c4": Take.STORE}, git_busy="a merge")
    plan = plan_of(stored(A, B, THEIRS, H), here(A, NESTED, OURS, H), KNOWN, policy)
    return replace(KNOWN, waiting={key: replace(each, run="r1", why="git") for key, each in plan.waiting if each})


def test_a_decision_about_two_versions_is_not_carried_out_on_others() -> None:
    sides = stored(A, B, THEIRS, H), here(A, NESTED, OURS.replace("[1 2]", "[1 2 4]"), H)
    plan = plan_of(*sides, decided())
    assert plan.waiting == ((("jp-c4", Verb.RESOLVE), None),)
    (note,) = [note for note in plan.notes if note.reason is Reason.REQUEST_DROPPED]
    assert note.message.startswith("`resolve jp-c4 --take store` is dropped, since a side has changed; decide again")
    assert Reason.DECIDED not in {action.reason for action in plan.actions}
    settled = plan_of(stored(A, B, OURS, H), here(A, NESTED, OURS, H), decided())
    assert settled.waiting == ((("jp-c4", Verb.RESOLVE), None),)
    assert Reason.REQUEST_DROPPED not in {note.reason for note in settled.notes}


def test_a_projection_of_newer_events_replaces_an_earlier_decision_about_them() -> None:
    newer, older = A.replace("[1]", "[1 2]"), A.replace("stream 09:00", "stream 09:30")
    sides, known = (stored(newer, B), here(older, B)), agreed_on(newer, B)
    view = view_of(*sides, known, conversation="jp-c1")
    key, contents = ("jp-c1", Verb.RESOLVE), [content_of(side, RULES) for side in (view.store, view.workspace)]
    due = replace(known, waiting={key: PendingRequest(value="keep", store=contents[0], workspace=contents[1])})
    ((changed, now),) = plan_of(*sides, due, Policy(request=ProjectRequest((), behind=True))).waiting
    assert changed == key
    assert now is not None
    assert [(each.unit, each.take) for each in now.decided] == [("stream", "store")]
    assert plan_of(*sides, due, Policy(request=ProjectRequest(("jp-c2",)))).waiting == ()


def test_a_decision_waits_while_a_side_is_away() -> None:
    baseline = decided()
    hidden = replace(stored(), problems=(Problem("", "permission denied"),))
    for sides in ((hidden, here(A, NESTED, OURS, H)), (stored(A, B, THEIRS, H), here())):
        plan = plan_of(*sides, baseline)
        assert not plan.waiting
        assert not {action for action in plan.actions if action.reason is Reason.DECIDED}
        changes = update_baseline(*sides, baseline, plan, RULES)
        assert not changes.waiting
    plan = plan_of(stored(A, B, THEIRS, H), here(A, NESTED, OURS, H), baseline)
    assert [action.reason for action in plan.actions if action.conversation == "jp-c4"] == [Reason.DECIDED]


def test_what_a_child_cannot_leave_now_stays_with_it() -> None:
    """The child of what is removed has to get another parent first, and its metadata can't be read."""
    policy = Policy(request=RemoveRequest(("jp-c1",), children=Children.PROMOTE))
    baseline = remembering(policy)
    broken = ("1-a/conversations/2-b  stream 09:00 [1]", '1-a/conversations/2-b/metadata.json  09:00 "{"')
    plan = plan_of(stored(*ALL), here(A, *broken, D, H), baseline)
    assert not plan.actions
    assert {item.reason for item in plan.held} == {Reason.SUBTREE_HELD, Reason.UNSETTLED, Reason.INVALID}
    assert ("jp-c1", Verb.REMOVE) not in dict(plan.waiting)


def test_status_says_what_waits() -> None:
    baseline = remembering(Policy(request=LocalRequest(("jp-c4",))))
    context, plan = context_of(stored(*ALL), here(*THERE), baseline), plan_of(stored(*ALL), here(*THERE), baseline)
    found = {each.conversation: each for each in status_lines(context, plan, {}, {})}
    words = "`local jp-c4` waits since run r1: git"
    assert (found["jp-c4"].word, found["jp-c4"].detail, found["jp-c4"].settled) == ("requested", words, False)


def test_status_says_that_an_old_copy_of_a_local_one_is_here() -> None:
    newer, older = D.replace("[1]", "[1 2]"), D.replace("09:00 [1]", "10:00 [1]")
    baseline = replace(agreed_on(A, NESTED, H), intents={"jp-c4": LOCAL})
    sides = stored(A, B, newer, H), here(A, NESTED, older, H)
    found = {
        each.conversation: each
        for each in status_lines(context_of(*sides, baseline), plan_of(*sides, baseline), {}, {})
    }
    assert (found["jp-c4"].word, found["jp-c4"].settled) == ("local-present", False)
    assert "marked local, but this checkout has a copy; the workspace has an older version" in found["jp-c4"].detail


def test_a_saved_plan_records_nothing_of_what_has_changed_since() -> None:
    policy = Policy(request=RemoveRequest(("jp-c4",)))
    saved = plan_of(stored(*ALL), here(*THERE), KNOWN, policy)
    edited = D.replace("[1]", "[1 2]").replace("stream 09:00", "stream 10:00")
    for fresh in (
        plan_of(stored(*ALL), here(A, NESTED, edited, H), KNOWN, policy),
        plan_of(stored(*ALL), here(*THERE), KNOWN, replace(policy, git_busy="a merge")),
    ):
        plan, _ = agreeing(saved, fresh)
        assert (plan.actions, plan.waiting) == ((), ())
    assert [item.message for item in plan.held] == ["git is busy; apply the plan again when it is done"]
