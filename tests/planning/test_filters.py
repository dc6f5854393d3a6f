"""What a plan leaves out in the end, and what it says of the rest: bulk, git, selection, states, the outline."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconcile.model.baseline import Baseline, Intent, IntentKind, Verb
from reconcile.model.options import OnConflict, Take
from reconcile.model.plan import Action, Item, Kind, Note, Plan
from reconcile.model.policy import Children, GcRequest, LocalRequest, Policy, ProjectRequest, RemoveRequest
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import STREAM, WHOLE, Fault, Foreign, Place, Side
from reconcile.model.units import Rules
from reconcile.planning.filters import (
    bulk_undo,
    git_is_busy,
    limits_of,
    selected,
    without_git,
    without_moving,
    without_program,
    without_secrets,
    without_workspace,
)
from reconcile.planning.incremental.scope import ORDINARY
from reconcile.planning.incremental.side_index import without_events
from reconcile.planning.planner import make_plan, needs_contents, needs_events
from reconcile.planning.rules.guards import Whole
from tests.support.formats import notes as records
from tests.support.scenarios.building import NOW_NS, agreed_on, context_of, here, plan_of, seen, stored
from tests.support.scenarios.pure_level import RULES


def line(number: int, more: str = "", events: str = "[1]") -> str:
    return f'{number}-x  metadata 09:00 title "x"{more}  stream 09:00 {events}'


LINES = [line(number) for number in range(1, 13)]
KNOWN = agreed_on(*LINES)


def gone(count: int, *edits: str, policy: Policy | None = None) -> Plan:
    """Remove so many of the twelve from the store."""
    return plan_of(stored(*LINES[count:]), here(*edits, *LINES[len(edits) :]), KNOWN, policy)


def kinds(plan: Plan) -> list[str]:
    return [f"{action.kind.value} {action.conversation}" for action in plan.actions]


def said(plan: Plan) -> list[tuple[str | None, str, Reason]]:
    return [(item.conversation, item.unit, item.reason) for item in plan.held]


def test_many_removals_at_once_wait_with_all_that_becomes_of_them() -> None:
    assert len(gone(4).actions) == 4
    plan = gone(5)
    assert (plan.actions, plan.tombstones, said(plan)) == ((), (), [(None, "conversation", Reason.BULK)])
    (held,) = plan.held
    assert held.message == "5 of 12 directories would be removed: 1-x, 2-x, 3-x, 4-x, 5-x"
    assert held.resolve == ("reconcile --allow-bulk-removal",)
    assert gone(7).held[0].message.endswith("4-x, 5-x and 2 more")
    accepted = gone(7, policy=Policy(accept_bulk=True))
    assert (len(accepted.actions), len(accepted.tombstones), accepted.held) == (7, 7, ())


def test_the_options_that_limit_a_run_have_ids_as_a_shell_reads_them() -> None:
    policy = Policy(only=frozenset({"a/b $(touch y).json", "a/b.json"}), below=frozenset({"jp-c1"}))
    assert limits_of(policy, RULES) == "--only 'a/b $(touch y).json' --only a/b.json --below jp-c1 "


def test_what_the_others_do_goes_on_and_what_was_asked_for_is_no_bulk() -> None:
    edited = [*LINES[5:11], line(12, events="[1 2]")]
    plan = plan_of(stored(*edited), here(*LINES), KNOWN)
    assert kinds(plan) == ["project jp-c12"]
    assert [key for key, _ in plan.tombstones] == []
    targets = tuple(f"jp-c{number}" for number in range(1, 13))
    removed = plan_of(stored(*LINES), here(*LINES), KNOWN, Policy(request=RemoveRequest(targets, Children.CASCADE)))
    assert (len(removed.actions), removed.held) == (24, ())


def test_notes_are_no_directories() -> None:
    notes = [f'{number}-x/NOTE.md  09:00 "x"' for number in range(1, 13)]
    baseline = agreed_on(*LINES)
    for line_ in notes:
        key = f"jp-c{line_.partition('-')[0]}"
        digest = next(file.digest for copy in stored(line_).copies for file in copy.files)
        agreed = baseline.agreed[key]
        units = {**agreed.units, "extra:NOTE.md": digest or ""}
        baseline = replace(baseline, agreed={**baseline.agreed, key: replace(agreed, units=units)})
    plan = plan_of(stored(*LINES), here(*LINES, *notes), baseline)
    assert ({action.kind for action in plan.actions}, len(plan.actions)) == ({Kind.REMOVE_STALE}, 12)
    assert plan.held == ()


def test_the_forks_of_others_are_made_though_many_removals_wait() -> None:
    edited = line(12).replace("09:00 [1]", "09:30 [1 2]")
    ours = line(12).replace("09:00 [1]", "09:20 [1 3]")
    plan = plan_of(stored(*LINES[5:11], ours), here(*LINES[:11], edited), KNOWN)
    assert [action.kind for action in plan.actions] == [Kind.FORK, Kind.COPY]


def test_an_emptied_workspace_is_no_obstacle_for_recover() -> None:
    targets = tuple(f"jp-c{number}" for number in range(1, 13))
    plan = plan_of(stored(*LINES), here(), KNOWN, Policy(request=ProjectRequest(targets, records=(1,))))
    assert (len(plan.actions), plan.held) == (12, ())


def test_of_duplicates_that_wait_nothing_else_is_done_either() -> None:
    """What lost now would speak again from a directory that stays."""
    twice = [each.replace("-x", "-y").replace("[1]", "[1 2]").replace("09:00", "09:10") for each in LINES[:7]]
    plan = plan_of(stored(*LINES), here(*LINES, *twice), KNOWN)
    assert (plan.actions, said(plan)) == ((), [(None, "conversation", Reason.BULK)])
    diverged = [each.replace("[1]", "[1 3]").replace("stream 09:00", "stream 09:30") for each in LINES]
    plan = plan_of(stored(*diverged), here(*LINES, *twice), KNOWN)
    assert {action.conversation for action in plan.actions} == {f"jp-c{number}" for number in range(8, 13)}


def test_while_git_is_busy_nothing_changes_in_the_workspace_and_what_needs_it_waits() -> None:
    busy = Policy(git_busy="merge")
    store, workspace = [line(1, events="[1 2]"), *LINES[1:]], [LINES[0], line(2, events="[1 2]"), *LINES[2:]]
    plan = plan_of(stored(*store), here(*workspace), KNOWN, busy)
    assert (kinds(plan), [action.id for action in plan.actions]) == (["copy jp-c2"], ["1"])
    (held,) = plan.held
    assert (held.conversation, held.unit, held.title) == (None, "conversation", None)
    assert (held.reason, held.resolve) == (Reason.GIT_BUSY, ())
    assert held.message == "git is busy (merge); 1 change waits until it is done"
    saves = plan_of(stored(*LINES), here(*workspace), KNOWN, busy)
    assert (kinds(saves), saves.held) == (["copy jp-c2"], ())
    assert without_git(saves, None) is saves
    both = plan_of(stored(*LINES), here(*LINES), KNOWN, replace(busy, request=RemoveRequest(("jp-c1",))))
    assert kinds(both) == []
    assert both.put_off == {"jp-c1"}
    assert [(key, waiting and waiting.value) for key, waiting in both.waiting] == [(("jp-c1", Verb.REMOVE), "refuse")]


def test_what_waits_while_git_is_busy_can_be_left_out_without_a_word() -> None:
    """What a sync only takes changes nothing of a remote."""
    whole = plan_of(stored(line(1), line(2, events="[1 2]"), line(3)), here(line(1, events="[1 2]"), line(2), line(3)))
    assert kinds(whole) == ["copy jp-c1", "project jp-c2"]
    left = without_workspace(whole)
    assert (kinds(left), left.held, left.put_off) == (["copy jp-c1"], (), frozenset({"jp-c2"}))
    assert replace(without_git(whole, "merge"), held=()) == left


def test_while_git_is_busy_what_only_the_store_has_is_removed() -> None:
    """Of what both have, no directory is."""
    asked = Policy(git_busy="merge", request=RemoveRequest(("jp-c1", "jp-c2")))
    plan = plan_of(stored(*LINES), here(*LINES[1:]), agreed_on(*LINES[1:]), asked)
    assert ([(action.conversation, action.target.side) for action in plan.actions]) == [("jp-c1", Side.STORE)]
    assert plan.put_off == {"jp-c2"}


def test_while_git_is_busy_an_addition_is_saved_though_its_conversation_waits() -> None:
    retitled = line(1).replace('"x"', '"y"')
    sides = stored(retitled, line(4)), here(line(1, events="[1 2]"), line(4))
    plan = plan_of(*sides, agreed_on(line(1), line(4)), Policy(git_busy="merge"))
    assert kinds(plan) == ["copy jp-c1"]
    assert plan.put_off == {"jp-c1"}
    assert plan.held[0].message == "git is busy (merge); 3 changes wait until it is done"


def test_what_stays_for_now_does_not_wait_for_what_it_lies_in() -> None:
    """Every other intent is recorded."""
    waits, local = Intent(IntentKind.PROJECTED, waits_for="jp-c9"), Intent(IntentKind.LOCAL)
    (update,) = plan_of(stored(line(1, events="[1 2]")), here(line(1)), agreed_on(line(1))).actions
    actions = tuple(replace(update, id=str(number), conversation=f"jp-c{number}") for number in (1, 2, 3))
    intents = (("jp-c1", waits), ("jp-c2", local), ("jp-c3", None), ("jp-c4", waits))
    held = without_git(Plan(layout="nested", actions=actions, intents=intents), "merge")
    assert held.intents == intents[1:]
    assert held.put_off == {"jp-c1", "jp-c2", "jp-c3"}


BUSY = {
    "nothing": ((), None, []),
    "one": (("1",), None, [("git is busy (merge); 1 change waits until it is done", ())]),
    "two": (("1", "2"), None, [("git is busy (merge); 2 changes wait until it is done", ())]),
    "one of a command": (
        ("1",),
        "reconcile rm 1",
        [("git is busy (merge); 1 change can't be made. Repeat the command when git is done", ("reconcile rm 1",))],
    ),
    "two of a command": (
        ("1", "2"),
        "reconcile rm 1",
        [("git is busy (merge); 2 changes can't be made. Repeat the command when git is done", ("reconcile rm 1",))],
    ),
}


@pytest.mark.parametrize(("waiting", "again", "held"), BUSY.values(), ids=BUSY)
def test_what_is_said_while_git_is_busy(
    waiting: tuple[str, ...], again: str | None, held: list[tuple[str, tuple[str, ...]]]
) -> None:
    assert [(item.message, item.resolve) for item in git_is_busy("merge", waiting, again)] == held


@pytest.mark.parametrize("what", ["a symbolic link, which is never followed", "a named pipe", "a directory"])
def test_where_something_other_than_a_file_is_nothing_is_written(what: str) -> None:
    found = what.partition(",")[0]
    store = stored('1-x  metadata 09:00 title "x"', line(2))
    if what == "a directory":
        fault = Fault("events.json", found, "a regular file")
        store = replace(store, copies=(replace(store.copies[0], stream=fault), *store.copies[1:]))
    else:
        entry = Foreign("1-x/events.json", what, link=found != what, special=found == what)
        store = replace(store, foreign=(entry, Foreign("2-x/events.json", "something else")))
    plan = plan_of(store, here(line(1), line(2, events="[1 2]")), agreed_on(line(1), line(2)))
    assert kinds(plan) == ["copy jp-c2"]
    (item,) = plan.held
    assert (item.conversation, item.unit, item.reason) == ("jp-c1", STREAM, Reason.OBSTRUCTED)
    assert item.message == f"store:1-x/events.json: {found} is in the way; move it away and run again"


def test_while_a_program_is_at_work_only_the_records_that_it_locks_wait() -> None:
    """In the workspace: the store gets what is new."""

    def of(store: dict[str, bytes], workspace: dict[str, bytes]) -> Plan:
        kept, seen = records.side(Side.STORE, store), records.side(Side.WORKSPACE, workspace, busy=True)
        return make_plan(kept, seen, Baseline(), Policy(), records.RULES, NOW_NS)

    short, long = {"log": b"1\n"}, {"log": b"1\n2\n"}
    held = of(long, short)
    assert ([item.message for item in held.held], held.actions) == (
        [".busy is there; 1 change waits until the program is done"],
        (),
    )
    saved = of(short, long)
    assert ([action.target.side for action in saved.actions], saved.held) == ([Side.STORE], ())
    shared = of({"a.md": b"a"}, {"INDEX": b"a: a\n"})
    assert (kinds(shared), shared.held) == (["project a.md"], ())
    (update,) = shared.actions
    locked = replace(shared, actions=tuple(replace(update, id=each, conversation="log") for each in "12"))
    waits = without_program(locked, records.side(Side.WORKSPACE, {}, busy=True), records.RULES)
    assert waits.held[0].message == ".busy is there; 2 changes wait until the program is done"


class Owned(records.notes.NotesFormat):  # type: ignore[misc, name-defined]
    """A format in which `a-1.md` goes with `a.md`."""

    def owner(self, conversation: str) -> str | None:
        return f"{conversation.partition('-')[0]}.md" if "-" in conversation else None


REMOVAL = Action(
    id="1",
    kind=Kind.REMOVE,
    conversation="",
    title=None,
    unit=WHOLE,
    reason=Reason.PUT_BACK,
    target=Place(Side.STORE, ""),
)


@pytest.mark.parametrize(
    ("which", "stays", "counts"),
    [(Side.STORE, True, True), (Side.STORE, False, True), (Side.WORKSPACE, True, False), (Side.WORKSPACE, False, True)],
)
def test_what_leaves_the_workspace_and_stays_in_the_store_is_not_counted(
    which: Side, stays: bool, counts: bool
) -> None:
    going = [replace(REMOVAL, conversation=each, target=Place(which, each)) for each in ("1-a", "2-b", "3-c", "4-d")]
    held = bulk_undo(going, Whole(ORDINARY, directories=6, stored=6), RULES, "again", lambda _: stays)
    assert (held is not None) is counts


def test_the_options_that_limit_a_run_leave_out_what_goes_with_another_record() -> None:
    policy = Policy(only=frozenset({"a.md", "a-1.md", "b-1.md"}), below=frozenset({"c-1.md", "c.md"}))
    assert limits_of(policy, Rules(Owned(), records.RULES.digest)) == "--only a.md --only b-1.md --below c.md "


def test_what_goes_with_another_record_is_not_counted() -> None:
    rules = Rules(Owned(), records.RULES.digest)

    def of(*names: str) -> str:
        going = [replace(REMOVAL, conversation=each, target=Place(Side.STORE, each)) for each in names]
        held = bulk_undo(going, Whole(ORDINARY, directories=0, stored=6), rules, "again", lambda _: False)
        return held.message if held is not None else ""

    notes = ("a.md", "b.md", "c.md", "d.md")
    assert of(*notes[:3], "a-1.md", "b-1.md") == ""
    assert of(*notes, "a-1.md") == "store: 4 of 6 records would be removed: a.md, b.md, c.md, d.md"
    assert of(*notes[:2], "d/d-1.md", "d-2.md").endswith(": a.md, b.md, d/d-1.md, d-2.md")


def test_every_directory_of_a_conversation_counts() -> None:
    twice = [line(1).replace("1-x", f"1-{letter}") for letter in "abcd"]
    (held,) = plan_of(stored(line(1)), here(line(1), *twice), agreed_on(line(1))).held
    assert held.message == "4 of 5 directories would be removed: 1-a, 1-b, 1-c, 1-d"


PARENTS = [line(1), line(2, " parent 1"), line(3, " parent 2"), line(4)]
EDITED = [each.replace("[1]", "[1 2]") for each in PARENTS]
PLACES = ["1-x", "1-x/conversations/2-x", "1-x/conversations/2-x/conversations/3-x", "4-x"]


def nested(lines: list[str]) -> list[str]:
    return [place + each[3:] for place, each in zip(PLACES, lines, strict=True)]


SELECTED = {
    "one": (Policy(only=frozenset({"jp-c2"})), ["jp-c2"]),
    "below one": (Policy(below=frozenset({"jp-c2"})), ["jp-c2", "jp-c3"]),
    "below one, and another": (
        Policy(below=frozenset({"jp-c2"}), only=frozenset({"jp-c4"})),
        ["jp-c2", "jp-c3", "jp-c4"],
    ),
    "below all": (Policy(below=frozenset({"jp-c1"})), ["jp-c1", "jp-c2", "jp-c3"]),
    "everything": (Policy(), ["jp-c1", "jp-c2", "jp-c3", "jp-c4"]),
}


@pytest.mark.parametrize(("policy", "conversations"), SELECTED.values(), ids=SELECTED)
def test_a_selection(policy: Policy, conversations: list[str]) -> None:
    baseline = agreed_on(*nested(PARENTS))
    plan = plan_of(stored(*PARENTS), here(*nested(EDITED)), baseline, policy)
    assert sorted(action.conversation for action in plan.actions) == conversations
    diverged = [each.replace("09:00 [1]", f"08:00 [1 3{name}]") for each, name in zip(PARENTS, "abcd", strict=True)]
    forks = plan_of(stored(*diverged), here(*nested(EDITED)), baseline, policy)
    assert len(forks.actions) == 2 * len(conversations)


def test_a_selection_is_about_all_that_a_plan_says() -> None:
    broken = ["4-x  metadata 09:00", '4-x/events.json  09:00 "["']
    behind = line(3, " parent 2", "[]").replace("stream 09:00", "stream 09:30")
    baseline = replace(agreed_on(*nested(PARENTS)), tombstones={})
    store, workspace = PARENTS[1:], [*nested([PARENTS[0], PARENTS[1], behind, line(4)])[:3], *broken]
    whole = plan_of(stored(*store), here(*workspace), baseline)
    assert {key for key, _ in whole.tombstones} == {"jp-c1"}
    assert {key for (key, _), _ in whole.asides} == {"jp-c3"}
    assert {item.conversation for item in whole.held} >= {"jp-c4"}
    assert {version.conversation for version in whole.preserve} == {"jp-c3", "jp-c4"}
    for wanted in ("jp-c1", "jp-c3", "jp-c4"):
        plan = plan_of(stored(*store), here(*workspace), baseline, Policy(only=frozenset({wanted})))
        done = {wanted} | {action.conversation for action in plan.actions}
        assert {key for key, _ in plan.tombstones} <= done
        assert {key for (key, _), _ in plan.asides} == {"jp-c3"} & done, "what is done is remembered"
        assert {item.conversation for item in plan.aside} == {"jp-c3"} & {wanted}
        assert {item.conversation for item in plan.held} <= {wanted}
        assert {version.conversation for version in plan.preserve} == {"jp-c3", "jp-c4"} & {wanted}
    gone_ = plan_of(
        stored(*PARENTS), here(nested(PARENTS)[3]), agreed_on(*nested(PARENTS)), Policy(only=frozenset({"jp-c2"}))
    )
    assert [key for key, _ in gone_.intents] == ["jp-c2"]
    assert {note.conversation for note in gone_.notes} == {"jp-c2"}


def test_of_a_part_those_named_are_counted_and_those_changed_with_them() -> None:
    baseline = agreed_on(line(4), line(5))
    wishes = {each: Intent(IntentKind.PROJECTED) for each in ("jp-c1", "jp-c2")}
    sides = stored(line(1), line(2, " parent 1"), line(4), line(5)), here(line(4), line(5))
    part = plan_of(*sides, replace(baseline, intents=wishes), Policy(only=frozenset({"jp-c2", "jp-c4"})))
    assert (len(part.actions), dict(part.states)) == (2, {"in-sync": 1, "projected": 2})


def test_what_is_needed_is_kept_and_what_that_needs_in_turn() -> None:
    context = context_of(stored(*LINES), here(*LINES), KNOWN, Policy(only=frozenset({"jp-c3"})))
    needs = {1: (), 2: ("1",), 3: ("2",), 4: ("3",)}
    actions = [
        Action(
            id=str(number),
            kind=Kind.MOVE,
            conversation=f"jp-c{number}",
            title=None,
            unit=WHOLE,
            reason=Reason.LAYOUT,
            target=Place(Side.STORE, f"{number}-x"),
            needs=needed,
        )
        for number, needed in needs.items()
    ]
    assert [action.id for action in selected(context, actions)[0]] == ["1", "2", "3"]


def test_derived_data_is_kept_with_all_that_it_follows_from() -> None:
    context = context_of(stored(*LINES), here(*LINES), KNOWN, Policy(only=frozenset({"jp-c3"})))
    needs = {"1": (), "2": ("1",), "3": (), "4": ("1", "3")}
    (step,) = plan_of(stored(line(3)), here(line(3, events="[1 2]")), agreed_on(line(3))).actions
    index = replace(step, kind=Kind.REBUILD, conversation="INDEX")
    actions = [replace(index, id=each, needs=needed) for each, needed in needs.items() if each != "1"]
    assert [action.id for action in selected(context, [replace(step, id="1"), *actions])[0]] == ["1", "2"]


def test_the_conflicts_of_a_selection_are_its_own() -> None:
    ours, theirs = ([each.replace('"x"', f'"{title}"') for each in LINES[:2]] for title in "yz")
    hold = Policy(conflict=OnConflict.HOLD, only=frozenset({"jp-c2"}))
    (conflict,) = plan_of(stored(*ours), here(*theirs), KNOWN, hold).conflicts
    assert conflict.conversation == "jp-c2"


def test_what_a_selection_needs_is_done_with_all_its_directories() -> None:
    """On either side. Other conversations with several directories are left alone."""
    second, others = (line(number).replace("-x", "-y").replace("09:00", "08:00") for number in (1, 4))
    wishes = {each: Intent(IntentKind.PROJECTED) for each in ("jp-c1", "jp-c2")}
    store = stored(line(1), second, line(2, " parent 1"), line(4), others)
    policy = Policy(only=frozenset({"jp-c2"}))
    plan = plan_of(store, here(line(4)), replace(agreed_on(line(4)), intents=wishes), policy)
    assert kinds(plan) == ["project jp-c1", "project jp-c2", "remove-stale jp-c1"]


def test_a_bulk_of_nested_directories_names_the_directories_alone() -> None:
    lines = [line(1), *(line(number, " parent 1") for number in range(2, 10))]
    places = [lines[0], *(f"1-x/conversations/{each}" for each in lines[1:])]
    (held,) = plan_of(stored(lines[0]), here(*places), agreed_on(*places)).held
    assert held.message == "8 of 9 directories would be removed: 2-x, 3-x, 4-x, 5-x, 6-x and 3 more"


def test_a_plan_tells_what_is_remembered_in_the_order_of_ids() -> None:
    """Whatever the tree's order is: parents come first in that, and directories further down are removed first."""
    above, below = line(9), line(2, " parent 9")
    places = [above, f"9-x/conversations/{below}"]
    baseline = agreed_on(*places, line(5))
    gone_ = plan_of(stored(above, below, line(5)), here(line(5)), baseline)
    assert [key for key, _ in gone_.intents] == ["jp-c2", "jp-c9"]
    assert [key for key, _ in plan_of(stored(above, below), here(*places)).places] == ["jp-c2", "jp-c9"]
    behind = [each.replace("stream 09:00 [1]", "stream 09:30 []") for each in places]
    aside = plan_of(stored(above, below, line(5)), here(*behind, line(5)), baseline)
    assert [key for (key, _), _ in aside.asides] == ["jp-c2", "jp-c9"]
    nested_ = [line(2), f"2-x/conversations/{line(9, ' parent 2')}"]
    buried = plan_of(stored(line(5)), here(*nested_, line(5)), agreed_on(*nested_, line(5)))
    assert [action.conversation for action in buried.actions] == ["jp-c9", "jp-c2"]
    assert [key for key, _ in buried.tombstones] == ["jp-c2", "jp-c9"]


