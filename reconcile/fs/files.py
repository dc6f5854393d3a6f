"""Reading directories and files that other programs write: the returned content was in the files at one moment.

A `Directory` is opened by descriptor: no symbolic link is followed and no path is too long. Only this module knows
whether the platform can open files relative to a descriptor. On Windows, which can't, it uses paths instead.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from reconcile.fs.hashing import digest_and_size
from reconcile.fs.paths import directory_identity
from reconcile.model.snapshot import EARLIEST_NS, LATEST_NS, Fault, Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from types import TracebackType
    from typing import Self

    from reconcile.model.snapshot import Digest

_BY_DESCRIPTOR = {os.open, os.stat} <= os.supports_dir_fd and os.scandir in os.supports_fd

_BASE = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_DIRECTORY = _BASE | getattr(os, "O_DIRECTORY", 0)
_FILE = _BASE | _NOFOLLOW | getattr(os, "O_NONBLOCK", 0)

_LONG = 900
"""Characters of a path that one system call takes. PATH_MAX limits one call, not the depth of a tree, and a character
has at most four bytes."""

_KINDS = {
    stat.S_IFREG: "a file",
    stat.S_IFDIR: "a directory",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def kind_of(mode: int) -> str:
    """Return the kind of an entry with this mode, in words."""
    return _KINDS.get(stat.S_IFMT(mode), "something unknown")


def is_special(mode: int) -> bool:
    """Tell whether an entry has no content that can be kept: a pipe, a socket, a device."""
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))


def read_if_there(path: str) -> bytes | None:
    """Return the content of a file, following links; None if there is none. Raises `OSError`."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


class Directory:
    """An open directory. Names are relative to it, and a symbolic link at the last component is never followed."""

    __slots__ = ("_fd", "_path")

    def __init__(self, path: str, fd: int | None) -> None:
        self._path = path
        self._fd = fd

    @classmethod
    def open_root(cls, path: str) -> Directory:
        """Open the directory of a side. A symbolic link is followed only if ``path`` ends with a separator."""
        if _BY_DESCRIPTOR:
            return cls(path, os.open(path, _DIRECTORY | _NOFOLLOW))
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            raise NotADirectoryError(path)
        return cls(path, None)

    def below(self, path: str) -> Directory:
        """Open the directory at ``path``; an empty path opens this directory again."""
        if self._fd is None:
            if path and not stat.S_ISDIR(self.stat(path).st_mode):
                raise NotADirectoryError(path)
            return Directory(os.path.join(self._path, path), None)
        # One component at a time: O_NOFOLLOW applies to the last component only.
        return Directory(path, self._descend(self._fd, path.split("/") if path else ["."], _DIRECTORY | _NOFOLLOW))

    @staticmethod
    def _descend(start: int, names: Iterable[str], flags: int) -> int:
        fd = start
        try:
            for name in names:
                deeper = os.open(name, flags, dir_fd=fd)
                if fd != start:
                    os.close(fd)
                fd = deeper
        except BaseException:
            if fd != start:
                os.close(fd)
            raise
        return fd

    def entries(self) -> Iterator[os.DirEntry[str]]:
        """Yield every entry, in the system's order."""
        with os.scandir(self._path if self._fd is None else self._fd) as entries:
            yield from entries

    def identity(self) -> str:
        """Return its identity, as in `Snapshot.identity`. Raises `OSError`."""
        return directory_identity(self._path if self._fd is None else self._fd)

    def status(self) -> os.stat_result:
        """Return the status of the directory itself."""
        return os.stat(self._path if self._fd is None else self._fd)

    def stat(self, name: str) -> os.stat_result:
        """Return the status of an entry, without following a symbolic link there; links above it are followed."""
        if self._fd is None:
            return os.lstat(os.path.join(self._path, name))
        if len(name) <= _LONG:
            return os.stat(name, dir_fd=self._fd, follow_symlinks=False)
        parent, _, last = name.rpartition("/")
        with Directory(parent, self._descend(self._fd, _hops(parent), _DIRECTORY)) as directory:
            return directory.stat(last)

    def open_file(self, name: str) -> int:
        """Open an entry for reading, without blocking. The caller must check that it is a regular file."""
        if self._fd is None:
            return os.open(os.path.join(self._path, name), _FILE)
        return os.open(name, _FILE, dir_fd=self._fd)

    def close(self) -> None:
        """Close the descriptor."""
        if self._fd is not None:
            os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _hops(path: str) -> list[str]:
    """Split a path into pieces that one system call takes."""
    if len(path) <= _LONG:
        return [path]
    hops: list[str] = []
    for part in path.split("/"):
        if hops and len(hops[-1]) + len(part) < _LONG:
            hops[-1] += "/" + part
        else:
            hops.append(part)
    return hops


