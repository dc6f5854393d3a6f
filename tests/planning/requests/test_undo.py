"""What an undo refuses, and what it finds done already (docs/design/run.md#rule-53).

What it does is in fixtures/scenarios/undo.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from reconcile.model.baseline import (
    Baseline,
    ConversationRecord,
    Intent,
    IntentKind,
    PendingRequest,
    Verb,
    WorldState,
    records_of,
)
from reconcile.model.options import Missing
from reconcile.model.past_run import LaterChanges, PastRun, SavedFile, changed_since, undone_runs
from reconcile.model.plan import Heading, Kind
from reconcile.model.policy import Children, Policy, RemoveRequest, UndoRequest
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import STREAM, WHOLE, Place, Side, nested_git
from reconcile.planning.builder import Node
from reconcile.planning.filters import DirectoryState, directory_state, undone_record
from reconcile.planning.planner import make_plan
from reconcile.planning.requests.undo import DirectoryIndex, plan_undo
from reconcile.planning.revalidate import agreeing
from reconcile.planning.rules.guards import Sides, Whole
from reconcile.planning.simulate import listing_of
from tests.support.formats.notes import BRANCHING, side
from tests.support.scenarios.building import agreed_on, here, plan_of, stored
from tests.support.scenarios.past_runs import kept_of
from tests.support.scenarios.pure_level import RULES

if TYPE_CHECKING:
    from reconcile.model.plan import Plan
    from reconcile.model.snapshot import Snapshot

A = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
LONGER_A = '1-a  metadata 09:00 title "A"  stream 10:00 [1 2]'
B = '2-b  metadata 09:00 title "B"  stream 09:00 [1]'
LONGER_B = '2-b  metadata 09:00 title "B"  stream 10:00 [1 2]'
CLEAR = Sides(store_emptied=False, store_replaced=False, workspace_emptied=False)
CHILD_B = '2-b  metadata 10:00 title "B" parent 1  stream 09:00 [1]'
NESTED_B = '1-a/conversations/2-b  metadata 10:00 title "B" parent 1  stream 09:00 [1]'


def ran(store: Snapshot, workspace: Snapshot, *agreed: str) -> PastRun:
    """A run that has done all that was to do."""
    plan = plan_of(store, workspace, agreed_on(*agreed) if agreed else None)
    return PastRun("run", plan.actions, kept_of(plan, listing_of(store, workspace)))


def undo(past: PastRun, store: Snapshot, workspace: Snapshot, policy: Policy | None = None) -> Plan:
    policy = replace(policy or Policy(), request=UndoRequest(past.id))
    return plan_undo(past, WorldState(store, workspace, Baseline()), policy, RULES, 0)


def refusals(plan: Plan) -> dict[str | None, str]:
    return {item.conversation: item.message for item in plan.held}


IMPORTED = ran(stored(), here(A, B))
EDITED = ran(stored(A), here(LONGER_A), A)
MOVED = ran(stored(A, CHILD_B), here(A, B), A, B)
REMOVED = ran(stored(B), here(A, B), A, B)


@pytest.mark.parametrize(
    ("past", "store", "workspace", "message"),
    [
        (
            IMPORTED,
            stored(LONGER_A),
            here(A),
            "changed in the store since then: 1-a; see what it is now: reconcile diff jp-c1",
        ),
        (
            IMPORTED,
            stored('1-other  metadata 09:00 title "A"  stream 09:00 [1]'),
            here(A),
            "moved in the store since then: 1-a",
        ),
        (
            IMPORTED,
            stored(A, '1-a/conversations/3-c  metadata 09:00 title "C"  stream 09:00 [1]'),
            here(A),
            "store:1-a: contains another conversation now",
        ),
        (IMPORTED, stored(A), here(B), "store:1-a: the only copy now, since workspace:1-a was deleted"),
        (
            EDITED,
            stored('1-a  metadata 09:00 title "A"  stream 11:00 [1 2 3]'),
            here(LONGER_A),
            "changed in the store since then",
        ),
        (EDITED, stored(), here(LONGER_A), "deleted from the store since then: 1-a"),
        (
            REMOVED,
            stored(B),
            here('1-a  metadata 09:00 title "A"  stream 09:00 [1 2]', B),
            "created again in the workspace since then: 1-a",
        ),
        (replace(REMOVED, kept={}), stored(B), here(B), "the vault has no saved version of it any more"),
        (
            replace(IMPORTED, since=LaterChanges({"jp-c1": "later"}, frozenset())),
            stored(A),
            here(A),
            "run later changed it since; undo that first: reconcile undo later",
        ),
        (
            replace(IMPORTED, since=LaterChanges({"jp-c1": "later"}, frozenset(), gone=frozenset({"later"}))),
            stored(A),
            here(A),
            "run later changed it since; the checkout of that run is gone",
        ),
        (
            replace(IMPORTED, since=LaterChanges({"jp-c1": "later"}, frozenset(), elsewhere={"later": "/home/me/wt"})),
            stored(A),
            here(A),
            "run later changed it since; undo that first: reconcile undo later --workspace /home/me/wt",
        ),
        (
            replace(IMPORTED, since=LaterChanges({"jp-c1": "later"}, frozenset(), marked=frozenset({"jp-c1"}))),
            stored(A),
            here(A),
            "run later changed it since; no undo changes a private mark that a sync has taken",
        ),
    ],
)
def test_refused(past: PastRun, store: Snapshot, workspace: Snapshot, message: str) -> None:
    assert message in refusals(undo(past, store, workspace))["jp-c1"]


def test_what_a_repository_lies_in_is_neither_removed_nor_moved_back() -> None:
    made = replace(stored(A, B), foreign=(nested_git("1-a/.git", directory=True),))
    assert refusals(undo(IMPORTED, made, here(A, B)))["jp-c1"].startswith("store:1-a/.git: a git repository")
    marker = nested_git("1-a/conversations/2-b/wt/.git", directory=False)
    moved = replace(here(A, NESTED_B), foreign=(marker,))
    assert refusals(undo(MOVED, stored(A, CHILD_B), moved))["jp-c2"] == f"workspace:{marker.path}: {marker.obstacle}"


def test_what_a_refused_one_was_before_can_be_restored() -> None:
    held = undo(EDITED, stored('1-a  metadata 09:00 title "A"  stream 11:00 [1 2 3]'), here(LONGER_A)).held
    assert [item.resolve for item in held] == [("reconcile restore jp-c1@run",)]
    assert held[0].message == "changed in the store since then: 1-a/events.json"
    assert [item.resolve for item in undo(IMPORTED, stored(LONGER_A), here(A)).held] == [()]
    later = replace(EDITED, since=LaterChanges({"jp-c1": "later"}, frozenset()))
    (item,) = undo(later, stored(LONGER_A), here(LONGER_A)).held
    assert item.message.endswith("undo that first: reconcile undo later, or restore only this conversation")
    assert item.resolve == ("reconcile restore jp-c1@run",)
    gone = LaterChanges({"jp-c1": "later"}, frozenset(), gone=frozenset({"later"}))
    marked = LaterChanges({"jp-c1": "later"}, frozenset(), marked=frozenset({"jp-c1"}))
    for since in (gone, marked):
        (item,) = undo(replace(EDITED, since=since), stored(LONGER_A), here(LONGER_A)).held
        assert item.message.endswith("; restore this conversation alone")


def test_only_what_the_vault_has_can_be_restored_alone() -> None:
    later = replace(IMPORTED, since=LaterChanges({"jp-c1": "later"}, frozenset()))
    message = "run later changed it since; undo that first: reconcile undo later"
    assert refusals(undo(later, stored(A), here(A)))["jp-c1"] == message


def test_a_step_back_is_of_the_same_unit_with_the_events_the_other_way_round() -> None:
    plan = undo(EDITED, stored(LONGER_A), here(LONGER_A))
    (there,), (back,) = EDITED.steps, plan.actions
    assert (there.unit, there.events, plan.policy) == (STREAM, (1, 2), Policy(request=UndoRequest("run")))
    assert (back.unit, back.events, back.reason) == (STREAM, (2, 1), Reason.TAKEN_BACK)


def test_what_is_nowhere_afterwards_is_not_set_aside() -> None:
    """Nobody could ever change a side of it, and a record that never goes costs every run a closer look."""
    restored = replace(IMPORTED, steps=tuple(replace(step, source=None) for step in IMPORTED.steps))
    plan = undo(restored, stored(A), here())
    assert [action.conversation for action in plan.actions] == ["jp-c1"]
    assert dict(plan.asides)["jp-c1", WHOLE] is None


def state_of(snapshot: Snapshot, conversation: str, container: str | None = None) -> list[DirectoryState]:
    copies = (copy for copy in snapshot.copies if copy.conversation == conversation)
    return [directory_state(copy.path, container, copy.files) for copy in copies]


def test_what_is_as_before_is_set_aside_with_the_state_of_both_sides() -> None:
    """A directory in another one is known by the conversation that it lies in."""
    ours = here(LONGER_A)
    before = undone_record(state_of(stored(A), "jp-c1"), state_of(ours, "jp-c1"), RULES)
    found = dict(undo(EDITED, stored(LONGER_A), ours).asides)["jp-c1", WHOLE]
    assert found is not None
    assert before is not None
    assert (found.kind, found.workspace) == (before.kind, before.workspace)
    nested = here(A, NESTED_B)
    plan = undo(ran(stored(), nested), stored(A, CHILD_B), nested)
    assert dict(plan.asides)["jp-c2", WHOLE] == undone_record([], state_of(nested, "jp-c2", "jp-c1"), RULES)


def test_to_undo_what_undid_something_repeats_it() -> None:
    reasons = {
        repeats: {
            action.reason for action in undo(replace(IMPORTED, repeats=repeats), stored(A, B), here(A, B)).actions
        }
        for repeats in (False, True)
    }
    assert reasons == {False: {Reason.TAKEN_BACK}, True: {Reason.REPEATED}}


def test_a_note_that_a_run_has_removed_comes_back() -> None:
    note = '1-a/NOTE.md  09:00 "x"'
    (back,) = undo(ran(stored(A), here(A, note), A, note), stored(A), here(A)).actions
    assert [str(write.target) for write in back.writes] == ["workspace:1-a/NOTE.md"]


def test_what_moved_on_is_refused() -> None:
    twice = here(A, NESTED_B, B)
    assert "created again in the workspace since then: 2-b" in refusals(undo(MOVED, stored(A, CHILD_B), twice))["jp-c2"]
    assert "deleted from the" in refusals(undo(MOVED, stored(A, CHILD_B), here(A)))["jp-c2"]


def test_what_builds_on_the_steps_of_a_refused_conversation_is_refused() -> None:
    """The child's file is written back where its parent's directory was, which stays where it is now."""
    top = '3-z  metadata 09:00 title "Z"  stream 09:00 [1]'
    child = '2-b  metadata {} title "B" parent 1 {} stream 09:00 [1]'
    moved = '1-a  metadata 10:00 title "A" parent 3  stream 09:00 [1]'
    old, new = child.format("09:00", ""), child.format("10:00", 'user="me"')
    past = ran(stored(top, moved, new), here(top, A, f"1-a/conversations/{old}"), top, A, old)
    inside = "3-z/conversations/1-a"
    written_since = f'{inside}  metadata 11:00 title "A" parent 3 user="me"  stream 09:00 [1]'
    plan = undo(past, stored(top, moved, new), here(top, written_since, f"{inside}/conversations/{new}"))
    assert "changed in the" in refusals(plan)["jp-c1"]
    assert "it is in the directory of another conversation" in refusals(plan)["jp-c2"]
    assert plan.actions == ()


def test_a_time_that_somebody_has_changed_since_is_refused() -> None:
    past = ran(stored(LONGER_A), here('1-a  metadata 09:00 title "A"  stream 11:00 [1]'))
    assert [action.kind for action in past.steps] == ["age"]
    aged = here('1-a  metadata 09:00 title "A"  stream 09:59:58 [1]')
    assert [action.kind for action in undo(past, stored(LONGER_A), aged).actions] == ["age"]
    since = here('1-a  metadata 09:00 title "A"  stream 12:00 [1]')
    assert "changed in the" in refusals(undo(past, stored(LONGER_A), since))["jp-c1"]
    already = here('1-a  metadata 09:00 title "A"  stream 11:00 [1]')
    plan = undo(past, stored(LONGER_A), already)
    assert (plan.actions, plan.held) == ((), ())
    other = here('1-a  metadata 09:00 title "A"  stream 09:59:58 [1x]')
    assert "changed in the" in refusals(undo(past, stored(LONGER_A), other))["jp-c1"]
    gone = here('1-a  metadata 09:00 title "A"')
    assert "changed in the" in refusals(undo(past, stored(LONGER_A), gone))["jp-c1"]


@pytest.mark.parametrize(
    ("past", "store", "workspace"),
    [
        (IMPORTED, stored(), here(A, B)),
        (EDITED, stored(A), here(LONGER_A)),
        (MOVED, stored(A, CHILD_B), here(A, B)),
        (REMOVED, stored(B), here(A, B)),
    ],
)
def test_what_is_put_back_already_needs_nothing(past: PastRun, store: Snapshot, workspace: Snapshot) -> None:
    plan = undo(past, store, workspace)
    assert (plan.actions, plan.held) == ((), ())


def test_a_title_that_nobody_can_read_is_the_last_one_known() -> None:
    broken = stored(A, '1-a/metadata.json 10:00 "x"')
    plan = undo(replace(IMPORTED, remembered=records_of(agreed_on(A), ["jp-c1"])), broken, here(A, B))
    assert [(item.conversation, item.title) for item in plan.held] == [("jp-c1", "A")]


@pytest.mark.parametrize("policy", [Policy(only=frozenset({"jp-c2"})), Policy(below=frozenset({"jp-c2"}))])
def test_only_what_is_selected(policy: Policy) -> None:
    plan = undo(IMPORTED, stored(A, B), here(A, B), policy)
    assert [action.conversation for action in plan.actions] == ["jp-c2"]


def test_what_was_undone_already_is_left_out() -> None:
    past = replace(IMPORTED, since=LaterChanges({}, frozenset({"jp-c1"})))
    plan = undo(past, stored(A, B), here(A, B))
    assert [action.conversation for action in plan.actions] == ["jp-c2"]
    assert plan.about == frozenset({"jp-c2"})
    assert [conversation for (conversation, _), _ in plan.asides] == ["jp-c2"]
    assert plan.outline == (Heading("jp-c2", "B", 0),)


def test_an_undo_of_an_undo_sets_nothing_aside() -> None:
    assert [key for key, _ in undo(IMPORTED, stored(A, B), here(A, B)).asides] == [("jp-c1", WHOLE), ("jp-c2", WHOLE)]
    assert undo(replace(IMPORTED, is_undo=True), stored(A, B), here(A, B)).asides == ()


def test_the_order_is_always_the_same() -> None:
    numbers = range(5, 15)
    lines = [f'{number}-x{number}  metadata 09:00 title "X{number}"  stream 09:00 [1]' for number in numbers]
    past = ran(stored(), here(*lines))
    ids = [f"jp-c{number}" for number in numbers]
    past = replace(past, remembered=records_of(agreed_on(*lines), ids))
    plan = plan_undo(past, WorldState(stored(*lines), here(*lines), Baseline()), Policy(accept_bulk=True), RULES, 7)
    assert plan.outline == tuple(Heading(f"jp-c{number}", f"X{number}", 0) for number in numbers)
    assert [conversation for conversation, _ in plan.remembered] == sorted(ids)
    assert [conversation for (conversation, _), _ in plan.asides] == sorted(ids)
    assert plan.now_ns == 7


def test_only_the_store_says_that_it_is_local() -> None:
    past = ran(stored(LONGER_A), here(A), A)
    says_local = '1-a  metadata 09:00 title "A" local  stream 10:00 [1 2]'
    assert [action.kind for action in undo(past, stored(LONGER_A), here(says_local)).actions] == ["project"]
    assert (
        "local, so it is not copied to the workspace"
        in refusals(undo(past, stored(says_local), here(LONGER_A)))["jp-c1"]
    )


def test_a_run_and_its_undo_cancel_each_other_out() -> None:
    undoes = {"1": None, "2": "1", "3": None, "4": "0", "5": "4", "6": None}
    assert changed_since("0", {"c": ("1", "2")}, undoes, {}) == LaterChanges({}, frozenset())
    assert changed_since("0", {"c": ("1", "2", "3")}, undoes, {}) == LaterChanges({"c": "3"}, frozenset())
    assert changed_since("0", {"c": ("4",)}, undoes, {}) == LaterChanges({}, frozenset({"c"}))
    assert changed_since("0", {"c": ("4", "5")}, undoes, {}) == LaterChanges({}, frozenset())
    assert changed_since("0", {"c": ("4",)}, undoes, {"4": {"c"}}) == LaterChanges({}, frozenset())
    assert changed_since("0", {"c": ("3", "6")}, undoes, {}) == LaterChanges({"c": "6"}, frozenset())
    assert changed_since("0", {"c": ("3",)}, undoes, {"3": {"c"}}) == LaterChanges({"c": "3"}, frozenset())


def test_only_an_undo_that_came_to_its_end_takes_back() -> None:
    """1 takes back 0, 3 takes back 2, 4 and 5 take back 3, and 6 takes back what was before 0."""
    undoes = {"0": None, "1": "0", "2": None, "3": "2", "4": "3", "5": "3", "6": "older"}
    assert undone_runs(("0", "1"), undoes) == {"0": "1"}
    assert undone_runs(("0", "1"), undoes, {"1"}) == {}
    assert undone_runs(("2", "3", "4"), undoes) == {"3": "4"}
    assert undone_runs(("2", "3", "4"), undoes, {"4"}) == {"2": "3"}
    assert undone_runs(("2", "3", "4", "5"), undoes, {"4"}) == {"3": "5"}
    assert undone_runs(("2", "3", "4", "5"), undoes) == {"3": "5"}


def test_a_run_stands_in_the_way_until_its_undo_came_to_its_end() -> None:
    undoes = {"1": None, "2": "1", "3": "2", "4": "1", "5": "older"}
    assert changed_since("0", {"c": ("1", "2")}, undoes, {"2": {"c"}}) == LaterChanges({"c": "1"}, frozenset())
    assert changed_since("0", {"c": ("1", "2")}, undoes, {"2": {"d"}}) == LaterChanges({}, frozenset())
    assert changed_since("0", {"c": ("1", "2", "3")}, undoes, {}) == LaterChanges({"c": "1"}, frozenset())
    assert changed_since("0", {"c": ("1", "2", "4")}, undoes, {"2": {"c"}}) == LaterChanges({}, frozenset())
    assert changed_since("0", {"c": ("5",)}, undoes, {}) == LaterChanges({"c": "5"}, frozenset())
    assert changed_since("1", {"c": ("2",), "d": ("2",)}, undoes, {"2": {"c"}}) == LaterChanges({}, frozenset("d"))


def test_nothing_is_remembered_of_what_git_puts_off() -> None:
    """Nor of what was forked from it, or lies in a directory that isn't moved back yet."""
    old, new = '1-a  metadata 09:00 title "A"  stream 10:00 [1 2]', '1-a  metadata 09:00 title "A"  stream 11:00 [1 3]'
    plan = plan_of(stored(new, B), here(old, LONGER_B), agreed_on(A, B))
    known = records_of(agreed_on(A, B), [action.conversation for action in plan.actions])
    past = PastRun("run", plan.actions, kept_of(plan, listing_of(stored(new, B), here(old, LONGER_B))), known)
    (fork,) = (action for action in plan.actions if action.kind is Kind.FORK)
    forked = f'{fork.target.path}  metadata 09:00 title "[diverged] A" parent 1  stream 10:00 [1 2]'
    busy = undo(past, stored(new, LONGER_B, forked), here(new, LONGER_B), Policy(git_busy="a merge"))
    assert [action.conversation for action in busy.actions] == ["jp-c2"]
    assert [key for key, _ in busy.remembered] == ["jp-c2"]
    assert [key for key, _ in busy.asides] == [("jp-c2", WHOLE)]
    (held,) = busy.held
    assert (held.reason, held.conversation) == (Reason.GIT_BUSY, None)
    assert busy.notes == ()


