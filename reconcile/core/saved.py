"""A saved plan against the present: what of it still is what the planner would do."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reconcile.core.plan import Action, Plan

from reconcile.core.withholding import renumbered, withheld


def agreeing(saved: Plan, fresh: Plan) -> tuple[Plan, dict[str, Action]]:
    """Return what both plans have in common, and by its action ids the saved actions that it carries out.

    ``fresh`` was made now, as it was asked for when ``saved`` was made. A conversation of which one action isn't in
    it any more has drifted, and is refused with everything that needs it. Only actions of ``fresh`` are ever carried
    out, so that a plan file can ask for nothing that isn't right now.
    """
    wanted = {_meaning(action): action for action in saved.actions}
    found = {_meaning(action) for action in fresh.actions}
    drifted = {action.conversation for meaning, action in wanted.items() if meaning not in found}
    leaves = {action.id for action in fresh.actions if _meaning(action) not in wanted or action.conversation in drifted}
    leaves = withheld(fresh.actions, leaves)
    partly = {action.conversation for action in fresh.actions if action.id in leaves}
    kept = renumbered(action for action in fresh.actions if action.id not in leaves)
    changes = replace(
        fresh,
        actions=kept,
        quiet=False,
        remembered=tuple(each for each in fresh.remembered if each[0] not in drifted | partly),
    )
    return changes, {action.id: wanted[_meaning(action)] for action in kept}


def _meaning(action: Action) -> Action:
    """The action without what depends on the plan that it is in."""
    return replace(action, id="", needs=(), touches=())
