"""The metadata that was agreed on is remembered with its bytes, so that later edits of both sides can be merged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from unittest import mock

from reconcile.fs.hashing import digest
from reconcile.model.baseline import Baseline
from reconcile.model.plan import Plan
from reconcile.model.snapshot import Side
from reconcile.planning import baseline_update as updating
from reconcile.planning.baseline_update import LARGEST_KEPT, Changes, update_baseline
from tests.support.formats import notes
from tests.support.scenarios.building import agreed_on, here, plan_of, stored
from tests.support.scenarios.notation import written
from tests.support.scenarios.pure_level import RULES

if TYPE_CHECKING:
    from reconcile.model.snapshot import Snapshot

OLD = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
NEW = '1-a  metadata 09:30 title "B"  stream 09:00 [1]'
PLAN = Plan(layout="nested")


def content(title: str) -> bytes:
    return written({"title": title, "last_activated_at": "2025-01-01 00:00:00.0"})


def folded(store: Snapshot, workspace: Snapshot, baseline: Baseline, plan: Plan = PLAN) -> Changes:
    changes = update_baseline(store, workspace, baseline, plan, RULES)
    with mock.patch.object(updating, "adoption", return_value=None):
        slowly = update_baseline(store, workspace, baseline, plan, RULES)
    assert slowly.contents == changes.contents
    return changes


def kept(title: str) -> dict[tuple[str, str], bytes]:
    return {("jp-c1", digest(content(title))): content(title)}


def test_what_both_sides_hold_equal_is_kept() -> None:
    assert folded(stored(OLD), here(OLD), Baseline()).contents == kept("A")
    assert folded(stored(NEW), here(NEW), agreed_on(OLD)).contents == kept("B")


def test_what_is_agreed_on_already_is_not_kept_again() -> None:
    longer = OLD.replace("[1]", "[1 2]")
    changes = folded(stored(longer), here(longer), agreed_on(OLD))
    assert changes.agreed
    assert not changes.contents


def test_what_differs_is_not_kept() -> None:
    assert not folded(stored(OLD), here(NEW), Baseline()).contents
    assert not folded(stored(OLD), here("1-a  stream 09:00 [1]"), Baseline()).contents


def test_what_the_run_has_written_is_kept_whatever_the_other_side_has_by_now() -> None:
    baseline = agreed_on(OLD)
    plan = plan_of(stored(NEW), here(OLD), baseline)
    later = NEW.replace('"B"', '"C"')
    assert folded(stored(later), here(NEW), baseline, plan).contents == kept("B")
    saved = plan_of(stored(OLD), here(NEW), baseline)
    copy = json.dumps(content("B").decode())
    for lines in ([later], [later, f"1-a/NOTE.md  10:00 {copy}"]):
        assert folded(stored(NEW), here(*lines), baseline, saved).contents == kept("B")
    assert not folded(stored(NEW), here(NEW, '1-a/metadata.json  10:00 "{"'), baseline, saved).contents


def test_after_an_undo_the_metadata_of_the_restored_entry_is_kept_again() -> None:
    plan = plan_of(stored(NEW), here(OLD), agreed_on(OLD))
    assert folded(stored(OLD), here(OLD), agreed_on(OLD), plan).contents == kept("A")


def test_metadata_that_is_large_is_not_kept() -> None:
    large = f'1-a  metadata 09:00 title "{"a" * LARGEST_KEPT}"  stream 09:00 [1]'
    changes = folded(stored(large), here(large), Baseline())
    assert changes.agreed
    assert not changes.contents
    longest = "a" * (LARGEST_KEPT - len(content("")))
    limit = f'1-a  metadata 09:00 title "{longest}"  stream 09:00 [1]'
    assert folded(stored(limit), here(limit), Baseline()).contents == kept(longest)


def test_records_have_a_merge_of_their_own() -> None:
    record = {"shopping.md": b"bread\n"}
    sides = notes.side(Side.STORE, record), notes.side(Side.WORKSPACE, record)
    changes = update_baseline(*sides, Baseline(), PLAN, notes.RULES)
    assert changes.agreed["shopping.md"]
    assert not changes.contents
