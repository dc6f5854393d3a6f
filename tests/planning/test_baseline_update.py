"""What is remembered after a run: what was achieved, never what was meant (docs/design/run.md#rule-51)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconcile.model.baseline import (
    LOST,
    AsideKind,
    AsideRecord,
    Baseline,
    BaselineEntry,
    CommittedPlace,
    ConversationRecord,
    DecidedUnit,
    Intent,
    IntentKind,
    PendingRequest,
    Verb,
)
from reconcile.model.options import Take
from reconcile.model.plan import Action, Item, Kind, Plan, Write
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import METADATA, STREAM, WHOLE, Place, Problem, Side, Snapshot
from reconcile.planning.baseline_update import Changes, brought, update_baseline
from reconcile.planning.rules.guards import Sides, Whole
from reconcile.planning.rules.views import PLACE
from tests.support.formats import notes as records
from tests.support.scenarios.building import agreed_on, here, plan_of, seen, stored, unreadable, view_of
from tests.support.scenarios.pure_level import RULES

ONE = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
TWO = '2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1]'
THREE = '3-c  metadata 09:00 title "C"  stream 09:00 [1]'
PLAN = Plan(layout="nested")


def folded(store: Snapshot, workspace: Snapshot, baseline: Baseline, plan: Plan = PLAN) -> Changes:
    return update_baseline(store, workspace, baseline, plan, RULES)


def digest_of(line: str, unit: str) -> str:
    digest = view_of(stored(line), here(), conversation=f"jp-c{line[0]}").store.digest(unit)
    assert digest is not None
    return digest


def test_after_a_run_without_changes_there_is_nothing_to_remember() -> None:
    assert folded(stored(ONE), here(ONE), agreed_on(ONE)) == Changes()


def test_a_first_run_remembers_what_both_sides_hold_equal() -> None:
    nested = f"1-a/conversations/{TWO}"
    changes = folded(stored(ONE, TWO), here(ONE, nested), Baseline())
    agreed = changes.agreed["jp-c2"]
    assert agreed is not None
    assert agreed.units == {METADATA: digest_of(TWO, METADATA), STREAM: digest_of(TWO, STREAM)}
    assert (agreed.parent, agreed.title, agreed.container) == ("jp-c1", "B", "jp-c1")
    assert agreed.place == "1-a/conversations/2-b"
    assert changes.parents == {"jp-c2": "jp-c1"}
    assert changes.history["jp-c1", STREAM] == digest_of(ONE, STREAM)
    assert (changes.store_identity, changes.layout) == ("store:0", "nested")


def test_a_unit_that_still_differs_leaves_the_baseline_as_it_was() -> None:
    baseline = agreed_on(ONE)
    changes = folded(stored(ONE), here(ONE.replace("[1]", "[1 2]")), baseline)
    assert changes == Changes()


def test_a_unit_that_is_equal_is_adopted_though_another_one_differs() -> None:
    both = ONE.replace("[1]", "[1 2]")
    changes = folded(stored(both), here(both.replace('"A"', '"C"')), agreed_on(ONE))
    agreed = changes.agreed["jp-c1"]
    assert agreed is not None
    assert agreed.units == {METADATA: digest_of(ONE, METADATA), STREAM: digest_of(both, STREAM)}
    assert agreed.title == "A"
    assert changes.history == {("jp-c1", STREAM): digest_of(both, STREAM)}


def test_one_directory_of_two_is_no_agreement_where_the_other_speaks() -> None:
    store = stored(ONE, "1-c  metadata 08:00  stream 11:00 [1 2]")
    changes = folded(store, here(ONE), Baseline())
    agreed = changes.agreed["jp-c1"]
    assert agreed is not None
    assert set(agreed.units) == {METADATA}


def test_nor_while_another_directory_of_the_workspace_speaks() -> None:
    newer, newest = ONE.replace("09:00 [1]", "10:00 [1 2]"), ONE.replace("09:00 [1]", "11:00 [1 3]")
    changes = folded(stored(newer), here(newer, newest.replace("1-a", "1-z")), agreed_on(ONE))
    assert ("jp-c1", STREAM) not in changes.history
    assert "jp-c1" not in changes.agreed


def test_nothing_in_common_is_no_baseline() -> None:
    changes = folded(stored(ONE), here('1-a  metadata 09:00 title "C"  stream 09:00 [2]'), Baseline())
    assert changes.agreed == {}


def test_the_store_alone_has_a_parent_and_no_baseline() -> None:
    changes = folded(stored(TWO), here(), Baseline())
    assert (changes.parents, changes.agreed) == ({"jp-c2": "jp-c1"}, {})


def test_what_is_in_the_workspace_alone_is_not_remembered() -> None:
    assert replace(folded(stored(), here(ONE), Baseline()), store_identity=None, layout=None) == Changes()


def test_a_title_is_agreed_on_once_the_directories_have_its_name() -> None:
    baseline = agreed_on(ONE)
    retitled = ONE.replace('"A"', '"C"')
    held = folded(stored(retitled), here(retitled), baseline).agreed["jp-c1"]
    renamed = retitled.replace("1-a", "1-c")
    done = folded(stored(renamed), here(renamed), baseline).agreed["jp-c1"]
    assert held is not None
    assert done is not None
    assert (held.title, done.title) == ("A", "C")


def test_a_displaced_directory_keeps_its_agreed_container() -> None:
    baseline = agreed_on(ONE, f"1-a/conversations/{TWO}")
    edited = TWO.replace("[1]", "[1 2]")
    for plan, container in ((PLAN, None), (replace(PLAN, displaced=frozenset({"jp-c2"})), "jp-c1")):
        agreed = folded(stored(ONE, edited), here(ONE, edited), baseline, plan).agreed["jp-c2"]
        assert agreed is not None
        assert (agreed.container, agreed.place) == (container, "2-b")


def test_of_two_directories_the_one_that_the_plan_keeps_is_remembered() -> None:
    workspace = here(ONE, ONE.replace("1-a", "1-z"))
    for plan, place in ((PLAN, "1-a"), (replace(PLAN, places=(("jp-c1", "1-z"),)), "1-z")):
        agreed = folded(stored(ONE), workspace, Baseline(), plan).agreed["jp-c1"]
        assert agreed is not None
        assert agreed.place == place


def test_gone_on_both_sides_is_forgotten() -> None:
    baseline = replace(agreed_on(ONE, TWO), intents={"jp-c1": Intent(IntentKind.REMOVED)})
    changes = folded(stored(TWO), here(TWO), baseline)
    assert changes.agreed["jp-c1"] is None
    assert changes.intents == {"jp-c1": None}


def test_that_it_is_local_is_not_forgotten() -> None:
    baseline = replace(agreed_on(ONE, TWO), intents={"jp-c1": Intent(IntentKind.LOCAL)})
    assert folded(stored(TWO), here(TWO), baseline).intents == {}


def test_of_what_was_removed_but_for_an_archived_copy_nothing_is_remembered() -> None:
    beside = TWO.replace(" parent 1", "")
    baseline = agreed_on(ONE, beside)
    archived, live = stored(f".archive/{ONE}", beside), stored(ONE, beside)
    removed = replace(PLAN, tombstones=(("jp-c1", ("x",)),))
    assert folded(archived, here(beside), baseline, removed).agreed == {"jp-c1": None}
    for store, plan in ((archived, PLAN), (archived, replace(PLAN, tombstones=(("jp-c1", ()),))), (live, removed)):
        assert "jp-c1" not in folded(store, here(beside), baseline, plan).agreed


def test_nothing_is_forgotten_of_what_was_not_seen() -> None:
    baseline = agreed_on(ONE, TWO)
    hidden = replace(here(TWO), problems=(Problem("1-a", "denied"),))
    trashed = stored(TWO, f".trash/{ONE}")
    part = replace(PLAN, about=frozenset({"jp-c1"}))
    assert "jp-c1" not in folded(stored(TWO), hidden, baseline).agreed
    assert "jp-c1" not in folded(trashed, here(TWO), baseline).agreed
    assert "jp-c1" not in folded(stored(TWO), here(TWO), baseline, part).agreed


def test_an_intent_ends_when_the_directory_is_back() -> None:
    baseline = replace(agreed_on(ONE), intents={"jp-c1": Intent(IntentKind.REMOVED)})
    assert folded(stored(ONE), here(ONE), baseline).intents == {"jp-c1": None}


def test_local_sticks() -> None:
    baseline = replace(agreed_on(ONE), intents={"jp-c1": Intent(IntentKind.LOCAL)})
    assert folded(stored(ONE), here(ONE), baseline).intents == {}


def test_what_the_store_calls_local_is_remembered_as_that() -> None:
    local = ONE.replace('"A"', '"A" local')
    assert folded(stored(local), here(local), Baseline()).intents == {"jp-c1": Intent(IntentKind.LOCAL)}


def test_what_the_plan_has_decided_is_remembered_and_what_is_known_already_is_not() -> None:
    removed, projected = Intent(IntentKind.REMOVED, place="1-a"), Intent(IntentKind.PROJECTED)
    record = AsideRecord(AsideKind.KEPT, "x", "y")
    plan = replace(
        PLAN,
        intents=(("jp-c1", removed), ("jp-c2", projected)),
        asides=((("jp-c1", STREAM), record),),
        tombstones=(("jp-c9", ("x",)),),
    )
    baseline = replace(agreed_on(ONE), intents={"jp-c2": projected})
    changes = folded(stored(ONE), here(), baseline, plan)
    assert changes.intents == {"jp-c1": removed}
    assert changes.asides == {("jp-c1", STREAM): record}
    assert changes.tombstones == {"jp-c9": ("x",)}


def test_a_parent_that_jp_has_stripped_is_still_the_parent() -> None:
    baseline = agreed_on(ONE, f"1-a/conversations/{TWO}")
    stripped = TWO.replace(" parent 1", "")
    assert folded(stored(ONE, stripped), here(ONE), baseline).parents == {}


def test_a_parent_that_was_taken_away_on_purpose_is_none() -> None:
    baseline = agreed_on(ONE, f"1-a/conversations/{TWO}")
    stripped = TWO.replace(" parent 1", "")
    plan = replace(PLAN, rooted=("jp-c2",))
    assert folded(stored(ONE, stripped), here(ONE), baseline, plan).parents == {"jp-c2": None}


def test_a_parent_that_cannot_be_read_is_still_the_parent() -> None:
    baseline = agreed_on(ONE, f"1-a/conversations/{TWO}")
    for broken in (TWO.replace("parent 1", "parent raw true"), '2-b/metadata.json  09:00 "{"'):
        assert folded(stored(ONE, broken), here(ONE), baseline).parents == {}


def test_what_is_equal_down_to_the_times_is_clean_from_now_on() -> None:
    nested, later = f"1-a/conversations/{TWO}", THREE.replace("09:00", "10:00")
    changes = folded(stored(ONE, TWO, THREE), here(ONE, nested, later), Baseline())
    assert changes.agreed.keys() == {"jp-c1", "jp-c2", "jp-c3"}
    assert changes.known_clean == {"jp-c1", "jp-c2"}


def test_a_record_that_exists_again_has_no_tombstone() -> None:
    files = {"a.md": b"a"}
    entry = BaselineEntry({METADATA: RULES.digest(b"a")}, None, None, None, "a.md")
    known = Baseline(agreed={"a.md": entry}, tombstones={"a.md": frozenset({"x"})})
    sides = records.side(Side.STORE, files), records.side(Side.WORKSPACE, files)
    assert update_baseline(*sides, known, PLAN, records.RULES).tombstones == {"a.md": None}


def test_a_move_that_was_not_done_leaves_the_title_as_it_is() -> None:
    plan = plan_of(stored(ONE, TWO), here(ONE, TWO))
    (move,) = plan.actions
    assert (move.kind, move.target.path) == (Kind.MOVE, "1-a/conversations/2-b")
    agreed = update_baseline(stored(ONE, TWO), here(ONE, TWO), Baseline(), plan, RULES, [move.id]).agreed["jp-c2"]
    assert agreed is not None
    assert (agreed.title, agreed.place) == ("B", "2-b")


OPEN = (stored(ONE.replace("[1]", "[1 2]")), here(ONE.replace("[1]", "[1 3]")))
DONE = (stored(ONE), here(ONE))
PUT_OFF = replace(PLAN, put_off=frozenset({"jp-c1"}))
RESOLVES = {
    "still open, and the run was about it": (OPEN, PLAN, True),
    "still open, and put off": (OPEN, PUT_OFF, False),
    "still open, and the run was about another one": (OPEN, replace(PLAN, about=frozenset({"jp-c2"})), False),
    "settled": (DONE, PLAN, True),
    "settled, and put off": (DONE, PUT_OFF, True),
}


@pytest.mark.parametrize(("sides", "plan", "ends"), RESOLVES.values(), ids=RESOLVES)
def test_a_decision_waits_only_while_a_part_of_it_was_put_off(
    sides: tuple[Snapshot, Snapshot], plan: Plan, ends: bool
) -> None:
    key, view = ("jp-c1", Verb.RESOLVE), view_of(*OPEN)
    decided = DecidedUnit(STREAM, (view.store.raw(STREAM), view.workspace.raw(STREAM)), Take.STORE.value)
    known = replace(agreed_on(ONE), waiting={key: PendingRequest(decided=(decided,))})
    assert folded(*sides, known, plan).waiting == ({key: None} if ends else {})


def test_a_request_about_what_is_nowhere_ends() -> None:
    """Also where the store is away."""
    key = "jp-c9", Verb.REMOVE
    known = replace(agreed_on(ONE), waiting={key: PendingRequest()})
    other = seen(Side.STORE, [ONE], identity="store:1")
    assert folded(other, here(ONE), known).waiting == {key: None}


def test_another_store_and_another_layout_are_remembered() -> None:
    store = seen(Side.STORE, [ONE], identity="store:1")
    flat = replace(PLAN, layout="flat")
    changes = folded(store, here(ONE), agreed_on(ONE), flat)
    assert (changes.store_identity, changes.layout) == ("store:1", "flat")
    part = replace(flat, about=frozenset({"jp-c1"}))
    changes = folded(store, here(ONE), replace(agreed_on(ONE), store_identity="store:0"), part)
    assert (changes.store_identity, changes.layout) == (None, None)
    first = folded(store, here(ONE), replace(agreed_on(ONE), store_identity=None), part)
    assert (first.store_identity, first.layout) == ("store:1", None)


GONE = Snapshot(Side.STORE, exists=False, identity="", copies=())
EMPTY = stored()
MISSED = replace(agreed_on(ONE), store_identity=LOST)
LOSSES: dict[str, tuple[Snapshot, Baseline, frozenset[str] | None, tuple[str | None, bool]]] = {
    "it isn't there": (GONE, agreed_on(ONE), None, (LOST, True)),
    "it can't be read": (
        replace(GONE, problems=(Problem("", "permission denied"),)),
        replace(agreed_on(ONE), store_identity="store:0"),
        None,
        (None, False),
    ),
    "it isn't there, and nothing was agreed on": (GONE, Baseline(store_identity="store:0"), None, (LOST, False)),
    "it wasn't there before": (GONE, Baseline(), None, (None, False)),
    "it is empty": (EMPTY, agreed_on(ONE), None, (LOST, True)),
    "it is empty, of which a part of the plan knows": (EMPTY, agreed_on(ONE), frozenset({"jp-c1"}), (LOST, True)),
    "it was lost, and is refilled": (stored(ONE), MISSED, None, ("store:0", False)),
    "it was lost, and is refilled in part": (stored(ONE), MISSED, frozenset({"jp-c1"}), (None, False)),
}


@pytest.mark.parametrize(("store", "baseline", "about", "expected"), LOSSES.values(), ids=LOSSES)
def test_what_is_remembered_of_a_lost_store(
    store: Snapshot, baseline: Baseline, about: frozenset[str] | None, expected: tuple[str | None, bool]
) -> None:
    changes = folded(store, here(ONE), baseline, replace(PLAN, about=about))
    assert (changes.store_identity, changes.store_lost) == expected


def test_a_store_from_which_a_command_has_removed_the_last_conversation_is_not_lost() -> None:
    key = ("jp-c1", Verb.REMOVE)
    known = replace(agreed_on(ONE), waiting={key: PendingRequest()})
    changes = folded(EMPTY, here(), known, replace(PLAN, tombstones=(("jp-c1", ("digest",)),)))
    assert (changes.store_identity, changes.store_lost, changes.waiting) == (None, False, {key: None})
    restored = folded(EMPTY, here(), known, replace(PLAN, tombstones=(("jp-c1", ()),)))
    assert (restored.store_identity, restored.store_lost) == (LOST, True)


LEFT_OUT: dict[str, dict[str, Any]] = {
    "somebody is writing it": {"moving": frozenset({"jp-c1"})},
    "a saved plan lacks it": {"put_off": frozenset({"jp-c1"})},
}


@pytest.mark.parametrize("changes", LEFT_OUT.values(), ids=LEFT_OUT)
def test_another_store_is_not_known_as_long_as_something_was_left_out(changes: dict[str, Any]) -> None:
    other, plan = seen(Side.STORE, [ONE], identity="store:1"), replace(PLAN, **changes)
    assert folded(other, here(ONE), agreed_on(ONE), plan).store_identity is None
    assert folded(stored(ONE), here(ONE), replace(agreed_on(ONE), store_identity=None), plan).store_identity


def test_the_generation_of_the_known_store_is_remembered_whatever_was_left_out() -> None:
    plan = replace(PLAN, put_off=frozenset({"jp-c1"}))
    store = seen(Side.STORE, [ONE], identity="store:0:7")
    assert folded(store, here(ONE), agreed_on(ONE), plan).store_identity == "store:0:7"


def test_a_loss_that_the_plan_has_found_is_remembered() -> None:
    assert folded(stored(ONE), here(ONE), agreed_on(ONE), replace(PLAN, store_lost=True)).store_lost


@pytest.mark.parametrize(
    ("line", "known"),
    [(ONE, True), (ONE.replace("[1]", "[1 2]"), False), (ONE.partition("  stream")[0], True)],
)
def test_another_store_is_not_known_as_long_as_another_version_there_is_held(line: str, known: bool) -> None:
    item = Item(conversation="jp-c1", title=None, unit=STREAM, reason=Reason.INVALID, message="found no list")
    plan = replace(PLAN, held=(item, replace(item, conversation=None), replace(item, conversation="jp-c9")))
    changes = folded(seen(Side.STORE, [line], identity="store:1"), here(ONE), agreed_on(ONE), plan)
    assert changes.store_identity == ("store:1" if known else None)
    newer = TWO.replace("[1]", "[1 2]")
    beside = folded(seen(Side.STORE, [line, newer], identity="store:1"), here(ONE, TWO), agreed_on(ONE, TWO), plan)
    assert beside.store_identity == ("store:1" if known else None), "nothing is held of the other one"


def test_what_another_store_lacks_is_not_agreed_on_any_more() -> None:
    noted = '1-a/NOTE.md  09:00 "x"'
    baseline = agreed_on(ONE, noted)
    assert folded(stored(ONE), here(ONE, noted), baseline).agreed == {}
    changes = folded(seen(Side.STORE, [ONE], identity="store:1"), here(ONE, noted), baseline)
    (agreed,) = changes.agreed.values()
    assert agreed is not None
    assert agreed.units.keys() == {METADATA, STREAM}


@pytest.mark.parametrize(
    ("reason", "newest"), [(Reason.REFILL, "new"), (Reason.EXTERNAL, "new"), (Reason.DECIDED, "old")]
)
def test_an_old_version_that_the_store_lacked_does_not_become_the_newest(reason: Reason, newest: str) -> None:
    """Another checkout has the newer one, and saves it when it sees that the store has the old one."""
    baseline = agreed_on(ONE)
    digest = baseline.agreed["jp-c1"].units[STREAM]
    baseline = replace(baseline, agreed={}, history={("jp-c1", STREAM): (digest, "new")})
    at = Place(Side.STORE, "1-a")
    action = Action(id="1", kind=Kind.COPY, conversation="jp-c1", title=None, unit=WHOLE, reason=reason, target=at)
    changes = folded(stored(ONE), here(ONE), baseline, replace(PLAN, actions=(action,)))
    assert changes.history.get(("jp-c1", STREAM)) == (None if newest == "new" else digest)


@pytest.mark.parametrize("workspace", [TWO, ONE, ONE.replace('"A"', '"Z"')], ids=["absent", "equal", "edited"])
def test_what_a_killed_undo_has_put_back_is_the_newest_version(workspace: str) -> None:
    """Repeated, it has no step left, so that only the restored entry tells it."""
    agreed = agreed_on(ONE).agreed["jp-c1"]
    history = {("jp-c1", unit): (agreed.units[unit], "undone") for unit in (METADATA, STREAM)}
    baseline = Baseline(agreed={"jp-c1": agreed}, history=history)
    plan = replace(PLAN, remembered=(("jp-c1", ConversationRecord(agreed=agreed)),), about=frozenset({"jp-c1"}))
    assert folded(stored(ONE), here(workspace), baseline, plan).history == {
        ("jp-c1", unit): agreed.units[unit] for unit in (METADATA, STREAM)
    }
    edited = ONE.replace('"A"', '"Y"')
    assert folded(stored(edited), here(workspace), baseline, plan).history == {("jp-c1", STREAM): agreed.units[STREAM]}
    assert not folded(stored(ONE), here(workspace), baseline, replace(plan, remembered=())).history


def test_what_a_plan_brings_to_the_store() -> None:
    plan = plan_of(stored(TWO), here(ONE, TWO.replace("09:00", "09:30", 1).replace("B", "C")))
    assert {action.conversation for action in plan.actions} == {"jp-c1", "jp-c2"}
    assert brought(plan) == {"jp-c1"}


def test_a_plan_that_takes_a_removal_back_brings_nothing_that_was_lost() -> None:
    plan = plan_of(stored(TWO), here(ONE, TWO))
    (action,) = [each for each in plan.actions if each.kind is Kind.COPY]
    from_vault = tuple(replace(write, kept="k") for write in action.writes)
    assert brought(plan) == {"jp-c1"}
    assert brought(replace(plan, actions=(replace(action, writes=from_vault),))) == frozenset()
    in_part = (*from_vault[:1], *action.writes[1:])
    assert brought(replace(plan, actions=(replace(action, writes=in_part),))) == frozenset()


def test_a_rename_that_was_not_done_is_still_due_also_where_there_was_no_baseline() -> None:
    store, workspace = stored(ONE.replace("1-a", "1-old")), here(ONE)
    plan = plan_of(store, workspace, Baseline(renames=frozenset({(Side.STORE, "jp-c1")})))
    (action,) = plan.actions
    assert action.kind is Kind.MOVE
    for undone, title in (((), "A"), ((action.id,), None)):
        agreed = update_baseline(store, workspace, Baseline(), plan, RULES, undone).agreed["jp-c1"]
        assert agreed is not None
        assert agreed.title == title
    elsewhere = replace(plan, actions=(), places=())
    for found, title in ((store, None), (stored(ONE), "A")):
        agreed = update_baseline(
            found, workspace, Baseline(renames=frozenset({(Side.STORE, "jp-c1")})), elsewhere, RULES
        ).agreed["jp-c1"]
        assert agreed is not None
        assert agreed.title == title, "a run that isn't about it leaves it due"


def test_a_duplicate_that_was_not_replaced_keeps_its_unit_open() -> None:
    # It can't go, as a child that is held lies in it: so it is to be replaced.
    duplicate = ("1-b  stream 08:00 [1x]", '1-b/conversations/2-b  metadata 09:00 title "B" parent 1')
    store, workspace = stored(ONE), here(ONE, *duplicate)
    action = next(each for each in plan_of(store, workspace).actions if each.unit == STREAM)
    plan = replace(PLAN, actions=(action,), places=(("jp-c1", "1-a"),))
    agreed = update_baseline(store, workspace, Baseline(), plan, RULES, (action.id,)).agreed["jp-c1"]
    assert agreed is not None
    assert set(agreed.units) == {METADATA}


def test_a_duplicate_that_could_not_be_removed_keeps_the_conversation_open() -> None:
    edited, duplicate = ONE.replace("[1]", "[1 2x]"), "1-x  stream 08:00 [1 2y]"
    store, workspace, baseline = stored(edited), here(edited, duplicate), agreed_on(ONE)
    plan = plan_of(store, workspace, baseline)
    (removal,) = (action for action in plan.actions if action.kind is Kind.REMOVE_STALE)
    assert "jp-c1" in update_baseline(store, workspace, baseline, plan, RULES).agreed
    assert "jp-c1" not in update_baseline(store, workspace, baseline, plan, RULES, (removal.id,)).agreed


def test_nothing_is_forgotten_while_something_is_due() -> None:
    nested = f"1-a/conversations/{TWO}"
    five = '5-e  metadata 09:00 title "E"  stream 09:00 [1]'
    baseline = agreed_on(ONE, nested, five)
    store, workspace = stored(TWO, five), here(five)
    plan = plan_of(store, workspace, baseline)
    (action,) = plan.actions
    assert action.kind is Kind.PROJECT
    assert update_baseline(store, workspace, baseline, plan, RULES).agreed["jp-c1"] is None
    assert "jp-c1" not in update_baseline(store, workspace, baseline, plan, RULES, (action.id,)).agreed


def did(kind: Kind, unit: str, side: Side = Side.STORE, kept: tuple[str | None, ...] = (), number: str = "1") -> Action:
    """A step that a plan had, for `ONE`; a move is one from another name."""
    place = Place(side, "1-a")
    writes = tuple(Write(place, None, None, 1, 1, "x", each) for each in kept)
    return Action(
        id=number,
        kind=kind,
        conversation="jp-c1",
        title=None,
        unit=unit,
        reason=Reason.UNDONE,
        source=Place(side, "1-old") if kind is Kind.MOVE else None,
        target=place,
        writes=writes,
    )


def planned(*actions: Action) -> Plan:
    return replace(PLAN, actions=actions)


KNOWN = agreed_on(ONE)
DIGEST = {name: digest_of(ONE, name) for name in (METADATA, STREAM)}
BEFORE = replace(KNOWN, history={("jp-c1", name): (digest, "newer") for name, digest in DIGEST.items()})
"""What both sides hold is the first of two versions."""
RESTORED = {
    "nobody chose it": ((), ()),
    "both units were written": ((did(Kind.COPY, WHOLE),), (METADATA, STREAM)),
    "one unit was written": ((did(Kind.COPY, STREAM),), (STREAM,)),
}


@pytest.mark.parametrize(("actions", "units"), RESTORED.values(), ids=RESTORED)
def test_an_older_version_is_the_newest_again_where_the_run_chose_it(
    actions: tuple[Action, ...], units: tuple[str, ...]
) -> None:
    changes = folded(stored(ONE), here(ONE), BEFORE, planned(*actions))
    assert changes.history == {("jp-c1", unit): DIGEST[unit] for unit in units}
    newest = replace(KNOWN, history={key: ("older", digest) for key, (digest, _) in BEFORE.history.items()})
    assert folded(stored(ONE), here(ONE), newest, planned(*actions)).history == {}


FROM_VAULT = {
    "into the store, all of it": (did(Kind.COPY, WHOLE, kept=("v", "v")), (METADATA, STREAM)),
    "into the store, a part of it": (did(Kind.COPY, WHOLE, kept=(None, "v")), (METADATA, STREAM)),
    "one unit of it": (did(Kind.COPY, METADATA, kept=("v",)), (METADATA,)),
    "from elsewhere": (did(Kind.COPY, WHOLE, kept=(None,)), ()),
    "into the workspace": (did(Kind.PROJECT, WHOLE, Side.WORKSPACE, kept=("v",)), ()),
}


@pytest.mark.parametrize(("action", "units"), FROM_VAULT.values(), ids=FROM_VAULT)
def test_what_the_store_got_from_the_vault_is_its_newest_also_where_the_workspace_has_none(
    action: Action, units: tuple[str, ...]
) -> None:
    changes = folded(stored(ONE, TWO), here(TWO), BEFORE, planned(action))
    assert changes.history == {("jp-c1", unit): DIGEST[unit] for unit in units} | second()
    assert folded(stored(ONE, TWO), here(TWO), replace(BEFORE, history={}), planned(action)).history == second()
    newest = replace(BEFORE, history={key: ("older", digest) for key, (digest, _) in BEFORE.history.items()})
    assert folded(stored(ONE, TWO), here(TWO), newest, planned(action)).history == second()
    broken = stored("1-a  metadata 09:00", TWO)
    assert ("jp-c1", STREAM) not in folded(broken, here(TWO), BEFORE, planned(action)).history


def second() -> dict[tuple[str, str], str]:
    """What is learned of the conversation beside it."""
    return {("jp-c2", name): digest_of(TWO, name) for name in (METADATA, STREAM)}


NOTE, OTHER_NOTE = "extra:NOTE.md", "extra:OTHER.md"
SAVED_NOTES = {
    "saved by this run": (did(Kind.COPY, NOTE), {NOTE}),
    "another one": (did(Kind.COPY, OTHER_NOTE), {OTHER_NOTE}),
    "with all the rest": (did(Kind.COPY, WHOLE), set()),
    "written by nobody": (did(Kind.COPY, STREAM), set()),
    "got from the vault": (did(Kind.COPY, NOTE, kept=("v",)), set()),
}


@pytest.mark.parametrize(("action", "saved"), SAVED_NOTES.values(), ids=SAVED_NOTES)
def test_a_note_that_was_saved_before_its_directory_left_was_here(action: Action, saved: set[str]) -> None:
    notes = '1-a/NOTE.md  09:00 "x"', '1-a/OTHER.md  09:00 "x"'
    store = stored(ONE, *notes, TWO)
    agreed = folded(store, here(TWO), agreed_on(ONE, TWO), planned(action)).agreed.get("jp-c1")
    assert (set(agreed.units) - set(DIGEST) if agreed else set()) == saved
    if agreed is not None:
        assert DIGEST.items() <= agreed.units.items()
        again = replace(agreed_on(ONE, TWO), agreed={**agreed_on(ONE, TWO).agreed, "jp-c1": agreed})
        assert "jp-c1" not in folded(store, here(TWO), again, planned(action)).agreed
        undone_ = update_baseline(store, here(TWO), agreed_on(ONE, TWO), planned(action), RULES, (action.id,))
        assert "jp-c1" not in undone_.agreed


def test_what_is_as_it_was_agreed_on_is_looked_at_where_the_run_concerned_it() -> None:
    buried = replace(KNOWN, tombstones={"jp-c1": frozenset({"x"})})
    assert folded(stored(ONE), here(ONE), buried).tombstones == {"jp-c1": None}


def test_what_is_gone_and_was_removed_on_purpose_is_forgotten_by_a_run_over_a_part_too() -> None:
    other = '8-h  metadata 09:00 title "H"  stream 09:00 [1]'
    baseline = replace(agreed_on(ONE, other), tombstones={"jp-c1": frozenset({"x"})})
    part = replace(PLAN, about=frozenset({"jp-c1"}))
    assert folded(stored(other), here(other), baseline, part).agreed == {"jp-c1": None}


def test_a_baseline_ends_with_the_store_that_it_spoke_of_unless_it_was_saved_anew() -> None:
    plan = replace(PLAN, voided=("jp-c1", "jp-c2"))
    changes = folded(stored(ONE), here(ONE, TWO), agreed_on(ONE, TWO), plan)
    assert changes.agreed == {"jp-c2": None}


def test_only_a_run_over_everything_settles_the_layout() -> None:
    part = replace(PLAN, about=frozenset({"jp-c1"}))
    assert folded(stored(ONE), here(ONE), Baseline(), part).layout is None


def undone(action: Action, store: Snapshot, workspace: Snapshot, baseline: Baseline) -> BaselineEntry:
    changes = update_baseline(store, workspace, baseline, planned(action), RULES, undone=("1",))
    agreed = changes.agreed["jp-c1"]
    assert agreed is not None
    return agreed


def test_a_title_is_not_agreed_on_where_the_move_was_not_carried_out() -> None:
    for kind, title in ((Kind.MOVE, None), (Kind.AGE, "A")):
        assert undone(did(kind, WHOLE, Side.WORKSPACE), stored(ONE), here(ONE), Baseline()).title == title
    nested = replace(did(Kind.MOVE, WHOLE, Side.WORKSPACE), source=Place(Side.WORKSPACE, "2-b/conversations/1-a"))
    assert undone(nested, stored(ONE), here(ONE), Baseline()).title == "A"


def test_a_new_store_is_not_known_while_a_step_is_undone() -> None:
    baseline = replace(agreed_on(ONE), store_identity="1:1")
    store = replace(stored(ONE), identity="2:2")
    plan = planned(did(Kind.COPY, METADATA))
    for left, identity in ((("1",), None), ((), "2:2")):
        changes = update_baseline(store, here(ONE), baseline, plan, RULES, left)
        assert changes.store_identity == identity


def test_a_unit_that_was_not_written_leaves_the_others_to_be_agreed_on() -> None:
    assert undone(did(Kind.COPY, METADATA), stored(ONE), here(ONE), Baseline()).units == {STREAM: DIGEST[STREAM]}


def test_nothing_of_what_was_agreed_on_is_left_and_nothing_is_said_of_it() -> None:
    agreed = replace(KNOWN.agreed["jp-c1"], units={"extra:GONE.md": "x"})
    baseline = replace(KNOWN, agreed={"jp-c1": agreed})
    changes = folded(stored(ONE), here('1-a  metadata 09:00 title "C"  stream 09:00 [2]'), baseline)
    assert changes.agreed == {}


def test_an_extra_that_is_not_in_the_workspace_is_no_part_of_the_baseline_any_more() -> None:
    """It is the store's alone from then on, and never put back with the conversation."""
    note = '1-a/NOTE.md  09:00 "x"'
    baseline = agreed_on(ONE)
    agreed = replace(baseline.agreed["jp-c1"], units={**DIGEST, "extra:NOTE.md": "x", "extra:GONE.md": "y"})
    baseline = replace(baseline, agreed={"jp-c1": agreed})
    for store, workspace, left in (((ONE, note), (ONE,), {}), ((ONE,), (ONE, note), {"extra:NOTE.md": "x"})):
        found = folded(stored(*store), here(*workspace), baseline).agreed["jp-c1"]
        assert found is not None
        assert found.units == {**DIGEST, **left}
    sent = folded(stored(ONE, note), here(ONE), replace(baseline, is_of_remote=True)).agreed["jp-c1"]
    assert sent is not None
    assert sent.units == {**DIGEST, "extra:NOTE.md": "x"}, "without its entry, it would be sent again"


