"""Reading files that others write at the same time: what is returned was there, whole, at one moment."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from reconcile.fs.dirfd import kind_of
from reconcile.fs.hashing import digest_and_size
from reconcile.model.snapshot import EARLIEST_NS, LATEST_NS, Fault, Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from reconcile.fs.dirfd import Directory
    from reconcile.model.snapshot import Digest

Print: TypeAlias = tuple[int, int, int, int]
"""Fingerprint of a file: size, mtime_ns, inode, ctime_ns."""

T = TypeVar("T")

TOO_LARGE = "more than fits into memory"
CHANGING = "it changing while it was read"
_TRIES = 2
_GONE = {errno.ENOENT, errno.ESTALE}


def mtime_of(status: os.stat_result) -> int:
    """The time in a status; one that is too far away is taken for the nearest that isn't."""
    time_ns = status.st_mtime_ns
    return time_ns if EARLIEST_NS <= time_ns <= LATEST_NS else min(max(time_ns, EARLIEST_NS), LATEST_NS)


def print_of(status: os.stat_result) -> Print:
    """The fingerprint in a status."""
    time_ns = status.st_mtime_ns
    if not EARLIEST_NS <= time_ns <= LATEST_NS:
        time_ns = mtime_of(status)
    return status.st_size, time_ns, status.st_ino, status.st_ctime_ns


def read_files(directory: Directory, names: Iterable[str]) -> dict[str, tuple[bytes, Print]] | Fault:
    """The contents of the files of one unit, all as they were at one moment."""
    return read_each(directory, dict.fromkeys(names, whole))


def read_usual(
    directory: Directory, names: Iterable[str], most: int
) -> dict[str, tuple[bytes, Print, os.stat_result]] | None:
    """The contents of files, all as they were at one moment, each with the status that it had before it was read.

    None where one is no regular file of at most so many bytes, or anything else is in the way: `read_each` says what.
    """
    found = {}
    try:
        for name in names:
            fd = directory.open_file(name)
            try:
                status = os.fstat(fd)
                size = status.st_size
                if not stat.S_ISREG(status.st_mode) or size > most:
                    return None
                content, read = whole(fd, size)
            finally:
                os.close(fd)
            if read != size:
                return None
            found[name] = content, print_of(status), status
        for name, (_, known, _) in found.items():
            if print_of(directory.stat(name)) != known:  # by its name, see `_moved`
                return None
    except (OSError, MemoryError):
        return None
    return found


def digest_extra(directory: Directory, name: str) -> tuple[Digest, Print] | Fault:
    """The digest of one file, in bounded memory."""
    found = read_each(directory, {name: _hashed})
    return found if isinstance(found, Fault) else found[name]


def parsed(name: str, read: Callable[[], T]) -> T | Fault:
    """What a format makes of contents; the fault of ``name`` where there is no room for it."""
    try:
        return read()
    except MemoryError:
        return Unreadable(name, TOO_LARGE, "a smaller file")


def unreadable(name: str, error: OSError) -> Unreadable:
    """The fault of a file or directory that the system refuses to show."""
    return Unreadable(name, f"something that can't be read ({reason(error)})", "a readable file")


def reason(error: OSError) -> str:
    """The system's words for an error, without the path."""
    return error.strerror or type(error).__name__


def read_each(
    directory: Directory, how: Mapping[str, Callable[[int, int], tuple[T, int]]]
) -> dict[str, tuple[T, Print]] | Fault:
    """Read every file, then look again at each: one that is not what it was spoils the attempt.

    ``how`` reads a file from a descriptor and the size that it should have; it returns what it made of it, and how
    many bytes it has read.
    """
    names = tuple(how)
    for _ in range(_TRIES):
        found: dict[str, tuple[T, Print]] = {}
        for name, consume in how.items():
            one = _once(directory, name, consume)
            if isinstance(one, Fault):
                return one
            if one is not None:
                found[name] = one
        moved = _moved(directory, names, found)
        if moved is None:
            return found
    return Unreadable(moved or names[0], CHANGING, "a file at rest")


def _moved(directory: Directory, names: tuple[str, ...], found: dict[str, tuple[T, Print]]) -> str | None:
    """The first file that is not at its name any more as it was read."""
    for name in names:
        if name not in found:
            return name
        try:
            # By its name, not the descriptor: a file replaced by a rename would look unchanged there.
            if print_of(directory.stat(name)) != found[name][1]:
                return name
        except OSError:
            return name
    return None


def _once(
    directory: Directory, name: str, consume: Callable[[int, int], tuple[T, int]]
) -> tuple[T, Print] | Fault | None:
    """One attempt at one file; None: it changed under our hands."""
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
    return (value, print_of(status)) if size == status.st_size else None


def whole(fd: int, size: int) -> tuple[bytes, int]:
    """All bytes, and one more asked for: a file that grew shows itself, here or when it is looked at once more."""
    content = os.read(fd, size + 1)
    # A short read is allowed at any time; only an empty one is the end.
    while len(content) < size and (more := os.read(fd, size + 1 - len(content))):
        content += more
    return content, len(content)


def _hashed(fd: int, _size: int) -> tuple[Digest, int]:
    """The digest and how many bytes went into it."""
    return digest_and_size(fd)
