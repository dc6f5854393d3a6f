"""Questions about conflicts, one after the other, at a terminal."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import click
from msgspec.structs import replace

from reconcile.model.options import Diverged, Prefer, Take
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import STREAM, Side
from reconcile.planning.conflicts import choices, described_parts, differences, newer_side
from reconcile.remote.machines import MACHINES, of_machines

from .conflict_text import difference_lines, version_lines
from .differences import print_differences
from .interaction import SKIP, ask_for_key
from .screen import wrap
from .text import Style, terminal_columns, title_and_id

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from reconcile.engine.engine import Engine, Pass
    from reconcile.model.plan import Conflict
    from reconcile.model.policy import Policy

    from ..arguments import Options

NEWEST, DIFFERENCE, ALL = "n", "d", "a"
_MORE = {DIFFERENCE: "difference", ALL: "all"}


class Names(NamedTuple):
    """The names of the store and of the workspace.

    The first two are those in a question, with the key of the answer in brackets. ``labels`` stand alone.
    ``wrong``: the conversations whose version in the workspace has the time of a wrong clock, which decides nothing.
    """

    store: str
    workspace: str
    labels: tuple[str, str]
    wrong: Collection[str] = ()

    def marked(self, side: Side) -> str:
        """Return the name of a side in a question, with the key of the answer in brackets."""
        return self.store if side is Side.STORE else self.workspace

    def of(self, side: Side) -> str:
        """Return the name of a side in a sentence."""
        return self.marked(side).replace("[", "").replace("]", "")

    def key(self, side: Side) -> str:
        """Return the key of the answer that takes the version of a side."""
        return self.marked(side).partition("[")[2][0]

    def has_times(self, conflict: Conflict) -> bool:
        """Tell whether the times say which version is the newer one."""
        is_equal = conflict.store.mtime_ns == conflict.workspace.mtime_ns
        return not is_equal and conflict.conversation not in self.wrong

    def newer(self, conflict: Conflict) -> Side:
        """Return the side with the newer version; the store if the times don't tell."""
        return newer_side(conflict) if self.has_times(conflict) else Side.STORE

    @property
    def takes(self) -> dict[str, Take]:
        """The version that each answer takes, by key."""
        return {**{self.key(side): Take(side.value) for side in Side}, "b": Take.BOTH, SKIP: Take.KEEP}

    @property
    def words(self) -> dict[str, str]:
        """The word of each answer, by key."""
        sides = {self.key(side): self.of(side).removeprefix("the ").removesuffix(" machine") for side in Side}
        return {NEWEST: "newest", **sides, "b": "both", SKIP: "skip"}


SIDES = Names("the [s]tore", "the [w]orkspace", ("store", "workspace"))
IN_SYNC = Names("[t]his machine", "the [o]ther machine", MACHINES)
"""The two sides of a sync with a remote."""


def ask_about_conflicts(
    engine: Engine, pass_: Pass, policy: Policy, options: Options, conflicts: Iterable[Conflict], names: Names = SIDES
) -> Policy:
    """Ask which version of each conflict to take, and return the policy with the answers. ``q`` ends the command.

    An answer that is what the rules decide adds nothing to the policy.
    """
    views = engine.decide(pass_, policy).views
    show_difference = partial(print_differences, engine.session, views, options, names.labels)
    chosen = dict(policy.choices)
    for_all: str | None = None
    left = list(conflicts)
    while left:
        answer = for_all or _ask(options, left, policy, show_difference, names)
        if answer == ALL:
            answer = for_all = _ask_for_all(options, left, names)
        conflict = left.pop(0)
        take = _take(conflict, answer, names)
        if conflict.takes is None or take.value != conflict.takes.value or conflict.conversation in names.wrong:
            chosen[conflict.conversation, conflict.unit] = take
    return replace(policy, choices=chosen)


def _take(conflict: Conflict, answer: str, names: Names) -> Take:
    if answer == NEWEST or (answer == "b" and Take.BOTH not in choices(conflict)):
        return Take(names.newer(conflict).value)
    return names.takes[answer]