def test_an_extra_that_only_a_duplicate_has_is_still_agreed_on() -> None:
    """Otherwise the next run would take it for new."""
    note = '1-a/NOTE.md  09:00 "x"'
    baseline, newer = agreed_on(ONE, note), ONE.replace("[1]", "[1 2]")
    second = [each.replace("1-a", "1-b", 1) for each in (newer, note)]
    found = folded(stored(newer), here(newer, *second), baseline).agreed["jp-c1"]
    assert found is not None
    assert (found.place, "extra:NOTE.md" in found.units) == ("1-a", True)


def test_in_another_store_an_extra_that_only_the_store_has_was_not_agreed_on() -> None:
    note = '1-a/NOTE.md  09:00 "x"'
    found = folded(seen(Side.STORE, [ONE, note], identity="store:1"), here(ONE), agreed_on(ONE, note)).agreed["jp-c1"]
    assert found is not None
    assert found.units == DIGEST


def test_nothing_but_an_extra_in_common_is_no_baseline_unless_there_was_one() -> None:
    """A record has no other files."""
    note = '1-a/NOTE.md  09:00 "x"'
    sides = stored(ONE, note), here('1-a/metadata.json  10:00 "{"', note)
    assert folded(*sides, Baseline()).agreed == {}
    known = agreed_on(ONE)
    found = folded(*sides, known).agreed["jp-c1"]
    assert found is not None
    assert found.units.keys() == {METADATA, STREAM, "extra:NOTE.md"}
    files = {"trip/a": b"a"}
    record = update_baseline(
        records.side(Side.STORE, files), records.side(Side.WORKSPACE, files), Baseline(), PLAN, records.RULES
    )
    assert record.agreed.keys() == {"trip"}


