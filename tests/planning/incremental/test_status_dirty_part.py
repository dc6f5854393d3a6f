"""What needs no rules is told at a glance: the plan is theirs in any case, and they look only at what is left."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconcile.model.baseline import (
    AsideKind,
    AsideRecord,
    Baseline,
    BaselineEntry,
    Intent,
    IntentKind,
    PendingRequest,
    Verb,
)
from reconcile.model.options import Layout, Missing, Take
from reconcile.model.policy import Policy
from reconcile.model.snapshot import METADATA, Side, Snapshot
from reconcile.planning.incremental.status import DirtyPart, dirty_part
from reconcile.planning.planner import plan_by_rules
from tests.support.formats import notes
from tests.support.scenarios.building import NOW_NS, agreed_on, doubtful_sides, here, plan_of, seen, stored, unreadable
from tests.support.scenarios.pure_level import FORMAT, RULES

ONE = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
TWO = '2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1 2]'
THREE = '3-c  metadata 09:00 title "C" parent 2  stream 09:00 [1 2 3]'
FOUR = '4-d  metadata 09:00 title "D"  stream 09:00 [1]'
FIVE = '5-e  metadata 09:00 title "E" parent 4  stream 09:00 [1]'
SIX = '6-f  metadata 09:00 title "F"  stream 09:00 [1]'
STORE = (ONE, TWO, THREE, FOUR, FIVE, SIX)
NESTED = (
    ONE,
    f"1-a/conversations/{TWO}",
    f"1-a/conversations/2-b/conversations/{THREE}",
    FOUR,
    f"4-d/conversations/{FIVE}",
    SIX,
)
KNOWN = agreed_on(*NESTED)


def edited(line: str) -> str:
    return line.replace(" [1", " [1 9 1")


def rest(
    store: Snapshot, workspace: Snapshot, baseline: Baseline = KNOWN, policy: Policy | None = None
) -> DirtyPart | None:
    """Return what is left; the plan that it leads to is that of the rules."""
    policy = policy or Policy()
    by_rules = plan_by_rules(store, workspace, baseline, policy, RULES, NOW_NS)
    plan = plan_of(store, workspace, baseline, policy)
    assert plan.quiet or plan == by_rules
    found = dirty_part(store, workspace, baseline, policy, RULES)
    if found is not None:
        part = plan_by_rules(found.store, found.workspace, found.baseline, policy, RULES, NOW_NS, found.whole)
        joined = found.joined(part)
        assert joined == by_rules
        assert joined.counted == by_rules.counted
    return found


def left(store: Snapshot, workspace: Snapshot, baseline: Baseline = KNOWN, policy: Policy | None = None) -> set[str]:
    """Return the numbers of the conversations that the rules have to look at."""
    found = rest(store, workspace, baseline, policy)
    assert found is not None
    copies = (*found.store.copies, *found.workspace.copies)
    remembered = {*found.baseline.agreed, *found.baseline.intents, *found.baseline.tombstones}
    numbers = {each.removeprefix("jp-c") for each in {copy.conversation for copy in copies} | remembered}
    assert numbers.isdisjoint(each.removeprefix("jp-c") for each in found.counted)
    return numbers


def test_everything_is_at_rest() -> None:
    found = rest(stored(*STORE), here(*NESTED))
    assert found is not None
    assert not found.store.copies
    assert not found.workspace.copies
    assert not found.baseline.agreed
    assert found.counted == {f"jp-c{number}": "in-sync" for number in range(1, 7)}
    assert found.places["jp-c3"] == "1-a/conversations/2-b/conversations/3-c"


def test_what_was_edited_is_left_with_what_is_above_and_below_it() -> None:
    assert left(stored(*STORE), here(*NESTED[:3], edited(FOUR), *NESTED[4:])) == {"4", "5"}
    assert left(stored(*STORE[:4], edited(FIVE), SIX), here(*NESTED)) == {"4", "5"}
    assert left(stored(*STORE), here(*NESTED[:5], edited(SIX))) == {"6"}


def test_what_is_equal_and_was_never_agreed_on_is_told_at_a_glance() -> None:
    assert left(stored(*STORE), here(*NESTED), Baseline()) == set()
    assert left(stored(*STORE), here(*NESTED[:5], edited(SIX)), Baseline()) == {"6"}


def test_what_is_gone_on_both_sides_is_left() -> None:
    assert left(stored(*STORE[:5]), here(*NESTED[:5])) == {"6"}


def test_what_one_side_alone_has_is_left_where_something_is_due() -> None:
    assert left(stored(*STORE[:5]), here(*NESTED), agreed_on(*NESTED[:5])) == {"6"}
    assert left(stored(*STORE), here(*NESTED[:5])) == {"6"}
    assert left(stored(*STORE), here(*NESTED[:5]), agreed_on(*NESTED[:5])) == set()


def test_what_is_in_the_store_alone_is_projected_where_the_configuration_says_so() -> None:
    again = Policy(missing=Missing.REPROJECT)
    gone = {"jp-c6": Intent(IntentKind.REMOVED)}
    assert left(stored(*STORE), here(*NESTED[:5]), replace(KNOWN, intents=gone), again) == {"6"}
    local = replace(agreed_on(*NESTED[:5]), intents={"jp-c6": Intent(IntentKind.LOCAL)})
    assert left(stored(*STORE), here(*NESTED[:5]), local, again) == set()
    archived = stored(*STORE[:5], f".archive/{SIX}")
    assert left(archived, here(*NESTED[:5]), agreed_on(*NESTED[:5]), again) == set()


def test_half_of_all_at_rest_is_enough() -> None:
    changed = [edited(line) for line in (FOUR, SIX)]
    assert left(stored(ONE, FOUR), here(ONE, changed[0]), agreed_on(ONE, FOUR)) == {"4"}
    assert rest(stored(ONE, FOUR, SIX), here(ONE, *changed), agreed_on(ONE, FOUR, SIX)) is None


def test_the_agreed_count_among_all() -> None:
    assert rest(stored(ONE), here(ONE), agreed_on(ONE, FOUR, SIX)) is None


RECORDS = {"a.md": b"a", "b.md": b"b", "INDEX": b"a: a\nb: b\n"}
AGREED = replace(
    Baseline(),
    agreed={
        name: BaselineEntry({METADATA: RULES.digest(RECORDS[name])}, None, None, None, name)
        for name in ("a.md", "b.md")
    },
)


def test_of_records_with_derived_data_nothing_or_everything_is_planned() -> None:
    """A derived record is clean without the store's copy, and has no place there."""
    kept = notes.side(Side.STORE, {name: content for name, content in RECORDS.items() if name != "INDEX"})
    found = dirty_part(kept, notes.side(Side.WORKSPACE, RECORDS), AGREED, Policy(), notes.RULES)
    assert found is not None
    assert found.counted == {"a.md": "in-sync", "b.md": "in-sync", "INDEX": "derived"}
    assert found.places.keys() == {"a.md", "b.md"}
    edited_one = notes.side(Side.WORKSPACE, {**RECORDS, "a.md": b"A"})
    assert dirty_part(kept, edited_one, AGREED, Policy(), notes.RULES) is None


