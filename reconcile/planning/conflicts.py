"""Conflicts as values of a plan, and in words: both sides' times, what differs, and which side a run takes."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from reconcile.model.commands import typed
from reconcile.model.options import Take
from reconcile.model.plan import Conflict, Rival
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import EXTRA, METADATA, STREAM, Side
from reconcile.model.units import unit_spelling, unit_text
from reconcile.planning.rules.content import Outcome, events, is_conflict, judge

if TYPE_CHECKING:
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Stream
    from reconcile.model.units import Unit
    from reconcile.planning.rules.content import Verdict
    from reconcile.planning.rules.views import View

_WINNERS = {Outcome.TO_STORE: Side.WORKSPACE, Outcome.TO_WORKSPACE: Side.STORE}
_SHOWN = 5
"""Number of keys that a line names."""
_LONG = 200
"""Characters of a value that a conflict has."""
_SAME = 24
"""Characters before the first difference that are shown of long values."""
_BLOCKED = "blocked, choose a side"


def conflict_of(view: View, verdict: Verdict, policy: Policy) -> Conflict | None:
    """Return the conflict of a verdict; None if only one side has edited the unit, or the unit is left alone."""
    winner = _WINNERS.get(verdict.outcome)
    if verdict.outcome is Outcome.MERGED:
        winner, _ = judge(view, verdict.unit, policy.prefer)
    if not is_conflict(verdict) or (winner is None and verdict.outcome is not Outcome.HELD):
        return None
    assert verdict.case is not None  # noqa: S101 - a conflict has a case and a reason
    assert verdict.reason is not None  # noqa: S101 - see above
    sides = {side: view.side(side).units[verdict.unit] for side in Side}
    objects = _objects(view) if verdict.unit == METADATA else ({}, {})
    keys = verdict.keys or _differing(*objects)
    values = [value_texts(key, *objects) for key in keys]
    store, workspace = sides[Side.STORE], sides[Side.WORKSPACE]
    return Conflict(
        conversation=view.id,
        title=view.title,
        unit=verdict.unit,
        case=verdict.case,
        store=_rival(store, workspace, tuple(value for value, _ in values)),
        workspace=_rival(workspace, store, tuple(value for _, value in values)),
        keys=keys,
        takes=winner,
        reason=verdict.reason,
        forks=verdict.forks is not None,
        merges=verdict.outcome is Outcome.MERGED,
    )


def _rival(unit: Unit, other: Unit, values: tuple[str | None, ...]) -> Rival:
    if unit.name == METADATA or unit.name.startswith(EXTRA):
        return Rival(unit.mtime_ns, values=values)
    if not (unit.stream.count or other.stream.count):  # any bytes are content of the plain format
        return Rival(unit.mtime_ns)
    return Rival(unit.mtime_ns, unit.stream.count, unit.stream.last, _only(unit.stream, other.stream))


def _only(stream: Stream, other: Stream) -> int:
    """Return the number of events that another stream lacks. Sides that differ have their events (`needs_events`)."""
    return (Counter(events(stream, other)) - Counter(events(other, stream))).total()


def _objects(view: View) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return both files of metadata as JSON objects; two empty ones if a file is none."""
    ours, theirs = view.store.metadata, view.workspace.metadata
    assert ours is not None  # noqa: S101 - in a conflict both are valid
    assert theirs is not None  # noqa: S101 - see above
    try:
        store, workspace = json.loads(ours.content), json.loads(theirs.content)
    except (ValueError, RecursionError):
        return {}, {}
    return (store, workspace) if isinstance(store, dict) and isinstance(workspace, dict) else ({}, {})


def _differing(store: dict[str, Any], workspace: dict[str, Any]) -> tuple[str, ...]:
    absent = object()
    return tuple(
        key for key in dict.fromkeys((*store, *workspace)) if store.get(key, absent) != workspace.get(key, absent)
    )


def value_texts(key: str, store: dict[str, Any], workspace: dict[str, Any]) -> tuple[str | None, str | None]:
    """Return the values of a key as JSON. Of long ones, what both begin with is left out."""
    texts = [_json_text(side[key]) if key in side else "" for side in (store, workspace)]
    same = next((at for at, (one, other) in enumerate(zip(*texts, strict=False)) if one != other), 0)
    if same > 2 * _SAME:
        texts = [f"…{text[same - _SAME :]}" for text in texts]
    shown = [text if len(text) <= _LONG else f"{text[: _LONG - 1]}…" for text in texts]
    return shown[0] or None, shown[1] or None