def test_a_file_of_a_record_stays_agreed_on_until_both_lack_it() -> None:
    entry = BaselineEntry({f"extra:{name}": RULES.digest(b"a") for name in ("a", "b", "c")}, None, None, None, "trip")
    sides = records.side(Side.STORE, {"trip/a": b"a", "trip/b": b"a"}), records.side(Side.WORKSPACE, {"trip/a": b"a"})
    found = update_baseline(*sides, Baseline(agreed={"trip": entry}), PLAN, records.RULES).agreed["trip"]
    assert found is not None
    assert found.units.keys() == {"extra:a", "extra:b"}


def test_a_file_that_the_workspace_lost_is_still_agreed_on_and_one_that_both_lost_is_not() -> None:
    """It is put back, and then nothing has changed."""
    lost = "1-a  metadata 09:30"
    left = folded(stored(ONE), here(lost), agreed_on(ONE)).agreed
    assert "jp-c1" not in left
    both = folded(stored(ONE.partition("  stream")[0]), here(lost), agreed_on(ONE)).agreed["jp-c1"]
    assert both is not None
    assert set(both.units) == {METADATA}


def test_a_directory_that_stays_with_another_content_is_no_agreement() -> None:
    newer = ONE.replace("09:00 [1]", "10:00 [1 2]")
    plan = replace(PLAN, places=(("jp-c1", "1-z"),))
    changes = folded(stored(newer), here(newer, ONE.replace("1-a", "1-z")), Baseline(), plan)
    agreed = changes.agreed["jp-c1"]
    assert agreed is not None
    assert (agreed.place, set(agreed.units)) == ("1-z", {METADATA})


