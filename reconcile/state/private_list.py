"""The list of private conversations, a text file beside the database: they stay private if the database is lost.

The first line of ``local.jsonl`` has a number and the count of the other lines. Each of these is a conversation, as
JSON. For a local one it is the id. For one that was removed from a checkout it is an array of the id, the project and
the identity of that checkout. At every moment the list has all conversations that are private by the database or by a
transaction under way.

The number counts the transactions that change the set of private conversations, here and in the database:

* Before such a transaction commits, it writes and flushes the list with the next number. The list still has the
  conversations that the transaction makes public.
* After the commit the list is written again, without those.

All of that needs SQLite's write lock, so there is one writer. A higher number in the list means that the database isn't
the one that the list was written with: it is new, an old copy, or its transaction was killed. Then all listed
conversations become private. A higher number in the database means that the list has to be written again.

A list that can't be read is an error, never an empty list.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3

from msgspec import Struct

from reconcile.fs.paths import open_regular
from reconcile.state.connection import StateError, as_json, encoded_rows, select

NAME = "local.jsonl"
_ABOUT = "private conversations: no run copies them into a workspace; read again if state.sqlite is lost"
_FIRST = 1000
"""Bytes; the first line is shorter."""
_MOST = 1 << 62
"""The limit of the number: SQLite can still count from here."""
_HINT = "the file lists private conversations: correct that line, or delete the file if state.sqlite is whole"


Removed = tuple[str, str, str]
"""A conversation, with the project and the identity of the checkout from which it was removed."""


class Head(Struct, frozen=True):
    """The first line: the number of the last change, and the count of the lines that follow."""

    number: int
    count: int


def read_head(directory: str) -> Head | None:
    """Read the first line of a list; return None if there is no list. Raises `StateError`."""
    content = _content(directory, _FIRST)
    return None if content is None else _parsed_head(directory, content.partition(b"\n")[0])


def read(directory: str) -> tuple[Head, list[str | Removed]] | None:
    """Read a list; return None if there is none. Raises `StateError` if any part can't be read."""
    content = _content(directory, -1)
    if content is None:
        return None
    first, *lines = content.split(b"\n")
    head = _parsed_head(directory, first)
    if not lines or lines.pop():
        raise _unreadable(directory, "the last line is truncated")
    entries = [_parsed(directory, number, line) for number, line in enumerate(lines, 2)]
    if len(entries) != head.count:
        raise _unreadable(directory, f"{len(entries)} conversations instead of {head.count}")
    return head, entries


def list_number(connection: sqlite3.Connection) -> int:
    """Return the database's number of the last change of the private conversations."""
    (number,) = connection.execute("SELECT number FROM local_list").fetchone()
    return int(number)


def has_revoked(connection: sqlite3.Connection) -> bool:
    """Tell whether the list may have conversations that aren't private any more."""
    sql = "SELECT EXISTS (SELECT 1 FROM local_revoked) OR EXISTS (SELECT 1 FROM removed_revoked)"
    (exists,) = connection.execute(sql).fetchone()
    return bool(exists)


def write_ahead(connection: sqlite3.Connection, directory: str) -> bool:
    """Write the list before the commit if the transaction changed private conversations; tell whether it did.

    The list has those that are private before or after the transaction. Raises `OSError`: the transaction must not
    commit then.
    """
    (changed,) = connection.execute("SELECT changed FROM local_list").fetchone()
    if changed:
        connection.execute("UPDATE local_list SET number = number + 1, changed = 0")
        _write(connection, directory)
    return bool(changed)


def write_after(connection: sqlite3.Connection, directory: str) -> None:
    """Write the list after the commit, with the private conversations only. After a failure, a later call does it."""
    with contextlib.suppress(sqlite3.Error, OSError):
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.execute("DELETE FROM local_revoked")
            connection.execute("DELETE FROM removed_revoked")
            _write(connection, directory)
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")


