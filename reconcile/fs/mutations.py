"""Changes of files below the directory of a side, relative to descriptors: no symbolic link is followed.

Only this module changes files of the two sides. Paths are relative to the root and ``/``-separated. All methods raise
`OSError`; a symbolic link above the last component is ELOOP or ENOTDIR.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from functools import partial
from typing import TYPE_CHECKING

from reconcile.fs.files import fingerprint_of
from reconcile.fs.hashing import Hasher, digest_file
from reconcile.fs.paths import directory_identity
from reconcile.fs.posix import O_BINARY, O_CLOEXEC, O_NOFOLLOW, RENAME_EXCHANGE, RENAME_NOREPLACE, rename_with
from reconcile.fs.private_files import DIRECTORY_MODE as PRIVATE_DIRECTORY
from reconcile.fs.private_files import FILE_MODE as PRIVATE_FILE
from reconcile.fs.private_files import make_private_directory, write_all
from reconcile.model.names import CHILDREN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from reconcile.fs.files import Fingerprint
    from reconcile.model.snapshot import Digest

_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | O_NOFOLLOW | O_CLOEXEC
_READ = os.O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_BINARY | getattr(os, "O_NONBLOCK", 0)
_APPEND = os.O_WRONLY | os.O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_BINARY | getattr(os, "O_NONBLOCK", 0)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_BINARY
_NO_FILE = {errno.ELOOP, errno.ENXIO}
"""Errors of opening a symbolic link and a socket."""
_STAYS = {
    errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR, errno.ELOOP,
    errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY,
}  # fmt: skip
"""Errors of removing a directory that isn't empty, isn't a directory or may not be removed: it stays."""
_WRITE = stat.S_IRUSR | stat.S_IWUSR
FILE_MODE = 0o666
DIRECTORY_MODE = 0o777
"""Less the umask, as JP does."""


class NotAFileError(OSError):
    """An entry that should be a regular file is a symbolic link, a pipe or the like."""


class Root:
    """The open ``conversations/`` directory of one side.

    A symbolic link in its place is followed only if the path ends with a separator. Below it, none is followed.
    """

    __slots__ = ("_fd", "_modes", "_pinned", "_prefix", "path")

    def __init__(self, path: str, *, make: bool = False, is_private: bool = False) -> None:
        """Open the directory. With ``make``, a missing one is made.

        ``is_private``: new files and directories are for their owner alone.
        """
        self.path = path
        self._modes = (PRIVATE_FILE, PRIVATE_DIRECTORY) if is_private else (FILE_MODE, DIRECTORY_MODE)
        self._prefix = os.path.join(path, "")
        self._pinned: dict[str, int] = {}
        if make:
            (make_private_directory if is_private else partial(os.makedirs, exist_ok=True))(path)
        self._fd = os.open(path, _DIRECTORY)

    @property
    def identity(self) -> str:
        """Its identity, as in `Snapshot.identity`."""
        return directory_identity(self._fd)

    def close(self) -> None:
        """Close all descriptors."""
        for fd in (*self._pinned.values(), self._fd):
            os.close(fd)

    def pin(self, path: str) -> bool:
        """Keep a directory open, if it can be opened; return False if it was open before or can't be opened.

        Until `unpin`, its entries are reached by this descriptor, even if another directory gets its name.
        """
        if not path or path in self._pinned:
            return False
        with contextlib.suppress(OSError), self._parent(path) as (fd, name):
            self._pinned[path] = os.open(name, _DIRECTORY, dir_fd=fd)
        return path in self._pinned

    def unpin(self, path: str) -> None:
        """Close a directory that `pin` keeps open."""
        if path in self._pinned:
            os.close(self._pinned.pop(path))

    @contextlib.contextmanager
    def pinned(self, path: str) -> Iterator[None]:
        """`pin` a directory while the block runs."""
        is_new = self.pin(path)
        try:
            yield
        finally:
            if is_new:
                self.unpin(path)

    def absolute(self, path: str) -> str:
        """Return the absolute path, for messages and for flushing."""
        return self._prefix + path

    def status(self, path: str) -> os.stat_result:
        """Return the status of an entry, without following a symbolic link."""
        with self._parent(path) as (fd, name):
            return os.stat(name, dir_fd=fd, follow_symlinks=False)

    def status_unchecked(self, path: str) -> os.stat_result:
        """Return the status of an entry, following symbolic links above it: for callers that compare the inode."""
        return os.stat(path, dir_fd=self._fd, follow_symlinks=False)

    def exists(self, path: str) -> bool:
        """Tell whether an entry of any kind has this name."""
        try:
            self.status(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def open_file(self, path: str) -> int:
        """Open a regular file for reading. Raises `NotAFileError` for another kind of entry."""
        return self.open_with_status(path)[0]

    def open_with_status(self, path: str) -> tuple[int, os.stat_result]:
        """`open_file`, which also returns the status of the open file."""
        with self._parent(path) as (fd, name):
            try:
                file = os.open(name, _READ, dir_fd=fd)
            except OSError as error:
                if error.errno in _NO_FILE:
                    raise NotAFileError(error.errno, "not a regular file", path) from None
                raise
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            os.close(file)
            raise NotAFileError(errno.EINVAL, "not a regular file", path)
        return file, status

    def digest(self, path: str) -> Digest:
        """Return the digest of a regular file."""
        fd = self.open_file(path)
        try:
            return digest_file(fd)
        finally:
            os.close(fd)

    def create_file(
        self, path: str, chunks: Iterable[bytes], mtime_ns: int, mode: int | None = None
    ) -> tuple[Fingerprint, Digest]:
        """Create a file with this content and time (ns); return its fingerprint and the digest of its content.

        It gets the permissions ``mode`` less the umask; its owner can always write to it. The caller must flush it.
        Raises `FileExistsError`.
        """
        hasher = Hasher()
        with self._parent(path) as (fd, name):
            file = os.open(name, _CREATE, self._modes[0] if mode is None else self._narrowed(mode, _WRITE), dir_fd=fd)
        try:
            for chunk in chunks:
                hasher.update(chunk)
                write_all(file, chunk)
            os.utime(file, ns=(mtime_ns, mtime_ns))
            return fingerprint_of(os.fstat(file)), hasher.digest
        finally:
            os.close(file)

    def make_directory(self, path: str, mode: int = DIRECTORY_MODE) -> None:
        """Make a directory with the permissions ``mode`` less the umask. Raises `FileExistsError`."""
        with self._parent(path) as (fd, name):
            os.mkdir(name, self._narrowed(mode, stat.S_IRWXU), dir_fd=fd)

    def _narrowed(self, mode: int, least: int) -> int:
        return (mode | least) & self._modes[1]

    def make_directories(self, path: str) -> list[str]:
        """Make a directory and its missing parents; return the new ones, the outermost first."""
        missing: list[str] = []
        below = path
        while below and not self.exists(below):
            missing.append(below)
            below = below.rpartition("/")[0]
        missing.reverse()
        for directory in missing:
            with self._parent(directory) as (fd, name), contextlib.suppress(FileExistsError):
                os.mkdir(name, self._modes[1], dir_fd=fd)
        return missing

    def rename(self, source: str, target: str) -> None:
        """Rename a file over another, or a directory to an unused name."""
        with self._parent(source) as (source_fd, name), self._parent(target) as (target_fd, new):
            os.rename(name, new, src_dir_fd=source_fd, dst_dir_fd=target_fd)

    def rename_new(self, source: str, target: str) -> None:
        """Rename a file or a directory to an unused name. Raises `FileExistsError`."""
        with self._parent(source) as (source_fd, name), self._parent(target) as (target_fd, new):
            if rename_with(RENAME_NOREPLACE, source_fd, name, target_fd, new):
                return
            try:
                os.link(name, new, src_dir_fd=source_fd, dst_dir_fd=target_fd, follow_symlinks=False)
            except FileExistsError:
                raise
            except OSError:
                # RACE: without hard links, or for a directory, an entry that another process makes between the check
                # and the rename is replaced. Worst case: a new file on FAT, an empty directory elsewhere. Linux has
                # renameat2 on nearly every file system and doesn't get here.
                if self.exists(target):
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target) from None
                os.rename(name, new, src_dir_fd=source_fd, dst_dir_fd=target_fd)
                return
            os.unlink(name, dir_fd=source_fd)

    def exchange(self, one: str, other: str) -> bool:
        """Exchange two entries of any kind atomically; return False, without any change, if it isn't supported."""
        with self._parent(one) as (source_fd, name), self._parent(other) as (target_fd, new):
            return rename_with(RENAME_EXCHANGE, source_fd, name, target_fd, new)

    def link(self, path: str, second: str) -> None:
        """Give a file a second name (a hard link)."""
        with self._parent(path) as (source_fd, name), self._parent(second) as (target_fd, new):
            os.link(name, new, src_dir_fd=source_fd, dst_dir_fd=target_fd, follow_symlinks=False)

    def link_to(self, path: str, other: str) -> None:
        """Give a file a second name elsewhere, an absolute path (a hard link)."""
        with self._parent(path) as (fd, name):
            os.link(name, other, src_dir_fd=fd, follow_symlinks=False)

    def append(self, path: str, chunks: Iterable[bytes], before: Fingerprint, mtime_ns: int) -> bool:
        """Append to a file with this fingerprint, and set its time (ns). The caller must flush it.

        Return False if it has another fingerprint, or if another program has written to it at the same time. An error,
        or a kill, can leave a part of the content at the end of the file; what was there before is not touched.
        """
        with self._parent(path) as (fd, name):
            file = os.open(name, _APPEND, dir_fd=fd)
        try:
            if fingerprint_of(os.fstat(file)) != before:
                return False
            size = before[0]
            for chunk in chunks:
                write_all(file, chunk)
                size += len(chunk)
            os.utime(file, ns=(mtime_ns, mtime_ns))
            return os.fstat(file).st_size == size
        finally:
            os.close(file)

    def unlink(self, path: str) -> None:
        """Remove a file or a symbolic link."""
        with self._parent(path) as (fd, name):
            os.unlink(name, dir_fd=fd)

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory."""
        with self._parent(path) as (fd, name):
            os.rmdir(name, dir_fd=fd)

    def remove_if_empty(self, path: str) -> None:
        """Remove a directory if it is empty. Raises `OSError` only for a failure of the disk."""
        try:
            self.remove_directory(path)
        except OSError as error:
            if error.errno not in _STAYS:
                raise

    def set_time(self, path: str, mtime_ns: int, content: Digest) -> bool:
        """Set the time of a file (ns) if it has this content; return False if it has another or is missing.

        A file with other content gets the present time.
        """
        try:
            fd = self.open_file(path)
        except (FileNotFoundError, NotAFileError):
            return False
        try:
            os.utime(fd, ns=(mtime_ns, mtime_ns))
            # The content is read after the time was set: a later write sets the time itself.
            if digest_file(fd) == content:
                return True
            os.utime(fd)
            return False
        finally:
            os.close(fd)

    def set_mode(self, path: str, mode: int) -> None:
        """Give a staged file the permissions of the file that it replaces."""
        with self._parent(path) as (fd, name):
            # It is no link: this run created it in its staging directory with O_EXCL.
            os.chmod(name, mode, dir_fd=fd)

    def read_link(self, path: str) -> bytes:
        """Return the target of a symbolic link as bytes."""
        with self._parent(path) as (fd, name):
            return os.fsencode(os.readlink(name, dir_fd=fd))

    def walk(self, path: str) -> Iterator[tuple[str, os.stat_result]]:
        """Yield all entries below a directory with their status, directories before their content."""
        stack = [path]
        while stack:
            directory = stack.pop()
            for name in sorted(self._names(directory)):
                below = f"{directory}/{name}"
                status = self.status(below)
                yield below, status
                if stat.S_ISDIR(status.st_mode):
                    stack.append(below)

    def is_empty_tree(self, path: str) -> bool:
        """Tell whether a directory contains only directories, at every depth."""
        try:
            return all(stat.S_ISDIR(status.st_mode) for _, status in self.walk(path))
        except OSError:
            return False

    def remove_empty_tree(self, path: str) -> None:
        """Remove a directory that contains only directories; entries that appear meanwhile stay."""
        if self.is_empty_tree(path):
            for below, _ in reversed(list(self.walk(path))):
                self.remove_if_empty(below)
            self.remove_if_empty(path)

    def remove_empty_parents(self, left: str, folders: int = 0) -> None:
        """Remove the empty directories above an entry that was moved or removed.

        These are a `conversations` directory, then its conversation's directory, and so on upwards
        (docs/design/formats/jp.md#edge-case-93). ``folders`` is the number of folders between an extra file and its
        conversation: git doesn't keep empty ones either.
        """
        above = left.rpartition("/")[0]
        for _ in range(folders):
            self.remove_if_empty(above)
            above = above.rpartition("/")[0]
        while above.rpartition("/")[2] == CHILDREN:
            self.remove_if_empty(above)
            above = above.rpartition("/")[0]
            self.remove_if_empty(above)
            above = above.rpartition("/")[0]

    def remove_entries(self, entries: Sequence[tuple[str, os.stat_result]]) -> None:
        """Remove the entries that `walk` has yielded; a changed one stays, with the directories above it.

        Used only on staging directories.
        """
        for path, status in reversed(entries):
            if stat.S_ISDIR(status.st_mode):
                with contextlib.suppress(OSError):
                    self.remove_directory(path)
            # Without the ctime: it changes if a file with several names loses one of them.
            elif fingerprint_of(self.status(path))[:-1] == fingerprint_of(status)[:-1]:
                self.unlink(path)

    def _names(self, path: str) -> list[str]:
        with self._parent(f"{path}/.") as (fd, _):
            return os.listdir(fd)

    def _parent(self, path: str) -> _Parent:
        """Open the directory that an entry is in, one component after the other."""
        above, _, name = path.rpartition("/")
        pinned = self._pinned.get(above) if above else self._fd
        if pinned is not None:
            return _Parent(pinned, name, opened=False)
        fd = self._fd
        for part in above.split("/"):
            try:
                deeper = os.open(part, _DIRECTORY, dir_fd=fd)
            finally:
                if fd != self._fd:
                    os.close(fd)
            fd = deeper
        return _Parent(fd, name, opened=True)


class _Parent:
    """The open directory that an entry is in, with the entry's name there; a context manager."""

    __slots__ = ("_fd", "_name", "_opened")

    def __init__(self, fd: int, name: str, *, opened: bool) -> None:
        self._fd, self._name, self._opened = fd, name, opened

    def __enter__(self) -> tuple[int, str]:
        return self._fd, self._name

    def __exit__(self, *_: object) -> None:
        if self._opened:
            os.close(self._fd)