def test_what_cannot_be_read_on_either_side_is_not_equal() -> None:
    note = '1-a/NOTE.md  09:00 "x"'
    sides = unreadable(stored(ONE, note), "1-a/NOTE.md"), unreadable(here(ONE, note), "1-a/NOTE.md")
    agreed = folded(*sides, Baseline()).agreed["jp-c1"]
    assert agreed is not None
    assert agreed.units == DIGEST


@pytest.mark.parametrize(
    ("store", "workspace"),
    [
        ('1-a  metadata 09:00 title "C" parent 3  stream 09:00 [1 2]', "1-a  stream 09:00 [1 2]"),
        ("1-a  stream 09:00 [1 2]", '1-a  metadata 09:00 title "C" parent 3  stream 09:00 [1 2]'),
        (
            '1-a  metadata 09:00 title "C" parent 3  stream 09:00 [1 2]',
            '1-a  metadata 09:00 title "D"  stream 09:00 [1 2]',
        ),
        (
            '1-c  metadata 09:00 title "C" parent 3  stream 09:00 [1 2]',
            '1-c  metadata 09:00 title "D"  stream 09:00 [1 2]',
        ),
    ],
)
def test_parent_and_title_are_agreed_on_with_the_metadata(store: str, workspace: str) -> None:
    changes = folded(stored(store), here(workspace), KNOWN)
    agreed = changes.agreed["jp-c1"]
    assert agreed is not None
    assert agreed.units[STREAM] != DIGEST[STREAM]
    assert (agreed.parent, agreed.title) == (None, "A")


