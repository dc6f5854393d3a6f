"""A saved plan against the present: what of it still is what the planner would do."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reconcile.core.withholding import renumbered, withheld

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from reconcile.core.look import Look
    from reconcile.core.model import File, Place
    from reconcile.core.plan import Action, Expect, Plan, Write


def agreeing(saved: Plan, fresh: Plan, decided: Collection[str] = ()) -> tuple[Plan, dict[str, Action]]:
    """Return what both plans have in common, and by its action ids the saved actions that it carries out.

    ``fresh`` was made now, as it was asked for when ``saved`` was made. A conversation of which one action isn't in
    it any more has drifted, and is refused with everything that needs it; so is one of ``decided``, of which something
    else was decided since. Only actions of ``fresh`` are ever carried out, so that a plan file can ask for nothing that
    isn't right now.
    """
    wanted = {_meaning(action): action for action in saved.actions}
    found = {_meaning(action) for action in fresh.actions}
    drifted = {action.conversation for meaning, action in wanted.items() if meaning not in found} | {*decided}
    leaves = {action.id for action in fresh.actions if _meaning(action) not in wanted or action.conversation in drifted}
    leaves = withheld(fresh.actions, leaves)
    partly = {action.conversation for action in fresh.actions if action.id in leaves}
    kept = renumbered(action for action in fresh.actions if action.id not in leaves)
    changes = replace(
        fresh,
        actions=kept,
        quiet=False,
        intents=tuple(each for each in fresh.intents if each[0] not in decided),
        asides=tuple(each for each in fresh.asides if each[0][0] not in drifted | partly),
        remembered=tuple(each for each in fresh.remembered if each[0] not in drifted | partly),
    )
    return changes, {action.id: wanted[_meaning(action)] for action in kept}


def moved_on(saved: Plan, look: Look, decided: Collection[str] = ()) -> dict[str, str]:
    """Say of each saved action in what way the present isn't what it was made for: its own files, or the others of
    its conversation.
    """
    present = {
        replace(copy.place, path=f"{copy.path}/{file.name}"): file
        for snapshot in (look.store, look.workspace)
        for copy in snapshot.copies
        for file in copy.files
    }
    found: dict[str, str] = {}
    first: dict[str, str] = {}
    for action in saved.actions:
        if action.writes and all(_is_there(present.get(each.target), each) for each in action.writes):
            found[action.id] = f"{action.target}: found it done already"
        elif action.conversation in decided:
            found[action.id] = f"{action.target}: what belongs here was decided otherwise since (`reconcile log`)"
        elif words := next(filter(None, (_change(each, present) for each in action.expect)), ""):
            found[action.id] = words
            first.setdefault(action.conversation, words)
    rest = "something else would be done with it now; make the plan again"
    return {
        each.id: found.get(each.id) or first.get(each.conversation) or f"{each.target}: {rest}"
        for each in saved.actions
    }


def _is_there(file: File | None, wanted: Expect | Write) -> bool:
    return file is not None and (file.size, file.mtime_ns, file.digest) == (wanted.size, wanted.mtime_ns, wanted.digest)


def _change(expect: Expect, present: Mapping[Place, File]) -> str:
    """Say what is there instead of what an action expects; nothing where it is as expected."""
    file = present.get(expect.place)
    if expect.digest is None:
        return "" if file is None else f"{expect.place}: found a file, expected none"
    if file is None:
        return f"{expect.place}: found nothing, expected the file that the plan was made from"
    return "" if _is_there(file, expect) else f"{expect.place}: changed since the plan was made"


def _meaning(action: Action) -> Action:
    """The action without what depends on the plan that it is in."""
    return replace(action, id="", needs=(), touches=())
