"""Connections to a database that several processes use, and the encoding of values for SQLite.

Text that isn't valid UTF-8 and structs have an encoding of their own (docs/safety.md#the-state).

A connection relies on these facts:

* The system drops all POSIX locks of a process on a file when the process closes any descriptor of that file. SQLite
  keeps such descriptors open. So only SQLite may open a database in use, with one copy of its library in a process.
  Only the file of the database and its ``-shm`` carry such locks.
* A forked process has no locks of its parent, but its copy of SQLite assumes them. So it must not use, close or open
  again what its parent has open (https://www.sqlite.org/howtocorrupt.html, 2.6).
* A write to a database that was moved or deleted while it is open succeeds, but no other process will read it.
"""

from __future__ import annotations

import json
import os
import sqlite3
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any

from reconcile.errors import ReconcileError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from msgspec.json import Encoder


class StateError(ReconcileError):
    """The state can't be used; the failing call has changed nothing.

    ``is_damage``: the file is damaged. The next check of the database replaces it.
    """

    def __init__(self, message: str, hint: str | None = None, *, is_damage: bool = False) -> None:
        super().__init__(message, hint)
        self.is_damage = is_damage


class LiveConnection(sqlite3.Connection):
    """A connection for one thread at a time. In a forked child, every method except `close` raises `StateError`."""

    def __init__(self, path: str, timeout: float, *, readonly: bool = False) -> None:
        """Open an existing database. Raises `StateError`, `OSError`, `sqlite3.Error`."""
        self._path, self._forks = path, _process.forks
        self._file = _file_at(path)
        present = tuple(_process.open.values())  # in one step: other threads open and close theirs meanwhile
        if any(file == self._file and forks != self._forks for file, forks in present):
            raise self._of_the_parent()
        # Only `schema.transaction` begins transactions. Different threads use a connection, one at a time.
        where = f"{as_uri(path)}?mode=ro" if readonly else path
        super().__init__(where, timeout=timeout, isolation_level=None, check_same_thread=False, uri=readonly)
        _process.open[id(self)] = (self._file, self._forks)
        self.check_path()

    def check_path(self) -> None:
        """Raise `StateError` if the path no longer leads to the open file."""
        try:
            if _file_at(self._path) == self._file:
                return
        except FileNotFoundError:
            pass
        raise StateError(
            f"{self._path}: moved or replaced during this run, so nothing more is written to it",
            hint="run again",
        )

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """Execute a statement."""
        self._demand_process()
        return super().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> sqlite3.Cursor:
        """Execute a statement for each of many rows."""
        self._demand_process()
        return super().executemany(sql, parameters)

    def close(self) -> None:
        """Close the connection; a forked child leaves it unchanged."""
        if self._forks == _process.forks:
            super().close()
            _process.open.pop(id(self), None)
        else:
            _keep(self)

    def __del__(self) -> None:
        """Keep a forked child from closing the connection of its parent by dropping the object."""
        if id(self) in _process.open:
            self.close()

    def _demand_process(self) -> None:
        if self._forks != _process.forks:
            raise self._of_the_parent()

    def _of_the_parent(self) -> StateError:
        return StateError(
            f"{self._path}: opened before a fork, so this process can't use it",
            hint="close it before the fork, or start the process with spawn (multiprocessing)",
        )


class _Process:
    """``open`` maps the id of each connection to its file and to the number of forks before it was opened."""

    def __init__(self) -> None:
        self.forks = 0
        self.open: dict[int, tuple[tuple[int, int], int]] = {}

    def count_fork(self) -> None:
        self.forks += 1


_process = _Process()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_process.count_fork)


def as_uri(path: str) -> str:
    """Return the URI of a file as SQLite reads it, without parameters."""
    return f"file:{path.replace('%', '%25').replace('?', '%3f').replace('#', '%23')}"


def _file_at(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def _keep(connection: LiveConnection) -> None:
    """Keep an object until the process ends: deleting it, even at the exit of a program, would close the connection."""
    import ctypes  # here: only a forked child of a program with an open state needs it

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def encoded_rows(rows: Iterable[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Return rows as SQLite takes them. Text that isn't valid UTF-8 (lone surrogates of PEP 383) becomes a blob."""
    return [tuple(map(_encode, row)) for row in rows]


def write_rows(connection: sqlite3.Connection, sql: str, rows: Iterable[Sequence[Any]]) -> None:
    """Execute a statement for each of many rows, in the caller's transaction; see `encoded_rows`.

    Such text is rare. SQLite refuses it before the statement is executed, so that only that row has to be encoded.
    """
    refused: Sequence[Any] | None = None

    def watched(rows: Iterator[Sequence[Any]]) -> Iterator[Sequence[Any]]:
        nonlocal refused
        for row in rows:
            refused = row
            yield row
            refused = None

    left = iter(rows)
    while True:
        try:
            connection.executemany(sql, watched(left))
        except UnicodeEncodeError:
            if refused is None:  # the rows themselves can't be made
                raise
            connection.executemany(sql, encoded_rows([refused]))
        else:
            return


def select(connection: sqlite3.Connection, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Return all rows of a query, with every blob decoded to text; see `encoded_rows`."""
    rows = connection.execute(sql, tuple(map(_encode, parameters))).fetchall()
    # One pass over the types: blobs are rare, and a call for each value would dominate a large read.
    if bytes in set(map(type, chain.from_iterable(rows))):
        return [tuple(map(_decode, row)) for row in rows]
    return rows


def as_json(value: object) -> str:
    """Return a plain value or struct as JSON without spaces; text that isn't valid UTF-8 is escaped."""
    try:
        return _json_encoder().encode(value).decode()
    except UnicodeEncodeError:
        import msgspec  # here: such text is rare

        return json.dumps(msgspec.to_builtins(value, order="deterministic"), separators=(",", ":"))


@cache
def _json_encoder() -> Encoder:
    from msgspec.json import Encoder  # here: a run with nothing to do writes no JSON

    return Encoder(order="deterministic")


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