def test_a_new_parent_is_agreed_on_once_both_sides_state_it() -> None:
    both = ONE.replace('"A"', '"A" parent 3')
    agreed = folded(stored(both), here(both), KNOWN).agreed["jp-c1"]
    assert agreed is not None
    assert agreed.parent == "jp-c3"


def test_a_displaced_directory_that_is_equal_in_part_is_where_it_is() -> None:
    plan = replace(PLAN, displaced=frozenset({"jp-c2"}))
    agreed = folded(stored(ONE, TWO), here(ONE, TWO.replace("[1]", "[1 2]")), Baseline(), plan).agreed["jp-c2"]
    assert agreed is not None
    assert (agreed.container, agreed.place) == (None, "2-b")


def test_a_displaced_directory_of_which_nothing_was_known_is_where_it_is() -> None:
    plan = replace(PLAN, displaced=frozenset({"jp-c2"}))
    nested = f"1-a/conversations/{TWO}"
    agreed = folded(stored(ONE, TWO), here(ONE, nested), Baseline(), plan).agreed["jp-c2"]
    assert agreed is not None
    assert agreed.container == "jp-c1"
    moved = here(TWO, f"2-b/conversations/{ONE}")
    changes = folded(stored(ONE.replace("[1]", "[2]"), TWO), moved, agreed_on(ONE, TWO), plan)
    assert changes.agreed["jp-c1"] is not None
    assert changes.agreed["jp-c1"].container == "jp-c2"


