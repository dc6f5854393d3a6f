"""Actions on disk: each is prepared in the staging directory, then published by renames (docs/design/run.md#rule-50).

`Swap` replaces the files of a unit as one; `DirectoryRemoval` removes a whole directory.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import TYPE_CHECKING, NoReturn

from msgspec import Struct, field

from reconcile.apply.staging import DriftError
from reconcile.fs.files import Fingerprint, fingerprint_of, kind_of, mtime_of
from reconcile.fs.hashing import chunks_of, digest_file
from reconcile.fs.mutations import DIRECTORY_MODE, NotAFileError
from reconcile.model.plan import MOVES, Kind
from reconcile.model.snapshot import WHOLE, Foreign, Place, nested_git
from reconcile.model.units import is_nested_git, is_of_another
from reconcile.state.vault import Version, VersionKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from reconcile.apply.staging import SavedFile, Stage, StagedDirectory
    from reconcile.fs.mutations import Root
    from reconcile.index.rows import Files
    from reconcile.model.plan import Action, Write
    from reconcile.model.snapshot import Beginning, Digest

LARGE = 1 << 24
"""Bytes from which a log in the store grows in its place: for a moment, a reader may see a part of the new lines."""


class Prepared(Struct, frozen=True):
    """An action of which only the renames are left."""

    action: Action
    publish: Callable[[], None]
    files: Files = field(default_factory=dict)
    """The files of a new directory, with their fingerprints and digests after writing."""


def prepare(stage: Stage, action: Action) -> Prepared:
    """Check the preconditions of an action, save the old files to the vault, and stage the new ones.

    Raises:
        DriftError: a file differs from the plan.
        OSError: a file could not be read or written.
    """
    staged = stage.prefetcher.take(action) if stage.prefetcher is not None else None
    if staged is not None and _is_as_staged(stage, staged):
        root = stage.roots[action.target.side]
        stage.staged += [root.absolute(f"{staged.base}/{name}") for name in staged.files]
        return Prepared(action, lambda: _publish_directory(stage, action, staged.base), staged.files)
    with stage.sources_pinned(action):
        return _prepared(stage, action)


def _is_as_staged(stage: Stage, staged: StagedDirectory) -> bool:
    """Tell whether every source, under its lock, is still the file that the second process has read.

    Nothing else has to be checked: the rename refuses a name that is taken.
    """
    for place, read in staged.sources.items():
        try:
            if fingerprint_of(stage.roots[place.side].status_unchecked(place.path)) != read:
                return False
        except OSError:
            return False
    return True


def _prepared(stage: Stage, action: Action) -> Prepared:
    has_directory = action.kind in MOVES or (action.unit == WHOLE and not _is_one_file(action))
    for expect in action.expect:
        stage.check(expect, is_directory=has_directory and expect.place == action.target)
    if action.kind in MOVES:
        return Prepared(action, lambda: _move(stage, action))
    if action.makes or action.clears:
        return Prepared(action, lambda: _make_directories(stage, action))
    if action.kind is Kind.AGE:
        return Prepared(action, lambda: _age(stage, action))
    if action.kind in (Kind.REMOVE_STALE, Kind.REMOVE) and action.unit == WHOLE:
        removal = DirectoryRemoval(stage.roots[action.target.side], action, stage)
        removal.save()
        return Prepared(action, removal.carry_out)
    return _prepare_writes(stage, action)


def _prepare_writes(stage: Stage, action: Action) -> Prepared:
    if action.unit == WHOLE:
        return _prepare_directory(stage, action)
    if (appending := _prepare_append(stage, action)) is not None:
        return appending
    expected = {expect.place: expect for expect in action.expect}
    side = action.target.side
    replaced: dict[Place, SavedFile] = {}
    for place in (*(write.target for write in action.writes), *action.removes):
        expect = expected.get(place)
        if expect is not None and not expect.absent:
            replaced[place] = stage.save(action, place, stage.name_in(action, place), expect.digest)
    base = stage.new_name(side)
    staged = []
    for number, write in enumerate(action.writes):
        name = f"{base}-{number}"
        stage.write(action, name, write)
        staged.append((name, write.target))
    # A file that only gets another time goes first. Recovery compares contents: with the last new content in place, a
    # killed step counts as done, and the time would stay the old one.
    retimed = {
        write.target
        for write in action.writes
        if (before := replaced.get(write.target)) is not None and before.content == write.digest
    }
    staged.sort(key=lambda file: file[1] not in retimed)
    return Prepared(action, lambda: _publish_files(stage, action, staged, replaced))


def _prepare_append(stage: Stage, action: Action) -> Prepared | None:
    """Prepare to append to the one file of an action; None if the action does more than that.

    The file keeps its bytes, so nothing has to be staged, and the vault has its earlier version in the same file. Only
    the store's file is written in its place, and only if it is large: docs/safety.md#sessions-that-grow.
    """
    target = action.target
    before = stage.beginnings.get(target)
    if before is None or before.known[0] < LARGE:
        return None
    if action.removes or [write.target for write in action.writes] != [target]:
        return None
    (write,) = action.writes
    expected = [expect.digest for expect in action.expect if expect.place == target]
    if write.source is None or (expected, write.digest) != ([before.digest], before.after):
        return None
    saved = stage.save_growing(action, target, stage.name_in(action, target), before)
    return None if saved is None else Prepared(action, lambda: _append(stage, write, before, saved))


def _append(stage: Stage, write: Write, before: Beginning, saved: SavedFile) -> None:
    root, target = stage.roots[write.target.side], write.target
    _check_same(stage, target, saved.status)
    if not root.append(target.path, stage.new_bytes(write, before), fingerprint_of(saved.status), write.mtime_ns):
        raise DriftError(f"{target}: changed by another process during this run")
    stage.durability.fsync_file(root.absolute(target.path))


def _is_one_file(action: Action) -> bool:
    """Tell whether a whole record is one file."""
    return [write.target for write in action.writes] == [action.target]


def _prepare_directory(stage: Stage, action: Action) -> Prepared:
    """Stage a whole directory, or the file of a record that has only one."""
    base = stage.new_name(action.target.side)
    if _is_one_file(action):
        stage.write(action, base, action.writes[0])
        return Prepared(action, lambda: _publish_directory(stage, action, base))
    files = stage.write_directory(action, base)
    return Prepared(action, lambda: _publish_directory(stage, action, base), files)


def _publish_directory(stage: Stage, action: Action, base: str) -> None:
    stage.make_parents(action.target)
    _rename_new(stage, base, action.target)


def _publish_files(
    stage: Stage, action: Action, staged: list[tuple[str, Place]], replaced: Mapping[Place, SavedFile]
) -> None:
    for place, before in replaced.items():
        _check_same(stage, place, before.status)
    side = action.target.side
    swap = Swap(stage.roots[side], lambda: stage.new_name(side))
    try:
        for name, target in staged:
            _publish_file(stage, swap, name, target, replaced.get(target))
        for place in action.removes:
            if place in replaced:
                swap.remove(place.path, replaced[place].content)
                stage.mark_renamed(place)
                stage.remove_empty_parents(place, stage.name_in(action, place).count("/"))
    except (DriftError, OSError):
        swap.undo()
        raise
    swap.finish()


def _publish_file(stage: Stage, swap: Swap, name: str, target: Place, before: SavedFile | None) -> None:
    stage.make_parents(target)
    if before is not None:
        swap.root.set_mode(name, stat.S_IMODE(before.status.st_mode))
        swap.replace(name, target.path, before.content)
    else:
        try:
            swap.add(name, target.path)
        except FileExistsError:
            raise DriftError(f"{target}: created since the plan was made") from None
    stage.mark_renamed(target)


def _check_same(stage: Stage, place: Place, before: os.stat_result) -> None:
    """Check again, right before the change, that the file is still the one in the vault."""
    try:
        now = stage.roots[place.side].status(place.path)
    except FileNotFoundError:
        raise DriftError(f"{place}: deleted since the plan was made") from None
    if fingerprint_of(now) != fingerprint_of(before):
        raise DriftError(f"{place}: changed since the plan was made")


def _move(stage: Stage, action: Action) -> None:
    source, target = action.source, action.target
    assert source is not None  # noqa: S101 - a move has a source
    for expect in action.expect:
        stage.check(expect)
    stage.retry_removals()
    stage.make_parents(target)
    _rename_new(stage, source.path, target)
    stage.mark_renamed(source)
    stage.remove_empty_parents(source)


def _rename_new(stage: Stage, source: str, target: Place) -> None:
    """Rename a directory to an unused name; an existing directory without files is removed first."""
    root = stage.roots[target.side]
    try:
        root.rename_new(source, target.path)
    except FileExistsError:
        root.remove_empty_tree(target.path)
        try:
            root.rename_new(source, target.path)
        except FileExistsError:
            raise DriftError(f"{target}: created since the plan was made") from None
    stage.mark_renamed(target)


def _age(stage: Stage, action: Action) -> None:
    for expect in action.expect:
        stage.check(expect)
        root = stage.roots[expect.place.side]
        if not root.set_time(expect.place.path, action.mtime_ns or 0, expect.digest or ""):
            raise DriftError(f"{expect.place}: changed since the plan was made")


def _make_directories(stage: Stage, action: Action) -> None:
    """Make missing directories. A stale lock was taken over before, and so removed."""
    root = stage.roots[action.target.side]
    for place in action.makes:
        for directory in root.make_directories(place.path):
            stage.renamed.add(os.path.dirname(root.absolute(directory)))


class _Change(Struct, frozen=True):
    """``inode`` is that of the new file, None after a removal; ``old`` the present name of the old file, if any."""

    name: str
    inode: int | None
    old: str | None


class Swap(Struct):
    """The replacement of several files as one: if one fails, the others are put back, so that no unit is half replaced.

    The last check of a file and its replacement are one step: the new and the old file are exchanged, then the old one
    is compared with the vault. If it differs, another program has written at that moment, and the old file is put back.
    ``spare`` returns an unused name in the staging directory. The end of the run saves the rest of that directory to
    the vault, so that no unexpected file is lost.
    """

    root: Root
    spare: Callable[[], str]
    changed: list[_Change] = field(default_factory=list)
    saved: dict[str, Fingerprint] = field(default_factory=dict)
    """The old files that the vault has, with their fingerprints after the exchange."""

    def replace(self, new: str, name: str, content: Digest) -> None:
        """Replace the file with this content. Raises `DriftError`, `OSError`."""
        inode = self.root.status(new).st_ino
        try:
            old = new if self.root.exchange(new, name) else self._rename_over(new, name)
        except FileNotFoundError:
            raise DriftError(f"{name}: deleted since the plan was made") from None
        self.changed.append(_Change(name, inode, old))
        self._verify(name, old, content)

    def add(self, new: str, name: str) -> None:
        """Add a file with an unused name; an existing directory without files is removed first.

        Raises `FileExistsError`.
        """
        inode = self.root.status(new).st_ino
        try:
            self.root.rename_new(new, name)
        except FileExistsError:
            self.root.remove_empty_tree(name)
            self.root.rename_new(new, name)
        self.changed.append(_Change(name, inode, None))

    def remove(self, name: str, content: Digest) -> None:
        """Remove the file with this content. Raises `DriftError`, `OSError`."""
        old = self.spare()
        try:
            self.root.rename(name, old)
        except FileNotFoundError:
            raise DriftError(f"{name}: deleted since the plan was made") from None
        self.changed.append(_Change(name, None, old))
        self._verify(name, old, content)

    def undo(self) -> None:
        """Undo all changes, the last first; a file that another program has written since stays.

        What can't go back stays in the staging directory: `finish` removes nothing afterwards.
        """
        for change in reversed(self.changed):
            with contextlib.suppress(OSError):
                self._revert(change)
        self.changed.clear()
        self.saved.clear()

    def finish(self) -> None:
        """Remove the old files, which the vault has. One that was written since stays; the run's end saves it."""
        for old, known in self.saved.items():
            with contextlib.suppress(OSError):  # the change is done; the end of the run cleans up the rest
                if fingerprint_of(self.root.status(old)) == known:
                    self.root.unlink(old)
        self.changed.clear()

    def _verify(self, name: str, old: str, content: Digest) -> None:
        """Compare the old file with the expected content."""
        try:
            fd = self.root.open_file(old)
        except NotAFileError:
            raise DriftError(f"{name}: replaced by another process during this run; left alone") from None
        try:
            self.saved[old] = fingerprint_of(os.fstat(fd))  # before it is read: `finish` finds a write that came since
            actual = digest_file(fd)
        finally:
            os.close(fd)
        if actual != content:
            raise DriftError(f"{name}: changed by another process during this run; that version is back in its place")

    def _revert(self, change: _Change) -> None:
        name, inode, old = change.name, change.inode, change.old
        if old is None:
            self._remove_added(name, inode)
        elif inode is None:
            self.root.rename_new(old, name)
        elif self.root.status(name).st_ino == inode:
            if not self.root.exchange(old, name):
                self.root.rename(old, name)
            elif self.root.status(old).st_ino != inode:  # another program wrote in between: its file is the newest
                self.root.exchange(old, name)

    def _remove_added(self, name: str, inode: int | None) -> None:
        """Remove an added file, unless another program has replaced it."""
        away = self.spare()
        self.root.rename(name, away)
        if self.root.status(away).st_ino != inode:
            self.root.rename_new(away, name)

    def _rename_over(self, new: str, name: str) -> str:
        """Replace a file without an exchange: a second link keeps the old file, or a copy. Return its name.

        RACE: a file that is renamed to the name between the two calls is overwritten. Worst case: a version that
        another program saved in these microseconds is lost, on macOS and on the few file systems of Linux without the
        exchange. Without hard links, the time is that of copying the file.
        """
        spare = self.spare()
        try:
            self.root.link(name, spare)
        except FileNotFoundError:
            raise
        except OSError:  # no hard links, as on exFAT
            self._copy(name, spare)
        self.root.rename(new, name)
        return spare

    def _copy(self, name: str, spare: str) -> None:
        fd, status = self.root.open_with_status(name)
        try:
            self.root.create_file(spare, chunks_of(fd), mtime_of(status), stat.S_IMODE(status.st_mode))
        except OSError:  # the disk may be full
            with contextlib.suppress(OSError):
                self.root.unlink(spare)
            raise
        finally:
            os.close(fd)


