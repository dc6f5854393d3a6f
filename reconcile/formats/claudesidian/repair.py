"""Repairs of records: the readable part of a truncated file, and values with missing members added.

See docs/design/formats/claudesidian.md#c2. The program overwrites files in place, so a file can be truncated.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from reconcile.formats.claudesidian.finding import counted
from reconcile.formats.claudesidian.record_files import (
    Item,
    Kind,
    messages_of,
    payload_of,
    read_item,
    sessions_of,
    states_of,
    traces_of,
)
from reconcile.formats.json import javascript

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from reconcile.formats.claudesidian.record_files import Value


def rewritten(content: bytes, value: Value, changed: Value) -> bytes | None:
    """Return the bytes of a changed value, if the unchanged value has those of the file.

    See docs/design/decisions.md#rule-18.
    """
    return javascript.stringify(changed) if javascript.stringify(value) == content else None


def with_count(value: Value) -> Value:
    """Return a conversation whose `message_count` is the number of its messages."""
    return {**value, "message_count": len(messages_of(value))}


def completed(value: Value) -> Value:
    """Return a workspace with all members that the program's rebuild requires.

    See docs/design/formats/claudesidian.md#edge-case-13.
    """
    sessions = {
        key: {**session, "memoryTraces": traces_of(session), "states": states_of(session)}
        for key, session in sessions_of(value).items()
    }
    return {**value, "sessions": sessions}


def indexed_form(item: Item) -> Value:
    """Return the record in the form from which the index is derived."""
    return with_count(item.value) if item.kind is Kind.CONVERSATION else completed(item.value)


def embedded(value: Mapping[str, Any]) -> Iterator[tuple[str, Value]]:
    """Yield the copies of the workspace in its own states, with the ids of the states.

    Only the first level: the states of a copy hold earlier copies, dozens of levels deep, 2 ** n in number
    (docs/design/formats/claudesidian.md#edge-case-16).
    """
    for session in sessions_of(value).values():
        for id_, state in states_of(session).items():
            copy = _copy_in(state)
            if copy is not None and copy.get("id") == value["id"]:
                yield id_, copy


def pruned(value: Value) -> Value:
    """Return the workspace without the sessions of the copies in its states."""
    return {**value, "sessions": {key: _pruned_session(session) for key, session in sessions_of(value).items()}}


def lacking(value: Value, other: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the ids of sessions, traces and states of another version that this workspace lacks."""
    missing: dict[str, list[str]] = {"session": [], "trace": [], "state": []}
    own_sessions = sessions_of(value)
    for key, session in sessions_of(other).items():
        if key not in own_sessions:
            missing["session"].append(key)
        own = own_sessions.get(key, {})
        for what, part in (("trace", traces_of), ("state", states_of)):
            known = part(own)
            missing[what] += [entry_id for entry_id in part(session) if entry_id not in known]
    return {what: ids for what, ids in missing.items() if ids}


def _copy_in(state: Mapping[str, Any]) -> Value | None:
    inner = (payload_of(state) or {}).get("state")
    copy = inner.get("workspace") if isinstance(inner, dict) else None
    if not isinstance(copy, dict) or not _can_be_traversed(copy):
        return None
    return copy


def _can_be_traversed(copy: Value) -> bool:
    """Tell whether a copy in a state has a valid shape: unlike a file it has not passed `read_item`.

    Its entries may be put into the workspace, so they must be objects too.
    """
    sessions = copy.get("sessions") or {}
    return _holds_objects(sessions) and all(
        _holds_objects(session.get(member) or {})
        for session in sessions.values()
        for member in ("memoryTraces", "states")
    )


def _holds_objects(container: object) -> bool:
    return isinstance(container, dict) and all(isinstance(member, dict) for member in container.values())


def _pruned_session(session: Value) -> Value:
    states = states_of(session)
    if not any(_copy_in(state) is not None for state in states.values()):
        return session
    return {**session, "states": {key: _pruned_state(state) for key, state in states.items()}}


def _pruned_state(state: Value) -> Value:
    copy = _copy_in(state)
    if copy is None:
        return state
    member = "state" if "state" in state else "snapshot"
    envelope = state[member]
    inner = {**envelope["state"], "workspace": {**copy, "sessions": {}}}
    return {**state, member: {**envelope, "state": inner}}


_TOKEN = re.compile(rb'\s*(?:(?P<sign>[{}\[\],:])|"(?P<text>(?:[^"\\]|\\.)*)"|[^\s{}\[\],:"]+)', re.DOTALL)
_CLOSING = {b"{": b"}", b"[": b"]"}


def salvage(kind: Kind, name: str, content: bytes) -> Item | None:
    """Return the record that is left when a truncated file is cut after its last complete member, and closed."""
    shortened = _closed(kind, content)
    if shortened is None:
        return None
    item = read_item(kind, name, shortened)
    return item if isinstance(item, Item) else None


def contents(item: Item) -> str:
    """Return the content of a record in a few words."""
    if item.kind is Kind.CONVERSATION:
        return counted(len(messages_of(item.value)), "message")
    sessions = sessions_of(item.value)
    traces = sum(len(traces_of(session)) for session in sessions.values())
    return f"{counted(len(sessions), 'session')} and {counted(traces, 'trace')}"


def _closed(kind: Kind, content: bytes) -> bytes | None:
    """Return the content up to the last complete value, with the open containers closed."""
    cut, closing = 0, b""
    for cut, closing in _places(kind, content):  # noqa: B007 - the last one is wanted
        pass
    return content[:cut] + closing if cut else None


def _places(kind: Kind, content: bytes) -> Iterator[tuple[int, bytes]]:
    opened: list[bytes] = []
    names: list[bytes] = []
    at, last = 0, b""
    while (token := _TOKEN.match(content, at)) is not None:
        at = token.end()
        sign = token["sign"]
        if sign in _CLOSING:
            opened.append(_CLOSING[sign])
            names.append(last)
            last = b""
        elif opened and sign == opened[-1]:
            opened.pop()
            names.pop()
        elif sign != b",":
            last = token["text"] or last
            continue
        if _is_between_entries(kind, names[1:]):
            # A number at the end of the file may be truncated; a value before a comma is complete.
            yield (token.start() if sign == b"," else at), b"".join(reversed(opened))
        if not opened:
            return


def _is_between_entries(kind: Kind, path: list[bytes]) -> bool:
    """Tell whether a file may be cut in the container at this path: a truncated entry must not be kept.

    It would replace the complete entry that another version has.
    """
    if kind is Kind.CONVERSATION:
        return path in ([], [b"messages"])
    return path[:1] in ([], [b"sessions"]) and (len(path) < 3 or path[2:] in ([b"memoryTraces"], [b"states"]))
