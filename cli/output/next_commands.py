"""The commands that come next, as git names them: `status` lists all, a dry run those that its plan does not print."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from reconcile.model.reasons import Reason

from .screen import command_lines, wrap
from .text import shorten, visible

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from reconcile.adapters.roots import Roots
    from reconcile.engine.versions import Lost
    from reconcile.model.plan import Item, Plan

    from .text import Style

    Way = tuple[str, str]
    """A command, and its purpose."""

NAMED = 2
"""Blocked conversations whose commands are listed."""


def next_lines(ways: Iterable[Way], style: Style, sides: str) -> list[str]:
    """Return the lines of the commands; none if there are none."""
    lines: list[str] = []
    for command, purpose in ways:
        lines += command_lines(command + sides, style.columns, "  ")
        lines += wrap(purpose, style.columns, "      ")
    return ["Next:", *lines] if lines else []


def decisions(plan: Plan) -> Iterator[Way]:
    """Yield the commands that settle what is blocked. The plan prints the same ones."""
    for item in plan.held:
        if item.conversation is None and item.resolve:
            yield item.resolve[0], "settles what is blocked"
    blocked = list(_blocked(plan))
    for item in blocked[:NAMED]:
        name = shorten(visible(item.title or str(item.conversation)), 40)
        *others, last = item.resolve
        if item.reason is Reason.SECRET and others:
            yield others[0], f"publishes {name} with the secret, or"
            yield last, "keeps it private, in the store"
            continue
        yield from ((way, "or") for way in others)
        yield last, f"settles {name}"
    if (rest := len(blocked) - NAMED) > 0:
        yield "reconcile --dry-run", f"shows the commands of the others ({rest})"


def further(plan: Plan, roots: Roots, lost: Iterable[Lost] = (), empty: int = 0, removed: int = 0) -> Iterator[Way]:
    """Yield the commands beside a run and the decisions.

    ``lost``: what was lost with a store. ``empty``: the number of conversations with an empty directory. ``removed``:
    the number that was removed here before; the plan has those that it notices. Of sessions that colleagues share, one
    of them may have withdrawn what went.
    """
    unread = any(item.conversation is None and item.reason is Reason.UNREADABLE for item in plan.held)
    if invalid := _count(item.conversation for item in plan.held if item.reason is Reason.INVALID):
        and_empty = ", and what to do about empty directories" if empty else ""
        yield "reconcile doctor", f"shows how to repair or remove invalid files{and_empty} ({invalid + empty})"
    elif unread:
        yield "reconcile doctor", "shows how to repair what can't be read"
    if count := _count(item.conversation for item in plan.aside if item.reason is Reason.BEHIND_ASIDE):
        yield "reconcile project --behind", f"updates older versions here ({count})"
    diverged = (item.conversation for item in plan.held if item.reason is Reason.DIVERGED_HELD)
    if count := _count((*diverged, *(conflict.conversation for conflict in plan.conflicts))):
        yield "reconcile diff ID", f"shows both versions of a conflict ({count})"
    count = max(removed, _count(note.conversation for note in plan.notes if note.reason is Reason.REMOVED_HERE))
    if count and roots.format == "claude-shared":
        yield "reconcile local ID", f"keeps private here, too, what was withdrawn ({count})"
        yield "reconcile project ID", "or shares it again"
    elif count:
        yield "reconcile recover", f"restores what was deleted here ({count})"
    restorable: dict[str, list[str]] = {}
    for each in lost:
        if each.command:
            restorable.setdefault(each.command, []).append(each.title or each.conversation)
    for command, (name, *others) in list(restorable.items())[:NAMED]:
        more = f", and {len(others)} more of the lost" if others else ""
        yield command, f"restores {shorten(visible(name), 40)}{more}"
    if empty and not invalid:
        yield "reconcile doctor", f"shows what to do about empty directories ({empty})"
    yield from after_undo(plan, roots)


def after_undo(plan: Plan, roots: Roots) -> Iterator[Way]:
    """Yield the commands that end what an undo has left alone, for all of it at once."""
    undone = {item.conversation for item in plan.aside if item.reason is Reason.UNDONE and item.conversation}
    if undone and (repeats := _redo(roots, undone)) is not None:
        yield repeats
    if way := _way_for_all(plan):
        yield way, f"or takes the {way.rpartition(' ')[2]}'s version of all of them"


def _redo(roots: Roots, undone: Collection[str]) -> Way | None:
    """Return the command that repeats the run that was undone last, of those that have changed these conversations.

    The command has the undo's id if another run has followed. None: no undo of this project has changed them.
    """
    from reconcile.engine.run_history import NoRunError, newest_undo_of  # here, as below: few reports name it
    from reconcile.state.database import State
    from reconcile.state.directory import state_directory

    with State.open(state_directory(roots.key, os.environ, sys.platform), readonly=True) as state:
        try:
            found = newest_undo_of(state, os.path.realpath(roots.project), undone)
        except NoRunError:  # it was undone in another checkout
            return "reconcile redo", f"repeats an undone run ({len(undone)})"
    if found is None:
        return None
    undo, count = found
    command = f"reconcile redo {undo.run.id}" if undo.after else "reconcile redo"
    return command, f"repeats the run {undo.origin.id}, which was undone ({count})"


def _way_for_all(plan: Plan) -> str:
    """Return the command that settles several undone conversations at once; empty if there is none.

    It would also settle whatever else is blocked or left alone.
    """
    items = (*plan.held, *plan.aside)
    ways = {way.partition(" --take ")[2] for item in items for way in item.resolve}
    if len(ways) != 1 or _count(item.conversation for item in items) < 2:
        return ""
    (side,) = ways
    return (
        f"reconcile resolve --all --take {side}" if side and all(item.reason is Reason.UNDONE for item in items) else ""
    )


def decisions_about(plan: Plan, conversation: str) -> list[Way]:
    """Return the commands that settle one conversation, if it is blocked or left alone: those that the plan prints."""
    held, aside = ([item for item in items if item.conversation == conversation] for items in (plan.held, plan.aside))
    found = list(dict.fromkeys(command for item in held or aside for command in item.resolve))
    if len(found) == 2 and all(item.reason is Reason.SECRET for item in held or aside):
        return [(found[0], "publishes it with the secret, or"), (found[1], "keeps it private, in the store")]
    last = "shows how to repair it" if found == ["reconcile doctor"] else "settles it"
    return [(command, last if command == found[-1] else "or") for command in found]


def _blocked(plan: Plan) -> Iterator[Item]:
    """Yield the first item of each blocked conversation that has commands which settle it."""
    named = {item.conversation for item in plan.held if item.reason is Reason.INVALID}
    decidable = {Reason.LOCAL_PRESENT, Reason.REMOVED_BEFORE, Reason.UNDONE}
    if _way_for_all(plan):
        decidable.remove(Reason.UNDONE)
    blocked = (*plan.held, *(item for item in plan.aside if item.reason in decidable))
    for item in blocked:
        is_other = item.reason in (Reason.INVALID, Reason.DIVERGED_HELD)  # `further` names a command for these
        if item.conversation is not None and item.resolve and not is_other and item.conversation not in named:
            named.add(item.conversation)
            yield item


def _count(conversations: Iterable[str | None]) -> int:
    return len({conversation for conversation in conversations if conversation is not None})