def _ask(
    options: Options, left: Sequence[Conflict], policy: Policy, show_difference: Callable[[str], None], names: Names
) -> str:
    """Print the first conflict as the plan of a dry run does, with answers in the place of its commands; return the
    answer.
    """
    conflict = left[0]
    columns, style = terminal_columns(), Style.choose(options.color)
    about = [*version_lines(_described(conflict, names), columns, "  ")]
    about += difference_lines(differences(conflict), names.labels, columns, "    ")
    about += wrap(f"{_about(conflict, names)}; {_other_version(conflict, policy, names)}", columns, "  ")
    for line in ("", title_and_id(conflict.title, conflict.conversation, style), *about):
        click.echo(line)
    keys, words = _keys_of(left[:1], names), names.words
    meanings = {
        **_meanings(conflict, names),
        DIFFERENCE: "show the difference, and ask again",
        ALL: "give one answer for this conflict and all that follow",
    }
    newer = " (newer)" if names.has_times(conflict) else ""
    of_sides = [f"{names.marked(side)}'s{newer if side is names.newer(conflict) else ''}" for side in Side]
    both = ["[b]oth"] if "b" in keys else []
    all_ = ["answer for [a]ll"] if len(left) > 1 else []
    question = ", ".join([f"Take {of_sides[0]}", of_sides[1], *both, "s[k]ip it", "show the [d]ifference", *all_])
    answers = {key: words[key] for key in keys} | {
        key: _MORE[key] for key in (DIFFERENCE, ALL) if key == DIFFERENCE or all_
    }
    default = SKIP if conflict.takes is None else names.key(names.newer(conflict))
    while (answer := ask_for_key(options, f"{question}, or [q]uit", answers, default, meanings)) == DIFFERENCE:
        show_difference(conflict.conversation)
    return answer


def _ask_for_all(options: Options, left: Sequence[Conflict], names: Names) -> str:
    """Ask for one answer to several conflicts; the newest is offered if it is not the same side for all."""
    keys, words = _keys_of(left, names), names.words
    sides = {names.newer(conflict) for conflict in left}
    offers = {names.key(side): f"{names.marked(side)}'s" for side in Side}
    offers |= {NEWEST: "the [n]ewest", "b": "[b]oth", SKIP: "s[k]ip"}
    if len(sides) > 1:
        keys = [NEWEST, *keys]
    question = f"For this one and all that follow: {', '.join(offers[key] for key in keys)}, or [q]uit"
    default = NEWEST if len(sides) > 1 else names.key(sides.pop())
    return ask_for_key(options, question, {key: words[key] for key in keys}, default)


def _keys_of(conflicts: Sequence[Conflict], names: Names) -> list[str]:
    """Return the keys of the answers that are possible for some of these conflicts."""
    takes = {take for conflict in conflicts for take in choices(conflict)}
    return [key for key, take in names.takes.items() if take in takes or take is Take.KEEP]


def _described(conflict: Conflict, names: Names) -> tuple[str, ...]:
    """Return the unit and both versions with their times, as a plan does."""
    unit, *versions = described_parts(conflict)
    text = f": {'; '.join(versions)}"
    return unit, *(of_machines(text) if names.labels is MACHINES else text).removeprefix(": ").split("; ")


def _meanings(conflict: Conflict, names: Names) -> dict[str, str]:
    """Return what each answer to a conflict does, by key."""
    other = "becomes a fork" if conflict.forks else "is saved, and can be restored"
    sides = {names.key(side): f"take {names.of(side)}'s version; {names.of(side.other)}'s {other}" for side in Side}
    return {
        **sides,
        "b": "take the newer version; the older one becomes a fork",
        SKIP: "leave it, and decide later",
    }


def _about(conflict: Conflict, names: Names) -> str:
    """Return which side has the newer version: nothing is decided before the answer."""
    which = "file" if conflict.store.last or conflict.workspace.last else "version"  # which of two times decides
    newer = f"{names.of(names.newer(conflict))}'s {which} is newer"
    if conflict.conversation in names.wrong:
        newer = "the other machine's clock is ahead, so the times do not count"
    elif conflict.store.mtime_ns == conflict.workspace.mtime_ns:
        newer = "both have the same time"
    waits = "" if conflict.takes else "blocked until you choose; "
    return f"{waits}{newer}{'; other keys are merged' if conflict.merges else ''}"


def _other_version(conflict: Conflict, policy: Policy, names: Names) -> str:
    """Return what becomes of the version that isn't taken."""
    if conflict.forks:
        no_fork = "`reconcile resolve ID --take SIDE` makes no fork: it only saves that version"
        return f"the version that you do not take becomes a fork{'' if names.labels is MACHINES else f' ({no_fork})'}"
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
