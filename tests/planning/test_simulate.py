"""The replay of a plan: what each action means, and every contradiction that it notices."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconcile.model.baseline import Baseline, WorldState
from reconcile.model.plan import Action, Kind, Plan, Precondition, Write
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import Place, Side
from reconcile.planning.simulate import ContradictionError, FileState, Listing, listing_of, simulate, surprises
from tests.support.scenarios.building import agreed_on, here, plan_of, stored


def at(path: str) -> Place:
    return Place(Side.WORKSPACE, path)


STATE = FileState(3, 9, "abc")
BEFORE: Listing = {at("1-a/x"): STATE, at("1-a/conversations/2-b/y"): STATE, at("3-c/x"): STATE}
THERE = Precondition(at("1-a/x"), 3, 9, "abc")


def action(kind: Kind, target: str, **more: object) -> Action:
    first = Action(
        id="1",
        kind=kind,
        conversation="jp-c1",
        title=None,
        unit="conversation",
        reason=Reason.LAYOUT,
        target=at(target),
    )
    return replace(first, **more)


def after(*actions: Action) -> Listing:
    return simulate(Plan(layout="nested", actions=actions), BEFORE)


WRITE = Write(at("1-a/x"), None, b"xy", 2, 5, "new")
MEANINGS = {
    "a write replaces": (action(Kind.PROJECT, "1-a", writes=(WRITE,)), {at("1-a/x"): FileState(2, 5, "new")}, ()),
    "a write makes": (
        action(Kind.COPY, "4-d", writes=(replace(WRITE, target=at("4-d/x")),)),
        {at("4-d/x"): FileState(2, 5, "new")},
        (),
    ),
    "files that the winner lacks go": (action(Kind.PROJECT, "1-a", removes=(at("1-a/x"),)), {}, ("1-a/x",)),
    "a move carries everything along": (
        action(Kind.MOVE, "3-c/conversations/1-a", source=at("1-a")),
        {at("3-c/conversations/1-a/x"): STATE, at("3-c/conversations/1-a/conversations/2-b/y"): STATE},
        ("1-a/x", "1-a/conversations/2-b/y"),
    ),
    "archiving is a move": (
        action(Kind.ARCHIVE, ".archive/3-c", source=at("3-c")),
        {at(".archive/3-c/x"): STATE},
        ("3-c/x",),
    ),
    "so is the way back": (action(Kind.UNARCHIVE, "3-d", source=at("3-c")), {at("3-d/x"): STATE}, ("3-c/x",)),
    "ageing changes the time alone": (
        action(Kind.AGE, "1-a", expect=(THERE,), mtime_ns=4),
        {at("1-a/x"): FileState(3, 4, "abc")},
        (),
    ),
    "a directory goes with all that is in it": (
        action(Kind.REMOVE_STALE, "1-a"),
        {},
        ("1-a/x", "1-a/conversations/2-b/y"),
    ),
    "one file of it goes": (action(Kind.REMOVE_STALE, "1-a/x", unit="extra:x", removes=(at("1-a/x"),)), {}, ("1-a/x",)),
    "one of two files goes, named by the directory": (
        action(Kind.REMOVE_STALE, "1-a/conversations", unit="extra:y", removes=(at("1-a/conversations/2-b/y"),)),
        {},
        ("1-a/conversations/2-b/y",),
    ),
    "of a directory, only the named file goes": (
        action(Kind.REMOVE_STALE, "1-a", unit="extra:x", removes=(at("1-a/x"),)),
        {},
        ("1-a/x",),
    ),
    "from the store, too": (action(Kind.REMOVE, "3-c"), {}, ("3-c/x",)),
}


@pytest.mark.parametrize(("step", "made", "gone"), MEANINGS.values(), ids=MEANINGS)
def test_what_an_action_means(step: Action, made: Listing, gone: tuple[str, ...]) -> None:
    left = {place: state for place, state in BEFORE.items() if place.path not in gone}
    assert after(step) == left | made


def test_the_listing_that_it_starts_from_is_left_alone() -> None:
    before = dict(BEFORE)
    after(action(Kind.REMOVE, "3-c"))
    assert before == BEFORE


FREE = Precondition(at("4-d"), 0, 0, None)
CONTRADICTIONS = {
    "another content": replace(THERE, digest="other"),
    "another size": replace(THERE, size=4),
    "another time": replace(THERE, mtime_ns=8),
    "a file that isn't there": replace(THERE, place=at("1-a/z")),
    "a file where there should be none": replace(FREE, place=at("1-a/x")),
    "a directory where there should be none": replace(FREE, place=at("1-a")),
}


@pytest.mark.parametrize("expect", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_a_contradiction_is_an_error_that_names_the_action(expect: Precondition) -> None:
    with pytest.raises(ContradictionError, match="action 1 expects"):
        after(action(Kind.COPY, "1-a", expect=(expect,)))


@pytest.mark.parametrize("place", ["4-d", "1", "1-a/xx", "1-a/x/z"])
def test_a_free_place_is_none_even_where_names_only_begin_alike(place: str) -> None:
    assert after(action(Kind.COPY, "4-d", expect=(replace(FREE, place=at(place)),))) == BEFORE


def test_a_directory_is_gone_with_all_that_was_in_it() -> None:
    deep = at("4-d/conversations/5-e/x")
    moved = action(Kind.MOVE, "5-e", source=at("4-d/conversations/5-e"))
    free = action(Kind.COPY, "1-a", id="2", expect=(replace(FREE, place=at("4-d")),))
    assert simulate(Plan(layout="nested", actions=(moved, free)), {deep: STATE}) == {at("5-e/x"): STATE}


def test_a_move_of_nothing_is_a_contradiction() -> None:
    with pytest.raises(ContradictionError, match="action 1 moves workspace:9-z, which does not exist"):
        after(action(Kind.MOVE, "5-e", source=at("9-z")))


def test_a_place_is_free_once_the_last_file_below_it_has_gone() -> None:
    free = replace(FREE, place=at("1-a/conversations"))
    moved = action(Kind.MOVE, "2-b", source=at("1-a/conversations/2-b"))
    assert at("2-b/y") in after(moved, action(Kind.COPY, "1-a", expect=(free,)))


def test_an_unreadable_file_is_expected_as_one() -> None:
    unreadable = replace(STATE, digest=None)
    plan = Plan(layout="nested", actions=(action(Kind.COPY, "1-a", expect=(replace(THERE, digest=""),)),))
    assert simulate(plan, {at("1-a/x"): unreadable}) == {at("1-a/x"): unreadable}


def test_a_later_step_is_judged_by_what_the_earlier_ones_made() -> None:
    move = action(Kind.MOVE, "5-e", source=at("1-a"))
    with pytest.raises(ContradictionError, match="action 2"):
        after(move, action(Kind.COPY, "5-e", id="2", expect=(THERE,)))


def test_names_are_kept_as_they_are() -> None:
    strange: Listing = {at("?x/1-a"): STATE}
    assert simulate(Plan(layout="nested"), strange) == strange


def test_the_listing_of_two_sides_is_led_to_what_a_plan_says() -> None:
    one = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
    store, workspace = stored('1-a  metadata 09:30 title "B"  stream 09:00 [1]'), here(one)
    found = simulate(plan_of(store, workspace, agreed_on(one)), listing_of(store, workspace))
    assert found[at("1-b/metadata.json")] == found[Place(Side.STORE, "1-b/metadata.json")]


A = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
EDITED = '1-a  metadata 09:00 title "A"  stream 10:00 [1 2]'
B = '2-b  metadata 09:00 title "B"  stream 09:00 [1]'


@pytest.mark.parametrize(
    ("store", "workspace", "found"),
    [
        ((EDITED, B), (EDITED, B), set()),
        ((A, B), (EDITED, B), {"jp-c1"}),
        ((EDITED.replace("[1 2]", "[1 2 3]"), B), (EDITED, B), {"jp-c1"}),
        ((EDITED, B), (EDITED, B.replace('"B"', '"C"')), {"jp-c2"}),
        ((EDITED, B, '2-b/sub/x.txt 09:00 "x"'), (EDITED, B), {"jp-c2"}),
        ((EDITED, B), (EDITED,), {"jp-c2"}),
        ((B,), (EDITED, B), {"jp-c1"}),
    ],
)
def test_who_was_written_by_somebody_else_meanwhile(
    store: tuple[str, ...], workspace: tuple[str, ...], found: set[str]
) -> None:
    before = WorldState(stored(A, B), here(EDITED, B), agreed_on(A, B))
    plan = plan_of(before.store, before.workspace, before.baseline)
    (copy,) = plan.actions
    assert surprises(plan, (), before, WorldState(stored(*store), here(*workspace), before.baseline)) == found
    assert surprises(plan, {copy.id}, before, before) == set()


def test_what_was_made_is_gone_again() -> None:
    before = WorldState(stored(B), here(A, B), agreed_on(B))
    plan = plan_of(before.store, before.workspace, before.baseline)
    assert [each.kind for each in plan.actions] == [Kind.COPY]
    assert surprises(plan, (), before, before) == {"jp-c1"}


C = '3-c  metadata 09:00 title "C" parent 1  stream 09:00 [1]'
NOTE = '1-a/NOTE.md  09:00 "x"'
NESTED = f"1-a/conversations/{C}"
RETITLED = A.replace('"A"', '"Z"').replace("1-a", "1-z")
Sides = tuple[list[str], list[str]]
DONE: dict[str, tuple[Baseline, Sides, Sides]] = {
    "a move": (agreed_on(B), ([A, B, C], [A, B, C]), ([A, B, C], [A, B, NESTED])),
    "a removal": (agreed_on(A, B, NESTED), ([B], [A, B, NESTED]), ([B], [B])),
    "a removal of one file": (agreed_on(A, B, NOTE), ([A, B], [A, B, NOTE]), ([A, B], [A, B])),
    "a new title": (
        agreed_on(A, B, NESTED),
        ([RETITLED.replace("1-z", "1-a"), B, C], [A, B, NESTED]),
        ([RETITLED, B, C], [RETITLED, B, NESTED.replace("1-a", "1-z")]),
    ),
}
"""What is known, and both sides before and after the plan."""


@pytest.mark.parametrize(("known", "sides", "results"), DONE.values(), ids=DONE)
def test_what_a_plan_does_to_directories_is_no_surprise(known: Baseline, sides: Sides, results: Sides) -> None:
    """Unless it isn't done."""
    before = WorldState(stored(*sides[0]), here(*sides[1]), known)
    plan = plan_of(before.store, before.workspace, known)
    assert surprises(plan, (), before, WorldState(stored(*results[0]), here(*results[1]), known)) == set()
    concerned = {each.conversation for each in plan.actions}
    assert surprises(plan, (), before, before) & concerned


def test_what_went_from_a_nested_directory_is_a_surprise_of_its_conversation() -> None:
    before = WorldState(stored(A, C), here(A, NESTED), agreed_on(A, NESTED))
    lost = here(A, "1-a/conversations/" + C.partition("  stream")[0])
    assert surprises(Plan(layout="nested"), (), before, WorldState(before.store, lost, before.baseline)) == {"jp-c3"}


@pytest.mark.parametrize("change", [{"size": 1}, {"mtime_ns": 1}, {"digest": "x"}])
def test_another_size_time_or_content_is_a_surprise(change: dict[str, object]) -> None:
    before = WorldState(stored(A), here(A), agreed_on(A))
    (copy,) = before.workspace.copies
    files = (replace(copy.files[0], **change), *copy.files[1:])
    changed = replace(before.workspace, copies=(replace(copy, files=files),))
    assert surprises(Plan(layout="nested"), (), before, WorldState(before.store, changed, before.baseline)) == {"jp-c1"}
