"""The scanner of both sides: full scans, rescans of parts, and the indexes that make these cheap."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.errors import ReconcileError
from reconcile.fs.paths import directory_identity
from reconcile.index.rows import Index
from reconcile.index.stat_table import StatTable
from reconcile.model.snapshot import Side
from reconcile.scan.reader import ContentCache, CopyLocation
from reconcile.scan.rescan import location_at, rescan, rescan_locations
from reconcile.scan.scan import ScanInput, scan_sides

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from reconcile.index.file import IndexFile
    from reconcile.index.rows import Row
    from reconcile.index.status import Status
    from reconcile.index.summary import Request, Summary
    from reconcile.model.format import Format
    from reconcile.model.snapshot import Copy, Place, Snapshot
    from reconcile.planning.incremental.side_index import SideIndex
    from reconcile.scan.rescan import Rescanned
    from reconcile.scan.scan import Scanned


class Scanner:
    """Scans both sides, reads the files whose status differs from the index, and updates the index."""

    def __init__(
        self,
        where: Mapping[Side, str],
        file: IndexFile,
        fmt: Format,
        clock: Callable[[], int],
        *,
        is_of_remote: bool = False,
    ) -> None:
        """Load the indexes from the checkout's ``file``; ``where`` are the sides' directories.

        ``is_of_remote``: the workspace is the tree of a remote, where no program works, and nothing is derived.
        """
        self._where, self._file, self._format, self._clock = where, file, fmt, clock
        self._has_program = fmt.places is not None and not is_of_remote
        self._indexes: dict[Side, Index] = {}
        self.mark = b""
        """The mark of the saved rows (`reconcile.index.file`)."""
        self.load()
        self._cache = ContentCache()
        self._stats: dict[Side, StatTable] = {side: StatTable(()) for side in Side}
        self._stale: dict[Side, frozenset[str]] = {}
        """The names whose status has changed since a stat table was saved that this process has restored."""
        self._snapshots: dict[Side, Snapshot] = {}

    def scan(self, touched: Collection[Side] = tuple(Side)) -> dict[Side, Snapshot]:
        """Scan both sides.

        ``touched`` are the sides that this run has written to since the last scan. Another side keeps its snapshot: the
        stat table tells the next run about later changes. A side that did not exist is scanned.
        """
        unchanged = [side for side, before in self._snapshots.items() if side not in touched and before.exists]
        snapshots = {side: self._with_derived_inputs(self._snapshots[side]) for side in unchanged}
        for side, scanned in self._scanned([side for side in Side if side not in unchanged]).items():
            snapshots[side], self._stats[side] = self._with_derived_inputs(scanned.snapshot), scanned.stats
            self._stale.pop(side, None)
            if scanned.changed:
                self._indexes[side], scanned.index.is_saved = scanned.index, False
        self._snapshots = snapshots
        return snapshots

    def rescan(self, known: SideIndex, paths: Collection[str]) -> Rescanned | None:
        """Rescan some directories of a side; None: only a full scan suffices (`reconcile.scan.rescan`).

        The stat table gets what a rescan has seen, also after a full scan: without a new path, no later change of it
        would be noticed.
        """
        side = known.side
        rescanned = rescan(known, self._where[side], self._format, self._indexes[side], paths)
        if rescanned is not None and side in self._stats:
            stale = self._stale.pop(side, ())
            self._stats[side] = self._stats[side].patched([rescanned.stats], stale, rescanned.gone)
        return rescanned

    def rescan_locations(self, known: SideIndex, locations: Collection[CopyLocation]) -> tuple[Copy, ...] | None:
        """Rescan single copies of a side, without the copies inside them; None: only a full scan suffices."""
        return rescan_locations(known, self._where[known.side], self._format, self._indexes[known.side], locations)

    def add_rows(self, rows: Mapping[Place, Row]) -> None:
        """Add rows for files that this run has written; the next scan uses those whose status is unchanged."""
        for side in {place.side for place in rows}:
            identity = directory_identity(self._where[side])
            if self._indexes[side].identity != identity:  # the directory is new
                self._indexes[side] = Index(self._format.name, identity)
            self._indexes[side].rows.update((place.path, row) for place, row in rows.items() if place.side is side)
            self._indexes[side].is_saved = False

    @property
    def is_saved(self) -> bool:
        """Tell whether the file has all rows that this process knows."""
        return all(index.is_saved for index in self._indexes.values())

    def save(self, summary: Summary | None = None, status: Status | None = None) -> None:
        """Save the indexes, so that the next process need not read unchanged files.

        With ``summary`` and ``status`` it can go on from this run. Nothing is saved where no row has changed and these
        are not given.
        """
        self._cache = ContentCache()
        if summary is not None or not self.is_saved:
            self.mark = self._file.save([self._indexes[side] for side in Side], summary, status)

    def load_summary(self, request: Request, now_ns: int) -> Summary | None:
        """Return the summary that was saved with the rows of this process; None where it does not hold."""
        summary = self._file.load_summary(request, now_ns) if self.is_saved and self.mark else None
        return None if summary is None or summary.mark != self.mark else summary

    def load_status(self, mark: bytes) -> Status | None:
        """Return the status that was saved with the rows of this process and the summary of this mark."""
        if mark != self.mark:
            return None
        return self._file.load_status(mark, [self._indexes[side].rows.saved_paths for side in Side])

    def index(self, side: Side) -> Index:
        """Return the index of a side."""
        return self._indexes[side]

    def copies_in_index(self, side: Side) -> Callable[[str], Copy]:
        """Return a function that builds the copy at a path from the index as it is now."""
        rows = self._indexes[side].rows.frozen()
        rows.arrange()

        def copy(path: str) -> Copy:
            row, location = rows[path], location_at(path, self._format)
            assert isinstance(location, CopyLocation)  # noqa: S101 - it was the path of a copy
            return row.copy(side, location.conversation, path, location.partition, location.container)

        return copy

    def release_copies(self) -> None:
        """Free the copies that make the next full scan faster."""
        self._snapshots = {}
        for index in self._indexes.values():
            index.copies = {}

    def release_tables(self) -> None:
        """Free the stat tables: then no summary can be saved until the next full scan, or until they are restored."""
        self._stats, self._stale = {}, {}

    def release_all(self) -> None:
        """Free everything that was saved, until it is loaded again."""
        self.release_copies()
        self.release_tables()
        self._indexes = {side: Index() for side in Side}

    def load(self) -> None:
        """Load the saved indexes."""
        self.mark, indexes = self._file.load_indexes()
        self._indexes = dict(zip(Side, indexes, strict=True))

    def restore(self, side: Side, stats: StatTable, stale: Collection[str]) -> None:
        """Restore the stat table that an earlier process has saved; ``stale``: names whose status has changed since."""
        self._stats[side], self._stale[side] = stats, frozenset(stale)

    def stat_table(self, side: Side) -> StatTable:
        """Return the status of every path of a side at its last scan or rescan."""
        if stale := self._stale.pop(side, ()):
            self._stats[side] = self._stats[side].patched((), stale, ())
        return self._stats[side]

    def _scanned(self, sides: Collection[Side]) -> dict[Side, Scanned]:
        inputs = {side: ScanInput(self._where[side], self._indexes[side]) for side in sides}
        return scan_sides(inputs, self._format, cache=self._cache)

    def _with_derived_inputs(self, snapshot: Snapshot) -> Snapshot:
        """Return a workspace's snapshot with the inputs of derived data, if its format has such data."""
        if not self._has_program or snapshot.side is Side.STORE or not snapshot.exists:
            return snapshot
        inputs = _read_inputs(self._format.name, self._where[Side.WORKSPACE], self._clock())
        return replace(snapshot, derived_inputs=inputs)


