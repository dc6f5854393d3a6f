"""A record of which every file is replaced by others: between two steps it has none, and it still belongs there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from reconcile.fs.hashing import digest
from reconcile.model.baseline import Baseline, BaselineEntry, Intent, IntentKind
from reconcile.model.plan import Kind
from reconcile.model.policy import Policy
from reconcile.model.snapshot import Copy, File, Partition, Side, Snapshot
from reconcile.planning.planner import make_plan
from tests.planning.test_records_in_two_shapes import NOW, RULES

if TYPE_CHECKING:
    from reconcile.model.plan import Plan

THREAD, OTHER = "threads/thread-a", "threads/thread-b"


def side(which: Side, *names: str) -> Snapshot:
    """Return a side with a thread that has these files; each has its name as content. Another one stays as it is."""
    copies = [
        Copy(
            which,
            record,
            record,
            Partition.LIVE,
            None,
            tuple(File(name, len(name), 1, digest(name.encode())) for name in sorted(files)),
            None,
            None,
        )
        for record, files in ((THREAD, names), (OTHER, ("notes",)))
    ]
    return Snapshot(which, exists=True, identity="1:1", copies=tuple(copies))


def remembered(*names: str) -> Baseline:
    agreed = {
        record: BaselineEntry({f"extra:{name}": digest(name.encode()) for name in files}, None, None, None, record)
        for record, files in ((THREAD, names), (OTHER, ("notes",)))
    }
    return Baseline(agreed=agreed, store_identity="1:1")


def planned(old: tuple[str, ...], new: tuple[str, ...], *, newer: Side, is_of_remote: bool = False) -> Plan:
    """Return the plan if one side has replaced the files that both had."""
    baseline = replace(remembered(*old), is_of_remote=is_of_remote)
    store, here = (side(each, *(new if each is newer else old)) for each in (Side.STORE, Side.WORKSPACE))
    return make_plan(store, here, baseline, Policy(), RULES, NOW)


def steps(plan: Plan) -> list[tuple[Kind, str, int]]:
    """Return each step, with the number of those that it waits for."""
    return [(action.kind, action.unit.removeprefix("extra:"), len(action.needs)) for action in plan.actions]


@pytest.mark.parametrize(
    ("old", "new"), [(("notes",), ("notes/a",)), (("notes/a", "notes/b"), ("notes",)), (("notes",), ("notes/a", "y"))]
)
def test_a_record_that_is_replaced_as_a_whole_still_belongs_there(old: tuple[str, ...], new: tuple[str, ...]) -> None:
    come = [(name, len(old) if name != "y" else 0) for name in new]
    plan = planned(old, new, newer=Side.WORKSPACE)
    assert plan.tombstones == ((THREAD, tuple(sorted(digest(name.encode()) for name in old))),)
    assert not plan.intents
    assert steps(plan) == [(Kind.REMOVE, name, 0) for name in old] + [(Kind.COPY, *each) for each in come]
    plan = planned(old, new, newer=Side.STORE)
    assert plan.intents == ((THREAD, Intent(IntentKind.PROJECTED)),)
    assert not plan.tombstones
    there = [(Kind.REMOVE_STALE, name, 0) for name in old] + [(Kind.PROJECT, *each) for each in come]
    assert steps(plan) == there
    plan = planned(old, new, newer=Side.STORE, is_of_remote=True)
    assert steps(plan) == there
    assert not plan.intents
    assert not plan.tombstones


@pytest.mark.parametrize("newer", [Side.STORE, Side.WORKSPACE])
def test_a_record_of_which_a_file_stays_needs_no_note(newer: Side) -> None:
    plan = planned(("notes", "x"), ("notes/a", "x"), newer=newer)
    assert [name for _, name, _ in steps(plan)] == ["notes", "notes/a"]
    assert not plan.intents
    assert not plan.tombstones
