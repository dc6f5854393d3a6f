"""Staging: new files wait in a hidden directory, and old files are saved to the vault (docs/design/run.md#rule-50).

A staging directory is called ``.reconcile-<state>-<run>`` and is in the ``conversations/`` directory of its side. So a
rename never crosses a file system, and JP ignores it, because its name begins with a dot.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from msgspec import Struct, field

from reconcile.fs.files import mtime_of, read_all
from reconcile.fs.hashing import CHUNK, chunks_of
from reconcile.model.snapshot import EXTRA, METADATA, Place, Side
from reconcile.state.vault import Version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from reconcile.fs.durability import Durability
    from reconcile.fs.files import Fingerprint
    from reconcile.fs.mutations import Root
    from reconcile.index.rows import Files
    from reconcile.model.plan import Action, Precondition, Write
    from reconcile.model.snapshot import Digest
    from reconcile.state.vault import Vault


class DriftError(Exception):
    """A file differs from the plan: its conversation stays unchanged."""


class SavedFile(NamedTuple):
    """A file that was saved to the vault: its status and its digest when it was read."""

    status: os.stat_result
    content: Digest


class StagedDirectory(NamedTuple):
    """A directory that the second process has staged: its name, its files, and the fingerprints of the sources."""

    base: str
    files: Files
    sources: Mapping[Place, Fingerprint]


class Prefetched(Protocol):
    """The directories that a second process stages."""

    def take(self, action: Action) -> StagedDirectory | None:
        """Return the directory that was staged for an action, once; None if there is none."""


class Stage(Struct, kw_only=True):
    """The two sides, the vault, and the files that are staged for the present level."""

    roots: Mapping[Side, Root]
    vault: Vault
    durability: Durability
    run: str
    directory: str
    """The name of the run's staging directory on each side."""
    unit_of: Callable[[str], str | None]
    id_of: Callable[[str], str | None]
    metadata_file: str
    """The name of the metadata file; empty if a record may be a single file (`Format.metadata_file`)."""
    numbers: int = 0
    staged: list[str] = field(default_factory=list)
    renamed: set[str] = field(default_factory=set)
    versions: list[Version] = field(default_factory=list)
    used: set[Side] = field(default_factory=set)
    prefetcher: Prefetched | None = None
    """The second process, if there is one."""
    unremoved: list[tuple[Place, int]] = field(default_factory=list)
    """Moved or removed entries whose empty parents could not be removed yet: see `remove_empty_parents`."""

    @contextmanager
    def sources_pinned(self, action: Action) -> Iterator[None]:
        """Pin the directories that an action reads from while the block runs."""
        with ExitStack() as stack:
            for side, path in _sources(action):
                stack.enter_context(self.roots[side].pinned(path))
            yield

    def flush(self) -> list[Version]:
        """Make the vault's new objects and all staged files durable; only then may a file be replaced.

        Return the new versions, which must be recorded before the files are replaced.
        """
        self.vault.flush()
        directories = sorted({os.path.dirname(path) for path in self.staged})
        within = [self.roots[side].absolute(self.directory) for side in sorted(self.used)]
        self.durability.flush_all(self.staged, directories, within)
        versions, self.staged, self.versions = self.versions, [], []
        return versions

    def flush_directories(self) -> None:
        """Make the renames of a level durable.

        Raises `OSError`, also if a side was moved meanwhile: its directories can't be flushed by their paths.
        """
        for root in self.roots.values() if self.renamed else ():
            os.stat(root.path)
        renamed = [path for path in sorted(self.renamed) if os.path.isdir(path)]
        self.durability.flush_all((), renamed)
        self.renamed = set()

    def check(self, expect: Precondition) -> os.stat_result | None:
        """Check one precondition; return the status of the file, or None if nothing is expected.

        Raises:
            DriftError: the file is missing or different, or an entry exists where none is expected.
        """
        root = self.roots[expect.place.side]
        try:
            status = root.status(expect.place.path)
        except (FileNotFoundError, NotADirectoryError):
            if expect.absent:
                return None
            raise DriftError(f"{expect.place}: found nothing, expected the file of the plan") from None
        if expect.absent:
            if root.is_empty_tree(expect.place.path):
                return None
            raise DriftError(f"{expect.place}: found something, expected nothing")
        if not stat.S_ISREG(status.st_mode) or (status.st_size, mtime_of(status)) != (
            expect.size,
            expect.mtime_ns,
        ):
            raise DriftError(f"{expect.place}: found another file, expected the one of the plan")
        return status

    def new_name(self, side: Side) -> str:
        """Return an unused name in the staging directory of a side; the first call makes the directory.

        Raises `FileExistsError` if an entry has the name of the directory: it doesn't belong to this run.
        """
        if side not in self.used:
            if not self.roots[side].make_directories(self.directory):
                words = "found something there already, expected to make a staging directory of this name"
                raise FileExistsError(errno.EEXIST, words, self.roots[side].absolute(self.directory))
            self.used.add(side)
            self.roots[side].pin(self.directory)
        self.numbers += 1
        return f"{self.directory}/{self.numbers}"

    def save(self, action: Action, place: Place, name: str, expected: Digest | None) -> SavedFile:
        """Save a file to the vault before it is replaced or removed.

        Raises:
            DriftError: its content differs from the plan.
        """
        fd = self.roots[place.side].open_file(place.path)
        try:
            kept = self.vault.put_file(fd)
            status = os.fstat(fd)
        finally:
            os.close(fd)
        if expected is not None and kept.xxh3 != expected:
            raise DriftError(f"{place}: found other content, expected that of the plan")
        self.versions.append(
            Version(
                digest=kept.digest,
                xxh3=kept.xxh3,
                size=kept.size,
                conversation=action.conversation,
                unit=self.unit_of(name) or action.unit,
                file=name,
                side=place.side,
                path=place.path,
                mtime_ns=mtime_of(status),
                run=self.run,
                why=action.reason.value,
            )
        )
        return SavedFile(status, kept.xxh3)

    def write_directory(self, action: Action, base: str) -> Files:
        """Write a new directory into the staging directory.

        Raises:
            DriftError: the content of a source differs from the plan.
            OSError: a file could not be read or written.
        """
        root = self.roots[action.target.side]
        root.make_directory(base)
        files: dict[str, tuple[Fingerprint, Digest]] = {}
        with root.pinned(base):
            for write in action.writes:
                path = write.target.path[len(action.target.path) + 1 :]
                folder = path.rpartition("/")[0]
                if folder:
                    root.make_directories(f"{base}/{folder}")
                files[path] = self.write(action.target.side, f"{base}/{path}", write)
        return files

    def write(self, side: Side, name: str, write: Write) -> tuple[Fingerprint, Digest]:
        """Write a new file into the staging directory; raises as `write_directory` does."""
        root = self.roots[side]
        with self._content(write) as chunks:
            # One pass: the digest is that of the bytes that are written.
            fingerprint, digest = root.create_file(name, chunks, write.mtime_ns)
            if digest != write.digest:
                raise DriftError(f"{write.source}: found other content, expected that of the plan")
        self.staged.append(root.absolute(name))
        return fingerprint, digest

    @contextmanager
    def _content(self, write: Write) -> Iterator[Iterable[bytes]]:
        """Yield the chunks to write; their sum may be larger than memory."""
        if write.kept is not None:
            with self.vault.open(write.kept) as kept:
                yield chunks_of(kept.fileno())
        elif write.source is None:
            yield (write.content or b"",)
        else:
            fd = self.roots[write.source.side].open_file(write.source.path)
            try:
                yield (read_all(fd, write.size)[0],) if write.size <= CHUNK else chunks_of(fd)
            finally:
                os.close(fd)

    def make_parents(self, target: Place) -> None:
        """Make the parents of a new entry: `.archive`, a `conversations`, the folder of an extra."""
        above = target.path.rpartition("/")[0]
        if above:
            root = self.roots[target.side]
            for directory in root.make_directories(above):
                self.renamed.add(os.path.dirname(root.absolute(directory)))

    def mark_renamed(self, place: Place) -> None:
        """Record that the directory of an entry must be flushed."""
        self.renamed.add(os.path.dirname(self.roots[place.side].absolute(place.path)))

    def remove_empty_parents(self, left: Place, folders: int = 0) -> None:
        """Remove the empty parents of a moved or removed entry, now or at the end of the run."""
        try:
            self.roots[left.side].remove_empty_parents(left.path, folders)
        except OSError:
            self.unremoved.append((left, folders))

    def retry_removals(self) -> None:
        """Remove the empty parents that could not be removed before; a move would take them along."""
        waiting, self.unremoved = self.unremoved, []
        for left, folders in waiting:
            self.remove_empty_parents(left, folders)

    def name_in(self, action: Action, place: Place) -> str:
        """Return the name of a file below the directory of its conversation."""
        if action.unit == METADATA:
            return self.metadata_file
        if action.unit.startswith(EXTRA):
            return action.unit.removeprefix(EXTRA)
        return place.path.rpartition("/")[2]


def _sources(action: Action) -> Iterable[tuple[Side, str]]:
    """Return the directories that an action reads from, each with its side."""
    places = (write.source for write in action.writes if write.source is not None)
    return {(place.side, place.path.rpartition("/")[0]): None for place in places}
