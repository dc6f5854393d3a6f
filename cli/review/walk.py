"""A walk as its views see it: a plan, its subjects, and what reads, plans and opens; and the end of a walk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

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
