"""A plan about a part, completed by what was said of everything else."""

from __future__ import annotations

from reconcile.model.plan import Conflict, Item, Note, Plan, Rival
from reconcile.model.reasons import Reason
from reconcile.planning.incremental.scope import completed


def item(conversation: str, message: str = "before") -> Item:
    return Item(conversation=conversation, title=None, unit="stream", reason=Reason.BEHIND_ASIDE, message=message)


def note(conversation: str | None, message: str = "before") -> Note:
    return Note(conversation=conversation, reason=Reason.FOREIGN, message=message)


def conflict(conversation: str, case: int = 5) -> Conflict:
    versions = Rival(0), Rival(1)
    return Conflict(
        conversation=conversation,
        title=None,
        unit="stream",
        case=case,
        store=versions[0],
        workspace=versions[1],
        takes=None,
        reason=Reason.DIVERGED_HELD,
    )


BEFORE = Plan(
    layout="nested",
    held=(item("1"), item("2"), item("3")),
    aside=(item("4"),),
    conflicts=(conflict("1"), conflict("2")),
    notes=(note("2"), note(None)),
    counted={"1": "in-sync", "2": "in-sync", "3": "local", "4": "in-sync"},
)


def test_what_is_said_again_stays_where_it_was_said() -> None:
    part = Plan(layout="nested", held=(item("5", "now"), item("2", "now"), item("2", "now, too")))
    plan = completed(part, {"2", "3", "5"}, BEFORE)
    assert [(each.conversation, each.message) for each in plan.held] == [
        ("1", "before"),
        ("2", "now"),
        ("2", "now, too"),
        ("5", "now"),
    ]
    assert plan.aside == BEFORE.aside
    again = completed(Plan(layout="nested", conflicts=(conflict("2", 15),)), {"2"}, BEFORE)
    assert again.conflicts == (conflict("1"), conflict("2", 15))


def test_what_concerns_a_side_was_said_of_everything() -> None:
    part = Plan(layout="nested", notes=(note(None, "of the part"), note("2", "now")))
    assert completed(part, {"2"}, BEFORE).notes == (note("2", "now"), note(None))


def test_every_conversation_is_counted_once() -> None:
    plan = completed(Plan(layout="nested", counted={"2": "removed", "5": "in-sync"}), {"2", "3", "5"}, BEFORE)
    assert plan.counted == {"1": "in-sync", "2": "removed", "4": "in-sync", "5": "in-sync"}
    assert plan.states == (("in-sync", 3), ("removed", 1))


def test_a_plan_is_quiet_where_both_are() -> None:
    quiet, loud = Plan(layout="nested", quiet=True), Plan(layout="nested")
    assert [completed(one, (), other).quiet for one in (quiet, loud) for other in (quiet, loud)] == [
        True,
        False,
        False,
        False,
    ]
