"""The state of one store: the baseline, the journal, the vault's index (docs/design/run.md#rule-52).

It is an SQLite database, ``<state dir>/state.sqlite``, outside both sides. Its loss costs undo, the parents that JP
stripped, tombstones and intents. A list beside it keeps the local conversations, so that nothing is published or
removed because of the loss.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Self

from msgspec import Struct
from msgspec.structs import replace

from reconcile.model.snapshot import Side, without_generation
from reconcile.state import baseline_table
from reconcile.state.baseline_table import BaselineUpdate
from reconcile.state.connection import StateError, encoded_rows, select
from reconcile.state.database_file import (
    BUSY_SECONDS,
    open_empty,
    open_for_reading,
    open_for_writing,
)
from reconcile.state.directory import NAME
from reconcile.state.journal import Journal
from reconcile.state.schema import LIBRARY, REMOTE, state_errors, transaction
from reconcile.state.vault import Versions

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from types import TracebackType

    from reconcile.model.baseline import Baseline, Intent
    from reconcile.model.snapshot import Digest
    from reconcile.state.directory import Generation

__all__ = ["BaselineUpdate", "Checkout", "Conflict", "State", "StateError"]

SEEN_STEP_NS = 24 * 3600 * 10**9
"""``last_seen`` is accurate to a day, so that a run with nothing to do writes nothing."""


class Checkout(Struct, frozen=True):
    """One workspace at one path. ``identity`` is ``dev:ino:generation`` of its ``.jp``; times are in ns."""

    id: int
    project: str
    identity: str
    first_seen: int
    last_seen: int
    layout: str | None


_CHOSEN = 2
"""The value of ``conflict.seen`` for a conflict that the user has answered. 1: the user has seen a run's decision."""


class Conflict(Struct, frozen=True):
    """A unit that was edited on both sides; it is listed until the user has seen it.

    ``winner``: the side whose version the run took; None if an old reconcile has recorded the conflict. ``chosen``: the
    user has answered, so the conflict counts as seen.
    """

    conversation: str
    unit: str
    run: str
    seen: bool = False
    winner: Side | None = None
    chosen: bool = False


