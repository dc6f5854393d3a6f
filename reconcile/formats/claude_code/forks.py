"""A continuation as a session of its own, as the program's own fork makes it.

See docs/design/formats/claude-code.md#forks: a new id in the name of the file, and in the ``sessionId`` of every line.
All other bytes stay.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import TYPE_CHECKING
from uuid import UUID, uuid5

from msgspec.json import encode

from reconcile.formats.claude_code.lines import parsed
from reconcile.formats.jp.times import instant_ns

if TYPE_CHECKING:
    from reconcile.formats.claude_code.lines import Line
    from reconcile.model.format import EventSelection

_TITLES = ("custom-title", "ai-title", "summary")
_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]]')
_ID = re.compile(rb'"sessionId"\s*:\s*"(?P<id>[^"\\]*)"')


def forked(session: str, content: bytes) -> tuple[str, bytes]:
    """Return the id and the content of the fork of a session.

    The same content has the same id in every checkout and on every machine, so that a second run makes no other fork.
    """
    new = str(uuid5(UUID(session), blake2b(content, digest_size=16).hexdigest()))
    return new, with_session(content, session, new)


def with_session(content: bytes, session: str, new: str) -> bytes:
    """Return lines of a session, or of a subagent, with another id of the session."""
    return b"\n".join(_with_id(line, session.encode(), new.encode()) for line in content.split(b"\n"))


def cut(content: bytes, part: EventSelection) -> bytes:
    """Return the conversation lines up to the end of a part, as the program copies them, with the titles before it.

    Other lines are about the program's own runs of that session. A session needs all lines before its end: each names
    the one that it follows.

    Raises:
        ValueError: the part doesn't begin with the session, or it has no line.
    """
    if part.from_ns is not None or part.last is not None:
        raise ValueError("a part of a session begins with the session; name its end alone with --until")
    kept, end, is_found = list[bytes](), 0, part.event is None
    for raw in content.split(b"\n"):
        if (line := parsed(raw)) is None:
            continue
        if isinstance(line.uuid, str):
            if _is_after(line, part):
                break
            kept.append(raw)
            end = len(kept)
            if line.uuid == part.event:
                is_found = True
                break
        elif line.type in _TITLES:
            kept.append(raw)
    if not is_found:
        raise ValueError("no line has this uuid")
    if not end:
        raise ValueError("it has no line of the conversation up to there")
    return b"".join(raw + b"\n" for raw in (kept if part.whole else kept[:end]))


def _is_after(line: Line, part: EventSelection) -> bool:
    at_ns = instant_ns(line.timestamp) if part.until_ns is not None and isinstance(line.timestamp, str) else None
    return at_ns is not None and part.until_ns is not None and at_ns > part.until_ns


def title_line(title: str, session: str) -> bytes:
    """Return the line of a title that a person has typed."""
    return encode({"type": "custom-title", "customTitle": title, "sessionId": session}) + b"\n"


def _with_id(line: bytes, old: bytes, new: bytes) -> bytes:
    """Return a line with another id as its own ``sessionId``; an id in a value of the line stays."""
    for match in _ID.finditer(line):
        if match["id"] == old and _depth(line[: match.start()]) == 1:
            return line[: match.start("id")] + new + line[match.end("id") :]
    return line


def _depth(before: bytes) -> int:
    """Return how many objects and lists are open after these bytes; -1 inside of a string."""
    depth, end = 0, 0
    for token in _TOKENS.finditer(before):
        end = token.end()
        depth += {b"{": 1, b"[": 1, b"}": -1, b"]": -1}.get(token[0], 0)
    return -1 if b'"' in before[end:] else depth
