"""What a removal waits for (docs/design/run.md#rule-47): everything in the directory has been saved."""

from __future__ import annotations

from msgspec.structs import replace

from reconcile.model.baseline import AsideKind, AsideRecord, Intent, IntentKind
from reconcile.model.options import Diverged, Take
from reconcile.model.plan import Action, Kind, Plan
from reconcile.model.policy import Children, LocalRequest, Policy, RemoveRequest
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import STREAM, Foreign, nested_git
from tests.support.scenarios.building import agreed_on, here, plan_of, stored, view_of

A = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
B = '2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1]'
NESTED_B = f"1-a/conversations/{B}"


def test_a_directory_goes_after_all_that_was_in_it_is_saved() -> None:
    workspace = here(A.replace("[1]", "[1 2]"), NESTED_B.replace("[1]", "[1 2 3]"))
    policy = Policy(request=LocalRequest(("jp-c1",)))
    plan = plan_of(stored(A, B), workspace, agreed_on(A, NESTED_B), policy)
    saved = {action.conversation: action.id for action in plan.actions if action.kind is Kind.COPY}
    gone = {action.conversation: action for action in plan.actions if action.kind is Kind.REMOVE_STALE}
    assert saved.keys() == gone.keys() == {"jp-c1", "jp-c2"}
    assert saved["jp-c2"] in gone["jp-c2"].needs
    assert {saved["jp-c1"], saved["jp-c2"], gone["jp-c2"].id} <= set(gone["jp-c1"].needs)


def test_what_the_vault_cannot_keep_holds_the_directory_that_it_lies_in_alone() -> None:
    odd = Foreign("1-a/conversations/2-b/conversations/x", "a named pipe", special=True)
    beside = Foreign("pipe", "a named pipe", special=True)
    workspace = replace(here(A, NESTED_B, other), foreign=(beside, odd))
    store = stored(A, B, other)
    plan = plan_of(store, workspace, agreed_on(A, NESTED_B, other), Policy(request=LocalRequest(("jp-c1", "jp-c3"))))
    assert [str(action.target) for action in plan.actions] == ["workspace:3-c"]
    assert [(item.conversation, item.reason, item.message) for item in plan.held] == [
        (
            "jp-c2",
            Reason.OBSTRUCTED,
            f"workspace:{odd.path}: a named pipe can't be saved in the vault; move it away and run again",
        ),
        ("jp-c1", Reason.SUBTREE_HELD, "its directory stays, since these in it can't be saved or moved now: jp-c2"),
    ]
    assert {note.reason for note in plan.notes if note.conversation is None} == {Reason.FOREIGN}


def test_a_removal_on_request_takes_both_copies_or_none() -> None:
    odd = Foreign("1-a/x", "a named pipe", special=True)
    request = Policy(request=RemoveRequest(("jp-c1", "jp-c3")))
    sides = stored(A, other), here(A, other)
    for store, workspace in (
        (sides[0], replace(sides[1], foreign=(odd,))),
        (replace(sides[0], foreign=(odd,)), sides[1]),
    ):
        plan = plan_of(store, workspace, agreed_on(A, other), request)
        assert {str(action.target) for action in plan.actions} == {"store:3-c", "workspace:3-c"}
        (held,) = plan.held
        assert (held.conversation, held.reason) == ("jp-c1", Reason.OBSTRUCTED)
        assert "1-a/x: a named pipe can't be saved" in held.message


def test_what_a_repository_lies_in_is_neither_removed_nor_moved() -> None:
    marker = nested_git("1-a/conversations/2-b/wt/.git", directory=False)
    workspace = replace(here(A, NESTED_B, other), foreign=(marker,))
    stays = f"workspace:{marker.path}: {marker.obstacle}"
    assert "a git worktree is not removed or moved" in stays
    baseline = agreed_on(A, NESTED_B, other)
    plan = plan_of(stored(A, B, other), workspace, baseline, Policy(request=LocalRequest(("jp-c1",))))
    assert not plan.actions
    assert [item.message for item in plan.held if item.conversation == "jp-c2"] == [stays]
    moved = stored(A.replace('"A"', '"A" parent 3').replace("metadata 09", "metadata 10"), B, other)
    plan = plan_of(moved, workspace, baseline)
    assert {action.kind for action in plan.actions}.isdisjoint({Kind.MOVE, Kind.REMOVE_STALE})
    assert [(item.conversation, item.reason, item.message) for item in plan.held] == [
        ("jp-c1", Reason.OBSTRUCTED, stays)
    ]


