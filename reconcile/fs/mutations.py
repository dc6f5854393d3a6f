"""The mutations of a side's directory, each relative to descriptors, so that no symbolic link is followed.

The only module that changes files of the two sides. Paths are relative to the root, ``/``-separated. All raise
`OSError`; a symbolic link on the way is ELOOP or ENOTDIR.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import TYPE_CHECKING

from reconcile.fs.files import print_of
from reconcile.fs.hashing import digest_file
from reconcile.fs.posix import O_BINARY, O_CLOEXEC, O_NOFOLLOW, RENAME_EXCHANGE, RENAME_NOREPLACE, rename_with
from reconcile.fs.private_files import write_all
from reconcile.model.names import CHILDREN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from reconcile.fs.files import Print
    from reconcile.model.snapshot import Digest

_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | O_NOFOLLOW | O_CLOEXEC
_READ = os.O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_BINARY | getattr(os, "O_NONBLOCK", 0)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_BINARY
_NO_FILE = {errno.ELOOP, errno.ENXIO}
"""What opening a symbolic link, and a socket, says."""
_STAYS = {
    errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR, errno.ELOOP,
    errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY,
}  # fmt: skip
"""What is said of a directory that has something in it, isn't one, or isn't ours to remove: it stays."""
FILE_MODE = 0o666
DIRECTORY_MODE = 0o777
"""Less the umask, as JP makes them."""


class NotAFileError(OSError):
    """A symbolic link, a pipe or the like, where a regular file was expected."""


class Root:
    """The open ``conversations/`` directory of one side; a context manager.

    A symbolic link in its place is followed only where a separator ends the path; nothing below it may be one.
    """

    __slots__ = ("_fd", "_held", "path")

    def __init__(self, path: str, *, make: bool = False) -> None:
        """Open the directory; ``make``: also where it is missing."""
        self.path = path
        self._held: dict[str, int] = {}
        if make:
            os.makedirs(path, exist_ok=True)
        self._fd = os.open(path, _DIRECTORY)

    @property
    def identity(self) -> str:
        """Device and inode, as in `Snapshot.identity`."""
        status = os.fstat(self._fd)
        return f"{status.st_dev}:{status.st_ino}"

    def close(self) -> None:
        """Give the descriptors back."""
        for fd in (*self._held.values(), self._fd):
            os.close(fd)

    def hold(self, path: str) -> bool:
        """Keep a directory open, if that can be, and say whether it was not before.

        From now on, what is right in it is reached by that, whatever gets its name.
        """
        if not path or path in self._held:
            return False
        with contextlib.suppress(OSError), self._parent(path) as (fd, name):
            self._held[path] = os.open(name, _DIRECTORY, dir_fd=fd)
        return path in self._held

    def let_go(self, path: str) -> None:
        """End what `hold` has begun."""
        if path in self._held:
            os.close(self._held.pop(path))

    @contextlib.contextmanager
    def near(self, path: str) -> Iterator[None]:
        """`hold` a directory within a block."""
        ours = self.hold(path)
        try:
            yield
        finally:
            if ours:
                self.let_go(path)

    def absolute(self, path: str) -> str:
        """Return the path to show, and to flush."""
        return os.path.join(self.path, path)

    def status(self, path: str) -> os.stat_result:
        """Return the status of an entry, of a symbolic link itself."""
        with self._parent(path) as (fd, name):
            return os.stat(name, dir_fd=fd, follow_symlinks=False)

    def status_below(self, path: str) -> os.stat_result:
        """Return the same, by whichever way the path leads there: for who knows the very file that it has to be."""
        return os.stat(path, dir_fd=self._fd, follow_symlinks=False)

    def exists(self, path: str) -> bool:
        """Tell whether anything has this name."""
        try:
            self.status(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def open_file(self, path: str) -> int:
        """Open a regular file for reading; raises `NotAFileError`."""
        with self._parent(path) as (fd, name):
            try:
                found = os.open(name, _READ, dir_fd=fd)
            except OSError as error:
                if error.errno in _NO_FILE:
                    raise NotAFileError(error.errno, "not a regular file", path) from None
                raise
        if not stat.S_ISREG(os.fstat(found).st_mode):
            os.close(found)
            raise NotAFileError(errno.EINVAL, "not a regular file", path)
        return found

    def digest(self, path: str) -> Digest:
        """Return the digest of a regular file."""
        fd = self.open_file(path)
        try:
            return digest_file(fd)
        finally:
            os.close(fd)

    def create_file(self, path: str, chunks: Iterable[bytes], mtime_ns: int) -> tuple[Print, Digest]:
        """Make a file that doesn't exist, with this content and time; its fingerprint, and the digest of its bytes.

        It is flushed by the caller.
        """
        from xxhash import xxh3_128  # here: most runs write nothing

        state = xxh3_128()
        with self._parent(path) as (fd, name):
            made = os.open(name, _CREATE, FILE_MODE, dir_fd=fd)
        try:
            for chunk in chunks:
                state.update(chunk)
                write_all(made, chunk)
            os.utime(made, ns=(mtime_ns, mtime_ns))
            return print_of(os.fstat(made)), state.hexdigest()
        finally:
            os.close(made)

    def make_directory(self, path: str) -> None:
        """Make a directory that doesn't exist."""
        with self._parent(path) as (fd, name):
            os.mkdir(name, DIRECTORY_MODE, dir_fd=fd)

    def make_directories(self, path: str) -> list[str]:
        """Make a directory and what it needs above it; return those that were made, the outermost first."""
        made: list[str] = []
        below = path
        while below and not self.exists(below):
            made.append(below)
            below = below.rpartition("/")[0]
        made.reverse()
        for missing in made:
            with self._parent(missing) as (fd, name), contextlib.suppress(FileExistsError):
                os.mkdir(name, DIRECTORY_MODE, dir_fd=fd)
        return made

    def rename(self, source: str, target: str) -> None:
        """Rename a file over another, or a directory to a name that is free."""
        with self._parent(source) as (ours, name), self._parent(target) as (theirs, new):
            os.rename(name, new, src_dir_fd=ours, dst_dir_fd=theirs)

    def rename_new(self, source: str, target: str) -> None:
        """Give a file or a directory a name that must be free; raises `FileExistsError`."""
        with self._parent(source) as (ours, name), self._parent(target) as (theirs, new):
            if rename_with(RENAME_NOREPLACE, ours, name, theirs, new):
                return
            try:
                os.link(name, new, src_dir_fd=ours, dst_dir_fd=theirs, follow_symlinks=False)
            except FileExistsError:
                raise
            except OSError:
                # RACE: without hard links, or for a directory, there is a moment in which what somebody else makes
                # here would be replaced. Worst case: a new file on FAT, an empty directory elsewhere; Linux has
                # renameat2 on nearly every file system and doesn't come here.
                if self.exists(target):
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target) from None
                os.rename(name, new, src_dir_fd=ours, dst_dir_fd=theirs)
                return
            os.unlink(name, dir_fd=ours)

    def exchange(self, one: str, other: str) -> bool:
        """Have two entries of any kind change places at once; False, and nothing has happened, where that can't be."""
        with self._parent(one) as (ours, name), self._parent(other) as (theirs, new):
            return rename_with(RENAME_EXCHANGE, ours, name, theirs, new)

    def link(self, path: str, second: str) -> None:
        """Give a file a second name."""
        with self._parent(path) as (ours, name), self._parent(second) as (theirs, new):
            os.link(name, new, src_dir_fd=ours, dst_dir_fd=theirs, follow_symlinks=False)

    def unlink(self, path: str) -> None:
        """Remove a file or a symbolic link."""
        with self._parent(path) as (fd, name):
            os.unlink(name, dir_fd=fd)

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory."""
        with self._parent(path) as (fd, name):
            os.rmdir(name, dir_fd=fd)

    def remove_if_empty(self, path: str) -> None:
        """Remove a directory if nothing is in it; raises `OSError` where it should go and the disk fails."""
        try:
            self.remove_directory(path)
        except OSError as error:
            if error.errno not in _STAYS:
                raise

    def set_time(self, path: str, mtime_ns: int, content: Digest) -> bool:
        """Set the time of a file with this content; False where something else is there by now.

        A file with other content gets the present time.
        """
        try:
            fd = self.open_file(path)
        except (FileNotFoundError, NotAFileError):
            return False
        try:
            os.utime(fd, ns=(mtime_ns, mtime_ns))
            # Looked at after: what somebody writes from now on sets the time itself.
            if digest_file(fd) == content:
                return True
            os.utime(fd)
            return False
        finally:
            os.close(fd)

    def set_mode(self, path: str, mode: int) -> None:
        """Give a file of ours the permissions of the one that it replaces."""
        with self._parent(path) as (fd, name):
            # Not a link: it lies in our own staging directory, and was made there exclusively.
            os.chmod(name, mode, dir_fd=fd)

    def read_link(self, path: str) -> bytes:
        """Return the target of a symbolic link, as bytes."""
        with self._parent(path) as (fd, name):
            return os.fsencode(os.readlink(name, dir_fd=fd))

    def walk(self, path: str) -> Iterator[tuple[str, os.stat_result]]:
        """Yield everything below a directory with its status, directories before what is in them."""
        stack = [path]
        while stack:
            directory = stack.pop()
            for name in sorted(self._names(directory)):
                below = f"{directory}/{name}"
                status = self.status(below)
                yield below, status
                if stat.S_ISDIR(status.st_mode):
                    stack.append(below)

    def is_hollow(self, path: str) -> bool:
        """Tell whether this is a directory in which there are only directories: no content, however deep."""
        try:
            return all(stat.S_ISDIR(status.st_mode) for _, status in self.walk(path))
        except OSError:
            return False

    def remove_hollow(self, path: str) -> None:
        """Remove a directory in which there are only directories; what somebody makes in it meanwhile stays."""
        if self.is_hollow(path):
            for below, _ in reversed(list(self.walk(path))):
                self.remove_if_empty(below)
            self.remove_if_empty(path)

    def remove_emptied(self, left: str, folders: int = 0) -> None:
        """Remove the `conversations` directory that something has left, and the conversation's if nothing is in it.

        And so on upwards (docs/design/formats/jp.md#edge-case-93). ``folders``: in how many an extra lay; git doesn't
        keep them either.
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

    def remove_walked(self, entries: Sequence[tuple[str, os.stat_result]]) -> None:
        """Remove what `walk` has yielded, as far as it is as it was then; the rest stays, and the directories above it.

        Used on our own staging directories alone.
        """
        for path, status in reversed(entries):
            if stat.S_ISDIR(status.st_mode):
                with contextlib.suppress(OSError):
                    self.remove_directory(path)
            # Not the change time: it moves with every name that a file with several loses.
            elif print_of(self.status(path))[:-1] == print_of(status)[:-1]:
                self.unlink(path)

    def _names(self, path: str) -> list[str]:
        with self._parent(f"{path}/.") as (fd, _):
            return os.listdir(fd)

    def _parent(self, path: str) -> _Parent:
        """Open the directory that an entry is in, one component after the other."""
        above, _, name = path.rpartition("/")
        held = self._held.get(above) if above else self._fd
        if held is not None:
            return _Parent(held, name, opened=False)
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
