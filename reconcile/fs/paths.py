"""Status and names at a path, and opening of regular files only.

An error means that nothing is there, or that the system can't tell. Every start loads this module: it imports little.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import BinaryIO

_ANYWHERE = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_LOOK = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _ANYWHERE
_NOTHING = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG}
"""Errors that mean that nothing is at a path. Any other error says nothing about the path."""

_ALIKE = 0.6
"""From this ratio on, a path may be a mistyped other one."""
_FS_IOC_GETVERSION = 0x80087601 if sys.maxsize > 2**32 else 0x80047601
_FS_IOC_GETFLAGS = 0x80086601 if sys.maxsize > 2**32 else 0x80046601


def is_absence(error: OSError) -> bool:
    """Tell whether an error means that nothing is at a path, or no entry of the expected kind."""
    return error.errno in _NOTHING


def status_at(path: str, *, follow: bool = True) -> os.stat_result | None:
    """Return the status at a path, None if nothing is there. Raises `OSError` if the system can't tell."""
    try:
        return os.stat(path, follow_symlinks=follow)
    except OSError as error:
        if is_absence(error):
            return None
        raise


def is_directory(path: str) -> bool:
    """Tell whether a directory or a link to one is there. Raises `OSError` if the system can't tell."""
    status = status_at(path)
    return status is not None and stat.S_ISDIR(status.st_mode)


def names_in(path: str) -> list[str]:
    """Return the sorted names in a directory, none if it is missing. Raises `OSError` if the system can't tell."""
    try:
        return sorted(os.listdir(path))
    except OSError as error:
        if is_absence(error):
            return []
        raise


def with_parents(start: str) -> list[str]:
    """Return a directory and all of its parents, the nearest first."""
    directories = [start]
    while (above := os.path.dirname(directories[-1])) != directories[-1]:
        directories.append(above)
    return directories


def nearest_path(path: str, known: Iterable[str]) -> str | None:
    """Return the known absolute path that a mistyped one may stand for, None if none is alike.

    The parents that both have in common don't count: any two paths in a home directory would be alike.
    """
    import difflib  # here: only a message needs it

    def likeness(other: str) -> float:
        shared = len(os.path.commonpath((path, other)))
        return difflib.SequenceMatcher(None, path[shared:], other[shared:]).ratio()

    best = max(known, key=likeness, default=None)
    return best if best is not None and likeness(best) >= _ALIKE else None


def open_regular(path: str, buffering: int = -1) -> BinaryIO:
    """Open a file for reading. Raises `OSError`, also if it is no regular file."""
    return open(path, "rb", buffering=buffering, opener=regular_descriptor)


def regular_descriptor(path: str, flags: int, mode: int = 0o600) -> int:
    """Open a file as `os.open` does, without waiting for a pipe. Raises `OSError`, also if it is no regular file."""
    fd = os.open(path, flags | _ANYWHERE, mode)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "not a regular file", path)
    return fd


def is_not_regular(path: str) -> bool:
    """Tell whether an entry other than a regular file is there; a symbolic link is followed. Raises `OSError`."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return False


def identity_of(directory: str | int) -> str:
    """Return device and inode of a directory, by its path or descriptor, or an empty text if there is none.

    Raises `OSError` if this is unknown.
    """
    try:
        status = os.stat(directory)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    return f"{status.st_dev}:{status.st_ino}"


def generation_of(directory: str | int) -> int | None:
    """Return the generation of a directory's inode, None if the file system has none, or the user may not ask.

    A file system that gives the inode of a removed directory to a new one, as ext4 does, gives it another generation.
    """
    return _number_of(directory, _FS_IOC_GETVERSION)


def inode_flags(directory: str | int) -> int:
    """Return the flags of a directory's inode that ``lsattr`` shows, 0 if the system does not tell them."""
    return _number_of(directory, _FS_IOC_GETFLAGS) or 0


def _number_of(directory: str | int, request: int) -> int | None:
    """Return the int that an ioctl reads from a directory's inode, None if there is none."""
    if sys.platform != "linux":
        return None
    import fcntl  # here: it exists on some systems only

    try:
        fd = directory if isinstance(directory, int) else os.open(directory, _LOOK)
    except OSError:
        return None
    try:
        answer = fcntl.ioctl(fd, request, bytes(8))  # the kernel writes an int, not a long
    except OSError:
        return None
    finally:
        if fd != directory:
            os.close(fd)
    return int.from_bytes(answer[:4], sys.byteorder)


def directory_identity(directory: str | int) -> str:
    """Return what distinguishes a directory from a later one at the same path; empty if there is none.

    ``directory`` is a path or a descriptor. To device and inode it adds the inode's generation, if the file system has
    one: a directory that is removed and made again often has the same inode. Raises `OSError` if this is unknown.
    """
    identity = identity_of(directory)
    generation = generation_of(directory) if identity else None
    return identity if generation is None else f"{identity}:{generation}"


def quoted_path(path: str) -> str:
    """Return a path for a shell: quoted if need be, behind ``~`` for the home directory, which no quote may have."""
    from reconcile.model.commands import quoted  # here: most runs suggest no command with a path

    home = os.path.expanduser("~")
    inside = path[len(home) + 1 :] if len(home) > 1 and path.startswith(home + os.sep) else ""
    return f"~/{quoted(inside)}" if inside else quoted(path)