STALE = '1-z  metadata 08:00 title "A"  stream 08:00 [1]'
other = '3-c  metadata 09:00 title "C"  stream 09:00 [1]'


def steps(plan: Plan, kind: Kind) -> dict[str, Action]:
    """Return the steps of one kind by what they are about."""
    return {f"{action.target}": action for action in plan.actions if action.kind is kind}


def test_what_waits_for_a_decision_keeps_its_directories_and_nobody_elses() -> None:
    store = stored(A, STALE, other, other.replace("3-c", "3-z"))
    plan = plan_of(store, here(A.replace("stream 09:00 [1]", ""), '1-a/events.json  09:00 "{"', other))
    assert [str(action.target) for action in plan.actions] == ["store:3-z"]


def test_all_directories_of_what_was_removed_go() -> None:
    plan = plan_of(stored(other), here(A, STALE, other), agreed_on(A, other))
    assert steps(plan, Kind.REMOVE_STALE).keys() == {"workspace:1-a", "workspace:1-z"}


def test_a_removal_remembers_every_version_that_was_known() -> None:
    """An old branch may bring back any of them."""
    baseline = agreed_on(A, other)
    agreed = set(baseline.agreed["jp-c1"].units.values())
    history = {("jp-c1", STREAM): ("old", "older"), ("jp-c3", STREAM): ("another's",)}
    store = stored(A.replace("[1]", "[1 2]").replace('"A"', '"S"'), other)
    workspace = here(A.replace("[1]", "[1 3]").replace('"A"', '"Z"'), other)
    policy = Policy(request=RemoveRequest(("jp-c1",)))
    plan = plan_of(store, workspace, replace(baseline, history=history), policy)
    sides = [view_of(store, here()).store, view_of(stored(), workspace).workspace]
    known = {unit.digest for side in sides for unit in side.units.values()}
    assert plan.tombstones == (("jp-c1", tuple(sorted({*filter(None, known), *agreed, "old", "older"}))),)


def test_a_removal_says_which_directories_keep_its_own() -> None:
    """In the order of their names, so that the same input gives the same plan."""
    broken = [
        line
        for number in range(2, 8)
        for line in (
            f"1-z/conversations/{number}-b  stream 09:00 [1]",
            f'1-z/conversations/{number}-b/metadata.json  09:00 "{{"',
        )
    ]
    plan = plan_of(stored(A), here(A, STALE, *broken), agreed_on(A))
    (held,) = (item for item in plan.held if item.reason is Reason.SUBTREE_HELD)
    names = ", ".join(f"jp-c{number}" for number in range(2, 8))
    assert held.message == f"its directory stays, since these in it can't be saved or moved now: {names}"


def test_a_child_goes_before_its_parent_and_each_from_both_sides_at_once() -> None:
    plan = plan_of(
        stored(A, B), here(A, NESTED_B), agreed_on(A, NESTED_B), Policy(request=RemoveRequest(("jp-c2", "jp-c1")))
    )
    store, workspace = steps(plan, Kind.REMOVE), steps(plan, Kind.REMOVE_STALE)
    parent, child = store["store:1-a"], store["store:2-b"]
    below = workspace["workspace:1-a/conversations/2-b"]
    assert {child.id, below.id} <= set(parent.needs)
    assert {child.id, below.id, parent.id} <= set(workspace["workspace:1-a"].needs)
    assert below.id in child.needs


def test_duplicates_wait_for_what_is_saved_and_not_for_each_other() -> None:
    store = stored(A, STALE.replace("08:00 [1]", "10:00 [1 2]"), STALE.replace("1-z", "1-y"))
    plan = plan_of(store, here(A), agreed_on(A))
    (saved,) = steps(plan, Kind.COPY).values()
    gone = steps(plan, Kind.REMOVE_STALE)
    assert gone.keys() == {"store:1-y", "store:1-z"}
    ids = {action.id for action in gone.values()}
    assert all(saved.id in action.needs and ids.isdisjoint(action.needs) for action in gone.values())


def test_what_becomes_local_goes_with_all_that_is_in_it_or_not_at_all() -> None:
    plan = plan_of(stored(A, B), here(A, NESTED_B), agreed_on(A, NESTED_B), Policy(request=LocalRequest(("jp-c1",))))
    assert [(action.touches, action.together) for action in plan.actions] == [
        (("jp-c2",), "jp-c1"),
        (("jp-c1",), "jp-c1"),
    ]


