"""What a run without changes goes by instead of planning: whether it is asked the same, and what the answer was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.index.summary import Answer, Asked

if TYPE_CHECKING:
    from reconcile.adapters.roots import Roots
    from reconcile.config import Settings
    from reconcile.model.plan import Plan
    from reconcile.model.policy import Policy


def asked_of(roots: Roots, rules: Policy | Settings, ignore: tuple[str, ...]) -> Asked:
    """Return all that a plain run's plan depends on besides both sides, the memory and git.

    ``rules`` are a policy's, or what makes one.
    """
    sides = (roots.format, roots.workspace, roots.project, roots.store, roots.workspace_identity, roots.workspace_id)
    chosen = (rules.layout.value, rules.stream.value, rules.diverged.value, rules.missing.value)
    return (*sides, roots.siblings, *chosen, ignore)


def is_ordinary(plan: Plan) -> bool:
    """Tell whether a plain run's plan says nothing but what conversations are like, whatever there is to do."""
    whole = [item for item in plan.held if item.conversation is None]
    return not whole and not plan.policy.git_busy and plan.policy.is_plain


def answer_of(plan: Plan) -> Answer:
    """Return what such a plan says, as plain values."""
    held, aside = (
        tuple(
            (each.conversation, each.title, each.unit, each.reason.name, each.message, each.resolve) for each in items
        )
        for items in (plan.held, plan.aside)
    )
    notes = tuple((each.conversation, each.unit, each.reason.name, each.message) for each in plan.notes)
    return Answer(plan.layout, plan.states, held, aside, notes, plan.quiet)


def plan_of(answer: Answer, policy: Policy, now_ns: int) -> Plan:
    """Return the plan that said so, made now."""
    from reconcile.model.plan import Item, Note, Plan
    from reconcile.model.reasons import Reason

    held, aside = (
        tuple(
            Item(conversation=who, title=title, unit=unit, reason=Reason[reason], message=message, resolve=resolve)
            for who, title, unit, reason, message, resolve in items
        )
        for items in (answer.held, answer.aside)
    )
    notes = tuple(
        Note(conversation=who, unit=unit, reason=Reason[reason], message=message)
        for who, unit, reason, message in answer.notes
    )
    return Plan(
        layout=answer.layout,
        held=held,
        aside=aside,
        notes=notes,
        states=answer.states,
        policy=policy,
        now_ns=now_ns,
        quiet=answer.quiet,
    )
