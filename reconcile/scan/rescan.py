"""Rescans a part of one side: directories that have changed, and everything that is new in them.

The caller's list of changes may be incomplete, so that a missing directory proves nothing. A full scan is required if a
conversation seems to have left the side, if foreign entries have appeared or gone, or in any other doubt.
"""

from __future__ import annotations

import stat
import time
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconcile.model.names import CHILDREN
from reconcile.model.snapshot import Copy, Partition
from reconcile.scan.reader import CopyLocation
from reconcile.scan.walker import PARTITIONS, Level, Walk

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterable
    from collections.abc import Set as AbstractSet

    from reconcile.fs.files import Directory
    from reconcile.index.rows import Index
    from reconcile.index.stat_table import StatList
    from reconcile.model.format import Format
    from reconcile.planning.incremental.side_index import SideIndex

_TRIES = 3


class Rescanned(Struct, frozen=True):
    """The result of a rescan: the copies that exist now, and the paths whose copy is gone.

    ``stats``: the status of every scanned path.
    """

    copies: tuple[Copy, ...]
    gone: frozenset[str]
    stats: StatList


def rescan(
    known: SideIndex, conversations_dir: str, fmt: Format, index: Index, paths: Collection[str]
) -> Rescanned | None:
    """Rescan some directories of a side, and update the index; None: only a full scan suffices.

    ``paths`` are relative to the side's directory. The directory of a conversation is scanned with all that is inside
    it. In a directory that holds conversations, only new entries are scanned.
    """
    for _ in range(_TRIES):
        walk = _PartialWalk(known, fmt, index)
        try:
            is_stable = walk.rescan(conversations_dir, paths)
        except OSError:
            return None
        if walk.needs_full_scan:
            return None
        if is_stable:
            gone = frozenset(walk.gone - {copy.path for copy in walk.copies})
            _update_index(index, walk, (*gone, *(copy.path for copy in walk.copies)))
            return Rescanned(tuple(walk.copies), gone, walk.reader.stats)
    return None


def rescan_locations(
    known: SideIndex, conversations_dir: str, fmt: Format, index: Index, locations: Collection[CopyLocation]
) -> tuple[Copy, ...] | None:
    """Rescan single copies of a side, without the copies inside them; None: only a full scan suffices."""
    walk = Walk(known.side, fmt, index, frozenset(), time.time_ns())
    try:
        with walk.opened(conversations_dir) as root:
            for location in locations:
                pending: list[Level] = []
                with root.below(location.path.rpartition("/")[0]) as level:
                    walk.add_copy(level, location, pending)
                for below in pending:
                    if below.opened is not None:
                        below.opened.close()
    except OSError:
        return None
    is_complete = walk.identity == known.identity and len(walk.copies) == len(locations) and not walk.has_problems
    if not is_complete:
        return None
    _update_index(index, walk, [copy.path for copy in walk.copies])
    return tuple(walk.copies)


def _update_index(index: Index, walk: Walk, paths: Iterable[str]) -> None:
    new = walk.reader.index
    for path in paths:
        if path not in new.rows and index.rows.pop(path, None) is not None:
            index.is_saved = False
        index.copies.pop(path, None)
    # Unchanged rows are not saved again.
    for path, row in new.rows.items():
        if index.rows.get(path) != row:
            index.rows[path], index.is_saved = row, False
    index.copies.update(new.copies)