def test_what_was_projected_was_the_same_on_both_sides_whatever_the_store_has_by_now() -> None:
    """Else the store's next version would meet an older one that nobody has written here."""
    first, second = ONE.replace('"A"', '"A" v=1'), ONE.replace('"A"', '"A" v=2')
    plan = plan_of(stored(first), here(ONE), agreed_on(ONE))
    assert [action.kind for action in plan.actions] == [Kind.PROJECT]
    baseline = agreed_on(ONE)
    for undone, there, known in (((), first, first), ((), second, second), (("1",), first, ONE), ((), ONE, ONE)):
        changes = update_baseline(stored(second), here(there), baseline, plan, RULES, undone)
        agreed = changes.agreed.get("jp-c1", baseline.agreed["jp-c1"])
        assert agreed is not None
        assert agreed.units[METADATA] == agreed_on(known).agreed["jp-c1"].units[METADATA]


def test_what_was_copied_was_the_same_on_both_sides_whatever_the_workspace_has_by_now() -> None:
    """Else it would be taken for an edit when git brings it back."""
    first, second = ONE.replace('"A"', '"A" v=1'), ONE.replace('"A"', '"A" v=2')
    baseline = agreed_on(ONE)
    plan = plan_of(stored(ONE), here(first), baseline)
    assert [action.kind for action in plan.actions] == [Kind.COPY]
    for undone, kept, known in (((), first, first), ((), second, ONE), (("1",), first, ONE)):
        changes = update_baseline(stored(kept), here(ONE), baseline, plan, RULES, undone)
        agreed = changes.agreed.get("jp-c1", baseline.agreed["jp-c1"])
        assert agreed is not None
        assert agreed.units[METADATA] == digest_of(known, METADATA)
        history = {} if known == ONE else {("jp-c1", METADATA): digest_of(first, METADATA)}
        assert changes.history == history


