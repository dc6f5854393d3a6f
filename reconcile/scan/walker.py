"""One pass over one side, in which every directory of conversations is listed once."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from reconcile.fs.dirfd import Directory, is_special, kind_of
from reconcile.fs.files import error_text
from reconcile.model.names import CHILDREN, GIT
from reconcile.model.snapshot import Copy, Foreign, Partition, Problem, Side, Snapshot, nested_git
from reconcile.scan.content_cache import Facts
from reconcile.scan.reader import SYMLINK, Reader, Spot

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reconcile.index.stat_cache import Index
    from reconcile.model.format import Format

_TRIES = 2
_OPEN = 64
"""Directories of conversations that are kept open until they are looked at."""
PARTITIONS = {".archive": Partition.ARCHIVE, ".trash": Partition.TRASH}
# Releases of JP from 2026-04 to 2026-06 swapped whole directories (docs/design/formats/jp.md#temporary-files).
_LEFTOVERS = (".staging-", ".old-")


class Level(NamedTuple):
    """A directory of conversations; ``owner`` is the path of the copy that it lies in, empty at the top."""

    path: str
    owner: str
    container: str | None
    partition: Partition
    opened: Directory | None = None
    """Itself, where few enough are open: a chain isn't walked down from the root again for each of its links."""


class Walk:
    """One pass over a side, without recursion: trees may be as deep as the file system allows."""

    def __init__(
        self,
        side: Side,
        fmt: Format,
        known: Index,
        events_for: frozenset[str],
        now_ns: int,
        facts: Facts | None = None,
    ) -> None:
        self.side = side
        self.fmt = fmt
        self.identity = ""
        self.reader = Reader(side, fmt, known, events_for, now_ns, facts or Facts())
        self.copies: list[Copy] = []
        self._stamps: list[tuple[str, tuple[int, int]]] = []
        self._open = 0
        self._blocked: set[str] = set()
        self._problems: list[Problem] = []

    def run(self, conversations_dir: str) -> bool:
        """Look at everything; False where a directory of conversations changed on the way.

        Raises `OSError` only where the root itself can't be opened.
        """
        with self.opened(conversations_dir) as root:
            self.walk(root, [Level("", "", None, Partition.LIVE)])
            return self.at_rest(root, conversations_dir)

    @contextmanager
    def opened(self, conversations_dir: str) -> Iterator[Directory]:
        """Open the root, and say whose index is good for it. Raises `OSError` where it can't be opened."""
        with Directory.open_root(conversations_dir) as root:
            status = root.status()
            self.identity = f"{status.st_dev}:{status.st_ino}"
            self.reader.bind(self.fmt.name, self.identity)
            yield root

    def walk(self, root: Directory, pending: list[Level]) -> None:
        """Look at directories of conversations, and at those inside them."""
        try:
            while pending:
                self._level(root, pending.pop(), pending)
        finally:
            for level in pending:
                if level.opened is not None:
                    level.opened.close()

    @property
    def has_problems(self) -> bool:
        """Something could not be looked at."""
        return bool(self.reader.problems or self._problems)

    def snapshot(self) -> Snapshot:
        """What was found, in order."""
        orders = {copy.conversation: self.fmt.order(copy.conversation) for copy in self.copies}
        copies = sorted(self.copies, key=lambda copy: (orders[copy.conversation], copy.path))
        if self._blocked:
            copies = [replace(copy, obstructed=True) if copy.path in self._blocked else copy for copy in copies]
        return Snapshot(
            self.side,
            exists=True,
            identity=self.identity,
            copies=tuple(copies),
            foreign=tuple(sorted(self.reader.foreign, key=lambda entry: entry.path)),
            problems=tuple(sorted(self.reader.problems + self._problems, key=lambda problem: problem.path)),
        )

    def _level(self, root: Directory, level: Level, pending: list[Level]) -> None:
        """Look at one directory of conversations with its copies; what else is in it is foreign, or a partition."""
        try:
            with level.opened or root.below(level.path) as directory:
                self._open -= level.opened is not None
                status = directory.status()
                self.note_stamp(level.path, status)
                self.reader.sweep.note(level.path, status, self.reader.now_ns)
                here = level._replace(opened=directory)
                entries = (self.entry_of(entry, here, pending) for entry in self.entries_of(directory, level))
                for spot in [spot for spot in entries if spot is not None]:
                    self.copy(directory, spot, pending)
        except FileNotFoundError:
            self._lost(level.path)
        except OSError as error:
            self._blocked.add(level.owner)
            self._problems.append(Problem(level.path, f"it can't be read ({error_text(error)})"))

    def entries_of(self, directory: Directory, level: Level) -> Iterable[os.DirEntry[str]]:  # noqa: ARG002
        """What has to be looked at of a directory of conversations: all that is in it."""
        return directory.entries()

    def entry_of(self, entry: os.DirEntry[str], level: Level, pending: list[Level]) -> Spot | None:
        """What one entry of a directory of conversations is."""
        name = entry.name
        path = f"{level.path}/{name}" if level.path else name
        if name == GIT and level.owner:
            self._note_git(path, entry)
        elif entry.is_dir(follow_symlinks=False):
            if not name.startswith("."):
                conversation = self.fmt.id_of(name)
                if conversation is not None:
                    return Spot(path, conversation, level.partition, level.container)
                self.reader.foreign.append(Foreign(path, "a directory whose name is no id"))
            elif name in PARTITIONS:
                pending.append(level._replace(path=path, partition=PARTITIONS[name], opened=None))
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
        """Note repositories, and what the vault can't keep, in a directory among a conversation's children that is none
        of them: it is removed and moved with the conversation's.
        """
        assert level.opened is not None  # noqa: S101 - it is being listed
        pending = [name]
        while pending:
            inside = pending.pop()
            above = f"{level.path}/{inside}"
            try:
                with level.opened.below(inside) as directory:
                    self.reader.sweep.note(above, directory.status(), self.reader.now_ns)
                    for entry in directory.entries():
                        if entry.name == GIT:
                            self._note_git(f"{above}/{GIT}", entry)
                        elif entry.is_dir(follow_symlinks=False):
                            pending.append(f"{inside}/{entry.name}")
                        elif is_special(mode := entry.stat(follow_symlinks=False).st_mode):
                            self.reader.foreign.append(Foreign(f"{above}/{entry.name}", kind_of(mode), special=True))
            except FileNotFoundError:
                self._lost(above)
            except OSError as error:
                self.reader.note_unread(level.opened, inside, above, error)

    def copy(self, level: Directory, spot: Spot, pending: list[Level]) -> None:
        """One copy, and its children for later."""
        for _ in range(_TRIES):
            try:
                self.look(level, spot, pending)
            except FileNotFoundError:
                continue  # the directory went, or a file of it between two looks
            except OSError as error:
                self.copies.append(self.reader.closed(spot, error))
            return
        self._lost(spot.path)

    def look(self, level: Directory, spot: Spot, pending: list[Level]) -> None:
        """One copy; raises `OSError`, after which nothing of it has been noted."""
        with level.below(spot.path.rpartition("/")[2]) as directory:
            copy, children = self.reader.look(directory, spot)
            below = self._children(directory) if children else None
        self.copies.append(copy)
        if children:
            path = f"{spot.path}/{CHILDREN}"
            pending.append(Level(path, spot.path, spot.conversation, spot.partition, below))

    def _children(self, directory: Directory) -> Directory | None:
        """The directory of children, kept open; None where it can't be, or where enough are open."""
        if self._open == _OPEN:
            return None
        try:
            found = directory.below(CHILDREN)
        except OSError:  # it is said when it is looked at
            return None
        self._open += 1
        return found

    def _lost(self, path: str) -> None:
        self._stamps.append((path, (0, 0)))

    def note_stamp(self, path: str, status: os.stat_result) -> None:
        """Note how a directory of conversations is that must not change while it is looked at."""
        self._stamps.append((path, _stamp(status)))

    def at_rest(self, root: Directory, conversations_dir: str) -> bool:
        """Whether every directory of conversations is as it was when it was listed."""
        unsettled = [path for path, stamp in self._stamps if _stamp_now(root, conversations_dir, path) != stamp]
        self._problems += [Problem(path, "it kept changing while it was looked at") for path in unsettled]
        return not unsettled


def _stamp(status: os.stat_result) -> tuple[int, int]:
    return status.st_ino, status.st_mtime_ns


def _stamp_now(root: Directory, conversations_dir: str, path: str) -> tuple[int, int] | None:
    """The stamp of a directory; the root's is asked for by its own path, where another may be by now."""
    try:
        return _stamp(root.stat(path) if path else os.stat(conversations_dir))
    except OSError:
        return None
