"""Reading files that other programs write: the returned content was in the files at one moment."""

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

Fingerprint: TypeAlias = tuple[int, int, int, int]
"""Stat fingerprint of a file: size in bytes, mtime in ns, inode, ctime in ns."""

T = TypeVar("T")

TOO_LARGE = "more than fits into memory"
CHANGING = "it changing while it was read"
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


def parse_or_fault(name: str, read: Callable[[], T]) -> T | Fault:
    """Return what ``read`` returns, or the fault of ``name`` if it needs too much memory."""
    try:
        return read()
    except MemoryError:
        return Unreadable(name, TOO_LARGE, "a smaller file")


def unreadable(name: str, error: OSError) -> Unreadable:
    """Return the fault of a file or directory that the system can't read."""
    return Unreadable(name, f"something that can't be read ({error_text(error)})", "a readable file")


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
