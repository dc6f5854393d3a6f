"""The facts of a session in a listing, from the beginning and the end of its file.

A session can have hundreds of megabytes. The first prompt is near its beginning, and the last branch, time and title
near its end. A title that a person gave in the middle of a long session is not seen there: a run has read it.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.formats.claude_code.lines import Titles, parsed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reconcile.formats.claude_code.lines import Line

FIRST = 4
"""Conversation lines at the beginning of a session by which its forks are found."""
_TITLES = (b"-title", b"summary")


class Ends(Struct, frozen=True):
    """Facts of a session. ``last`` is the time of its last line, as written, and ``first`` has its first uuids.

    ``newest`` is the title that a person gave in the last part; empty: none, so that an earlier one may count.
    """

    title: str | None
    newest: str
    branch: str
    last: str
    first: tuple[str, ...]


def ends_of(head: bytes, tail: bytes = b"") -> Ends:
    """Return the facts of a session by the first and the last bytes of its file; ``tail`` is empty if ``head`` is all.

    A line that is cut at the inner end of a part is left out.
    """
    if tail:
        head, tail = head[: head.rfind(b"\n") + 1], tail[tail.find(b"\n") + 1 :]
    titles, uuids = Titles(), list[str]()
    for line in _objects(_forwards(head)):
        titles.add(line)
        if isinstance(line.uuid, str):
            uuids.append(line.uuid)
        if titles.title and len(uuids) >= FIRST:
            break
    newest = ""
    for part in filter(None, (head, tail)):
        newest = ""
        if any(word in part for word in _TITLES):
            for line in _objects(raw for raw in part.split(b"\n") if any(word in raw for word in _TITLES)):
                if line.type != "user":
                    titles.add(line)
                if line.type == "custom-title":
                    newest = titles.custom
    branch = time = ""
    for line in _objects(chain(_backwards(tail), _backwards(head))):
        branch = branch or text_of(line.git_branch)
        time = time or text_of(line.timestamp)
        if branch and time:
            break
    return Ends(titles.title, newest, branch, time, tuple(uuids[:FIRST]))


def _forwards(part: bytes) -> Iterator[bytes]:
    begin = 0
    while begin < len(part):
        end = part.find(b"\n", begin)
        end = len(part) if end < 0 else end
        yield part[begin:end]
        begin = end + 1


def _backwards(part: bytes) -> Iterator[bytes]:
    end = len(part)
    while end > 0:
        begin = part.rfind(b"\n", 0, end) + 1
        yield part[begin:end]
        end = begin - 1


def _objects(lines: Iterable[bytes]) -> Iterator[Line]:
    return (line for raw in lines if (line := parsed(raw)) is not None)


def text_of(value: object) -> str:
    """Return a member of a line that should be a text; empty for anything else."""
    return value if isinstance(value, str) else ""