class _PartialWalk(Walk):
    """A walk that scans only the named directories, and directories that are not in the index."""

    def __init__(self, known: SideIndex, fmt: Format, index: Index) -> None:
        super().__init__(known.side, fmt, index, frozenset(), time.time_ns())
        self.gone: set[str] = set()
        self.needs_full_scan = False
        self._known = known
        self._listed: dict[str, AbstractSet[str]] = {}
        """The paths of the copies in each named directory of conversations, by its path."""
        self._named: set[str] = set()
        """The named directories of single conversations."""

    def rescan(self, conversations_dir: str, paths: Iterable[str]) -> bool:
        """Scan; return False if a directory changed during the walk. Raises `OSError` if one can't be read."""
        with self.opened(conversations_dir) as root:
            self.needs_full_scan = self.identity != self._known.identity
            for path in sorted(set(paths), key=lambda path: (path.count("/"), path)):
                place = location_at(path, self.fmt)
                if place is None:
                    self.needs_full_scan = True
                elif isinstance(place, Level):
                    self._rescan_level(root, place)
                else:
                    self._rescan_copy(root, place)
            self._note_gone()
            self.needs_full_scan = self.needs_full_scan or self.has_problems or self._has_foreign_changes()
            return self.is_unchanged(root, conversations_dir)

    def entries_of(self, directory: Directory, level: Level) -> Iterable[os.DirEntry[str]]:
        """Return the new entries of a directory of conversations; all, if it is inside a named one."""
        if self._is_named(level.path):
            return directory.entries()
        entries, above = list(directory.entries()), f"{level.path}/" if level.path else ""
        directories = {above + entry.name: entry for entry in entries if entry.is_dir(follow_symlinks=False)}
        files = [entry for entry in entries if not entry.is_dir(follow_symlinks=False)]
        new = directories.keys() - self._known.paths | self._named.intersection(directories)
        self._listed[level.path] = directories.keys() - new if new else directories.keys()
        return [*(directories[path] for path in new), *files]

    def _rescan_level(self, root: Directory, level: Level) -> None:
        """Scan the new entries of a directory of conversations."""
        if self._is_named(level.path):
            return
        self._listed[level.path] = frozenset()
        if self._status(root, level.path) is not None:
            self.walk(root, [level])

    def _rescan_copy(self, root: Directory, location: CopyLocation) -> None:
        """Scan a conversation's directory, with all that is inside it."""
        if self._is_named(location.path):
            return
        self._named.add(location.path)
        self.gone.update(self._known.within(location.path))
        status = self._status(root, location.path)
        if status is not None and stat.S_ISDIR(status.st_mode):
            pending: list[Level] = []
            with root.below(location.path.rpartition("/")[0]) as level:
                self.add_copy(level, location, pending)
            self.walk(root, pending)
        elif status is not None:
            self.needs_full_scan = True

    def _is_named(self, path: str) -> bool:
        """Tell whether a path is a named directory of a conversation, or inside one."""
        while path:
            if path in self._named:
                return True
            path = path.rpartition("/")[0]
        return False

    def _status(self, root: Directory, path: str) -> os.stat_result | None:
        """Return the status of a directory, None if it is missing; its parent must not change during the walk."""
        above = path.rpartition("/")[0]
        try:
            around = root.stat(above) if above else root.status()
            self.note_stamp(above, around)
            return root.stat(path) if path else around
        except FileNotFoundError:
            return None

    def _note_gone(self) -> None:
        """Note the copies that are gone from the listed directories, and from partitions of these that are gone."""
        for listed, present in self._listed.items():
            owner = _owner(listed)
            base = f"{owner}/{CHILDREN}" if owner else ""
            for path in self._known.inside(owner) - present:
                at = path.rpartition("/")[0]
                if at == listed or (listed == base and at not in self._listed):
                    self.gone.update(self._known.within(path))

    def _has_foreign_changes(self) -> bool:
        """Tell whether a foreign entry has appeared, changed or gone."""
        before = {entry for path in self.gone for entry in self._known.foreign(path)}
        for listed in self._listed:
            entries = self._known.foreign(_owner(listed))
            before.update(entry for entry in entries if entry.path.rpartition("/")[0] == listed)
        return before != set(self.reader.foreign)


def _owner(level: str) -> str:
    """Return the path of the copy that contains a directory of conversations; empty: none does."""
    return f"{level}/".rpartition(f"/{CHILDREN}/")[0]


def location_at(path: str, fmt: Format) -> CopyLocation | Level | None:
    """Return the location of a copy or a directory of conversations by its path; None: it is neither.

    A path inside a conversation's directory gives that directory.
    """
    level, names = Level("", "", None, Partition.LIVE), path.split("/") if path else []
    while names:
        name = names.pop(0)
        at = f"{level.path}/{name}" if level.path else name
        if name in PARTITIONS:
            level = replace(level, path=at, partition=PARTITIONS[name])
            continue
        conversation = None if name.startswith(".") else fmt.id_of(name)
        if conversation is None:
            return None
        if names[:1] != [CHILDREN]:
            return CopyLocation(at, conversation, level.partition, level.container)
        names.pop(0)
        level = Level(f"{at}/{CHILDREN}", at, conversation, level.partition)
    return level