def test_nothing_is_remembered_of_what_a_saved_undo_refuses() -> None:
    """Somebody put one of two units back meanwhile: the conversation is refused, and still to be undone."""
    edited = '1-a  metadata 10:00 title "A" user="me"  stream 10:00 [1 2]'
    known = records_of(agreed_on(A, B), ["jp-c1", "jp-c2"])
    past = replace(ran(stored(A, B), here(edited, LONGER_B), A, B), remembered=known)
    saved = undo(past, stored(edited, LONGER_B), here(edited, LONGER_B))
    fresh = undo(past, stored(LONGER_A, LONGER_B), here(edited, LONGER_B))
    plan, _ = agreeing(saved, fresh)
    assert plan.concerned == {"jp-c2"}


def test_what_waits_of_a_run_ends_with_it() -> None:
    """Of a conversation that is undone, and of no other run."""
    own, other = PendingRequest(run="run"), PendingRequest(run="other")
    keys = [("jp-c1", Verb.LOCAL), ("jp-c1", Verb.REMOVE), ("jp-c2", Verb.LOCAL), ("jp-c3", Verb.LOCAL)]
    baseline = Baseline(waiting=dict(zip(keys, (own, other, own, own), strict=True)))
    past = replace(IMPORTED, since=LaterChanges({"jp-c2": "later"}, frozenset()))
    plan = plan_undo(past, WorldState(stored(A, B), here(A, B), baseline), Policy(), RULES, 0)
    assert plan.waiting == ((keys[0], None),)


