"""Where directories go, and what stays, waits or is held on the way (docs/design/placement.md)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconcile.model.baseline import AsideKind, AsideRecord, Baseline, CommittedPlace, Intent, IntentKind
from reconcile.model.options import Layout, Missing, Take
from reconcile.model.plan import Action, Kind, Plan, Precondition
from reconcile.model.policy import LocalRequest, Policy, ProjectRequest
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import METADATA, STREAM, WHOLE, Side
from reconcile.planning.rules.views import PLACE
from reconcile.planning.steps import placement
from tests.support.formats.notes import RULES
from tests.support.scenarios.building import agreed_on, here, plan_of, stored, unreadable

A = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
B = '2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1]'
C = '3-c  metadata 09:00 title "C" parent 2  stream 09:00 [1]'
FREE_B = '2-b  metadata 09:00 title "B"  stream 09:00 [1]'
H = '8-h  metadata 09:00 title "H"  stream 09:00 [1]'
"""Somebody else, so that no side is empty."""
NAME_LIMIT = 255
"""Bytes of a name that common file systems hold."""
IN_A, IN_B = "1-a/conversations/", "1-a/conversations/2-b/conversations/"
NESTED_B, NESTED_C = IN_A + B, IN_B + C
ALL = agreed_on(A, NESTED_B, NESTED_C, H)
FLAT_BEFORE = replace(agreed_on(A, B, H), layout="flat")
FLAT, AGAIN = Policy(layout=Layout.FLAT), Policy(missing=Missing.REPROJECT)


def shown(plan: Plan) -> list[str]:
    return [
        f"{action.kind.value} {action.conversation} {action.reason.value} {action.target}" for action in plan.actions
    ]


def said(plan: Plan) -> list[tuple[str | None, Reason]]:
    items = [(item.conversation, item.reason) for item in (*plan.held, *plan.aside)]
    return items + [(note.conversation, note.reason) for note in plan.notes]


def of(plan: Plan, kind: Kind, side: Side = Side.WORKSPACE) -> list[Action]:
    return [action for action in plan.actions if action.kind is kind and action.target.side is side]


def test_a_directory_lies_in_its_parents() -> None:
    plan = plan_of(stored(A, B), here(A, B))
    assert shown(plan) == ["move jp-c2 layout workspace:1-a/conversations/2-b"]
    (move,) = plan.actions
    assert (move.unit, move.case, move.title) == (WHOLE, None, "B")
    assert not plan_of(stored(A, B), here(A, B), policy=FLAT).actions


BELOW_H = B.replace("parent 1", "parent 8")
BELOW_B = A.replace('"A"', '"A" parent 2')
WHYS = {
    "its parent was changed": (
        ALL,
        (A, B, C.replace("parent 2", "parent 1"), H),
        "parent-changed jp-c3 1-a/conversations/3-c",
    ),
    "its parent is gone": (ALL, (A, B, C.replace("parent 2", "parent 9"), H), "parent-gone jp-c3 3-c"),
    "it was made a root": (ALL, (A, B, C.replace("parent 2", "parent null"), H), "parent-changed jp-c3 3-c"),
    "a cycle is broken at it": (ALL, (A.replace('"A"', '"A" parent 1'), B, C, H), ""),
    "a cycle begins": (
        agreed_on(A, f"8-h/conversations/{BELOW_H}", H),
        (A, B.replace("parent 1", "parent 2"), H),
        "cycle-broken jp-c2 2-b",
    ),
}


@pytest.mark.parametrize(("baseline", "store", "found"), WHYS.values(), ids=WHYS)
def test_why_a_directory_moves(baseline: Baseline, store: tuple[str, ...], found: str) -> None:
    places = {each.place: conversation for conversation, each in baseline.agreed.items()}
    lines = {f"jp-c{line[0]}": line for line in (A, B, C, H)}
    if "jp-c3" not in baseline.agreed:
        lines["jp-c2"] = BELOW_H
    workspace = [place + lines[conversation][3:] for place, conversation in places.items()]
    moves = of(plan_of(stored(*store), here(*workspace), baseline), Kind.MOVE)
    assert [f"{move.reason.value} {move.conversation} {move.target.path}" for move in moves] == (
        [found] if found else []
    )


def test_what_somebody_else_moved_stays_there_and_gets_its_new_name() -> None:
    plan = plan_of(stored(A, B, C, H), here(A, B, f"2-b/conversations/{C}", H), ALL)
    assert (shown(plan), said(plan)) == ([], [("jp-c2", Reason.DISPLACED)])
    assert plan.displaced == frozenset({"jp-c2"})
    retitled = plan_of(stored(A, B.replace('"B"', '"Z"'), C, H), here(A, B, f"2-b/conversations/{C}", H), ALL)
    assert [f"{move.reason.value} {move.target.path}" for move in of(retitled, Kind.MOVE)] == ["title-changed 2-z"]
    renamed = plan_of(stored(A, B.replace('"B"', '"Z"'), C, H), here(A, NESTED_B, NESTED_C, H), ALL)
    assert [f"{move.reason.value} {move.target.path}" for move in of(renamed, Kind.MOVE)] == [
        "title-changed 1-a/conversations/2-z"
    ]


def test_a_new_parent_and_a_new_title_are_one_move() -> None:
    store = stored(A, B, C.replace('"C" parent 2', '"Z" parent 1'), H)
    (move,) = of(plan_of(store, here(A, NESTED_B, NESTED_C, H), ALL), Kind.MOVE)
    assert (move.reason, move.target.path) == (Reason.PARENT_CHANGED, "1-a/conversations/3-z")


def test_where_the_layout_is_another_one_everything_is_placed_anew() -> None:
    plan = plan_of(stored(A, B, C, H), here(A, B, C, H), replace(ALL, layout="flat"))
    assert [f"{move.reason.value} {move.conversation}" for move in plan.actions] == ["layout jp-c2", "layout jp-c3"]


def test_what_is_asked_for_again_goes_to_its_place() -> None:
    baseline = replace(ALL, intents={"jp-c2": Intent(IntentKind.REMOVED)})
    plan = plan_of(stored(A, B, C, H), here(A, B, H), baseline)
    assert [f"{move.reason.value} {move.conversation}" for move in of(plan, Kind.MOVE)] == ["layout jp-c2"]


def test_a_duplicate_at_the_right_depth_stays_under_its_parent() -> None:
    """Another directory of it lay where it was agreed on."""
    workspace = here(A, NESTED_B, f"{IN_A}2-x{B[3:]}", H)
    plan = plan_of(stored(A, B, H), workspace, agreed_on(A, NESTED_B, H))
    assert shown(plan) == ["remove-stale jp-c2 duplicate workspace:1-a/conversations/2-x"]


def test_below_what_is_not_here_a_directory_stays_where_it_is() -> None:
    plan = plan_of(stored(A, B, H), here(B, H))
    assert (shown(plan), said(plan)) == ([], [("jp-c2", Reason.PARENT_ABSENT)])


BROKEN_A = '1-a/metadata.json  09:00 "{"'


def test_nothing_moves_below_what_cannot_be_placed() -> None:
    """Its metadata can't be read, so that nobody knows whose child it is."""
    store = stored("1-a  stream 09:00 [1]", BROKEN_A, B, C, H)
    plan = plan_of(store, here("1-a  stream 09:00 [1]", BROKEN_A, B, C, H))
    assert not of(plan, Kind.MOVE)


