"""The short notation for what JP writes: ``title "A" parent 1`` and ``[1 2 3x] b2`` to the very bytes, and back."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.support.scenarios.line_reader import ScenarioError, Words, show_time

if TYPE_CHECKING:
    from collections.abc import Mapping

METADATA = "metadata.json"
BASE = "base_config.json"
EVENTS = "events.json"

_ACTIVE = "2025-01-01 00:00:00.0"
_EVENT = re.compile(r"(\d+)([a-z]*)")
_LEADING = ("legacy", "twice")
"""The forms whose first element is the base configuration."""
_BASE = r"b(\d+)(?:@(\S+))?(?=\s|$)"
_ID = re.compile(r"jp-c(\d+|new\d*)")


def written(value: object) -> bytes:
    """Serialise as JP does (docs/design/formats/jp.md#bytes)."""
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def read_metadata(words: Words) -> bytes:
    """Read what follows ``metadata TIME`` and return the file."""
    value: dict[str, Any] = {"last_activated_at": _ACTIVE}
    local: dict[str, Any] = {}
    parent: dict[str, Any] = {}
    while word := words.peek():
        if words.take("title"):
            value = {"title": words.json("a title in quotes")} | value
        elif words.take("parent"):
            parent["parent_id"] = _read_parent(words)
        elif words.take("local"):
            local["local"] = True
        elif re.match(r"\w+=", word):
            key = words.match(r"(\w+)=", "a key")[1]
            value[key] = words.json("a JSON value")
        else:
            break
    return written(value | local | parent)


def _read_parent(words: Words) -> object:
    """``parent 1``, ``parent null``, or any JSON after ``parent raw``."""
    if words.take("raw"):
        return words.json("the parent as JSON")
    if words.take("null"):
        return None
    return "jp-c" + words.match(r"(\d+|new\d*)(?=\s|$)", "an id such as 1")[1]


def show_metadata(content: bytes) -> str | None:
    """Write a metadata file as `read_metadata` reads it; None where that doesn't give these bytes."""
    try:
        value = json.loads(content)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    words = []
    for key, part in value.items():
        if key == "title":
            words.append(f"title {json.dumps(part, ensure_ascii=False)}")
        elif key == "parent_id":
            words.append(f"parent {_show_parent(part)}")
        elif key == "local" and part is True:
            words.append("local")
        elif (key, part) != ("last_activated_at", _ACTIVE):
            words.append(f"{key}={json.dumps(part, ensure_ascii=False)}")
    text = " ".join(words)
    return text if _reads_as(text, content) else None


def _reads_as(text: str, content: bytes) -> bool:
    try:
        words = Words(text)
        return read_metadata(words) == content and not words.peek()
    except ScenarioError:
        return False


def _show_parent(value: object) -> str:
    match = _ID.fullmatch(value) if isinstance(value, str) else None
    if match is not None:
        return match[1]
    return "null" if value is None else f"raw {json.dumps(value)}"


@dataclass(frozen=True, slots=True)
class StreamText:
    """A stream as it is written in a listing: ``[legacy|nobase|twice] [EVENTS] [bN[@TIME]]``."""

    events: str
    base: int = 0
    form: str = ""
    base_time: int | None = None

    def files(self) -> dict[str, bytes]:
        """Return the files that it stands for."""
        elements = [_element(event) for event in self.events.split()]
        if self.form in _LEADING:
            elements.insert(0, _leading_base(self.base))
        files = {EVENTS: written(elements)}
        return files if self.form in ("legacy", "nobase") else {BASE: written(_config(self.base))} | files

    def __str__(self) -> str:
        base = f"b{self.base}" if self.base else ""
        if self.base_time is not None:
            base = f"b{self.base}@{show_time(self.base_time)}"
        return " ".join(part for part in (self.form, f"[{self.events}]", base) if part)


def read_stream(words: Words) -> StreamText:
    """Read what follows ``stream TIME``."""
    form = next((form for form in ("legacy", "nobase", "twice") if words.take(form)), "")
    events = words.match(r"\[([^\]]*)\]", "events such as [1 2 3]")[1].split()
    if wrong := [event for event in events if not _EVENT.fullmatch(event)]:
        raise ScenarioError(f"found the event {wrong[0]!r}, expected a number, or one and a letter: 3x")
    if not re.match(r"b\d", words.peek()):
        return StreamText(" ".join(events), 0, form)
    number, time = words.match(_BASE, "a base configuration such as b2").groups()
    base_time = Words(time).time() if time else None
    return StreamText(" ".join(events), int(number), form, base_time)


def show_stream(files: Mapping[str, bytes], base_time: int | None) -> StreamText | None:
    """Find the notation of these stream files; None where there is none."""
    try:
        elements = json.loads(files[EVENTS])
        form = "" if BASE in files else "nobase"
        base = json.loads(files[BASE]).get("base", 0) if BASE in files else 0
        if elements and elements[0]["type"] == "config_delta":
            form, base = "legacy" if form else "twice", elements[0]["delta"].get("base", 0)
        events = " ".join(element["content"].removeprefix("Message ") for element in elements[form in _LEADING :])
        text = StreamText(events, base, form, base_time)
        return text if text.files() == dict(files) else None
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _element(event: str) -> dict[str, str]:
    match = _EVENT.fullmatch(event)
    if match is None:
        raise ValueError(event)
    return {"timestamp": _timestamp(int(match[1])), "type": "chat_request", "content": f"Message {event}"}


def _leading_base(base: int) -> dict[str, Any]:
    return {"type": "config_delta", "timestamp": _timestamp(0), "delta": _config(base)}


def _config(base: int) -> dict[str, int]:
    return {"base": base} if base else {}


def _timestamp(number: int) -> str:
    return f"2025-01-01 {number // 60:02}:{number % 60:02}:00.0"
