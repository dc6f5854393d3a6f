"""Conflicts as lines of text: before a run with both versions, after it with the command that brings the other back."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from reconcile.model.options import Take
from reconcile.model.plan import Kind
from reconcile.model.snapshot import STREAM, Side
from reconcile.model.units import unit_text
from reconcile.planning.conflicts import commands, described_parts, differences, restore_command, restore_of, taken

from .screen import command_lines, wrap
from .text import MAX_COLUMNS, clean, shorten, shorten_value, visible, width, with_local_times

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from reconcile.apply.executor import Outcome
    from reconcile.model.plan import Action, Conflict, Plan
    from reconcile.model.policy import Policy

    from .text import Style

    Heading = Callable[[str, str | None, str], Iterable[str]]
    """Returns the lines of a conversation's title and id, behind an indentation."""

DECIDED = "conflicts, decided"
OPEN = "conflicts, both sides changed"
CHOSEN = "decided by you"
_BOTH_VALID = (5, 11, 13, 15)
"""Cases in which both sides have a valid version (docs/cases.md)."""
SHOWN = 5
"""Number of keys of which the values are shown."""
LEAST_VALUE = 8
"""Columns that a value has at least."""


def conflict_lines(plan: Plan, heading: Heading, style: Style, sides: str, *, run: str) -> Iterator[str]:
    """Yield the section of the conflicts that a run decides. ``run``: the run that has decided them; empty: none yet.

    ``sides``: the options that suggested commands repeat.
    """
    listed = [conflict for conflict in plan.conflicts if conflict.takes is not None]  # the others are listed as blocked
    if not listed:
        return
    yield style(f"{DECIDED if run else OPEN}:", None if run else "yellow", bold=True)
    for conversation, group in groupby(listed, attrgetter("conversation")):
        conflicts = list(group)
        yield from heading(conversation, conflicts[0].title, "  ")
        ways: dict[str, None] = {}  # one command decides every unit of a conversation
        for number, conflict in enumerate(conflicts, 1):
            if run:
                ways = {restore_command(conflict, run): None}
                words = _decided(conflict, _child_of(conversation, plan.actions))
            else:
                ways |= dict.fromkeys(commands(conflict))
                yield from version_lines(described_parts(conflict), style.columns, "    ")
                yield from value_lines(conflict, style.columns, "      ")
                words = f"{taken(conflict)}; {_results(conflicts)}:" if number == len(conflicts) else taken(conflict)
            yield from wrap(clean(with_local_times(words)), style.columns, "    ")
            for command in ways if run or number == len(conflicts) else ():
                lines = command_lines(clean(command + sides), style.columns, "      ")
                yield from (style(line, "cyan") for line in lines)
    yield ""


def version_lines(parts: Sequence[str], columns: int | None, indent: str) -> Iterator[str]:
    """Yield the unit of a conflict and both versions: in one line, or in one for each side if that is too wide."""
    unit, *versions = (clean(with_local_times(part)) for part in parts)
    whole = f"{indent}{unit}: {'; '.join(versions)}"
    if width(whole) <= (MAX_COLUMNS if columns is None else columns):
        yield whole
        return
    yield from wrap(f"{unit}:", columns, indent)
    for version in versions:
        yield from wrap(version, columns, f"{indent}  ", f"{indent}    ")


def _results(conflicts: Collection[Conflict]) -> str:
    """Return the beginning of the commands that decide a conversation, with what becomes of the other version."""
    decide = "to decide now" if len(conflicts) == 1 else "to decide them together now"
    if all(conflict.unit != STREAM for conflict in conflicts):
        return decide
    return f"{decide} (only `both` makes a fork of the other version)"


def decided_words(conflict: Conflict, plan: Plan, run: str, sides: str) -> str:
    """Return the title and id of a conflict that a run has decided, the winner, and the command for the other one."""
    command = f"{restore_command(conflict, run)}{sides}"
    name = f"{conflict.title} ({conflict.conversation})" if conflict.title else conflict.conversation
    return f"{name}: {_decided(conflict, _child_of(conflict.conversation, plan.actions))} {command}"


def _child_of(conversation: str, actions: Collection[Action]) -> str:
    """Return the fork that a plan makes of the continuation that it replaces; empty if there is none."""
    replacing = [each for each in actions if (each.conversation, each.unit) == (conversation, STREAM)]
    forks = (each.conversation for each in actions if any(map(each.is_fork_of, replacing)))
    return next(forks, "")