def _json_text(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:  # writing needs more of the stack than reading
        return "…"


def differences(conflict: Conflict) -> list[tuple[str, str, str]]:
    """Return the keys of metadata that differ, each with the store's value and the workspace's."""
    both = zip(conflict.keys, conflict.store.values, conflict.workspace.values, strict=False)
    return [
        (key, store or "(absent)", workspace or "(absent)")
        for key, store, workspace in both
        if (store, workspace) != (None, None)
    ]


def described(conflict: Conflict) -> str:
    """Return the unit, what differs, and both versions with their times."""
    unit, *versions = described_parts(conflict)
    return f"{unit}: {'; '.join(versions)}"


def described_parts(conflict: Conflict) -> tuple[str, ...]:
    """Return the unit with what differs, then the version of each side with its time."""
    keys = _keys(conflict)
    return f"{unit_text(conflict.unit)}{f' ({keys})' if keys else ''}", *_versions(conflict)


def blocked(conflict: Conflict) -> str:
    """Return the message of a unit that is held: what differs, and both versions with their times."""
    return f"both sides changed {_keys(conflict) or 'it'}: {'; '.join(_versions(conflict))}"


def _keys(conflict: Conflict) -> str:
    return ", ".join(conflict.keys[:_SHOWN]) + (", ..." if len(conflict.keys) > _SHOWN else "")


def _versions(conflict: Conflict) -> tuple[str, ...]:
    digits = _digits(conflict.store.mtime_ns, conflict.workspace.mtime_ns)
    return tuple(f"{side} {_version(conflict.rival(side), digits)}" for side in Side)


def _digits(first: int, second: int) -> int:
    """Return how many digits of the second tell two times apart; 0 for equal times."""
    return next((digits for digits in (0, 3, 6, 9) if first // 10 ** (9 - digits) != second // 10 ** (9 - digits)), 0)


def _version(rival: Rival, digits: int) -> str:
    last = f", last {event_time(rival.last)}" if rival.last else ""
    only = f", {rival.only} only on this side" if rival.only is not None else ""
    count = "" if rival.events is None else f" ({rival.events} event{'' if rival.events == 1 else 's'}{only}{last})"
    changed = "file changed " if rival.last else ""  # which of two times decides
    return f"{changed}{time_text(rival.mtime_ns, digits)}{count}"


def taken(conflict: Conflict, child: str = "") -> str:
    """Return which side's version a run takes, and why. ``child``: the one that the run has made of the other's."""
    return f"the {conflict.takes}'s is taken {_why_and_more(conflict, child)}" if conflict.takes else _BLOCKED


def to_be_taken(conflict: Conflict) -> str:
    """Return which side's version the next run takes, and why."""
    if not conflict.takes:
        return _BLOCKED
    return f"the next run asks at a terminal, or takes the {conflict.takes}'s {_why_and_more(conflict)}"


def undecided(conflict: Conflict) -> str:
    """Return what differs, both versions, and which of them the next run takes."""
    return f"{described(conflict)}; {to_be_taken(conflict)}"


def _why_and_more(conflict: Conflict, child: str = "") -> str:
    assert conflict.takes is not None  # noqa: S101 - the callers have checked it
    becomes = f"is now the fork {child}" if child else "becomes a fork"
    more = f"; the {conflict.takes.other}'s {becomes}" if conflict.forks else ""
    more = "; other keys are merged" if conflict.merges else more
    return f"({_why(conflict)}){more}"


def _why(conflict: Conflict) -> str:
    if conflict.reason in (Reason.PREFERRED, Reason.DECIDED):
        return conflict.reason.words
    if conflict.takes is not newer_side(conflict):
        return f"--prefer {conflict.takes}"
    if conflict.store.mtime_ns == conflict.workspace.mtime_ns:
        return "same time; the store wins"
    return "its file is newer" if conflict.store.last or conflict.workspace.last else "newer"


def newer_side(conflict: Conflict) -> Side:
    """Return the side with the newer version; at the same time the store."""
    return Side.WORKSPACE if conflict.workspace.mtime_ns > conflict.store.mtime_ns else Side.STORE


def choices(conflict: Conflict) -> tuple[Take, ...]:
    """Return the versions that a person can choose; both only of events of which a run would not keep both."""
    both = (Take.BOTH,) if conflict.unit == STREAM and not conflict.forks else ()
    return (Take.STORE, Take.WORKSPACE, *both)


def commands(conflict: Conflict) -> tuple[str, ...]:
    """Return the commands that choose before a run does; of events also the one that keeps both."""
    takes = (Take.STORE, Take.WORKSPACE, Take.BOTH) if conflict.unit == STREAM else choices(conflict)
    return tuple(f"reconcile resolve {typed(conflict.conversation)} --take {take.value}" for take in takes)


def restore_command(conflict: Conflict, run: str) -> str:
    """Return the command that brings the other version back; of a merge, the one that names both versions."""
    if conflict.merges:
        return f"reconcile diff {typed(conflict.conversation)}"
    return restore_of(conflict.conversation, run, conflict.unit)


def restore_of(conversation: str, run: str, unit: str) -> str:
    """Return the command that restores the version of a unit that a run has replaced."""
    return f"reconcile restore {typed(f'{conversation}@{run}:{unit_spelling(unit)}')}"


def event_time(text: str) -> str:
    """Return the time of an event in the form of `time_text`; without a zone it is UTC, as JP writes it."""
    try:
        time = datetime.fromisoformat(text)
        return f"{(time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"
    except (ValueError, OverflowError):
        return text[:19]


def time_text(mtime_ns: int, digits: int = 0) -> str:
    """Return a time (ns since the epoch) in UTC, to the second; outside of the calendar, the number.

    ``digits``: those of the second's fraction.
    """
    fraction = f".{mtime_ns % 10**9:09}"[: digits + 1] if digits else ""
    try:
        return f"{datetime.fromtimestamp(mtime_ns // 10**9, UTC):%Y-%m-%d %H:%M:%S}{fraction}Z"
    except (ValueError, OverflowError, OSError):
        return f"{mtime_ns} ns"