def test_what_is_held_of_a_side_concerns_every_selection() -> None:
    plan = plan_of(stored(*PARENTS), here(), agreed_on(*nested(PARENTS)), Policy(only=frozenset({"jp-c2"})))
    assert said(plan) == [(None, "conversation", Reason.WORKSPACE_EMPTIED)]


def test_every_conversation_is_counted_once_by_how_it_stands() -> None:
    store = [line(1, events="[1 2]"), line(2), line(3), line(4), line(5)]
    broken = ['3-x  metadata 09:00 title "x"', '3-x/events.json  09:00 "["']
    workspace = [line(1), line(2), *broken, line(6)]
    baseline = agreed_on(*[line(number) for number in (1, 2, 3, 9)])
    plan = plan_of(stored(*store), here(*workspace), baseline)
    assert dict(plan.states) == {"available": 2, "changing": 1, "external": 1, "in-sync": 1, "open": 1}
    aside = replace(Baseline(), agreed=baseline.agreed, layout="nested", store_identity="store:0")
    kept = plan_of(stored(line(2)), here(line(2, events="[1 2]")), aside, Policy(decisions={"jp-c2": Take.KEEP}))
    assert dict(kept.states) == {"open": 1}


def test_the_outline_shows_what_a_plan_speaks_of_below_what_it_lies_in() -> None:
    baseline = agreed_on(*nested(PARENTS))
    edited = [*PARENTS[:2], EDITED[2], PARENTS[3]]
    plan = plan_of(stored(*PARENTS), here(*nested(edited)), baseline)
    assert [(each.conversation, each.title, each.depth) for each in plan.outline] == [
        ("jp-c1", "x", 0),
        ("jp-c2", "x", 1),
        ("jp-c3", "x", 2),
    ]
    newer = PARENTS[1].replace("09:00 [1]", "09:30 [1 3]")
    diverged = plan_of(
        stored(PARENTS[0], newer, *PARENTS[2:]), here(*nested([PARENTS[0], EDITED[1], *PARENTS[2:]])), baseline
    )
    (fork,) = (action for action in diverged.actions if action.kind is Kind.FORK)
    assert [(each.conversation, each.depth) for each in diverged.outline] == [
        ("jp-c1", 0),
        ("jp-c2", 1),
        (fork.conversation, 2),
    ]
    assert diverged.outline[2].title == "[diverged] x"
    broken = ["4-x  metadata 09:00", '4-x/events.json  09:00 "["']
    held = plan_of(stored(*PARENTS), here(*nested(PARENTS)[:3], *broken), baseline)
    assert [(each.conversation, each.depth) for each in held.outline] == [("jp-c4", 0)]
    asked = plan_of(stored(PARENTS[3]), here(EDITED[3]), agreed_on(PARENTS[3]), Policy(decisions={"jp-c4": Take.KEEP}))
    assert ([each.conversation for each in asked.outline], asked.actions) == (["jp-c4"], ())
    open_ = plan_of(stored(*PARENTS), here(*nested(PARENTS), '4-x/events.json  09:00 "["'), baseline)
    assert ([each.conversation for each in open_.outline], open_.actions) == (["jp-c4"], ())
    archived = plan_of(stored(f".archive/{PARENTS[3]}"), here(PARENTS[3]), agreed_on(PARENTS[3]))
    assert [(each.conversation, each.depth) for each in archived.outline] == [("jp-c4", 0)]
    kept = plan_of(stored(*PARENTS), here(*nested(edited)), baseline, Policy(decisions={"jp-c3": Take.KEEP}))
    assert [each.conversation for each in kept.outline] == ["jp-c1", "jp-c2", "jp-c3"]


