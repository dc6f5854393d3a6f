"""Opening files by name where something else may be: a pipe is not waited for, a device not read.

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
