"""Walks over one side: lists every directory of conversations once, and reads the copies in it.

`Walk` finds directories by their names; `FixedWalk` reads the fixed places that a format defines.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconcile.fs.files import Directory, error_text, is_special, kind_of
from reconcile.model.format import Entry
from reconcile.model.names import CHILDREN, GIT
from reconcile.model.snapshot import Copy, Foreign, Partition, Problem, Side, Snapshot, nested_git
from reconcile.scan.reader import SYMLINK, ContentCache, CopyLocation, Reader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reconcile.index.rows import Index
    from reconcile.model.format import Format, Places

_TRIES = 2
_OPEN = 64
"""Directories of conversations that are kept open until they are scanned."""
PARTITIONS = {".archive": Partition.ARCHIVE, ".trash": Partition.TRASH}
# Releases of JP from 2026-04 to 2026-06 swapped whole directories (docs/design/formats/jp.md#temporary-files).
_LEFTOVERS = (".staging-", ".old-")


class Level(Struct, frozen=True):
    """A directory of conversations; ``owner`` is the path of the copy that contains it, empty at the top."""

    path: str
    owner: str
    container: str | None
    partition: Partition
    opened: Directory | None = None
    """The open directory, unless too many are open: opening it later would start at the root again."""


class Shard(Struct, frozen=True):
    """A part of a side: a share of the conversations outside of other conversations, with all that is inside these.

    Directories outside of conversations are listed by the walk of every shard, and noted by that of the first one.
    """

    number: int = 0
    of: int = 1

    def has(self, conversation: str) -> bool:
        """Tell whether a conversation is in the shard; forked processes agree on that."""
        return self.of == 1 or hash(conversation) % self.of == self.number

    def notes(self, level: Level) -> bool:
        """Tell whether a walk of the shard notes a directory of conversations."""
        return self.number == 0 or bool(level.owner)


class Walk:
    """One walk over a side, without recursion: trees may be as deep as the file system allows."""

    def __init__(
        self,
        side: Side,
        fmt: Format,
        known: Index,
        events_for: frozenset[str],
        now_ns: int,
        cache: ContentCache | None = None,
    ) -> None:
        self.side = side
        self.fmt = fmt
        self.identity = ""
        self.reader = Reader(side, fmt, known, events_for, now_ns, cache or ContentCache())
        self.copies: list[Copy] = []
        self.stamps: list[tuple[str, tuple[int, int]]] = []
        self.blocked: set[str] = set()
        """The paths of copies whose directory of children can't be read."""
        self.problems: list[Problem] = []
        self._open = 0
        self._shard = Shard()

    def run(self, root: Directory, shard: Shard) -> None:
        """Scan a shard of the side."""
        self._shard = shard
        self.walk(root, [Level("", "", None, Partition.LIVE)])

    @contextmanager
    def opened(self, conversations_dir: str) -> Iterator[Directory]:
        """Open the root, and bind the reader to it. Raises `OSError` if it can't be opened."""
        with Directory.open_root(conversations_dir) as root:
            self.identity = root.identity()
            self.reader.bind(self.fmt.name, self.identity)
            yield root

    def walk(self, root: Directory, pending: list[Level]) -> None:
        """Scan directories of conversations, and those inside them."""
        try:
            while pending:
                self._level(root, pending.pop(), pending)
        finally:
            for level in pending:
                if level.opened is not None:
                    level.opened.close()

    @property
    def has_problems(self) -> bool:
        """Some entry could not be read."""
        return bool(self.reader.problems or self.problems)

    def snapshot(self) -> Snapshot:
        """Return the snapshot, in the format's order of ids."""
        orders = {copy.conversation: self.fmt.order(copy.conversation) for copy in self.copies}
        copies = sorted(self.copies, key=lambda copy: (orders[copy.conversation], copy.path))
        if self.blocked:
            copies = [replace(copy, obstructed=True) if copy.path in self.blocked else copy for copy in copies]
        problems = dict.fromkeys(self.reader.problems + self.problems)  # shards may have the same one
        return Snapshot(
            self.side,
            exists=True,
            identity=self.identity,
            copies=tuple(copies),
            foreign=tuple(sorted(self.reader.foreign, key=lambda entry: entry.path)),
            problems=tuple(sorted(problems, key=lambda problem: problem.path)),
        )

    def _level(self, root: Directory, level: Level, pending: list[Level]) -> None:
        """Scan one directory of conversations with its copies; its other entries are foreign, or partitions."""
        try:
            with level.opened or root.below(level.path) as directory:
                self._open -= level.opened is not None
                status = directory.status()
                self.note_stamp(level.path, status)
                if self._shard.notes(level):
                    self.reader.stats.add(level.path, status, self.reader.now_ns)
                here, foreign = replace(level, opened=directory), len(self.reader.foreign)
                entries = (self.entry_of(entry, here, pending) for entry in self.entries_of(directory, level))
                locations = [location for location in entries if location is not None]
                if not self._shard.notes(level):
                    del self.reader.foreign[foreign:]
                for location in locations:
                    if level.owner or self._shard.has(location.conversation):
                        self.add_copy(directory, location, pending)
        except FileNotFoundError:
            self._note_lost(level.path)
        except OSError as error:
            self.blocked.add(level.owner)
            self.problems.append(Problem(level.path, f"can't be read ({error_text(error)})"))

    def entries_of(self, directory: Directory, level: Level) -> Iterable[os.DirEntry[str]]:  # noqa: ARG002
        """Return the entries of a directory of conversations to scan: all of them."""
        return directory.entries()

    def entry_of(self, entry: os.DirEntry[str], level: Level, pending: list[Level]) -> CopyLocation | None:
        """Return the location of the copy that an entry is; None: it is none, and was noted if that matters."""
        name = entry.name
        path = f"{level.path}/{name}" if level.path else name
        if name == GIT and level.owner:
            self._note_git(path, entry)
        elif entry.is_dir(follow_symlinks=False):
            if not name.startswith("."):
                conversation = self.fmt.id_of(name)
                if conversation is not None:
                    return CopyLocation(path, conversation, level.partition, level.container)
                self.reader.foreign.append(Foreign(path, "a directory whose name is no id"))
            elif name in PARTITIONS:
                pending.append(replace(level, path=path, partition=PARTITIONS[name], opened=None))
                return None
            elif name.startswith(_LEFTOVERS):
                self.reader.foreign.append(Foreign(path, "left over from an interrupted write"))
            if level.owner:
                self._note_unkept(level, name)
        else:
            try:
                mode = entry.stat(follow_symlinks=False).st_mode
            except FileNotFoundError:
                return None
            if not name.startswith(".") or name in PARTITIONS or (level.owner and is_special(mode)):
                link = entry.is_symlink()
                self.reader.foreign.append(Foreign(path, SYMLINK if link else kind_of(mode), link, is_special(mode)))
        return None

    def _note_git(self, path: str, entry: os.DirEntry[str]) -> None:
        self.reader.foreign.append(nested_git(path, directory=not entry.is_file(follow_symlinks=False)))

    def _note_unkept(self, level: Level, name: str) -> None:
        """Note repositories and special files in a hidden directory among a conversation's children.

        It is moved and removed together with the conversation's directory, and the vault can't keep such entries.
        """
        assert level.opened is not None  # noqa: S101 - it is being listed
        pending = [name]
        while pending:
            inside = pending.pop()
            above = f"{level.path}/{inside}"
            try:
                with level.opened.below(inside) as directory:
                    self.reader.stats.add(above, directory.status(), self.reader.now_ns)
                    for entry in directory.entries():
                        if entry.name == GIT:
                            self._note_git(f"{above}/{GIT}", entry)
                        elif entry.is_dir(follow_symlinks=False):
                            pending.append(f"{inside}/{entry.name}")
                        elif is_special(mode := entry.stat(follow_symlinks=False).st_mode):
                            self.reader.foreign.append(Foreign(f"{above}/{entry.name}", kind_of(mode), special=True))
            except FileNotFoundError:
                self._note_lost(above)
            except OSError as error:
                self.reader.note_unread(level.opened, inside, above, error)

    def add_copy(self, level: Directory, location: CopyLocation, pending: list[Level]) -> None:
        """Read one copy, and add its directory of children to ``pending``."""
        for _ in range(_TRIES):
            try:
                self.read_copy(level, location, pending)
            except FileNotFoundError:
                continue  # the directory, or a file in it, was removed in the meantime
            except OSError as error:
                self.copies.append(self.reader.closed(location, error))
            return
        self._note_lost(location.path)

    def read_copy(self, level: Directory, location: CopyLocation, pending: list[Level]) -> None:
        """Read one copy. Raises `OSError`; then nothing of the copy was noted."""
        with level.below(location.path.rpartition("/")[2]) as directory:
            copy, children = self.reader.read_copy(directory, location)
            below = self._children(directory) if children else None
        self.copies.append(copy)
        if children:
            path = f"{location.path}/{CHILDREN}"
            pending.append(Level(path, location.path, location.conversation, location.partition, below))

    def _children(self, directory: Directory) -> Directory | None:
        """Return the open directory of children; None if it can't be opened, or if too many are open."""
        if self._open == _OPEN:
            return None
        try:
            children = directory.below(CHILDREN)
        except OSError:  # reported when the directory itself is scanned
            return None
        self._open += 1
        return children

    def _note_lost(self, path: str) -> None:
        self.stamps.append((path, (0, 0)))

    def note_stamp(self, path: str, status: os.stat_result) -> None:
        """Note the stamp of a directory of conversations, which must not change during the walk."""
        self.stamps.append((path, _stamp(status)))

    def is_unchanged(self, root: Directory, conversations_dir: str) -> bool:
        """Tell whether every directory of conversations has the stamp that it had when it was listed."""
        changed = [path for path, stamp in self.stamps if _stamp_now(root, conversations_dir, path) != stamp]
        self.problems += [Problem(path, "changed during the whole scan") for path in changed]
        return not changed