LOCAL = Intent(IntentKind.LOCAL)


LOCALS = Baseline(intents={"jp-c1": LOCAL, "jp-c2": LOCAL})


def removal_of(*ids: str, store: tuple[str, ...] = (A, B)) -> PastRun:
    """A command has removed these from both sides."""
    sides = stored(*store), here(A, B)
    plan = plan_of(*sides, agreed_on(A, B), Policy(request=RemoveRequest(ids)))
    return PastRun("run", plan.actions, kept_of(plan, listing_of(*sides)))


def undone(past: PastRun, baseline: Baseline) -> Plan:
    return plan_undo(past, WorldState(stored(), here(), baseline), Policy(), RULES, 0)


def test_what_is_private_comes_back_to_the_store_alone() -> None:
    """A command has removed both copies; since then, or before, somebody has made it local."""
    past = removal_of("jp-c1", "jp-c2")
    assert [note.conversation for note in undone(removal_of("jp-c2", "jp-c1"), LOCALS).notes] == ["jp-c1", "jp-c2"]
    for records, known in (
        ({}, LOCALS),
        ({id_: ConversationRecord(intent=LOCAL) for id_ in ("jp-c2", "jp-c1")}, Baseline()),
    ):
        found = undone(replace(past, remembered=records), known)
        assert sorted(str(action.target) for action in found.actions) == ["store:1-a", "store:2-b"]
        notes = [(note.conversation, note.reason) for note in found.notes]
        assert notes == [("jp-c1", Reason.LEFT_IN_VAULT), ("jp-c2", Reason.LEFT_IN_VAULT)]
        assert "reconcile project jp-c1" in found.notes[0].message
        assert not found.held
    public = {id_: ConversationRecord() for id_ in ("jp-c1", "jp-c2")}
    assert len(undone(replace(past, remembered=public), LOCALS).actions) == 4


