"""Sessions of Claude Code as turns: prompts, replies, calls of tools and their results.

See docs/design/formats/claude-code.md#lines. Lines without a message are the program's own, and are left out.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from reconcile.formats.claude_code.lines import Titles, parsed, raw_lines
from reconcile.formats.reading import (
    as_json,
    code,
    details_of,
    fenced,
    file_transcript,
    in_line,
    key_of,
    listed,
    never_failing,
    paragraphs,
    turn,
)
from reconcile.model.transcript import Speaker, Transcript, Turn

if TYPE_CHECKING:
    from collections.abc import Mapping

Value = dict[str, Any]

_SHOWN = ("type", "message", "timestamp", "toolUseResult")
"""The members of a line that its turn shows; the result of a tool is in its message, too."""


@never_failing
def transcript(conversation: str, contents: Mapping[str, bytes]) -> Transcript:
    """Return the readable form of a session or a subagent; of any other file, its text."""
    content = contents.get("")
    if content is None or not conversation.endswith(".jsonl"):
        return file_transcript(contents)
    titles, turns, notes, about = Titles(), [], [], dict[str, str]()
    for number, (raw, _) in enumerate(raw_lines([content]), 1):
        line, value = parsed(raw), _object(raw)
        if line is None or value is None:
            notes.append(f"line {number}: no JSON object")
            continue
        titles.add(line)
        about |= {name: in_line(value[name]) for name in ("cwd", "gitBranch", "version") if value.get(name)}
        if isinstance(message := value.get("message"), dict) and isinstance(value.get("uuid"), str):
            turns.append(_turn(number, value, message))
    return Transcript(titles.title, tuple(about.items()), tuple(turns), tuple(notes))


def _object(raw: bytes) -> Value | None:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _turn(number: int, value: Value, message: Value) -> Turn:
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    is_result = any(isinstance(part, dict) and part.get("type") == "tool_result" for part in parts)
    speaker = Speaker.TOOL if is_result else _SPEAKERS.get(str(message.get("role")), Speaker.SYSTEM)
    text = paragraphs(*(_part(part) for part in parts))
    kind = in_line(value.get("type") or "message")
    return turn(number, speaker, kind, value.get("timestamp"), text, key_of(value), details_of(value, _SHOWN))


_SPEAKERS = {"user": Speaker.USER, "assistant": Speaker.ASSISTANT}


def _part(part: object) -> str:
    """Return one part of a message in Markdown; a part of an unknown kind as JSON."""
    match part:
        case {"type": "text", "text": text}:
            return text if isinstance(text, str) else ""
        case {"type": "thinking", "thinking": str(text)}:
            return paragraphs("*Reasoning:*", text) if text else ""
        case {"type": "tool_use", "name": name, "input": given}:
            shown = listed(given) if isinstance(given, dict) else as_json(given)
            return paragraphs(f"Calls the tool {code(in_line(name))}.", shown)
        case {"type": "tool_result", "content": result, **others}:
            heading = "The tool failed:" if others.get("is_error") else "The tool returned:"
            inner = result if isinstance(result, list) else None
            shown = fenced(result) if isinstance(result, str) else paragraphs(*map(_part, inner or ()))
            return paragraphs(heading, shown)
        case {"type": "image" | "document" as kind}:
            return f"*({kind})*"
        case _:
            return as_json(part)