def import_list(connection: sqlite3.Connection, head: Head, entries: list[str | Removed], now_ns: int) -> int:
    """Make all listed conversations private, in the caller's transaction; return how many were not."""
    before = _count(connection)
    sql = "INSERT INTO intent_local VALUES (?, NULL, NULL, NULL) ON CONFLICT DO NOTHING"
    connection.executemany(sql, encoded_rows((entry,) for entry in entries if isinstance(entry, str)))
    removed = [entry for entry in entries if not isinstance(entry, str)]
    sql = "INSERT INTO checkout (project, identity, first_seen, last_seen) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
    connection.executemany(sql, encoded_rows({(*checkout, now_ns, now_ns) for _, *checkout in removed}))
    connection.executemany(
        """INSERT INTO intent SELECT id, ?1, 'removed', NULL, NULL, NULL FROM checkout
        WHERE project = ?2 AND identity = ?3
        ON CONFLICT DO UPDATE SET kind = excluded.kind, waits_for = NULL, place = NULL, run = NULL
        WHERE kind <> excluded.kind""",
        encoded_rows(removed),
    )
    connection.execute("UPDATE local_list SET number = max(number, ?), changed = 1", (head.number,))
    return _count(connection) - before


def _count(connection: sqlite3.Connection) -> int:
    sql = "SELECT (SELECT count(*) FROM intent_local) + (SELECT count(*) FROM intent WHERE kind = 'removed')"
    (count,) = connection.execute(sql).fetchone()
    return int(count)


def mark_for_rewrite(connection: sqlite3.Connection) -> None:
    """Make the caller's transaction write the list, which is missing, outdated or of another database."""
    connection.execute("UPDATE local_list SET changed = 1")


def _write(connection: sqlite3.Connection, directory: str) -> None:
    from reconcile.fs.durability import fsync_directory
    from reconcile.fs.private_files import replace_private_file

    sql = "SELECT conversation FROM intent_local UNION SELECT conversation FROM local_revoked ORDER BY 1"
    lines = [as_json(conversation) for (conversation,) in select(connection, sql)]
    sql = """SELECT conversation, project, identity FROM intent JOIN checkout ON checkout.id = checkout
        WHERE kind = 'removed' UNION SELECT conversation, project, identity FROM removed_revoked ORDER BY 1, 2, 3"""
    lines += [as_json(row) for row in select(connection, sql)]
    head = {"about": _ABOUT, "number": list_number(connection), "count": len(lines)}
    content = "".join(f"{line}\n" for line in (json.dumps(head), *lines))
    replace_private_file(os.path.join(directory, NAME), content.encode(), flushed=True)
    fsync_directory(directory)


def _content(directory: str, size: int) -> bytes | None:
    try:
        with open_regular(os.path.join(directory, NAME)) as file:
            return file.read(size)
    except FileNotFoundError:
        return None
    except OSError as error:
        path = os.path.join(directory, NAME)
        raise StateError(f"{path}: can't be read ({error.strerror or error})", hint=_HINT) from error


def _parsed_head(directory: str, line: bytes) -> Head:
    try:
        fields = json.loads(line)
        head = Head(fields["number"], fields["count"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise _unreadable(directory, f"line 1: {error}") from error
    if not (type(head.number) is type(head.count) is int and 0 <= head.number < _MOST):
        raise _unreadable(directory, "line 1: number or count is invalid")
    return head


def _parsed(directory: str, number: int, line: bytes) -> str | Removed:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _unreadable(directory, f"line {number}: {error}") from error
    if isinstance(entry, str):
        return entry
    if isinstance(entry, list) and len(entry) == 3 and all(isinstance(field, str) for field in entry):
        return entry[0], entry[1], entry[2]
    raise _unreadable(directory, f"line {number}: not an id in quotes")


def _unreadable(directory: str, words: str) -> StateError:
    return StateError(f"{os.path.join(directory, NAME)}: {words}", hint=_HINT)
