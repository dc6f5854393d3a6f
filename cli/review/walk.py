"""A walk as its views see it: a plan, its subjects, and what reads, plans and opens; and the end of a walk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.model.snapshot import WHOLE

from ..output.summary import summary
from ..output.text import Style
from .subjects import Choice

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reconcile.model.plan import Plan

    from .decisions import Decisions
    from .details import Reading
    from .subjects import Subject


class Walk(Struct, frozen=True):
    """A plan to walk through. ``read`` reads both versions of a conversation, ``plan_for`` plans with the decisions.

    ``summary`` returns a plan in one sentence. ``opened`` starts an editor (or a difftool) with both versions, and
    returns a message. ``apply_words``: what the key ``a`` does; empty: the walk only shows.
    """

    plan: Plan
    subjects: Sequence[Subject]
    heading: str
    read: Callable[[str], Reading]
    plan_for: Callable[[Decisions], Plan]
    summary: Callable[[Plan], str]
    opened: Callable[[str, bool], str]
    apply_words: str = "apply"


class Result(Struct, frozen=True):
    """The end of a walk: the plan that the decisions make; None: the person has quit."""

    plan: Plan | None = None


def summary_text(noun: str, plan: Plan) -> str:
    """Return a plan in one sentence."""
    return " ".join(summary(plan, Style(colored=False), noun=noun))


def sentences(walk: Walk, decisions: Decisions, plan: Plan) -> list[str]:
    """Return what the question at the end says: the decisions, the plan that they make, and what stays blocked."""
    words = decisions.words(walk.subjects)
    text = [f"Your decisions: {words}."] if words else []
    text.append(walk.summary(plan))
    left = decisions.counts(walk.subjects).left
    skipped = sum(choice is Choice.SKIP and unit != WHOLE for (_, unit), choice in decisions.chosen.items())
    broken = len(plan.held) - left - skipped
    named = ((left, "undecided"), (skipped, "skipped"), (broken, "to repair"))
    parts = [f"{count} {word}" for count, word in named if count > 0]
    if plan.held:
        text.append(f"Blocked: {', '.join(parts)}.")
    if left:
        text.append("The next plain run takes the newer side of an undecided conflict, unless you hold it.")
    if not (plan.actions or plan.asides or plan.intents):
        text.append("Nothing would change.")
    return text