def test_what_is_private_and_cannot_come_back_to_the_store_is_refused() -> None:
    """Of one of its two directories there the vault has nothing any more."""
    beside = A.replace("1-a", "1-z")
    past = removal_of("jp-c1", store=(A, beside))
    kept = {place: versions for place, versions in past.kept.items() if not str(place).startswith("store:1-a/")}
    found = undone(replace(past, kept=kept), LOCALS)
    assert (found.notes, found.actions, len(found.held)) == ((), (), 1)
    assert "the vault has no saved version" in found.held[0].message


def test_what_only_the_workspace_had_and_is_private_by_now_is_refused() -> None:
    """The way on is to publish it, if that is what keeps it away."""
    for run, ends in (("run", True), ("other", True)):
        known = Baseline(intents={"jp-c1": Intent(IntentKind.LOCAL, run=run)})
        plan = plan_undo(REMOVED, WorldState(stored(B), here(B), known), Policy(), RULES, 0)
        (held,) = plan.held
        assert plan.notes == ()
        assert "local, so it is not copied to the workspace" in held.message
        assert ("reconcile project jp-c1" in held.resolve) is ends
    changed = replace(REMOVED, since=LaterChanges({"jp-c1": "later"}, frozenset()))
    for run, ends in (("run", True), ("other", False)):
        known = Baseline(intents={"jp-c1": Intent(IntentKind.LOCAL, run=run)})
        (held,) = plan_undo(changed, WorldState(stored(B), here(B), known), Policy(), RULES, 0).held
        assert ("reconcile project jp-c1" in held.resolve) is ends
        assert held.message.endswith(", or restore only this conversation") is not ends


def test_the_last_title_that_is_known_names_what_is_gone() -> None:
    known = records_of(agreed_on(A), ["jp-c1"])
    for past, title in (
        (replace(REMOVED, titles={"jp-c1": "older"}), "older"),
        (replace(REMOVED, titles={"jp-c1": "older"}, remembered=known), "A"),
    ):
        titles = {each.conversation: each.title for each in undo(past, stored(B), here(B)).outline}
        assert titles["jp-c1"] == title
    there = stored(A.replace('"A"', '"Now"'), B)
    (heading,) = undo(replace(EDITED, remembered=known), there, here(LONGER_A)).outline
    assert heading.title == "A"


