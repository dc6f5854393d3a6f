"""The tables of the state, their migrations, transactions and errors (docs/safety.md#the-state)."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from typing import TYPE_CHECKING

from reconcile.state.connection import LiveConnection, StateError
from reconcile.state.directory import advance
from reconcile.state.private_list import has_revoked, write_after, write_ahead

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
        """CREATE TABLE checkout (
            id INTEGER PRIMARY KEY, project TEXT NOT NULL, identity TEXT NOT NULL,
            first_seen INTEGER NOT NULL, last_seen INTEGER NOT NULL,
            layout TEXT, store_identity TEXT, UNIQUE (project, identity))""",
        """CREATE TABLE agreed (
            checkout INTEGER NOT NULL REFERENCES checkout ON DELETE CASCADE, conversation TEXT NOT NULL,
            parent TEXT, title TEXT, container TEXT, place TEXT NOT NULL,
            PRIMARY KEY (checkout, conversation)) WITHOUT ROWID""",
        """CREATE TABLE agreed_unit (
            checkout INTEGER NOT NULL, conversation TEXT NOT NULL, unit TEXT NOT NULL, digest TEXT NOT NULL,
            PRIMARY KEY (checkout, conversation, unit),
            FOREIGN KEY (checkout, conversation) REFERENCES agreed ON DELETE CASCADE) WITHOUT ROWID""",
        """CREATE TABLE intent (
            checkout INTEGER NOT NULL REFERENCES checkout ON DELETE CASCADE, conversation TEXT NOT NULL,
            kind TEXT NOT NULL, waits_for TEXT, place TEXT, run TEXT,
            PRIMARY KEY (checkout, conversation)) WITHOUT ROWID""",
        """CREATE TABLE intent_local (
            conversation TEXT PRIMARY KEY, waits_for TEXT, place TEXT, run TEXT) WITHOUT ROWID""",
        """CREATE TABLE history (
            conversation TEXT NOT NULL, unit TEXT NOT NULL, seq INTEGER NOT NULL, digest TEXT NOT NULL,
            PRIMARY KEY (conversation, unit, seq)) WITHOUT ROWID""",
        "CREATE TABLE parent (conversation TEXT PRIMARY KEY, parent TEXT) WITHOUT ROWID",
        """CREATE TABLE tombstone (
            conversation TEXT NOT NULL, digest TEXT NOT NULL, run TEXT,
            PRIMARY KEY (conversation, digest)) WITHOUT ROWID""",
        """CREATE TABLE aside (
            checkout INTEGER NOT NULL REFERENCES checkout ON DELETE CASCADE, conversation TEXT NOT NULL,
            unit TEXT NOT NULL, kind TEXT NOT NULL, store TEXT, workspace TEXT,
            PRIMARY KEY (checkout, conversation, unit)) WITHOUT ROWID""",
        """CREATE TABLE conflict (
            checkout INTEGER NOT NULL REFERENCES checkout ON DELETE CASCADE, conversation TEXT NOT NULL,
            unit TEXT NOT NULL, run TEXT NOT NULL, seen INTEGER NOT NULL DEFAULT 0,
            PRIMARY KEY (checkout, conversation, unit, run)) WITHOUT ROWID""",
        "CREATE TABLE stat_index (root TEXT PRIMARY KEY, content TEXT NOT NULL)",
        """CREATE TABLE run (
            id TEXT PRIMARY KEY, checkout INTEGER REFERENCES checkout ON DELETE SET NULL,
            command TEXT NOT NULL, started_ns INTEGER NOT NULL,
            finished_ns INTEGER, exit_code INTEGER, summary TEXT NOT NULL) WITHOUT ROWID""",
        """CREATE TABLE step (
            run TEXT NOT NULL REFERENCES run ON DELETE CASCADE, seq INTEGER NOT NULL, action TEXT NOT NULL,
            conversation TEXT NOT NULL, unit TEXT NOT NULL, kind TEXT NOT NULL, record TEXT NOT NULL,
            state TEXT NOT NULL, message TEXT, at_ns INTEGER NOT NULL,
            PRIMARY KEY (run, seq), UNIQUE (run, action)) WITHOUT ROWID""",
        """CREATE TABLE intent_change (
            run TEXT NOT NULL REFERENCES run ON DELETE CASCADE, seq INTEGER NOT NULL,
            conversation TEXT NOT NULL, before TEXT, after TEXT,
            PRIMARY KEY (run, seq)) WITHOUT ROWID""",
        """CREATE TABLE version (
            id INTEGER PRIMARY KEY, kind TEXT NOT NULL, digest TEXT NOT NULL, xxh3 TEXT NOT NULL,
            size INTEGER NOT NULL, conversation TEXT NOT NULL, unit TEXT NOT NULL, file TEXT NOT NULL,
            side TEXT NOT NULL, path TEXT NOT NULL, mtime_ns INTEGER NOT NULL,
            run TEXT, why TEXT NOT NULL)""",
        "CREATE INDEX version_of ON version (conversation, unit)",
        "CREATE INDEX version_run ON version (run)",
        "CREATE INDEX version_digest ON version (digest)",
    ),
    (
        "ALTER TABLE run ADD COLUMN undoes TEXT",
        """CREATE TABLE remembered (
            run TEXT NOT NULL REFERENCES run ON DELETE CASCADE, conversation TEXT NOT NULL, content TEXT NOT NULL,
            PRIMARY KEY (run, conversation)) WITHOUT ROWID""",
        "CREATE INDEX remembered_of ON remembered (conversation)",
    ),
    ("DROP TABLE stat_index",),
    (
        "CREATE TABLE changed (conversation TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID",
        "CREATE INDEX changed_number ON changed (number)",
    ),
    # The library asks for open runs with every lock that it takes, and leaves a run with every change.
    ("CREATE INDEX run_open ON run (id) WHERE finished_ns IS NULL",),
    ("CREATE TABLE lost (conversation TEXT PRIMARY KEY, title TEXT) WITHOUT ROWID",),
    # Whoever changes which conversations are local has the list of them written again: see local_list.
    (
        "CREATE TABLE local_list (number INTEGER NOT NULL, changed INTEGER NOT NULL)",
        "INSERT INTO local_list SELECT count(*), 0 FROM intent_local",
        "CREATE TABLE local_revoked (conversation TEXT PRIMARY KEY) WITHOUT ROWID",
        """CREATE TRIGGER local_added AFTER INSERT ON intent_local BEGIN
            UPDATE local_list SET changed = 1;
            DELETE FROM local_revoked WHERE conversation = new.conversation;
        END""",
        """CREATE TRIGGER local_removed AFTER DELETE ON intent_local BEGIN
            UPDATE local_list SET changed = 1;
            INSERT OR REPLACE INTO local_revoked VALUES (old.conversation);
        END""",
    ),
    (
        """CREATE TABLE waiting (
            checkout INTEGER NOT NULL REFERENCES checkout ON DELETE CASCADE, conversation TEXT NOT NULL,
            verb TEXT NOT NULL, value TEXT, before TEXT, along TEXT NOT NULL, store TEXT, workspace TEXT,
            run TEXT, why TEXT NOT NULL,
            PRIMARY KEY (checkout, conversation, verb)) WITHOUT ROWID""",
    ),
    # The list names what was removed from a workspace, too.
    (
        """CREATE TABLE removed_revoked (
            conversation TEXT NOT NULL, project TEXT NOT NULL, identity TEXT NOT NULL,
            PRIMARY KEY (conversation, project, identity)) WITHOUT ROWID""",
        """CREATE TRIGGER removed_added AFTER INSERT ON intent WHEN new.kind = 'removed' BEGIN
            UPDATE local_list SET changed = 1;
            DELETE FROM removed_revoked WHERE conversation = new.conversation
                AND (project, identity) IN (SELECT project, identity FROM checkout WHERE id = new.checkout);
        END""",
        """CREATE TRIGGER removed_changed AFTER UPDATE OF kind ON intent
        WHEN new.kind <> old.kind AND 'removed' IN (new.kind, old.kind) BEGIN
            UPDATE local_list SET changed = 1;
            DELETE FROM removed_revoked WHERE conversation = new.conversation
                AND (project, identity) IN (SELECT project, identity FROM checkout WHERE id = new.checkout);
            INSERT OR REPLACE INTO removed_revoked SELECT old.conversation, project, identity FROM checkout
                WHERE id = old.checkout AND old.kind = 'removed';
        END""",
        """CREATE TRIGGER removed_ended AFTER DELETE ON intent WHEN old.kind = 'removed' BEGIN
            UPDATE local_list SET changed = 1;
            INSERT OR REPLACE INTO removed_revoked SELECT old.conversation, project, identity FROM checkout
                WHERE id = old.checkout;
        END""",
        "UPDATE local_list SET number = number + (SELECT count(*) FROM intent WHERE kind = 'removed')",
    ),
    # The metadata that was agreed on, for merges. What no checkout agrees on any more goes with its last entry.
    # `baseline_table.save` takes care of changed entries: a trigger would slow down every update.
    (
        """CREATE TABLE agreed_content (
            conversation TEXT NOT NULL, digest TEXT NOT NULL, content TEXT NOT NULL,
            PRIMARY KEY (conversation, digest)) WITHOUT ROWID""",
        """CREATE TRIGGER agreed_content_ended AFTER DELETE ON agreed_unit WHEN old.unit = 'metadata' BEGIN
            DELETE FROM agreed_content WHERE conversation = old.conversation AND digest = old.digest
                AND NOT EXISTS (SELECT 1 FROM checkout JOIN agreed_unit AS other ON other.checkout = checkout.id
                    WHERE conversation = old.conversation AND unit = 'metadata' AND digest = old.digest);
        END""",
    ),
    # The side whose version the run has taken; null: from before this column.
    ("ALTER TABLE conflict ADD COLUMN winner TEXT",),
    # The units that a pending decision is about.
    ("ALTER TABLE waiting ADD COLUMN decided TEXT NOT NULL DEFAULT '[]'",),
    # CROSS JOIN keeps the order: few checkouts, then a key. SQLite's own choice was to read the whole of agreed_unit.
    (
        "DROP TRIGGER agreed_content_ended",
        """CREATE TRIGGER agreed_content_ended AFTER DELETE ON agreed_unit WHEN old.unit = 'metadata' BEGIN
            DELETE FROM agreed_content WHERE conversation = old.conversation AND digest = old.digest
                AND NOT EXISTS (SELECT 1 FROM checkout CROSS JOIN agreed_unit AS other ON other.checkout = checkout.id
                    WHERE conversation = old.conversation AND unit = 'metadata' AND digest = old.digest);
        END""",
    ),
    # The permissions of the file; null: a version from before this column, a link, or content that had no file.
    ("ALTER TABLE version ADD COLUMN mode INTEGER",),
)
"""Entry n migrates a database from version n to n + 1. A released entry never changes."""

VERSION = len(MIGRATIONS)

LIBRARY = "library"
"""The command of runs that hold the lock of one conversation as long as they last, and not the run lock."""

REMOTE = "remote "
"""The beginning of the identity of a row of ``checkout`` with the baseline of a remote (docs/design/remotes.md)."""

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_NO_ROOM = "check permissions and free space there, or choose another place with RECONCILE_STATE_DIR"


def is_damage(error: sqlite3.Error) -> bool:
    """Tell whether an error of SQLite means that the file is damaged."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED


@contextlib.contextmanager
def state_errors(path: str) -> Iterator[None]:
    """Turn SQLite's errors into a `StateError` with the path and a hint."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in _BUSY:
            hint = "let the other reconcile finish, then run again"
        elif code in _DAMAGED:
            hint = "run again: that checks the file, moves it aside and rebuilds it"
        elif code == sqlite3.SQLITE_READONLY:
            hint = "make its directory writable, then run again"
        else:
            hint = _NO_ROOM
        raise StateError(f"{path}: {error}", hint=hint, is_damage=code in _DAMAGED) from error


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection, path: str) -> Iterator[None]:
    """Write all changes of the block or none; they are durable at its end. Raises `StateError`.

    A block within another transaction is a part of that one.
    """
    is_nested = connection.in_transaction
    if is_nested:
        yield
        return
    with state_errors(path):
        if isinstance(connection, LiveConnection):
            connection.check_path()
        connection.execute("BEGIN IMMEDIATE")
        before, directory, listed = connection.total_changes, os.path.dirname(path), False
        try:
            yield
            if connection.total_changes != before and directory:  # a state in memory has no directory
                listed = _publish_change(connection, directory)
            connection.execute("COMMIT")
        except BaseException:
            # After an error such as a full disk, SQLite may have rolled back already.
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if listed:
                write_after(connection, directory)
            raise
        if listed and has_revoked(connection):
            write_after(connection, directory)


def _publish_change(connection: sqlite3.Connection, directory: str) -> bool:
    """Advance the generation, and write the list of private conversations if it changed; tell whether it did."""
    try:
        advance(directory)
        return write_ahead(connection, directory)
    except OSError as error:
        raise StateError(f"{error.filename or directory}: {error.strerror or error}", hint=_NO_ROOM) from error


def version_of(connection: sqlite3.Connection) -> int:
    """Return the schema version of a database, 0 if it has no schema."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def migrate(connection: sqlite3.Connection, path: str, migrations: Sequence[Sequence[str]] = MIGRATIONS) -> None:
    """Migrate a database to the newest version, in one transaction. Raises `StateError`."""
    with state_errors(path):
        if version_of(connection) >= len(migrations):
            return
    with transaction(connection, path):
        # The version is read again: another process may have migrated while this one waited.
        for migration in migrations[version_of(connection) :]:
            for statement in migration:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(migrations)}")
