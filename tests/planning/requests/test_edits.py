"""Commands that are asked again, by a saved plan, for what is gone by now. What they do is in fixtures/scenarios."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from reconcile.model.baseline import AsideKind, AsideRecord, Baseline, Intent, IntentKind
from reconcile.model.options import Diverged, Layout, OnConflict, Take
from reconcile.model.plan import Kind
from reconcile.model.policy import (
    Children,
    GcRequest,
    LocalRequest,
    Policy,
    ProjectRequest,
    RemoveRequest,
    SetParentRequest,
)
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import METADATA, STREAM, WHOLE, Problem
from reconcile.planning.context import Edits, RefusedError
from reconcile.planning.decide import decide
from reconcile.planning.requests.edits import edits_of
from reconcile.planning.requests.remove import keeping_parents
from reconcile.planning.requests.visibility import behind, has_conflict, incomplete, outdated
from tests.support.scenarios.building import NOW_NS, agreed_on, context_of, here, plan_of, stored, unreadable, view_of
from tests.support.scenarios.pure_level import RULES

if TYPE_CHECKING:
    from reconcile.model.policy import TreeEdit
    from reconcile.model.snapshot import Snapshot

ONE = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
NEWER = ONE.replace("[1]", "[1 2]")


@pytest.mark.parametrize(
    "request_", [LocalRequest(("jp-c9",)), ProjectRequest(("jp-c9",)), RemoveRequest(("jp-c9",), Children.CASCADE)]
)
def test_nothing_is_done_for_what_is_gone(request_: LocalRequest | ProjectRequest | RemoveRequest) -> None:
    plan = plan_of(stored(ONE), here(NEWER), agreed_on(ONE), Policy(request=request_))
    assert (plan.actions, plan.intents, plan.held) == ((), (), ())


def test_the_others_are_dealt_with() -> None:
    request = RemoveRequest(("jp-c9", "jp-c1"), Children.CASCADE)
    plan = plan_of(stored(ONE), here(ONE), agreed_on(ONE), Policy(request=request))
    assert [(action.kind, action.conversation) for action in plan.actions] == [
        (Kind.REMOVE, "jp-c1"),
        (Kind.REMOVE_STALE, "jp-c1"),
    ]


@pytest.mark.parametrize("request_", [SetParentRequest("jp-c9", None), SetParentRequest("jp-c1", "jp-c9")])
def test_a_parent_or_child_that_is_gone_is_refused(request_: SetParentRequest) -> None:
    with pytest.raises(RefusedError, match="jp-c9 is on neither side any more"):
        plan_of(stored(ONE), here(ONE), agreed_on(ONE), Policy(request=request_))


@pytest.mark.parametrize(
    "request_",
    [
        RemoveRequest(("jp-c9",), Children.CASCADE),
        LocalRequest(("jp-c1", "jp-c9")),
        ProjectRequest(("jp-c9",)),
        SetParentRequest("jp-c9", None),
        SetParentRequest("jp-c1", "jp-c9"),
    ],
)
def test_a_directory_without_files_of_a_conversation_is_refused(request_: TreeEdit) -> None:
    note = '9-z/NOTE.md  10:00 "x"'
    with pytest.raises(RefusedError, match=r"^workspace:9-z has none of a conversation's own files, so it is no"):
        plan_of(stored(ONE), here(ONE, note), agreed_on(ONE), Policy(request=request_))


def test_a_removed_conversation_of_which_other_files_are_left_is_not_refused() -> None:
    left, nine = here(ONE, '9-z/NOTE.md  10:00 "x"'), '9-z  metadata 09:00 title "Z"  stream 09:00 [1]'
    for request in (RemoveRequest(("jp-c9",), Children.CASCADE), LocalRequest(("jp-c9",)), ProjectRequest(("jp-c9",))):
        plan = plan_of(stored(ONE), left, agreed_on(ONE, nine), Policy(request=request))
        assert plan.about is not None
    wanted = replace(agreed_on(ONE), intents={"jp-c9": LOCAL})
    assert plan_of(stored(ONE), left, wanted, Policy(request=ProjectRequest(("jp-c9",)))).about is not None


A, B, C = (f'{name}  metadata 09:00 title "{name[2].upper()}"  stream 09:00 [1]' for name in ("1-a", "2-b", "3-c"))
CHILD = '2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1]'
NESTED = f"1-a/conversations/{CHILD}"
OTHER_PARENT = '9-p  metadata 09:00 title "P"  stream 09:00 [1]'
LOCAL = Intent(IntentKind.LOCAL)
PROJECTED = Intent(IntentKind.PROJECTED)


@pytest.mark.parametrize(
    "workspace",
    [
        (A, '1-a/events.json 10:00 "[{"'),
        (A, '1-a/metadata.json 10:00 "{"'),
    ],
)
def test_what_cannot_be_saved_is_local_at_once_and_its_directory_stays(workspace: tuple[str, ...]) -> None:
    """The other targets are, and nothing but the targets is looked at."""
    context = context_of(stored(A, B, C), here(*workspace, B, C), agreed_on(A, B, C))
    edits = edits_of(LocalRequest(("jp-c1", "jp-c2")), context)
    assert edits.intents == {"jp-c1": LOCAL, "jp-c2": LOCAL}
    assert edits.leaving == {"jp-c2": Reason.LOCALIZED}
    assert edits.scope == {"jp-c1", "jp-c2"}
    assert [(item.conversation, item.reason) for item in edits.held] == [("jp-c1", Reason.UNSETTLED)]


def test_what_lies_inside_goes_along_and_waits() -> None:
    context = context_of(stored(A, CHILD, C), here(A, NESTED, C), agreed_on(A, NESTED, C))
    edits = edits_of(LocalRequest(("jp-c1",)), context)
    waits = Intent(IntentKind.PROJECTED, waits_for="jp-c1", place="1-a/conversations/2-b")
    assert edits.intents == {"jp-c1": LOCAL, "jp-c2": waits}
    assert edits.leaving == {"jp-c1": Reason.LOCALIZED, "jp-c2": Reason.WITH_ANCESTOR}
    assert edits.together == {"jp-c1": "jp-c1", "jp-c2": "jp-c1"}
    assert [note.message for note in edits.notes] == ["1 nested conversation leaves and returns with it: B (jp-c2)"]
    both = edits_of(LocalRequest(("jp-c2", "jp-c1", "jp-c3")), context)
    assert both.intents == dict.fromkeys(("jp-c1", "jp-c2", "jp-c3"), LOCAL)
    assert both.leaving == dict.fromkeys(("jp-c1", "jp-c2", "jp-c3"), Reason.LOCALIZED)


def test_what_is_named_together_with_what_it_lies_in_goes_with_that() -> None:
    """In whatever order they are named, whatever their ids are; others that lie as deep are not forgotten."""
    deep = '1-a/conversations/2-b/conversations/4-d  metadata 09:00 title "D" parent 2  stream 09:00 [1]'
    apart = '3-c/conversations/5-e  metadata 09:00 title "E" parent 3  stream 09:00 [1]'
    tree_ = (A, NESTED, deep, C, apart)
    context = context_of(stored(*(each.rpartition("/")[2] for each in tree_)), here(*tree_), agreed_on(*tree_))
    edits = edits_of(LocalRequest(("jp-c2", "jp-c5", "jp-c1")), context)
    assert edits.intents == {
        **dict.fromkeys(("jp-c1", "jp-c2", "jp-c5"), LOCAL),
        "jp-c4": Intent(IntentKind.PROJECTED, waits_for="jp-c2", place=deep.partition(" ")[0]),
    }
    assert edits.together == {**dict.fromkeys(("jp-c1", "jp-c2", "jp-c4"), "jp-c1"), "jp-c5": "jp-c5"}
    assert [note.conversation for note in edits.notes] == ["jp-c1"]
    younger = '9-p/conversations/2-b  metadata 09:00 title "B" parent 9  stream 09:00 [1]'
    context = context_of(
        stored(OTHER_PARENT, younger[18:]), here(OTHER_PARENT, younger), agreed_on(OTHER_PARENT, younger)
    )
    assert edits_of(LocalRequest(("jp-c2", "jp-c9")), context).intents == dict.fromkeys(("jp-c2", "jp-c9"), LOCAL)


def test_what_is_local_already_is_not_said_to_become_so() -> None:
    baseline = replace(agreed_on(A, B), intents={"jp-c1": LOCAL, "jp-c2": Intent(IntentKind.REMOVED)})
    edits = edits_of(LocalRequest(("jp-c1", "jp-c2")), context_of(stored(A, B), here(A), baseline))
    assert (edits.intents, edits.leaving) == ({"jp-c2": LOCAL}, {"jp-c1": Reason.LOCALIZED})


def test_what_is_in_the_store_alone_becomes_local_too() -> None:
    context = context_of(stored(A, B), here(B), agreed_on(B))
    edits = edits_of(LocalRequest(("jp-c1", "jp-c2")), context)
    assert edits.intents == {"jp-c1": LOCAL, "jp-c2": LOCAL}
    assert edits.leaving == {"jp-c2": Reason.LOCALIZED}


@pytest.mark.parametrize(
    ("intent", "known", "private"),
    [
        (None, False, True),
        (None, True, False),
        (PROJECTED, False, False),
        (Intent(IntentKind.REMOVED), True, True),
        (LOCAL, True, True),
    ],
)
def test_ancestors_become_public_only_when_asked(intent: Intent | None, known: bool, private: bool) -> None:
    baseline = agreed_on(A) if known else agreed_on()
    baseline = replace(baseline, intents={"jp-c1": intent} if intent else {})
    context = context_of(stored(A, CHILD, C), here(), baseline)
    edits = edits_of(ProjectRequest(("jp-c2", "jp-c3")), context)
    if private:
        assert edits.intents == {"jp-c3": PROJECTED}
        (item,) = edits.held
        assert (item.conversation, item.reason) == ("jp-c2", Reason.ANCESTORS_ABSENT)
        assert item.message.endswith("its parents are not in this workspace and would be published too: A (jp-c1)")
        assert item.resolve == ("reconcile project jp-c2 --with-ancestors",)
        asked = edits_of(ProjectRequest(("jp-c2",), ancestors=True), context)
        assert asked.intents == {"jp-c1": PROJECTED, "jp-c2": PROJECTED}
    else:
        assert (edits.intents, edits.held) == ({"jp-c2": PROJECTED, "jp-c3": PROJECTED}, ())


def test_what_is_remembered_and_decided_while_edits_are_carried_out() -> None:
    record = AsideRecord(AsideKind.KEPT, "a", "b")
    baseline = Baseline(
        intents={"jp-c1": LOCAL, "jp-c2": LOCAL, "jp-c3": LOCAL},
        asides={("jp-c1", "stream"): record, ("jp-c2", "stream"): record},
    )
    edits = Edits(
        intents={"jp-c1": PROJECTED, "jp-c2": None},
        leaving={"jp-c1": Reason.LOCALIZED},
        decisions={"jp-c1": Take.STORE},
        scope=frozenset({"jp-c1", "jp-c2"}),
    )
    found = edits.applied_to(baseline)
    assert found.intents == {"jp-c1": PROJECTED, "jp-c3": LOCAL}
    assert found.asides == {("jp-c2", "stream"): record}
    assert edits.limited_policy(Policy()).only == {"jp-c1", "jp-c2"}
    for policy in (Policy(only=frozenset({"jp-c2", "jp-c9"})), Policy(below=frozenset({"jp-c2"}))):
        decided = edits.limited_policy(replace(policy, decisions={"jp-c3": Take.WORKSPACE}))
        assert decided.only == {"jp-c2"}
        assert decided.below == frozenset()
        assert decided.decisions == {"jp-c1": Take.STORE, "jp-c3": Take.WORKSPACE}


def test_gc_finishes_what_was_half_removed() -> None:
    """Of what the store has no more: what a removal has noted. The rest is for a plain run."""
    baseline = agreed_on(A, B, C)
    buried = view_of(stored(A), here()).store.units
    digests = frozenset(unit.digest for unit in buried.values() if unit.digest is not None)
    baseline = replace(baseline, tombstones={"jp-c1": digests, "jp-c3": digests})
    other = '4-d  metadata 09:00 title "D"  stream 09:00 [1]'
    edits = edits_of(GcRequest(), context_of(stored(C, other), here(A, B, C, other), baseline))
    assert edits.deleted == {"jp-c1": Reason.EXPIRED}
    assert edits.below == {"jp-c1": ()}
    assert edits.scope == {"jp-c1"}
    nothing = edits_of(GcRequest(), context_of(stored(C, other), here(C, other), agreed_on(C)))
    assert nothing.scope.isdisjoint({"jp-c3", "jp-c4"})
    assert nothing.scope


def test_a_few_of_many_are_named() -> None:
    children = [f'{n}-x  metadata 09:00 title "X{n}" parent 1  stream 09:00 [1]' for n in range(2, 9)]
    for count, end in ((5, "X6 (jp-c6)"), (6, "X6 (jp-c6) and 1 more"), (7, "X6 (jp-c6) and 2 more")):
        there = [A, *children[:count]]
        with pytest.raises(RefusedError) as refused:
            plan_of(stored(*there, OTHER), here(), agreed_on(), Policy(request=RemoveRequest(("jp-c1",))))
        assert f"has {count} descendants: " in str(refused.value)
        assert str(refused.value).endswith(end)
        assert [hint.rpartition(" ")[2] for hint in refused.value.hints] == ["--cascade", "--promote"]


BELOW_A = '2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1]'
OTHER = '9-z  metadata 09:00 title "Z"  stream 09:00 [1]'


@pytest.mark.parametrize(
    ("store", "workspace", "message", "way_on"),
    [
        (stored(ONE), here(), "the workspace was emptied; restore its conversations first", "reconcile recover"),
        (
            stored(ONE, OTHER),
            replace(here(OTHER), problems=(Problem("1-a", "denied"),)),
            "its place in the workspace can't be read, so it is not copied there",
            "reconcile doctor",
        ),
        (
            stored('1-a  metadata 09:00 title "A"', OTHER),
            here(OTHER),
            "incomplete in the store, so it can't be copied into the workspace",
            "reconcile status jp-c1",
        ),
    ],
)
def test_what_cannot_be_projected_says_why(store: Snapshot, workspace: Snapshot, message: str, way_on: str) -> None:
    policy = Policy(request=ProjectRequest(("jp-c1",)))
    held = plan_of(store, workspace, agreed_on(ONE, OTHER), policy).held
    assert [(item.message, item.resolve) for item in held if item.conversation == "jp-c1"] == [(message, (way_on,))]
    assert {(item.unit, item.reason) for item in held if item.conversation == "jp-c1"} == {(WHOLE, Reason.UNSETTLED)}


def test_what_lies_below_something_broken_or_obstructed_says_what_that_is() -> None:
    policy, store = Policy(request=ProjectRequest(("jp-c2",))), stored(ONE, BELOW_A)
    broken = plan_of(store, here(ONE, '1-a/events.json  09:00 "["'), agreed_on(ONE), policy).held
    said = {item.conversation: (item.unit, item.reason, item.message) for item in broken}
    assert said["jp-c2"] == (WHOLE, Reason.UNSETTLED, "its parent jp-c1 is incomplete here")
    obstructed = plan_of(store, here(ONE, '1-a/conversations  09:00 "x"'), agreed_on(ONE), policy).held
    assert [item.reason for item in obstructed] == [Reason.OBSTRUCTED]


def tree(count: int, parent: str = " parent 1") -> list[str]:
    """Children of A, in its directory."""
    return [f'{n}-x  metadata 09:00 title "X{n}"{parent}  stream 09:00 [1]' for n in range(2, 2 + count)]


def inside_a(lines: list[str]) -> list[str]:
    return [f"1-a/conversations/{line}" for line in lines]


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (2, "2 nested conversations leave and return with it: X2 (jp-c2), X3 (jp-c3)"),
        (
            6,
            (
                "6 nested conversations leave and return with it: "
                "X2 (jp-c2), X3 (jp-c3), X4 (jp-c4), X5 (jp-c5), X6 (jp-c6) and 1 more"
            ),
        ),
    ],
)
def test_what_goes_along_is_told_in_the_order_of_the_tree(count: int, said: str) -> None:
    lines = tree(count)
    context = context_of(stored(A, *lines), here(A, *inside_a(lines)), agreed_on(A, *inside_a(lines)))
    (note,) = edits_of(LocalRequest(("jp-c1",)), context).notes
    assert (note.conversation, note.reason, note.message) == ("jp-c1", Reason.TAKEN_ALONG, said)


def test_the_order_of_the_tree_is_that_of_numbers() -> None:
    lines = [f'{n}-x  metadata 09:00 title "X{n}" parent 1  stream 09:00 [1]' for n in (9, 10)]
    context = context_of(stored(A, *lines), here(A, *inside_a(lines)), agreed_on(A, *inside_a(lines)))
    (note,) = edits_of(LocalRequest(("jp-c1",)), context).notes
    assert note.message.endswith("leave and return with it: X9 (jp-c9), X10 (jp-c10)")


def test_what_is_private_in_there_stays_so_and_what_only_has_a_second_directory_there_stays() -> None:
    known = agreed_on(A, NESTED, C)
    local = context_of(stored(A, CHILD, C), here(A, NESTED, C), replace(known, intents={"jp-c2": LOCAL}))
    edits = edits_of(LocalRequest(("jp-c1",)), local)
    assert edits.intents == {"jp-c1": LOCAL}
    assert edits.leaving == {"jp-c1": Reason.LOCALIZED, "jp-c2": Reason.WITH_ANCESTOR}
    twice = context_of(stored(A, B, C), here(A, B, C, f"1-a/conversations/{C}"), agreed_on(A, B, C))
    assert edits_of(LocalRequest(("jp-c1",)), twice).leaving == {"jp-c1": Reason.LOCALIZED}


OPEN = {
    "broken": (['2-b  metadata 09:00 title "B" parent 1', '2-b/events.json  09:00 "{"'], Policy()),
    "diverged, and to be asked about": (
        [CHILD.replace("09:00 [1]", "09:30 [1 3]")],
        Policy(diverged=Diverged.HOLD),
    ),
}


@pytest.mark.parametrize(("lines", "policy"), OPEN.values(), ids=OPEN)
def test_a_directory_stays_while_something_in_it_cannot_be_saved(lines: list[str], policy: Policy) -> None:
    store = stored(A, CHILD.replace("[1]", "[1 2]"), C)
    context = context_of(store, here(A, *inside_a(lines), C), agreed_on(A, NESTED, C), policy)
    edits = edits_of(LocalRequest(("jp-c1", "jp-c3")), context)
    assert edits.intents == {"jp-c1": LOCAL, "jp-c3": LOCAL}
    assert edits.scope == {"jp-c1", "jp-c2", "jp-c3"}
    (item,) = edits.held
    assert (item.conversation, item.title, item.unit, item.resolve) == ("jp-c1", "A", "conversation", ())
    assert item.message == "local now; its directory stays until these are unblocked: B (jp-c2)"


def test_what_was_removed_from_the_store_or_is_damaged_here_stays_too() -> None:
    """Neither is on its way into the store, so that it would be in the vault alone."""
    removed = context_of(stored(C), here(A, C), agreed_on(A, C))
    assert [item.conversation for item in edits_of(LocalRequest(("jp-c1",)), removed).held] == ["jp-c1"]
    damaged = here(A.partition("  stream")[0], '1-a/events.json  09:30 "[]"', C)
    context = context_of(stored(A, C), damaged, agreed_on(A, C))
    assert [item.conversation for item in edits_of(LocalRequest(("jp-c1",)), context).held] == ["jp-c1"]


def test_a_broken_note_keeps_a_directory_too() -> None:
    workspace = unreadable(here(A, '1-a/NOTE.md  09:00 "x"'), "1-a/NOTE.md")
    edits = edits_of(LocalRequest(("jp-c1",)), context_of(stored(A), workspace, agreed_on(A)))
    assert (edits.leaving, len(edits.held)) == ({}, 1)


def test_what_has_no_title_is_named_by_its_id() -> None:
    untitled = CHILD.replace('title "B" ', "")
    known = agreed_on(A, f"1-a/conversations/{untitled}")
    context = context_of(stored(A, untitled), here(A, f"1-a/conversations/{untitled}"), known)
    (note,) = edits_of(LocalRequest(("jp-c1",)), context).notes
    assert note.message.endswith(": (no title) (jp-c2)")
    with pytest.raises(RefusedError, match=r"^\(no title\) \(jp-c1\) has 1 descendant: B \(jp-c2\)$"):
        edits_of(RemoveRequest(("jp-c1",)), context_of(stored(A.replace('title "A"', ""), CHILD), here()))


def test_everything_is_what_is_in_the_store_alone_and_not_local() -> None:
    lines = [A, B, C, '4-d  metadata 09:00 title "D" local  stream 09:00 [1]']
    context = context_of(stored(*lines), here(B), agreed_on(B))
    edits = edits_of(ProjectRequest((), everything=True), context)
    assert edits.intents == {"jp-c1": PROJECTED, "jp-c3": PROJECTED}
    assert edits.requested == {"jp-c1", "jp-c3"}
    assert edits.decisions == {}
    assert edits_of(ProjectRequest(()), context).scope.isdisjoint(context.views)


def test_versions_that_are_behind_are_ended_when_that_is_asked_for() -> None:
    newer = A.replace("[1]", "[1 2]")
    context = context_of(stored(newer, B), here(A.replace("stream 09:00", "stream 09:30"), B), agreed_on(newer, B))
    edits = edits_of(ProjectRequest((), behind=True), context)
    assert edits.choices == {("jp-c1", STREAM): Take.STORE}
    assert edits.scope == {"jp-c1"}
    assert edits.intents == {}
    assert edits_of(ProjectRequest(("jp-c2",)), context).choices == {}


def test_beside_a_version_that_is_behind_what_has_no_base_is_replaced_too() -> None:
    """Times alone can't tell an edit from an older version that git has just written."""
    newer = A.replace("[1]", "[1 2]")
    retitled = A.replace("09:00", "09:30").replace('"A"', '"Other"')
    both = (context_of(stored(line), here()).views["jp-c1"].store.digest(STREAM) or "" for line in (A, newer))
    known = agreed_on(newer)
    elsewhere = replace(known, agreed={}, history={("jp-c1", STREAM): tuple(both)})
    for baseline, replaced in ((known, {STREAM}), (elsewhere, {METADATA, STREAM})):
        context = context_of(stored(newer), here(retitled), baseline)
        edits = edits_of(ProjectRequest((), behind=True), context)
        assert edits.choices == {("jp-c1", unit): Take.STORE for unit in replaced}
    held = context_of(stored(newer), here(retitled), elsewhere, Policy(conflict=OnConflict.HOLD))
    edits = edits_of(ProjectRequest((), behind=True), held)
    assert edits.choices == {("jp-c1", STREAM): Take.STORE}, "a conflict that is held waits for a person"