@pytest.mark.parametrize(
    ("workspace", "made"),
    [
        ((A,), ["2-b", "3-c"]),
        (("1-a  metadata 09:00", '1-a/events.json  09:00 "{"'), []),
        ((A.replace('metadata 09:00 title "A"  ', ""), '1-a/metadata.json  09:00 "{"'), []),
        ((), []),
    ],
    ids=["whole", "broken stream", "broken metadata", "absent"],
)
def test_new_directories_are_made_only_in_whole_ones(workspace: tuple[str, ...], made: list[str]) -> None:
    intents = {each: Intent(IntentKind.PROJECTED) for each in ("jp-c2", "jp-c3")}
    baseline = replace(agreed_on(A, H), intents=intents)
    plan = plan_of(stored(A, B, C, H), here(*workspace, H), baseline)
    found = [action.target.path.rpartition("/")[2] for action in of(plan, Kind.PROJECT) if action.unit == WHOLE]
    assert found == made


def test_nor_in_one_that_is_new_and_cannot_be_saved() -> None:
    baseline = replace(agreed_on(H), intents={"jp-c2": Intent(IntentKind.PROJECTED)})
    broken = ['1-a  metadata 09:00 title "A"', '1-a/events.json  09:00 "{"']
    assert not of(plan_of(stored(B, H), here(*broken, H), baseline), Kind.PROJECT)


def test_below_one_that_is_behind_or_lies_in_another_that_is_broken_nothing_new_is_made() -> None:
    baseline = replace(
        agreed_on(A.replace("[1]", "[1 2]"), NESTED_B, H), intents={"jp-c3": Intent(IntentKind.PROJECTED)}
    )
    store = stored(A.replace("[1]", "[1 2]"), B, C, H)
    plan = plan_of(store, here(A.replace("stream 09:00", "stream 09:30"), NESTED_B, H), baseline)
    assert not of(plan, Kind.PROJECT)


