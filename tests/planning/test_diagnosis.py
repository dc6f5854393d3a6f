"""What `doctor` finds, by kind (docs/commands.md#reconcile-doctor)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from reconcile.model.plan import Item
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import Place, Problem, Side, Unreadable
from reconcile.planning.diagnosis import (
    LAY_OUT,
    NOTHING_IN_IT,
    PLAIN,
    SEE_TO_IT,
    Ailment,
    Finding,
    diagnose,
    empty_directories,
)
from tests.support.scenarios.building import agreed_on, context_of, here, plan_of, stored, unreadable

if TYPE_CHECKING:
    from reconcile.model.plan import Plan
    from reconcile.model.snapshot import Snapshot
    from reconcile.planning.context import PlanningContext

A = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
B = '2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1]'
NESTED = f"1-a/conversations/{B}"


def diagnosed(board: PlanningContext, plan: Plan, store: Snapshot, workspace: Snapshot) -> tuple[Finding, ...]:
    return diagnose(board, plan, store, workspace, empty_directories(store, workspace))


def found(
    store: tuple[str, ...], workspace: tuple[str, ...] = (), agreed: tuple[str, ...] = ()
) -> list[tuple[Ailment, str, bool]]:
    sides = (stored(*store), here(*workspace))
    baseline = agreed_on(*agreed) if agreed else None
    findings = diagnosed(context_of(*sides, baseline), plan_of(*sides, baseline), *sides)
    assert all(finding.ailment.matters and finding.mend for finding in findings)
    return [(finding.ailment, finding.place, finding.repairable) for finding in findings]


@pytest.mark.parametrize(
    ("store", "workspace", "expected"),
    [
        ((A, B), (A, NESTED), []),
        (
            (A,),
            (A, '1-a/events.json 10:00 "<<<<<<< HEAD"'),
            [(Ailment.MERGE_MARKERS, "workspace:1-a/events.json", False)],
        ),
        ((A,), (A, '1-a/events.json 10:00 "[{"'), [(Ailment.INVALID, "workspace:1-a/events.json", False)]),
        ((A,), (A, A.replace("1-a", "1-z")), [(Ailment.DUPLICATE, "workspace:1-z", True)]),
        ((A.replace('"A"', '"A" parent 1'),), (), [(Ailment.CYCLE, "store:1-a", False)]),
        ((B,), (), [(Ailment.MISSING_PARENT, "store:2-b", False)]),
        ((A, NESTED), (), [(Ailment.NESTED_IN_STORE, "store:1-a/conversations/2-b", True)]),
        ((A, B, NESTED), (), [(Ailment.NESTED_IN_STORE, "store:1-a/conversations/2-b", True)]),
        ((A.replace("1-a", "1-old"),), (), [(Ailment.NAME, "store:1-old", False)]),
        ((A, 'README/x 09:00 "x"'), (), [(Ailment.FOREIGN, "store:README", False)]),
        ((A, '.staging-1-a/x 09:00 "x"'), (), [(Ailment.LEFTOVER, "store:.staging-1-a", False)]),
        ((A, "2-b/"), (), [(Ailment.EMPTY, "store:2-b", False)]),
        ((A,), (A, "2-b/", ".trash/3-c/"), [(Ailment.EMPTY, "workspace:2-b", False)]),
        ((A,), (A, "2-b/conversations/3-c/"), [(Ailment.EMPTY, "workspace:2-b/conversations/3-c", False)]),
        ((A,), (A, '2-b/NOTE.md 09:00 "x"'), [(Ailment.FOREIGN, "workspace:2-b", False)]),
        ((A,), (A, '1-z/NOTE.md 09:00 "x"'), []),
    ],
)
def test_by_what_is_there(
    store: tuple[str, ...], workspace: tuple[str, ...], expected: list[tuple[Ailment, str, bool]]
) -> None:
    agreed = tuple(line for line in (A, B) if line in store and workspace)
    assert [each for each in found(store, workspace, agreed) if each[0] is not Ailment.STALE] == expected


def test_what_cannot_be_read_is_not_moved_away() -> None:
    """It is named once, and the way on is not to move it away."""
    workspace = unreadable(here(A), "1-a/events.json")
    workspace = replace(workspace, problems=(Problem("1-a/events.json", "found something"), Problem("2-b", "closed")))
    sides = (stored(A), workspace)
    found = diagnosed(context_of(*sides, agreed_on(A)), plan_of(*sides, agreed_on(A)), *sides)
    assert [(finding.ailment, finding.place, finding.mend) for finding in found] == [
        (Ailment.UNREADABLE, "workspace:1-a/events.json", (SEE_TO_IT,)),
        (Ailment.UNREADABLE, "workspace:2-b", (SEE_TO_IT,)),
    ]


def test_what_cannot_be_read_in_the_store_alone_is_named_once() -> None:
    store = unreadable(stored(A), "1-a/events.json")
    store = replace(store, problems=(Problem("1-a/events.json", "closed"),))
    sides = (store, here())
    plan = plan_of(*sides)
    (found,) = diagnosed(context_of(*sides), plan, *sides)
    assert (found.ailment, found.place, found.mend) == (Ailment.UNREADABLE, "store:1-a/events.json", (SEE_TO_IT,))
    assert not [note for note in plan.notes if note.conversation is not None]


def findings(store: tuple[str, ...], workspace: tuple[str, ...] = (), agreed: tuple[str, ...] = ()) -> list[Finding]:
    sides = (stored(*store), here(*workspace))
    baseline = agreed_on(*agreed) if agreed else None
    return list(diagnosed(context_of(*sides, baseline), plan_of(*sides, baseline), *sides))


OTHER = '9-z  metadata 09:00 title "Z"  stream 09:00 [1]'
CHILD_A = A.replace('"A"', '"A" parent 9')
IN_OTHER = f"9-z/conversations/{CHILD_A}"
AS_NOBODY_WRITES = (
    '1-a/metadata.json  09:30 "{\\"title\\":\\"A\\",\\"last_activated_at\\":\\"2025-01-01 00:00:00.0\\"}"'
)
QUARANTINE = "reconcile doctor --quarantine jp-c1"
EXPECTED = " (expected an array of events, each with timestamp and type)"
WHOLE: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], list[Finding]]] = {
    "a merge that was never settled": (
        (A,),
        (A, '1-a/events.json 10:00 "<<<<<<< HEAD"'),
        (A,),
        [
            Finding(
                Ailment.MERGE_MARKERS,
                "workspace:1-a/events.json",
                f"a git conflict marker in line 1{EXPECTED}",
                "jp-c1",
                ("resolve the merge in git (git status)", "reconcile resolve jp-c1 --take store", QUARANTINE),
            )
        ],
    ),
    "a file that nobody can read": (
        (A,),
        (A, '1-a/events.json 10:00 "[{"'),
        (A,),
        [
            Finding(
                Ailment.INVALID,
                "workspace:1-a/events.json",
                f"a truncated file, which ends inside a value in line 1{EXPECTED}",
                "jp-c1",
                ("reconcile resolve jp-c1 --take store", QUARANTINE),
            )
        ],
    ),
    "metadata that can't be edited": (
        (CHILD_A, AS_NOBODY_WRITES, OTHER),
        (OTHER, IN_OTHER),
        (OTHER, IN_OTHER),
        [
            Finding(
                Ailment.UNEDITABLE,
                "store:1-a",
                "its metadata is not formatted as JP writes it, so its parent can't be set there",
                "jp-c1",
                (LAY_OUT,),
            )
        ],
    ),
    "a second directory in the store": (
        (A, A.replace("1-a", "1-z")),
        (A,),
        (A,),
        [Finding(Ailment.DUPLICATE, "store:1-z", "same conversation as 1-a", "jp-c1", (PLAIN,))],
    ),
    "a second directory, nested in the workspace": (
        (A, OTHER),
        (A, OTHER, f"9-z/conversations/{A}"),
        (A, OTHER),
        [Finding(Ailment.DUPLICATE, "workspace:9-z/conversations/1-a", "same conversation as 1-a", "jp-c1", (PLAIN,))],
    ),
    "a parent that is nowhere": (
        (B,),
        (),
        (),
        [
            Finding(
                Ailment.MISSING_PARENT,
                "store:2-b",
                "its parent jp-c1 is deleted or archived",
                "jp-c2",
                ("reconcile set-parent jp-c2 PARENT", "reconcile set-parent jp-c2 --none"),
            )
        ],
    ),
    "a cycle in what is new here": (
        (),
        (A.replace('"A"', '"A" parent 1'),),
        (),
        [Finding(Ailment.CYCLE, "workspace:1-a", "jp-c1 > jp-c1", "jp-c1", ("reconcile set-parent jp-c1 --none",))],
    ),
    "a directory called by another title": (
        (A.replace("1-a", "1-old"),),
        (),
        (),
        [
            Finding(
                Ailment.NAME,
                "store:1-old",
                "the name for its title is 1-a",
                "jp-c1",
                ("nothing to do; JP renames it on its next write",),
            )
        ],
    ),
    "one that somebody moved": (
        (CHILD_A, OTHER),
        (CHILD_A, OTHER),
        (OTHER, IN_OTHER),
        [
            Finding(
                Ailment.DRIFT,
                "workspace:1-a",
                "the last run left it at 9-z/conversations/1-a",
                "jp-c1",
                ("reconcile project jp-c1",),
            )
        ],
    ),
    "a parent that JP has stripped": (
        (A, OTHER),
        (OTHER, IN_OTHER),
        (OTHER, IN_OTHER),
        [Finding(Ailment.STRIPPED_PARENT, "store:1-a/metadata.json", "parent_id is missing", "jp-c1", (PLAIN,))],
    ),
    "one that was removed from the store": (
        (OTHER,),
        (A, OTHER),
        (A, OTHER),
        [Finding(Ailment.STALE, "workspace:1-a", Reason.REMOVED_IN_STORE.words, "jp-c1", (PLAIN,))],
    ),
    "one that was archived, and is": ((f".archive/{A}",), (f".archive/{A}",), (f".archive/{A}",), []),
    "one that JP has carried into the archive": (
        (f".archive/{OTHER}", CHILD_A),
        (f".archive/{OTHER}", f".archive/{IN_OTHER}"),
        (OTHER, IN_OTHER),
        [
            Finding(
                Ailment.MISSING_PARENT,
                "store:1-a",
                "its parent jp-c9 is deleted or archived",
                "jp-c1",
                ("reconcile set-parent jp-c1 PARENT", "reconcile set-parent jp-c1 --none"),
            ),
            Finding(
                Ailment.CARRIED,
                "workspace:.archive/9-z/conversations/1-a",
                "in archive, below jp-c9",
                "jp-c1",
                (PLAIN,),
            ),
            Finding(
                Ailment.DRIFT,
                "workspace:.archive/9-z",
                "the last run left it at 9-z",
                "jp-c9",
                ("reconcile project jp-c9",),
            ),
            Finding(
                Ailment.DRIFT,
                "workspace:.archive/9-z/conversations/1-a",
                "the last run left it at 9-z/conversations/1-a",
                "jp-c1",
                ("reconcile project jp-c1",),
            ),
        ],
    ),
    "one that was edited": ((A,), (A.replace("[1]", "[1 2]"),), (A,), []),
}


@pytest.mark.parametrize(("store", "workspace", "agreed", "expected"), WHOLE.values(), ids=WHOLE)
def test_what_is_found_and_how_it_is_mended(
    store: tuple[str, ...], workspace: tuple[str, ...], agreed: tuple[str, ...], expected: list[Finding]
) -> None:
    assert findings(store, workspace, agreed) == expected


def test_the_place_is_that_of_the_file_and_every_item_has_one() -> None:
    sides, plan = (stored(A), here(A)), plan_of(stored(A), here(A), agreed_on(A))
    place = Place(Side.STORE, "1-a/x: y")
    others = [
        Item(conversation=None, title=None, unit="conversation", reason=Reason.BULK, message="all of it"),
        Item(conversation="jp-c1", title="A", unit="metadata", reason=Reason.NOT_ROUND_TRIP, message="not as JP does"),
    ]
    about = Item(conversation="jp-c1", title="A", unit="stream", reason=Reason.INVALID, message="no side: has it")
    held = [*others, replace(about, message=f"{place}: found this: that", place=place), about]
    found = diagnosed(context_of(*sides, agreed_on(A)), replace(plan, held=tuple(held)), *sides)
    assert [(finding.place, finding.found) for finding in found] == [
        ("store:1-a", "no side: has it"),
        ("store:1-a/x: y", "found this: that"),
        ("store:1-a", "not as JP does"),
    ]


def test_a_title_that_nobody_can_read_makes_no_name() -> None:
    assert [finding.ailment for finding in findings((A,), (A, '1-a/metadata.json 10:00 "["'), (A,))] == [
        Ailment.INVALID
    ]


def test_a_link_in_a_place_of_a_conversation_and_what_is_only_named_like_one() -> None:
    nested = "9-z/conversations/1-a -> /elsewhere"
    sides = stored(A, "2-b -> /elsewhere", '3-c 09:00 "x"'), here(A, OTHER, nested)
    board, plan = context_of(*sides), plan_of(*sides)
    found = [finding for finding in diagnosed(board, plan, *sides) if "never followed" not in finding.found]
    assert [(finding.ailment, finding.place, finding.conversation) for finding in found] == [
        (Ailment.UNREADABLE, "store:2-b", "jp-c2"),
        (Ailment.UNREADABLE, "workspace:9-z/conversations/1-a", "jp-c1"),
        (Ailment.FOREIGN, "store:3-c", None),
    ]


def test_findings_come_by_kind_and_then_by_place() -> None:
    lines = [B.replace("2-b", name) for name in ("3-x", "2-x")]
    found = findings((*lines, A.replace("1-a", "1-old"), 'README/x 09:00 "x"'), ('README/x 09:00 "x"',))
    places = ["store:1-old", "store:2-x", "store:3-x", "store:README", "workspace:README"]
    assert [finding.place for finding in found] == places


def test_by_what_is_remembered() -> None:
    moved = '2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1]'
    assert (Ailment.DRIFT, "workspace:2-b", False) in found((A, B), (A, moved), (A, NESTED))
    stripped = B.replace(" parent 1", "")
    assert (Ailment.STRIPPED_PARENT, "store:2-b/metadata.json", True) in found((A, stripped), (A, NESTED), (A, NESTED))
    other = '3-c  metadata 09:00 title "C"  stream 09:00 [1]'
    gone = found((other,), (A, other), (A, other))
    assert (Ailment.STALE, "workspace:1-a", True) in gone


def test_what_jp_has_carried_along() -> None:
    archived = '.archive/1-a  metadata 09:00 title "A"  stream 09:00 [1]'
    inside = f".archive/1-a/conversations/{B}"
    kinds = [each[:2] for each in found((archived, B), (archived, inside), (A, NESTED))]
    assert (Ailment.CARRIED, "workspace:.archive/1-a/conversations/2-b") in kinds


def test_what_cannot_be_seen() -> None:
    store = replace(stored(A), problems=(Problem("", "it can't be read (EIO)"),))
    plan = plan_of(store, here(A), agreed_on(A))
    findings = diagnosed(context_of(store, here(A), agreed_on(A)), plan, store, here(A))
    assert [(finding.ailment, finding.place) for finding in findings] == [(Ailment.UNREADABLE, "store:.")]
    store = replace(stored(A), problems=(Problem("9-z", "it can't be read (EIO)"),))
    (finding,) = diagnosed(context_of(store, here(A), agreed_on(A)), plan, store, here(A))
    mend = ("check its permissions, and the disk",)
    assert finding == Finding(Ailment.UNREADABLE, "store:9-z", "it can't be read (EIO)", mend=mend)


def test_a_link_in_the_place_of_a_conversation() -> None:
    linked = "1-a -> /elsewhere"
    baseline = agreed_on(A, '8-h  metadata 09:00 title "H"  stream 09:00 [1]')
    sides = (stored(A), here(linked, '8-h  metadata 09:00 title "H"  stream 09:00 [1]'))
    plan = plan_of(*sides, baseline)
    found = {finding.place: finding for finding in diagnosed(context_of(*sides, baseline), plan, *sides)}[
        "workspace:1-a"
    ]
    assert (found.ailment, found.conversation) == (Ailment.UNREADABLE, "jp-c1")
    (message,) = (item.message for item in plan.held if item.conversation == "jp-c1")
    assert message.startswith("workspace:1-a: a symbolic link replaced the directory; ")


@pytest.mark.parametrize(
    ("ailment", "severity"),
    [(Ailment.INVALID, "error"), (Ailment.STALE, "warning"), (Ailment.MISSING_PARENT, "note")],
)
def test_what_is_normal_is_a_note(ailment: Ailment, severity: str) -> None:
    assert ailment.severity == severity


def test_every_file_that_nobody_can_read_is_named_with_the_way_on() -> None:
    lines = (A, B.replace(" parent 1", ""))
    workspace = unreadable(unreadable(here(*lines), "1-a/events.json"), "2-b/events.json")
    sides = stored(*lines), workspace
    baseline = agreed_on(*lines)
    findings = diagnosed(context_of(*sides, baseline), plan_of(*sides, baseline), *sides)
    assert [(each.ailment, each.conversation, each.mend) for each in findings] == [
        (Ailment.UNREADABLE, "jp-c1", (SEE_TO_IT,)),
        (Ailment.UNREADABLE, "jp-c2", (SEE_TO_IT,)),
    ]
    assert {each.found for each in findings} == {"can't be read"}


def test_an_empty_directory_is_looked_at_before_it_is_removed() -> None:
    sides = stored("1-a/"), here()
    (finding,) = diagnosed(context_of(*sides), plan_of(*sides), *sides)
    assert (finding.found, finding.mend) == (NOTHING_IN_IT, ("reconcile status jp-c1", "remove it"))


def test_a_directory_of_which_something_is_known_is_not_empty() -> None:
    (bare,) = stored("1-a/").copies
    fault = Unreadable("1-a", "", "a readable directory")
    side = stored("1-a/")
    for copy in (replace(bare, metadata=fault), replace(bare, stream=fault), replace(bare, obstructed=True)):
        assert not list(empty_directories(replace(side, copies=(copy,))))
    assert list(empty_directories(side)) == [bare]


def test_what_a_plain_run_solves_is_mended_by_that_command() -> None:
    assert PLAIN == "reconcile"