def test_what_is_equal_without_a_parent_in_another_ones_directory_is_looked_at_closer() -> None:
    orphan = TWO.replace(" parent 1", "")
    agreed = folded(stored(ONE, orphan), here(ONE, f"1-a/conversations/{orphan}"), Baseline()).agreed["jp-c2"]
    assert agreed is not None
    assert (agreed.parent, agreed.container) == (None, "jp-c1")


def test_of_what_a_run_was_not_about_only_that_is_remembered_which_may_be_stripped() -> None:
    """And where it lies, where it was carried along."""
    moved, edited = f"3-c/conversations/{TWO}", TWO.replace("parent 1", "parent 9")
    carried = replace(did(Kind.MOVE, WHOLE, Side.WORKSPACE), conversation="jp-c3", touches=("jp-c2", "jp-c3"))
    for action, place in ((carried, moved.partition(" ")[0]), (replace(carried, touches=("jp-c3",)), None)):
        plan = replace(planned(action), about=frozenset({"jp-c3"}))
        changes = folded(stored(ONE, edited), here(ONE, moved), agreed_on(ONE, TWO), plan)
        agreed = changes.agreed.get("jp-c2")
        assert changes.parents == {"jp-c2": "jp-c9"}
        assert (agreed and (agreed.place, agreed.container, agreed.parent)) == (place and (place, "jp-c1", "jp-c1"))
    new = folded(stored(ONE, edited), here(ONE, TWO), Baseline(), replace(PLAN, about=frozenset({"jp-c1"})))
    assert {*new.agreed, *new.parents} == {"jp-c1"}, "which of both parents holds isn't known"
    private = ONE.replace('title "A"', 'title "A" local')
    legacy = folded(stored(private), here(), Baseline(), replace(PLAN, about=frozenset({"jp-c2"})))
    assert legacy.intents == {"jp-c1": Intent(IntentKind.LOCAL)}
    left = folded(stored(ONE, TWO), here(ONE, TWO), Baseline(), replace(PLAN, moving=frozenset({"jp-c2"})))
    assert left.agreed.keys() == {"jp-c1"}