def test_what_is_to_be_removed_is_no_place_for_new_ones() -> None:
    baseline = replace(agreed_on(A, NESTED_B, H), intents={"jp-c3": Intent(IntentKind.PROJECTED)})
    plan = plan_of(stored(A, C, H), here(A, NESTED_B, H), baseline)
    assert [action.target.path for action in of(plan, Kind.PROJECT)] == ["3-c"]
    assert [action.target.path for action in of(plan, Kind.REMOVE_STALE)] == ["1-a/conversations/2-b"]


INTENT = Intent(IntentKind.PROJECTED, waits_for="jp-c1", place="1-a/conversations/2-b")


def waiting() -> Baseline:
    """Return a memory in which B went with A."""
    return replace(agreed_on(A, NESTED_B, H), intents={"jp-c2": INTENT})


WAITS: dict[str, tuple[tuple[str, ...], tuple[str, ...], Policy, IntentKind | None, str]] = {
    "its ancestor is back": ((A, B), (A,), Policy(), None, "ancestor-returned"),
    "its ancestor isn't": ((A, B), (), Policy(), None, ""),
    "its ancestor is back, but not whole": (
        (A, B),
        ("1-a  metadata 09:00", '1-a/events.json 09:00 "{"'),
        Policy(),
        None,
        "",
    ),
    "it was given another parent": ((A, B.replace("parent 1", "parent 8")), (A,), Policy(), None, "removed"),
    "the same, in a flat layout": ((A, B.replace("parent 1", "parent 8")), (A,), FLAT, None, "ancestor-returned"),
    "its ancestor left for good": ((B,), (), Policy(), None, "ancestor-left"),
    "its ancestor left, and was local": ((B,), (), Policy(), IntentKind.LOCAL, "removed"),
    "its ancestor left, and had been asked for": ((B,), (), Policy(), IntentKind.PROJECTED, "ancestor-left"),
    "it isn't whole itself": ((A, "2-b  stream 09:00 [1]"), (A,), Policy(), None, ""),
    "nor is this one": ((A, '2-b  metadata 09:00 title "B" parent 1'), (A,), Policy(), None, ""),
    "it isn't whole, and its ancestor left": (('2-b  metadata 09:00 title "B" parent 1',), (), Policy(), None, ""),
}


@pytest.mark.parametrize(("store", "workspace", "policy", "kind", "found"), WAITS.values(), ids=WAITS)
def test_what_waits_for_an_ancestor(
    store: tuple[str, ...], workspace: tuple[str, ...], policy: Policy, kind: IntentKind | None, found: str
) -> None:
    baseline = waiting()
    baseline = replace(
        baseline, layout=policy.layout.value, intents={**baseline.intents, **({"jp-c1": Intent(kind)} if kind else {})}
    )
    plan = plan_of(stored(*store, H), here(*workspace, H), baseline, policy)
    made = [action.reason.value for action in of(plan, Kind.PROJECT) if action.conversation == "jp-c2"]
    removed = [
        intent for key, intent in plan.intents if key == "jp-c2" and intent and intent.kind is IntentKind.REMOVED
    ]
    assert (made or ["removed" for _ in removed] or [""]) == [found]


def test_what_comes_back_into_a_directory_with_files_is_noted_first() -> None:
    """After an interrupted run, some of its files there would decide nothing."""
    child = C.replace('"C" parent 2', '"E" parent 1').replace("3-c", "5-e")
    for workspace, noted in (((A, BELOW), True), ((A,), False)):
        plan = plan_of(stored(A, B, child, H), here(*workspace, H), waiting())
        assert [action.reason.value for action in of(plan, Kind.PROJECT)][:1] == ["ancestor-returned"]
        intents = dict(plan.intents)
        assert ("jp-c2" in intents, intents.get("jp-c2")) == (
            (True, replace(INTENT, waits_for=None)) if noted else (False, None)
        )


def test_what_comes_back_because_its_ancestor_left_is_noted_first() -> None:
    """After an interrupted run, its ancestor counts as removed."""
    assert dict(plan_of(stored(B, H), here(H), waiting()).intents)["jp-c2"] == replace(INTENT, waits_for=None)


def test_what_waits_for_one_that_left_and_is_to_lie_in_another_waits_for_that() -> None:
    store = stored(B.replace("parent 1", "parent 4"), H, H.replace("8-h", "4-d"))
    plan = plan_of(store, here(H), waiting())
    assert not of(plan, Kind.PROJECT)


def test_what_waits_for_one_that_nobody_knows_is_removed() -> None:
    baseline = waiting()
    baseline = replace(baseline, agreed={key: each for key, each in baseline.agreed.items() if key != "jp-c1"})
    plan = plan_of(stored(FREE_B, H), here(H), baseline)
    assert [(key, intent.kind) for key, intent in plan.intents if intent] == [("jp-c2", IntentKind.REMOVED)]


