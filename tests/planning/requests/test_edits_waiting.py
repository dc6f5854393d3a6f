"""Requests that a run could not carry out: what the next run makes of them, and what ends them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from reconcile.model.baseline import Baseline, Intent, IntentKind, PendingRequest, Verb
from reconcile.model.options import Missing, Take
from reconcile.model.plan import Kind
from reconcile.model.policy import Children, LocalRequest, Policy, ProjectRequest, RemoveRequest, SetParentRequest
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import Problem, Side
from reconcile.planning.baseline_update import update_baseline
from reconcile.planning.requests.decided import content_of
from reconcile.planning.requests.edits import since
from reconcile.planning.revalidate import agreeing
from reconcile.planning.status_listing import status_lines
from tests.support.scenarios.building import agreed_on, context_of, here, plan_of, stored, view_of
from tests.support.scenarios.pure_level import RULES

if TYPE_CHECKING:
    from reconcile.model.plan import Plan

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
    again = {("jp-c2", Verb.REPARENT): PendingRequest(value="jp-c4", before="jp-c1")}
    assert asked(Policy(request=SetParentRequest("jp-c2", "jp-c4"))) == again
    both = asked(Policy(request=LocalRequest(("jp-c4", "jp-c1"))))
    assert list(both) == [("jp-c1", Verb.LOCAL), ("jp-c4", Verb.LOCAL)]
    assert asked(Policy(request=ProjectRequest(("jp-c4",)))) == {}
    assert asked(Policy(decisions={"jp-c4": Take.STORE})) == {}, "there is nothing to take"


def test_what_something_keeps_from_leaving_waits_too() -> None:
    broken = here(A, NESTED, D, H, '4-d/events.json  10:00 "["')
    plan = plan_of(stored(*ALL), broken, KNOWN, Policy(request=LocalRequest(("jp-c4",))))
    assert (plan.actions, dict(plan.waiting)) == ((), {("jp-c4", Verb.LOCAL): PendingRequest()})


def test_what_lies_inside_is_recorded_in_one_order() -> None:
    inside = [f'{n}-x  metadata 09:00 title "X" parent 1  stream 09:00 [1]' for n in (9, 10)]
    nested = [f"1-a/conversations/{line}" for line in inside]
    plan = plan_of(
        stored(A, *inside), here(A, *nested), agreed_on(A, *nested), Policy(request=LocalRequest(("jp-c1",)))
    )
    assert dict(plan.waiting) == {("jp-c1", Verb.LOCAL): PendingRequest(along=("jp-c10", "jp-c9"))}


def test_what_is_done_already_is_not_recorded() -> None:
    plan = plan_of(stored(*ALL), here(A, NESTED, H), KNOWN, Policy(request=LocalRequest(("jp-c4",))))
    assert plan.waiting == ()


def test_a_child_gets_another_parent_later_unless_it_has_kept_what_it_lies_below() -> None:
    child = '5-x  metadata 09:00 title "X" parent 4  stream 09:00 [1]'
    there = (*THERE, f"4-d/conversations/{child}")
    policy = Policy(request=RemoveRequest(("jp-c4", "jp-c1"), children=Children.PROMOTE))
    moved = {("jp-c1", Verb.REMOVE), ("jp-c2", Verb.REPARENT)}
    broken = '4-d/conversations/5-x/metadata.json  10:00 "{"'
    for lines, found in (
        (there, {*moved, ("jp-c4", Verb.REMOVE), ("jp-c5", Verb.REPARENT)}),
        ((*there, broken), moved),
    ):
        plan = plan_of(stored(*ALL, child), here(*lines), agreed_on(*there), policy)
        assert {key for key, _ in plan.waiting} == found


def test_another_parent_waits_for_metadata_that_can_be_read() -> None:
    broken = here(A, NESTED, D, H, '4-d/metadata.json  10:00 "{"')
    plan = plan_of(stored(*ALL), broken, KNOWN, Policy(request=SetParentRequest("jp-c4", "jp-c1")))
    assert dict(plan.waiting) == {("jp-c4", Verb.REPARENT): PendingRequest(value="jp-c1")}


def test_what_says_the_same_again_changes_nothing() -> None:
    policy = Policy(request=LocalRequest(("jp-c1",)))
    assert asked(policy, baseline=remembering(policy)) == {}


def test_what_was_recorded_before_its_run_began_is_recorded_with_the_run() -> None:
    policy = Policy(request=LocalRequest(("jp-c1",)))
    known = remembering(policy)
    early = replace(known, waiting={key: replace(each, run=None, why="") for key, each in known.waiting.items()})
    assert asked(policy, baseline=early) == early.waiting


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


@pytest.mark.parametrize(
    ("first", "other", "verb"),
    [
        (LocalRequest(("jp-c4",)), RemoveRequest(("jp-c4",)), Verb.LOCAL),
        (SetParentRequest("jp-c4", "jp-c1"), ProjectRequest(("jp-c4",)), Verb.REPARENT),
        (SetParentRequest("jp-c4", "jp-c1"), LocalRequest(("jp-c4",)), Verb.REPARENT),
    ],
    ids=["to keep private, by a removal", "another parent, by publication", "another parent, by keeping private"],
)
def test_a_request_is_not_ended(first: LocalRequest, other: LocalRequest, verb: Verb) -> None:
    found = asked(Policy(request=other), baseline=remembering(Policy(request=first)))
    assert ("jp-c4", verb) not in found


def test_what_a_decision_drops_is_not_carried_out() -> None:
    baseline = remembering(Policy(request=LocalRequest(("jp-c4",))))
    assert plan_of(stored(*ALL), here(*THERE), baseline).actions
    assert not plan_of(stored(*ALL), here(*THERE), baseline, Policy(decisions={"jp-c4": Take.KEEP})).actions


def test_what_becomes_local_needs_no_decision() -> None:
    sides = stored(A, B, THEIRS, H), here(A, NESTED, OURS, H)
    plan = plan_of(*sides, decided(), Policy(request=LocalRequest(("jp-c4",))))
    assert dict(plan.waiting) == {("jp-c4", Verb.LOCAL): PendingRequest(), ("jp-c4", Verb.RESOLVE): None}


PROMOTE = Children.PROMOTE
COMMANDS: dict[str, LocalRequest | RemoveRequest | SetParentRequest] = {
    "local": LocalRequest(("jp-c1",)),
    "rm": RemoveRequest(("jp-c4",)),
    "rm of a parent and its child": RemoveRequest(("jp-c1", "jp-c2")),
    "rm --promote": RemoveRequest(("jp-c1",), children=PROMOTE),
    "set-parent": SetParentRequest("jp-c4", "jp-c1"),
    "set-parent --none": SetParentRequest("jp-c2", None),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_the_next_run_does_what_the_command_would_have_done(
    command: LocalRequest | RemoveRequest | SetParentRequest,
) -> None:
    def steps(plan: Plan) -> list[object]:
        return [(str(each), each.needs, each.together, each.reason, each.removes, each.writes) for each in plan.actions]

    sides, policy = (stored(*ALL), here(*THERE)), Policy(request=command)
    now, later = plan_of(*sides, KNOWN, policy), plan_of(*sides, remembering(policy))
    assert steps(later) == steps(now)
    assert {note.reason for note in later.notes} - {note.reason for note in now.notes} == {Reason.REQUESTED}


def test_all_that_waits_is_done_at_once() -> None:
    baseline = remembering(Policy(request=LocalRequest(("jp-c1",))))
    later = remembering(Policy(request=SetParentRequest("jp-c4", "jp-c8")))
    plan = plan_of(stored(*ALL), here(*THERE), replace(baseline, waiting={**baseline.waiting, **later.waiting}))
    assert {(action.kind, action.conversation) for action in plan.actions} == {
        (Kind.REMOVE_STALE, "jp-c1"),
        (Kind.REMOVE_STALE, "jp-c2"),
        (Kind.SET_PARENT, "jp-c4"),
        (Kind.MOVE, "jp-c4"),
    }


def test_what_is_to_be_removed_is_not_made_private_first() -> None:
    known = remembering(Policy(request=LocalRequest(("jp-c4",))))
    removal = remembering(Policy(request=RemoveRequest(("jp-c4",))))
    plan = plan_of(stored(*ALL), here(*THERE), replace(known, waiting={**known.waiting, **removal.waiting}))
    assert {action.reason for action in plan.actions} == {Reason.REMOVED_AS_ASKED}


def test_a_child_moves_up_from_what_is_to_be_removed_and_was_to_be_private() -> None:
    removal = remembering(Policy(request=RemoveRequest(("jp-c1",), children=PROMOTE)))
    private = {("jp-c1", Verb.LOCAL): PendingRequest(along=("jp-c2",))}
    plan = plan_of(
        stored(*ALL),
        here(*THERE),
        replace(KNOWN, waiting={**private, **removal.waiting}, intents={"jp-c1": LOCAL}),
    )
    assert {action.kind for action in plan.actions if action.conversation == "jp-c2"} == {Kind.PROMOTE, Kind.MOVE}


def test_what_gets_another_parent_comes_here_as_asked_also_later() -> None:
    policy = Policy(request=SetParentRequest("jp-c4", "jp-c1"))
    for baseline, now in ((KNOWN, policy), (remembering(policy), Policy())):
        plan = plan_of(stored(*ALL), here(A, NESTED, H), baseline, replace(now, missing=Missing.REPROJECT))
        assert [action.reason for action in plan.actions if action.kind is Kind.PROJECT] == [Reason.ASKED]


def dropped(plan: Plan) -> list[tuple[str | None, str]]:
    return [(note.conversation, note.message) for note in plan.notes if note.reason is Reason.REQUEST_DROPPED]


REMOVAL = remembering(Policy(request=RemoveRequest(("jp-c4",))))
EDITED = D.replace("[1]", "[1 2]").replace("stream 09:00", "stream 10:00")
NEW_CHILD = '5-x  metadata 09:00 title "X" parent 4  stream 09:00 [1]'
SINCE: dict[str, tuple[tuple[str, ...], tuple[str, ...], str]] = {
    "edited in the store": ((A, B, EDITED, H), THERE, "it has changed"),
    "edited in the workspace": (ALL, (A, NESTED, EDITED, H), "it has changed"),
    "archived": ((A, B, f".archive/{D}", H), THERE, "it has changed"),
    "a parent now": ((*ALL, NEW_CHILD), (*THERE, f"4-d/conversations/{NEW_CHILD}"), "it has children now: X (jp-c5)"),
}


@pytest.mark.parametrize(("store", "workspace", "why"), SINCE.values(), ids=SINCE)
def test_what_has_changed_since_is_not_removed(store: tuple[str, ...], workspace: tuple[str, ...], why: str) -> None:
    plan = plan_of(stored(*store), here(*workspace), REMOVAL)
    assert dropped(plan) == [("jp-c4", f"not removed, since {why}; repeat `reconcile rm jp-c4` to remove it")]
    assert plan.waiting == ((("jp-c4", Verb.REMOVE), None),)
    assert Reason.REMOVED_AS_ASKED not in {action.reason for action in plan.actions}
    assert Reason.REQUESTED not in {note.reason for note in plan.notes}


def test_what_one_side_has_lost_meanwhile_is_removed_from_the_other() -> None:
    unread = (Problem("4-d", "permission denied"),)
    for store, workspace in (
        (stored(*ALL), here(A, NESTED, H)),
        (stored(A, B, H), here(*THERE)),
        (stored(*ALL), replace(here(*THERE), problems=unread)),
    ):
        plan = plan_of(store, workspace, REMOVAL)
        assert {action.conversation for action in plan.actions} == {"jp-c4"}
        assert not dropped(plan)


@pytest.mark.parametrize(("back", "is_removed"), [(D, True), (EDITED, False)], ids=["as it was", "edited"])
def test_what_was_removed_while_the_workspace_was_empty_is_removed_if_it_comes_back_as_it_was(
    back: str, is_removed: bool
) -> None:
    waiting = {key: replace(each, workspace=None) for key, each in REMOVAL.waiting.items()}
    plan = plan_of(stored(A, B, H), here(A, NESTED, back, H), replace(REMOVAL, waiting=waiting))
    removed = {action.target.side for action in plan.actions if action.reason is Reason.REMOVED_AS_ASKED}
    assert removed == ({Side.WORKSPACE} if is_removed else set())
    assert bool(dropped(plan)) is not is_removed


def test_a_child_that_is_new_moves_up_with_the_others() -> None:
    baseline = remembering(Policy(request=RemoveRequest(("jp-c1",), children=PROMOTE)))
    child = NEW_CHILD.replace("parent 4", "parent 1")
    plan = plan_of(stored(*ALL, child), here(*THERE, f"1-a/conversations/{child}"), baseline)
    assert {action.conversation for action in plan.actions if action.kind is Kind.PROMOTE} == {"jp-c2", "jp-c5"}


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
    assert dropped(plan) == [("jp-c4", "the parent jp-c1 is not set, since its parent is jp-c8 now")]
    assert Reason.REQUESTED not in {note.reason for note in plan.notes}
    below = A.replace('"A"', '"A" parent 4')
    archived = f".archive/{D}"
    for sides, known in (
        ((stored(D, H), here(D, H)), agreed_on(D, H)),
        ((stored(below, B, D, H), here(*THERE)), KNOWN),
        ((stored(A, B, archived, H), here(A, NESTED, archived, H)), KNOWN),
    ):
        gone = plan_of(*sides, replace(baseline, agreed=known.agreed))
        assert dropped(gone) == [("jp-c4", "the parent jp-c1 is not set, since jp-c1 can't be its parent any more")]


@pytest.mark.parametrize(
    "line", [EDITED, D.replace('"D"', '"D" parent 1')], ids=["edited", "given that parent already"]
)
def test_another_parent_is_set_whatever_else_has_changed(line: str) -> None:
    baseline = remembering(Policy(request=SetParentRequest("jp-c4", "jp-c1")))
    plan = plan_of(stored(A, B, line, H), here(*THERE), baseline)
    assert not dropped(plan)
    assert (Kind.MOVE, "jp-c4") in {(action.kind, action.conversation) for action in plan.actions}


@pytest.mark.parametrize("verb", [Verb.LOCAL, Verb.RESOLVE])
def test_what_is_nowhere_any_more_ends(verb: Verb) -> None:
    baseline = replace(agreed_on(H), waiting={("jp-c4", verb): PendingRequest()})
    assert plan_of(stored(H), here(H), baseline).waiting == ((("jp-c4", verb), None),)


def test_nothing_is_removed_while_a_side_is_away() -> None:
    baseline = remembering(Policy(request=RemoveRequest(("jp-c4",))))
    hidden = replace(stored(*ALL), problems=(Problem("", "permission denied"),))
    assert not plan_of(hidden, here(*THERE), baseline).actions
    unseen = replace(here(A, NESTED, H), problems=(Problem("4-d", "permission denied"),))
    plan = plan_of(stored(*ALL), unseen, baseline)
    assert (plan.actions, plan.waiting) == ((), ())


def test_what_cannot_be_seen_here_stays_in_the_store_with_all_above_it() -> None:
    """A conversation leaves both sides or none."""
    why = "not removed, since its directory in the workspace can't be read"
    for target, hidden, present in (("jp-c4", "4-d", (A, NESTED)), ("jp-c1", "1-a/conversations/2-b", (A, D))):
        unseen = replace(here(*present, H), problems=(Problem(hidden, "permission denied"),))
        policy = Policy(request=RemoveRequest((target,), children=Children.CASCADE))
        plan = plan_of(stored(*ALL), unseen, KNOWN, policy)
        assert (plan.actions, plan.waiting) == ((), ())
        held = {item.conversation: item.message for item in plan.held}
        assert held["jp-c4" if target == "jp-c4" else "jp-c2"] == why
        assert target in held


@pytest.mark.parametrize(
    ("problems", "words"),
    [
        ((Problem("4-d", "denied"),), "its directory here leaves once it can be read"),
        ((), "it is not in this workspace"),
    ],
)
def test_what_becomes_local_is_said_to_be_here_if_it_may_be(problems: tuple[Problem, ...], words: str) -> None:
    unseen = replace(here(A, NESTED, H), problems=problems)
    plan = plan_of(stored(*ALL), unseen, KNOWN, Policy(request=LocalRequest(("jp-c4",))))
    (note,) = [note for note in plan.notes if note.conversation == "jp-c4"]
    assert note.message == f"local from now on, in every checkout; {words}"


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


def test_decisions_that_end_are_named_in_the_order_of_the_conversations() -> None:
    known = decided()
    (waiting,) = known.waiting.values()
    both = {("jp-c8", Verb.RESOLVE): waiting, ("jp-c4", Verb.RESOLVE): waiting, ("jp-c1", Verb.LOCAL): PendingRequest()}
    edited, sides = OURS.replace("[1 2]", "[1 2 4]"), stored(A, B, THEIRS, THEIRS.replace("4-d", "8-h"))
    baseline = replace(known, waiting=both, intents={"jp-c1": LOCAL})
    workspace = here(A, NESTED, edited, edited.replace("4-d", "8-h"))
    assert [conversation for conversation, _ in dropped(plan_of(sides, workspace, baseline))] == ["jp-c4", "jp-c8"]
    again = Policy(decisions={"jp-c4": Take.STORE})
    assert [conversation for conversation, _ in dropped(plan_of(sides, workspace, baseline, again))] == ["jp-c8"]


def test_a_decision_waits_while_the_store_is_another_one() -> None:
    known = decided()
    waiting = {key: replace(each, value="workspace") for key, each in known.waiting.items()}
    plan = plan_of(stored(), here(A, NESTED, OURS, H), replace(known, waiting=waiting))
    assert {action.reason for action in plan.actions} == {Reason.REFILL}


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


@pytest.mark.parametrize(
    ("verb", "waiting", "words"),
    [
        (Verb.LOCAL, PendingRequest(), "`local jp-c4` waits"),
        (Verb.REPARENT, PendingRequest(run="r1"), "`set-parent jp-c4 --none` waits since run r1"),
        (Verb.REPARENT, PendingRequest(value="jp-c1", run="r1"), "`set-parent jp-c4 jp-c1` waits since run r1"),
    ],
)
def test_since_when_a_command_waits(verb: Verb, waiting: PendingRequest, words: str) -> None:
    assert since("jp-c4", verb, waiting) == words


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
