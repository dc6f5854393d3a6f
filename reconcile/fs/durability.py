"""Flushing to disk: what the journal calls done survives a power cut (docs/design/run.md#rule-50).

What the operating system does not promise: a rename that is seen is not yet on disk (its directory must be
flushed too), and a file's name on disk says nothing about its content (the file must be flushed too).
"""

from __future__ import annotations

import errno
import functools
import os
import sys
from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.fs.paths import regular_descriptor
from reconcile.fs.posix import O_CLOEXEC, O_NOFOLLOW, find_syncfs, sync_file

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

ONE_BY_ONE = 32
"""Up to so many files are flushed each by itself; beyond, one syncfs is several times faster, but it also
waits for everything that other programs have written to that file system."""

_UNSUPPORTED = {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}
_find_syncfs = functools.cache(find_syncfs)


def fsync_file(file: str | int) -> None:
    """Flush one regular file, given by path or descriptor. Raises `OSError`: it isn't durable then."""
    if isinstance(file, int):
        sync_file(file)
        return
    # Windows flushes only what is open for writing; elsewhere a read-only file can be flushed too.
    mode = os.O_RDWR if sys.platform == "win32" else os.O_RDONLY
    fd = regular_descriptor(file, mode | O_NOFOLLOW)
    try:
        sync_file(fd)
    finally:
        os.close(fd)


def fsync_directory(path: str) -> None:
    """Flush the names in a directory.

    File systems that can't flush a directory say EINVAL or ENOTSUP, and their renames are as durable as they
    get; every other `OSError` is raised. Windows can't open directories and orders its own metadata.
    """
    if sys.platform == "win32":
        return
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | O_CLOEXEC)
    try:
        sync_file(fd)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    finally:
        os.close(fd)


def sync_filesystem(path: str) -> None:
    """Flush the whole file system that holds ``path``; where there is no syncfs, start flushing all of them.

    ``os.sync`` may return before the data is down, so `flush_all` doesn't rely on it. Raises `OSError`.
    """
    syncfs = _find_syncfs()
    if syncfs is None:
        if hasattr(os, "sync"):
            os.sync()
        return
    _sync_with(syncfs, path)


def flush_all(files: Collection[str], directories: Iterable[str], within: Collection[str] = ()) -> None:
    """Make the content of ``files`` and the names in ``directories`` durable.

    Few of them are flushed one by one; for many, each file system that is concerned is flushed once. ``within``: on
    whose file systems all of that lies, where it is known. Raises `OSError`: nothing may then be overwritten or
    removed.
    """
    directories = dict.fromkeys(directories)
    syncfs = _find_syncfs()
    if max(len(files), len(directories)) > ONE_BY_ONE and syncfs is not None:
        by_device = {os.lstat(path).st_dev: path for path in within or [*directories, *files]}
        for path in by_device.values():
            _sync_with(syncfs, path)
        return
    for path in files:
        fsync_file(path)
    for path in directories:
        fsync_directory(path)


def _sync_with(syncfs: Callable[[int], None], path: str) -> None:
    fd = os.open(path, os.O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
    try:
        syncfs(fd)
    finally:
        os.close(fd)


class Durability(Struct, frozen=True):
    """Flushing, or none of it: tests that don't cut the power turn it off with ``enabled=False``."""

    enabled: bool = True

    def fsync_file(self, file: str | int) -> None:
        """See `fsync_file`."""
        if self.enabled:
            fsync_file(file)

    def fsync_directory(self, path: str) -> None:
        """See `fsync_directory`."""
        if self.enabled:
            fsync_directory(path)

    def sync_filesystem(self, path: str) -> None:
        """See `sync_filesystem`."""
        if self.enabled:
            sync_filesystem(path)

    def flush_all(self, files: Collection[str], directories: Iterable[str], within: Collection[str] = ()) -> None:
        """See `flush_all`."""
        if self.enabled:
            flush_all(files, directories, within)
