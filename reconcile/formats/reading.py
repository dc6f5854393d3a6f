"""Markdown for the turns of a transcript, and files that are read for people: leniently, and never with an exception.

The strict readers decide whether content is valid. Here, invalid content is shown as far as it can be read.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec

from msgspec import Struct

from reconcile.formats.json import strict
from reconcile.model.transcript import Speaker, Transcript, Turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

P = ParamSpec("P")

_FENCE = re.compile(r"`{3,}")
_TICKS = re.compile(r"`+")
_LONGEST_IN_A_LIST = 200
"""Characters of a text that is shown in its line of a list."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def never_failing(read: Callable[P, Transcript]) -> Callable[P, Transcript]:
    """Return a reader that returns a note instead of failing on a value that is nested too deeply for Python."""

    @wraps(read)
    def reader(*args: P.args, **kwargs: P.kwargs) -> Transcript:
        try:
            return read(*args, **kwargs)
        except RecursionError:
            return Transcript(None, notes=("it is nested too deeply to be shown",))

    return reader


class Parsed(Struct, frozen=True):
    """The value of a JSON file, or the ``problem`` with it in words."""

    value: Any = None
    problem: str = ""


def parsed(content: bytes) -> Parsed:
    """Parse a JSON file."""
    try:
        return Parsed(json.loads(content))
    except (ValueError, RecursionError):
        try:
            strict.load(content)
        except (strict.InvalidContentError, ValueError, RecursionError) as error:
            return Parsed(problem=str(error))
        return Parsed(problem="invalid JSON")


def decoded(content: bytes) -> str | None:
    """Return a file as text; None if it is binary."""
    if b"\0" in content:
        return None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, without their ends. Only a newline ends one, perhaps behind a carriage return."""
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text else []


def key_of(value: object, extra: str = "") -> str:
    """Return a hash of a parsed value, which does not depend on the order of keys. ``extra`` is hashed too."""
    from hashlib import blake2b  # here, as below: most commands read no events

    content = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return blake2b(f"{extra}\n{content}".encode(errors="surrogatepass"), digest_size=16).hexdigest()


def turn(
    position: int,
    speaker: Speaker,
    kind: str,
    time: object,
    text: str,
    key: str,
    details: str = "",
) -> Turn:
    """Return a turn whose texts can be encoded, without blank lines at their ends."""
    known = time if isinstance(time, str) else millisecond_time(time)
    return Turn(
        position,
        speaker,
        encodable(kind),
        encodable(known),
        encodable(text).strip("\n").rstrip(),
        key,
        encodable(details),
    )


def encodable(text: str) -> str:
    """Return a text without lone surrogates, which JSON allows and UTF-8 can't encode; they are escaped."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


def millisecond_time(value: object) -> str:
    """Return a number of milliseconds since the epoch as a time in UTC; other values as text, None as empty text."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            moment = _EPOCH + timedelta(milliseconds=value)
        except (OverflowError, ValueError):
            return str(value)
        return moment.isoformat(sep=" ", timespec="milliseconds").replace("+00:00", "Z")
    return "" if value is None else in_line(value)


def in_line(value: object) -> str:
    """Return a value as text in one line: a text as it is, anything else as JSON."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return encodable(" ".join(text.split()) if isinstance(value, str) else text)


def fenced(text: str, language: str = "") -> str:
    """Return a text as a code block, with a fence that the text doesn't have."""
    ticks = "`" * max(3, 1 + max(map(len, _FENCE.findall(text)), default=2))
    return f"{ticks}{language}\n{text.rstrip(chr(10))}\n{ticks}"


def code(text: str) -> str:
    """Return a text as code in a line."""
    ticks = "`" * (1 + max(map(len, _TICKS.findall(text)), default=0))
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{space}{text}{space}{ticks}"


def as_json(value: object) -> str:
    """Return a value as a code block of JSON."""
    return fenced(json.dumps(value, ensure_ascii=False, indent=2), "json")


def listed(values: Mapping[str, Any]) -> str:
    """Return an object as a list with an item for each member; long texts and nested values as code blocks below."""
    items = []
    for name, value in values.items():
        if isinstance(value, str) and "\n" not in value and len(value) <= _LONGEST_IN_A_LIST:
            items.append(f"- {name}: {code(value) if value else '(empty)'}")
        elif isinstance(value, str):
            items.append(f"- {name}:\n\n{fenced(value)}\n")
        elif isinstance(value, (dict, list)) and value:
            items.append(f"- {name}:\n\n{as_json(value)}\n")
        else:
            items.append(f"- {name}: {json.dumps(value)}")
    return "\n".join(items)


def details_of(values: Mapping[str, Any], shown: Iterable[str] = ()) -> str:
    """Return the members that a turn's text doesn't show, one a line."""
    left_out = set(shown)
    return "\n".join(f"{name}: {in_line(value)}" for name, value in values.items() if name not in left_out)


def about_of(values: Mapping[str, Any], without: Iterable[str] = ()) -> tuple[tuple[str, str], ...]:
    """Return the members of an object as pairs for a heading; objects and lists that are empty are left out."""
    left_out = set(without)
    return tuple(
        (encodable(name), in_line(value))
        for name, value in values.items()
        if name not in left_out and value not in (None, {}, [], "")
    )


def paragraphs(*parts: str) -> str:
    """Return the parts that are not empty, with a blank line between them."""
    return "\n\n".join(part for part in parts if part)


def file_turn(position: int, name: str, content: bytes, kind: str = "file") -> Turn:
    """Return a whole file as one turn; the text of a binary file is its size."""
    from hashlib import blake2b

    text = decoded(content)
    key = blake2b(content, digest_size=16, person=name.encode(errors="surrogateescape")[:16]).hexdigest()
    shown = f"(binary, {len(content)} bytes)" if text is None else text
    return turn(position, Speaker.SYSTEM, kind, None, shown, key)


def file_transcript(contents: Mapping[str, bytes]) -> Transcript:
    """Return the transcript of files without known contents: each is a turn, whose kind is its name."""
    turns = (file_turn(position, name, contents[name], name or "file") for position, name in enumerate(contents, 1))
    return Transcript(None, turns=tuple(turns))
