"""A continuation as a session of its own, as the program's own fork makes it.

See docs/design/formats/claude-code.md#forks: a new id in the name of the file, and in the ``sessionId`` of every line.
All other bytes stay.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from uuid import UUID, uuid5

_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]]')
_ID = re.compile(rb'"sessionId"\s*:\s*"(?P<id>[^"\\]*)"')


def forked(session: str, content: bytes) -> tuple[str, bytes]:
    """Return the id and the content of the fork of a session.

    The same content has the same id in every checkout and on every machine, so that a second run makes no other fork.
    """
    new = str(uuid5(UUID(session), blake2b(content, digest_size=16).hexdigest()))
    return new, b"\n".join(_with_id(line, session.encode(), new.encode()) for line in content.split(b"\n"))


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