LOST = '1-a  metadata 09:00 title "A"'
"""A directory without a stream, in the place of a whole one that lies elsewhere."""
ELSEWHERE = f"3-c/conversations/{A}"


def test_a_directory_that_nobody_can_read_stays_and_nothing_is_moved_onto_it() -> None:
    workspace = here(other, ELSEWHERE, LOST, '1-a/events.json  09:00 "{"')
    plan = plan_of(stored(other), workspace, agreed_on(other))
    assert {action.kind for action in plan.actions} == {Kind.COPY}
    assert {item.reason for item in plan.held} == {Reason.INVALID}


def test_nor_onto_one_with_something_in_it_that_the_vault_cannot_keep() -> None:
    workspace = replace(here(other, ELSEWHERE, LOST), foreign=(Foreign("1-a/x", "a named pipe", special=True),))
    plan = plan_of(stored(other), workspace, agreed_on(other))
    assert {action.kind for action in plan.actions} == {Kind.COPY}
    assert [item.reason for item in plan.held] == [Reason.OBSTRUCTED]


def test_what_nobody_can_read_stays_though_its_conversation_was_removed() -> None:
    broken = STALE.replace("  stream 08:00 [1]", "")
    plan = plan_of(stored(other), here(A, broken, '1-z/events.json  08:00 "{"', other), agreed_on(A, other))
    assert steps(plan, Kind.REMOVE_STALE).keys() == {"workspace:1-a"}
    (held,) = plan.held
    assert (held.conversation, held.unit, held.reason) == ("jp-c1", STREAM, Reason.INVALID)
    assert held.message.startswith("workspace:1-z/events.json: a truncated file")
    assert held.message.endswith(", in a second directory; correct the file, or remove that directory")
    assert [f"{version.place}" for version in plan.preserve] == ["workspace:1-z/events.json"]


def test_a_directory_moves_to_its_place_after_another_one_left_it() -> None:
    plan = plan_of(stored(other), here(other, ELSEWHERE, LOST), agreed_on(other))
    (gone,), (move,) = steps(plan, Kind.REMOVE_STALE).values(), steps(plan, Kind.MOVE).values()
    assert (f"{gone.target}", f"{move.target}") == ("workspace:1-a",) * 2
    assert gone.id in move.needs


def test_and_that_goes_after_what_lies_in_it_left_it() -> None:
    child = '1-a/conversations/5-e  metadata 09:00 title "E" parent 1  stream 09:00 [1]'
    plan = plan_of(stored(other), here(other, ELSEWHERE, LOST, child), agreed_on(other))
    assert plan.held == ()
    first, gone, last = plan.actions[-3:]
    assert [action.conversation for action in (first, gone, last)] == ["jp-c5", "jp-c1", "jp-c1"]
    assert [action.kind for action in (first, gone, last)] == [Kind.MOVE, Kind.REMOVE_STALE, Kind.MOVE]
    assert first.id in gone.needs
    assert {first.id, gone.id} <= set(last.needs)


def test_a_parent_goes_after_its_children_have_another_one() -> None:
    policy = Policy(request=RemoveRequest(("jp-c1",), Children.PROMOTE))
    plan = plan_of(stored(A, B), here(A, NESTED_B), agreed_on(A, NESTED_B), policy)
    (gone,) = steps(plan, Kind.REMOVE).values()
    assert {action.id for action in steps(plan, Kind.PROMOTE).values()} <= set(gone.needs)


def test_a_directory_goes_where_what_stays_is_as_it_was_saved() -> None:
    def beside(plan: Plan, target: str) -> set[str]:
        (found,) = (action for action in plan.actions if str(action.target) == target)
        return {str(each.place) for each in found.beside}

    def of(place: str) -> set[str]:
        return {f"{place}/{name}" for name in ("metadata.json", "base_config.json", "events.json")}

    twice = plan_of(stored(A, STALE), here(A, STALE), agreed_on(A))
    assert beside(twice, "store:1-z") == of("store:1-a")
    assert beside(twice, "workspace:1-z") == of("store:1-a") | of("workspace:1-a")
    local = Policy(request=LocalRequest(("jp-c1",)))
    leaving = plan_of(stored(A), here(A, STALE), agreed_on(A), local)
    assert beside(leaving, "workspace:1-a") == beside(leaving, "workspace:1-z") == of("store:1-a")
    other = B.replace(" parent 1", "")
    assert beside(plan_of(stored(other), here(A, other), agreed_on(A, other)), "workspace:1-a") == set()


