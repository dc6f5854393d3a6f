"""Extras of which one side has a file in the place of the other side's directory (docs/design/decisions.md#rule-65)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.model.policy import Policy
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import WHOLE
from reconcile.planning.rules.content import Outcome, decide_units
from reconcile.planning.rules.guards import Sides
from tests.support.scenarios.building import agreed_on, here, plan_of, stored, view_of

if TYPE_CHECKING:
    from reconcile.model.baseline import Baseline

CLEAR = Sides(store_emptied=False, store_replaced=False, workspace_emptied=False)
HIDDEN, RENEWED = replace(CLEAR, store_hidden=True), replace(CLEAR, store_replaced=True)
ONE = "1-a  metadata 07:00  stream 08:00 [1]"
BUSY = Policy(git_busy="a merge")
GONE = (Outcome.DROP_HERE, Reason.EDITED_WORKSPACE, 9, "")
ADDED = (Outcome.TO_STORE, Reason.EXTERNAL, 2, "")
FILE_IN_STORE = "a file in the store, a directory on the other side; rename the one in the store, and run again"
FILE_HERE = "a directory in the store, a file on the other side; rename the one in the store, and run again"
REMOVED = (Outcome.DROP, Reason.REMOVED_IN_STORE, 7, "")
BY_GIT = "git is busy (a merge); the workspace's version is copied when git is done"
Said = tuple[Outcome, Reason | None, int | None, str]


def note(path: str, text: str = "one") -> str:
    return f'1-a/{path}  08:00 "{text}"'


OLD, NEW = [note("a"), note("b/x"), note("b/y")], [note("a/x"), note("a/y"), note("b")]
KNOWN = agreed_on(ONE, *OLD)
REMOTE = replace(KNOWN, is_of_remote=True)


def decided(
    store: list[str], workspace: list[str], baseline: Baseline, policy: Policy | None = None, sides: Sides = CLEAR
) -> dict[str, Said]:
    """Return what is decided about each extra that differs."""
    view = view_of(stored(ONE, *store), here(ONE, *workspace), baseline)
    return {
        verdict.unit.removeprefix("extra:"): (verdict.outcome, verdict.reason, verdict.case, verdict.words)
        for verdict in decide_units(view, baseline, policy or Policy(), sides)
        if verdict.outcome is not Outcome.NOTHING
    }


def both_wait(
    cases: dict[str, int], reason: Reason = Reason.OBSTRUCTED, says: tuple[str, str] = (FILE_IN_STORE, FILE_HERE)
) -> dict[str, Said]:
    """Return the verdicts if the files `a` and `b` are held, and what is in the directories of these names waits."""
    held = dict(zip("ab", says, strict=True))
    return {
        name: (Outcome.HELD, reason, case, held[name]) if name in held else (Outcome.WAIT, None, case, "")
        for name, case in cases.items()
    }


def test_what_the_workspace_has_replaced_leaves_the_store() -> None:
    expected = dict.fromkeys(("a", "b/x", "b/y"), GONE) | dict.fromkeys(("a/x", "a/y", "b"), ADDED)
    assert decided(OLD, NEW, KNOWN) == expected


def test_while_git_is_busy_nothing_leaves_the_store() -> None:
    cases = {"a": 9, "a/x": 2, "a/y": 2, "b": 2, "b/x": 9, "b/y": 9}
    assert decided(OLD, NEW, KNOWN, BUSY) == both_wait(cases, Reason.GIT_BUSY, (BY_GIT, BY_GIT))


def test_an_edit_in_the_store_holds_both_shapes_whatever_git_does() -> None:
    edited = [note("a", "two"), note("b/x"), note("b/y", "two")]
    expected = both_wait({"a": 12, "a/x": 2, "a/y": 2, "b": 2, "b/x": 9, "b/y": 12})
    assert decided(edited, NEW, KNOWN) == decided(edited, NEW, KNOWN, BUSY) == expected


def test_files_that_were_never_in_the_workspace_hold_both_shapes() -> None:
    expected = both_wait({"a": 3, "a/x": 2, "a/y": 2, "b": 2, "b/x": 3, "b/y": 3})
    never = agreed_on(ONE)
    assert decided(OLD, NEW, never) == decided(OLD, NEW, replace(never, is_of_remote=True)) == expected


def test_each_name_is_decided_for_itself() -> None:
    names = ("a", "b", "c", "d")
    store = [note(name, "two" if name in "bd" else "one") for name in names]
    found = decided(store, [note(f"{name}/x") for name in names], agreed_on(ONE, *map(note, names)))
    held = (Outcome.HELD, Reason.OBSTRUCTED, 12, FILE_IN_STORE)
    assert {name: found[name] for name in names} == {"a": GONE, "b": held, "c": GONE, "d": held}
    assert [found[f"{name}/x"][0] for name in names] == [Outcome.TO_STORE, Outcome.WAIT] * 2


def test_what_is_removed_from_a_workspace_makes_room_there() -> None:
    assert decided(NEW, OLD, KNOWN) == dict.fromkeys(("a", "b/x", "b/y"), REMOVED)
    come = dict.fromkeys(("a/x", "a/y", "b"), (Outcome.TO_WORKSPACE, Reason.SHARED, 3, ""))
    assert decided(NEW, OLD, REMOTE) == dict.fromkeys(("a", "b/x", "b/y"), REMOVED) | come


def test_an_edit_in_the_workspace_of_what_the_store_has_replaced_holds_both_shapes() -> None:
    edited = [note("a", "two"), note("b/x", "two"), note("b/y", "two")]
    expected = both_wait({"a": 8, "a/x": 3, "a/y": 3, "b": 3, "b/x": 8, "b/y": 8}, says=(FILE_HERE, FILE_IN_STORE))
    assert decided(NEW, edited, KNOWN) == decided(NEW, edited, REMOTE) == expected


def test_an_edit_holds_the_unedited_files_of_its_directory_too() -> None:
    """The place is held as a whole: what the store has replaced in it stays in the workspace."""
    old, new = [note("b/x"), note("b/y")], [note("b")]
    found = decided(new, [note("b/x"), note("b/y", "two")], agreed_on(ONE, *old))
    waits = (Outcome.WAIT, None)
    held = (Outcome.HELD, Reason.OBSTRUCTED, 3, FILE_IN_STORE)
    assert found == {"b": held, "b/x": (*waits, 7, ""), "b/y": (*waits, 8, "")}


def test_what_makes_room_says_nothing_of_the_next_name() -> None:
    names = [note("a/x"), note("b/x")]
    found = decided([note("a"), note("b")], [note("a/x"), note("b/x", "two")], agreed_on(ONE, *names))
    assert found["a/x"] == REMOVED
    assert found["b"] == (Outcome.HELD, Reason.OBSTRUCTED, 3, FILE_IN_STORE)


def test_what_is_missing_in_a_store_that_cannot_be_read_is_in_the_way_of_what_comes() -> None:
    """In a workspace that gets nothing, nothing is in the way."""
    expected = both_wait({"a": 7, "a/x": 3, "a/y": 3, "b": 3, "b/x": 7, "b/y": 7}, says=(FILE_HERE, FILE_IN_STORE))
    assert decided(NEW, OLD, REMOTE, sides=HIDDEN) == decided(NEW, OLD, KNOWN, sides=RENEWED) == expected
    assert decided(NEW, OLD, KNOWN, sides=HIDDEN) == dict.fromkeys(("a", "b/x", "b/y"), (Outcome.WAIT, None, 7, ""))


def test_another_machine_that_removed_what_was_there_makes_room() -> None:
    """A remote alone tells of no removal: its files are missing."""
    view = view_of(stored(ONE, *OLD), here(ONE, *NEW), REMOTE)
    there = {(view.id, name): unit.digest for name, unit in view.store.units.items() if name.startswith("extra:")}
    told = replace(REMOTE, removed_there=there)
    gone = (Outcome.DROP_HERE, Reason.REMOVED_THERE, 9, "")
    expected = dict.fromkeys(("a", "b/x", "b/y"), gone) | dict.fromkeys(("a/x", "a/y", "b"), ADDED)
    assert decided(OLD, NEW, told) == expected
    missing = {"a": 9, "a/x": 2, "a/y": 2, "b": 2, "b/x": 9, "b/y": 9}
    assert decided(OLD, NEW, REMOTE) == decided(OLD, NEW, REMOTE, BUSY) == both_wait(missing)


def test_two_directories_of_one_side_clash() -> None:
    """The first two names that can't be together are named, each with its directory; of one directory none can."""
    both = [
        "1-b  metadata 07:00  stream 08:00 [1]",
        note("b"),
        note("c"),
        '1-b/b/x  08:00 "one"',
        '1-b/c/x  08:00 "one"',
    ]
    baseline = agreed_on(ONE)
    for view in (
        view_of(stored(ONE, *both), here(ONE), baseline),
        view_of(stored(ONE), here(ONE, *both), baseline),
    ):
        assert view.clash is not None
        assert [(unit.copy.path, unit.name) for unit in view.clash] == [("1-a", "extra:b"), ("1-b", "extra:b/x")]
    assert view_of(stored(ONE), here(ONE, *both[:3]), baseline).clash is None
    assert view_of(stored(ONE), here(ONE), baseline).clash is None


def test_a_clash_holds_the_conversation_on_both_sides() -> None:
    """Nothing is gathered, published or removed, and the message names both directories."""
    both = ["1-b  metadata 07:00  stream 08:00 [1]", note("b"), '1-b/b/x  08:00 "one"']
    newer = "1-a  metadata 07:00  stream 09:00 [1 2]"
    for side, store, workspace in (
        ("store", [ONE, *both], [newer]),
        ("workspace", [newer], [ONE, *both]),
        ("workspace", [], [ONE, *both]),
        ("store", [ONE, *both], []),
    ):
        plan = plan_of(stored(*store), here(*workspace), agreed_on())
        (item,) = plan.held
        assert (item.unit, item.reason) == (WHOLE, Reason.OBSTRUCTED)
        assert item.message == f"{side}:1-a/b is a file, in 1-b it is a directory; rename one, and run again"
        assert not plan.actions
