"""What the values say of themselves: plans, parts, and what is remembered of some conversations."""

from __future__ import annotations

import inspect
from collections import Counter
from importlib import import_module
from pkgutil import walk_packages

import pytest
from msgspec import Struct
from msgspec.structs import replace

from reconcile import model, planning
from reconcile.model.baseline import (
    AsideKind,
    AsideRecord,
    Baseline,
    ConversationRecord,
    Intent,
    IntentKind,
    private_of,
    records_of,
)
from reconcile.model.format import EventSelection
from reconcile.model.options import Prefer, Take
from reconcile.model.past_run import LaterChanges, changed_since
from reconcile.model.plan import Action, Item, Kind, Note, Plan, Precondition, counted_as, states_of
from reconcile.model.policy import GcRequest, Policy
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import METADATA, STREAM, Foreign, Place, Side, is_same_directory, nested_git
from tests.support.formats import notes
from tests.support.scenarios.building import agreed_on, here, plan_of, stored

COLLECTED = {"Changes", "PlanningContext"}
"""The values that a run fills bit by bit."""
MANY = {
    "model.plan": {"Action", "Heading", "Precondition", "Rival", "Write"},
    "model.snapshot": {"Beginning", "Copy", "Event", "Fault", "File", "Metadata", "ParentRef", "Place", "Stream"}
    | {"Unreadable"},
    "model.units": {"Unit"},
    "planning.builder": {"Put", "Step"},
    "planning.rules.content": {"Verdict"},
    "planning.rules.presence": {"Presence"},
    "planning.rules.tree": {"Parentage"},
    "planning.rules.views": {"SideView", "View"},
    "planning.simulate": {"FileState"},
}
"""The values of which there is one for each file, event, step or conversation."""
VALUES = [
    value
    for package in (model, planning)
    for module in walk_packages(package.__path__, f"{package.__name__}.")
    for value in vars(import_module(module.name)).values()
    if inspect.isclass(value) and issubclass(value, Struct) and value.__module__ == module.name
]


def test_no_value_changes_once_it_is_made() -> None:
    """So that a plan can be compared, and kept, whatever is made of its parts."""
    assert {value.__name__ for value in VALUES if not value.__struct_config__.frozen} == COLLECTED


def test_the_garbage_collector_need_not_look_at_the_values_of_which_there_are_many() -> None:
    found: dict[str, set[str]] = {}
    for value in VALUES:
        if not value.__struct_config__.gc:
            found.setdefault(value.__module__.removeprefix("reconcile."), set()).add(value.__name__)
    assert found == MANY


A = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
B, C, D = (A.replace("1-a", f"{number}-x") for number in (2, 3, 4))


def test_a_summary_counts_states_steps_and_what_is_left() -> None:
    baseline = agreed_on(A, B, C, D)
    newer = [each.replace("stream 09:00 [1]", "stream 10:00 [1 2]") for each in (A, B)]
    broken = '3-x/events.json  09:00 "["'
    behind = D.replace("stream 09:00 [1]", "stream 09:30 []")
    found = plan_of(stored(A, B, C, D), here(*newer, C, broken, behind), baseline).summary()
    assert found == {"changing": 2, "open": 2, "copy": 2, "age": 1, "held": 1, "aside": 1} | {
        "changing": found["changing"],
        "open": found["open"],
    }
    assert found["changing"] + found["open"] == 4


def test_a_part_is_whole_where_nothing_limits_it() -> None:
    assert EventSelection().whole
    assert not any(
        part.whole for part in (EventSelection(from_ns=0), EventSelection(until_ns=0), EventSelection(last=0))
    )


def test_everything_that_is_remembered_of_a_conversation_and_nothing_of_others() -> None:
    kept, undone = AsideRecord(AsideKind.KEPT, "a", "b"), AsideRecord(AsideKind.UNDONE, "c", "d")
    baseline = replace(
        agreed_on(A, B),
        intents={"jp-c1": Intent(IntentKind.PROJECTED)},
        parents={"jp-c1": "jp-c2", "jp-c2": None},
        tombstones={"jp-c1": frozenset({"x"})},
        asides={("jp-c1", METADATA): kept, ("jp-c1", STREAM): undone, ("jp-c2", STREAM): kept},
    )
    assert records_of(baseline, ["jp-c1"]) == {
        "jp-c1": ConversationRecord(
            agreed=baseline.agreed["jp-c1"],
            intent=Intent(IntentKind.PROJECTED),
            parent="jp-c2",
            parent_known=True,
            tombstone=frozenset({"x"}),
            asides={METADATA: kept, STREAM: undone},
        )
    }
    void = records_of(baseline, ["jp-c1"], ["jp-c1"])["jp-c1"]
    assert void == replace(records_of(baseline, ["jp-c1"])["jp-c1"], agreed=None), "its store was lost"
    assert records_of(baseline, ["jp-c2"])["jp-c2"].parent_known
    assert records_of(Baseline(), ["jp-c2"]) == {"jp-c2": ConversationRecord()}


