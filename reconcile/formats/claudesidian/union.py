"""Two versions of a record in one, by the ids of sessions, traces, states and messages
(docs/design/formats/claudesidian.md#c6, docs/design/formats/claudesidian.md#c10).

The program writes whole files without a lock, so each of two versions may have what the other lacks. Where a common
older version is known, what one side has taken away stays away, and what only one side has changed is as it says;
without it nothing is ever taken away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from reconcile.formats.claudesidian.record_files import Kind, messages_of, number, sessions_of, states_of, traces_of
from reconcile.formats.json import javascript

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconcile.formats.claudesidian.record_files import Value

    Choice: TypeAlias = Callable[[Any, Any], Any]

LATEST = {Kind.WORKSPACE: "lastAccessed", Kind.CONVERSATION: "updated"}
"""The member that says when a record was written last."""


def united(kind: Kind, mine: Value, theirs: Value, base: Value | None = None) -> Value:
    """All that two valid versions hold; where both say something else, the later one is right.

    The same value whichever of the two comes first. ``base`` is what both have come from.
    """
    times = [number(each.get(LATEST[kind])) for each in (mine, theirs)]
    older, newer = sorted((mine, theirs), key=lambda each: (number(each.get(LATEST[kind])), _weight(each)))
    choose = _heavier if times[0] == times[1] else _newer
    if kind is Kind.CONVERSATION:
        return _conversation(newer, older, base, choose)
    return {
        **_merged(newer, older, base, choose),
        "sessions": _sessions(newer, older, base, choose),
    }


def with_sessions_of(value: Value, older: Value) -> Value:
    """A workspace with the sessions, traces and states of an older version that it lacks."""
    return {**value, "sessions": _sessions(value, older, None, _newer)}


def _sessions(newer: Value, older: Value, base: Value | None, choose: Choice) -> Value:
    past = {} if base is None else sessions_of(base)
    mine, theirs = sessions_of(newer), sessions_of(older)

    def session(key: str) -> Value:
        before = past.get(key)
        return {
            **_merged(mine[key], theirs[key], before, choose),
            **{
                member: _merged(part(mine[key]), part(theirs[key]), None if before is None else part(before), choose)
                for member, part in (("memoryTraces", traces_of), ("states", states_of))
            },
        }

    whole = _merged(mine, theirs, past, choose)
    return {key: session(key) if key in mine and key in theirs else each for key, each in whole.items()}


def _conversation(newer: Value, older: Value, base: Value | None, choose: Choice) -> Value:
    mine, theirs = _by_id(newer), _by_id(older)
    messages = list(_merged(mine, theirs, None if base is None else _by_id(base), choose).values())
    if not theirs.keys() <= mine.keys():
        messages.sort(key=lambda message: number(message.get("timestamp")))
    return {**_merged(newer, older, base, choose), "messages": messages, "message_count": len(messages)}


def _by_id(conversation: Value) -> dict[str, Value]:
    """The messages by their id; of those that share one, or have none, none is lost."""
    found: dict[str, Value] = {}
    for message in messages_of(conversation):
        key = str(message.get("id"))
        while key in found:
            key += "'"
        found[key] = message
    return found


def _merged(newer: Value, older: Value, base: Value | None, choose: Choice) -> Value:
    """Members of both by name."""
    found: Value = {}
    past = base or {}
    for key in dict.fromkeys((*newer, *older)):
        if key in newer and key in older:
            mine, theirs = newer[key], older[key]
            if key in past and mine != theirs and past[key] in (mine, theirs):
                found[key] = theirs if past[key] == mine else mine
            else:
                found[key] = choose(mine, theirs)
            continue
        value = newer[key] if key in newer else older[key]
        if key not in past or past[key] != value:
            found[key] = value
    return found


def _newer(newer: Any, _older: Any) -> Any:
    return newer


def _heavier(newer: Any, older: Any) -> Any:
    """Of two that are equally old: the choice must be the same at each place, and again."""
    return max(newer, older, key=_weight)


def _weight(value: Any) -> tuple[int, bytes]:
    content = javascript.stringify(value)
    return len(content), content