def _decided(conflict: Conflict, child: str) -> str:
    assert conflict.takes is not None  # noqa: S101 - the caller lists no others
    if conflict.merges:
        return f"{unit_text(conflict.unit)} ({', '.join(conflict.keys)}): {taken(conflict)}; both versions are saved:"
    return f"{unit_text(conflict.unit)}: {taken(conflict, child)}; to bring the {conflict.takes.other}'s back:"


def value_lines(conflict: Conflict, columns: int | None, indent: str) -> Iterator[str]:
    """Yield a line for each key of metadata that differs, with the values of both sides, cut to the width."""
    return difference_lines(differences(conflict), tuple(Side), columns, indent)


def difference_lines(
    pairs: Sequence[tuple[str, str, str]], places: tuple[str, ...], columns: int | None, indent: str
) -> Iterator[str]:
    """Yield a line for each key with its two values, cut to the width, each with the name of its place.

    If the cut hides where they differ, or both are whole on a line of their own, each value has one, if need be without
    its beginning.
    """
    most = MAX_COLUMNS if columns is None else columns
    here, there = places
    for key, *values in pairs[:SHOWN]:
        name = shorten(clean(key), 40)
        left = most - width(f"{indent}{name}:  ({here}) /  ({there})")
        room = max(left, 2 * LEAST_VALUE)
        whole = [visible(value) for value in values]
        first = shorten_value(whole[0], max(room // 2, room - width(whole[1])))
        second = shorten_value(whole[1], room - width(first))
        starts = [f"{indent}{name} ({place}): " for place in places]
        rooms = [max(most - width(start), LEAST_VALUE) for start in starts]
        is_cut = whole != [first, second]
        would_fit = all(width(value) <= room for value, room in zip(whole, rooms, strict=True))
        if left >= room and _shows_difference(whole, (first, second)) and not (is_cut and would_fit):
            yield f"{indent}{name}: {first} ({here}) / {second} ({there})"
            continue
        if not _shows_difference(whole, [shorten_value(*each) for each in zip(whole, rooms, strict=True)]):
            common = _in_common(*whole)
            whole = [f"…{value[max(common - LEAST_VALUE, 1) :]}" for value in whole]
        yield from (start + shorten_value(value, room) for start, value, room in zip(starts, whole, rooms, strict=True))
    if len(pairs) > SHOWN:
        yield f"{indent}... and {len(pairs) - SHOWN} more keys"


def _shows_difference(whole: Sequence[str], cut: Sequence[str]) -> bool:
    """Tell whether the parts of two values that are left have the first place where these differ."""
    common, end = _in_common(*whole), len('…"')
    return all(part == value or common < len(part) - end for value, part in zip(whole, cut, strict=True))


def _in_common(one: str, other: str) -> int:
    """Return how many characters at the beginning of two texts are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))


def chosen_lines(plan: Plan, outcome: Outcome, heading: Heading, style: Style, sides: str) -> Iterator[str]:
    """Yield the section of what a person has decided: the command that brings each other version back."""
    policy = plan.policy
    found: dict[tuple[str, str], list[Action]] = {}
    for entry in outcome.results.values():
        action = entry.action
        answer = _answer(policy, action)
        replaces = action.kind in (Kind.COPY, Kind.PROJECT) and action.case in _BOTH_VALID
        if entry.is_done and replaces and answer is not None and not (answer is Take.BOTH and action.unit == STREAM):
            found.setdefault((action.conversation, action.unit), []).append(action)
    listed = [actions[0] for actions in found.values() if len(actions) == 1]  # a merge replaces both versions
    if not listed:
        return
    yield style(f"{CHOSEN}:", bold=True)
    for action in listed:
        yield from heading(action.conversation, action.title, "  ")
        other = action.target.side
        is_both = _answer(policy, action) is Take.BOTH
        chosen = "only one can stay, and the {}'s is taken" if is_both else "the {}'s is taken, as chosen"
        child = _child_of(action.conversation, plan.actions) if action.unit == STREAM else ""
        kept = f"; the {other}'s is now the fork {child}" if child else ""
        words = f"{unit_text(action.unit)}: {chosen.format(other.other)}{kept}; to bring the {other}'s back:"
        yield from wrap(clean(words), style.columns, "    ")
        command = restore_of(action.conversation, outcome.run or "", action.unit)
        yield from (style(line, "cyan") for line in command_lines(clean(command + sides), style.columns, "      "))
    yield ""


def _answer(policy: Policy, action: Action) -> Take | None:
    """Return what a person has chosen for the unit of an action."""
    return policy.choices.get((action.conversation, action.unit)) or policy.decisions.get(action.conversation)