def test_which_conversations_have_an_older_version_here() -> None:
    newer, ours = A.replace("[1]", "[1 2]"), A.replace("stream 09:00", "stream 09:30")
    edited = B.replace('"B"', '"Z"').replace("09:00", "10:00", 1)
    context = context_of(stored(newer, edited, C), here(ours, B, C), agreed_on(newer, B, C))
    assert (behind(context), outdated(context)) == (["jp-c1"], ["jp-c2"])
    lacking = context_of(stored(newer, edited), here(newer.partition("  stream")[0], B), agreed_on(newer, B))
    assert (outdated(lacking), incomplete(lacking)) == (["jp-c2"], ["jp-c1"])
    conflict = context_of(stored(edited), here(B.replace('"B"', '"Y"')), agreed_on(B))
    assert (behind(conflict), outdated(conflict)) == ([], ["jp-c2"])
    assert (has_conflict(context, "jp-c2"), has_conflict(conflict, "jp-c2")) == (False, True)


def test_what_is_archived_is_not_put_there_but_by_recover() -> None:
    context = context_of(stored(f".archive/{A}", B), here(B), agreed_on(B))
    edits = edits_of(ProjectRequest(("jp-c1", "jp-c2")), context)
    (item,) = edits.held
    assert (edits.intents, item.conversation) == ({"jp-c2": PROJECTED}, "jp-c1")
    assert item.reason is Reason.ARCHIVED_HELD
    assert item.message == "archived in the store; unarchive it with JP first"
    assert edits_of(ProjectRequest(("jp-c1",), records=(1,)), context).intents == {"jp-c1": PROJECTED}


