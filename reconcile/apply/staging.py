"""Staging: new files wait in a hidden directory, and old files are saved to the vault (docs/design/run.md#rule-50).

A staging directory is called ``.reconcile-<state>-<run>`` and is in the ``conversations/`` directory of its side. So a
rename never crosses a file system, and JP ignores it, because its name begins with a dot. Its run removes it at the
end, or recovery does; directories of other states are never touched.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import time
from contextlib import contextmanager
from functools import partial, reduce
from operator import and_
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field

from reconcile.fs.files import fingerprint_of, mtime_of, read_all
from reconcile.fs.hashing import BLOCK, BLOCK_DIGEST, CHUNK, chunks_of, digest_file, digest_of_block
from reconcile.fs.mutations import DIRECTORY_MODE, FILE_MODE
from reconcile.model.snapshot import EXTRA, METADATA, STREAM, Place, Side
from reconcile.serialization.plan_json import place_from_json
from reconcile.state.schema import LIBRARY
from reconcile.state.vault import Version, VersionKind

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from reconcile.fs.durability import Durability
    from reconcile.fs.files import Fingerprint
    from reconcile.fs.mutations import Root
    from reconcile.index.rows import Files
    from reconcile.model.format import Format
    from reconcile.model.plan import Action, Precondition, Write
    from reconcile.model.snapshot import Beginning, Digest
    from reconcile.state.journal import Step
    from reconcile.state.vault import Vault, VaultObject

STAGING = ".reconcile-"
"""Every staging directory's name begins so."""


def staging_name(identity: str, run: str, command: str = "") -> str:
    """Return the name of a run's staging directory, the same on each side.

    It contains the ``identity`` of the state, because two states of one store may have runs with the same id. Those of
    the library are in a common directory that stays: otherwise each event would change the ``conversations/``
    directory.
    """
    return f"{library_staging_name(identity)}/{run}" if command == LIBRARY else f"{STAGING}{identity}-{run}"


def library_staging_name(identity: str) -> str:
    """Return the name of the common directory of the library's staging directories."""
    return f"{STAGING}{identity}"


def remove_library_staging(identity: str, roots: Iterable[Root], unused_s: float = 0) -> None:
    """Remove the common directory of the library's staging directories, if it is empty.

    A process that needs it makes it again. ``unused_s``: it must be unchanged for so many seconds.
    """
    name = library_staging_name(identity)
    for root in roots:
        with contextlib.suppress(OSError):
            if time.time() - root.status(name).st_mtime >= unused_s:
                root.remove_directory(name)


