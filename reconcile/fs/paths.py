"""What is at a path, and opening it: a status, a directory's names, a regular file and nothing else.

This module is loaded at every start, and loads next to nothing.
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
"""What is said of a path where nothing is, or can be. Any other error tells nothing about what is there."""


def is_absence(error: OSError) -> bool:
    """Whether an error says that nothing is at a path, or nothing that is looked for: no directory, but a link."""
    return error.errno in _NOTHING


def status_at(path: str, *, follow: bool = True) -> os.stat_result | None:
    """The status of what is at a path; None where nothing is. Raises `OSError` where that can't be told."""
    try:
        return os.stat(path, follow_symlinks=follow)
    except OSError as error:
        if is_absence(error):
            return None
        raise


def is_directory(path: str) -> bool:
    """Whether a directory is there, or a link to one. Raises `OSError` where that can't be told."""
    status = status_at(path)
    return status is not None and stat.S_ISDIR(status.st_mode)


def names_in(path: str) -> list[str]:
    """The names in a directory, sorted; none where there is no directory. Raises `OSError` where that can't be told."""
    try:
        return sorted(os.listdir(path))
    except OSError as error:
        if is_absence(error):
            return []
        raise


def upwards(start: str) -> list[str]:
    """A directory and all that it lies in, the nearest first."""
    found = [start]
    while (above := os.path.dirname(found[-1])) != found[-1]:
        found.append(above)
    return found


def open_regular(path: str, buffering: int = -1) -> BinaryIO:
    """Open a file for reading. Raises `OSError`, also where it is no regular file."""
    return open(path, "rb", buffering=buffering, opener=regular_descriptor)


def regular_descriptor(path: str, flags: int, mode: int = 0o600) -> int:
    """Open a file as `os.open` does, without waiting. Raises `OSError`, also where it is no regular file."""
    fd = os.open(path, flags | _ANYWHERE, mode)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "it is no regular file", path)
    return fd


def is_other(path: str) -> bool:
    """Tell whether something is there that is no regular file; a symbolic link is followed. Raises `OSError`."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return False