GRANDCHILD = '3-c  metadata 09:00 title "C" parent 2  stream 09:00 [1]'


def test_all_that_is_private_above_is_named_the_outermost_first_and_what_is_asked_for_is_not() -> None:
    context = context_of(stored(A, CHILD, GRANDCHILD), here(), agreed_on())
    (item,) = edits_of(ProjectRequest(("jp-c3",)), context).held
    assert item.message.endswith(
        "its parents are not in this workspace and would be published too: A (jp-c1), B (jp-c2)"
    )
    below, above = edits_of(ProjectRequest(("jp-c3", "jp-c2")), context).held
    assert below.message == above.message
    assert above.message.endswith("its parents are not in this workspace and would be published too: A (jp-c1)")
    whole = edits_of(ProjectRequest(("jp-c3",), ancestors=True), context)
    assert list(whole.intents) == ["jp-c1", "jp-c2", "jp-c3"]
    flat = context_of(stored(A, CHILD, GRANDCHILD), here(), agreed_on(), Policy(layout=Layout.FLAT))
    assert edits_of(ProjectRequest(("jp-c3",)), flat).intents == {"jp-c3": PROJECTED}


def test_what_a_branch_has_brought_of_a_local_one_is_private() -> None:
    baseline = replace(agreed_on(A), intents={"jp-c1": LOCAL})
    assert edits_of(ProjectRequest(("jp-c2",)), context_of(stored(A, CHILD), here(A), baseline)).intents == {}
    assert edits_of(ProjectRequest(("jp-c2",)), context_of(stored(A, CHILD), here(A), agreed_on(A))).intents == {
        "jp-c2": PROJECTED
    }