class FixedWalk(Walk):
    """A walk over fixed places: enters the directories that the format names.

    A record is a file, or a directory with all that is in it.
    """

    @property
    def places(self) -> Places:
        """The format's definition of places."""
        assert self.fmt.places is not None  # noqa: S101 - such formats alone are walked like this
        return self.fmt.places

    def entry_of(self, entry: os.DirEntry[str], level: Level, pending: list[Level]) -> CopyLocation | None:
        """Return the location of the record that an entry is by the format; None: it is none."""
        path = f"{level.path}/{entry.name}" if level.path else entry.name
        directory = entry.is_dir(follow_symlinks=False)
        kind = self.places.entry(path, directory=directory)
        if kind is Entry.IGNORED:
            return None
        try:
            mode = entry.stat(follow_symlinks=False).st_mode
        except FileNotFoundError:
            return None
        if kind is Entry.ENTER and directory:
            pending.append(replace(level, path=path, opened=None))
        elif kind is Entry.RECORD and (directory or stat.S_ISREG(mode)):
            return CopyLocation(path, path, Partition.LIVE, None)
        else:
            link = stat.S_ISLNK(mode)
            description = SYMLINK if link else "a directory" if directory else kind_of(mode)
            self.reader.foreign.append(Foreign(path, description, link, is_special(mode)))
        return None

    def read_copy(self, level: Directory, location: CopyLocation, pending: list[Level]) -> None:  # noqa: ARG002
        """Read one record; a directory without a file that the format knows is none."""
        name = location.path.rpartition("/")[2]
        if stat.S_ISREG(level.stat(name).st_mode):
            self.copies.append(self.reader.read_file_copy(level, name, location))
            return
        with level.below(name) as directory:
            copy, _ = self.reader.read_copy(directory, location)
        if copy.files:
            self.copies.append(copy)


def _stamp(status: os.stat_result) -> tuple[int, int]:
    return status.st_ino, status.st_mtime_ns


def _stamp_now(root: Directory, conversations_dir: str, path: str) -> tuple[int, int] | None:
    """Return the current stamp of a directory; the root is looked up by path, since it may have been replaced."""
    try:
        return _stamp(root.stat(path) if path else os.stat(conversations_dir))
    except OSError:
        return None