def test_a_part_is_judged_by_what_is_known_of_the_sides_as_wholes() -> None:
    """What is gone on both sides looks like a workspace that was emptied where nothing else is part of it."""
    baseline = agreed_on(ONE)
    assert not folded(stored(), here(), baseline).agreed
    whole = Whole(Sides(store_emptied=False, store_replaced=False, workspace_emptied=False), 1)
    assert update_baseline(stored(), here(), baseline, PLAN, RULES, whole=whole).agreed == {"jp-c1": None}


def carrying(*conversations: str) -> Plan:
    """Return a plan about the first, of which a directory moves with those of all."""
    move = Action(
        id="1",
        kind=Kind.MOVE,
        conversation=conversations[0],
        title="A",
        unit=WHOLE,
        reason=Reason.LAYOUT,
        source=Place(Side.WORKSPACE, "1-x"),
        target=Place(Side.WORKSPACE, "1-a"),
        touches=conversations,
    )
    return replace(PLAN, actions=(move,), about=frozenset(conversations[:1]))


def test_what_was_carried_along_lies_elsewhere_now() -> None:
    before, nested = agreed_on(f"1-x{ONE[3:]}", f"1-x/conversations/{TWO}"), f"1-a/conversations/{TWO}"
    agreed = folded(stored(ONE, TWO), here(ONE, nested), before, carrying("jp-c1", "jp-c2")).agreed["jp-c2"]
    assert agreed is not None
    assert agreed.place == "1-a/conversations/2-b"


def test_of_what_was_carried_along_and_never_agreed_on_nothing_is() -> None:
    sides = stored(ONE, TWO), here(ONE, f"1-a/conversations/{TWO}")
    assert "jp-c2" not in folded(*sides, agreed_on(ONE), carrying("jp-c1", "jp-c2")).agreed


def test_what_was_carried_along_and_is_gone_since_is_agreed_on_as_ever() -> None:
    before = agreed_on(ONE, f"1-a/conversations/{TWO}")
    assert "jp-c2" not in folded(stored(ONE, TWO), here(ONE), before, carrying("jp-c1", "jp-c2")).agreed


def test_the_parent_of_what_only_the_store_has_is_remembered_by_every_run() -> None:
    changes = folded(stored(ONE, TWO), here(ONE), agreed_on(ONE), carrying("jp-c1"))
    assert changes.parents == {"jp-c2": "jp-c1"}
    assert not folded(
        stored(ONE, TWO), here(ONE, f"1-a/conversations/{TWO}"), agreed_on(ONE), carrying("jp-c1")
    ).parents


def test_what_is_local_stays_so_with_all_that_is_known_of_that() -> None:
    baseline = replace(agreed_on(ONE), intents={"jp-c1": Intent(IntentKind.LOCAL, run="r1")})
    assert not folded(stored(ONE), here(ONE), baseline).intents


def test_the_directory_that_the_plan_left_speaks_for_the_workspace() -> None:
    """Somebody has made again the one that was agreed on; it is a duplicate now."""
    newer = ONE.replace("[1]", "[1 2]")
    plan = replace(PLAN, places=(("jp-c1", "1-b"),))
    agreed = folded(stored(newer), here(ONE, f"1-b{newer[3:]}"), agreed_on(ONE), plan).agreed["jp-c1"]
    assert agreed is not None
    assert agreed.place == "1-b"
    assert agreed.units[STREAM] == digest_of(newer, STREAM)


def test_some_files_of_what_was_removed_leave_the_decision_as_it_is() -> None:
    baseline = replace(agreed_on(ONE), intents={"jp-c1": Intent(IntentKind.REMOVED)})
    for part in ('1-a  metadata 09:00 title "A"', "1-a  stream 09:00 [1]"):
        assert folded(stored(ONE), here(part), baseline).intents == {}
    assert folded(stored(ONE), here(ONE), baseline).intents == {"jp-c1": None}


def test_the_commits_whose_partition_the_store_has_replaced_are_remembered() -> None:
    line = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
    archived = line.replace("1-a", ".archive/1-a")
    for place, since in (("1-a", "c1"), ("9-z", None)):
        baseline = replace(agreed_on(line), committed={"jp-c1": CommittedPlace(place, None, "c1")})
        plan = plan_of(stored(archived), here(line), baseline)
        (action,) = plan.actions
        done = update_baseline(stored(archived), here(archived), baseline, plan, RULES)
        assert done.history.get(("jp-c1", PLACE)) == since
        assert ("jp-c1", PLACE) not in update_baseline(
            stored(archived), here(line), baseline, plan, RULES, [action.id]
        ).history
    back = replace(agreed_on(archived), committed={"jp-c1": CommittedPlace(".archive/1-a", None, "c1")})
    plan = plan_of(stored(line), here(archived), back)
    assert [each.kind for each in plan.actions] == [Kind.UNARCHIVE]
    assert update_baseline(stored(line), here(line), back, plan, RULES).history["jp-c1", PLACE] == "c1"
    known = replace(agreed_on(line), committed={"jp-c1": CommittedPlace("1-a", None, "c1")})
    renamed = line.replace('"A"', '"B"')
    plan = plan_of(stored(renamed), here(line), known)
    assert Place(Side.WORKSPACE, "1-a") in [each.source for each in plan.actions if each.kind is Kind.MOVE]
    after = renamed.replace("1-a", "1-b")
    assert ("jp-c1", PLACE) not in update_baseline(stored(after), here(after), known, plan, RULES).history
    edited = plan_of(stored(line), here(line.replace("[1]", "[1 2]")), baseline)
    assert ("jp-c1", PLACE) not in update_baseline(stored(line), here(line), baseline, edited, RULES).history