def test_a_directory_without_a_file_goes_with_the_last_one_that_leaves_it() -> None:
    plan = plan_of(stored(A, "1-z/", f"1-y/conversations/{B}"), here())
    assert [(action.kind, str(action.target)) for action in plan.actions] == [
        (Kind.MOVE, "store:2-b"),
        (Kind.REMOVE_STALE, "store:1-z"),
    ]


def test_what_was_kept_apart_and_is_a_conflict_by_now_does_not_leave() -> None:
    """The record of the decision ends as it becomes local."""
    ours, theirs = A.replace("[1]", "[1 2]"), A.replace("[1]", "[1 3]")
    contents = [view_of(stored(line), here()).store.raw(STREAM) for line in (ours, theirs)]
    kept = replace(agreed_on(A), asides={("jp-c1", STREAM): AsideRecord(AsideKind.KEPT, *contents)})
    local = Policy(request=LocalRequest(("jp-c1",)))
    for diverged, gone in ((Diverged.HOLD, False), (Diverged.FORK, True)):
        plan = plan_of(stored(ours), here(theirs), kept, replace(local, diverged=diverged))
        assert bool(steps(plan, Kind.REMOVE_STALE)) is gone


def test_what_only_the_workspace_has_is_removed_there() -> None:
    plan = plan_of(stored(other), here(A, other), agreed_on(other), Policy(request=RemoveRequest(("jp-c1",))))
    assert [str(action.target) for action in plan.actions] == ["workspace:1-a"]


def test_a_second_directory_stays_where_nothing_may_be_written() -> None:
    """An old version that came back after a removal; a local conversation, of which one directory alone speaks."""
    units = view_of(stored(A), here()).store.units.values()
    buried = {"jp-c1": frozenset(unit.digest for unit in units if unit.digest is not None)}
    old = plan_of(stored(other), here(A, A.replace("1-a", "1-z"), other), replace(agreed_on(other), tombstones=buried))
    local = replace(agreed_on(A, other), intents={"jp-c1": Intent(IntentKind.LOCAL)})
    private = plan_of(stored(A, other), here(A, STALE, other), local)
    assert [plan.actions for plan in (old, private)] == [(), ()]


def test_a_directory_moves_to_its_place_after_what_lay_in_another_without_a_file_has_left_it() -> None:
    old = A.replace("1-a", "1-old").replace('"A"', '"Old"')
    titled = A.replace("1-a", "1-old").replace("metadata 09:00", "metadata 10:00")
    plan = plan_of(stored(titled, "1-a/", f"1-a/conversations/{B}"), here(old), agreed_on(old))
    moves = steps(plan, Kind.MOVE)
    assert not steps(plan, Kind.REMOVE_STALE)
    assert moves["store:2-b"].id in moves["store:1-a"].needs


def test_a_directory_without_a_file_makes_room_after_what_lay_in_it_left_it() -> None:
    """Something that is no file of a conversation may be in it."""
    old = '5-old  metadata 09:00 title "Old"  stream 09:00 [1]'
    titled = '5-old  metadata 10:00 title "A"  stream 09:00 [1]'
    child = B.replace("parent 1", "parent null")
    plan = plan_of(stored(titled, "5-a/", f"5-a/conversations/{child}"), here(old), agreed_on(old))
    (gone,), moves = steps(plan, Kind.REMOVE_STALE).values(), steps(plan, Kind.MOVE)
    assert str(gone.target) == "store:5-a"
    assert moves["store:2-b"].id in gone.needs
    assert gone.id in moves["store:5-a"].needs


def test_a_directory_goes_though_another_in_it_without_a_file_has_gone_with_what_lay_in_it() -> None:
    inside = "1-z/conversations/3-y/"
    plan = plan_of(stored(A, STALE, other, inside, f"{inside}conversations/{B}"), here())
    assert not plan.held
    assert steps(plan, Kind.REMOVE_STALE).keys() == {"store:1-z"}


def test_who_has_chosen_a_version_has_given_up_what_nobody_can_read_beside_it() -> None:
    broken = (STALE.replace("  stream 08:00 [1]", ""), '1-z/events.json  08:00 "{"')
    policy = Policy(decisions={"jp-c1": Take.STORE})
    plan = plan_of(stored(A), here(A, *broken), agreed_on(A), policy)
    assert steps(plan, Kind.REMOVE_STALE).keys() == {"workspace:1-z"}