Fingerprint: TypeAlias = tuple[int, int, int, int]
"""Stat fingerprint of a file: size in bytes, mtime in ns, inode, ctime in ns."""

T = TypeVar("T")

TOO_LARGE = "too large for the free memory"
CHANGING = "it changes all the time"
_TRIES = 2
_GONE = {errno.ENOENT, errno.ESTALE}


def mtime_of(status: os.stat_result) -> int:
    """Return the modification time in ns, limited to the range that a snapshot can hold."""
    time_ns = status.st_mtime_ns
    return time_ns if EARLIEST_NS <= time_ns <= LATEST_NS else min(max(time_ns, EARLIEST_NS), LATEST_NS)


def fingerprint_of(status: os.stat_result) -> Fingerprint:
    """Return the stat fingerprint of a status."""
    time_ns = status.st_mtime_ns
    if not EARLIEST_NS <= time_ns <= LATEST_NS:
        time_ns = mtime_of(status)
    return status.st_size, time_ns, status.st_ino, status.st_ctime_ns


def read_files(directory: Directory, names: Iterable[str]) -> dict[str, tuple[bytes, Fingerprint]] | Fault:
    """Return the contents of files, all as they were at one moment, with their fingerprints."""
    return read_consistently(directory, dict.fromkeys(names, read_all))


def read_fast(
    directory: Directory, names: Iterable[str], most: int
) -> dict[str, tuple[bytes, Fingerprint, os.stat_result]] | None:
    """Return the contents of small files, all as they were at one moment, with fingerprint and status.

    This is the fast path, with one attempt. None if a file isn't regular, has more than ``most`` bytes, changes, or
    can't be read: `read_consistently` then returns the fault.
    """
    contents = {}
    try:
        for name in names:
            fd = directory.open_file(name)
            try:
                status = os.fstat(fd)
                size = status.st_size
                if not stat.S_ISREG(status.st_mode) or size > most:
                    return None
                content, read = read_all(fd, size)
            finally:
                os.close(fd)
            if read != size:
                return None
            contents[name] = content, fingerprint_of(status), status
        for name, (_, known, _) in contents.items():
            if fingerprint_of(directory.stat(name)) != known:  # by its name, see `_moved`
                return None
    except (OSError, MemoryError):
        return None
    return contents


def digest_extra(directory: Directory, name: str) -> tuple[Digest, Fingerprint] | Fault:
    """Return the digest and the fingerprint of one file, in bounded memory."""
    digests = read_consistently(directory, {name: _hashed})
    return digests if isinstance(digests, Fault) else digests[name]


