"""The list of private conversations beside the database, as text: what is private stays so if the database is lost.

``local.jsonl`` has a line for each, below a first line with a number and their count: the id of a local one as JSON, or
an array of the id, the project and the identity of a checkout from which one was removed. At every moment it names all
that the database holds as private, and what is being made private right now. The database counts, in the same number,
the transactions that changed which are private:

* A transaction that does writes and flushes the list, with the next number, before it commits. The list then also names
  what that transaction makes public.
* Once it has committed, the list is written again, without those.

All of it happens with SQLite's lock for writing held, so that there is one writer. If the list has the higher number,
the database is another one than the list was written beside: a new one, an old copy, or one whose transaction was
killed. All that the list names is private then. If the database has the higher number, the list is written anew.

A list that can't be read is an error, never an empty one.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3

from msgspec import Struct

from reconcile.fs.paths import open_regular
from reconcile.state.connection import StateError, as_json, encoded, select

NAME = "local.jsonl"
_ABOUT = "private conversations: no run copies them into a workspace; read again if state.sqlite is lost"
_FIRST = 1000
"""The first line is shorter."""
_MOST = 1 << 62
"""A number that SQLite can still count from."""
_HINT = "it names private conversations: correct that line, or delete the file if state.sqlite is whole"


Removed = tuple[str, str, str]
"""A conversation, and the project and the identity of the checkout that it was removed from."""


class Head(Struct, frozen=True):
    """The first line: the number of the change that the list was written with, and how many lines follow."""

    number: int
    count: int


def head_of(directory: str) -> Head | None:
    """Read the first line of a list; None where there is no list. Raises `StateError`."""
    content = _content(directory, _FIRST)
    return None if content is None else _parsed_head(directory, content.partition(b"\n")[0])


def read(directory: str) -> tuple[Head, list[str | Removed]] | None:
    """Read a whole list; None where there is none. Raises `StateError`: a part of it can't be read."""
    content = _content(directory, -1)
    if content is None:
        return None
    first, *lines = content.split(b"\n")
    head = _parsed_head(directory, first)
    if not lines or lines.pop():
        raise _unreadable(directory, "the last line is cut off")
    found = [_parsed(directory, number, line) for number, line in enumerate(lines, 2)]
    if len(found) != head.count:
        raise _unreadable(directory, f"found {len(found)} conversations, expected {head.count}")
    return head, found


def number_of(connection: sqlite3.Connection) -> int:
    """Return the number of the newest change of which conversations are private."""
    (number,) = connection.execute("SELECT number FROM local_list").fetchone()
    return int(number)


def has_revoked(connection: sqlite3.Connection) -> bool:
    """Tell whether the list may still name conversations that aren't private any more."""
    sql = "SELECT EXISTS (SELECT 1 FROM local_revoked) OR EXISTS (SELECT 1 FROM removed_revoked)"
    (found,) = connection.execute(sql).fetchone()
    return bool(found)


def write_ahead(connection: sqlite3.Connection, directory: str) -> bool:
    """List what is private, and what was before this transaction, if it has changed that, and return whether it has.

    Raises `OSError`: the transaction must not commit.
    """
    (changed,) = connection.execute("SELECT changed FROM local_list").fetchone()
    if changed:
        connection.execute("UPDATE local_list SET number = number + 1, changed = 0")
        _write(connection, directory)
    return bool(changed)


def write_after(connection: sqlite3.Connection, directory: str) -> None:
    """List what is private and nothing else, now that a transaction has ended; if that fails, a later one does it."""
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


def take_in(connection: sqlite3.Connection, listed: Head, found: list[str | Removed], now_ns: int) -> int:
    """Have all that is listed be private, within the caller's transaction; return how many were not."""
    before = _count(connection)
    sql = "INSERT INTO intent_local VALUES (?, NULL, NULL, NULL) ON CONFLICT DO NOTHING"
    connection.executemany(sql, encoded((each,) for each in found if isinstance(each, str)))
    removed = [each for each in found if not isinstance(each, str)]
    sql = "INSERT INTO checkout (project, identity, first_seen, last_seen) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
    connection.executemany(sql, encoded({(*checkout, now_ns, now_ns) for _, *checkout in removed}))
    connection.executemany(
        """INSERT INTO intent SELECT id, ?1, 'removed', NULL, NULL, NULL FROM checkout
        WHERE project = ?2 AND identity = ?3
        ON CONFLICT DO UPDATE SET kind = excluded.kind, waits_for = NULL, place = NULL, run = NULL
        WHERE kind <> excluded.kind""",
        encoded(removed),
    )
    connection.execute("UPDATE local_list SET number = max(number, ?), changed = 1", (listed.number,))
    return _count(connection) - before


def _count(connection: sqlite3.Connection) -> int:
    sql = "SELECT (SELECT count(*) FROM intent_local) + (SELECT count(*) FROM intent WHERE kind = 'removed')"
    (found,) = connection.execute(sql).fetchone()
    return int(found)


def list_again(connection: sqlite3.Connection) -> None:
    """Have the list be written with the caller's transaction, as it is another one's or was written in part."""
    connection.execute("UPDATE local_list SET changed = 1")


def _write(connection: sqlite3.Connection, directory: str) -> None:
    from reconcile.fs.durability import fsync_directory
    from reconcile.fs.private_files import replace_private_file

    sql = "SELECT conversation FROM intent_local UNION SELECT conversation FROM local_revoked ORDER BY 1"
    lines = [as_json(conversation) for (conversation,) in select(connection, sql)]
    sql = """SELECT conversation, project, identity FROM intent JOIN checkout ON checkout.id = checkout
        WHERE kind = 'removed' UNION SELECT conversation, project, identity FROM removed_revoked ORDER BY 1, 2, 3"""
    lines += [as_json(row) for row in select(connection, sql)]
    head = {"about": _ABOUT, "number": number_of(connection), "count": len(lines)}
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
        raise StateError(f"{os.path.join(directory, NAME)}: could not be read: {error}", hint=_HINT) from error


def _parsed_head(directory: str, line: bytes) -> Head:
    try:
        found = json.loads(line)
        head = Head(found["number"], found["count"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise _unreadable(directory, f"line 1: {error}") from error
    if not (type(head.number) is type(head.count) is int and 0 <= head.number < _MOST):
        raise _unreadable(directory, "line 1: found no numbers")
    return head


def _parsed(directory: str, number: int, line: bytes) -> str | Removed:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _unreadable(directory, f"line {number}: {error}") from error
    if isinstance(found, str):
        return found
    if isinstance(found, list) and len(found) == 3 and all(isinstance(each, str) for each in found):
        return found[0], found[1], found[2]
    raise _unreadable(directory, f"line {number}: found no id in quotes")


def _unreadable(directory: str, words: str) -> StateError:
    return StateError(f"{os.path.join(directory, NAME)}: {words}", hint=_HINT)