class DirectoryRemoval(Struct):
    """The removal of one directory: first every file is in the vault, and every file is known to the plan."""

    root: Root
    action: Action
    stage: Stage
    kept: dict[str, Fingerprint] = field(default_factory=dict)
    """The saved files, by name below the directory, with their fingerprints."""

    def save(self) -> None:
        """Save every file and link to the vault.

        Raises:
            DriftError: an entry is unknown to the plan, or the directory is missing.
            OSError: an entry can't be saved.
        """
        base = self.action.target.path
        expected = {expect.place.path: expect.digest for expect in self.action.inside}
        managed = set(expected)
        entries = self._entries_there(base)
        directory = next((status.st_mode for _, status in entries if stat.S_ISDIR(status.st_mode)), DIRECTORY_MODE)
        for path, status in entries:
            name = path[len(base) + 1 :]
            if is_nested_git(name, self.stage.unit_of, directory=stat.S_ISDIR(status.st_mode)):
                obstacle = nested_git(path, directory=not stat.S_ISREG(status.st_mode)).obstacle
                raise OSError(errno.ENOTSUP, obstacle, self.root.absolute(path))
            if stat.S_ISDIR(status.st_mode):
                continue
            if is_of_another(name, self.stage.id_of):
                raise DriftError(f"{self.action.target}: contains another conversation now")
            if stat.S_ISREG(status.st_mode):
                if self.stage.unit_of(name) is not None and path not in managed:
                    raise DriftError(f"{self.action.target.side}:{path}: created since the plan was made")
                place = Place(self.action.target.side, path)
                saved = self.stage.save(self.action, place, name, expected.get(path), directory)
                self.kept[name] = fingerprint_of(saved.status)
            elif stat.S_ISLNK(status.st_mode):
                self._save_link(path, name, status)
            elif path in managed:
                words = f"{kind_of(status.st_mode)} replaced the file since the plan was made"
                raise DriftError(f"{self.action.target.side}:{path}: {words}")
            else:
                obstacle = Foreign(path, kind_of(status.st_mode), special=True).obstacle
                raise OSError(errno.ENOTSUP, obstacle, self.root.absolute(path))

    def _entries_there(self, path: str) -> list[tuple[str, os.stat_result]]:
        """Return the entries to remove; none if a directory without files was removed with its last entry."""
        try:
            return self._entries(path)
        except (FileNotFoundError, NotADirectoryError):
            if self.action.inside:
                raise DriftError(f"{self.action.target}: deleted since the plan was made") from None
            return []

    def _entries(self, path: str) -> list[tuple[str, os.stat_result]]:
        """Return the directory and all entries below it, or the single file, each with its status."""
        status = self.root.status(path)
        return [(path, status), *(self.root.walk(path) if stat.S_ISDIR(status.st_mode) else ())]

    def _save_link(self, path: str, name: str, status: os.stat_result) -> None:
        kept = self.stage.vault.put_bytes(self.root.read_link(path))
        self.kept[name] = fingerprint_of(status)
        self.stage.versions.append(
            Version(
                digest=kept.digest,
                xxh3=kept.xxh3,
                size=kept.size,
                conversation=self.action.conversation,
                unit=self.action.unit,
                file=name,
                side=self.action.target.side,
                path=path,
                mtime_ns=mtime_of(status),
                run=self.stage.run,
                why=self.action.reason.value,
                kind=VersionKind.LINK,
            )
        )

    def carry_out(self) -> None:
        """Move the directory into the staging directory, check it again, and remove it.

        It is put back if a file changed, or if the copy that has to stay is missing. A process that has a file open may
        write to it even after the check. Such a file stays in the staging directory, and the run's end saves it.
        """
        target = self.action.target
        aside = self.stage.new_name(target.side)
        if not self.kept and not self.root.exists(target.path):
            return
        try:
            self.root.rename(target.path, aside)
        except FileNotFoundError:
            raise DriftError(f"{target}: deleted since the plan was made") from None
        self.stage.renamed.add(os.path.dirname(self.root.absolute(target.path)))
        try:
            entries = self._checked(aside)
        except DriftError as drift:
            self._put_back(aside, str(drift))
        except OSError as error:
            self._put_back(aside, f"can't be checked after its rename: {error.strerror or error}")
        self.stage.remove_empty_parents(target, self.stage.folders_of(self.action.conversation))
        with contextlib.suppress(OSError):  # it has left its place; the end of the run cleans up the rest
            self.root.remove_entries(entries)

    def _checked(self, aside: str) -> list[tuple[str, os.stat_result]]:
        """Return the entries that were moved aside. Raises `DriftError` if one has changed, or what has to stay is not
        there, and `OSError`.
        """
        entries = self._entries(aside)
        present = {
            path[len(aside) + 1 :]: fingerprint_of(status)
            for path, status in entries
            if not stat.S_ISDIR(status.st_mode)
        }
        if present.keys() == self.kept.keys() == {""}:  # a single file: the rename has changed its ctime
            present[""] = (*present[""][:-1], self.kept[""][-1])
        if present != self.kept:
            raise DriftError("changed during its removal")
        for expect in self.action.beside:
            self.stage.check(expect)
        return entries

    def _put_back(self, aside: str, why: str) -> NoReturn:
        target = self.action.target
        try:
            self.root.rename_new(aside, target.path)
        except FileExistsError:
            words = "created again during its removal; the removed version is in the vault"
            raise DriftError(f"{target}: {words}") from None
        raise DriftError(f"{target}: {why}; not removed")
