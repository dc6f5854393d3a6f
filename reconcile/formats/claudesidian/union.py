"""Merges two versions of a file: records by the ids of their entries, event files by their events.

The program writes whole files without a lock, so each of two versions may have what the other lacks
(docs/design/formats/claudesidian.md#c6, docs/design/formats/claudesidian.md#c10). If a common older version is known,
removals by one side are kept, and a value that only one side has changed is taken from it. Without it nothing is ever
removed. The result does not depend on the order of the two versions, and merging it again adds nothing: two worktrees
get the same file.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, TypeAlias

from reconcile.formats.claudesidian.events import clashing, is_held_by, lacks_events, merge, read_events
from reconcile.formats.claudesidian.finding import some
from reconcile.formats.claudesidian.record_files import (
    Item,
    Kind,
    messages_of,
    number,
    read_item,
    sessions_of,
    states_of,
    traces_of,
)
from reconcile.formats.claudesidian.repair import lacking
from reconcile.formats.json import javascript
from reconcile.model.snapshot import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from reconcile.formats.claudesidian.record_files import Value

    Choice: TypeAlias = Callable[[Any, Any], Any]


LATEST = {Kind.WORKSPACE: "lastAccessed", Kind.CONVERSATION: "updated"}
"""The member with the time of the last write of a record."""


def merged_values(kind: Kind, first: Value, second: Value, base: Value | None = None) -> Value:
    """Return all that two valid versions hold; of different values the later one is taken.

    The result does not depend on the order of the two. ``base`` is their common older version.
    """
    times = [number(version.get(LATEST[kind])) for version in (first, second)]
    older, newer = sorted((first, second), key=lambda version: (number(version.get(LATEST[kind])), _weight(version)))
    choose = _heavier if times[0] == times[1] else _newer
    if kind is Kind.CONVERSATION:
        return _conversation(newer, older, base, choose)
    return {
        **_merged(newer, older, base, choose),
        "sessions": _sessions(newer, older, base, choose),
    }


def with_sessions_of(value: Value, older: Value) -> Value:
    """Return a workspace with the sessions, traces and states of an older version that it lacks."""
    return {**value, "sessions": _sessions(value, older, None, _newer)}


def _sessions(newer: Value, older: Value, base: Value | None, choose: Choice) -> Value:
    base_sessions = {} if base is None else sessions_of(base)
    newer_sessions, older_sessions = sessions_of(newer), sessions_of(older)

    def session(key: str) -> Value:
        before = base_sessions.get(key)
        return {
            **_merged(newer_sessions[key], older_sessions[key], before, choose),
            **{
                member: _merged(
                    part(newer_sessions[key]),
                    part(older_sessions[key]),
                    None if before is None else part(before),
                    choose,
                )
                for member, part in (("memoryTraces", traces_of), ("states", states_of))
            },
        }

    whole = _merged(newer_sessions, older_sessions, base_sessions, choose)
    return {
        key: session(key) if key in newer_sessions and key in older_sessions else session_value
        for key, session_value in whole.items()
    }


def _conversation(newer: Value, older: Value, base: Value | None, choose: Choice) -> Value:
    unclear = _unclear_ids(newer) | _unclear_ids(older) | (set() if base is None else _unclear_ids(base))
    newer_messages, older_messages = _by_id(newer, unclear), _by_id(older, unclear)
    known = None if base is None else _by_id(base, unclear)
    messages = list(_merged(newer_messages, older_messages, known, choose).values())
    if not older_messages.keys() <= newer_messages.keys():
        messages.sort(key=lambda message: number(message.get("timestamp")))
    return {**_merged(newer, older, base, choose), "messages": messages, "message_count": len(messages)}


def _message_ids(conversation: Value) -> Counter[str]:
    return Counter(str(message.get("id")) for message in messages_of(conversation))


def _unclear_ids(conversation: Value) -> set[str]:
    """Return the ids that several messages have, and that of messages without an id."""
    return {str(None), *(id_ for id_, count in _message_ids(conversation).items() if count > 1)}


def _by_id(conversation: Value, unclear: Collection[str]) -> dict[str, Value]:
    """Return the messages by id. Messages without a clear id are known by their content, so all of them are kept."""
    messages: dict[str, Value] = {}
    for message in messages_of(conversation):
        key = str(message.get("id"))
        if key in unclear:
            key += f" {javascript.stringify(message).decode()}"
        while key in messages:
            key += "'"
        messages[key] = message
    return messages


def _merged(newer: Value, older: Value, base: Value | None, choose: Choice) -> Value:
    """Merge the members of both by name."""
    members: Value = {}
    known = base or {}
    for key in dict.fromkeys((*newer, *older)):
        if key in newer and key in older:
            newer_value, older_value = newer[key], older[key]
            if key in known and newer_value != older_value and known[key] in (newer_value, older_value):
                members[key] = older_value if known[key] == newer_value else newer_value
            else:
                members[key] = choose(newer_value, older_value)
            continue
        value = newer[key] if key in newer else older[key]
        if key not in known or known[key] != value:
            members[key] = value
    return members


def _newer(newer: Any, _older: Any) -> Any:
    return newer


def _heavier(newer: Any, older: Any) -> Any:
    """Return one of two equally old values; the choice is the same at each place and in each run."""
    return max(newer, older, key=_weight)


def _weight(value: Any) -> tuple[int, bytes]:
    content = javascript.stringify(value)
    return len(content), content


def merge_event_files(path: str, store: bytes, workspace: bytes) -> bytes | Fault:
    """Merge two event files. A file that has all events of the other is taken as a whole, the longer one if both have.

    Otherwise both tails are merged by event. Events that differ, or conflict markers of git, are a fault: only a person
    can decide.
    """
    first, second = read_events(store), read_events(workspace)
    whole = [
        content
        for content, file, other in ((store, first, second), (workspace, second, first))
        if is_held_by(other, file)
    ]
    if whole:
        return max(whole, key=lambda content: (len(content), content))
    if different := clashing(first, second):
        return Fault(path, f"events that differ between the sides: {some(different)}", "one version of each event")
    both = merge(first, second)
    if both is None:
        problem = "git conflict markers, and different events on both sides"
        return Fault(path, problem, "one JSON object in each line")
    return both


def loses_events(before: bytes, after: bytes) -> bool:
    """Tell whether an event file has lost events, which its program never removes."""
    return lacks_events(read_events(before), read_events(after))


def merge_items(kind: Kind, name: str, store: bytes, workspace: bytes) -> bytes | None:
    """Merge all sessions, traces, states or messages of both; of different values the later one is taken.

    The program writes whole files without a lock, so each of two edited versions may lack entries of the other
    (docs/design/formats/claudesidian.md#c6); the newest alone would lose them. As a consequence an entry that one side
    has deleted is restored. None: the records have different ids, or bytes that the program has not written.
    """
    first, second = (read_item(kind, name, content) for content in (store, workspace))
    if isinstance(first, Fault) or isinstance(second, Fault) or first.id != second.id:
        return None
    if not (_is_exact(first, store) and _is_exact(second, workspace)):
        return None
    return javascript.stringify(merged_values(kind, first.value, second.value))


def loses_entries(kind: Kind, name: str, before: bytes, after: bytes) -> bool:
    """Tell whether an edit has lost sessions, traces, states or messages.

    The program may have deleted them, or have written the file back as it was before another process added them.
    Nothing in the file distinguishes the two, so they count as lost.
    """
    old, new = (read_item(kind, name, content) for content in (before, after))
    return not isinstance(old, Fault) and not isinstance(new, Fault) and loses_values(old, new)


def loses_values(old: Item, new: Item) -> bool:
    """Tell whether a version lacks sessions, traces, states or messages of another one."""
    if new.kind is Kind.WORKSPACE:
        return bool(lacking(new.value, old.value))
    return not _message_ids(old.value) <= _message_ids(new.value)


def _is_exact(item: Item, content: bytes) -> bool:
    return javascript.stringify(item.value) == content