DOUBTS: dict[str, tuple[Snapshot, Snapshot, Baseline, Policy]] = {
    "a decision": (stored(*STORE), here(*NESTED), KNOWN, Policy(decisions={"jp-c1": Take.STORE})),
    "a selection": (stored(*STORE), here(*NESTED), KNOWN, Policy(only=frozenset({"jp-c1"}))),
    "a subtree": (stored(*STORE), here(*NESTED), KNOWN, Policy(below=frozenset({"jp-c1"}))),
    **{name: (*sides, KNOWN, Policy()) for name, sides in doubtful_sides(stored(*STORE), here(*NESTED)).items()},
    "something set aside": (
        stored(*STORE),
        here(*NESTED),
        replace(KNOWN, asides={("jp-c1", METADATA): AsideRecord(AsideKind.KEPT, "x", "y")}),
        Policy(),
    ),
    "a directory that is still to leave": (
        stored(*STORE),
        here(*NESTED),
        replace(KNOWN, waiting={("jp-c1", Verb.LOCAL): PendingRequest()}),
        Policy(),
    ),
    "a rename that is still due": (
        stored(*STORE),
        here(*NESTED),
        replace(KNOWN, renames=frozenset({(Side.STORE, "jp-c1")})),
        Policy(),
    ),
    "another layout": (stored(*STORE), here(*NESTED), KNOWN, Policy(layout=Layout.FLAT)),
    "an emptied workspace among what is only available": (stored(ONE, FOUR, SIX), here(), agreed_on(SIX), Policy()),
    "another store": (seen(Side.STORE, STORE, identity="store:1"), here(*NESTED), KNOWN, Policy()),
    "an emptied workspace": (stored(*STORE), here(), KNOWN, Policy()),
    "lies elsewhere": (stored(*STORE), here(ONE, *STORE[1:3], *NESTED[3:]), Baseline(), Policy()),
    "a cycle of parents": (
        stored(*STORE[:5], SIX.replace('"F"', '"F" parent 6')),
        here(*NESTED[:5], SIX.replace('"F"', '"F" parent 6')),
        agreed_on(*NESTED[:5], SIX.replace('"F"', '"F" parent 6')),
        Policy(),
    ),
}