def test_what_lies_below_one_that_is_new_here_is_public_and_below_a_flagged_one_private() -> None:
    new = context_of(stored(CHILD, C), here(A, C), agreed_on(C))
    assert edits_of(ProjectRequest(("jp-c2",)), new).intents == {"jp-c2": PROJECTED}
    flagged = A.replace('"A"', '"A" local')
    for workspace in (here(C), here(A, C)):
        context = context_of(stored(flagged, CHILD, C), workspace, agreed_on(A, C))
        assert edits_of(ProjectRequest(("jp-c2",)), context).intents == {}


def test_with_what_is_put_there_comes_what_waits_or_lies_apart_and_nobody_else() -> None:
    waits = Intent(IntentKind.PROJECTED, waits_for="jp-c1", place="1-a/conversations/2-b")
    apart, beside = (
        '4-d  metadata 09:00 title "D" parent 1  stream 09:00 [1]',
        '5-e  metadata 09:00 title "E" parent 1  stream 09:00 [1]',
    )
    baseline = replace(agreed_on(A, NESTED, C), intents={"jp-c2": waits, "jp-c1": Intent(IntentKind.REMOVED)})
    context = context_of(stored(A, CHILD, C, apart, beside), here(C, apart), baseline)
    assert edits_of(ProjectRequest(("jp-c1",)), context).scope == {"jp-c1", "jp-c2", "jp-c4"}
    assert edits_of(ProjectRequest(("jp-c5",), ancestors=True), context).scope == {"jp-c1", "jp-c2", "jp-c4", "jp-c5"}
    there = context_of(stored(A, apart, beside), here(A, apart), agreed_on(A))
    assert edits_of(ProjectRequest(("jp-c5",)), there).scope == {
        "jp-c1",
        "jp-c4",
        "jp-c5",
    }  # as after a kill before it moved