def test_where_nothing_has_changed_the_plan_says_so() -> None:
    policy = Policy(accept_bulk=True)
    plan = plan_of(stored(*LINES, line(13)), here(*LINES), KNOWN, policy)
    assert (plan.quiet, plan.policy, plan.now_ns) == (True, policy, NOW_NS)
    assert not plan_of(stored(*LINES), here(*LINES), KNOWN, replace(policy, request=GcRequest())).quiet


def test_a_plan_knows_what_was_asked_for_and_not_what_became_of_that() -> None:
    policy = Policy(request=LocalRequest(("jp-c1",)))
    plan = plan_of(stored(*LINES), here(*LINES), KNOWN, policy)
    assert (plan.policy, plan.now_ns) == (policy, NOW_NS)


def test_what_is_strange_in_the_store_is_said_first() -> None:
    store, workspace = [replace(side, foreign=(Foreign("x", "a file"),)) for side in (stored(*LINES), here(*LINES))]
    notes = plan_of(store, workspace, KNOWN).notes
    assert [note.message for note in notes] == ["store:x: a file; left alone", "workspace:x: a file; left alone"]


def test_what_the_store_lost_as_a_whole_has_no_baseline_any_more() -> None:
    baseline = agreed_on(line(1), line(2), line(3))
    renewed = seen(Side.STORE, [line(2)], identity="store:1")
    plan = plan_of(renewed, here(line(1), line(2), line(4)), baseline)
    assert plan.voided == ("jp-c1", "jp-c3")
    limited = Policy(only=frozenset({"jp-c3"}))
    assert plan_of(renewed, here(line(1), line(2), line(4)), baseline, limited).voided == ("jp-c3",)
    unknown, lines = replace(baseline, store_identity=None), (line(1), line(2), line(4))
    assert plan_of(stored(), here(*lines), unknown, limited).voided == ("jp-c1", "jp-c2", "jp-c3")
    assert plan_of(stored(line(2)), here(line(1), line(2), line(4)), baseline).voided == ()
    buried = replace(baseline, tombstones={"jp-c1": frozenset(baseline.agreed["jp-c1"].units.values())})
    assert plan_of(renewed, here(line(1), line(2), line(4)), buried).voided == ("jp-c3",)


