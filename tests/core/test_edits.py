"""Commands that are asked again, by a saved plan, for what is gone by now. What they do is in fixtures/scenarios."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from reconcile.core.edits import Edits, RefusedError
from reconcile.core.memory import AsideKind, AsideRecord, Intent, IntentKind, Memory
from reconcile.core.model import Problem
from reconcile.core.plan import Kind
from reconcile.core.policy import Policy, Take
from reconcile.core.reasons import Reason
from reconcile.core.requests import Children, Collect, Localize, Project, Remove, Reparent
from reconcile.core.tree_edits import edits_of
from tests.support.building import agreed_on, board_of, here, plan_of, stored, view_of

if TYPE_CHECKING:
    from reconcile.core.model import Snapshot

ONE = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
NEWER = ONE.replace("[1]", "[1 2]")


@pytest.mark.parametrize("request_", [Localize(("jp-c9",)), Project(("jp-c9",)), Remove(("jp-c9",), Children.CASCADE)])
def test_nothing_is_done_for_what_is_gone(request_: Localize | Project | Remove) -> None:
    plan = plan_of(stored(ONE), here(NEWER), agreed_on(ONE), Policy(request=request_))
    assert (plan.actions, plan.intents, plan.held) == ((), (), ())


def test_the_others_are_dealt_with() -> None:
    request = Remove(("jp-c9", "jp-c1"), Children.CASCADE)
    plan = plan_of(stored(ONE), here(ONE), agreed_on(ONE), Policy(request=request))
    assert [(action.kind, action.conversation) for action in plan.actions] == [
        (Kind.REMOVE, "jp-c1"),
        (Kind.REMOVE_STALE, "jp-c1"),
    ]


@pytest.mark.parametrize("request_", [Reparent("jp-c9", None), Reparent("jp-c1", "jp-c9")])
def test_a_parent_or_child_that_is_gone_is_refused(request_: Reparent) -> None:
    with pytest.raises(RefusedError, match="jp-c9 is on neither side any more"):
        plan_of(stored(ONE), here(ONE), agreed_on(ONE), Policy(request=request_))


A, B, C = (f'{name}  metadata 09:00 title "{name[2].upper()}"  stream 09:00 [1]' for name in ("1-a", "2-b", "3-c"))
CHILD = '2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1]'
NESTED = f"1-a/conversations/{CHILD}"
LOCAL = Intent(IntentKind.LOCAL)
PROJECTED = Intent(IntentKind.PROJECTED)


@pytest.mark.parametrize(
    "workspace",
    [
        (A, '1-a/events.json 10:00 "[{"'),
        (A, '1-a/metadata.json 10:00 "{"'),
    ],
)
def test_what_cannot_be_saved_is_not_made_local(workspace: tuple[str, ...]) -> None:
    """The other targets are, and nothing but the targets is looked at."""
    board = board_of(stored(A, B, C), here(*workspace, B, C), agreed_on(A, B, C))
    edits = edits_of(Localize(("jp-c1", "jp-c2")), board)
    assert edits.intents == {"jp-c2": LOCAL}
    assert edits.leaving == {"jp-c2": Reason.LOCALIZED}
    assert edits.scope == {"jp-c1", "jp-c2"}
    assert [(item.conversation, item.reason) for item in edits.held] == [("jp-c1", Reason.UNSETTLED)]


def test_what_lies_inside_goes_along_and_waits() -> None:
    board = board_of(stored(A, CHILD, C), here(A, NESTED, C), agreed_on(A, NESTED, C))
    edits = edits_of(Localize(("jp-c1",)), board)
    waits = Intent(IntentKind.PROJECTED, waits_for="jp-c1", place="1-a/conversations/2-b")
    assert edits.intents == {"jp-c1": LOCAL, "jp-c2": waits}
    assert edits.leaving == {"jp-c1": Reason.LOCALIZED, "jp-c2": Reason.WITH_ANCESTOR}
    assert edits.together == dict.fromkeys(("jp-c1", "jp-c2"), frozenset({"jp-c1", "jp-c2"}))
    assert [note.message for note in edits.notes] == ["1 conversation below it goes along, and back with it: B (jp-c2)"]
    both = edits_of(Localize(("jp-c2", "jp-c1", "jp-c3")), board)
    assert both.intents == dict.fromkeys(("jp-c1", "jp-c2", "jp-c3"), LOCAL)
    assert both.leaving == dict.fromkeys(("jp-c1", "jp-c2", "jp-c3"), Reason.LOCALIZED)


def test_what_is_in_the_store_alone_becomes_local_too() -> None:
    board = board_of(stored(A, B), here(B), agreed_on(B))
    edits = edits_of(Localize(("jp-c1", "jp-c2")), board)
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
    memory = agreed_on(A) if known else agreed_on()
    memory = replace(memory, intents={"jp-c1": intent} if intent else {})
    board = board_of(stored(A, CHILD, C), here(), memory)
    edits = edits_of(Project(("jp-c2", "jp-c3")), board)
    if private:
        assert edits.intents == {"jp-c3": PROJECTED}
        (item,) = edits.held
        assert (item.conversation, item.reason) == ("jp-c2", Reason.ANCESTORS_ABSENT)
        assert item.message.endswith("would be public with it: A (jp-c1)")
        assert item.resolve == ("reconcile project jp-c2 --with-ancestors",)
        asked = edits_of(Project(("jp-c2",), ancestors=True), board)
        assert asked.intents == {"jp-c1": PROJECTED, "jp-c2": PROJECTED}
    else:
        assert (edits.intents, edits.held) == ({"jp-c2": PROJECTED, "jp-c3": PROJECTED}, ())


def test_what_is_remembered_and_decided_while_edits_are_carried_out() -> None:
    record = AsideRecord(AsideKind.KEPT, "a", "b")
    memory = Memory(
        intents={"jp-c1": LOCAL, "jp-c2": LOCAL, "jp-c3": LOCAL},
        asides={("jp-c1", "stream"): record, ("jp-c2", "stream"): record},
    )
    edits = Edits(
        intents={"jp-c1": PROJECTED, "jp-c2": None},
        leaving={"jp-c1": Reason.LOCALIZED},
        decisions={"jp-c1": Take.STORE},
        scope=frozenset({"jp-c1", "jp-c2"}),
    )
    found = edits.remembering(memory)
    assert found.intents == {"jp-c1": PROJECTED, "jp-c3": LOCAL}
    assert found.asides == {("jp-c2", "stream"): record}
    assert edits.deciding(Policy()).only == {"jp-c1", "jp-c2"}
    for policy in (Policy(only=frozenset({"jp-c2", "jp-c9"})), Policy(below=frozenset({"jp-c2"}))):
        decided = edits.deciding(replace(policy, decisions={"jp-c3": Take.WORKSPACE}))
        assert decided.only == {"jp-c2"}
        assert decided.below == frozenset()
        assert decided.decisions == {"jp-c1": Take.STORE, "jp-c3": Take.WORKSPACE}


def test_gc_finishes_what_was_half_removed() -> None:
    """Of what the store has no more: what a removal has noted. The rest is for a plain run."""
    memory = agreed_on(A, B, C)
    buried = view_of(stored(A), here()).store.units
    digests = frozenset(unit.digest for unit in buried.values() if unit.digest is not None)
    memory = replace(memory, tombstones={"jp-c1": digests, "jp-c3": digests})
    other = '4-d  metadata 09:00 title "D"  stream 09:00 [1]'
    edits = edits_of(Collect(), board_of(stored(C, other), here(A, B, C, other), memory))
    assert edits.deleted == {"jp-c1": Reason.EXPIRED}
    assert edits.below == {"jp-c1": ()}
    assert edits.scope == {"jp-c1"}
    nothing = edits_of(Collect(), board_of(stored(C, other), here(C, other), agreed_on(C)))
    assert nothing.scope.isdisjoint({"jp-c3", "jp-c4"})
    assert nothing.scope


def test_a_few_of_many_are_named() -> None:
    children = [f'{n}-x  metadata 09:00 title "X{n}" parent 1  stream 09:00 [1]' for n in range(2, 9)]
    for count, end in ((5, "X6 (jp-c6)"), (6, "X6 (jp-c6) and 1 more"), (7, "X6 (jp-c6) and 2 more")):
        there = [A, *children[:count]]
        with pytest.raises(RefusedError) as refused:
            plan_of(stored(*there), here(), agreed_on(), Policy(request=Remove(("jp-c1",))))
        assert f"has {count} descendants: " in str(refused.value)
        assert str(refused.value).endswith(end)
        assert [hint.rpartition(" ")[2] for hint in refused.value.hints] == ["--cascade", "--promote"]


BELOW_A = '2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1]'
OTHER = '9-z  metadata 09:00 title "Z"  stream 09:00 [1]'


@pytest.mark.parametrize(
    ("store", "workspace", "message", "way_on"),
    [
        (stored(ONE), here(), "the workspace was emptied; what was here comes back first", "reconcile recover"),
        (
            stored(ONE, OTHER),
            replace(here(OTHER), problems=(Problem("1-a", "denied"),)),
            "its place in the workspace can't be looked at, so nothing is put there",
            "reconcile doctor",
        ),
        (
            stored('1-a  metadata 09:00 title "A"', OTHER),
            here(OTHER),
            "the store hasn't all of its files, so it can't be put into the workspace",
            "reconcile status jp-c1",
        ),
    ],
)
def test_what_cannot_be_projected_says_why(store: Snapshot, workspace: Snapshot, message: str, way_on: str) -> None:
    policy = Policy(request=Project(("jp-c1",)))
    held = plan_of(store, workspace, agreed_on(ONE, OTHER), policy).held
    assert [(item.message, item.resolve) for item in held if item.conversation == "jp-c1"] == [(message, (way_on,))]


def test_what_lies_below_something_broken_or_obstructed_says_what_that_is() -> None:
    policy, store = Policy(request=Project(("jp-c2",))), stored(ONE, BELOW_A)
    broken = plan_of(store, here(ONE, '1-a/events.json  09:00 "["'), agreed_on(ONE), policy).held
    said = {item.conversation: item.message for item in broken}
    assert said["jp-c2"] == "it lies below jp-c1, which isn't whole here"
    obstructed = plan_of(store, here(ONE, '1-a/conversations  09:00 "x"'), agreed_on(ONE), policy).held
    assert [item.reason for item in obstructed] == [Reason.OBSTRUCTED]
