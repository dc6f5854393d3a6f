"""A lock file that one process holds at a time: the system's own lock where it has one, the library's elsewhere."""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from typing import TYPE_CHECKING

from reconcile.fs.posix import O_NOFOLLOW, lock_exclusively
from reconcile.fs.private_files import FILE_MODE
from reconcile.fs.regular_files import regular_descriptor

if TYPE_CHECKING:
    from collections.abc import Callable

_PAUSE = 0.05
"""Seconds between two attempts."""


def acquire(path: str, timeout: float) -> Callable[[], None] | None:
    """Take the lock, and return what gives it back; None where another holds it for ``timeout`` seconds.

    Raises `OSError` where it can't be taken at all. On systems with flock its library would do the same, and takes
    longer to load than most commands run.
    """
    if sys.platform == "win32":
        import filelock

        # Without thread_local one process can't hold it twice by way of two threads.
        lock = filelock.FileLock(path, mode=FILE_MODE, thread_local=False)
        try:
            lock.acquire(timeout=timeout)
        except filelock.Timeout:
            return None
        return lock.release
    end = time.monotonic() + timeout
    while True:
        fd = _take(path)
        if fd is not None:
            return partial(os.close, fd)
        if time.monotonic() >= end:
            return None
        time.sleep(_PAUSE)


def _take(path: str) -> int | None:
    """Try once; the file must still be the one of that name, once it is locked."""
    fd = regular_descriptor(path, os.O_RDWR | os.O_CREAT | O_NOFOLLOW, FILE_MODE)
    try:
        lock_exclusively(fd)
        if os.fstat(fd).st_ino == os.stat(path).st_ino:
            return fd
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(fd)
        raise
    os.close(fd)
    return None