def test_a_plan_says_where_everything_is_in_the_end_and_who_lost_a_parent_on_purpose() -> None:
    baseline = agreed_on(*nested(PARENTS))
    rooted = PARENTS[1].replace("parent 1", "parent null")
    plan = plan_of(stored(PARENTS[0], rooted, *PARENTS[2:]), here(*nested(PARENTS)), baseline)
    assert plan.rooted == ("jp-c2",)
    assert dict(plan.places) == {
        "jp-c1": "1-x",
        "jp-c2": "2-x",
        "jp-c3": "2-x/conversations/3-x",
        "jp-c4": "4-x",
    }


EVENTS: dict[str, tuple[list[str], list[str], set[str]]] = {
    "different": ([line(1)], [line(1, events="[1 2]")], {"jp-c1"}),
    "equal": ([line(1)], [line(1, " parent 3")], set()),
    "on one side": ([line(1)], [], set()),
    "different in two directories of one side": ([line(1), line(1, events="[2]").replace("-x", "-y")], [], set()),
    "missing here": ([line(1)], ["1-x  metadata 09:00"], set()),
    "missing there": (["1-x  metadata 09:00"], [line(1)], set()),
    "different in a second directory alone": (
        [line(1)],
        [line(1), line(1, events="[2]").replace("-x", "-y").replace("09:00 [", "09:30 [")],
        {"jp-c1"},
    ),
    "the same, but broken": ([line(1)], [line(1), '1-y/events.json  09:00 "["'], set()),
}


