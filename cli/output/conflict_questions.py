"""Questions about conflicts, one after the other, at a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from reconcile.model.options import Diverged, Prefer, Take
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import STREAM, Side
from reconcile.planning.conflicts import choices, described, newer_side

from .conflict_text import value_lines
from .interaction import SKIP, ask_for_key
from .screen import wrap
from .text import Style, terminal_columns, title_and_id, with_local_times

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from reconcile.model.plan import Conflict
    from reconcile.model.policy import Policy

    from ..arguments import Options

NEWEST, DIFFERENCE, ALL = "n", "d", "a"
_SIDES = {"s": Take.STORE, "w": Take.WORKSPACE, "b": Take.BOTH, SKIP: Take.KEEP}
_WORDS = {NEWEST: "newest", "s": "store", "w": "workspace", "b": "both", SKIP: "skip"}
_MORE = {DIFFERENCE: "difference", ALL: "all"}


def ask_about_conflicts(
    options: Options, policy: Policy, conflicts: Iterable[Conflict], differences: Callable[[str], None]
) -> Policy:
    """Ask which version of each conflict to take, and return the policy with the answers. ``q`` ends the command.

    ``differences`` prints what differs between the sides of a conversation. An answer that is what the rules decide
    adds nothing to the policy.
    """
    chosen = dict(policy.choices)
    for_all: str | None = None
    left = list(conflicts)
    while left:
        answer = for_all or _ask(options, left, policy, differences)
        if answer == ALL:
            answer = for_all = _ask_for_all(options, left)
        conflict = left.pop(0)
        take = _take(conflict, answer)
        if conflict.takes is None or take.value != conflict.takes.value:
            chosen[conflict.conversation, conflict.unit] = take
    return replace(policy, choices=chosen)


def _take(conflict: Conflict, answer: str) -> Take:
    if answer == NEWEST or (answer == "b" and Take.BOTH not in choices(conflict)):
        return Take(newer_side(conflict).value)
    return _SIDES[answer]


def _ask(options: Options, left: Sequence[Conflict], policy: Policy, differences: Callable[[str], None]) -> str:
    """Print the first conflict as the plan of a dry run does, with answers in the place of its commands; return the
    answer.
    """
    conflict = left[0]
    columns, style = terminal_columns(), Style.choose(options.color)
    about = [*wrap(with_local_times(described(conflict)), columns, "  "), *value_lines(conflict, columns, "    ")]
    about += wrap(f"{_about(conflict)}; {_other_version(conflict, policy)}", columns, "  ")
    for line in ("", title_and_id(conflict.title, conflict.conversation, style), *about):
        click.echo(line)
    keys = _keys_of(left[:1])
    meanings = {
        **_meanings(conflict),
        DIFFERENCE: "show the difference, and ask again",
        ALL: "give one answer for this conflict and all that follow",
    }
    newer = "" if conflict.store.mtime_ns == conflict.workspace.mtime_ns else " (newer)"
    of_sides = [f"the {_marked(side)}'s{newer if side is newer_side(conflict) else ''}" for side in Side]
    both = ["[b]oth"] if "b" in keys else []
    all_ = ["answer for [a]ll"] if len(left) > 1 else []
    question = ", ".join([f"Take {of_sides[0]}", of_sides[1], *both, "s[k]ip it", "show the [d]ifference", *all_])
    answers = {key: _WORDS[key] for key in keys} | {
        key: _MORE[key] for key in (DIFFERENCE, ALL) if key == DIFFERENCE or all_
    }
    default = SKIP if conflict.takes is None else newer_side(conflict).value[0]
    while (answer := ask_for_key(options, f"{question}, or [q]uit", answers, default, meanings)) == DIFFERENCE:
        differences(conflict.conversation)
    return answer


def _ask_for_all(options: Options, left: Sequence[Conflict]) -> str:
    """Ask for one answer to several conflicts; the newest is offered if it is not the same side for all."""
    keys = _keys_of(left)
    sides = {newer_side(conflict) for conflict in left}
    names = {NEWEST: "the [n]ewest", "s": "the [s]tore's", "w": "the [w]orkspace's", "b": "[b]oth", SKIP: "s[k]ip"}
    if len(sides) > 1:
        keys = [NEWEST, *keys]
    question = f"For this one and all that follow: {', '.join(names[key] for key in keys)}, or [q]uit"
    default = NEWEST if len(sides) > 1 else sides.pop().value[0]
    return ask_for_key(options, question, {key: _WORDS[key] for key in keys}, default)


def _keys_of(conflicts: Sequence[Conflict]) -> list[str]:
    """Return the keys of the answers that are possible for some of these conflicts."""
    takes = {take for conflict in conflicts for take in choices(conflict)}
    return [key for key, take in _SIDES.items() if take in takes or take is Take.KEEP]


def _marked(side: Side) -> str:
    return f"[{side.value[0]}]{side.value[1:]}"


def _meanings(conflict: Conflict) -> dict[str, str]:
    """Return what each answer to a conflict does, by key."""
    other = "becomes a fork" if conflict.forks else "is saved, and can be restored"
    sides = {side.value[0]: f"take the {side}'s version; the {side.other}'s {other}" for side in Side}
    return {
        **sides,
        "b": "take the newer version; the older one becomes a fork",
        SKIP: "leave it, and decide later",
    }


def _about(conflict: Conflict) -> str:
    """Return which side has the newer version: nothing is decided before the answer."""
    which = "file" if conflict.store.last or conflict.workspace.last else "version"  # which of two times decides
    newer = f"the {newer_side(conflict)}'s {which} is newer"
    if conflict.store.mtime_ns == conflict.workspace.mtime_ns:
        newer = "both have the same time"
    waits = "" if conflict.takes else "blocked until you choose; "
    return f"{waits}{newer}{'; other keys are merged' if conflict.merges else ''}"


def _other_version(conflict: Conflict, policy: Policy) -> str:
    """Return what becomes of the version that isn't taken."""
    if conflict.forks:
        return "both are kept, whichever you take: the other one becomes a fork"
    saved = "the version that is not taken is saved"
    if conflict.unit != STREAM:
        return f"{saved}, and can be restored"
    if policy.diverged is Diverged.NEWEST:
        return f"{saved}; [b]oth makes it a fork"
    return f"{saved}; it becomes a fork if both sides have new events, or with [b]oth"


def is_undecided(conflict: Conflict, policy: Policy) -> bool:
    """Tell whether a person may decide a conflict: it isn't decided yet by an option or an answer."""
    is_open = conflict.takes is not None or conflict.reason is Reason.CONFLICT_HELD
    return is_open and policy.prefer is Prefer.NEWEST and (conflict.conversation, conflict.unit) not in policy.choices
