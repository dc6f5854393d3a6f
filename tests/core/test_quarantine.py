"""What `doctor --quarantine` plans and refuses (formats/jp.md 6.6). The command is in fixtures/scenarios/commands."""

from __future__ import annotations

import pytest

from reconcile.core.edits import RefusedError
from reconcile.core.quarantine import plan_quarantine
from tests.support.building import agreed_on, board_of, here, stored

A = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
CHILD = '1-a/conversations/2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1]'
BROKEN = '1-a/events.json 10:00 "[{"'


def targets(store: tuple[str, ...], workspace: tuple[str, ...]) -> list[str]:
    plan = plan_quarantine(board_of(stored(*store), here(*workspace), agreed_on(A)), ["jp-c1"])
    return [f"{action.kind} {action.target}" for action in plan.actions]


def test_what_is_broken_moves_away_on_either_side() -> None:
    assert targets((A,), (A, BROKEN)) == ["project workspace:1-a/TRASHED.md", "move workspace:.trash/1-a"]
    assert targets((A, BROKEN), (A,)) == ["copy store:1-a/TRASHED.md", "move store:.trash/1-a"]


def test_names_in_the_trash_are_counted() -> None:
    taken = ('.trash/1-a  metadata 09:00 title "A"', '.trash/1-a-1  metadata 09:00 title "A"')
    assert targets((A,), (A, BROKEN, *taken))[1] == "move workspace:.trash/1-a-2"


def test_what_is_sound_or_holds_others_stays() -> None:
    with pytest.raises(RefusedError, match="nothing of it is broken"):
        targets((A,), (A,))
    with pytest.raises(RefusedError, match="jp-c2 would be carried along"):
        targets((A,), (A, CHILD, BROKEN))