def test_what_was_only_remembered_is_told() -> None:
    known = records_of(agreed_on(A), ["jp-c1"])
    plan = undo(PastRun("run", (), remembered=known), stored(A), here(A))
    assert [(note.conversation, note.reason) for note in plan.notes] == [("jp-c1", Reason.TAKEN_BACK)]


def test_what_is_foreign_comes_back_unseen() -> None:
    """With its directory, but not what was another conversation's; and it doesn't count as the conversation's own."""
    names = ["README.md", ".archive/7-x.md", "drafts/2-b/x", "2-b/metadata.json", ".trash/2-b/events.json"]
    places = [Place(Side.WORKSPACE, f"1-a/conversations/{name}") for name in names]
    kept = {**REMOVED.kept, **{place: (SavedFile(1, 1, "any", "vault:any"),) for place in places}}
    past = replace(REMOVED, kept=kept)
    plan = undo(past, stored(B), here(B))
    (made,) = plan.actions
    found = [write.target.path for write in made.writes if "/conversations/" in write.target.path]
    assert found == ["1-a/conversations/README.md", "1-a/conversations/drafts/2-b/x"]
    assert plan.asides == undo(REMOVED, stored(B), here(B)).asides
    already = undo(past, stored(B), here(A, B))
    assert (already.actions, already.held) == ((), ())
    undone = PastRun("undo", plan.actions, is_undo=True)
    assert [action.kind for action in undo(undone, stored(B), here(A, B)).actions] == [Kind.REMOVE_STALE]


def test_what_lay_in_a_directory_that_does_not_come_back_is_refused() -> None:
    other = '5-e  metadata 09:00 title "E"  stream 09:00 [1]'
    past = ran(stored(other), here(A, NESTED_B, other), A, CHILD_B, other)
    plan = undo(replace(past, since=LaterChanges({"jp-c1": "later"}, frozenset())), stored(other), here(other))
    assert refusals(plan)["jp-c2"] == "it is in the directory of another conversation that can't be undone"
    private = Baseline(intents={"jp-c1": Intent(IntentKind.LOCAL, run="other")})
    plan = plan_undo(past, WorldState(stored(other), here(other), private), Policy(), RULES, 0)
    assert refusals(plan)["jp-c2"] == "it is in the directory of another conversation that can't be undone"


def test_what_lay_in_a_directory_that_has_moved_is_refused() -> None:
    """Nothing was deleted: the parent has another title by now."""
    past = ran(stored(A), here(A, NESTED_B), A, CHILD_B)
    renamed = '1-other  metadata 09:00 title "other"  stream 09:00 [1]'
    (item,) = undo(past, stored(renamed), here(renamed)).held
    assert item.message == "moved in the workspace since then: 1-a"
    assert item.resolve == ("reconcile restore jp-c2@run",)


def test_the_way_on_from_a_local_that_a_later_run_has_repeated_is_to_publish() -> None:
    private = Baseline(intents={"jp-c1": Intent(IntentKind.LOCAL, run="run")})
    past = replace(REMOVED, since=LaterChanges({"jp-c1": "later"}, frozenset()))
    (item,) = plan_undo(past, WorldState(stored(A, B), here(B), private), Policy(), RULES, 0).held
    assert item.message == "run later changed it since; publish it: reconcile project jp-c1"


def test_no_restore_is_offered_of_what_every_copy_has() -> None:
    """The store has what the run has removed from the workspace, so that a restore would do nothing."""
    removed = Baseline(intents={"jp-c1": Intent(IntentKind.LOCAL, run="run")})
    past = replace(REMOVED, since=LaterChanges({"jp-c1": "later"}, frozenset()))
    (item,) = plan_undo(past, WorldState(stored(A, B), here(B), removed), Policy(), RULES, 0).held
    assert item.resolve == ("reconcile project jp-c1",)
    (item,) = plan_undo(past, WorldState(stored(LONGER_A, B), here(B), removed), Policy(), RULES, 0).held
    assert item.resolve == ("reconcile project jp-c1", "reconcile restore jp-c1@run")


def test_of_a_parent_the_files_of_its_children_are_not_restored() -> None:
    other = '5-e  metadata 09:00 title "E"  stream 09:00 [1]'
    past = ran(stored(other), here(A, NESTED_B, other), A, CHILD_B, other)
    since = LaterChanges({"jp-c1": "later", "jp-c2": "later"}, frozenset())
    (item, _) = undo(replace(past, since=since), stored(A, other), here(other)).held
    assert (item.conversation, item.resolve) == ("jp-c1", ())


def step(kind: Kind, source: str, target: str) -> PastRun:
    """A run of one move in the workspace."""
    (move,) = (action for action in MOVED.steps if action.kind is Kind.MOVE)
    side = Side.WORKSPACE
    return replace(MOVED, steps=(replace(move, kind=kind, source=Place(side, source), target=Place(side, target)),))


def test_a_directory_that_is_in_neither_place_is_refused() -> None:
    nested = "1-a/conversations/2-b"
    past = step(Kind.MOVE, "2-b", nested)
    assert "deleted from the" in refusals(undo(past, stored(A, CHILD_B), here(A)))["jp-c2"]
    back = undo(past, stored(A, CHILD_B), here(B))
    assert (back.actions, back.held) == ((), ())


def test_what_was_taken_out_of_the_archive_goes_back_into_it() -> None:
    plan = undo(step(Kind.UNARCHIVE, ".archive/2-b", "2-b"), stored(A, B), here(A, B))
    assert [(action.kind.value, str(action.target)) for action in plan.actions] == [
        ("archive", "workspace:.archive/2-b")
    ]


def test_a_place_is_free_again_once_its_directory_has_moved_back() -> None:
    moved = replace(step(Kind.MOVE, "1-y", "1-a").steps[0], conversation="jp-c1")
    plan = undo(replace(REMOVED, steps=(*REMOVED.steps, moved)), stored(B), here(A, B))
    assert [(action.kind.value, str(action.target)) for action in plan.actions] == [
        ("move", "workspace:1-y"),
        ("project", "workspace:1-a"),
    ]


def test_a_place_is_free_again_once_its_directory_was_taken_away() -> None:
    made = plan_of(stored(A), here(), policy=Policy(missing=Missing.REPROJECT)).actions
    plan = undo(replace(REMOVED, steps=(*REMOVED.steps, *made)), stored(A, B), here(A, B))
    assert [action.kind.value for action in plan.actions] == ["remove-stale", "project"]


