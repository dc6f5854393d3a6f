"""Checks of everything: a process that stays goes on from the saved index, and finds what no event tells of."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

import pytest

from reconcile.engine.engine import Engine
from reconcile.engine.session import Session
from reconcile.index.on_disk import IndexChangedError
from reconcile.model.plan import Kind
from reconcile.model.snapshot import Side
from tests.support.projects.changing_sides import FIRST, LATER, POLICY, Watched, planned, watched
from tests.support.projects.world import append

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from reconcile.engine.engine import Changes, Pass

NAMES = [f"{FIRST + number}-it" for number in range(10)]
IDS = [f"jp-c{FIRST + number}" for number in range(10)]


@pytest.fixture
def it(tmp_path: Path) -> Iterator[Watched]:
    made = watched(tmp_path, 10)
    time.sleep(0.05)  # a file that was written a moment ago has no row
    check(made.engine)
    end(made)
    begin(made)
    yield made
    end(made)


def end(it: Watched) -> None:
    if it.engine.has_unsaved:
        it.engine.save_for_next(POLICY)
    it.engine.close()
    it.engine.session.close()


def begin(it: Watched) -> None:
    it.engine = Engine(Session(it.roots, it.engine.session.directory, stays=True))


def check(engine: Engine, changes: Changes | None = None) -> Pass:
    """Make a pass that finds the changes itself, and go on from what it has saved."""
    engine.check(POLICY, changes or {})
    found = engine.plan(POLICY, also=engine.noteworthy)
    engine.settle(found, engine.apply(found, "watch", is_saved=True))
    engine.resume(POLICY)
    return found


def kinds(found: Pass) -> list[Kind]:
    return [action.kind for action in found.plan.actions]


def loaded(engine: Engine) -> list[str]:
    return [path for side in engine.known.sides.values() for path in side.loaded_paths()]


def test_a_new_process_finds_what_has_changed_while_none_was_there(it: Watched) -> None:
    append(it.store / NAMES[5], 1, "b", LATER)
    append(it.workspace / NAMES[6], 1, "b", LATER)
    found = check(it.engine)
    assert (found.full, sorted(kinds(found))) == (False, [Kind.COPY, Kind.PROJECT])
    assert found.conversations == {IDS[5], IDS[6]}


def test_a_check_that_finds_nothing_holds_few_copies_and_writes_nothing(it: Watched) -> None:
    before = {path: path.stat() for path in (it.store.parent.parent / "state").iterdir()}
    assert not check(it.engine).conversations
    assert len(loaded(it.engine)) <= 2, "one of each side tells that there are any"
    assert {path: path.stat() for path in before} == before


def test_a_check_finds_what_no_event_tells_of(it: Watched) -> None:
    check(it.engine)
    for number in range(2):
        append(it.store / NAMES[5 + number], 1, "b", LATER)
        found = check(it.engine)
        assert (found.full, kinds(found), found.conversations) == (False, [Kind.PROJECT], frozenset({IDS[5 + number]}))
        assert check(it.engine).plan.quiet


def test_passes_between_two_checks_are_saved_for_the_next_process(it: Watched) -> None:
    check(it.engine)
    for number in (5, 6):
        append(it.store / NAMES[number], 1, "b", LATER)
        it.engine.apply(planned(it.engine, POLICY, {Side.STORE: {NAMES[number]}}), "watch")
    assert it.engine.has_unsaved
    time.sleep(0.05)
    end(it)
    begin(it)
    found = check(it.engine)
    assert (found.full, found.plan.quiet) == (False, True)
    assert it.engine.index is not None
    assert dict(it.engine.index.before.states) == {"in-sync": 10}


def test_what_a_check_leaves_undone_is_due_in_the_next_one(it: Watched) -> None:
    append(it.store / NAMES[5], 1, "b", LATER)
    it.engine.check(POLICY, {})
    found = it.engine.plan(POLICY, moving=frozenset({IDS[5]}), also=it.engine.noteworthy)
    it.engine.settle(found, it.engine.apply(found, "watch", is_saved=True))
    it.engine.resume(POLICY)
    end(it)
    begin(it)
    assert kinds(check(it.engine)) == [Kind.PROJECT]


def test_where_the_store_lacks_something_that_a_run_knew_a_check_reads_everything(it: Watched) -> None:
    """Only the whole store tells whether it is lost, or moving elsewhere."""
    shutil.rmtree(it.store / NAMES[5])
    it.engine.check(POLICY, {})
    found = it.engine.plan(POLICY, moving=frozenset({IDS[5]}), also=it.engine.noteworthy)
    assert found.full
    it.engine.settle(found, it.engine.apply(found, "watch", is_saved=True))
    it.engine.resume(POLICY)
    for _ in range(2):
        it.engine.check(POLICY, {})
        assert it.engine.full_scan is not None
        end(it)
        begin(it)


def test_another_process_has_written_the_state_since(it: Watched) -> None:
    with Session(it.roots, it.engine.session.directory) as session:
        other = Engine(session)
        append(it.store / NAMES[6], 1, "b", LATER)
        other.apply(planned(other, POLICY), "reconcile")
    assert check(it.engine).full
    assert not check(it.engine).full


def test_another_process_writes_between_the_save_and_the_load(it: Watched) -> None:
    append(it.store / NAMES[5], 1, "b", LATER)
    it.engine.check(POLICY, {})
    found = it.engine.plan(POLICY, also=it.engine.noteworthy)
    it.engine.settle(found, it.engine.apply(found, "watch", is_saved=True))
    with Session(it.roots, it.engine.session.directory) as session:
        other = Engine(session)
        append(it.store / NAMES[7], 1, "b", LATER)
        other.apply(planned(other, POLICY), "reconcile")
    it.engine.resume(POLICY)
    found = planned(it.engine, POLICY, {Side.STORE: {NAMES[7]}})
    assert (found.full, found.plan.quiet) == (True, True)


def test_a_file_of_the_index_that_is_written_into_counts_as_none(it: Watched) -> None:
    check(it.engine)
    (path,) = (each for each in (it.store.parent.parent / "state").iterdir() if each.name.startswith("index-"))
    with path.open("r+b") as file:
        file.truncate(100)
    append(it.store / NAMES[5], 1, "b", LATER)
    with pytest.raises(IndexChangedError):
        check(it.engine)
    it.engine.forget()
    found = check(it.engine)
    assert (found.full, kinds(found)) == (True, [Kind.PROJECT])
    assert not check(it.engine).full