@pytest.mark.parametrize(("store", "workspace", "found"), EVENTS.values(), ids=EVENTS)
def test_events_are_needed_of_streams_that_differ(store: list[str], workspace: list[str], found: set[str]) -> None:
    assert needs_events(stored(*store, line(8)), here(*workspace, line(8)), RULES) == found


CONTENTS: dict[str, tuple[list[str], list[str], set[str]]] = {
    "edited here, continued there": ([line(1, events="[1 2 3]")], [line(1, events="[1x 2]")], {"jp-c1"}),
    "edited there, continued here": ([line(1, events="[1x 2]")], [line(1, events="[1 2 3]")], {"jp-c1"}),
    "continued": ([line(1, events="[1 2]")], [line(1, events="[1 2 3]")], set()),
    "diverged": ([line(1, events="[1x 2]")], [line(1, events="[1 3]")], set()),
    "edited, or two continuations": ([line(1, events="[1x 2]")], [line(1, events="[1 2]")], {"jp-c1"}),
    "the same": ([line(1, events="[1x 2]")], [line(1, events="[1x 2]")], set()),
    "on one side": ([line(1, events="[1x 2]")], [], set()),
    "continued in a second directory, and edited": (
        [line(1, events="[1x 2]")],
        [line(1, events="[2]"), line(1, events="[1 2 3]").replace("-x", "-y")],
        {"jp-c1"},
    ),
    "broken": ([line(1, events="[1x 2]")], ["1-x  metadata 09:00", '1-x/events.json  09:00 "["'], set()),
}


