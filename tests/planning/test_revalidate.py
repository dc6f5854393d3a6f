"""What of a saved plan still is what the planner would do, and what stands in its way (docs/design/run.md#rule-55)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconcile.model.baseline import (
    AsideKind,
    AsideRecord,
    Baseline,
    ConversationRecord,
    Intent,
    IntentKind,
    Verb,
    WorldState,
)
from reconcile.model.plan import Action, Item, Kind, Plan, Precondition, Write
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import METADATA, STREAM, WHOLE, Place, Side
from reconcile.planning.revalidate import DONE_ALREADY, agreeing, moved_on
from tests.support.scenarios.building import here, stored

A = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'


def action(number: int, conversation: int, *needs: int, kind: Kind = Kind.COPY) -> Action:
    return Action(
        id=str(number),
        kind=kind,
        conversation=f"jp-c{conversation}",
        title=None,
        unit=WHOLE,
        reason=Reason.EXTERNAL,
        target=Place(Side.STORE, f"{number}-x"),
        needs=tuple(str(need) for need in needs),
    )


def plan(*actions: Action) -> Plan:
    return Plan(layout="nested", actions=actions)


def kept(saved: Plan, fresh: Plan, *decided: str) -> list[str]:
    return [each.target.path for each in agreeing(saved, fresh, decided)[0].actions]


def test_all_of_it_where_nothing_has_changed() -> None:
    saved = plan(action(1, 1), action(2, 2, 1))
    found, carries = agreeing(saved, replace(saved, quiet=True))
    assert (found.actions, found.quiet) == (saved.actions, False)
    assert carries == {each.id: each for each in saved.actions}


def test_what_git_is_in_the_way_of_is_to_be_applied_again() -> None:
    later = "the first run that can carries it out"
    busy = Item(conversation=None, title=None, unit=WHOLE, reason=Reason.GIT_BUSY, message=later)
    other = Item(conversation="jp-c1", title=None, unit=WHOLE, reason=Reason.INVALID, message="found no title")
    found, _ = agreeing(plan(), replace(plan(), held=(busy, other)))
    assert found.held == (replace(busy, message="git is busy; apply the plan again when it is done"), other)


def test_the_same_action_has_another_number_and_other_needs_in_another_plan() -> None:
    """And is carried out as the fresh plan has it."""
    new, same = action(1, 9), replace(action(5, 1, 1), touches=("jp-c1", "jp-c9"), together="jp-c9")
    old = replace(same, id="1", needs=(), touches=("jp-c1",), together="")
    found, carries = agreeing(plan(old), plan(action(0, 1), same))
    assert found.actions == (replace(same, id="1", needs=()),)
    assert carries == {"1": old}
    assert kept(plan(old), plan(new, same)) == []  # what it needs by now was never asked for


def test_a_conversation_of_which_one_action_is_not_right_any_more_is_refused_with_what_needs_it() -> None:
    saved = plan(action(1, 1), action(2, 1), action(3, 2, 1), action(4, 3))
    assert kept(saved, plan(*saved.actions[:1], *saved.actions[2:])) == ["4-x"]
    assert kept(saved, plan(*saved.actions, action(5, 4))) == ["1-x", "2-x", "3-x", "4-x"]


def test_nothing_is_done_or_remembered_of_what_was_decided_otherwise_since() -> None:
    record = AsideRecord(AsideKind.KEPT, None, None)
    ids = ("jp-c1", "jp-c2", "jp-c3", "jp-c4")
    saved = replace(
        plan(action(1, 1), action(2, 2, 1), action(3, 3), action(4, 4)),
        intents=tuple((each, Intent(IntentKind.LOCAL)) for each in ids),
        asides=tuple(((each, METADATA), record) for each in ids),
        remembered=tuple((each, ConversationRecord()) for each in ids),
        waiting=tuple(((each, Verb.LOCAL), None) for each in ids),
        put_off=frozenset({"jp-c5"}),
    )
    fresh = replace(saved, actions=saved.actions[:3])
    found, _ = agreeing(saved, fresh, ("jp-c1",))
    assert [each.target.path for each in found.actions] == ["3-x"]
    assert [key for key, _ in found.intents] == ["jp-c2", "jp-c3", "jp-c4"]
    assert [key for (key, _), _ in found.asides] == ["jp-c3"]
    assert [key for key, _ in found.remembered] == ["jp-c3"]
    assert [key for (key, _), _ in found.waiting] == ["jp-c3"]
    assert found.put_off == {"jp-c1", "jp-c2", "jp-c5"}


def test_a_local_version_is_not_taken_for_saved_by_a_fork_that_is_not_made() -> None:
    """Nor is the fork recorded as local."""
    local, behind = AsideRecord(AsideKind.LOCAL, None, "old"), AsideRecord(AsideKind.BEHIND, None, "old")
    fresh = replace(
        plan(action(9, 9, kind=Kind.FORK), action(3, 3)),
        intents=(("jp-c9", Intent(IntentKind.LOCAL)),),
        asides=((("jp-c1", STREAM), local), (("jp-c2", STREAM), behind)),
    )
    found, _ = agreeing(plan(action(3, 3)), fresh)
    assert (found.intents, found.asides) == ((), fresh.asides[1:])
    assert found.put_off == {"jp-c9"}
    found, _ = agreeing(fresh, fresh)
    assert (found.intents, found.asides, found.put_off) == (fresh.intents, fresh.asides, frozenset())


FILES = {file.name: file for file in stored(A).copies[0].files}
FILE = FILES["events.json"]
OLD = Precondition(Place(Side.STORE, "1-a/events.json"), FILE.size, FILE.mtime_ns, FILE.digest)
FREE = replace(OLD, place=Place(Side.STORE, "1-a/NOTE.md"), digest=None)
NEW = Write(OLD.place, None, b"", 9, 9, "new")
SAME = Write(OLD.place, None, b"", FILE.size, FILE.mtime_ns, FILE.digest or "")
LATER = "a plan made now would do something else"
CHANGED = "store:1-a/events.json: changed since the plan was made"
SAID: dict[str, tuple[tuple[str, ...], dict[str, object], str]] = {
    "all is as it was": ((A,), {"expect": (OLD, FREE), "writes": (NEW,)}, LATER),
    "it is done": ((A,), {"expect": (FREE,), "writes": (SAME,)}, DONE_ALREADY),
    "it is half done": ((A,), {"writes": (SAME, NEW)}, LATER),
    "it writes nothing": ((A,), {"unit": METADATA}, LATER),
    "there is a file": (
        (A, '1-a/NOTE.md  09:00 "x"'),
        {"expect": (OLD, FREE), "writes": (NEW,)},
        "store:1-a/NOTE.md: created since the plan was made",
    ),
    "there is none": (
        (A.partition("  stream")[0],),
        {"expect": (OLD,), "writes": (NEW,)},
        "store:1-a/events.json: not there any more",
    ),
    "there is another": ((A.replace("[1]", "[2]"),), {"expect": (FREE, OLD)}, CHANGED),
    "it has another time": ((A.replace("stream 09:00", "stream 09:30"),), {"expect": (OLD,)}, CHANGED),
    "it was removed": (
        (A.replace("1-a", "2-b"),),
        {
            "kind": Kind.REMOVE,
            "target": Place(Side.STORE, "1-a"),
            "expect": (OLD, FREE, replace(OLD, place=Place(Side.STORE, "2-b/events.json"))),
        },
        DONE_ALREADY,
    ),
    "it was removed in part": (
        (A.partition("  stream")[0],),
        {
            "kind": Kind.REMOVE_STALE,
            "target": Place(Side.STORE, "1-a"),
            "expect": (OLD, replace(OLD, place=Place(Side.STORE, "1-a/metadata.json"))),
        },
        "store:1-a/events.json: not there any more",
    ),
    "it was moved": (
        (A,),
        {
            "kind": Kind.MOVE,
            "source": Place(Side.STORE, "1-old"),
            "target": Place(Side.STORE, "1-a"),
            "expect": (replace(OLD, place=Place(Side.STORE, "1-old/events.json")), FREE),
        },
        DONE_ALREADY,
    ),
    "it was moved, and edited": (
        (A,),
        {
            "kind": Kind.MOVE,
            "source": Place(Side.STORE, "1-old"),
            "target": Place(Side.STORE, "1-a"),
            "expect": (
                replace(OLD, place=Place(Side.STORE, "1-old/events.json")),
                replace(OLD, place=Place(Side.STORE, "1-old/metadata.json")),
            ),
        },
        "store:1-old/events.json: not there any more",
    ),
    "it is to be moved": (
        (A,),
        {
            "kind": Kind.MOVE,
            "source": Place(Side.STORE, "1-a"),
            "target": Place(Side.STORE, "1-b"),
            "expect": (OLD,),
        },
        LATER,
    ),
    "it is to get an older time": ((A,), {"kind": Kind.AGE, "unit": "stream", "mtime_ns": 1, "expect": (OLD,)}, LATER),
    "there is nothing that could have been moved": (
        (A,),
        {"kind": Kind.MOVE, "source": Place(Side.STORE, "1-old"), "target": Place(Side.STORE, "1-a")},
        LATER,
    ),
}


def said(
    look: WorldState, *actions: Action, fresh: Plan | None = None, decided: tuple[str, ...] = ()
) -> dict[str, str]:
    return moved_on(plan(*actions), fresh or plan(*actions), look, decided)


@pytest.mark.parametrize(("store", "more", "words"), SAID.values(), ids=SAID)
def test_what_stands_in_the_way(store: tuple[str, ...], more: dict[str, object], words: str) -> None:
    look = WorldState(stored(*store), here(), Baseline())
    wanted = replace(action(1, 1), **more)
    assert said(look, wanted) == {"1": words}


def test_what_was_decided_otherwise_is_said_to_be_unless_it_is_done() -> None:
    look = WorldState(stored(A), here(), Baseline())
    done, due = replace(action(1, 1), writes=(SAME,)), replace(action(2, 1), expect=(FREE, replace(OLD, size=0)))
    assert said(look, done, due, action(3, 2), decided=("jp-c1",)) == {
        "1": DONE_ALREADY,
        "2": "a later request decided otherwise; see reconcile log",
        "3": LATER,
    }


def test_of_a_conversation_the_first_change_is_said_of_all_its_actions() -> None:
    look = WorldState(stored(A), here(A), Baseline())
    there = replace(FREE, place=OLD.place)
    other = replace(FREE, place=Place(Side.WORKSPACE, "1-a/events.json"))
    first, second = replace(action(2, 1), expect=(there,)), replace(action(3, 1), expect=(other,))
    found = said(look, action(1, 1), first, second, action(4, 2))
    words = "store:1-a/events.json: created since the plan was made"
    assert found["1"] == found["2"] == words
    assert found["3"] == "workspace:1-a/events.json: created since the plan was made"
    assert found["4"] == LATER


def test_what_comes_first_by_now_is_named_to_all_that_waits_for_it() -> None:
    look = WorldState(stored(A), here(), Baseline())
    new = action(1, 9)
    fresh = plan(new, action(2, 1, 1), action(3, 2, 2), action(4, 3), action(5, 4, 4))
    found = said(look, action(2, 1), action(3, 2), action(4, 3), action(5, 4), fresh=fresh)
    words = f"needs another change first: copy store:1-x ({Reason.EXTERNAL.words})"
    assert found == {"2": words, "3": words, "4": LATER, "5": LATER}


def test_what_an_earlier_action_makes_or_takes_away_is_not_looked_for() -> None:
    """Files that it writes or removes, directories with all in them, whence one is moved, and files that are aged."""
    look, wanted = (
        WorldState(stored(), here(), Baseline()),
        replace(OLD, place=Place(Side.STORE, "2-b/conversations/1-a/x")),
    )
    place = Place(Side.STORE, "2-b")
    nothing = f"{wanted.place}: not there any more"
    file = replace(action(1, 2), unit=METADATA)
    for earlier, words in (
        (replace(file, writes=(replace(NEW, target=wanted.place),)), LATER),
        (replace(file, removes=(wanted.place,)), LATER),
        (replace(action(1, 2), target=place), LATER),
        (replace(action(1, 2), kind=Kind.MOVE, source=place), LATER),
        (replace(action(1, 2), kind=Kind.AGE, mtime_ns=1, expect=(wanted,)), LATER),
        (replace(action(1, 2), kind=Kind.AGE, target=place, mtime_ns=1), nothing),
        (replace(file, target=place), nothing),
        (replace(file, expect=(wanted,)), nothing),
        (replace(action(1, 2), source=place), nothing),
        (replace(action(1, 2), target=Place(Side.WORKSPACE, "2-b")), nothing),
    ):
        assert said(look, earlier, replace(action(2, 1), expect=(wanted,)))["2"] == words


def test_a_file_is_found_where_its_directory_was_moved_since() -> None:
    """The plan's own move was carried out by somebody else, after what is to be written there."""
    look = WorldState(stored(A), here(), Baseline())
    write = replace(action(1, 1), writes=(replace(SAME, target=Place(Side.STORE, "1-old/events.json")),))
    source, target = Place(Side.STORE, "1-old"), Place(Side.STORE, "1-a")
    for kind in (Kind.MOVE, Kind.ARCHIVE, Kind.UNARCHIVE):
        move = replace(action(2, 1, kind=kind), source=source, target=target)
        assert said(look, write, move)["1"] == DONE_ALREADY
        beside = replace(move, source=Place(Side.STORE, "9-old"))
        assert said(look, write, beside)["1"] == LATER
        assert said(look, replace(move, id="3"), replace(write, id="4"))["4"] == LATER, "it is written after the move"


def test_a_file_is_found_where_the_directory_of_its_parent_was_moved_since() -> None:
    """Each move is one of the plan, and takes all that is in the directory with it."""
    child = "2-b/conversations/1-a"
    look = WorldState(stored(), here("2-b/", A.replace("1-a", child)), Baseline())
    (there,) = (file for file in look.workspace.copies[0].files if file.name == "metadata.json")
    before = Place(Side.WORKSPACE, "2-old/conversations/1-old/metadata.json")
    write = Write(before, None, b"", there.size, there.mtime_ns, there.digest or "")
    written = replace(action(1, 1), unit=METADATA, target=Place(Side.WORKSPACE, before.path), writes=(write,))
    moves = [
        replace(
            action(number, id_, kind=Kind.MOVE), source=Place(Side.WORKSPACE, old), target=Place(Side.WORKSPACE, new)
        )
        for number, id_, old, new in (
            (2, 2, "2-old", "2-b"),
            (3, 1, "2-b/conversations/1-old", child),
            (4, 3, "2-old/conversations/1-old", "3-c"),
        )
    ]
    assert said(look, written, *moves)["1"] == DONE_ALREADY
    assert said(look, written, moves[2], *moves[:2])["1"] == LATER, "it is somewhere else"
