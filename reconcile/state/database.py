"""The state of one store: what is remembered, the journal, the vault's index (docs/design/run.md#rule-52).

SQLite in ``<state dir>/state.sqlite``, outside both sides. Losing it loses undo, parents that JP stripped, tombstones
and intents but for what is local, which a list beside it keeps; nothing is published or removed because it is gone.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Self

from msgspec import Struct

from reconcile.state import baseline_table
from reconcile.state.baseline_table import Fold
from reconcile.state.connection import StateError, encoded, select
from reconcile.state.database_file import (
    BUSY_SECONDS,
    memory,
    open_for_reading,
    open_for_writing,
)
from reconcile.state.directory import NAME
from reconcile.state.journal import Journal
from reconcile.state.schema import LIBRARY, state_errors, transaction
from reconcile.state.vault import Versions

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable
    from contextlib import AbstractContextManager
    from types import TracebackType

    from reconcile.model.baseline import Baseline
    from reconcile.state.directory import Generation

__all__ = ["Checkout", "Conflict", "Fold", "State", "StateError"]

SEEN_STEP_NS = 24 * 3600 * 10**9
"""``last_seen`` is a day's accuracy, so that a run with nothing to do writes nothing."""


class Checkout(Struct, frozen=True):
    """One workspace at one path: ``identity`` is ``dev:ino`` of its ``.jp``. Times in nanoseconds."""

    id: int
    project: str
    identity: str
    first_seen: int
    last_seen: int
    layout: str | None


class Conflict(Struct, frozen=True):
    """A unit that was edited on both sides, listed until the user has seen it."""

    conversation: str
    unit: str
    run: str
    seen: bool = False


