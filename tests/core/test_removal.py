"""What a removal waits for (DESIGN.md 6): everything in the directory has been saved."""

from __future__ import annotations

from reconcile.core.plan import Kind
from reconcile.core.policy import Policy
from reconcile.core.requests import Localize
from tests.support.building import agreed_on, here, plan_of, stored

A = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
B = '2-b  metadata 09:00 title "B" parent 1  stream 09:00 [1]'
NESTED_B = f"1-a/conversations/{B}"


def test_a_directory_goes_after_all_that_was_in_it_is_saved() -> None:
    workspace = here(A.replace("[1]", "[1 2]"), NESTED_B.replace("[1]", "[1 2 3]"))
    policy = Policy(request=Localize(("jp-c1",)))
    plan = plan_of(stored(A, B), workspace, agreed_on(A, NESTED_B), policy)
    saved = {action.conversation: action.id for action in plan.actions if action.kind is Kind.COPY}
    gone = {action.conversation: action for action in plan.actions if action.kind is Kind.REMOVE_STALE}
    assert saved.keys() == gone.keys() == {"jp-c1", "jp-c2"}
    assert saved["jp-c2"] in gone["jp-c2"].needs
    assert {saved["jp-c1"], saved["jp-c2"], gone["jp-c2"].id} <= set(gone["jp-c1"].needs)
