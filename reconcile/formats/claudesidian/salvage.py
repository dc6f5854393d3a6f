"""What can still be read of a file that ends too early: the program writes in place, over the old content.

See docs/design/formats/claudesidian.md#c2.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from reconcile.formats.claudesidian.record_files import Item, Kind, messages_of, read_item, sessions_of, traces_of
from reconcile.formats.claudesidian.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOKEN = re.compile(rb'\s*(?:(?P<sign>[{}\[\],:])|"(?P<text>(?:[^"\\]|\\.)*)"|[^\s{}\[\],:"]+)', re.DOTALL)
_CLOSING = {b"{": b"}", b"[": b"]"}


def salvage(kind: Kind, name: str, content: bytes) -> Item | None:
    """The record that is left when a torn file is cut after its last complete member, and closed."""
    shortened = _closed(kind, content)
    if shortened is None:
        return None
    item = read_item(kind, name, shortened)
    return item if isinstance(item, Item) else None


def contents(item: Item) -> str:
    """What a record holds, in a few words."""
    if item.kind is Kind.CONVERSATION:
        return counted(len(messages_of(item.value)), "message")
    sessions = sessions_of(item.value)
    traces = sum(len(traces_of(session)) for session in sessions.values())
    return f"{counted(len(sessions), 'session')} and {counted(traces, 'trace')}"


def _closed(kind: Kind, content: bytes) -> bytes | None:
    """The content up to the last place where a value was surely complete, with what is open closed."""
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
            # A number that ends the file may be half of one; what is before a comma is whole.
            yield (token.start() if sign == b"," else at), b"".join(reversed(opened))
        if not opened:
            return


def _is_between_entries(kind: Kind, path: list[bytes]) -> bool:
    """Tell whether a file may be cut in the container at this path: an entry that is cut off is none.

    It would otherwise stand in the place of the whole one that another version has.
    """
    if kind is Kind.CONVERSATION:
        return path in ([], [b"messages"])
    return path[:1] in ([], [b"sessions"]) and (len(path) < 3 or path[2:] in ([b"memoryTraces"], [b"states"]))
