"""What a plan says, to be compared with another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

if TYPE_CHECKING:
    from reconcile.model.plan import Plan


def said(plan: Plan) -> object:
    """Return what a plan says, in an order of its own."""
    bare = replace(plan, actions=(), held=(), aside=(), notes=(), outline=(), places=(), now_ns=0, quiet=False)
    return (
        [str(replace(action, id="", needs=())) for action in plan.actions],
        sorted(map(str, plan.held)),
        sorted(map(str, plan.aside)),
        sorted(map(str, plan.notes)),
        dict(plan.counted),
        (bare.states, bare.layout),
    )