def test_what_comes_back_comes_from_the_vault() -> None:
    """With what lay beside it, of which any version will do: the newest."""
    beside, elsewhere = Place(Side.WORKSPACE, "1-a/a.tmp"), Place(Side.STORE, "1-a/b.tmp")
    kept = {
        **REMOVED.kept,
        beside: (SavedFile(1, 1, "old", "vault:old"), SavedFile(1, 2, "new", "vault:new")),
        elsewhere: (SavedFile(1, 1, "other", "vault:other"),),
    }
    known = {"jp-c1": ConversationRecord(intent=Intent(IntentKind.PROJECTED))}
    (made,) = undo(replace(REMOVED, kept=kept, remembered=known), stored(B), here(B)).actions
    names = ["a.tmp", "base_config.json", "events.json", "metadata.json"]
    assert [str(write.target) for write in made.writes] == [f"workspace:1-a/{name}" for name in names]
    assert made.writes[0].kept == "vault:new"
    assert all(write.kept for write in made.writes)
    (edit,) = undo(EDITED, stored(LONGER_A), here(LONGER_A)).actions
    assert edit.writes
    assert all(write.kept for write in edit.writes)


def test_of_a_unit_only_what_is_not_as_before_is_written() -> None:
    """The base configuration comes first; it has its old time already."""
    before = {file.name: file for file in stored(A).copies[0].files}
    now = stored(LONGER_A)
    files = tuple(before[file.name] if file.name == "base_config.json" else file for file in now.copies[0].files)
    now = replace(now, copies=(replace(now.copies[0], files=files),))
    (edit,) = undo(EDITED, now, here(LONGER_A)).actions
    assert [str(write.target) for write in edit.writes] == ["store:1-a/events.json"]


def test_an_import_goes_whatever_becomes_of_its_parent() -> None:
    past = ran(stored(), here(A, NESTED_B))
    plan = undo(past, stored(LONGER_A, CHILD_B), here(A, NESTED_B))
    assert list(refusals(plan)) == ["jp-c1"]
    assert [action.conversation for action in plan.actions] == ["jp-c2"]


def test_many_directories_go_only_when_that_is_accepted() -> None:
    lines = [f'{number}-x{number}  metadata 09:00 title "X{number}"  stream 09:00 [1]' for number in range(1, 8)]
    imported, sides = ran(stored(), here(*lines)), (stored(*lines), here(*lines))
    (held,) = undo(imported, *sides).held
    assert (held.reason, held.resolve) == (Reason.BULK, ("reconcile undo run --allow-bulk-removal",))
    assert held.message == "store: 7 of 7 directories would be removed: 7-x7, 6-x6, 5-x5, 4-x4, 3-x3 and 2 more"
    (redo,) = undo(replace(imported, repeats=True), *sides).held
    assert redo.resolve == ("reconcile redo run --allow-bulk-removal",)
    assert (undo(imported, *sides).actions, undo(imported, *sides).about) == ((), frozenset())
    others = [f'{number}-x  metadata 09:00 title "X"  stream 09:00 [1]' for number in range(20, 50)]
    assert undo(imported, stored(*lines), here(*lines, *others)).held == (held,)
    world = WorldState(*sides, Baseline())
    part = plan_undo(imported, world, Policy(), RULES, 0, Whole(CLEAR, directories=0, stored=100))
    assert (part.held, len(part.actions)) == ((), 7), "the store has others, which the plan isn't about"
    assert len(undo(imported, *sides, Policy(accept_bulk=True)).actions) == 7
    accepted = Policy(accept_bulk=True, git_busy=None, only=frozenset({"jp-c1"}))
    assert undo(imported, *sides, accepted).policy == replace(accepted, request=UndoRequest("run"))
    assert undo(imported, *sides, Policy(only=frozenset({"jp-c1", "jp-c2", "jp-c3"}))).held == ()
    longer = [each.replace("stream 09:00 [1]", "stream 10:00 [1 2]") for each in lines]
    edits = undo(ran(stored(*lines), here(*longer), *lines), stored(*longer), here(*longer))
    assert (len(edits.actions), edits.held) == (7, ())
    before = stored(lines[0]), here(*lines)
    plan = plan_of(*before, agreed_on(*lines), Policy(accept_bulk=True))
    removed = PastRun("run", plan.actions, kept_of(plan, listing_of(*before)))
    again = undo(removed, stored(lines[0]), here(lines[0]))
    assert (again.held, len(again.actions)) == ((), 6), "making them again loses nothing"


def test_of_a_bulk_that_goes_and_comes_back_the_removals_count() -> None:
    lines = [f'{number}-x{number}  metadata 09:00 title "X{number}"  stream 09:00 [1]' for number in range(1, 10)]
    before = stored(lines[8]), here(*lines)
    plan = plan_of(*before, agreed_on(*lines[:4], lines[8]), Policy(accept_bulk=True))
    assert {str(action.target) for action in plan.actions} == {
        *(f"workspace:{number}-x{number}" for number in range(1, 5)),
        *(f"store:{number}-x{number}" for number in range(5, 9)),
    }
    past = PastRun("run", plan.actions, kept_of(plan, listing_of(*before)))
    (held,) = undo(past, stored(*lines[4:]), here(*lines[4:])).held
    assert held.message == "store: 4 of 5 directories would be removed: 8-x8, 7-x7, 6-x6, 5-x5"


def test_in_the_workspace_only_what_the_store_does_not_keep_counts() -> None:
    lines = [f'{number}-x{number}  metadata 09:00 title "X{number}"  stream 09:00 [1]' for number in range(1, 6)]
    public = replace(agreed_on(), intents={f"jp-c{number}": Intent(IntentKind.PROJECTED) for number in range(1, 6)})
    before = stored(*lines), here()
    plan = plan_of(*before, public, Policy())
    past = PastRun("run", plan.actions, kept_of(plan, listing_of(*before)))
    taken = undo(past, stored(*lines), here(*lines))
    assert ([str(action.target.side) for action in taken.actions], taken.held) == (["workspace"] * 5, ())


def test_where_git_is_busy_and_nothing_waits_for_it_nothing_is_said_of_it() -> None:
    plan = undo(IMPORTED, stored(A, B), here(A, B), Policy(git_busy="merge"))
    assert ([action.kind for action in plan.actions], plan.held) == ([Kind.REMOVE, Kind.REMOVE], ())


