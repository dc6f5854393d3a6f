"""Questions about conflicts, one after the other, at a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from reconcile.model.options import Diverged, Prefer, Take
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import STREAM
from reconcile.planning.conflicts import choices, described, newer_side, taken

from .conflict_text import value_lines
from .interaction import SKIP, ask_for_key
from .screen import wrap
from .text import Style, terminal_columns, title_and_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from reconcile.model.plan import Conflict
    from reconcile.model.policy import Policy

    from ..arguments import Options

NEWEST, DIFFERENCE, ALL = "n", "d", "a"
_SIDES = {"s": Take.STORE, "w": Take.WORKSPACE, "b": Take.BOTH, SKIP: Take.KEEP}
_ANSWERS = {NEWEST: "newest", "s": "store", "w": "workspace", "b": "both", SKIP: "skip"}
_MEANINGS = {
    NEWEST: "take the newest version",
    "s": "take the store's version",
    "w": "take the workspace's version",
    "b": "keep both: the older one becomes a child conversation",
    SKIP: "leave it, and decide later",
    DIFFERENCE: "show the difference, and ask again",
    ALL: "give one answer for this conflict and all that follow",
}
_MORE = {DIFFERENCE: "difference", ALL: "all"}


def ask_about_conflicts(
    options: Options, policy: Policy, conflicts: Iterable[Conflict], differences: Callable[[str], None]
) -> Policy:
    """Ask which version of each conflict to take, and return the policy with the answers. ``q`` ends the command.

    ``differences`` prints what differs between the sides of a conversation.
    """
    chosen = dict(policy.choices)
    for_all: str | None = None
    for conflict in conflicts:
        answer = for_all or _ask(options, conflict, policy, differences)
        if answer == ALL:
            question = "For this one and all that follow: [n]ewest, [s]tore, [w]orkspace, [b]oth, s[k]ip, or [q]uit"
            answer = for_all = ask_for_key(options, question, _ANSWERS, NEWEST, _MEANINGS)
        if answer == "b" and conflict.unit != STREAM:
            answer = NEWEST  # only events can continue as a child
        if answer == NEWEST and conflict.takes is None:
            chosen[conflict.conversation, conflict.unit] = Take(newer_side(conflict).value)
        elif answer != NEWEST:
            chosen[conflict.conversation, conflict.unit] = _SIDES[answer]
    return replace(policy, choices=chosen)


def _ask(options: Options, conflict: Conflict, policy: Policy, differences: Callable[[str], None]) -> str:
    """Print a conflict as the plan of a dry run does, with answers in the place of its commands; return the answer."""
    columns, style = terminal_columns(), Style.choose(options.color)
    about = [*wrap(described(conflict), columns, "  "), *value_lines(conflict, columns, "    ")]
    about += wrap(f"{taken(conflict)}; {_other_version(conflict, policy)}", columns, "  ")
    for line in ("", title_and_id(conflict.title, conflict.conversation, style), *about):
        click.echo(line)
    both, answers = "[b]oth, ", {**_ANSWERS, **_MORE}
    if Take.BOTH not in choices(conflict):  # it is as the newest
        both = ""
        del answers["b"]
    question = (
        f"Take the [n]ewest (the {newer_side(conflict)}'s), the [s]tore's, the [w]orkspace's, {both}"
        "s[k]ip it, show the [d]ifference, answer for [a]ll, or [q]uit"
    )
    default = SKIP if conflict.takes is None else NEWEST
    while (answer := ask_for_key(options, question, answers, default, _MEANINGS)) == DIFFERENCE:
        differences(conflict.conversation)
    return answer


def _other_version(conflict: Conflict, policy: Policy) -> str:
    """Return what becomes of the version that isn't taken."""
    if conflict.forks:
        return "both are kept"
    saved = "the version that is not taken is saved"
    if conflict.unit != STREAM:
        return f"{saved}, and can be restored"
    if policy.diverged is Diverged.NEWEST:
        return f"{saved}; [b]oth makes it a child conversation"
    return f"{saved}; it becomes a child if both sides have new events, or with [b]oth"


def is_undecided(conflict: Conflict, policy: Policy) -> bool:
    """Tell whether a person may decide a conflict: it isn't decided yet by an option or an answer."""
    is_open = conflict.takes is not None or conflict.reason is Reason.CONFLICT_HELD
    return is_open and policy.prefer is Prefer.NEWEST and (conflict.conversation, conflict.unit) not in policy.choices