def test_what_it_lies_in_is_looked_at_up_to_the_root_and_what_lies_in_a_directory_that_is_filled() -> None:
    deep = '1-a/conversations/2-b/conversations/3-c  metadata 09:00 title "C" parent 2  stream 09:00 [1]'
    context = context_of(stored(A, CHILD, GRANDCHILD), here(A, NESTED), agreed_on(A, NESTED, deep))
    assert edits_of(ProjectRequest(("jp-c3",)), context).scope == {"jp-c1", "jp-c2", "jp-c3"}
    waits = replace(agreed_on(A, OTHER_PARENT), intents={"jp-c3": Intent(IntentKind.PROJECTED, waits_for="jp-c1")})
    far = context_of(stored(A, CHILD, GRANDCHILD, OTHER_PARENT), here(OTHER_PARENT), waits)
    assert edits_of(ProjectRequest(("jp-c1",)), far).scope == {"jp-c1", "jp-c3"}
    hollow = context_of(stored(A, CHILD), here(NESTED), agreed_on())
    assert edits_of(ProjectRequest(("jp-c1",)), hollow).scope == {"jp-c1", "jp-c2"}


def test_who_goes_and_who_moves_up() -> None:
    deep = '4-d  metadata 09:00 title "D" parent 3  stream 09:00 [1]'
    context = context_of(stored(A, CHILD, GRANDCHILD, deep), here(), agreed_on())
    cascade = edits_of(RemoveRequest(("jp-c3", "jp-c2"), Children.CASCADE), context)
    assert list(cascade.deleted) == ["jp-c2", "jp-c3", "jp-c4"]
    assert set(cascade.deleted.values()) == {Reason.REMOVED_AS_ASKED}
    assert cascade.below == {"jp-c2": ("jp-c3",), "jp-c3": ("jp-c4",), "jp-c4": ()}
    assert cascade.parents == {}
    assert cascade.scope == {"jp-c2", "jp-c3", "jp-c4"}
    promote = edits_of(RemoveRequest(("jp-c3", "jp-c2"), Children.PROMOTE), context)
    assert list(promote.deleted) == ["jp-c2", "jp-c3"]
    assert promote.below == {"jp-c2": ("jp-c3",), "jp-c3": ()}
    assert promote.parents == {"jp-c4": "jp-c1"}
    assert promote.promoted == {"jp-c4"}
    assert promote.heirs == {"jp-c2": (), "jp-c3": ("jp-c4",)}
    assert promote.scope == {"jp-c2", "jp-c3", "jp-c4"}
    apart = edits_of(RemoveRequest(("jp-c1", "jp-c3"), Children.PROMOTE), context)
    assert apart.parents == {"jp-c2": None, "jp-c4": "jp-c2"}
    assert edits_of(RemoveRequest(("jp-c4",)), context).deleted == {"jp-c4": Reason.REMOVED_AS_ASKED}
    assert edits_of(RemoveRequest(("jp-c4", "jp-c3")), context).below == {"jp-c3": ("jp-c4",), "jp-c4": ()}


