"""Conflicts as values of a plan, and in words: both sides' times, what differs, and which side a run takes."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from reconcile.model.plan import Conflict, Rival
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import EXTRA, METADATA, Side
from reconcile.model.units import unit_text
from reconcile.planning.rules.content import Outcome, is_conflict, judge

if TYPE_CHECKING:
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Metadata
    from reconcile.model.units import Unit
    from reconcile.planning.rules.content import Verdict
    from reconcile.planning.rules.views import View

_WINNERS = {Outcome.TO_STORE: Side.WORKSPACE, Outcome.TO_WORKSPACE: Side.STORE}
_SHOWN = 5
"""Number of keys that a line names."""


def conflict_of(view: View, verdict: Verdict, policy: Policy) -> Conflict | None:
    """Return the conflict of a verdict; None if only one side has edited the unit, or the unit is left alone."""
    winner = _WINNERS.get(verdict.outcome)
    if verdict.outcome is Outcome.MERGED:
        winner, _ = judge(view, verdict.unit, policy.prefer)
    if verdict.case is None or not is_conflict(verdict) or (winner is None and verdict.outcome is not Outcome.HELD):
        return None
    sides = {side: view.side(side).units[verdict.unit] for side in Side}
    metadata = (view.store.metadata, view.workspace.metadata) if verdict.unit == METADATA else (None, None)
    return Conflict(
        conversation=view.id,
        title=view.title,
        unit=verdict.unit,
        case=verdict.case,
        store=_rival(sides[Side.STORE]),
        workspace=_rival(sides[Side.WORKSPACE]),
        keys=verdict.keys or differing_keys(*metadata),
        takes=winner,
        reason=verdict.reason or Reason.CONFLICT,
        forks=verdict.forks is not None,
        merges=verdict.outcome is Outcome.MERGED,
    )


def _rival(unit: Unit) -> Rival:
    if unit.name == METADATA or unit.name.startswith(EXTRA):
        return Rival(unit.mtime_ns)
    return Rival(unit.mtime_ns, unit.stream.count, unit.stream.last)


def differing_keys(store: Metadata | None, workspace: Metadata | None) -> tuple[str, ...]:
    """Return the keys with different values, those of the store's file first; none if a file is no JSON object."""
    if store is None or workspace is None:
        return ()
    try:
        ours, theirs = json.loads(store.content), json.loads(workspace.content)
    except (ValueError, RecursionError):
        return ()
    if not (isinstance(ours, dict) and isinstance(theirs, dict)):
        return ()
    absent = object()
    return tuple(key for key in dict.fromkeys((*ours, *theirs)) if ours.get(key, absent) != theirs.get(key, absent))


def described(conflict: Conflict) -> str:
    """Return the unit, what differs, and both versions with their times."""
    keys = _keys(conflict)
    return f"{unit_text(conflict.unit)}{f' ({keys})' if keys else ''}: {_versions(conflict)}"


def blocked(conflict: Conflict) -> str:
    """Return the message of a unit that is held: what differs, and both versions with their times."""
    return f"both sides changed {_keys(conflict) or 'it'}: {_versions(conflict)}"


def _keys(conflict: Conflict) -> str:
    return ", ".join(conflict.keys[:_SHOWN]) + (", ..." if len(conflict.keys) > _SHOWN else "")


def _versions(conflict: Conflict) -> str:
    return "; ".join(f"{side} {_version(conflict.rival(side))}" for side in Side)


def _version(rival: Rival) -> str:
    last = f", last {rival.last[:19]}" if rival.last else ""
    events = "" if rival.events is None else f" ({rival.events} event{'' if rival.events == 1 else 's'}{last})"
    return f"{time_text(rival.mtime_ns)}{events}"


def taken(conflict: Conflict) -> str:
    """Return which side's version a run takes, and why."""
    if conflict.takes is None:
        return "blocked, choose a side"
    other = conflict.takes.other
    more = f"; the {other}'s becomes a child" if conflict.forks else ""
    more = "; other keys are merged" if conflict.merges else more
    return f"the {conflict.takes}'s is taken ({_why(conflict)}){more}"


def _why(conflict: Conflict) -> str:
    if conflict.reason in (Reason.PREFERRED, Reason.DECIDED):
        return conflict.reason.words
    if conflict.takes is not newer_side(conflict):
        return f"--prefer {conflict.takes}"
    return "same time, so the store's" if conflict.store.mtime_ns == conflict.workspace.mtime_ns else "newer"


def newer_side(conflict: Conflict) -> Side:
    """Return the side with the newer version; at the same time the store."""
    return Side.WORKSPACE if conflict.workspace.mtime_ns > conflict.store.mtime_ns else Side.STORE


def commands(conflict: Conflict) -> tuple[str, ...]:
    """Return the commands that choose a side before a run does."""
    return tuple(f"reconcile resolve {conflict.conversation} --take {side}" for side in Side)


def restore_command(conflict: Conflict, run: str) -> str:
    """Return the command that brings the other version back; of a merge, the one that names both versions."""
    if conflict.merges:
        return f"reconcile diff {conflict.conversation}"
    return f"reconcile restore {conflict.conversation}@{run}:{conflict.unit.removeprefix(EXTRA)}"


def time_text(mtime_ns: int) -> str:
    """Return a time (ns since the epoch) in UTC, to the second; outside of the calendar, the number."""
    try:
        return datetime.fromtimestamp(mtime_ns // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"{mtime_ns} ns"
