"""Flushing to disk: a step that the journal calls done survives a power cut (docs/design/run.md#rule-50).

The operating system promises less. A rename is durable only after a flush of its directory, and a file's content only
after a flush of the file.
"""

from __future__ import annotations

import errno
import functools
import os
import sys
from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.fs.paths import regular_descriptor
from reconcile.fs.posix import O_CLOEXEC, O_NOFOLLOW, file_system_type, find_syncfs, sync_file

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

MAX_SINGLE_FLUSHES = 32
"""Up to this number, each file is flushed by itself. Beyond it, one syncfs is several times faster, although it also
waits for the writes of other programs to that file system."""

_FUSE = "fuse"
_UNSUPPORTED = {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}
_find_syncfs = functools.cache(find_syncfs)


def fsync_file(file: str | int) -> None:
    """Flush one regular file, given by path or descriptor. Raises `OSError`: the file is not durable then."""
    if isinstance(file, int):
        sync_file(file)
        return
    # Windows flushes only files that are open for writing; other systems also flush read-only files.
    mode = os.O_RDWR if sys.platform == "win32" else os.O_RDONLY
    fd = regular_descriptor(file, mode | O_NOFOLLOW)
    try:
        sync_file(fd)
    finally:
        os.close(fd)


def fsync_directory(path: str) -> None:
    """Flush the names in a directory. Raises `OSError`, unless the file system can't flush directories.

    Such a file system answers EINVAL or ENOTSUP, and its renames can't be made more durable. Windows can't open
    directories and orders its own metadata.
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
    """Flush the file system that holds ``path``; without syncfs, start to flush all file systems.

    ``os.sync`` may return before the data is on the disk, so `flush_all` doesn't rely on it. Raises `OSError`.
    """
    syncfs = _find_syncfs()
    if syncfs is None:
        if hasattr(os, "sync"):
            os.sync()
        return
    _sync_with(syncfs, path)


def flush_all(files: Collection[str], directories: Iterable[str], within: Collection[str] = ()) -> None:
    """Make the content of ``files`` and the names in ``directories`` durable.

    Up to `MAX_SINGLE_FLUSHES` are flushed one by one. For more, each file system is flushed once, but for one in user
    space (FUSE): its program learns nothing of a syncfs. ``within`` are paths on all these file systems, if the caller
    knows them. Raises `OSError`: the caller must not overwrite or remove anything then.
    """
    directories = list(dict.fromkeys(directories))
    if max(len(files), len(directories)) > MAX_SINGLE_FLUSHES and (syncfs := _find_syncfs()) is not None:
        by_device = {os.lstat(path).st_dev: path for path in within or [*directories, *files]}
        left = {device for device, path in by_device.items() if file_system_type(path).startswith(_FUSE)}
        for device, path in by_device.items():
            if device not in left:
                _sync_with(syncfs, path)
        if not left:
            return
        files, directories = ([path for path in each if os.lstat(path).st_dev in left] for each in (files, directories))
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
    """Flushing that can be switched off: tests that don't cut the power use ``enabled=False``."""

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