def test_a_fork_of_what_is_local_goes_nowhere_though_everything_else_does() -> None:
    ours, theirs = H.replace("[1]", "[1 2]"), H.replace("stream 09:00 [1]", "stream 09:30 [1 3]")
    flat = Policy(layout=Layout.FLAT, missing=Missing.REPROJECT)
    for intents, sides in (({}, [Side.STORE, Side.WORKSPACE]), ({"jp-c8": Intent(IntentKind.LOCAL)}, [Side.STORE])):
        baseline = replace(agreed_on(A, H), intents=intents, layout=Layout.FLAT)
        plan = plan_of(stored(A, ours), here(A, theirs), baseline, flat)
        (fork,) = of(plan, Kind.FORK, Side.STORE)
        assert [each.target.side for each in plan.actions if each.conversation == fork.conversation] == sides


def test_in_a_new_directory_are_the_managed_files_and_what_had_come_from_a_workspace() -> None:
    notes = ['2-b/NOTE.md  09:00 "x"', '2-b/QUERY_MESSAGE.md  09:00 "private"']
    agreed = waiting().agreed["jp-c2"]
    units = {**agreed.units, "extra:NOTE.md": "x"}
    baseline = replace(waiting(), agreed={**waiting().agreed, "jp-c2": replace(agreed, units=units)})
    (made,) = of(plan_of(stored(A, B, *notes, H), here(A, H), baseline), Kind.PROJECT)
    files = ["metadata.json", "base_config.json", "events.json", "NOTE.md"]
    assert sorted(write.target.path.rpartition("/")[2] for write in made.writes) == sorted(files)
    assert (made.events, made.title, made.case) == ((0, 1), "B", 12)
    (made,) = of(plan_of(stored(A, *notes, B, H), here(A, H), replace(ALL, agreed={}), AGAIN), Kind.PROJECT)
    assert len(made.writes) == 3


def test_a_new_directory_expects_nothing_in_its_place_and_what_lies_in_it_comes_after() -> None:
    first, second = of(plan_of(stored(A, B, H), here(H), agreed_on(H), AGAIN), Kind.PROJECT)
    assert Precondition(first.target, 0, 0, None) in first.expect
    assert first.id in second.needs


TAKEN = f'{IN_A}2-b/NOTE.md  09:00 "x"'
BELOW = f'{IN_A}2-b/conversations/5-e  metadata 09:00 title "E" parent 1  stream 09:00 [1]'


def test_a_place_with_somebody_elses_files_is_left_to_them() -> None:
    plan = plan_of(stored(A, B, H), here(A, TAKEN, H), policy=AGAIN)
    assert not of(plan, Kind.PROJECT)
    (held,) = plan.held
    assert (held.conversation, held.reason) == ("jp-c2", Reason.OBSTRUCTED)
    assert held.message == "1-a/conversations/2-b exists and has other files; move it away"


def test_an_empty_directory_is_no_obstacle_and_one_with_children_is_filled() -> None:
    empty = plan_of(stored(A, B, H), here(A, f"{IN_A}2-b/", H), policy=AGAIN)
    assert [action.unit for action in of(empty, Kind.PROJECT)] == [WHOLE]
    baseline = agreed_on(A, H)
    store = stored(A, B, BELOW.removeprefix(f"{IN_A}2-b/conversations/"), H)
    filled = plan_of(store, here(A, BELOW, H), baseline, AGAIN)
    assert {action.unit: action.events for action in of(filled, Kind.PROJECT)} == {METADATA: None, STREAM: (0, 1)}
    assert {
        action.target.path.rpartition("/")[0] for action in of(filled, Kind.PROJECT) if action.unit == METADATA
    } == {"1-a/conversations/2-b"}


def test_a_move_to_a_place_with_somebody_elses_files_is_held() -> None:
    plan = plan_of(stored(A, B, H), here(A, B, TAKEN, H))
    assert not of(plan, Kind.MOVE)
    assert said(plan)[0] == ("jp-c2", Reason.OBSTRUCTED)


def test_somebody_elses_files_are_in_the_way_at_that_place_alone() -> None:
    bare_directory = '1-a/NOTE.md  09:00 "x"'
    plan = plan_of(stored(H, f"8-h/conversations/{A}"), here(bare_directory, H))
    assert shown(plan) == ["move jp-c1 flattened store:1-a"]
    elsewhere = f"8-h/conversations/2-b/{TAKEN.rpartition('/')[2]}"
    assert len(of(plan_of(stored(A, B, H), here(A, B, elsewhere, H)), Kind.MOVE)) == 1


def test_what_was_carried_into_the_archive_of_another_one_comes_out_of_it() -> None:
    carried = f".archive/8-h/conversations/{A}"
    plan = plan_of(stored(A, f".archive/{H}", C), here(f".archive/{H}", carried, C), agreed_on(A, H, C))
    assert "move jp-c1 parent-changed workspace:1-a" in shown(plan)