def test_what_a_bulk_undo_was_asked_for_is_known() -> None:
    lines = [f'{number}-x  metadata 09:00 title "X"  stream 09:00 [1]' for number in range(1, 8)]
    policy = Policy(request=UndoRequest("run"))
    found = plan_undo(
        ran(stored(), here(*lines)), WorldState(stored(*lines), here(*lines), Baseline()), policy, RULES, 7
    )
    assert (len(found.held), found.policy, found.now_ns) == (1, policy, 7)


def test_what_is_public_by_now_may_be_written_again() -> None:
    baseline = replace(agreed_on(B), intents={"jp-c1": Intent(IntentKind.PROJECTED)})
    policy = Policy(request=UndoRequest("run"))
    assert plan_undo(REMOVED, WorldState(stored(B), here(B), baseline), policy, RULES, 0).actions


def test_a_fork_is_taken_back_alone_where_only_that_is_asked_for() -> None:
    old, new = '1-a  metadata 09:00 title "A"  stream 10:00 [1 2]', '1-a  metadata 09:00 title "A"  stream 11:00 [1 3]'
    past = ran(stored(old), here(new), A)
    (fork,) = (step for step in past.steps if step.kind is Kind.FORK)
    forked = f'{fork.target.path}  metadata 09:00 title "[diverged] A" parent 1  stream 10:00 [1 2]'
    sides = stored(new, forked), here(new)
    alone = undo(past, *sides, Policy(only=frozenset({fork.conversation})))
    assert [action.conversation for action in alone.actions] == [fork.conversation]
    busy = undo(past, *sides, Policy(git_busy="merge"))  # nothing of it is in the workspace
    assert ({action.target.side for action in busy.actions}, busy.held) == ({Side.STORE}, ())


def test_of_others_a_refused_one_says_nothing() -> None:
    past = ran(stored(B), here(A, LONGER_B), B)
    (item,) = undo(past, stored(LONGER_A, LONGER_B), here(A, LONGER_B)).held
    assert (item.conversation, item.resolve) == ("jp-c1", ())


def test_a_place_is_a_container_a_part_and_a_name() -> None:
    index = DirectoryIndex(fixed=False)
    assert index.split_place(Place(Side.STORE, ".archive/1-a")) == (None, ".archive/", "1-a")


def test_a_fixed_place_is_in_no_container_whatever_its_path_says() -> None:
    place, whereabouts = Place(Side.STORE, ".nexus/conversations/a.jsonl"), DirectoryIndex(fixed=True)
    node = Node(Side.STORE, *whereabouts.split_place(place))
    whereabouts.enter(node, place.path)
    assert (node.path, whereabouts.find(place)) == (place.path, node)


def test_a_record_with_such_a_path_is_found_where_it_is() -> None:
    path = ".nexus/conversations/a.md"

    def at(which: Side) -> Snapshot:
        (copy,) = side(which, {"a.md": b"one\n"}).copies
        return replace(side(which, {}), copies=(replace(copy, conversation=path, path=path),))

    plan = make_plan(side(Side.STORE, {}), at(Side.WORKSPACE), Baseline(), Policy(), BRANCHING, 0)
    past = PastRun("run", tuple(action for action in plan.actions if action.kind is Kind.COPY))
    undone = plan_undo(past, WorldState(at(Side.STORE), at(Side.WORKSPACE), Baseline()), Policy(), BRANCHING, 0)
    assert [str(action.target) for action in undone.actions] == [f"store:{path}"]


def test_a_note_that_was_copied_is_not_taken_away_where_it_is_the_only_one_by_now() -> None:
    note = '1-a/NOTE.md  09:00 "x"'
    past = ran(stored(A), here(A, note), A)
    words = "store:1-a/NOTE.md: the only copy now, since the workspace's NOTE.md was deleted"
    assert refusals(undo(past, stored(A, note), here(A))) == {"jp-c1": words}
    assert undo(past, stored(A, note), here(A, note)).held == ()
    restored = replace(past, steps=tuple(replace(step, source=None) for step in past.steps))
    assert undo(restored, stored(A, note), here(A)).held == ()


def test_a_file_that_an_older_form_of_the_stream_lacks_is_taken_away_wherever_it_is() -> None:
    old = '1-a  metadata 09:00 title "A"  stream 09:00 legacy [1]'
    past = ran(stored(old), here(LONGER_A), old)
    assert undo(past, stored(LONGER_A), here(old)).held == ()


def test_below_one_are_its_descendants_however_deep_and_whatever_cycles_there_are() -> None:
    lines = [f'{number}-x  metadata 09:00 title "X"  stream 09:00 [1]' for number in range(1, 6)]
    past, sides = ran(stored(), here(*lines)), (stored(*lines), here(*lines))
    parents = {"jp-c1": None, "jp-c2": "jp-c1", "jp-c3": "jp-c2", "jp-c4": "jp-c5", "jp-c5": "jp-c4"}
    for below, taken in (("jp-c1", ["jp-c3", "jp-c2", "jp-c1"]), ("jp-c4", ["jp-c5", "jp-c4"])):
        policy = Policy(request=UndoRequest("run"), below=frozenset({below}))
        plan = plan_undo(past, WorldState(*sides, Baseline(parents=parents)), policy, RULES, 0)
        assert [action.conversation for action in plan.actions] == taken


def writes_of(plan: Plan) -> list[tuple[str, list[str], list[str]]]:
    """Return the kind of each action, with what it writes and what it removes."""
    return [
        (action.kind.value, [str(write.target) for write in action.writes], [str(place) for place in action.removes])
        for action in plan.actions
    ]


def test_nothing_is_made_again_below_what_is_local_by_now() -> None:
    before = stored(A, CHILD_B), here(A, NESTED_B)
    plan = plan_of(*before, agreed_on(A, NESTED_B), Policy(request=RemoveRequest(("jp-c2",))))
    past = PastRun("run", plan.actions, kept_of(plan, listing_of(*before)))
    now = stored(A), here(A)
    assert [str(action.target) for action in undo(past, *now).actions] == [
        "store:2-b",
        "workspace:1-a/conversations/2-b",
    ]
    local = plan_undo(past, WorldState(*now, Baseline(intents={"jp-c1": LOCAL})), Policy(), RULES, 0)
    assert refusals(local) == {"jp-c2": "workspace:1-a/conversations/2-b: its parent jp-c1 is local now"}
    assert local.actions == ()


