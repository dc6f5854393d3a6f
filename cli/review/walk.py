"""A walk as its views see it: a plan, its subjects, and what reads, plans and opens; and the end of a walk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from reconcile.model.snapshot import WHOLE

from ..output.summary import summary
from ..output.text import Style
from .decisions import words_of
from .subjects import Choice

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from reconcile.model.plan import Plan

    from .decisions import Decisions
    from .details import Reading
    from .subjects import Subject


def _record_nothing(_plan: Plan) -> None:
    """Record nothing: the plan has no decisions of its own, or nothing is carried out."""


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
    confirmed: Callable[[Plan], None] = _record_nothing
    """Records the decisions of a plan at the moment at which the person says yes."""

    @property
    def decides(self) -> bool:
        """Whether the plan is one of a run, of which a person decides the conflicts."""
        return any(each.allowed is None for each in self.subjects)


class Result(Struct, frozen=True):
    """The end of a walk: the plan that the decisions make; None: the person has quit."""

    plan: Plan | None = None
    titles: Mapping[str, str] = field(default_factory=dict)
    """The titles that the decisions have chosen, by conversation."""


def summary_text(noun: str, plan: Plan, *, is_public: bool = True) -> str:
    """Return a plan in one sentence."""
    return " ".join(summary(plan, Style(colored=False), noun=noun, is_public=is_public))


def sentences(walk: Walk, decisions: Decisions, plan: Plan) -> list[str]:
    """Return what the question at the end says: the decisions, the plan that they make, and what it leaves out."""
    counts = decisions.tally(walk.subjects)
    skipped, held = counts.pop(Choice.SKIP, 0), counts.pop(Choice.HOLD, 0)
    words = words_of(counts)
    text = [f"Your decisions: {words}."] if words else []
    changes = plan.actions or plan.asides or plan.intents
    text.append(walk.summary(replace(plan, held=(), aside=())) if changes else "Nothing would change.")
    left = decisions.counts(walk.subjects).left
    units_skipped = sum(choice is Choice.SKIP and unit != WHOLE for (_, unit), choice in decisions.chosen.items())
    blocked = len(plan.held) - left - units_skipped
    alone = len({each.conversation for each in plan.aside} - decisions.on_hold)
    named = ((left, "undecided"), (skipped, "skipped"), (held, "on hold"), (blocked, "blocked"), (alone, "left alone"))
    parts = [f"{count} {word}" for count, word in named if count > 0]
    if parts:
        text.append(f"Not in this run: {', '.join(parts)}.")
    open_words = " and ".join(word for count, word in named[:2] if count)
    if open_words and walk.decides:
        text.append(f"The next plain run decides what is {open_words}: it takes the newer side, unless you hold it.")
    if walk.decides and held:
        text.append("If this is killed before `reconcile log` lists it, nothing is on hold.")
    return text
