"""Commands that are asked again, by a saved plan, for what is gone by now. What they do is in fixtures/scenarios."""

from __future__ import annotations

import pytest

from reconcile.core.edits import RefusedError
from reconcile.core.plan import Kind
from reconcile.core.policy import Policy
from reconcile.core.requests import Children, Localize, Project, Remove, Reparent
from tests.support.building import agreed_on, here, plan_of, stored

ONE = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
NEWER = ONE.replace("[1]", "[1 2]")


@pytest.mark.parametrize("request_", [Localize(("jp-c9",)), Project(("jp-c9",)), Remove(("jp-c9",), Children.CASCADE)])
def test_nothing_is_done_for_what_is_gone(request_: Localize | Project | Remove) -> None:
    plan = plan_of(stored(ONE), here(NEWER), agreed_on(ONE), Policy(request=request_))
    assert (plan.actions, plan.intents, plan.held) == ((), (), ())


def test_the_others_are_dealt_with() -> None:
    request = Remove(("jp-c9", "jp-c1"), Children.CASCADE)
    plan = plan_of(stored(ONE), here(ONE), agreed_on(ONE), Policy(request=request))
    assert [(action.kind, action.conversation) for action in plan.actions] == [
        (Kind.REMOVE, "jp-c1"),
        (Kind.REMOVE_STALE, "jp-c1"),
    ]


@pytest.mark.parametrize("request_", [Reparent("jp-c9", None), Reparent("jp-c1", "jp-c9")])
def test_a_parent_or_child_that_is_gone_is_refused(request_: Reparent) -> None:
    with pytest.raises(RefusedError, match="jp-c9 is on neither side any more"):
        plan_of(stored(ONE), here(ONE), agreed_on(ONE), Policy(request=request_))
