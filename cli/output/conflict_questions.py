"""Questions about conflicts, one after the other, at a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from reconcile.model.options import Prefer, Take
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import STREAM
from reconcile.planning.conflicts import described, newer_side

from .interaction import wrapped_question
from .screen import wrap
from .text import terminal_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from reconcile.model.plan import Conflict
    from reconcile.model.policy import Policy

NEWEST, SKIP, DIFFERENCE, ALL = "n", "k", "d", "a"
_SIDES = {"s": Take.STORE, "w": Take.WORKSPACE, "b": Take.BOTH, SKIP: Take.KEEP}


def ask_about_conflicts(policy: Policy, conflicts: Iterable[Conflict], differences: Callable[[str], None]) -> Policy:
    """Ask which version of each conflict to take, and return the policy with the answers.

    ``differences`` prints what differs between the sides of a conversation.
    """
    choices = dict(policy.choices)
    for_all: str | None = None
    for conflict in conflicts:
        answer = for_all
        while answer is None:
            answer = _ask(conflict, differences)
            if answer == ALL:
                answer = for_all = _prompt("  For this one and all that follow", "nswbk", NEWEST)
        if answer == "b" and conflict.unit != STREAM:
            answer = NEWEST  # only events can continue as a child
        if answer == NEWEST and conflict.takes is None:
            choices[conflict.conversation, conflict.unit] = Take(newer_side(conflict).value)
        elif answer != NEWEST:
            choices[conflict.conversation, conflict.unit] = _SIDES[answer]
    return replace(policy, choices=choices)


def _ask(conflict: Conflict, differences: Callable[[str], None]) -> str | None:
    """Return the answer about one conflict; None if it is to be asked again."""
    click.echo(f"\n{wrapped_question(f'{conflict.title or conflict.conversation}: {described(conflict)}')}")
    both = "[b]oth, " if conflict.unit == STREAM else ""
    question = (
        f"  Take the [n]ewest (the {newer_side(conflict)}'s), the [s]tore's, the [w]orkspace's, {both}"
        "s[k]ip it, show the [d]ifference, or answer for [a]ll"
    )
    blocked = conflict.takes is None
    answer = _prompt(question, "nswbkda" if both else "nswkda", SKIP if blocked else NEWEST)
    if answer == DIFFERENCE:
        differences(conflict.conversation)
        return None
    return answer


def _prompt(question: str, letters: str, default: str) -> str:
    lines = "\n".join(wrap(question.strip(), terminal_columns() - len(" [n]: skip"), "  "))
    answer: str = click.prompt(lines, type=click.Choice([*letters]), default=default, show_choices=False)
    return answer


def is_undecided(conflict: Conflict, policy: Policy) -> bool:
    """Tell whether a person may decide a conflict: it isn't decided yet by an option or an answer."""
    is_open = conflict.takes is not None or conflict.reason is Reason.CONFLICT_HELD
    return is_open and policy.prefer is Prefer.NEWEST and (conflict.conversation, conflict.unit) not in policy.choices