def test_what_lost_its_parent_long_ago_stays_where_somebody_moved_it() -> None:
    lost = A.replace('"A"', '"A" parent 9')
    plan = plan_of(stored(lost, H), here(f"8-h/conversations/{lost}", H), agreed_on(lost, H))
    assert (shown(plan), said(plan)) == ([], [("jp-c1", Reason.DISPLACED)])


def test_a_move_waits_for_what_lies_at_its_place_to_leave() -> None:
    plan = plan_of(stored(A, B, BELOW.removeprefix(f"{IN_A}2-b/conversations/"), H), here(A, B, BELOW, H))
    first, second = of(plan, Kind.MOVE)
    assert (first.conversation, second.conversation) == ("jp-c5", "jp-c2")
    assert first.id in second.needs
    assert plan.held == ()


def test_a_blocked_move_needs_what_was_saved_of_it() -> None:
    edited = B.replace("[1]", "[1 2]")
    plan = plan_of(stored(A, B, BELOW.removeprefix(f"{IN_A}2-b/conversations/"), H), here(A, edited, BELOW, H))
    (copy,) = of(plan, Kind.COPY, Side.STORE)
    (move,) = (action for action in of(plan, Kind.MOVE) if action.conversation == "jp-c2")
    assert copy.id in move.needs
    root, taken = B.replace(" parent 1", ""), BELOW.removeprefix(IN_A).replace("parent 1", "parent null")
    baseline = agreed_on(A, NESTED_B, H)
    store = stored(A, B, taken.removeprefix("2-b/conversations/"), H)
    plan = plan_of(store, here(A, f"{IN_A}{root}", taken, H), baseline)
    (stated,) = of(plan, Kind.SET_PARENT, Side.STORE)
    (move,) = (action for action in of(plan, Kind.MOVE) if action.conversation == "jp-c2")
    assert stated.id in move.needs


def test_a_move_needs_the_step_that_states_its_parent_and_no_other_of_the_store() -> None:
    """Somebody removed the key in a nested copy, so that it is a root; its stream was continued, too."""
    root, longer = B.replace(" parent 1", ""), B.replace(" parent 1", "").replace("[1]", "[1 2]")
    for line in (root, longer):
        plan = plan_of(stored(A, B, H), here(A, f"{IN_A}{line}", H), agreed_on(A, NESTED_B, H))
        (stated,) = of(plan, Kind.SET_PARENT, Side.STORE)
        (move,) = of(plan, Kind.MOVE)
        assert (move.reason, stated.id in move.needs) == (Reason.PARENT_CHANGED, True)
    (stripped,) = of(flat := plan_of(stored(A, root, H), here(A, B, H), FLAT_BEFORE), Kind.SET_PARENT, Side.STORE)
    (move,) = of(flat, Kind.MOVE)
    assert (move.reason, stripped.id in move.needs) == (Reason.LAYOUT, False)
    store = stored(A, B.replace("metadata 09:00", "metadata 10:00").replace("parent 1", 'parent null user="me"'), H)
    other = NESTED_B.replace("metadata 09:00", "metadata 10:30").replace("parent 1", 'parent 1 colour="red"')
    merged = plan_of(store, here(A, other, H), agreed_on(A, NESTED_B, H))
    (move,) = of(merged, Kind.MOVE)
    saved = {action.id for action in merged.actions if action.target.side is Side.STORE}
    assert (move.reason, bool(saved), saved.isdisjoint(move.needs)) == (Reason.PARENT_CHANGED, True, True)


def test_a_file_called_conversations_is_in_the_way() -> None:
    workspace = here(A, B, H)
    copies = tuple(replace(copy, obstructed=copy.path == "1-a") for copy in workspace.copies)
    plan = plan_of(stored(A, B, H), replace(workspace, copies=copies))
    assert not plan.actions
    (held,) = plan.held
    assert (held.reason, held.message) == (
        Reason.OBSTRUCTED,
        "1-a/conversations is not a directory; move it away",
    )
    assert not plan_of(stored(H), replace(here(A, H), copies=copies)).held[1:]


def test_a_directory_is_not_moved_into_itself() -> None:
    """The one that is its parent now lies in it, and may not be moved."""
    baseline = agreed_on(FREE_B, f"2-b/conversations/{BELOW_B}", H)
    baseline = replace(baseline, intents={"jp-c1": Intent(IntentKind.LOCAL)})
    plan = plan_of(stored(A, B, H), here(FREE_B, f"2-b/conversations/{BELOW_B}", H), baseline)
    assert not of(plan, Kind.MOVE)
    (held,) = plan.held
    assert (held.conversation, held.unit, held.reason) == ("jp-c2", WHOLE, Reason.OBSTRUCTED)
    assert held.message == "its new place 2-b/conversations/1-a is inside its own directory"