def keeping(ids: tuple[str, ...], store: Snapshot, workspace: Snapshot, baseline: Baseline) -> Edits | None:
    """Remove these with --promote, and look at what can't be given up."""
    policy = Policy(request=RemoveRequest(ids, Children.PROMOTE))
    edits = edits_of(RemoveRequest(ids, Children.PROMOTE), context_of(store, workspace, baseline))
    return keeping_parents(decide(store, workspace, baseline, edits.limited_policy(policy), RULES, NOW_NS, edits))


def test_what_a_child_that_is_open_keeps_and_who_gets_whom_for_a_parent() -> None:
    """1 > 2 > (3 > 9 > 4, and 5, which is open), and 6 > 7 > 8 beside them: all but the leaves and 6 should go."""
    parents = {1: None, 2: 1, 3: 2, 4: 9, 5: 2, 6: None, 7: 6, 8: 7, 9: 3, 10: 1}
    lines = {
        n: f'{n}-x  metadata 09:00 title "X{n}"{f" parent {above}" if above else ""}  stream 09:00 [1]'
        for n, above in parents.items()
    }
    store, broken = stored(*lines.values()), ("5-x  stream 09:00 [1]", '5-x/metadata.json  10:00 "<<<<<<< ours"')
    baseline, targets = agreed_on(lines[5]), ("jp-c1", "jp-c2", "jp-c3", "jp-c9", "jp-c7")
    assert keeping(targets, store, here(lines[5]), baseline) is None
    edits = keeping(targets, store, here(*broken), baseline)
    assert edits is not None
    assert list(edits.deleted) == ["jp-c3", "jp-c9", "jp-c7"]
    assert edits.parents == {"jp-c5": None, "jp-c4": "jp-c2", "jp-c8": "jp-c6"}
    assert edits.promoted == {"jp-c4", "jp-c5", "jp-c8"}
    assert {item.conversation: item.message for item in edits.held} == {
        "jp-c2": "not removed, since its children are blocked: X5 (jp-c5)",
        "jp-c1": "not removed, since its descendant stays: X2 (jp-c2)",
    }


