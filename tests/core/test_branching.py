"""What `fork` plans and refuses (DESIGN.md 8). The command is in fixtures/scenarios/commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reconcile.core.branching import plan_branch
from reconcile.core.edits import RefusedError
from reconcile.core.format import Part
from reconcile.core.policy import Layout, Policy
from reconcile.core.requests import Branch
from tests.support.building import agreed_on, board_of, here, stored

if TYPE_CHECKING:
    from reconcile.core.plan import Plan

A = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
FILES = {
    "metadata.json": b'{"title": "A", "last_activated_at": "2026-01-31 12:00:00.0"}',
    "base_config.json": b"{}",
    "events.json": b'[{"timestamp": "2026-01-31 12:00:00.0", "type": "chat_request"}]',
}


def fork(
    request: Branch, *, workspace: tuple[str, ...] = (A,), store: tuple[str, ...] = (A,), flat: bool = False
) -> Plan:
    policy = Policy(layout=Layout.FLAT if flat else Layout.NESTED)
    board = board_of(stored(*store), here(*workspace), agreed_on(*store), policy)
    return plan_branch(board, request, FILES)


def targets(plan: Plan) -> list[str]:
    return [
        str(action.target).replace(plan.actions[0].conversation.removeprefix("jp-c"), "N") for action in plan.actions
    ]


WHOLE = Branch("jp-c1", Part())


def test_where_a_fork_is_made() -> None:
    assert targets(fork(WHOLE)) == ["store:N-a", "workspace:1-a/conversations/N-a"]
    assert targets(fork(WHOLE, flat=True)) == ["store:N-a", "workspace:N-a"]
    assert targets(fork(WHOLE, workspace=())) == ["store:N-a"]
    broken = (A, '1-a/events.json 10:00 "[{"')
    assert targets(fork(WHOLE, workspace=broken)) == ["store:N-a"]
    local = fork(Branch("jp-c1", Part(), "T", local=True))
    assert targets(local) == ["store:N-t"]
    assert [intent.kind for _, intent in local.intents if intent] == ["local"]


def test_a_source_that_is_not_whole_is_refused() -> None:
    with pytest.raises(RefusedError, match="isn't whole in the store"):
        fork(WHOLE, store=(A, '1-a/metadata.json 10:00 "{"'))
    with pytest.raises(RefusedError, match="isn't whole in the store"):
        plan_branch(board_of(stored(A), here(A), agreed_on(A)), WHOLE, {})


def test_events_that_cannot_be_cut_are_refused() -> None:
    files = {**FILES, "events.json": b"[" + b"1" * 5000 + b"]"}
    with pytest.raises(RefusedError, match="can't be filtered"):
        plan_branch(board_of(stored(A), here(A), agreed_on(A)), Branch("jp-c1", Part(last=1)), files)