HISTORY = ("old", "b1+e1", "b2+e1", "b2+e2")
SUPERSEDED = {
    "the newest": ("b2+e2", False),
    "an earlier one": ("b1+e1", True),
    "earlier events beside another configuration": ("b9+e1", True),
    "the newest events beside an earlier configuration": ("b1+e2", True),
    "the newest events beside another configuration": ("b9+e2", False),
    "the newest events beside none": ("e2", False),
    "earlier events beside none": ("e1", True),
    "events of the legacy form beside a configuration": ("b2+old", True),
    "other events": ("b1+e9", False),
    "other events beside none": ("e9", False),
    "nothing": (None, False),
}


@pytest.mark.parametrize(("digest", "old"), SUPERSEDED.values(), ids=SUPERSEDED)
def test_an_older_version_is_known_by_its_events_whatever_lies_beside_them(digest: str | None, old: bool) -> None:
    baseline = Baseline(history={("jp-c1", STREAM): HISTORY})
    assert baseline.superseded("jp-c1", STREAM, digest) is baseline.superseded("jp-c1", STREAM, digest, digest) is old
    assert not baseline.superseded("jp-c2", STREAM, digest)
    assert not baseline.superseded("jp-c1", METADATA, digest)


def test_metadata_from_before_its_parent_is_known_without_the_parent() -> None:
    baseline = Baseline(history={("jp-c1", METADATA): ("first", "second", "with parent")})
    assert baseline.superseded("jp-c1", METADATA, "first, parent put back", "first")
    assert not baseline.superseded("jp-c1", METADATA, "with parent", "first"), "only the parent was stripped"
    assert not baseline.superseded("jp-c1", METADATA, "edited", "edited too")


def test_a_wish_is_a_projection_that_nothing_led_to() -> None:
    assert Intent(IntentKind.PROJECTED).is_wish
    others = (
        Intent(IntentKind.LOCAL),
        Intent(IntentKind.REMOVED),
        Intent(IntentKind.PROJECTED, waits_for="jp-c9"),
        Intent(IntentKind.PROJECTED, place="1-a"),
    )
    assert not any(intent.is_wish for intent in others)
    assert [intent.is_noticed for intent in (*others, Intent(IntentKind.PROJECTED))].count(False) == 2


def test_the_newest_events_beside_an_earlier_configuration_are_old_where_the_newest_has_none() -> None:
    baseline = Baseline(history={("jp-c1", STREAM): ("b1+e1", "e2")})
    assert [baseline.superseded("jp-c1", STREAM, digest) for digest in ("b1+e2", "b9+e2", "e2")] == [True, False, False]


def test_a_recovery_is_no_obstacle_and_is_named_while_it_is_undone() -> None:
    later = {"jp-c1": ("r2",), "jp-c2": ("r2", "r3"), "jp-c3": ("r2",)}
    found = changed_since("r1", later, {"r1": None, "r2": None, "r3": "r2"}, {}, {}, {"r2": ("jp-c1", "jp-c2")})
    assert found == LaterChanges({"jp-c3": "r2"}, frozenset(), recovered={"jp-c2": "r2"})


def test_a_later_run_of_another_checkout_counts_where_it_changed_shared_data() -> None:
    later = {"jp-c1": ("r2",), "jp-c3": ("r2",)}
    found = changed_since("r1", later, {"r1": None, "r2": None}, {}, {"r2": ("jp-c3",)})
    assert found == LaterChanges({"jp-c3": "r2"}, frozenset())


PLAIN = Policy()
SPECIAL: dict[str, tuple[Policy, bool]] = {
    "a request": (Policy(request=GcRequest()), False),
    "a selection": (Policy(only=frozenset({"jp-c1"})), False),
    "a subtree": (Policy(below=frozenset({"jp-c1"})), False),
    "a decision": (Policy(decisions={"jp-c1": Take.STORE}), False),
    "a permission": (Policy(accept_bulk=True), True),
    "a repair": (Policy(mend=frozenset({"index"})), True),
    "an answer": (Policy(choices={("jp-c1", STREAM): Take.STORE}), True),
    "a secret that is allowed": (Policy(allow_secrets={"jp-c1": None}), True),
    "a side": (Policy(prefer=Prefer.STORE), True),
}