def test_a_name_that_is_no_text_is_counted_in_bytes() -> None:
    workspace = here(A, B, H)
    name = "2-" + "\udc80" * (NAME_LIMIT - 2)
    copies = tuple(replace(copy, path=name if copy.path == "2-b" else copy.path) for copy in workspace.copies)
    plan = plan_of(stored(A, B, H), replace(workspace, copies=copies))
    assert [move.target.path for move in of(plan, Kind.MOVE)] == [f"1-a/conversations/{name}"]


ROOM = len(b"1-a/conversations/2-b") + len("base_config.json") + 32


@pytest.mark.parametrize(("limit", "fits"), [(ROOM, True), (ROOM - 1, False)])
def test_a_path_is_as_long_as_it_may_be(limit: int, fits: bool) -> None:
    plan = plan_of(stored(A, B, H), here(A, B, H), policy=Policy(path_limit=limit))
    assert bool(plan.actions) is fits
    assert [item.message for item in plan.held] == (
        [] if fits else ["the path in the workspace would have 21 characters; shorten the title, or use --layout flat"]
    )


def test_the_path_of_a_record_needs_room_for_a_temporary_name_alone() -> None:
    """A record has no stream files."""
    limit = len("n.md") + 32
    fitting = [placement.fits("n.md", Policy(path_limit=room), RULES) for room in (limit, limit - 1)]
    assert fitting == [True, False]


def test_a_name_is_as_long_as_it_may_be() -> None:
    for length, fits in ((NAME_LIMIT, True), (NAME_LIMIT + 1, False)):
        name = "2-" + "b" * (length - 2)
        plan = plan_of(stored(A, B, H), here(A, name + B[3:], H))
        assert bool(of(plan, Kind.MOVE)) is fits


def test_a_fork_follows_its_source_where_all_is_to_be_there() -> None:
    ours, theirs = A.replace("09:00 [1]", "09:30 [1 2]"), A.replace("09:00 [1]", "09:40 [1 3]")
    baseline = agreed_on(A, H)
    for policy, memory_, path in (
        (AGAIN, baseline, "1-a/conversations/"),
        (replace(AGAIN, layout=Layout.FLAT), replace(baseline, layout="flat"), ""),
        (Policy(), baseline, None),
        (AGAIN, replace(baseline, intents={"jp-c1": Intent(IntentKind.LOCAL)}), None),
    ):
        plan = plan_of(stored(ours, H), here(theirs, H), memory_, policy)
        (fork,) = of(plan, Kind.FORK, Side.STORE)
        made = of(plan, Kind.PROJECT)
        if path is None:
            assert made == []
        else:
            (project,) = made
            name = fork.target.path
            assert (project.conversation, project.target.path) == (fork.conversation, path + name)
            assert (project.title, project.reason, project.case) == ("[diverged] A", Reason.REPROJECTED, 3)
            assert (project.events, fork.id in project.needs) == ((0, 2), True)


def test_forks_of_several_follow_each_its_own() -> None:
    base = [A, H]
    ours = [line.replace("09:00 [1]", f"09:30 [1 2{line[0]}]") for line in base]
    theirs = [line.replace("09:00 [1]", f"09:40 [1 3 4{'a' * (line is H)}]") for line in base]
    plan = plan_of(stored(*ours), here(*theirs), agreed_on(*base), AGAIN)
    forks = {fork.conversation: fork for fork in of(plan, Kind.FORK, Side.STORE)}
    assert {made.title for made in of(plan, Kind.PROJECT)} == {"[diverged] A", "[diverged] H"}
    assert all(made.title == forks[made.conversation].title for made in of(plan, Kind.PROJECT))


def test_a_fork_of_an_archived_one_is_at_the_top_and_of_a_broken_one_in_the_store_alone() -> None:
    ours, theirs = A.replace("09:00 [1]", "09:30 [1 2]"), A.replace("09:00 [1]", "09:40 [1 3]")
    archived = plan_of(stored(f".archive/{ours}", H), here(f".archive/{theirs}", H), agreed_on(A, H), AGAIN)
    (made,) = of(archived, Kind.PROJECT)
    assert "/" not in made.target.path
    broken = [theirs.replace('metadata 09:00 title "A"  ', ""), BROKEN_A]
    plan = plan_of(stored(ours, H), here(*broken, H), agreed_on(A, H), AGAIN)
    assert len(of(plan, Kind.FORK, Side.STORE)) == 1
    assert not of(plan, Kind.PROJECT)


ARCHIVED = [f".archive/{A}"]
STAYS = {
    "live": ((A, H), [".archive/1-a"]),
    "archived": ((f".archive/{A}", H), []),
    "archived below another one": ((f".archive/8-h/conversations/{A}", H), [".archive/1-a"]),
}