class State:
    """The open state of one store; a context manager. ``messages`` are for the user, right after opening.

    Used by one thread at a time. Every method raises `StateError` where the database can't be read or
    written. Each that writes is one transaction, and touches no row that says the same already.
    """

    __slots__ = ("_connection", "_path", "_readonly", "journal", "messages", "versions")

    def __init__(
        self, connection: sqlite3.Connection, path: str, *, readonly: bool, messages: tuple[str, ...] = ()
    ) -> None:
        self._connection, self._path, self._readonly = connection, path, readonly
        self.messages = messages
        self.journal = Journal(connection, path)
        self.versions = Versions(connection, path)

    @classmethod
    def open(
        cls,
        directory: str,
        *,
        readonly: bool = False,
        timeout: float = BUSY_SECONDS,
        sound: Generation | None = None,
    ) -> Self:
        """Open the state in this directory, which is made, 0700, where it is missing.

        ``readonly`` (dry runs) reads a copy in memory, creates and writes nothing at all, and is empty where
        there is nothing. ``timeout``: seconds to wait for another process that writes. A damaged database is
        moved aside and rebuilt (read-only: taken for empty) and `messages` says so; a newer version is
        refused. ``sound``: what it was at the end of a run that had it open; who writes doesn't check it from end
        to end while it still is that. Raises `StateError`.
        """
        messages: list[str] = []
        if readonly:
            connection = open_for_reading(directory, messages)
        else:
            connection = open_for_writing(directory, messages, timeout, sound)
        return cls(connection, os.path.join(directory, NAME), readonly=readonly, messages=tuple(messages))

    @classmethod
    def in_memory(cls) -> Self:
        """An empty, writable state that is gone when closed. SQLite can't see a simulated file system."""
        return cls(memory(), ":memory:", readonly=False)

    def together(self) -> AbstractContextManager[None]:
        """Have all that is written in a block be one transaction: all of it or nothing. Raises `StateError`."""
        return transaction(self._connection, self._path)

    def close(self) -> None:
        """Close the database; more than once does nothing."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def checkout(self, project: str, identity: str, now_ns: int) -> int | None:
        """The id of the checkout at this path with this ``.jp``, made where it is new; read-only: None then.

        A new ``.jp`` at a known path starts a new record, the old one stays for recover.
        """
        sql = "SELECT id, last_seen FROM checkout WHERE project = ? AND identity = ?"
        with state_errors(self._path):
            found = select(self._connection, sql, (project, identity))
        if found and (self._readonly or abs(now_ns - found[0][1]) < SEEN_STEP_NS):
            return int(found[0][0])
        if self._readonly:
            return None
        with transaction(self._connection, self._path):
            if identity and not found:
                # What was asked for while there was no ``.jp`` is asked of the one that has come.
                self._connection.executemany(
                    "UPDATE checkout SET identity = ? WHERE project = ? AND identity = ''",
                    encoded([(identity, project)]),
                )
            self._connection.executemany(
                """INSERT INTO checkout (project, identity, first_seen, last_seen) VALUES (?, ?, ?, ?)
                ON CONFLICT DO UPDATE SET last_seen = excluded.last_seen""",
                encoded([(project, identity, now_ns, now_ns)]),
            )
            return int(select(self._connection, sql, (project, identity))[0][0])

    def checkouts(self) -> tuple[Checkout, ...]:
        """Every checkout of the store, the one seen last first."""
        sql = """SELECT id, project, identity, first_seen, last_seen, layout FROM checkout
            ORDER BY last_seen DESC, id DESC"""
        with state_errors(self._path):
            return tuple(Checkout(*row) for row in select(self._connection, sql))

    def forget_checkout(self, checkout: int) -> None:
        """Take out a checkout's record with its baseline and intents; history and journal stay."""
        with transaction(self._connection, self._path):
            self._connection.execute("DELETE FROM checkout WHERE id = ?", (checkout,))

    def load(self, checkout: int | None, only: Collection[str] | None = None) -> Baseline:
        """All that is remembered for this checkout; with None only what belongs to the store as a whole.

        ``only``: of these conversations alone, of a few at a cost that the others have no part in.
        """
        with state_errors(self._path):
            return baseline_table.load(self._connection, checkout, only)

    def has_requests(self, checkout: int) -> bool:
        """Tell whether something was asked for in a checkout that no run has carried out yet."""
        with state_errors(self._path):
            return bool(select(self._connection, "SELECT 1 FROM waiting WHERE checkout = ? LIMIT 1", (checkout,)))

    def written_by_others(self) -> int:
        """A number that changes when somebody else writes, and with nothing that is written here."""
        with state_errors(self._path):
            (number,) = self._connection.execute("PRAGMA data_version").fetchone()
            return int(number)

    def changes(self) -> int:
        """The number of the newest change of what is remembered."""
        with state_errors(self._path):
            return baseline_table.newest_change(self._connection)

    def changed_since(self, number: int, most: int) -> frozenset[str]:
        """Conversations of which what is remembered has changed since a number was the newest, so many at most."""
        sql = "SELECT conversation FROM changed WHERE number > ? LIMIT ?"
        with state_errors(self._path):
            return frozenset(row[0] for row in select(self._connection, sql, (number, most)))

    def standing(self, checkout: int) -> tuple[object, ...] | None:
        """What is known of a checkout as a whole, and its newest run; None: it is forgotten.

        A run of the library isn't one of those: it leaves nothing behind but what is remembered of its conversations.
        """
        sql = """SELECT layout, store_identity,
                (SELECT id FROM run WHERE checkout = ?1 AND command <> ?2 ORDER BY id DESC LIMIT 1)
            FROM checkout WHERE id = ?1"""
        with state_errors(self._path):
            found = select(self._connection, sql, (checkout, LIBRARY))
        return found[0] if found else None

    def lost(self) -> dict[str, str | None]:
        """Conversations that a store had which was lost, and was not seen to have since, with their titles."""
        with state_errors(self._path):
            return dict(select(self._connection, "SELECT conversation, title FROM lost"))

    def lost_no_more(self, conversations: Iterable[str]) -> None:
        """The store has these again, or nobody misses them."""
        if rows := encoded((conversation,) for conversation in conversations):
            with transaction(self._connection, self._path):
                self._connection.executemany("DELETE FROM lost WHERE conversation = ?", rows)

    def projects_with(self, conversation: str) -> tuple[str, ...]:
        """The projects of checkouts that had a conversation in their workspace at the end of their last run."""
        sql = """SELECT DISTINCT project FROM checkout JOIN agreed ON agreed.checkout = checkout.id
            WHERE agreed.conversation = ?1 AND NOT EXISTS (SELECT 1 FROM intent_local WHERE conversation = ?1)
            AND NOT EXISTS (SELECT 1 FROM intent WHERE intent.checkout = checkout.id AND conversation = ?1)
            ORDER BY last_seen DESC"""
        with state_errors(self._path):
            return tuple(row[0] for row in select(self._connection, sql, (conversation,)))

    def checkpoint(self) -> None:
        """Have all that was written be in the database's own file, which closing it would change else."""
        with state_errors(self._path):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def free_memory(self) -> None:
        """Keep no page of the database that was read or written; what is needed again is read again."""
        with state_errors(self._path):
            self._connection.execute("PRAGMA shrink_memory")

    def save_fold(self, checkout: int, fold: Fold) -> None:
        """Write what a run learned, all of it or nothing; with nothing to say the database isn't touched."""
        if not fold.empty:
            with transaction(self._connection, self._path):
                baseline_table.save(self._connection, checkout, fold)

    def add_conflicts(self, checkout: int, run: str, units: Iterable[tuple[str, str]]) -> None:
        """List these conversations' units as conflicts of this run, until they are seen."""
        rows = encoded((checkout, conversation, unit, run) for conversation, unit in units)
        if rows:
            with transaction(self._connection, self._path):
                sql = "INSERT INTO conflict VALUES (?, ?, ?, ?, 0) ON CONFLICT DO NOTHING"
                self._connection.executemany(sql, rows)

    def conflicts(self, checkout: int) -> tuple[Conflict, ...]:
        """The conflicts of a checkout, oldest run first."""
        sql = """SELECT conversation, unit, run, seen FROM conflict WHERE checkout = ?
            ORDER BY run, conversation, unit"""
        with state_errors(self._path):
            rows = select(self._connection, sql, (checkout,))
        return tuple(Conflict(row[0], row[1], row[2], bool(row[3])) for row in rows)

    def conflicts_seen(self, checkout: int, conversations: Iterable[str]) -> None:
        """The user has looked at these conversations."""
        rows = encoded((checkout, conversation) for conversation in conversations)
        if rows:
            with transaction(self._connection, self._path):
                sql = "UPDATE conflict SET seen = 1 WHERE checkout = ? AND conversation = ? AND NOT seen"
                self._connection.executemany(sql, rows)

    def identity(self) -> str:
        """Eight hexadecimal digits that tell this state from others of the same store; made when first asked for."""
        found = self.meta("identity")
        if found is None:
            found = os.urandom(4).hex()
            self.set_meta("identity", found)
        return found

    def meta(self, key: str) -> str | None:
        """A value that was kept under a key (the store's and the workspace's names), or None."""
        with state_errors(self._path):
            found = select(self._connection, "SELECT value FROM meta WHERE key = ?", (key,))
        return found[0][0] if found else None

    def set_meta(self, key: str, value: str) -> None:
        """Keep a value under a key, if it changed."""
        if self.meta(key) != value:
            with transaction(self._connection, self._path):
                sql = "INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
                self._connection.executemany(sql, encoded([(key, value)]))