@pytest.mark.parametrize(("policy", "unlimited"), SPECIAL.values(), ids=SPECIAL)
def test_a_plain_run_is_without_a_request_and_without_a_wish(policy: Policy, unlimited: bool) -> None:
    assert (policy.is_plain, policy.is_unlimited) == (False, unlimited)
    assert (PLAIN.is_plain, PLAIN.is_unlimited) == (True, True)


def test_what_an_action_expects_of_its_target_is_inside() -> None:
    at = [Place(Side.STORE, path) for path in ("1-a", "1-a/x", "1-ab/x")] + [Place(Side.WORKSPACE, "1-a/x")]
    action = Action(
        id="1",
        kind=Kind.MOVE,
        conversation="jp-c1",
        title=None,
        unit=METADATA,
        reason=Reason.LAYOUT,
        target=at[0],
        expect=tuple(Precondition(place, 0, 0, None) for place in at),
    )
    assert [expect.place for expect in action.inside] == at[:2]
    assert [expect.place for expect in action.beside] == at[2:]


def test_an_item_says_its_message_without_its_place() -> None:
    item = Item(conversation="jp-c1", title=None, unit=METADATA, reason=Reason.INVALID, message="None: no name")
    assert item.words == "None: no name"
    assert replace(item, message="store:1-a/x: broken", place=Place(Side.STORE, "1-a/x")).words == "broken"


def test_a_plan_speaks_of_the_conversations_of_its_items_and_notes() -> None:
    item = Item(conversation="jp-c1", title=None, unit=METADATA, reason=Reason.INVALID, message="broken")
    noted = tuple(Note(conversation=each, reason=Reason.FOREIGN, message="") for each in ("jp-c3", None))
    plan = Plan(layout="nested", held=(item,), aside=(replace(item, conversation="jp-c2"),), notes=noted)
    assert plan.spoken_of == {"jp-c1", "jp-c2", "jp-c3"}


def test_a_directory_is_known_by_its_whole_identity_or_by_the_recorded_part_of_it() -> None:
    identity = "8:17:3"
    recorded = {"8:17:3": True, "8:17": True, "8:17:4": False, "8:18": False}
    assert {each: is_same_directory(identity, each) for each in recorded} == recorded


def test_the_name_of_a_record_is_its_whole_path() -> None:
    (copy,) = here("1-a  metadata 09:00").copies
    assert replace(copy, path="9-z/conversations/1-a").dirname == "1-a"
    assert replace(copy, path="trip/a.md", conversation="trip/a.md").dirname == "trip/a.md"


def test_a_repository_is_a_special_entry_of_that_name() -> None:
    assert nested_git("1-a/.git", directory=True).repository
    assert not Foreign("1-a/.git", "a file").repository
    assert not Foreign("1-a/pipe", "a pipe", special=True).repository


class Together(notes.notes.NotesFormat):  # type: ignore[misc, name-defined]
    """A format in which `a-1` counts with `a`, and `x` with nothing."""

    def counted_as(self, conversation: str) -> str | None:
        return None if conversation == "x" else conversation.partition("-")[0]


COUNTED: dict[str, tuple[dict[str, str], dict[str, int]]] = {
    "all in sync": ({"a": "in-sync", "a-1": "in-sync"}, {"in-sync": 1}),
    "one that belongs to it is open": ({"a": "in-sync", "a-1": "in-sync", "a-2": "open"}, {"open": 1}),
    "its own state comes first": ({"a-1": "open", "a": "removed", "a-2": "changing"}, {"removed": 1}),
    "of others the first": ({"a-1": "open", "a-2": "changing", "a": "in-sync"}, {"open": 1}),
    "one that counts with nothing": ({"a": "in-sync", "x": "open"}, {"in-sync": 1}),
    "two": ({"b": "open", "a": "in-sync"}, {"in-sync": 1, "open": 1}),
}


@pytest.mark.parametrize(("counted", "states"), COUNTED.values(), ids=COUNTED)
def test_a_record_counts_once_with_those_that_belong_to_it(counted: dict[str, str], states: dict[str, int]) -> None:
    assert states_of(counted, Together()) == tuple(states.items())
    assert states_of(counted) == tuple(sorted(Counter(counted.values()).items()))
    assert [counted_as(each, Together()) for each in ("a-1", "x")] == ["a", "x"]
    assert counted_as("a-1", None) == "a-1"


def test_what_left_with_a_local_one_is_private_however_deep_it_was() -> None:
    waits = {"b": "a", "c": "b", "e": "d", "f": "gone", "x": "y", "y": "x"}
    intents = {id_: Intent(IntentKind.PROJECTED, waits_for=above) for id_, above in waits.items()}
    intents |= {"a": Intent(IntentKind.LOCAL), "d": Intent(IntentKind.REMOVED), "g": Intent(IntentKind.PROJECTED)}
    assert private_of(intents) == {"a", "b", "c"}