@pytest.mark.parametrize(("store", "workspace", "found"), CONTENTS.values(), ids=CONTENTS)
def test_contents_are_needed_of_streams_that_may_become_one(
    store: list[str], workspace: list[str], found: set[str]
) -> None:
    assert needs_contents(stored(*store, line(8)), here(*workspace, line(8))) == found


def test_of_streams_without_events_no_contents_are_needed() -> None:
    sides = (seen(line(1, events=events)) for seen, events in ((stored, "[1x 2]"), (here, "[1 2 3]")))
    bare = [replace(side, copies=tuple(map(without_events, side.copies))) for side in sides]
    assert needs_contents(*bare) == set()


def test_what_somebody_is_writing_just_now_is_left_out_with_what_needs_it() -> None:
    whole = gone(2)
    assert [action.conversation for action in whole.actions] == ["jp-c1", "jp-c2"]
    plan = without_moving(whole, frozenset({"jp-c1"}))
    assert [(action.id, action.conversation) for action in plan.actions] == [("1", "jp-c2")]
    assert without_moving(whole, frozenset()) is whole


@pytest.mark.parametrize("moving", ["jp-c1", "jp-c3", "jp-c4"])
def test_nothing_is_said_or_remembered_of_what_somebody_is_writing_just_now(moving: str) -> None:
    broken = ["4-x  metadata 09:00", '4-x/events.json  09:00 "["']
    behind = line(3, " parent 2", "[]").replace("stream 09:00", "stream 09:30")
    baseline = replace(agreed_on(*nested(PARENTS)), tombstones={})
    whole = plan_of(stored(*PARENTS[1:]), here(*[*nested([*PARENTS[:2], behind, line(4)])[:3], *broken]), baseline)
    for plan, there in ((whole, True), (without_moving(whole, frozenset({moving})), False)):
        said = {item.conversation for item in (*plan.held, *plan.aside)}
        said |= {version.conversation for version in plan.preserve} | {action.conversation for action in plan.actions}
        said |= {each for each, _ in (*plan.intents, *plan.tombstones)} | {key for (key, _), _ in plan.asides}
        assert (moving in said) is there


