"""A part of both sides: what it is about, and that it is enough (the property is in tests/properties/test_parts.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from reconcile.model.baseline import (
    AsideKind,
    AsideRecord,
    Baseline,
    BaselineEntry,
    ConversationRecord,
    Intent,
    IntentKind,
    WorldState,
)
from reconcile.model.format import EventSelection
from reconcile.model.options import Layout, Missing, Prefer, Take
from reconcile.model.past_run import LaterChanges, PastRun
from reconcile.model.policy import (
    NO_CONVERSATION,
    ForkRequest,
    GcRequest,
    LocalRequest,
    Policy,
    ProjectRequest,
    QuarantineRequest,
    RemoveRequest,
    Request,
    RestoreRequest,
    SetParentRequest,
    UndoRequest,
)
from reconcile.model.snapshot import Fault, Foreign, Problem, Side, Stream
from reconcile.planning.incremental.ancestry import Ancestry, above
from reconcile.planning.incremental.scope import ORDINARY, SnapshotIndex, concerned_by_run, named_by
from reconcile.planning.incremental.side_index import SideIndex
from reconcile.planning.planner import make_plan
from reconcile.planning.rules.guards import whole_of
from tests.properties.parts import restricted
from tests.support.scenarios.building import NOW_NS, agreed_on, here, plan_of, stored
from tests.support.scenarios.pure_level import FORMAT, RULES

if TYPE_CHECKING:
    from collections.abc import Collection

    from reconcile.model.snapshot import Copy, Snapshot

A = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
B = '2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1]'
C = '3-c  metadata 09:00 title "C" parent 2  stream 09:00 [1]'
D = '4-d  metadata 09:00 title "D" parent 1  stream 09:00 [1]'
E = '5-e  metadata 09:00 title "E"  stream 09:00 [1]'
NESTED = (A, f"1-a/conversations/{B}", f"1-a/conversations/2-b/conversations/{C}", f"1-a/conversations/{D}", E)
FLAT = (A, B, C, D, E)


def known_of(store: Snapshot, workspace: Snapshot, baseline: Baseline) -> SnapshotIndex:
    return SnapshotIndex.of_world(WorldState(store, workspace, baseline), RULES)


@pytest.fixture
def baseline() -> Baseline:
    return agreed_on(*NESTED)


def ids(*numbers: int) -> frozenset[str]:
    return frozenset(f"jp-c{number}" for number in numbers)


def part_of(known: SnapshotIndex, baseline: Baseline, *numbers: int) -> frozenset[str]:
    part = known.part(ids(*numbers), lambda wanted: restricted(baseline, wanted))
    look = part.world
    there = {copy.conversation for copy in (*look.store.copies, *look.workspace.copies)}
    assert there <= part.conversations
    assert look.baseline.agreed.keys() <= part.conversations
    return part.conversations


def in_place(known: SnapshotIndex, baseline: Baseline, *numbers: int, parents: tuple[int, ...] = ()) -> object:
    part = known.part_in_place(ids(*numbers), lambda wanted: restricted(baseline, wanted), parents=ids(*parents))
    if part is None:
        return None
    assert {copy.conversation for copy in part.world.store.copies} <= part.conversations
    assert part.whole.taken is known
    return part.conversations


@pytest.mark.parametrize(
    ("number", "above", "around"),
    [(5, (5,), (5,)), (3, (1, 2, 3), (1, 2, 3)), (2, (1, 2), (1, 2, 3)), (1, (1,), (1, 2, 3, 4))],
)
def test_what_lies_above_and_around(
    baseline: Baseline, number: int, above: tuple[int, ...], around: tuple[int, ...]
) -> None:
    known = known_of(stored(*FLAT), here(*NESTED), baseline)
    assert known.present() == ids(1, 2, 3, 4, 5)
    assert in_place(known, baseline, number) == ids(*above)
    assert part_of(known, baseline, number) == ids(*around)


@pytest.mark.parametrize(
    ("changed", "concerned"), [((5,), (5,)), ((3,), (1, 2, 3)), ((2,), (1, 2, 3)), ((1,), (1, 2, 3, 4)), ((), ())]
)
def test_what_lies_above_and_below_belongs_to_it(
    baseline: Baseline, changed: tuple[int, ...], concerned: tuple[int, ...]
) -> None:
    known = known_of(stored(*FLAT), here(*NESTED), baseline)
    assert part_of(known, baseline, *changed) == ids(*concerned)


def test_what_is_above_and_not_at_rest_concerns_all_that_is_below_it(baseline: Baseline) -> None:
    edited = A.replace("[1]", "[1 2]")
    known = known_of(stored(edited, *FLAT[1:]), here(*NESTED), baseline)
    assert part_of(known, baseline, 3) == ids(1, 2, 3, 4)


def test_an_edit_is_planned_in_place(baseline: Baseline) -> None:
    edited = known_of(stored(A.replace("[1]", "[1 2]"), *FLAT[1:]), here(*NESTED), baseline)
    assert in_place(edited, baseline, 1) == ids(1)
    assert in_place(edited, baseline, 3) == ids(1, 2, 3)


@pytest.mark.parametrize(
    ("store", "workspace"),
    [
        (FLAT, (*NESTED[:-1], E.replace("5-e", "5-other"))),
        (FLAT, (*NESTED, E.replace("5-e", "5-twice"))),
        ((*FLAT, E.replace("5-e", "5-twice")), NESTED),
        (FLAT, NESTED[:-1]),
        (FLAT[:-1], NESTED),
    ],
    ids=["another name", "two here", "two in the store", "not here", "not in the store"],
)
def test_nothing_is_planned_in_place_that_may_move(
    baseline: Baseline, store: tuple[str, ...], workspace: tuple[str, ...]
) -> None:
    known = known_of(stored(*store), here(*workspace), baseline)
    assert in_place(known, baseline, 5) is None
    assert in_place(known, baseline, 3) == ids(1, 2, 3)
    assert in_place(known, baseline, 3, parents=(5,)) is None


def test_a_new_parent_belongs_to_what_is_planned_in_place(baseline: Baseline) -> None:
    known = known_of(stored(*FLAT), here(*NESTED), baseline)
    (adopted,) = stored(E.replace('"E"', '"E" parent 4')).copies
    known.sides[Side.STORE].put(adopted)
    assert in_place(known, baseline, 5) == ids(1, 4, 5)


def test_below_what_only_the_store_has_a_plan_is_in_place(baseline: Baseline) -> None:
    alone = '9-z  metadata 09:00 title "Z"  stream 09:00 [1]'
    assert in_place(known_of(stored(*FLAT, alone), here(*NESTED), baseline), baseline, 5, parents=(9,)) == ids(5, 9)


def test_the_baseline_of_what_has_changed_is_loaded_once(baseline: Baseline) -> None:
    """Of more, the baseline of all of it."""
    known = known_of(stored(*FLAT), here(*NESTED), baseline)
    loaded: list[frozenset[str]] = []

    def load(wanted: Collection[str]) -> Baseline:
        loaded.append(frozenset(wanted))
        return restricted(baseline, wanted)

    assert known.part(ids(5), load).world.baseline.agreed.keys() == ids(5)
    assert loaded.count(ids(5)) == 1
    assert known.part(ids(2), load).world.baseline.agreed.keys() == ids(1, 2, 3)
    loaded.clear()
    for number, near in ((1, ids(1)), (2, ids(1, 2))):
        part = known.part_in_place(ids(number), load)
        assert part is not None
        assert part.world.baseline.agreed.keys() == near
    assert loaded == [ids(1), ids(2), ids(1, 2)]


def test_nothing_is_planned_in_place_that_was_never_in_sync(baseline: Baseline) -> None:
    unknown = replace(baseline, agreed={key: entry for key, entry in baseline.agreed.items() if key != "jp-c5"})
    assert in_place(known_of(stored(*FLAT), here(*NESTED), unknown), unknown, 5) is None


@pytest.mark.parametrize("side", Side)
def test_a_directory_with_an_earlier_name_is_not_clean(baseline: Baseline, side: Side) -> None:
    waits = replace(baseline, renames=frozenset({(side, "jp-c5")}))
    known = known_of(stored(*FLAT), here(*NESTED), waits)
    assert known.is_clean("jp-c5", waits)
    known.sides[side].drop("5-e")
    (copy,) = (stored if side is Side.STORE else here)(E.replace("5-e", "5-old")).copies
    known.sides[side].put(copy)
    moved = replace(waits, agreed={**waits.agreed, "jp-c5": replace(waits.agreed["jp-c5"], place="5-old")})
    at_place = moved if side is Side.WORKSPACE else waits
    assert known.is_clean("jp-c5", replace(at_place, renames=frozenset()))
    assert not known.is_clean("jp-c5", at_place)
    assert known.is_clean("jp-c5", replace(at_place, renames=frozenset({(side, "jp-c4")})))


def test_the_parent_that_it_gets_belongs_to_it(baseline: Baseline) -> None:
    known = known_of(stored(*FLAT), here(*NESTED), baseline)
    assert in_place(known, baseline, 5, parents=(3,)) == ids(1, 2, 3, 5)
    part = known.part(ids(5), lambda wanted: restricted(baseline, wanted), parents=ids(3))
    assert part.conversations == ids(1, 2, 3, 5)


def test_what_was_above_until_now_belongs_to_it(baseline: Baseline) -> None:
    known = known_of(stored(*FLAT), here(*NESTED), baseline)
    known.update_ancestry(ids(5), replace(baseline, parents={"jp-c5": "jp-c4"}))
    assert part_of(known, baseline, 5) == ids(1, 4, 5)
    assert part_of(known, baseline, 5) == ids(5)


def test_it_is_about_what_waits_and_what_a_copy_lies_in(baseline: Baseline) -> None:
    waits = replace(baseline, intents={"jp-c5": Intent(IntentKind.PROJECTED, waits_for="jp-c4", place="x")})
    assert above("jp-c5", stored(E).copies, waits) == ids(4)
    *_, copy = here(f"3-c/conversations/{E}").copies
    assert above("jp-c5", [copy], Baseline()) == ids(3)
    assert above("jp-c1", stored(A.replace('"A"', '"A" parent 1')).copies, Baseline()) == frozenset()


def test_a_cycle_ends(baseline: Baseline) -> None:
    kin = Ancestry()
    kin.put("a", frozenset("b"))
    kin.put("b", frozenset("a"))
    assert kin.with_above("a") == kin.with_below("a") == {"a", "b"}
    kin.put("b", frozenset())
    assert kin.with_below("a") == {"a"}
    assert kin.parents("a") == {"b"}
    assert kin.parents("c") == frozenset()


def test_a_part_suffices_while_the_sides_are_what_they_were(baseline: Baseline) -> None:
    store, workspace = stored(*FLAT), here(*NESTED)
    known = known_of(store, workspace, baseline)
    assert known.suffices()
    for path in list(known.sides[Side.WORKSPACE].paths):
        known.sides[Side.WORKSPACE].drop(path)
    assert not known.suffices()


def test_an_empty_side_that_was_empty_is_enough() -> None:
    assert known_of(stored(*FLAT), here(), Baseline()).suffices()


@pytest.mark.parametrize(
    "change",
    [
        {"problems": (Problem("", "it can't be read"),)},
        {"identity": "another"},
        {"exists": False},
        {"copies": ()},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_side_as_a_whole_is_a_cause_to_look_at_everything(baseline: Baseline, change: dict[str, object]) -> None:
    store = replace(stored(*FLAT), **change)
    baseline = replace(baseline, store_identity=stored().identity)
    assert not known_of(store, here(*NESTED), baseline).suffices()


@pytest.mark.parametrize(
    "change",
    [{"problems": (Problem("", "denied"),)}, {"exists": False}, {"copies": ()}],
    ids=lambda one: next(iter(one)),
)
def test_so_is_the_workspace(baseline: Baseline, change: dict[str, object]) -> None:
    workspace = replace(here(*NESTED), **change)
    assert not known_of(stored(*FLAT), workspace, replace(baseline, store_identity=None)).suffices()


def test_ids_are_taken_that_a_part_is_not_about(baseline: Baseline) -> None:
    known = known_of(stored(*FLAT), here(), baseline)
    whole = known.part(ids(5), lambda wanted: restricted(baseline, wanted)).whole
    assert "jp-c1" in whole.taken
    assert "jp-c9" not in whole.taken
    assert whole.directories == 0
    assert known_of(stored(), here(), baseline).absent() == ids(1, 2, 3, 4, 5)
    assert known.conversations() == ids(1, 2, 3, 4, 5)
    assert not known.absent()


def test_a_copy_takes_the_place_of_the_one_at_its_path() -> None:
    side = SideIndex.of_snapshot(here(*NESTED))
    *_, copy = here(f"1-a/conversations/{B}").copies
    before = side.put(copy)
    assert before is not None
    assert isinstance(copy.stream, Stream)
    assert before == replace(copy, stream=Stream(copy.stream.count, copy.stream.last)) == side.copy(copy.path)
    assert side.drop(copy.path) is not None
    assert side.drop(copy.path) is None
    assert "jp-c2" not in side
    assert not side.is_outside_trash("jp-c2")
    assert side.is_outside_trash("jp-c3")
    assert side.put(copy) is None
    assert side.of("jp-c2") == [side.copy(copy.path)]


def test_what_is_in_the_trash_is_not_there() -> None:
    side = SideIndex.of_snapshot(here(f".trash/{A}"))
    assert "jp-c1" in side
    assert not side.is_outside_trash("jp-c1")


def test_only_a_path_that_is_neither_archived_nor_in_the_trash_is_live() -> None:
    side = SideIndex.of_snapshot(here(*NESTED[:2], f".archive/{D}", f".trash/{E}", f".archive-not/{C}"))
    assert sorted(side.live_paths) == ["1-a", "1-a/conversations/2-b"]
    assert [side.paths_of(f"jp-c{number}") for number in (2, 4, 9)] == [
        ("1-a/conversations/2-b",),
        (".archive/4-d",),
        (),
    ]


def test_what_lies_within_and_what_is_nobodys() -> None:
    side = SideIndex.of_snapshot(
        here(*NESTED, f".archive/{E.replace('5', '6')}", '1-a/conversations/other/x  09:00 "x"', 'top  09:00 "x"')
    )
    assert side.inside("") == {"1-a", "5-e", ".archive/6-e"}
    assert sorted(side.within("1-a/conversations/2-b")) == [
        "1-a/conversations/2-b",
        "1-a/conversations/2-b/conversations/3-c",
    ]
    assert side.within("9-x") == []
    assert [each.path for each in side.foreign("1-a")] == ["1-a/conversations/other"]
    assert [each.path for each in side.foreign("")] == ["top"]
    part = side.part(ids(1), FORMAT.order)
    assert [copy.path for copy in part.copies] == ["1-a"]
    assert [each.path for each in part.foreign] == ["1-a/conversations/other"]


def test_metadata_that_nobody_can_read_says_nothing() -> None:
    (copy,) = stored("5-e  stream 09:00 [1]", '5-e/metadata.json  09:00 "{"').copies
    assert above("jp-c5", [copy], Baseline()) == frozenset()


def test_one_of_two_directories_goes() -> None:
    side = SideIndex.of_snapshot(stored(E, E.replace("5-e", "5-other")))
    (bare,) = (copy for copy in side.of("jp-c5") if copy.path == "5-e")
    assert side.put(bare) is bare
    assert side.copy("5-e") is bare
    side.drop("5-e")
    assert [copy.path for copy in side.of("jp-c5")] == ["5-other"]


def test_a_fork_gets_an_id_that_nothing_else_has() -> None:
    sides = stored(E.replace("[1]", "[1 2]")), here(E.replace("[1]", "[1 3]"))
    whole = whole_of(*sides, Baseline(), FORMAT)
    first = make_plan(*sides, Baseline(), Policy(), RULES, NOW_NS, whole).actions[0].conversation
    taken = replace(whole, taken=frozenset((first,)))
    other = make_plan(*sides, Baseline(), Policy(), RULES, NOW_NS, taken).actions[0].conversation
    assert FORMAT.order(other)[0] == FORMAT.order(first)[0] + 1


def test_a_parent_that_is_nowhere_is_no_cause_for_more() -> None:
    known = known_of(stored(E.replace('"E"', '"E" parent 9')), here(), Baseline())
    assert part_of(known, Baseline(), 5) == ids(5, 9)


def test_what_was_kept_is_built_when_it_is_asked_for() -> None:
    seen = SideIndex.of_snapshot(here(*NESTED, 'top  09:00 "x"'))
    built: list[str] = []

    def build(path: str) -> Copy | None:
        built.append(path)
        return None if path == "5-e" else seen.copy(path)

    side = SideIndex(Side.WORKSPACE, seen.identity, seen.paths, build)
    side.set_foreign(seen.all_foreign())
    assert [each.path for each in side.foreign("")] == ["top"]
    assert side.is_outside_trash("jp-c5")
    assert not side.loaded_paths()
    assert side.exists
    assert side.of("jp-c1") == side.of("jp-c1") == seen.of("jp-c1")
    assert built == ["1-a"]
    assert list(side.loaded_paths()) == ["1-a"]
    assert side.put(seen.copy("5-e")) is None  # it had to be looked at first
    assert sorted(map(str, side.copies())) == sorted(map(str, seen.copies()))


def test_what_can_be_built_again_is_freed() -> None:
    seen, side = SideIndex.of_snapshot(here(*NESTED)), SideIndex.of_snapshot(here(*NESTED))
    built: list[str] = []

    def build(path: str) -> Copy | None:
        built.append(path)
        return seen.copy(path)

    side.release(build, ["1-a"])
    assert list(side.loaded_paths()) == ["1-a"]
    assert sorted(map(str, side.copies())) == sorted(map(str, seen.copies()))
    assert sorted(built) == sorted(path for path in seen.paths if path != "1-a")


def test_who_is_above_whom_is_kept() -> None:
    kin = Ancestry({"jp-c2": ["jp-c1"], "jp-c3": ["jp-c2"]})
    kin.put("jp-c4", frozenset())
    assert kin.relations == {"jp-c2": ids(1), "jp-c3": ids(2)}
    assert kin.with_below(["jp-c1"]) == ids(1, 2, 3)


def test_only_sides_that_are_as_ever_are_ordinary(baseline: Baseline) -> None:
    assert known_of(stored(*FLAT), here(*NESTED), replace(baseline, store_identity=None)).is_ordinary
    known = known_of(stored(*FLAT), here(*NESTED), baseline)
    known.sides[Side.STORE].drop("1-a")
    assert known.suffices()
    linked = replace(stored(*FLAT), foreign=(Foreign("7-x", "a symbolic link", link=True),))
    assert not known_of(linked, here(*NESTED), replace(baseline, store_identity=None)).is_ordinary


def test_where_something_came_or_went_as_a_whole_nothing_is_ordinary(baseline: Baseline) -> None:
    known = known_of(stored(*FLAT), here(*NESTED), replace(baseline, store_identity=None))
    for path in list(known.sides[Side.STORE].paths):
        known.sides[Side.STORE].drop(path)
    assert not known.is_ordinary


def test_what_is_taken_over_from_an_earlier_run(baseline: Baseline) -> None:
    seen = known_of(stored(*FLAT), here(), Baseline())
    whole = replace(seen.whole, sides=ORDINARY)
    known = SnapshotIndex(seen.sides, seen.ancestry, ids(9), whole, RULES)
    assert known.inhabited == (True, False)
    assert known.is_ordinary
    assert "jp-c9" in known
    assert "jp-c1" in known
    assert "jp-c8" not in known
    assert SnapshotIndex(seen.sides, seen.ancestry, ids(9), whole, RULES, (True, True)).inhabited == (True, True)


def test_what_waits_is_below_what_it_waits_for_wherever_it_is(baseline: Baseline) -> None:
    waits = replace(baseline, intents={"jp-c9": Intent(IntentKind.PROJECTED, waits_for="jp-c5")})
    assert part_of(known_of(stored(*FLAT), here(*NESTED), waits), waits, 5) == ids(5, 9)


def test_what_was_above_and_is_not_at_rest_concerns_what_is_below_it_as_well(baseline: Baseline) -> None:
    edited = D.replace("[1]", "[1 2]")
    known = known_of(stored(A, B, C, edited, E), here(*NESTED), baseline)
    known.update_ancestry(ids(5), replace(baseline, parents={"jp-c5": "jp-c4"}))
    assert part_of(known, baseline, 5) == ids(1, 4, 5)


def test_what_only_the_workspace_has_is_not_at_rest() -> None:
    known = known_of(stored(), here(A, f"1-a/conversations/{B}", f"1-a/conversations/{D}"), Baseline())
    assert part_of(known, Baseline(), 2) == ids(1, 2, 4)
    available = known_of(stored(A, B, D), here(), Baseline())
    assert part_of(available, Baseline(), 2) == ids(1, 2)


def test_the_sides_of_a_part_and_how_many_directories_there_are(baseline: Baseline) -> None:
    known = known_of(stored(*FLAT), here(*NESTED[:4]), baseline)
    look = known.world_of(ids(1), baseline)
    assert (look.store.side, look.workspace.side) == (Side.STORE, Side.WORKSPACE)
    assert (known.whole.directories, known.whole.stored) == (4, 5)
    known.sides[Side.WORKSPACE].drop("1-a/conversations/4-d")
    known.sides[Side.STORE].drop("5-e")
    assert (known.whole.directories, known.whole.stored) == (3, 4)


def test_a_side_is_known_in_order() -> None:
    nine, ten = E.replace("5-e", "9-e"), E.replace("5-e", "10-e")
    inner = ['9-e/conversations/x/y  09:00 "x"', '10-e/conversations/x/y  09:00 "x"']
    doubles = [E.replace("5-e", f"5-{letter}") for letter in "gbfcead"]
    side = SideIndex.of_snapshot(here(ten, nine, *doubles, *inner))
    assert side.side is Side.WORKSPACE
    assert side.identity == "workspace:0"
    side.put(side.copy("5-b"))
    assert [copy.path for copy in side.of("jp-c5")] == [f"5-{letter}" for letter in "abcdefg"]
    part = side.part(["jp-c10", "jp-c9"], FORMAT.order)
    assert [copy.path for copy in part.copies] == ["9-e", "10-e"]
    assert [each.path for each in part.foreign] == ["10-e/conversations/x", "9-e/conversations/x"]


def test_what_comes_and_goes_is_known_by_its_place() -> None:
    side = SideIndex.of_snapshot(here(A))
    (other,) = here(E).copies
    side.put(other)
    assert side.inside("") == {"1-a", "5-e"}
    side.drop("5-e")
    assert side.inside("") == {"1-a"}
    assert list(side.loaded_paths()) == ["1-a"]


def test_a_stream_that_nobody_can_read_stays_as_it_is() -> None:
    side = SideIndex.of_snapshot(here("5-e  metadata 09:00", '5-e/events.json  09:00 "["'))
    (copy,) = side.of("jp-c5")
    assert isinstance(copy.stream, Fault)


def test_a_plain_policy_asks_for_nothing() -> None:
    assert Policy().is_plain
    assert not Policy(accept_bulk=True).is_plain
    assert not Policy(only=ids(1)).is_plain
    assert not Policy(prefer=Prefer.STORE).is_plain


NAMED: tuple[tuple[Request | None, frozenset[str] | None], ...] = (
    (None, ids()),
    (UndoRequest("run"), ids()),
    (RestoreRequest("version"), ids()),
    (LocalRequest(("jp-c1", "jp-c2")), ids(1, 2)),
    (RemoveRequest(("jp-c1",)), ids(1)),
    (QuarantineRequest(("jp-c1",)), ids(1)),
    (ProjectRequest(("jp-c1",)), ids(1)),
    (ProjectRequest((), everything=True), None),
    (ProjectRequest((), behind=True), None),
    (ProjectRequest(("jp-c1",), records=(1,)), None),
    (SetParentRequest("jp-c1", "jp-c2"), ids(1, 2)),
    (SetParentRequest("jp-c1", None), ids(1)),
    (ForkRequest("jp-c1", EventSelection()), ids(1)),
    (GcRequest(), None),
)


@pytest.mark.parametrize(("request_", "named"), NAMED)
def test_a_command_names_its_conversations_or_may_concern_any(
    request_: Request | None, named: frozenset[str] | None
) -> None:
    assert named_by(Policy(request=request_)) == named
    chosen = named_by(Policy(request=request_, only=ids(7), below=ids(8)))
    assert chosen == (None if named is None else named | ids(7, 8))


def test_a_decision_names_its_conversation() -> None:
    policy = Policy(
        decisions={"jp-c1": Take.STORE}, choices={("jp-c2", "stream"): Take.KEEP}, allow_secrets={"jp-c3": None}
    )
    assert named_by(policy) == ids(1, 2, 3)


def test_the_scope_without_a_conversation_names_none() -> None:
    assert named_by(Policy(only=NO_CONVERSATION)) == frozenset()


def test_an_earlier_run_concerns_its_conversations_and_those_that_its_paths_pass_through() -> None:
    moved = plan_of(stored(A, B, E), here(f"5-e/conversations/{A}", B, E))
    (action,) = [each for each in moved.actions if each.target.path == "1-a/conversations/2-b"]
    past = PastRun("run", (replace(action, touches=("jp-c7",)),))
    assert concerned_by_run(past, FORMAT) == ids(1, 2, 7)
    (copied,) = plan_of(stored(A, B), here(*NESTED[:3]), agreed_on(*NESTED[:2])).actions
    assert concerned_by_run(PastRun("run", (copied,)), FORMAT) == ids(1, 2, 3)
    assert concerned_by_run(PastRun("run", (replace(copied, source=None),)), FORMAT) == ids(3)
    entry = BaselineEntry({}, "jp-c4", "A", "jp-c5", "x")
    record = ConversationRecord(agreed=entry, parent="jp-c3")
    remembered = PastRun("run", (), remembered={"jp-c2": record, "jp-c6": ConversationRecord()})
    assert concerned_by_run(remembered, FORMAT) == ids(2, 3, 4, 5, 6)
    later = PastRun("run", (), since=LaterChanges({"jp-c8": "r2"}, frozenset({"jp-c9"})))
    assert concerned_by_run(later, FORMAT) == ids(8, 9)


# Clean states.


def clean(
    store: tuple[str, ...],
    workspace: tuple[str, ...],
    baseline: Baseline,
    *,
    layout: Layout = Layout.NESTED,
    known: frozenset[str] = frozenset(),
) -> dict[str, str]:
    index = known_of(stored(*store), here(*workspace), baseline)
    return index.clean_states(sorted(ids(1, 2, 3, 4, 5)), baseline, Policy(layout=layout), known)


def test_what_is_equal_and_in_its_place_is_clean(baseline: Baseline) -> None:
    assert clean(FLAT, NESTED, baseline) == dict.fromkeys(ids(1, 2, 3, 4, 5), "in-sync")


def test_in_another_layout_only_roots_are_in_their_place(baseline: Baseline) -> None:
    assert clean(FLAT, NESTED, baseline, layout=Layout.FLAT).keys() == ids(1, 5)


def test_an_edit_is_not_clean_unless_a_run_has_just_recorded_it(baseline: Baseline) -> None:
    edited = (A, B.replace("[1]", "[1 2]"), C, D, E)
    assert clean(edited, NESTED, baseline).keys() == ids(1, 3, 4, 5)
    assert clean(edited, NESTED, baseline, known=ids(2))["jp-c2"] == "in-sync"


def test_what_is_set_aside_or_waits_for_its_name_is_not_clean(baseline: Baseline) -> None:
    aside = replace(baseline, asides={("jp-c3", "stream"): AsideRecord(AsideKind.BEHIND, "a", "b")})
    assert clean(FLAT, NESTED, aside).keys() == ids(1, 2, 4, 5)
    renamed = replace(baseline, renames={(Side.STORE, "jp-c4")})
    assert clean(FLAT, NESTED, renamed).keys() == ids(1, 2, 3, 5)


def test_what_only_the_store_has_is_clean_with_its_state(baseline: Baseline) -> None:
    alone = '9-z  metadata 09:00 title "Z"  stream 09:00 [1]'
    index = known_of(stored(*FLAT, alone), here(*NESTED), baseline)
    assert index.clean_states(["jp-c9"], baseline, Policy()) == {"jp-c9": "available"}
    assert index.clean_states(["jp-c9"], baseline, Policy(missing=Missing.REPROJECT)) == {}


def test_a_circle_of_parents_is_not_clean() -> None:
    """Nor is what hangs below it."""
    circle = (A.replace('"A"', '"A" parent 3'), B, C, D, E)
    assert clean(circle, circle, agreed_on(*circle), layout=Layout.FLAT).keys() == ids(5)
    own = (A.replace('"A"', '"A" parent 1'), E)
    assert clean(own, own, agreed_on(*own)).keys() == ids(5)


@pytest.mark.parametrize("gone", ['.archive/1-a  metadata 09:00 title "A"  stream 09:00 [1]', ""])
def test_the_child_of_a_parent_that_is_not_live_is_a_root(gone: str) -> None:
    store = (*filter(None, (gone,)), B)
    known = agreed_on(B)
    assert clean(store, (B,), known)["jp-c2"] == "in-sync"
    nested = (f"1-a/conversations/{B}",)
    assert "jp-c2" not in clean(store, nested, agreed_on(A, *nested))


def test_below_metadata_that_nobody_can_read_a_child_is_in_its_place(baseline: Baseline) -> None:
    broken = (A.partition("metadata")[0] + "stream 09:00 [1]", '1-a/metadata.json  09:00 "{"', *FLAT[1:])
    assert clean(broken, NESTED, baseline).keys() == ids(2, 3, 4, 5)


def test_an_archived_one_has_its_place_whatever_its_parent_is() -> None:
    archived = (A, f".archive/{B}")
    assert clean(archived, archived, agreed_on(*archived)) == dict.fromkeys(ids(1, 2), "in-sync")
