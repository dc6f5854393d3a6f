"""Status and names at a path, and opening of regular files only.

An error means that nothing is there, or that the system can't tell. Every start loads this module: it imports little.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import BinaryIO

_ANYWHERE = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NOTHING = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG}
"""Errors that mean that nothing is at a path. Any other error says nothing about the path."""


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
