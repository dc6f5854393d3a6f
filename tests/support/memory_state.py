"""The state for the fake level: SQLite can't see a simulated file system, so it is kept in memory."""

from __future__ import annotations

import itertools
import os
import sqlite3
from typing import TYPE_CHECKING

from reconcile.state import database
from reconcile.state.schema import migrate

if TYPE_CHECKING:
    import pytest

_NUMBERS = itertools.count()


class MemoryState:
    """A database in memory that lasts from command to command, until it is forgotten."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._open()
        monkeypatch.setattr(database, "open_for_writing", self._open_for_writing)
        monkeypatch.setattr(database, "open_for_reading", lambda *_: self._connect())

    def forget(self) -> None:
        self.close()
        self._open()

    def close(self) -> None:
        self._keeper.close()

    def _open(self) -> None:
        self._name = f"scenario-{next(_NUMBERS)}"
        self._keeper = self._connect()
        migrate(self._keeper, self._name)

    def _open_for_writing(self, directory: str, *_: object) -> sqlite3.Connection:
        os.makedirs(directory, exist_ok=True)  # for what lies beside the database
        return self._connect()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(f"file:{self._name}?mode=memory&cache=shared", uri=True, isolation_level=None)
        connection.execute("PRAGMA foreign_keys = ON")
        return connection
