"""How values pass through SQLite: text that is no UTF-8, and structs (docs/safety.md#the-state)."""

from __future__ import annotations

import json
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence


def encoding(rows: Iterable[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    """Rows as SQLite takes them, one at a time. Names that are no UTF-8 (PEP 383's lone surrogates) become blobs."""
    return (tuple(map(_encode, row)) for row in rows)


def encoded(rows: Iterable[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """The same rows, all of them."""
    return list(encoding(rows))


def select(connection: sqlite3.Connection, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """All rows of a query, with every blob turned back into the text that `encoded` made it of."""
    rows = connection.execute(sql, tuple(map(_encode, parameters))).fetchall()
    # One pass over the types: blobs are rare, and a call for each value is what a big read would cost most.
    if bytes in set(map(type, chain.from_iterable(rows))):
        return [tuple(map(_decode, row)) for row in rows]
    return rows


def as_json(value: object) -> str:
    """Plain values and structs as JSON without spaces, for a column; text that is no UTF-8 is escaped."""
    import msgspec  # here: a run with nothing to do writes none

    try:
        return msgspec.json.encode(value, order="deterministic").decode()
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value, order="deterministic"), separators=(",", ":"))


def _encode(value: object) -> object:
    if not isinstance(value, str) or value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogatepass")
    return value


def _decode(value: object) -> object:
    return value.decode("utf-8", "surrogatepass") if isinstance(value, bytes) else value