def uncopied_entries(path: str, except_below: Collection[str], unit_of: Callable[[str], str | None]) -> Iterator[str]:
    """Yield the paths below a directory of what no run copies, sorted by directory; a directory's ends with a slash.

    These are hidden files and directories, files without a unit, such as an editor's backup, links and special files.

    ``except_below``: names of directories in it that are not searched. No link is followed, and a directory that can't
    be read has no entries.
    """
    for at, directories, files in os.walk(path):
        inside = at[len(path) + 1 :]
        skipped = () if inside else except_below
        links = {name for name in directories if os.path.islink(os.path.join(at, name))}
        hidden = {name for name in directories if name.startswith(".")} - links
        left = {name for name in files if unit_of(os.path.join(inside, name)) is None or not _is_regular(at, name)}
        yield from (os.path.join(inside, name) for name in sorted({*left, *links, *(f"{name}/" for name in hidden)}))
        directories[:] = sorted(name for name in directories if name not in links | hidden and name not in skipped)


def _is_regular(above: str, name: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(os.path.join(above, name)).st_mode)
    except OSError:
        return False


def parse_or_fault(name: str, read: Callable[[], T]) -> T | Fault:
    """Return what ``read`` returns, or the fault of ``name`` if it needs too much memory."""
    try:
        return read()
    except MemoryError:
        return Unreadable(name, TOO_LARGE, "a smaller file")


def unreadable(name: str, error: OSError) -> Unreadable:
    """Return the fault of a file or directory that the system can't read."""
    return Unreadable(name, error_text(error), "a readable file")


def error_text(error: OSError) -> str:
    """Return the system's text for an error, without the path."""
    return error.strerror or type(error).__name__


def read_consistently(
    directory: Directory, how: Mapping[str, Callable[[int, int], tuple[T, int]]]
) -> dict[str, tuple[T, Fingerprint]] | Fault:
    """Read every file, then compare each with its fingerprint; a change causes another attempt.

    ``how`` maps each name to a function of a descriptor and the expected size in bytes. It returns its result and the
    number of bytes that it has read. A fault is returned if the last attempt fails, too.
    """
    names = tuple(how)
    for _ in range(_TRIES):
        results: dict[str, tuple[T, Fingerprint]] = {}
        for name, consume in how.items():
            result = _once(directory, name, consume)
            if isinstance(result, Fault):
                return result
            if result is not None:
                results[name] = result
        moved = _moved(directory, names, results)
        if moved is None:
            return results
    return Unreadable(moved or names[0], CHANGING, "a file at rest")


def _moved(directory: Directory, names: tuple[str, ...], results: dict[str, tuple[T, Fingerprint]]) -> str | None:
    """Return the first name whose file is missing or differs from the file that was read."""
    for name in names:
        if name not in results:
            return name
        try:
            # By name, not by descriptor: the descriptor of a replaced file still shows the old one.
            if fingerprint_of(directory.stat(name)) != results[name][1]:
                return name
        except OSError:
            return name
    return None


def _once(
    directory: Directory, name: str, consume: Callable[[int, int], tuple[T, int]]
) -> tuple[T, Fingerprint] | Fault | None:
    """Try to read one file once; return None if it changed meanwhile."""
    try:
        fd = directory.open_file(name)
    except OSError as error:
        if error.errno in _GONE:
            return None
        if error.errno == errno.ELOOP:
            return Fault(name, "a symbolic link", "a regular file")
        return unreadable(name, error)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            return Fault(name, kind_of(status.st_mode), "a regular file")
        value, size = consume(fd, status.st_size)
    except OSError as error:
        return None if error.errno in _GONE else unreadable(name, error)
    except MemoryError:
        return Unreadable(name, TOO_LARGE, "a smaller file")
    finally:
        os.close(fd)
    return (value, fingerprint_of(status)) if size == status.st_size else None


def read_all(fd: int, size: int) -> tuple[bytes, int]:
    """Return the bytes that are left, and their number. One byte more is requested, so that growth is noticed."""
    content = os.read(fd, size + 1)
    # The system may return fewer bytes at any time; only an empty read is the end.
    while len(content) < size and (more := os.read(fd, size + 1 - len(content))):
        content += more
    return content, len(content)


def _hashed(fd: int, _size: int) -> tuple[Digest, int]:
    """Return the digest and the number of bytes."""
    return digest_and_size(fd)