def test_of_what_is_remembered_only_what_somebody_is_writing_is_left_out() -> None:
    both = ("jp-c1", "jp-c2")
    whole = Plan(
        layout="nested",
        intents=tuple((each, None) for each in both),
        asides=tuple(((each, "stream"), None) for each in both),
        tombstones=tuple((each, ()) for each in both),
        waiting=tuple(((each, Verb.LOCAL), None) for each in both),
        notes=tuple(Note(conversation=each, reason=Reason.REMOVED_HERE, message="x") for each in (*both, None)),
    )
    plan = without_moving(whole, frozenset({"jp-c1"}))
    assert plan.notes == whole.notes[1:]
    assert plan.intents == whole.intents[1:]
    assert plan.asides == whole.asides[1:]
    assert plan.tombstones == whole.tombstones[1:]
    assert plan.waiting == whole.waiting[1:]
    assert plan.moving == {"jp-c1"}


def test_what_a_command_makes_due_may_be_an_intent_alone() -> None:
    context = context_of(stored(*LINES), here(*LINES), KNOWN, Policy(only=frozenset({"jp-c3"})))
    context.intents = {each: Intent(IntentKind.PROJECTED) for each in ("jp-c5", "jp-c6")}
    context.due = frozenset({("jp-c6",)})
    assert selected(context, [])[1] == frozenset({"jp-c3", "jp-c5"})
    assert context.intents.keys() == {"jp-c5"}