def is_staged(root: Root, name: str) -> bool:
    """Tell whether a staging directory exists; a file or a link of that name is none."""
    try:
        return stat.S_ISDIR(root.status(name).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def clean_staging(
    name: str,
    run: str,
    roots: Mapping[Side, Root],
    steps: Callable[[], Sequence[Step]],
    vault: Vault,
    record: Callable[[Sequence[Version]], None],
) -> None:
    """Remove a run's staging directory from these sides.

    A file in it was staged from a source, or was removed and is in the vault, or was written by another program at the
    wrong moment. So a file without an equal source is saved to the vault first, and one that still changes stays.
    ``record`` gets the saved versions before their files are removed: a kill leaves none without a record. ``steps`` is
    called only if there are files. Raises `OSError`.
    """
    for side, root in roots.items():
        if not is_staged(root, name):
            continue
        versions: list[Version] = []
        entries = [(name, root.status(name)), *root.walk(name)]
        files = [(path, status) for path, status in entries if not stat.S_ISDIR(status.st_mode)]
        sources = _places_by_content(steps()) if files else {}
        for path, status in files:
            kept = _save(root, path, status, sources, roots, vault)
            if kept is not None:
                versions.append(_version(kept, side, path, status, run))
        vault.flush()
        record(versions)
        root.remove_entries(entries)


def folders_of(fmt: Format, conversation: str) -> int:
    """Return the number of folders above a record that are there only for the one that it belongs to."""
    places = fmt.places
    return conversation.count("/") if places is not None and places.owner(conversation) is not None else 0


def remove_empty_parents(steps: Iterable[Step], roots: Mapping[Side, Root], fmt: Format) -> None:
    """Remove the directories that the moves and removals of a run have left empty.

    See docs/design/formats/jp.md#edge-case-93.
    """
    for step in steps:
        action = json.loads(step.record)
        left = place_from_json(action["source"] or action["target"])
        if left.side in roots:
            roots[left.side].remove_empty_parents(left.path, folders_of(fmt, step.conversation))
            for gone in map(place_from_json, action["removes"]):
                roots[gone.side].remove_empty_parents(gone.path, step.unit.count("/"))


def _places_by_content(steps: Iterable[Step]) -> dict[Digest, set[Place]]:
    """Return the source and the target of each content that a run was to write, by digest."""
    places_of: dict[Digest, set[Place]] = {}
    for step in steps:
        for write in json.loads(step.record)["writes"]:
            places = {place_from_json(text) for text in (write["source"], write["target"]) if text}
            places_of.setdefault(write["digest"], set()).update(places)
    return places_of


def _save(
    root: Root,
    path: str,
    status: os.stat_result,
    sources: Mapping[Digest, Iterable[Place]],
    roots: Mapping[Side, Root],
    vault: Vault,
) -> VaultObject | None:
    """Save a staged file or link to the vault, unless a source or a target has the same content."""
    if stat.S_ISLNK(status.st_mode):
        return vault.put_bytes(root.read_link(path))
    if not stat.S_ISREG(status.st_mode):
        return None
    fd = root.open_file(path)
    try:
        if any(_holds(roots, place, fd) for place in sources.get(digest_file(fd), ())):
            return None
        return vault.put_file(fd)
    finally:
        os.close(fd)


def _holds(roots: Mapping[Side, Root], place: Place, staged: int) -> bool:
    """Tell whether the file at a place has the same bytes."""
    if place.side not in roots:
        return False
    try:
        fd = roots[place.side].open_file(place.path)
    except OSError:
        return False
    try:
        return _same(fd, staged)
    except OSError:
        return False
    finally:
        os.close(fd)


def _same(one: int, other: int) -> bool:
    for fd in (one, other):
        os.lseek(fd, 0, os.SEEK_SET)
    while (chunk := os.read(one, CHUNK)) == os.read(other, CHUNK):
        if not chunk:
            return True
    return False


def _version(kept: VaultObject, side: Side, path: str, status: os.stat_result, run: str) -> Version:
    return Version(
        digest=kept.digest,
        xxh3=kept.xxh3,
        size=kept.size,
        conversation="",
        unit="",
        file=path.rpartition("/")[2],
        side=side,
        path=path,
        mtime_ns=mtime_of(status),
        run=run,
        why="interrupted",
        kind=VersionKind.LINK if stat.S_ISLNK(status.st_mode) else VersionKind.FILE,
        mode=stat.S_IMODE(status.st_mode),
    )


_OBSTRUCTED = "this is a file, and the directory of a conversation has this name; move it away"


class DriftError(Exception):
    """A file differs from the plan: its conversation stays unchanged."""


class SavedFile(Struct, frozen=True):
    """A file that was saved to the vault: its status and its digest when it was read."""

    status: os.stat_result
    content: Digest


class StagedDirectory(Struct, frozen=True):
    """A directory that the second process has staged: its name, its files, and the fingerprints of the sources."""

    base: str
    files: Files
    sources: Mapping[Place, Fingerprint]


class Prefetched(Protocol):
    """The directories that a second process stages."""

    def take(self, action: Action) -> StagedDirectory | None:
        """Return the directory that was staged for an action, once; None if there is none."""


def _directories_above(files: Iterable[str], bases: Collection[str]) -> set[str]:
    """Return the directories above files that are below one of the bases."""
    directories: set[str] = set()
    for path in files:
        above = os.path.dirname(path)
        while above not in directories and above not in bases and above != os.path.dirname(above):
            directories.add(above)
            above = os.path.dirname(above)
    return directories


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
    saved_mode: Callable[[str, Side, str], int | None]
    """Returns the permissions of a saved version (`Versions.mode_of`)."""
    has_modes: Mapping[Side, bool]
    """Whether someone has chosen the permissions of a side's files: not if all its new files are private."""
    folders_of: Callable[[str], int]
    """Returns the folders that a record leaves when it is removed (`folders_of`)."""
    beginnings: Mapping[Place, Beginning] = field(default_factory=dict)
    """The files of the store to which the run can append (`WorldState.beginnings`)."""
    contents: Mapping[Place, tuple[Fingerprint, bytes]] = field(default_factory=dict)
    """Sources that were read before, each with its fingerprint from before that."""
    numbers: int = 0
    staged: list[str] = field(default_factory=list)
    sources: dict[Place, Fingerprint] = field(default_factory=dict)
    """The fingerprints of the sources of the staged files, from before they were read."""
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
        new = [(self.roots[side], path) for side, path in _sources(action) if self.roots[side].pin(path)]
        try:
            yield
        finally:
            for root, path in new:
                root.unpin(path)

    def flush(self) -> list[Version]:
        """Make the vault's new objects and all staged files durable; only then may a file be replaced.

        Return the new versions, which must be recorded before the files are replaced.
        """
        versions, staged = self.versions, self.staged
        # Nothing of a level whose flush fails is renamed: it must not fail the next level, too.
        self.staged, self.sources, self.versions = [], {}, []
        self.vault.flush()
        # A staged file is renamed from the run's own directory: the flush of its new directory is that of its name.
        own = {root.absolute(self.directory) for root in self.roots.values()}
        directories = sorted(_directories_above(staged, own))
        within = [self.roots[side].absolute(self.directory) for side in sorted(self.used)]
        self.durability.flush_all(staged, directories, within)
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

    def check(self, expect: Precondition, *, is_directory: bool = False) -> os.stat_result | None:
        """Check one precondition; return the status of the file, or None if nothing is expected.

        ``is_directory``: a directory will be there.

        Raises:
            DriftError: the file is missing or different, or an entry exists where none is expected.
            OSError: a file is where a directory will be. No scan takes it for one, so the next plan is the same.
        """
        root = self.roots[expect.place.side]
        try:
            status = root.status(expect.place.path)
        except (FileNotFoundError, NotADirectoryError):
            if expect.absent:
                return None
            raise DriftError(f"{expect.place}: deleted since the plan was made") from None
        if expect.absent:
            if root.is_empty_tree(expect.place.path):
                return None
            if is_directory and not stat.S_ISDIR(status.st_mode):
                raise OSError(errno.ENOTDIR, _OBSTRUCTED, root.absolute(expect.place.path))
            raise DriftError(f"{expect.place}: created since the plan was made")
        if not stat.S_ISREG(status.st_mode) or (status.st_size, mtime_of(status)) != (
            expect.size,
            expect.mtime_ns,
        ):
            raise DriftError(f"{expect.place}: changed since the plan was made")
        return status

    def new_name(self, side: Side) -> str:
        """Return an unused name in the staging directory of a side; the first call makes the directory.

        Raises `FileExistsError` if an entry has the name of the directory: it doesn't belong to this run.
        """
        if side not in self.used:
            if not self.roots[side].make_directories(self.directory):
                words = "the name of the staging directory is in use"
                raise FileExistsError(errno.EEXIST, words, self.roots[side].absolute(self.directory))
            self.used.add(side)
            self.roots[side].pin(self.directory)
        self.numbers += 1
        return f"{self.directory}/{self.numbers}"

    def save(
        self, action: Action, place: Place, name: str, expected: Digest | None, directory: int = DIRECTORY_MODE
    ) -> SavedFile:
        """Save a file to the vault before it is replaced or removed.

        ``directory``: the permissions of its directory, if that is removed too.

        Raises:
            DriftError: its content differs from the plan.
        """
        fd = self.roots[place.side].open_file(place.path)
        try:
            status = os.fstat(fd)  # before it is read: later checks then find a write that came meanwhile
            kept = self.vault.put_file(fd)
        finally:
            os.close(fd)
        if expected is not None and kept.xxh3 != expected:
            raise DriftError(f"{place}: changed since the plan was made")
        return self._saved(action, place, name, kept, status, directory)

    def save_growing(self, action: Action, place: Place, name: str, before: Beginning) -> SavedFile | None:
        """Save the present version of a file to which the run appends, without reading it: it stays as it is.

        None: it isn't the file that was scanned, or the vault has to copy it. Raises `OSError`.
        """
        root = self.roots[place.side]
        status = root.status(place.path)
        if fingerprint_of(status) != before.known:
            return None
        kept = self.vault.keep_growing(partial(root.link_to, place.path), status, before.digest)
        # The first link changes the ctime.
        status = root.status(place.path)
        if kept is None or fingerprint_of(status)[:-1] != before.known[:-1]:
            return None
        return self._saved(action, place, name, kept, status)

    def _saved(
        self,
        action: Action,
        place: Place,
        name: str,
        kept: VaultObject,
        status: os.stat_result,
        directory: int = DIRECTORY_MODE,
    ) -> SavedFile:
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
                mode=_reachable(status.st_mode, directory),
            )
        )
        return SavedFile(status, kept.xxh3)

    def new_bytes(self, write: Write, before: Beginning) -> Iterator[bytes]:
        """Yield the bytes with which a source continues its beginning; each block of the source is checked first.

        Raises:
            DriftError: the content of the source differs from the plan.
        """
        assert write.source is not None  # noqa: S101 - only a file continues another one
        at, size = before.known[0] // BLOCK * BLOCK, before.known[0]
        fd = self.roots[write.source.side].open_file(write.source.path)
        try:
            while at < write.size:
                block, number = os.pread(fd, min(BLOCK, write.size - at), at), at // BLOCK
                if digest_of_block(block) != before.blocks[number * BLOCK_DIGEST :][:BLOCK_DIGEST]:
                    raise DriftError(f"{write.source}: changed since the plan was made")
                yield block[max(0, size - at) :]
                at += len(block)
        finally:
            os.close(fd)

    def write_directory(self, action: Action, base: str) -> Files:
        """Write a new directory into the staging directory.

        Raises:
            DriftError: the content of a source differs from the plan.
            OSError: a file could not be read or written.
        """
        root = self.roots[action.target.side]
        root.make_directory(base, self._mode_of_directory(action))
        files: dict[str, tuple[Fingerprint, Digest]] = {}
        with root.pinned(base):
            for write in action.writes:
                path = write.target.path[len(action.target.path) + 1 :]
                folder = path.rpartition("/")[0]
                if folder:
                    root.make_directories(f"{base}/{folder}")
                files[path] = self.write(action, f"{base}/{path}", write)
        return files

    def write(self, action: Action, name: str, write: Write) -> tuple[Fingerprint, Digest]:
        """Write a new file into the staging directory; raises as `write_directory` does."""
        root = self.roots[action.target.side]
        with self._content(action, write) as (chunks, mode):
            # One pass: the digest is that of the bytes that are written.
            fingerprint, digest = root.create_file(name, chunks, write.mtime_ns, mode)
            if digest != write.digest:
                raise DriftError(f"{write.source}: changed since the plan was made")
        self.staged.append(root.absolute(name))
        return fingerprint, digest

    @contextmanager
    def _content(self, action: Action, write: Write) -> Iterator[tuple[Iterable[bytes], int | None]]:
        """Yield the chunks to write, whose sum may be larger than memory, and the permissions of their file."""
        if write.kept is not None:
            mode = self.saved_mode(write.kept, write.target.side, write.target.path)
            with self.vault.open(write.kept) as kept:
                yield chunks_of(kept.fileno()), self._mode_for(write.target, mode)
        elif write.source is None:
            yield (write.content or b"",), self._mode_for(write.target, self._mode_of_base(action, write.target))
        else:
            fd, status = self.roots[write.source.side].open_with_status(write.source.path)
            try:
                found = self.sources[write.source] = fingerprint_of(status)
                mode = self._mode_for(write.target, status.st_mode) if self.has_modes[write.source.side] else None
                known = self.contents.get(write.source)
                if known is not None and known[0] == found:
                    yield (known[1],), mode
                else:
                    yield (read_all(fd, write.size)[0],) if write.size <= CHUNK else chunks_of(fd), mode
            finally:
                os.close(fd)

    def _mode_for(self, target: Place, mode: int | None) -> int | None:
        """Return the permissions of a new file. A file that the format names is never a program.

        Some file systems show every file as executable, and git would report that in the workspace.
        """
        own = self.unit_of(target.path.rpartition("/")[2]) in (METADATA, STREAM)
        return mode if mode is None else stat.S_IMODE(mode) & (FILE_MODE if own else DIRECTORY_MODE)

    def _mode_of_base(self, action: Action, target: Place) -> int | None:
        """Return the permissions that the files had from which a new content was made, None if there are none."""
        name = target.path.rpartition("/")[2]
        bases = (expect.place for expect in action.expect if not expect.absent and self.has_modes[expect.place.side])
        modes = [
            self.roots[place.side].status(place.path).st_mode
            for place in bases
            if place.path.rpartition("/")[2] == name
        ]
        return reduce(and_, modes) if modes else None

    def _mode_of_directory(self, action: Action) -> int:
        """Return the permissions of a new directory: those of the copy that it is made from."""
        if action.source is None or not self.has_modes[action.source.side]:
            return DIRECTORY_MODE
        return stat.S_IMODE(self.roots[action.source.side].status(action.source.path).st_mode) & DIRECTORY_MODE

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


def _reachable(mode: int, directory: int) -> int:
    """Return a file's permissions for those who can reach it in a directory with these permissions.

    The vault has no modes of directories. Otherwise an `undo` could let others read a file that they could not reach.
    """
    classes = (stat.S_IXGRP, stat.S_IRWXG), (stat.S_IXOTH, stat.S_IRWXO)
    return stat.S_IMODE(mode) & ~sum(bits for search, bits in classes if not directory & search)


def _sources(action: Action) -> Iterable[tuple[Side, str]]:
    """Return the directories that an action reads from, each with its side."""
    places = (write.source for write in action.writes if write.source is not None)
    return {(place.side, place.path.rpartition("/")[0]): None for place in places}
