"""Connections to a database that other processes use, too, and how values pass through SQLite.

A connection is its own process's, and for the file of that name. Of values, text that is no UTF-8 and structs need a
form of their own (docs/safety.md#the-state).

What is taken for granted:

* The system drops all POSIX locks that a process holds on a file when the process closes any descriptor of it. SQLite
  knows which descriptors it has to keep open for that reason, so that a live database is opened by SQLite alone, by one
  copy of its library in a process. Only the database's own file and its ``-shm`` carry such locks.
* A forked process has none of its parent's locks, but its copy of SQLite believes that it has. So it neither uses, nor
  closes, nor opens anew what its parent has open (https://www.sqlite.org/howtocorrupt.html, 2.6).
* A database that is moved or deleted while it is open is still written to, where nobody will look for it.
"""

from __future__ import annotations

import json
import os
import sqlite3
from itertools import chain
from typing import TYPE_CHECKING, Any

from reconcile.errors import ReconcileError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class StateError(ReconcileError):
    """The state can't be used now; nothing of it was changed by the failing call.

    ``is_damage``: its file is broken, so that another one is made when it is checked next.
    """

    def __init__(self, message: str, hint: str | None = None, *, is_damage: bool = False) -> None:
        super().__init__(message, hint)
        self.is_damage = is_damage


class Live(sqlite3.Connection):
    """Such a connection, for one thread at a time. Every method but `close` raises `StateError` in a forked child."""

    def __init__(self, path: str, timeout: float) -> None:
        """Open a database that is there. Raises `StateError`, `OSError`, `sqlite3.Error`."""
        self._path, self._forks = path, _process.forks
        self._file = _file_at(path)
        if any(file == self._file and forks != self._forks for file, forks in _process.open.values()):
            raise self._of_the_parent()
        # Transactions are begun by `transaction` alone. Not always the same thread uses it.
        super().__init__(path, timeout=timeout, isolation_level=None, check_same_thread=False)
        _process.open[id(self)] = (self._file, self._forks)
        self.demand_place()

    def demand_place(self) -> None:
        """Raise `StateError` if the database isn't the file of that name any more."""
        try:
            if _file_at(self._path) == self._file:
                return
        except FileNotFoundError:
            pass
        raise StateError(
            f"{self._path}: the file was moved or replaced while it was open; nothing more is written to it",
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
        """Close it; in a forked child it is left as it is."""
        if self._forks == _process.forks:
            super().close()
            _process.open.pop(id(self), None)
        else:
            _keep(self)

    def __del__(self) -> None:
        """Have a child never close its parent's, not even where it only drops it."""
        if id(self) in _process.open:
            self.close()

    def _demand_process(self) -> None:
        if self._forks != _process.forks:
            raise self._of_the_parent()

    def _of_the_parent(self) -> StateError:
        return StateError(
            f"{self._path}: this process was forked from one that has the file open, and can't use it",
            hint="close it before the fork, or start the process in another way (multiprocessing: `spawn`)",
        )


class _Process:
    """``open``: by number, the file of each connection, and the number of forks before it was opened."""

    def __init__(self) -> None:
        self.forks = 0
        self.open: dict[int, tuple[tuple[int, int], int]] = {}

    def forked(self) -> None:
        self.forks += 1


_process = _Process()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_process.forked)


def _file_at(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def _keep(connection: Live) -> None:
    """Have this object outlast the process: SQLite closes a connection with the object, also when a program ends."""
    import ctypes  # here: only a fork of a program that has it open gets here

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


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