def _leslie(root: str, now_ns: int) -> object:
    from reconcile.adapters.leslie.files import read_leslie

    return read_leslie(os.path.dirname(root), now_ns)


def _claudesidian(root: str, now_ns: int) -> object:
    from reconcile.adapters.claudesidian.files import read_vault
    from reconcile.formats.claudesidian.vault import VaultSnapshot

    return VaultSnapshot(read_vault(root), now_ns // 1_000_000)


def _claude_code(root: str, _now_ns: int) -> object:
    from reconcile.adapters.claude_code.directories import live_sessions
    from reconcile.formats.claude_code.format import ANY, LiveSessions

    try:
        return live_sessions(os.path.dirname(os.path.dirname(root)))
    except OSError:
        return LiveSessions({ANY: 0})  # one of them may be open


_READERS: Mapping[str, Callable[[str, int], object]] = {
    "claude-code": _claude_code,
    "claudesidian": _claudesidian,
    "leslie": _leslie,
}


def _read_inputs(format_name: str, root: str, now_ns: int) -> object:
    """Return the argument ``inputs`` of `Places.mend`; None if there is nothing to read, or if it can't be read."""
    if (read := _READERS.get(format_name)) is None:
        return None
    try:
        return read(root, now_ns)
    except (OSError, ReconcileError):
        return None
