"""Records with fixed places that are removed: with what belongs to them, and not while they are open."""

from __future__ import annotations

import pytest

from reconcile.model.baseline import Baseline
from reconcile.model.plan import Kind
from reconcile.model.policy import Policy, RemoveRequest
from reconcile.model.snapshot import Side
from reconcile.planning.context import RefusedError
from reconcile.planning.planner import make_plan
from tests.support.formats.notes import BRANCHING, side

FILES = {"a.md": b"one\n", "a.md.1.md": b"yes\n", "b.md": b"two\n"}
REMOVAL = Policy(request=RemoveRequest(("a.md",)))


def test_what_belongs_to_a_record_is_removed_with_it() -> None:
    plan = make_plan(side(Side.STORE, FILES), side(Side.WORKSPACE, FILES), Baseline(), REMOVAL, BRANCHING, 0)
    removed = [str(action.target) for action in plan.actions if action.kind in (Kind.REMOVE, Kind.REMOVE_STALE)]
    assert sorted(removed) == ["store:a.md", "store:a.md.1.md", "workspace:a.md", "workspace:a.md.1.md"]


def test_what_a_process_has_open_is_not_removed() -> None:
    sides = side(Side.STORE, FILES), side(Side.WORKSPACE, FILES, busy=True)
    with pytest.raises(RefusedError) as refused:
        make_plan(*sides, Baseline(), REMOVAL, BRANCHING, 0)
    assert str(refused.value) == "an editor has it open: one (a.md)"
    assert refused.value.hints == ("end the session, then repeat the command",)
