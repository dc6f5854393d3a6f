"""The vault's index: which version of which conversation each object is (docs/concepts.md#what-is-remembered)."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import astuple, replace

from reconcile.model.snapshot import EXTRA, Side
from reconcile.state.schema import state_errors, transaction
from reconcile.state.sql_values import encoded, select

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from reconcile.model.snapshot import Digest

_COLUMNS = "digest, xxh3, size, conversation, unit, file, side, path, mtime_ns, run, why, kind"


class VersionKind(StrEnum):
    """What was kept: a file's content, or the target of a symbolic link."""

    FILE = "file"
    LINK = "link"


class Version(Struct, frozen=True):
    """One file of one unit as it was before a run overwrote or removed it.

    ``digest`` is its name in the vault, ``xxh3`` what the scan knows it by, ``size`` in bytes, ``file`` the
    name in its copy, ``path`` the copy's file below the side, ``why`` a reason of the plan's.
    """

    digest: str
    xxh3: Digest
    size: int
    conversation: str
    unit: str
    file: str
    side: Side
    path: str
    mtime_ns: int
    run: str | None
    why: str
    kind: VersionKind = VersionKind.FILE

    @property
    def name(self) -> str:
        """What `reconcile show` and `restore` know it by; a version that no run has kept, by its digest."""
        return self.digest if self.run is None else f"{self.conversation}@{self.run}:{self.unit.removeprefix(EXTRA)}"


class Versions:
    """The versions kept for one store. All methods raise `StateError`."""

    __slots__ = ("_connection", "_path")

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self._connection, self._path = connection, path

    def add(self, versions: Iterable[Version]) -> None:
        """Note what was put into the vault, in one transaction, after `Vault.flush`."""
        rows = encoded(map(astuple, versions))
        if rows:
            with transaction(self._connection, self._path):
                marks = ", ".join("?" * len(Version.__struct_fields__))
                sql = f"INSERT INTO version ({_COLUMNS}) VALUES ({marks})"  # noqa: S608 - no values in it
                self._connection.executemany(sql, rows)

    def has(self, xxh3: Digest, conversation: str, unit: str) -> bool:
        """Whether a file of this content is kept for this unit already."""
        sql = "SELECT 1 FROM version WHERE conversation = ? AND unit = ? AND xxh3 = ? LIMIT 1"
        with state_errors(self._path):
            return bool(select(self._connection, sql, (conversation, unit, xxh3)))

    def of_conversation(self, conversation: str) -> tuple[Version, ...]:
        """Every version of a conversation, oldest first."""
        return self._found("conversation = ?", conversation)

    def of_run(self, run: str) -> tuple[Version, ...]:
        """What one run kept, in order."""
        return self._found("run = ?", run)

    def with_digest(self, prefix: str) -> tuple[Version, ...]:
        """Every version whose digest in the vault, or in the scan, begins so; oldest first."""
        where = "substr(digest, 1, length(?)) = ? OR substr(xxh3, 1, length(?)) = ?"
        return self._found(where, prefix, prefix, prefix, prefix)

    def conversations(self) -> tuple[str, ...]:
        """Every conversation that a version is kept of."""
        with state_errors(self._path):
            rows = select(self._connection, "SELECT DISTINCT conversation FROM version WHERE conversation <> ''")
        return tuple(row[0] for row in rows)

    def all(self) -> tuple[Version, ...]:
        """Every version, oldest first."""
        return self._found("1")

    def forget(self, digest: str) -> None:
        """Take a purged object out of the index."""
        with transaction(self._connection, self._path):
            self._connection.execute("DELETE FROM version WHERE digest = ?", (digest,))

    def _found(self, condition: str, *values: str) -> tuple[Version, ...]:
        sql = f"SELECT {_COLUMNS} FROM version WHERE {condition} ORDER BY id"  # noqa: S608 - no values in it
        with state_errors(self._path):
            rows = select(self._connection, sql, values)
        # The columns are Version's fields, in their order.
        return tuple(replace(Version(*row), side=Side(row[6]), kind=VersionKind(row[11])) for row in rows)
