"""The events of JP as turns: texts, reasoning, tool calls and inquiries (docs/design/formats/jp.md#events).

JP stores the arguments and results of tools, and all metadata of events, in base64. As in JP, a text that is not valid
base64 of UTF-8 is taken as it is (docs/design/formats/jp.md#base64).
"""

from __future__ import annotations

import binascii
from binascii import a2b_base64
from typing import TYPE_CHECKING, Any

from reconcile.formats.jp import times
from reconcile.formats.jp.files import BASE_FILE, EVENTS_FILE, METADATA_FILE
from reconcile.formats.reading import (
    about_of,
    as_json,
    code,
    decoded,
    details_of,
    encodable,
    fenced,
    file_turn,
    in_line,
    key_of,
    listed,
    never_failing,
    paragraphs,
    parsed,
    turn,
)
from reconcile.model.transcript import Speaker, Transcript, Turn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Element = dict[str, Any]


@never_failing
def transcript(contents: Mapping[str, bytes], *, any_text: bool = False) -> Transcript:
    """Return the readable form of a conversation's files.

    ``any_text``: events that are not in JP's form are shown as text. Otherwise a note says what is wrong with them.
    """
    notes: list[str] = []
    metadata = _metadata(contents, notes, any_text=any_text)
    title = metadata.get("title")
    if (base := contents.get(BASE_FILE)) is not None and (problem := parsed(base).problem) and not any_text:
        notes.append(f"{BASE_FILE}: {problem}")
    turns: tuple[Turn, ...] = ()
    if (content := contents.get(EVENTS_FILE)) is not None:
        turns = _turns(content, notes, any_text=any_text)
    known = encodable(title) if isinstance(title, str) else None
    return Transcript(known, about_of(metadata, ("title",)), turns, tuple(map(encodable, notes)))


def _metadata(contents: Mapping[str, bytes], notes: list[str], *, any_text: bool) -> Element:
    content = contents.get(METADATA_FILE)
    if content is None:
        return {}
    read = parsed(content)
    if isinstance(read.value, dict):
        return read.value
    if any_text and (text := decoded(content)) is not None:
        return {METADATA_FILE: text}
    notes.append(f"{METADATA_FILE}: {read.problem or 'not an object'}")
    return {}


def _turns(content: bytes, notes: list[str], *, any_text: bool) -> tuple[Turn, ...]:
    read = parsed(content)
    if isinstance(read.value, list):
        return tuple(_turn(position, event) for position, event in enumerate(read.value, 1))
    if any_text and content:
        return (file_turn(1, EVENTS_FILE, content),)
    if not any_text:
        notes.append(f"{EVENTS_FILE}: {read.problem or 'not an array of events'}")
    return ()


def _turn(position: int, event: object) -> Turn:
    if not isinstance(event, dict):
        return turn(position, Speaker.SYSTEM, "?", None, as_json(event), key_of(event))
    kind, time = event.get("type"), event.get("timestamp")
    word = kind if isinstance(kind, str) else "?"
    speaker, text = _READERS.get(word, _other)(event)
    shown = ("timestamp", "type", *_SHOWN.get(word, ()))
    # Without the details an unknown event would be shown twice.
    details = details_of(_decoded_metadata(event), shown) if word in _READERS else ""
    key = key_of({**event, "timestamp": times.comparable(time)} if isinstance(time, str) else event)
    return turn(position, speaker, word, time, text, key, details)


def _decoded_metadata(event: Element) -> Element:
    return event if "metadata" not in event else {**event, "metadata": decode(event["metadata"])}


def decode(value: Any) -> Any:
    """Return a value with its texts decoded from base64, at every depth. A text that isn't base64 stays as it is."""
    if isinstance(value, str):
        try:
            return a2b_base64(value.encode("ascii"), strict_mode=True).decode()
        except (binascii.Error, UnicodeError):
            return value
    if isinstance(value, list):
        return [decode(element) for element in value]
    if isinstance(value, dict):
        return {key: decode(element) for key, element in value.items()}
    return value


def _text(value: object) -> str:
    """Return a text as it is; other values, which JP would not read, as JSON."""
    return value if isinstance(value, str) else "" if value is None else as_json(value)