class State:
    """The open state of one store. ``messages`` of the opening are for the user.

    One thread at a time may use it. Every method raises `StateError` if the database can't be read or written. A method
    that writes is one transaction, and writes no row that has the same values already.
    """

    __slots__ = (
        "_connection",
        "_path",
        "_readonly",
        "is_of_remote",
        "journal",
        "messages",
        "removed_there",
        "seen_there",
        "versions",
    )

    def __init__(
        self, connection: sqlite3.Connection, path: str, *, readonly: bool, messages: tuple[str, ...] = ()
    ) -> None:
        self._connection, self._path, self._readonly = connection, path, readonly
        self.messages = messages
        self.is_of_remote = False
        """The baselines are those of a remote (`Baseline.is_of_remote`)."""
        self.removed_there: Mapping[tuple[str, str], Digest] = {}
        """The extras in it that another machine has removed (`Baseline.removed_there`)."""
        self.seen_there: Mapping[tuple[str, str], Sequence[Digest]] = {}
        """The versions that its machines have had (`Baseline.seen_there`)."""
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
        """Open the state in a directory, which is made (0700) if it is missing. Raises `StateError`.

        With ``readonly`` (dry runs), it is a copy in memory, empty if there is no state; the disk stays unchanged.
        ``timeout`` is the seconds to wait for another writer. A damaged database is moved aside and replaced, or taken
        for empty if read-only, with a message; a newer version is an error. ``sound`` is the generation at the end of
        an earlier run: while it still holds, the database is not checked from end to end.
        """
        messages: list[str] = []
        if readonly:
            connection = open_for_reading(directory, messages)
        else:
            connection = open_for_writing(directory, messages, timeout, sound)
        return cls(connection, os.path.join(directory, NAME), readonly=readonly, messages=tuple(messages))

    @classmethod
    def in_memory(cls) -> Self:
        """Return an empty, writable state that ends when it is closed. SQLite can't use a simulated file system."""
        return cls(open_empty(), ":memory:", readonly=False)

    def transaction(self) -> AbstractContextManager[None]:
        """Make all writes of a block one transaction. Raises `StateError`."""
        return transaction(self._connection, self._path)

    def close(self) -> None:
        """Close the database; a second call does nothing."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def checkout(self, project: str, identity: str, now_ns: int) -> int | None:
        """Return the id of the checkout at this path with this ``.jp``; a new one is recorded, or None if read-only.

        A new ``.jp`` at a known path gets a new record. The old record stays for recover.
        """
        sql = "SELECT id, last_seen FROM checkout WHERE project = ? AND identity = ?"
        with state_errors(self._path):
            rows = select(self._connection, sql, (project, identity))
            if not rows and self._readonly:
                rows = select(self._connection, sql, (project, without_generation(identity)))
        if rows and (self._readonly or abs(now_ns - rows[0][1]) < SEEN_STEP_NS):
            return int(rows[0][0])
        if self._readonly:
            return None
        with transaction(self._connection, self._path):
            if identity and not rows:
                # Requests that were made while there was no ``.jp`` are for the new one. Old records: no generation.
                for before in ("", without_generation(identity)):
                    self._connection.executemany(
                        "UPDATE OR IGNORE checkout SET identity = ? WHERE project = ? AND identity = ?",
                        encoded_rows([(identity, project, before)]),
                    )
            self._connection.executemany(
                """INSERT INTO checkout (project, identity, first_seen, last_seen) VALUES (?, ?, ?, ?)
                ON CONFLICT DO UPDATE SET last_seen = excluded.last_seen""",
                encoded_rows([(project, identity, now_ns, now_ns)]),
            )
            return int(select(self._connection, sql, (project, identity))[0][0])

    def checkouts(self, *, with_remotes: bool = False) -> tuple[Checkout, ...]:
        """Return every checkout of the store, the one seen last first; ``with_remotes``: also records of remotes."""
        sql = """SELECT id, project, identity, first_seen, last_seen, layout FROM checkout
            WHERE ? OR NOT (identity GLOB ?) ORDER BY last_seen DESC, id DESC"""
        with state_errors(self._path):
            rows = select(self._connection, sql, (with_remotes, f"{REMOTE}*"))
        return tuple(Checkout(*row) for row in rows)

    def copy_baseline(self, source: int, target: int, only: Collection[str] | None = None) -> None:
        """Replace the baseline of a remote's record by that of another one; ``only``: of these conversations."""
        with transaction(self._connection, self._path):
            baseline_table.copy(self._connection, source, target, only)

    def add_older(
        self, history: Mapping[tuple[str, str], Sequence[Digest]], tombstones: Mapping[str, Sequence[Digest]]
    ) -> None:
        """Add versions that are older than all known ones, and the digests of conversations that were removed."""
        with transaction(self._connection, self._path):
            baseline_table.add_older(self._connection, history, tombstones)

    def forget_checkout(self, checkout: int) -> None:
        """Remove the record of a checkout with its baseline and intents; history and journal stay."""
        with transaction(self._connection, self._path):
            self._connection.execute("DELETE FROM checkout WHERE id = ?", (checkout,))

    def load(self, checkout: int | None, only: Collection[str] | None = None) -> Baseline:
        """Return the baseline of a checkout; with None, only the part that belongs to the store.

        ``only`` limits it to these conversations. For a few, the cost doesn't depend on the number of the others.
        """
        with state_errors(self._path):
            baseline = baseline_table.load(self._connection, checkout, only)
        if not self.is_of_remote:
            return baseline
        return replace(baseline, is_of_remote=True, removed_there=self.removed_there, seen_there=self.seen_there)

    def intents(self, checkout: int | None) -> dict[str, Intent]:
        """Return the intents that hold in a checkout."""
        with state_errors(self._path):
            return baseline_table.load_intents(self._connection, checkout)

    def agreed_contents(self, wanted: Iterable[tuple[str, Digest]]) -> dict[tuple[str, Digest], bytes]:
        """Return the agreed metadata of some conversations, each with its digest, as far as it is kept."""
        with state_errors(self._path):
            return baseline_table.load_contents(self._connection, wanted)

    def has_requests(self, checkout: int | None) -> bool:
        """Tell whether a checkout has a request that no run has carried out yet."""
        with state_errors(self._path):
            return bool(select(self._connection, "SELECT 1 FROM waiting WHERE checkout = ? LIMIT 1", (checkout,)))

    def data_version(self) -> int:
        """Return a number that changes with the writes of other connections, not with those of this one."""
        with state_errors(self._path):
            (number,) = self._connection.execute("PRAGMA data_version").fetchone()
            return int(number)

    def newest_change(self) -> int:
        """Return the number of the newest change of the baseline."""
        with state_errors(self._path):
            return baseline_table.newest_change(self._connection)

    def changed_since(self, number: int, most: int) -> frozenset[str]:
        """Return the conversations whose baseline has changed since a number was the newest, at most ``most``."""
        sql = "SELECT conversation FROM changed WHERE number > ? LIMIT ?"
        with state_errors(self._path):
            return frozenset(row[0] for row in select(self._connection, sql, (number, most)))

    def checkout_row(self, checkout: int | None) -> tuple[object, ...] | None:
        """Return the layout, the store's identity and the newest run of a checkout; None if its record was removed.

        A run of the library doesn't count: it changes only the baseline of its conversations.
        """
        sql = """SELECT layout, store_identity,
                (SELECT id FROM run WHERE checkout = ?1 AND command <> ?2 ORDER BY id DESC LIMIT 1)
            FROM checkout WHERE id = ?1"""
        with state_errors(self._path):
            rows = select(self._connection, sql, (checkout, LIBRARY))
        return rows[0] if rows else None

    def lost(self) -> dict[str, str | None]:
        """Return the conversations of a lost store that were not found in a store since, with their titles."""
        with state_errors(self._path):
            return dict(select(self._connection, "SELECT conversation, title FROM lost"))

    def remove_lost(self, conversations: Iterable[str]) -> None:
        """Remove conversations from the list of the lost: they were found again, or the user gave them up."""
        if rows := encoded_rows((conversation,) for conversation in conversations):
            with transaction(self._connection, self._path):
                self._connection.executemany("DELETE FROM lost WHERE conversation = ?", rows)

    def projects_with(self, conversation: str) -> tuple[str, ...]:
        """Return the projects whose workspace had a conversation at the end of their last run."""
        sql = """SELECT DISTINCT project FROM checkout JOIN agreed ON agreed.checkout = checkout.id
            WHERE agreed.conversation = ?1 AND NOT EXISTS (SELECT 1 FROM intent_local WHERE conversation = ?1)
            AND NOT EXISTS (SELECT 1 FROM intent WHERE intent.checkout = checkout.id AND conversation = ?1)
            AND NOT (identity GLOB ?2) ORDER BY last_seen DESC"""
        with state_errors(self._path):
            return tuple(row[0] for row in select(self._connection, sql, (conversation, f"{REMOTE}*")))

    def is_synced(self, conversation: str) -> bool:
        """Tell whether a completed sync has left a conversation in a remote, whichever it was."""
        sql = """SELECT EXISTS (SELECT 1 FROM agreed JOIN checkout ON agreed.checkout = checkout.id
            WHERE agreed.conversation = ?1 AND identity GLOB ?2)"""
        with state_errors(self._path):
            return any(row[0] for row in select(self._connection, sql, (conversation, f"{REMOTE}* won")))

    def checkpoint(self) -> None:
        """Move all writes from the log into the file of the database, so that closing doesn't change it."""
        with state_errors(self._path):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def release_cache(self) -> None:
        """Free the cached pages of the database; they are read again when they are needed."""
        with state_errors(self._path):
            self._connection.execute("PRAGMA shrink_memory")

    def save_update(self, checkout: int, update: BaselineUpdate) -> None:
        """Write the results of a run in one transaction; an empty update doesn't touch the database."""
        if not update.empty:
            with transaction(self._connection, self._path):
                baseline_table.save(self._connection, checkout, update)

    def add_conflicts(
        self, checkout: int, run: str, units: Iterable[tuple[str, str, Side | None]], *, chosen: bool = False
    ) -> None:
        """List units, each with the side that wins it, as conflicts of a run until the user has seen them.

        ``chosen``: the user has chosen that side, and has seen them.
        """
        seen = _CHOSEN if chosen else 0
        rows = encoded_rows(
            (checkout, conversation, unit, run, seen, winner and winner.value) for conversation, unit, winner in units
        )
        if rows:
            with transaction(self._connection, self._path):
                sql = "INSERT INTO conflict VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
                self._connection.executemany(sql, rows)

    def conflicts(self, checkout: int) -> tuple[Conflict, ...]:
        """Return the conflicts of a checkout, oldest run first."""
        sql = """SELECT conversation, unit, run, seen, winner FROM conflict WHERE checkout = ?
            ORDER BY run, conversation, unit"""
        with state_errors(self._path):
            rows = select(self._connection, sql, (checkout,))
        return tuple(
            Conflict(row[0], row[1], row[2], bool(row[3]), Side(row[4]) if row[4] else None, row[3] == _CHOSEN)
            for row in rows
        )

    def conflicts_seen(self, checkout: int, conversations: Iterable[str]) -> None:
        """Mark the conflicts of these conversations as seen."""
        rows = encoded_rows((checkout, conversation) for conversation in conversations)
        if rows:
            with transaction(self._connection, self._path):
                sql = "UPDATE conflict SET seen = 1 WHERE checkout = ? AND conversation = ? AND NOT seen"
                self._connection.executemany(sql, rows)

    def identity(self) -> str:
        """Return eight hexadecimal digits that identify this state among others of the same store; made once."""
        identity = self.meta("identity")
        if identity is None:
            identity = os.urandom(4).hex()
            self.set_meta("identity", identity)
        return identity

    def meta(self, key: str) -> str | None:
        """Return the value of a key (the names of the store and the workspace), or None."""
        with state_errors(self._path):
            rows = select(self._connection, "SELECT value FROM meta WHERE key = ?", (key,))
        return rows[0][0] if rows else None

    def set_meta(self, key: str, value: str) -> None:
        """Set the value of a key, if it differs."""
        if self.meta(key) != value:
            with transaction(self._connection, self._path):
                sql = "INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
                self._connection.executemany(sql, encoded_rows([(key, value)]))
