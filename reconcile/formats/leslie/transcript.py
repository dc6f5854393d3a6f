"""Leslie's records as turns: operations and threads, objectives, lines of logs, and the files of a thread.

The transcripts in a thread's directory are read turn by turn (docs/design/formats/leslie.md#other-files).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from reconcile.formats.leslie.document import OBJECTIVES, RELATIONS
from reconcile.formats.reading import (
    about_of,
    decoded,
    details_of,
    encodable,
    file_transcript,
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
    from collections.abc import Iterator, Mapping

_LOGS = "logs/"
_TRANSCRIPTS = ".meta/transcripts/"
_OPERATORS = {"user": Speaker.USER, "agent": Speaker.ASSISTANT}
_STATUS_KEYS = ("id", "title", "updated_at", "created_at")
_PAIR = re.compile(r'(?<![^\s="])(?P<key>[^\s="]++)=(?P<value>"(?:[^"\\]|\\.)*"|\S*)')
_SAID_BY = re.compile(r"^(?P<who>user|assistant|tool|system):[ \t]*$", re.MULTILINE)


@never_failing
def transcript(conversation: str, contents: Mapping[str, bytes]) -> Transcript:
    """Return the readable form of a record: a control file, a log, the directory of a thread, or any other file."""
    content = contents.get("")
    if content is None:
        return _thread(conversation, contents)
    if conversation == RELATIONS:
        return _relations(content)
    if conversation == OBJECTIVES:
        return _objectives(content)
    if conversation.startswith(_LOGS) and (text := decoded(content)) is not None:
        return Transcript(None, turns=tuple(_log_lines(text)))
    return file_transcript(contents)


def _relations(content: bytes) -> Transcript:
    read = parsed(content)
    if not isinstance(read.value, dict):
        return Transcript(None, notes=(f"{RELATIONS}: {read.problem or 'not an object'}",))
    operations, threads, relations = (read.value.get(name) for name in ("operations", "threads", "relations"))
    turns = [_operation(number, entry) for number, entry in enumerate(_list(operations), 1)]
    related = relations if isinstance(relations, dict) else {}
    for name, thread in _dict(threads).items():
        turns.append(_thread_turn(len(turns) + 1, name, thread, related.get(name)))
    return Transcript(None, _heading(read.value), tuple(turns))


def _heading(document: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    metadata = document.get("metadata")
    own = {name: value for name, value in document.items() if not isinstance(value, (dict, list))}
    return about_of({**own, **(metadata if isinstance(metadata, dict) else {})})


def _operation(position: int, entry: object) -> Turn:
    if not isinstance(entry, dict):
        return turn(position, Speaker.SYSTEM, "?", None, in_line(entry), key_of(entry))
    operator, command, params = (entry.get(name) for name in ("operator", "command", "params"))
    given = {name: value for name, value in _dict(params).items() if value not in (None, [])}
    details = details_of(entry, ("timestamp", "command", "operator", "params"))
    speaker = _OPERATORS.get(operator, Speaker.SYSTEM) if isinstance(operator, str) else Speaker.SYSTEM
    return turn(position, speaker, in_line(command), entry.get("timestamp"), listed(given), key_of(entry), details)


def _thread_turn(position: int, name: str, thread: object, related: object) -> Turn:
    record = _dict(thread)
    rows = {key: value for key, value in record.items() if key not in _STATUS_KEYS and value not in (None, [], "")}
    rows |= {key: value for key, value in _dict(related).items() if value not in (None, [], "")}
    text = paragraphs(f"**{in_line(record.get('title', ''))}** ({name})", _short_list(rows))
    details = details_of(record, record.keys() - {"created_at"})
    return turn(position, Speaker.SYSTEM, "thread", record.get("updated_at"), text, key_of([thread, related]), details)


def _short_list(rows: Mapping[str, Any]) -> str:
    """Return a list in which arrays of texts are joined: most are of one or two ids."""
    joined = {key: ", ".join(map(in_line, value)) if isinstance(value, list) else value for key, value in rows.items()}
    return listed(joined)


def _objectives(content: bytes) -> Transcript:
    read = parsed(content)
    if not isinstance(read.value, dict):
        return Transcript(None, notes=(f"{OBJECTIVES}: {read.problem or 'not an object'}",))
    turns = []
    for position, (name, entry) in enumerate(_dict(read.value.get("objectives")).items(), 1):
        record = _dict(entry)
        rows = {key: value for key, value in record.items() if key not in _STATUS_KEYS}
        text = paragraphs(f"**{in_line(record.get('title', ''))}** ({name})", _short_list(rows))
        details = details_of(record, record.keys() - {"created_at"})
        time = record.get("updated_at")
        turns.append(turn(position, Speaker.SYSTEM, "objective", time, text, key_of([name, entry]), details))
    return Transcript(None, _heading(read.value), tuple(turns))


def _log_lines(text: str) -> Iterator[Turn]:
    """Yield the lines of a log: objects of JSON, pairs of logfmt, or text."""
    position = 0
    for line in text.split("\n"):
        if not line.strip():
            continue
        position += 1
        read = parsed(line.encode(errors="surrogatepass")) if line.startswith("{") else None
        if read is not None and isinstance(read.value, dict):
            values = read.value
        else:
            values = {match["key"]: _unquoted(match["value"]) for match in _PAIR.finditer(line)}
        time = values.get("timestamp", values.get("time"))
        kind = values.get("event", values.get("level"))
        if time is None and kind is None:
            yield turn(position, Speaker.SYSTEM, "line", None, line.rstrip("\r"), key_of(line))
            continue
        shown = {name: value for name, value in values.items() if name not in ("timestamp", "time", "event", "msg")}
        message = values.get("msg")
        text_ = paragraphs("" if message is None else in_line(message), listed(shown))
        yield turn(position, Speaker.SYSTEM, in_line(kind or "line"), time, text_, key_of(values))


def _unquoted(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value[1:-1]) if value.startswith('"') and value.endswith('"') else value


def _thread(conversation: str, contents: Mapping[str, bytes]) -> Transcript:
    """Return the files of a thread's directory, and the turns of its transcripts, which are last."""
    notes: list[str] = []
    turns: list[Turn] = []
    for name in sorted(contents, key=lambda name: (name.startswith(_TRANSCRIPTS), name)):
        text = decoded(contents[name])
        if name.startswith(_TRANSCRIPTS) and text is not None:
            turns += _said(len(turns) + 1, name.removeprefix(_TRANSCRIPTS), text)
        else:
            turns.append(file_turn(len(turns) + 1, name, contents[name], name))
    return Transcript(encodable(conversation.rpartition("/")[2]), turns=tuple(turns), notes=tuple(notes))


def _said(position: int, name: str, text: str) -> Iterator[Turn]:
    """Yield the heading of a transcript, and what each speaker says in it."""
    parts = _SAID_BY.split(text)
    yield turn(position, Speaker.SYSTEM, name, None, parts[0].strip().removesuffix("---"), key_of([name, parts[0]]))
    for number, (who, said) in enumerate(zip(parts[1::2], parts[2::2], strict=True), 1):
        key = key_of([name, who, said])
        yield turn(position + number, Speaker(who), "message", None, said.strip(), key)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