def _chat_request(event: Element) -> tuple[Speaker, str]:
    author = event.get("author")
    schema = event.get("schema")
    return Speaker.USER, paragraphs(
        f"*{in_line(author)}:*" if author else "",
        _text(event.get("content")),
        "" if schema is None else paragraphs("The answer must have this schema:", as_json(schema)),
    )


def _chat_response(event: Element) -> tuple[Speaker, str]:
    parts = []
    if "reasoning" in event:
        parts.append(paragraphs("*Reasoning:*", _text(event["reasoning"])))
    if "message" in event:
        parts.append(_text(event["message"]))
    if "data" in event:
        parts.append(as_json(event["data"]))
    return Speaker.ASSISTANT, paragraphs(*parts)


def _tool_call_request(event: Element) -> tuple[Speaker, str]:
    arguments = decode(event.get("arguments"))
    shown = listed(arguments) if isinstance(arguments, dict) else "" if arguments is None else as_json(arguments)
    return Speaker.ASSISTANT, paragraphs(f"Calls the tool {code(in_line(event.get('name', '?')))}.", shown)


def _tool_call_response(event: Element) -> tuple[Speaker, str]:
    content = decode(event.get("content"))
    shown = "" if content in ("", None) else fenced(content) if isinstance(content, str) else as_json(content)
    head = (
        "The tool failed:" if event.get("is_error") else "The tool returned:" if shown else "The tool returned nothing."
    )
    return Speaker.TOOL, paragraphs(head, shown)


def _inquiry_request(event: Element) -> tuple[Speaker, str]:
    source, question = event.get("source"), event.get("question")
    name = source.get("name", source.get("source")) if isinstance(source, dict) else source
    head = "Asks:" if name is None else f"The tool {code(in_line(name))} asks:"
    if not isinstance(question, dict):
        return Speaker.TOOL, paragraphs(head, _text(question))
    rest = {key: value for key, value in question.items() if key != "text"}
    return Speaker.TOOL, paragraphs(head, _text(question.get("text")), listed(rest))


def _inquiry_response(event: Element) -> tuple[Speaker, str]:
    answer = event.get("answer")
    if isinstance(answer, bool):
        return Speaker.USER, "Answer: yes" if answer else "Answer: no"
    if isinstance(answer, str):
        return Speaker.USER, f"Answer: {answer}"
    return Speaker.USER, paragraphs("Answer:", as_json(answer))


def _config_delta(event: Element) -> tuple[Speaker, str]:
    # The first event of an older stream has the whole configuration, so only its keys are shown.
    delta = event.get("delta")
    keys = delta if isinstance(delta, dict) else event.keys() - {"timestamp", "type", "delta"}
    return Speaker.SYSTEM, f"Sets the configuration: {', '.join(sorted(map(in_line, keys))) or 'nothing'}"


def _compaction(event: Element) -> tuple[Speaker, str]:
    turns = f"turns {in_line(event.get('from_turn', '?'))} to {in_line(event.get('to_turn', '?'))}"
    summary = event.get("summary")
    return Speaker.SYSTEM, paragraphs(f"Replaces {turns} by a summary:", _text(summary))


def _turn_start(event: Element) -> tuple[Speaker, str]:  # noqa: ARG001
    return Speaker.SYSTEM, ""


def _other(event: Element) -> tuple[Speaker, str]:
    rest = {key: value for key, value in event.items() if key not in ("timestamp", "type")}
    return Speaker.SYSTEM, as_json(rest) if rest else ""


_READERS: dict[str, Callable[[Element], tuple[Speaker, str]]] = {
    "turn_start": _turn_start,
    "chat_request": _chat_request,
    "chat_response": _chat_response,
    "tool_call_request": _tool_call_request,
    "tool_call_response": _tool_call_response,
    "inquiry_request": _inquiry_request,
    "inquiry_response": _inquiry_response,
    "config_delta": _config_delta,
    "compaction": _compaction,
}
_SHOWN = {
    "chat_request": ("content", "schema", "author"),
    "chat_response": ("message", "reasoning", "data"),
    "tool_call_request": ("name", "arguments"),
    "tool_call_response": ("content", "is_error"),
    "inquiry_request": ("source", "question"),
    "inquiry_response": ("answer",),
    "compaction": ("from_turn", "to_turn", "summary"),
}
"""The keys that a turn's text shows; the others are its details."""