@pytest.mark.parametrize(("workspace", "moves"), STAYS.values(), ids=STAYS)
def test_the_workspace_follows_the_stores_archive(workspace: tuple[str, ...], moves: list[str]) -> None:
    plan = plan_of(stored(*ARCHIVED, H), here(*workspace), agreed_on(A, H))
    assert [action.target.path for action in of(plan, Kind.ARCHIVE)] == moves


def test_what_is_local_or_leaves_is_not_archived_here() -> None:
    baseline = agreed_on(A, H)
    local = replace(baseline, intents={"jp-c1": Intent(IntentKind.LOCAL)})
    assert not of(plan_of(stored(*ARCHIVED, H), here(A, H), local), Kind.ARCHIVE)
    leaving = Policy(request=LocalRequest(("jp-c1",)))
    assert not of(plan_of(stored(*ARCHIVED, H), here(A, H), baseline, leaving), Kind.ARCHIVE)


def test_what_is_archived_stays_where_it_is_while_nobody_can_read_it() -> None:
    broken = ["1-a  stream 09:00 [1]", BROKEN_A]
    plan = plan_of(stored(*(f".archive/{line}" for line in broken), H), here(*broken, H), agreed_on(A, H))
    assert not plan.actions


def test_what_leaves_is_not_moved_first() -> None:
    leaving = Policy(request=LocalRequest(("jp-c2",)))
    store = stored(A, B.replace("parent 1", "parent null"), H)
    plan = plan_of(store, here(A, NESTED_B, H), agreed_on(A, NESTED_B, H), leaving)
    assert [action.kind for action in plan.actions if action.target.side is Side.WORKSPACE] == [Kind.REMOVE_STALE]


def test_an_archived_one_comes_back_into_the_archive() -> None:
    baseline = replace(agreed_on(A, H), intents={"jp-c1": Intent(IntentKind.PROJECTED)})
    plan = plan_of(stored(*ARCHIVED, H), here(H), baseline)
    assert shown(plan) == ["project jp-c1 projected workspace:.archive/1-a"]
    incomplete = '.archive/1-a  metadata 09:00 title "A"'
    assert not plan_of(stored(incomplete, H), here(H), baseline).actions


def test_the_store_is_flat_and_named_by_titles() -> None:
    plan = plan_of(stored(H, f"8-h/conversations/{A}"), here(A, H))
    assert shown(plan) == ["move jp-c1 flattened store:1-a"]
    plan = plan_of(
        stored(A.replace("1-a", "1-x"), H), here(A, H), agreed_on(A.replace('"A"', '"X"').replace("1-a", "1-x"), H)
    )
    assert "move jp-c1 title-changed store:1-a" in shown(plan)
    nested = f"8-h/conversations/{A}".replace("1-a", "1-x")
    titled = agreed_on(A.replace('"A"', '"X"').replace("1-a", "1-x"), H)
    assert "move jp-c1 flattened store:1-a" in shown(plan_of(stored(H, nested), here(A, H), titled))
    plan = plan_of(stored(H, f".archive/8-h/conversations/.archive/{A}"), here(H))
    assert [action.target.path for action in of(plan, Kind.MOVE, Side.STORE)] == [".archive/1-a"]


def test_asked_for_below_one_that_is_not_here_it_waits() -> None:
    baseline = replace(agreed_on(H), intents={"jp-c2": Intent(IntentKind.PROJECTED)})
    plan = plan_of(stored(A, B, H), here(H), baseline)
    assert (of(plan, Kind.PROJECT), plan.intents) == ([], ())
    assert not of(plan_of(unreadable(stored(FREE_B, H), "2-b/events.json"), here(H), baseline), Kind.PROJECT)
    assert of(plan_of(stored(FREE_B, H), here(H), baseline), Kind.PROJECT)
    both = Policy(request=ProjectRequest(("jp-c2",), ancestors=True))
    assert [
        action.conversation for action in of(plan_of(stored(A, B, H), here(H), agreed_on(H), both), Kind.PROJECT)
    ] == [
        "jp-c1",
        "jp-c2",
    ]


def test_what_was_to_become_a_root_does_so_after_a_run_cut_short() -> None:
    """The first run remembers that its ancestor, public until then, is removed (docs/design/intents.md#rule-24)."""
    archived = stored(f".archive/{A}", B, H)
    first = plan_of(archived, here(H), ALL)
    (child,) = of(first, Kind.PROJECT)
    assert (child.conversation, child.reason) == ("jp-c2", Reason.ANCESTOR_LEFT)
    noted = {key: intent for key, intent in first.intents if intent is not None}
    assert noted["jp-c1"].kind is IntentKind.REMOVED
    again = plan_of(archived, here(H), replace(ALL, intents=noted))
    assert [action.target for action in of(again, Kind.PROJECT)] == [child.target]


