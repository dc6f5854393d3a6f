"""What a run may conclude when a side as a whole looks wrong (docs/design/guards.md)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconcile.formats.leslie.format import LeslieFormat
from reconcile.model.baseline import LOST, Baseline, Intent, IntentKind
from reconcile.model.snapshot import Foreign, Problem, Side, Snapshot
from reconcile.planning.rules.guards import Sides, compare_sides, hidden_directories, is_bulk, whole_of
from tests.support.scenarios.building import agreed_on, here, seen, stored
from tests.support.scenarios.pure_level import FORMAT

ONE = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
CLEAR = Sides(store_emptied=False, store_replaced=False, workspace_emptied=False)

BULK = {
    "none": (0, 0, False),
    "three of three are not yet many": (3, 3, False),
    "four of four": (4, 4, True),
    "four of eleven are more than a third": (4, 11, True),
    "four of twelve are a third and no more": (4, 12, False),
    "many, but few of all": (100, 300, False),
    "many, and more than a third": (101, 300, True),
}


@pytest.mark.parametrize(("removed", "directories", "answer"), BULK.values(), ids=BULK)
def test_is_bulk(removed: int, directories: int, answer: bool) -> None:
    assert is_bulk(removed, directories) is answer


def with_problems(snapshot: Snapshot, *paths: str) -> Snapshot:
    return replace(snapshot, problems=tuple(Problem(path, "Permission denied") for path in paths))


def test_a_side_that_was_read_whole_hides_nothing() -> None:
    assert hidden_directories(here(ONE)) == ()


def test_directories_that_cannot_be_read_hide_and_files_do_not() -> None:
    assert hidden_directories(with_problems(here(ONE), "1-a/events.json", "2-b", "")) == ("2-b", "")


HIDES = {
    "the directory itself": ("1-a", "1-a", True),
    "what lies below it": ("1-a", "1-a/conversations/2-b", True),
    "not one whose name only begins like it": ("1-a", "1-ab", False),
    "not what it lies in": ("1-a/conversations/2-b", "1-a", False),
    "everything, where the side itself can't be read": ("", "1-a", True),
}


@pytest.mark.parametrize(("hidden", "place", "answer"), HIDES.values(), ids=HIDES)
def test_hides(hidden: str, place: str, answer: bool) -> None:
    assert replace(CLEAR, workspace_hidden=(hidden,)).hides(place) is answer


FORGETTING = {
    "both were seen": (CLEAR, True),
    "the store is empty": (replace(CLEAR, store_emptied=True), False),
    "the store is another one": (replace(CLEAR, store_replaced=True), False),
    "the store could not be read": (replace(CLEAR, store_hidden=True), False),
    "the workspace is empty": (replace(CLEAR, workspace_emptied=True), False),
    "its place could not be read": (replace(CLEAR, workspace_hidden=("1-a",)), False),
    "another's place could not be read": (replace(CLEAR, workspace_hidden=("2-b",)), True),
    "the store has a link in its place": (
        replace(CLEAR, obstacles={"jp-c1": Foreign("1-a", "a link", link=True)}),
        False,
    ),
    "the store has a link in another's place": (replace(CLEAR, obstacles={"jp-c2": Foreign("2-b", "a pipe")}), True),
    "a directory of the store could not be read": (replace(CLEAR, store_doubtful=("9-z",)), False),
}


@pytest.mark.parametrize(("sides", "answer"), FORGETTING.values(), ids=FORGETTING)
def test_absence_on_both_sides_is_believed_where_both_were_seen(sides: Sides, answer: bool) -> None:
    assert sides.may_forget("jp-c1", "1-a") is answer


ABSENCES = {
    "all was read": (CLEAR, True),
    "a part of the store could not be read": (replace(CLEAR, store_hidden=True), False),
    "something in the directory could not be read, and elsewhere": (
        replace(CLEAR, store_doubtful=("0/x", "1-a/x", "9-z")),
        False,
    ),
    "a directory whose name only begins like it could not be read": (replace(CLEAR, store_doubtful=("1-ab/x",)), True),
}


@pytest.mark.parametrize(("sides", "answer"), ABSENCES.values(), ids=ABSENCES)
def test_an_absent_file_of_the_store_was_removed_where_its_directory_was_read(sides: Sides, answer: bool) -> None:
    assert sides.believes_absence("1-a") is answer


EMPTIED, WORKSPACE_EMPTIED = replace(CLEAR, store_emptied=True), replace(CLEAR, workspace_emptied=True)
SIDES: dict[str, tuple[list[str], list[str], Sides]] = {
    "as before": ([ONE], [ONE], CLEAR),
    "the store is empty": ([], [ONE], EMPTIED),
    "only its trash has something": ([f".trash/{ONE}"], [ONE], EMPTIED),
    "only its archive has something": ([f".archive/{ONE}"], [ONE], CLEAR),
    "only the draft of a query is left": (['1-a/QUERY_MESSAGE.md  09:00 "x"'], [ONE], EMPTIED),
    "the workspace is empty": ([ONE], [], WORKSPACE_EMPTIED),
    "another conversation is in it": ([ONE], ["2-b  metadata 09:00"], CLEAR),
}


@pytest.mark.parametrize(("store", "workspace", "sides"), SIDES.values(), ids=SIDES)
def test_sides_as_wholes(store: list[str], workspace: list[str], sides: Sides) -> None:
    assert compare_sides(stored(*store), here(*workspace), agreed_on(ONE), FORMAT) == sides


TWO, THREE = ONE.replace("1-a", "2-b"), ONE.replace("1-a", "3-c")
ANEW: dict[str, tuple[list[str], list[str], list[str], bool]] = {
    "none of several, beside others": ([ONE, TWO], [], [THREE], True),
    "the only one, beside others": ([ONE], [], [THREE], False),
    "one of two": ([ONE, TWO], [], [TWO, THREE], False),
    "both, of which a run has removed one": ([ONE, TWO], ["jp-c1"], [THREE], False),
    "the only one, which a run has removed": ([ONE], ["jp-c1"], [], False),
    "the only one, which no run has removed": ([ONE], [], [], True),
    "one is in the trash": ([ONE, TWO], [], [f".trash/{ONE}", THREE], False),
}


@pytest.mark.parametrize(("known", "buried", "store", "emptied"), ANEW.values(), ids=ANEW)
def test_a_store_that_was_begun_anew(known: list[str], buried: list[str], store: list[str], emptied: bool) -> None:
    baseline = replace(agreed_on(*known), tombstones={each: frozenset({"digest"}) for each in buried})
    assert compare_sides(stored(*store), here(*known), baseline, FORMAT).store_emptied is emptied


def test_a_store_in_which_another_checkout_knows_something_was_not_begun_anew() -> None:
    """Whether it is one or another that is missing, what is still there tells that only some were removed."""
    baseline = agreed_on(ONE, TWO)
    here_alone = replace(baseline, agreed={"jp-c1": baseline.agreed["jp-c1"]})
    assert compare_sides(stored(THREE), here(ONE), here_alone, FORMAT).store_emptied
    assert not compare_sides(stored(TWO, THREE), here(ONE), here_alone, FORMAT).store_emptied


def test_several_that_this_checkout_alone_knows_are_enough_to_tell_a_store_that_was_begun_anew() -> None:
    baseline = replace(agreed_on(ONE, TWO), history={})
    assert compare_sides(stored(THREE), here(ONE, TWO), baseline, FORMAT).store_emptied


def test_nothing_was_there_before_so_that_nothing_is_missing() -> None:
    assert compare_sides(stored(), here(), Baseline(), FORMAT) == CLEAR


@pytest.mark.parametrize(
    ("intent", "expected"),
    [
        (None, True),
        (Intent(IntentKind.PROJECTED), False),
        (Intent(IntentKind.PROJECTED, waits_for="jp-c9"), False),
        (Intent(IntentKind.REMOVED), False),
        (Intent(IntentKind.LOCAL), False),
    ],
    ids=lambda value: value.kind.value if isinstance(value, Intent) else str(value),
)
def test_an_empty_workspace_is_strange_only_where_something_was_there(intent: Intent | None, expected: bool) -> None:
    baseline = replace(agreed_on(ONE), intents={"jp-c1": intent} if intent else {})
    assert compare_sides(stored(ONE), here(), baseline, FORMAT).workspace_emptied is expected
    buried = replace(baseline, tombstones={"jp-c1": frozenset({"digest"})})
    assert not compare_sides(stored(ONE), here(), buried, FORMAT).workspace_emptied


def test_another_directory_than_last_time_is_another_store() -> None:
    lost = replace(agreed_on(ONE), store_identity=LOST)
    assert compare_sides(stored(ONE), here(ONE), lost, FORMAT) == replace(CLEAR, store_replaced=True)
    store = seen(Side.STORE, [ONE], identity="store:1")
    assert compare_sides(store, here(ONE), agreed_on(ONE), FORMAT) == replace(CLEAR, store_replaced=True)


@pytest.mark.parametrize(
    ("recorded", "now", "replaced"),
    [("8:2", "8:2:7", False), ("8:2:7", "8:2", True), ("8:2:7", "8:2:9", True)],
    ids=["an old record has no generation", "a generation that is gone", "another generation"],
)
def test_the_directory_of_an_old_record_is_the_same_store(recorded: str, now: str, replaced: bool) -> None:
    baseline = replace(agreed_on(ONE), store_identity=recorded)
    assert compare_sides(seen(Side.STORE, [ONE], now), here(ONE), baseline, FORMAT).store_replaced is replaced


def test_the_directories_of_each_side_are_counted() -> None:
    whole = whole_of(stored(ONE, TWO), here(ONE), Baseline(), FORMAT)
    assert [whole.directories_of(side) for side in Side] == [2, 1]


@pytest.mark.parametrize(("path", "hidden"), [("", True), (".archive", True), (".trash", True), ("1-a", False)])
def test_what_seems_absent_may_be_in_a_part_of_the_store_that_cannot_be_read(path: str, hidden: bool) -> None:
    sides = compare_sides(with_problems(stored(ONE), path), here(ONE), agreed_on(ONE), FORMAT)
    assert sides.store_hidden is hidden
    assert not sides.believes_removal("jp-c1")


def test_a_directory_of_the_workspace_that_cannot_be_read() -> None:
    sides = compare_sides(stored(ONE), with_problems(here(ONE), "2-b"), agreed_on(ONE), FORMAT)
    assert sides.workspace_hidden == ("2-b",)


def test_a_store_that_cannot_be_read_is_neither_empty_nor_another_one() -> None:
    gone = Snapshot(Side.STORE, exists=False, identity="", copies=())
    known = replace(agreed_on(ONE), store_identity="store:0")
    for store, lost in ((gone, True), (with_problems(gone, ""), False), (with_problems(gone, ".trash"), True)):
        sides = compare_sides(store, here(ONE), known, FORMAT)
        assert (sides.store_emptied, sides.store_replaced, sides.store_hidden) == (lost, lost, bool(store.problems))


def test_a_link_to_a_directory_of_records_hides_all_of_them() -> None:
    entries = tuple(Foreign(path, "something", link=True) for path in ("threads", "threads/a", "other"))
    sides = compare_sides(replace(stored(), foreign=entries), here(), Baseline(), LeslieFormat())
    assert sides.store_doubtful == ("threads", "threads/a")
    assert sides.obstacles == {entry.path: entry for entry in entries}


def test_links_hide_what_they_are_named_after_and_files_hide_nothing() -> None:
    entries = tuple(
        Foreign(path, "something", link=link)
        for link, paths in (
            (True, ("link", "1-a/link", "8-h/conversations/2-b", "3-c")),
            (False, ("4-d", "5-e/x", "6-f/7-g")),
        )
        for path in paths
    )
    store, workspace = replace(stored(ONE), foreign=entries), replace(here(ONE), foreign=entries)
    sides = compare_sides(store, workspace, agreed_on(ONE), FORMAT)
    assert sides.store_doubtful == ("1-a/link",)
    obstacles = {key: entry.path for key, entry in sides.obstacles.items()}
    assert obstacles == {"jp-c2": "8-h/conversations/2-b", "jp-c3": "3-c", "jp-c4": "4-d"}
    assert sides.workspace_hidden == ("1-a/link", "3-c", "8-h/conversations/2-b", "link")
    assert sides.workspace_links == set(sides.workspace_hidden)
    above = {"3-c": "3-c", "3-c/conversations/4-d": "3-c", "3-cd": None, "8-h": None, "link/x": "link"}
    assert {place: sides.link_above(place) for place in above} == above
    assert not sides.store_hidden


@pytest.mark.parametrize("unit", ["metadata 09:00", "stream 09:00 [1]"])
def test_one_file_of_a_conversation_is_enough_for_a_side_not_to_be_empty(unit: str) -> None:
    sides = compare_sides(stored(f"8-h  {unit}"), here(f"8-h  {unit}"), agreed_on(ONE), FORMAT)
    assert not sides.store_emptied
    assert not sides.workspace_emptied
    trash = compare_sides(stored(f".trash/8-h  {unit}"), here(f"8-h  {unit}"), agreed_on(ONE), FORMAT)
    assert trash.store_emptied


def test_a_known_store_is_neither_empty_nor_another() -> None:
    odd = replace(EMPTIED, store_replaced=True, workspace_emptied=True)
    assert odd.of_known_store() == WORKSPACE_EMPTIED