@pytest.mark.parametrize(("store", "workspace", "baseline", "policy"), DOUBTS.values(), ids=DOUBTS)
def test_in_doubt_the_rules_look_at_everything(
    store: Snapshot, workspace: Snapshot, baseline: Baseline, policy: Policy
) -> None:
    assert rest(store, workspace, baseline, policy) is None


UNEQUAL: dict[str, tuple[tuple[str, ...], tuple[str, ...], Baseline]] = {
    "two directories in the store": ((*STORE, f"6-g {SIX[3:]}"), NESTED, Baseline()),
    "two directories in the workspace": (STORE, (*NESTED, f"6-g {SIX[3:]}"), Baseline()),
    "local by its metadata": (
        (*STORE[:5], SIX.replace('"F"', '"F" local')),
        (*NESTED[:5], SIX.replace('"F"', '"F" local')),
        Baseline(),
    ),
    "archived on both sides": ((*STORE[:5], f".archive/{SIX}"), (*NESTED[:5], f".archive/{SIX}"), Baseline()),
    "no stream": ((*STORE[:5], SIX.partition("  stream")[0]), (*NESTED[:5], SIX.partition("  stream")[0]), Baseline()),
    "another known parent": (STORE, NESTED, Baseline(parents={"jp-c6": "jp-c4"})),
    "it was removed on purpose": (STORE, NESTED, Baseline(tombstones={"jp-c6": frozenset({"x"})})),
    "it was removed here": (STORE, NESTED, Baseline(intents={"jp-c6": Intent(IntentKind.REMOVED)})),
    "an extra in the workspace alone": (STORE, (*NESTED, '6-f/NOTE.md  09:00 "x"'), Baseline()),
    "another extra": ((*STORE, '6-f/NOTE.md  09:00 "y"'), (*NESTED, '6-f/NOTE.md  09:00 "x"'), Baseline()),
}


@pytest.mark.parametrize(("store", "workspace", "baseline"), UNEQUAL.values(), ids=UNEQUAL)
def test_what_is_not_certain_is_left(store: tuple[str, ...], workspace: tuple[str, ...], baseline: Baseline) -> None:
    assert "6" in left(stored(*store), here(*workspace), baseline)


def test_what_nobody_can_read_is_left() -> None:
    lines = '6-f/NOTE.md  09:00 "x"'
    store, workspace = (unreadable(side, "6-f/NOTE.md") for side in (stored(*STORE, lines), here(*NESTED, lines)))
    assert left(store, workspace, Baseline()) == {"6"}


def test_a_known_parent_that_the_files_state_is_certain() -> None:
    known = Baseline(parents={"jp-c5": "jp-c4", "jp-c6": None})
    assert left(stored(*STORE), here(*NESTED), known) == set()


def test_another_layout_with_nothing_to_move() -> None:
    roots = (ONE, FOUR, SIX)
    flat = replace(agreed_on(*roots), layout="flat")
    assert left(stored(*roots), here(*roots[:2], edited(SIX)), flat) == {"6"}


def test_what_has_something_in_the_way_of_its_children() -> None:
    side = here(*NESTED)
    blocked = replace(side, copies=tuple(replace(copy, obstructed=copy.path == "6-f") for copy in side.copies))
    assert left(stored(*STORE), blocked, Baseline()) == set()
    child = '7-g  metadata 09:00 title "G" parent 6  stream 09:00 [1]'
    assert left(stored(*STORE, child), blocked, agreed_on(*NESTED), Policy(missing=Missing.REPROJECT)) == {"6", "7"}


def test_a_fork_gets_an_id_that_nobody_has() -> None:
    taken = FORMAT.new_id(NOW_NS, ()).removeprefix("jp-c")
    line = f'{taken}-t  metadata 09:00 title "T"  stream 09:00 [1]'
    store, workspace = stored(ONE, line, SIX.replace("[1", "[1 2")), here(ONE, line, SIX.replace("[1", "[1 3"))
    found = rest(store, workspace, agreed_on(ONE, line, SIX))
    assert found is not None
    assert f"jp-c{taken}" in found.counted
    assert "fork" in {action.kind for action in plan_of(store, workspace, agreed_on(ONE, line, SIX)).actions}


def test_an_extra_that_the_store_alone_has_changes_nothing() -> None:
    assert left(stored(*STORE, '6-f/NOTE.md  09:00 "x"'), here(*NESTED), Baseline()) == set()


def test_without_a_parent_in_both_files_it_is_left_where_it_lies_below_another() -> None:
    stripped = SIX.replace("6-f", "4-d/conversations/6-f")
    assert rest(stored(*STORE), here(*NESTED[:5], stripped), Baseline()) is None