def test_each_says_itself_what_keeps_it() -> None:
    child, other = CHILD.replace("2-b", "4-d"), GRANDCHILD.replace("3-c", "5-e").replace('"C"', '"E"')
    baseline = agreed_on(child, other)
    broken = [f'{name}/metadata.json  10:00 "<"' for name in ("4-d", "5-e")]
    edits = keeping(("jp-c1", "jp-c2"), stored(A, CHILD, child, other), here(child, other, *broken), baseline)
    assert edits is not None
    assert [item.message for item in edits.held] == [
        "not removed, since its children are blocked: B (jp-c4)",
        "not removed, since its children are blocked: E (jp-c5)",
    ]


def test_rm_finishes_what_was_half_removed() -> None:
    """The store has lost the parent, and the child states another one there; in the workspace nothing has happened."""
    line = A.replace('"A"', '"A" parent 9')
    workspace = OTHER_PARENT, f"9-p/conversations/{line}", f"9-p/conversations/{NESTED}"
    store = stored(OTHER_PARENT, CHILD.replace("parent 1", "parent 9"))
    edits = edits_of(
        RemoveRequest(("jp-c1",), Children.PROMOTE), context_of(store, here(*workspace), agreed_on(*workspace))
    )
    assert edits.deleted == {"jp-c1": Reason.REMOVED_AS_ASKED}
    assert edits.scope == {"jp-c1", "jp-c2"}