def found_in(plan: Plan, *conversations: str) -> Plan:
    """Hold what would publish the secrets of these conversations."""
    items = [
        Item(conversation=each, title="masked", unit=WHOLE, reason=Reason.SECRET, message=f"a secret in {each}")
        for each in conversations
    ]
    return without_secrets(plan, items)


def test_a_secret_holds_the_workspace_and_what_waits_for_it_but_no_save() -> None:
    child, other = line(2, " parent 1"), line(3, " parent 1")
    policy = Policy(request=ProjectRequest(("jp-c1", "jp-c2", "jp-c3")))
    plan = plan_of(stored(line(1), child, other, line(4)), here(line(4, events="[1 2]")), agreed_on(line(4)), policy)
    assert kinds(plan) == ["project jp-c1", "project jp-c2", "project jp-c3"]
    held = found_in(plan, "jp-c1")
    assert (kinds(held), held.held[-1].message) == ([], "a secret in jp-c1; 2 other conversations wait for it")
    assert held.put_off == {"jp-c1", "jp-c2", "jp-c3"}
    assert held.intents == plan.intents
    alone = found_in(plan, "jp-c3")
    assert kinds(alone) == ["project jp-c1", "project jp-c2"]
    assert alone.held[-1].message == "a secret in jp-c3"
    assert [entry.title for entry in plan.outline] == ["x"] * len(plan.outline)
    assert {entry.conversation for entry in alone.outline if entry.title == "masked"} == {"jp-c3"}
    one = found_in(plan, "jp-c1", "jp-c3")
    assert [item.message for item in one.held[-2:]] == [
        "a secret in jp-c1; 1 other conversation waits for it",
        "a secret in jp-c3",
    ]


def test_a_secret_holds_a_rename_for_a_title_but_no_copy_to_the_store() -> None:
    renamed = '1-y  metadata 09:30 title "y"  stream 09:00 [1]'
    plan = plan_of(stored(renamed), here(line(1, events="[1 2]")), agreed_on(line(1)))
    assert sorted(kinds(plan)) == ["copy jp-c1", "move jp-c1", "project jp-c1"]
    assert kinds(found_in(plan, "jp-c1")) == ["copy jp-c1"]


def test_a_secret_holds_no_step_that_shows_nothing() -> None:
    """A new place shows no title, and the store may have it."""
    retitled = plan_of(stored(line(1)), here(line(1).replace('"x"', '"y"')), agreed_on(line(1)))
    assert [(action.kind, action.target.side) for action in found_in(retitled, "jp-c1").actions] == [
        (Kind.COPY, Side.STORE),
        (Kind.MOVE, Side.STORE),
    ]
    moved = plan_of(
        stored(line(1), line(2, " parent 1")), here(line(1), line(2, " parent 1")), agreed_on(line(1), line(2))
    )
    assert [(action.kind, action.writes) for action in moved.actions] == [(Kind.MOVE, ())]
    assert found_in(moved, "jp-c2").actions == moved.actions


def test_what_needs_a_save_does_not_wait_for_a_secret() -> None:
    retitled = plan_of(stored(line(1)), here(line(1).replace('"x"', '"y"')), agreed_on(line(1)))
    saved, renamed, _ = retitled.actions
    other = replace(renamed, id="3", conversation="jp-c2", needs=(saved.id,))
    plan = found_in(replace(retitled, actions=(saved, renamed, other)), "jp-c1")
    assert kinds(plan) == ["copy jp-c1", "move jp-c2"]
    assert plan.held[-1].message == "a secret in jp-c1"
