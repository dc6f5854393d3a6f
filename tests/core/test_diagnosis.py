"""What `doctor` finds, by kind (DESIGN.md 8; issue 4, "doctor")."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconcile.core.diagnosis import Ailment, diagnose
from reconcile.core.model import Problem
from tests.support.building import agreed_on, board_of, here, plan_of, stored

A = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
B = '2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1]'
NESTED = f"1-a/conversations/{B}"


def found(
    store: tuple[str, ...], workspace: tuple[str, ...] = (), agreed: tuple[str, ...] = ()
) -> list[tuple[Ailment, str, bool]]:
    sides = (stored(*store), here(*workspace))
    memory = agreed_on(*agreed) if agreed else None
    findings = diagnose(board_of(*sides, memory), plan_of(*sides, memory), *sides)
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
    ],
)
def test_by_what_is_there(
    store: tuple[str, ...], workspace: tuple[str, ...], expected: list[tuple[Ailment, str, bool]]
) -> None:
    agreed = tuple(line for line in (A, B) if line in store and workspace)
    assert [each for each in found(store, workspace, agreed) if each[0] is not Ailment.STALE] == expected


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
    findings = diagnose(board_of(store, here(A), agreed_on(A)), plan, store, here(A))
    assert [(finding.ailment, finding.place) for finding in findings] == [(Ailment.UNREADABLE, "store:.")]


def test_a_link_in_the_place_of_a_conversation() -> None:
    linked = "1-a -> /elsewhere"
    memory = agreed_on(A, '8-h  metadata 09:00 title "H"  stream 09:00 [1]')
    sides = (stored(A), here(linked, '8-h  metadata 09:00 title "H"  stream 09:00 [1]'))
    plan = plan_of(*sides, memory)
    found = {finding.place: finding for finding in diagnose(board_of(*sides, memory), plan, *sides)}["workspace:1-a"]
    assert (found.ailment, found.conversation) == (Ailment.UNREADABLE, "jp-c1")
    (message,) = (item.message for item in plan.held if item.conversation == "jp-c1")
    assert message.startswith("workspace:1-a: found a symbolic link, expected the directory that was there; ")