def test_a_child_that_is_gone_from_both_sides_keeps_nothing() -> None:
    edits = edits_of(RemoveRequest(("jp-c1",)), context_of(stored(A), here(A), agreed_on(A, NESTED)))
    assert (edits.deleted, edits.parents) == ({"jp-c1": Reason.REMOVED_AS_ASKED}, {})


def test_gc_looks_at_what_has_expired_alone() -> None:
    over = '3-c  metadata 09:00 title "C" expires_at="1970-01-01 00:00:00.0"  stream 09:00 [1]'
    edited = [each.replace("stream 09:00 [1]", "stream 10:00 [1 2]") for each in (B, over)]
    edits = edits_of(GcRequest(), context_of(stored(A, B, over), here(A, *edited), agreed_on(A, B, over)))
    assert edits.deleted == {}
    assert edits.scope == {"jp-c3"}
    assert [note.conversation for note in edits.notes] == ["jp-c3"]


def test_of_a_cycle_each_is_counted_once() -> None:
    ring = [A.replace('"A"', '"A" parent 3'), CHILD, GRANDCHILD]
    context = context_of(stored(*ring), here(), agreed_on())
    with pytest.raises(RefusedError, match="has 2 descendants: "):
        edits_of(RemoveRequest(("jp-c2",)), context)
    assert set(edits_of(RemoveRequest(("jp-c2",), Children.CASCADE), context).deleted) == {"jp-c1", "jp-c2", "jp-c3"}
    both = edits_of(RemoveRequest(("jp-c1", "jp-c2", "jp-c3"), Children.PROMOTE), context)
    assert (len(both.deleted), both.parents) == (3, {})


def test_archived_ones_are_not_removed_and_said_to_lose_their_parent() -> None:
    context = context_of(stored(A, f".archive/{CHILD}", f".archive/{C}"), here(), agreed_on())
    with pytest.raises(RefusedError, match=r"^B \(jp-c2\) is archived; only live conversations can be removed$"):
        edits_of(RemoveRequest(("jp-c1", "jp-c2")), context)
    (note,) = edits_of(RemoveRequest(("jp-c1",)), context).notes
    assert (note.conversation, note.reason) == ("jp-c2", Reason.ARCHIVED_COPY)
    assert note.message == "archived, so it stays; its parent jp-c1 is removed"


REFUSED = {
    "a child that is archived": (SetParentRequest("jp-c2", None), "B (jp-c2) is archived"),
    "a parent that is archived": (SetParentRequest("jp-c3", "jp-c2"), "B (jp-c2) is archived and can't be a parent"),
    "itself": (SetParentRequest("jp-c3", "jp-c3"), "jp-c3 would be its own ancestor: jp-c3"),
    "its own child": (SetParentRequest("jp-c3", "jp-c5"), "jp-c3 would be its own ancestor: jp-c3 > jp-c4 > jp-c5"),
}


@pytest.mark.parametrize(("request_", "message"), REFUSED.values(), ids=REFUSED)
def test_who_cannot_be_whose_parent(request_: SetParentRequest, message: str) -> None:
    below = [f'{n}-x  metadata 09:00 title "X" parent {n - 1}  stream 09:00 [1]' for n in (4, 5)]
    context = context_of(stored(A, f".archive/{B}", C, *below), here(), agreed_on())
    with pytest.raises(RefusedError, match=f"^{re.escape(message)}$"):
        edits_of(request_, context)


def test_a_circle_is_refused_with_the_command_that_shows_the_tree() -> None:
    with pytest.raises(RefusedError) as refused:
        edits_of(SetParentRequest("jp-c3", "jp-c3"), context_of(stored(A, B, C), here(), agreed_on()))
    assert refused.value.hints == ("see the tree: reconcile ls --tree",)


def test_who_leaves_a_cycle_concerns_the_others_of_it_alone() -> None:
    rings = [A.replace('"A"', '"A" parent 2'), CHILD, C.replace('"C"', '"C" parent 4')]
    rings.append('4-d  metadata 09:00 title "D" parent 3  stream 09:00 [1]')
    assert edits_of(SetParentRequest("jp-c2", None), context_of(stored(*rings), here(), agreed_on())).scope == {
        "jp-c1",
        "jp-c2",
    }


def test_another_parent_is_asked_for_one_conversation() -> None:
    edits = edits_of(SetParentRequest("jp-c3", "jp-c1"), context_of(stored(A, B, C), here(), agreed_on()))
    assert edits.parents == {"jp-c3": "jp-c1"}
    assert edits.scope == edits.requested == {"jp-c3"}
    assert edits_of(SetParentRequest("jp-c3", None), context_of(stored(C), here(), agreed_on())).parents == {
        "jp-c3": None
    }
