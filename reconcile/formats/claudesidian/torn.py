"""What can still be read of a file that ends too early: the program writes in place, over the old content (C2)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from reconcile.formats.claudesidian.items import Item, Kind, messages_of, read_item, sessions_of, traces_of
from reconcile.formats.claudesidian.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOKEN = re.compile(rb'\s*(?:(?P<sign>[{}\[\],:])|"(?:[^"\\]|\\.)*"|[^\s{}\[\],:"]+)', re.DOTALL)
_CLOSING = {b"{": b"}", b"[": b"]"}


def salvage(kind: Kind, name: str, content: bytes) -> Item | None:
    """The record that is left when a torn file is cut after its last complete member, and closed."""
    shortened = _closed(content)
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


def _closed(content: bytes) -> bytes | None:
    """The content up to the last place where a value was surely complete, with what is open closed."""
    cut, closing = 0, b""
    for cut, closing in _places(content):  # noqa: B007 - the last one is wanted
        pass
    return content[:cut] + closing if cut else None


def _places(content: bytes) -> Iterator[tuple[int, bytes]]:
    opened: list[bytes] = []
    at = 0
    while (token := _TOKEN.match(content, at)) is not None:
        at = token.end()
        sign = token["sign"]
        if sign in _CLOSING:
            opened.append(_CLOSING[sign])
        elif opened and sign == opened[-1]:
            opened.pop()
        elif sign != b",":
            continue
        # A number that ends the file may be half of one; what is before a comma is whole.
        yield (token.start() if sign == b"," else at), b"".join(reversed(opened))
        if not opened:
            return
