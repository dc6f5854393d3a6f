"""Which conversations others have written of since the last pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reconcile.engine.engine import ConcurrentWrites
from reconcile.state.database import BaselineUpdate, State

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

A, B, C = "jp-c1", "jp-c2", "jp-c3"


@pytest.fixture
def states(tmp_path: Path) -> Iterator[tuple[State, State]]:
    """Two processes' connections to one state, with a checkout each: 1 and 2."""
    with State.open(str(tmp_path)) as mine, State.open(str(tmp_path)) as theirs:
        for number, state in enumerate((mine, theirs), 1):
            assert state.checkout(f"/{number}", "1:1", 0) == number
        yield mine, theirs


def noted(*conversations: str, parent: str | None = None) -> BaselineUpdate:
    return BaselineUpdate(parents=dict.fromkeys(conversations, parent))


def test_what_others_wrote_is_told_once(states: tuple[State, State]) -> None:
    mine, theirs = states
    others = ConcurrentWrites(mine, 1, most=2)
    theirs.save_update(2, noted(A))
    others.begin()
    assert others.changed() == frozenset()
    others.end()
    theirs.save_update(2, noted(B))
    theirs.save_update(2, noted(C))
    theirs.set_meta("what", "is said of no conversation")
    assert others.changed() == frozenset([B, C])
    others.end()
    assert others.changed() == frozenset()


def test_own_writes_are_none_of_others(states: tuple[State, State]) -> None:
    mine, theirs = states
    others = ConcurrentWrites(mine, 1, most=2)
    others.begin()
    mine.save_update(1, noted(A))
    others.end()
    theirs.save_update(2, noted(B))
    assert others.changed() == frozenset([B])


def test_what_is_written_in_the_middle_of_a_pass_is_told_with_its_own(states: tuple[State, State]) -> None:
    mine, theirs = states
    others = ConcurrentWrites(mine, 1, most=2)
    others.begin()
    mine.save_update(1, noted(A))
    theirs.save_update(2, noted(B))
    others.end()
    assert others.changed() == frozenset([A, B])


def test_the_same_once_more_is_no_change(states: tuple[State, State]) -> None:
    mine, theirs = states
    theirs.save_update(2, noted(A))
    others = ConcurrentWrites(mine, 1, most=2)
    others.begin()
    theirs.save_update(2, noted(A))
    assert others.changed() == frozenset()
    theirs.save_update(2, noted(A, parent=B))
    assert others.changed() == frozenset([A])


def test_too_many_are_not_told_one_by_one(states: tuple[State, State]) -> None:
    mine, theirs = states
    others = ConcurrentWrites(mine, 1, most=2)
    others.begin()
    theirs.save_update(2, noted(A, B, C))
    assert others.changed() is None


def test_who_is_at_work_in_this_checkout_may_have_changed_anything(states: tuple[State, State]) -> None:
    mine, theirs = states
    others = ConcurrentWrites(mine, 1, most=2)
    others.begin()
    theirs.journal.begin_run(2, "reconcile", 0)
    assert others.changed() == frozenset()
    theirs.journal.begin_run(1, "reconcile", 0)
    assert others.changed() is None
    others.begin()
    theirs.save_update(1, BaselineUpdate(layout="flat"))
    assert others.changed() is None
    others.begin()
    theirs.forget_checkout(1)
    assert others.changed() is None