def test_a_tree_is_made_again_parents_first() -> None:
    before = stored(A, CHILD_B), here(A, NESTED_B)
    request = RemoveRequest(("jp-c1",), Children.CASCADE)
    plan = plan_of(*before, agreed_on(A, NESTED_B), Policy(request=request))
    past = PastRun("run", plan.actions, kept_of(plan, listing_of(*before)))
    back = undo(past, stored(), here())
    assert not back.held
    assert [str(action.target) for action in back.actions if action.target.side is Side.WORKSPACE] == [
        "workspace:1-a",
        "workspace:1-a/conversations/2-b",
    ]


def test_a_fork_of_what_is_refused_stays() -> None:
    old, new = '1-a  metadata 09:00 title "A"  stream 10:00 [1 2]', '1-a  metadata 09:00 title "A"  stream 11:00 [1 3]'
    past = ran(stored(old, B), here(new, LONGER_B), A, B)
    (fork,) = (step for step in past.steps if step.kind is Kind.FORK)
    forked = f'{fork.target.path}  metadata 09:00 title "[diverged] A" parent 1  stream 10:00 [1 2]'
    since = '1-a  metadata 09:00 title "A"  stream 12:00 [1 3 4]'
    plan = undo(past, stored(since, LONGER_B, forked), here(since, LONGER_B))
    assert refusals(plan)[fork.conversation] == "it was forked from a conversation that can't be undone"
    assert [action.conversation for action in plan.actions] == ["jp-c2"]


def test_a_file_that_did_not_exist_goes_again() -> None:
    """Beside files of its unit that have an old content, and alone."""
    legacy = '1-a  metadata 09:00 title "A"  stream 09:00 legacy [1]'
    past = ran(stored(legacy), here(LONGER_A), legacy)
    assert writes_of(undo(past, stored(LONGER_A), here(LONGER_A))) == [
        ("copy", ["store:1-a/events.json"], ["store:1-a/base_config.json"])
    ]
    for name in ("NOTE.md", "sub/x.txt"):
        note = f'1-a/{name}  09:00 "x"'
        plan = undo(ran(stored(A), here(A, note), A), stored(A, note), here(A, note))
        assert writes_of(plan) == [("remove", [], [f"store:1-a/{name}"])]


def test_an_edit_of_a_child_is_taken_back_in_its_place() -> None:
    longer = CHILD_B.replace("stream 09:00 [1]", "stream 10:00 [1 2]")
    nested = NESTED_B.replace("stream 09:00 [1]", "stream 10:00 [1 2]")
    past = ran(stored(A, longer), here(A, NESTED_B), A, NESTED_B)
    (back,) = undo(past, stored(A, longer), here(A, nested)).actions
    nested_files = ("base_config.json", "events.json")
    assert [str(write.target) for write in back.writes] == [
        f"workspace:1-a/conversations/2-b/{name}" for name in nested_files
    ]


def test_a_parent_that_was_set_is_taken_back_as_one() -> None:
    stripped = CHILD_B.replace(" parent 1", "")
    past = ran(stored(A, stripped), here(A, NESTED_B), A, NESTED_B)
    assert [action.kind for action in past.steps] == [Kind.SET_PARENT]
    plan = undo(past, stored(A, CHILD_B), here(A, NESTED_B))
    assert [action.kind for action in plan.actions] == [Kind.SET_PARENT]


def test_what_was_copied_goes_only_while_its_source_is_there() -> None:
    """The first of several sources is enough, with the files that it has. A fork has none."""
    no_base = '1-a  metadata 09:00 title "A"  stream 09:00 legacy [1]'
    sources = here(no_base, no_base.replace("1-a", "1-z"))
    past = ran(stored(), here(no_base))
    (gone,) = undo(past, stored(no_base), sources).actions
    stays = [str(expect.place) for expect in gone.expect if expect.place.side is Side.WORKSPACE]
    assert stays == ["workspace:1-a/metadata.json", "workspace:1-a/events.json"]
    old, new = '1-a  metadata 09:00 title "A"  stream 10:00 [1 2]', '1-a  metadata 09:00 title "A"  stream 11:00 [1 3]'
    forks = ran(stored(old), here(new), A)
    (fork,) = (step for step in forks.steps if step.kind is Kind.FORK)
    forked = f'{fork.target.path}  metadata 09:00 title "[diverged] A" parent 1  stream 10:00 [1 2]'
    (taken,) = (
        action
        for action in undo(forks, stored(new, forked), here(new, forked)).actions
        if action.conversation == fork.conversation
    )
    assert {expect.place.side for expect in taken.expect} == {Side.STORE}


def test_an_edit_of_a_record_with_a_fixed_place_is_taken_back() -> None:
    """The record is its file."""
    before = side(Side.STORE, {"a.md": b"old"}), side(Side.WORKSPACE, {"a.md": b"new"}, 10)
    plan = make_plan(*before, Baseline(), Policy(), BRANCHING, 0)
    past = PastRun("run", plan.actions, kept_of(plan, listing_of(*before)))
    now = WorldState(side(Side.STORE, {"a.md": b"new"}, 10), before[1], Baseline())
    assert writes_of(plan_undo(past, now, Policy(), BRANCHING, 0)) == [("copy", ["store:a.md"], [])]


def test_a_record_with_a_fixed_place_is_called_by_it() -> None:
    """Its one file has the directory's name, and no title is known of what is gone."""
    past = PastRun("run", (), remembered={"a.md": ConversationRecord()})
    empty = WorldState(side(Side.STORE, {}), side(Side.WORKSPACE, {}), Baseline())
    (heading,) = plan_undo(past, empty, Policy(), BRANCHING, 0).outline
    assert heading.title == "a.md"
    (unnamed,) = plan_undo(
        replace(past, remembered={"jp-c1": ConversationRecord()}),
        WorldState(stored(), here(), Baseline()),
        Policy(),
        RULES,
        0,
    ).outline
    assert unnamed.title is None


def test_a_link_of_a_removed_directory_is_named_with_the_command_that_prints_its_target() -> None:
    links = {Place(Side.WORKSPACE, "1-a/at"): "d" * 64, Place(Side.STORE, "1-a/at"): "e" * 64}
    plan = undo(replace(REMOVED, links=links), stored(B), here(B))
    assert [(note.conversation, note.reason, note.message) for note in plan.notes] == [
        (
            "jp-c1",
            Reason.LEFT_IN_VAULT,
            f"workspace:1-a/at: undo makes no symbolic links; the target of this one: reconcile show {'d' * 16}",
        )
    ]
    assert not undo(replace(REMOVED, links=links), stored(B), here(A, B)).actions
    refused = undo(replace(REMOVED, kept={}, links=links), stored(B), here(B))
    assert refused.held
    assert not refused.notes