def test_a_flag_of_jp_holds_for_what_nobody_asked_for() -> None:
    flagged = stored(B.replace('"B"', '"B" local=true'), H)
    for intent, projected in ((Intent(IntentKind.PROJECTED, place="2-b"), 0), (Intent(IntentKind.PROJECTED), 1)):
        plan = plan_of(flagged, here(H), replace(agreed_on(H), intents={"jp-c2": intent}))
        assert len(of(plan, Kind.PROJECT)) == projected


WORKSPACE_REASONS = {Kind.ARCHIVE: Reason.ARCHIVED, Kind.UNARCHIVE: Reason.UNARCHIVED}
BY_GIT = {
    "a later commit has archived it": ("1-a", ".archive/1-a", Side.STORE, [(Kind.ARCHIVE, "store:.archive/1-a")]),
    "a later commit has it live again": (".archive/1-a", "1-a", Side.STORE, [(Kind.UNARCHIVE, "store:1-a")]),
    "an earlier commit has it live": (".archive/1-a", "1-a", Side.WORKSPACE, []),
    "an earlier commit has it archived": ("1-a", ".archive/1-a", Side.WORKSPACE, []),
}


@pytest.mark.parametrize(("store", "workspace", "older", "steps"), BY_GIT.values(), ids=BY_GIT)
def test_where_git_has_put_a_directory(store: str, workspace: str, older: Side, steps: list[tuple[Kind, str]]) -> None:
    line = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
    agreed = agreed_on(line.replace("1-a", store))
    baseline = replace(agreed, committed={"jp-c1": CommittedPlace(workspace, older, "c1")})
    sides = stored(line.replace("1-a", store)), here(line.replace("1-a", workspace))
    plan = plan_of(*sides, baseline)
    assert [(action.kind, str(action.target)) for action in plan.actions] == steps
    assert all(action.reason is Reason.LATER_COMMIT for action in plan.actions)
    left = [(item.unit, item.reason) for item in plan.aside]
    assert left == ([] if steps else [(WHOLE, Reason.DISPLACED)])
    ways = {
        Take.STORE: (Kind.ARCHIVE if "archive" in store else Kind.UNARCHIVE, f"workspace:{store}"),
        Take.WORKSPACE: (Kind.ARCHIVE if "archive" in workspace else Kind.UNARCHIVE, f"store:{workspace}"),
    }
    for take, way in ways.items():
        decided = plan_of(*sides, agreed, Policy(decisions={"jp-c1": take}))
        assert [(action.kind, str(action.target)) for action in decided.actions] == [way]
        in_store = way[1].startswith("store:")
        assert decided.actions[0].reason is (Reason.DECIDED if in_store else WORKSPACE_REASONS[way[0]])
        assert decided.aside == ()
    kept = plan_of(*sides, agreed, Policy(decisions={"jp-c1": Take.KEEP}))
    assert (kept.actions, len(kept.aside)) == ((), 1)
    assert kept.displaced == (frozenset() if store == "1-a" else frozenset({"jp-c1"}))
    as_ever = plan_of(*sides, agreed, Policy(decisions={"jp-c1": Take.BOTH}))
    assert as_ever.actions == plan_of(*sides, agreed).actions


def test_that_a_directory_stays_is_remembered_for_as_long_as_it_is_there() -> None:
    line = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
    baseline = replace(agreed_on(line), committed={"jp-c1": CommittedPlace(".archive/1-a", None, "c1")})
    moved = line.replace("1-a", ".archive/1-a")
    plan = plan_of(stored(line), here(moved), baseline)
    key, record = ("jp-c1", PLACE), AsideRecord(AsideKind.PLACED, "live", ".archive/1-a")
    assert plan.asides == ((key, record),)
    left = replace(baseline, asides={key: record}, committed={})
    assert plan_of(stored(line), here(moved), left).asides == ()
    assert [item.reason for item in plan_of(stored(line), here(moved), left).aside] == [Reason.DISPLACED]
    assert plan_of(stored(line), here(line), left).asides == ((key, None),)


def test_what_lies_in_a_directory_that_git_has_put_somewhere_stays_in_it() -> None:
    parent, child = (
        '1-a  metadata 09:00 title "A"  stream 09:00 [1]',
        '2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1]',
    )
    inside = [parent, f"1-a/conversations/{child}"]
    baseline = replace(agreed_on(*inside), committed={"jp-c1": CommittedPlace("1-a", Side.WORKSPACE, "c1")})
    archived = stored(parent.replace("1-a", ".archive/1-a"), child)
    assert plan_of(archived, here(*inside), baseline).actions == ()
    retitled = [inside[0].replace('"A"', '"Z"').replace("09:00", "10:00"), inside[1]]
    plan = plan_of(archived, here(*retitled), baseline)
    assert [action.kind for action in plan.actions if action.target.side is Side.WORKSPACE] == []
