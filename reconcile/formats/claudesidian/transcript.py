"""Claudesidian's records as turns: messages and their tool calls, the traces and states of sessions, and events.

See docs/design/formats/claudesidian.md for the members. Times are numbers of milliseconds there.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from reconcile.formats.claudesidian.events import Event, read_events
from reconcile.formats.claudesidian.record_files import Kind
from reconcile.formats.claudesidian.vault import Place, Role, place_of
from reconcile.formats.reading import (
    about_of,
    as_json,
    code,
    details_of,
    encodable,
    fenced,
    file_transcript,
    in_line,
    key_of,
    listed,
    millisecond_time,
    never_failing,
    paragraphs,
    parsed,
    turn,
)
from reconcile.model.transcript import Speaker, Transcript, Turn

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Value = dict[str, Any]

_ROLES = {"user": Speaker.USER, "assistant": Speaker.ASSISTANT, "tool": Speaker.TOOL, "system": Speaker.SYSTEM}
_TIMES = ("created", "updated", "lastAccessed")
_SHOWN = (
    "role",
    "content",
    "timestamp",
    "reasoning",
    "toolCalls",
    "tool_calls",
    "toolName",
    "toolParams",
    "toolResult",
)
"""The keys of a message that its text shows."""


@never_failing
def transcript(conversation: str, contents: Mapping[str, bytes]) -> Transcript:
    """Return the readable form of a record: a conversation, a workspace, a file of events, or any other file."""
    content = contents.get("")
    if content is None:
        return file_transcript(contents)
    match place_of(conversation):
        case Place(Role.EVENTS):
            return _events(content)
        case Place(Role.RECORD | Role.BACKUP, kind, name):
            read = parsed(content)
            if not isinstance(read.value, dict):
                return Transcript(None, notes=(encodable(f"{name}: {read.problem or 'not an object'}"),))
            return _conversation(read.value) if kind is Kind.CONVERSATION else _workspace(read.value)
        case _:
            return file_transcript(contents)


def _conversation(value: Value) -> Transcript:
    messages = value.get("messages")
    turns = (_message(number, each) for number, each in enumerate(messages if isinstance(messages, list) else [], 1))
    return Transcript(_text_or_none(value.get("title")), _about(value, ("title", "messages")), tuple(turns))


def _about(value: Value, without: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    readable = {name: millisecond_time(member) if name in _TIMES else member for name, member in value.items()}
    return about_of(readable, without)


def _message(position: int, value: object, event: Event | None = None) -> Turn:
    message = _dict(value)
    role = message.get("role")
    speaker = _ROLES.get(role, Speaker.SYSTEM) if isinstance(role, str) else Speaker.SYSTEM
    text = paragraphs(
        _quoted_reasoning(message.get("reasoning")),
        _text(message.get("content")),
        *(_tool_call(each) for each in _list(message.get("toolCalls", message.get("tool_calls")))),
        _tool_use(message),
    )
    time = message.get("timestamp", None if event is None else event.value.get("timestamp"))
    key = key_of(value if event is None else event.value)
    return turn(position, speaker, "message", time, text, key, details_of(message, _SHOWN))


def _quoted_reasoning(reasoning: object) -> str:
    return "" if reasoning in (None, "") else paragraphs("*Reasoning:*", _text(reasoning))


def _tool_call(value: object) -> str:
    call = _dict(value)
    function = _dict(call.get("function"))
    name = in_line(call.get("name") or function.get("name") or "?")
    arguments = function.get("arguments", call.get("arguments", call.get("parameters")))
    given = parsed(arguments.encode(errors="surrogatepass")).value if isinstance(arguments, str) else arguments
    shown = listed(given) if isinstance(given, dict) else _text(arguments)
    parts = [f"Calls the tool {code(name)}.", shown]
    if "result" in call or "error" in call:
        failed = call.get("success") is False or call.get("error")
        parts += [
            "The tool failed:" if failed else "The tool returned:",
            _block(call.get("error") or call.get("result")),
        ]
    return paragraphs(*parts)


def _tool_use(message: Value) -> str:
    """Return the call of a message that is one itself, as older versions wrote it."""
    name = message.get("toolName")
    if not name:
        return ""
    parts = [f"Calls the tool {code(in_line(name))}.", listed(_dict(message.get("toolParams")))]
    if "toolResult" in message:
        parts += ["The tool returned:", _block(message["toolResult"])]
    return paragraphs(*parts)


def _block(value: object) -> str:
    return fenced(value) if isinstance(value, str) else as_json(value)


def _workspace(value: Value) -> Transcript:
    turns: list[Turn] = []
    for session_id, each in _dict(value.get("sessions")).items():
        session = _dict(each)
        own = {name: member for name, member in session.items() if name not in ("memoryTraces", "states")}
        text = paragraphs(f"**{in_line(session.get('name', session_id))}**", _text(session.get("description")))
        details = details_of(own, ("name", "description", "startTime"))
        key = key_of([session_id, own])
        turns.append(turn(len(turns) + 1, Speaker.SYSTEM, "session", session.get("startTime"), text, key, details))
        turns += _in_session(len(turns) + 1, session)
    return Transcript(_text_or_none(value.get("name")), _about(value, ("name", "sessions")), tuple(turns))


def _in_session(position: int, session: Value) -> Iterator[Turn]:
    """Yield the traces and the states of a session, in the order of the file."""
    for trace_id, each in _dict(session.get("memoryTraces")).items():
        trace = _dict(each)
        kind = in_line(trace.get("type") or "trace")
        details = details_of(trace, ("content", "timestamp", "type"))
        content, key = _text(trace.get("content")), key_of([trace_id, each])
        yield turn(position, Speaker.ASSISTANT, kind, trace.get("timestamp"), content, key, details)
        position += 1
    for state_id, each in _dict(session.get("states")).items():
        state = _dict(each)
        # A payload can hold whole workspaces, and those in turn their states.
        details = details_of(state, ("name", "created", "description"))
        text = paragraphs(f"**{in_line(state.get('name', state_id))}**", _text(state.get("description")))
        yield turn(position, Speaker.SYSTEM, "state", state.get("created"), text, key_of([state_id, each]), details)
        position += 1


def _events(content: bytes) -> Transcript:
    """Return the events of a file. The title is that of the newest event that states one."""
    file = read_events(content)
    title: str | None = None
    turns = []
    for position, event in enumerate(file.events, 1):
        for member in ("title", "name"):
            if event.type in ("metadata", "conversation_updated", "workspace_created", "workspace_updated"):
                title = _text_or_none(event.data.get(member)) or title
        if event.type == "message":
            turns.append(_message(position, event.data, event))
        else:
            turns.append(_event(position, event))
    notes = tuple(encodable(f"line {line.number}: {line.found}") for line in file.unreadable)
    return Transcript(title, turns=tuple(turns), notes=notes)


def _event(position: int, event: Event) -> Turn:
    data = {name: _unpacked(name, member) for name, member in event.data.items()}
    content = data.pop("content", "")
    text = paragraphs(_text(content), listed(data))
    details = details_of(event.value, ("type", "data", "timestamp"))
    return turn(position, Speaker.SYSTEM, event.type, event.value.get("timestamp"), text, key_of(event.value), details)


def _unpacked(name: str, member: object) -> object:
    """Return a member, with the object of a text of JSON."""
    if name.endswith("Json") and isinstance(member, str):
        return parsed(member.encode(errors="surrogatepass")).value or member
    return millisecond_time(member) if name in (*_TIMES, "startTime") else member


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else fenced(json.dumps(value, indent=2), "json")


def _text_or_none(value: object) -> str | None:
    return encodable(value) if isinstance(value, str) else None


def _dict(value: object) -> Value:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
