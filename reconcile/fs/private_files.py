"""Directories and files that only their owner can read: state, vault, locks (docs/design/run.md#rule-52)."""

from __future__ import annotations

import contextlib
import os
import stat
from typing import TYPE_CHECKING

from reconcile.fs.posix import O_BINARY, O_CLOEXEC, O_NOFOLLOW, sync_file

if TYPE_CHECKING:
    from collections.abc import Iterable

DIRECTORY_MODE = 0o700
FILE_MODE = 0o600


def make_private_directory(path: str) -> list[str]:
    """Make a directory and its missing parents, each 0700; return those that were made, the outermost first.

    An existing one keeps its mode. The names of new ones are not flushed. Raises `OSError`.
    """
    missing, made = [], []
    while not os.path.isdir(path):
        missing.append(path)
        above = os.path.dirname(path)
        if above == path:
            break
        path = above
    for directory in reversed(missing):
        try:
            os.mkdir(directory, DIRECTORY_MODE)
        except FileExistsError:
            if not os.path.isdir(directory):
                raise
        else:
            made.append(directory)
    return made


def create_private_file(path: str) -> int:
    """Create a file 0600 and return its descriptor, open for writing; raises `FileExistsError`, `OSError`."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_BINARY
    return os.open(path, flags, FILE_MODE)


def write_all(fd: int, content: bytes | bytearray | memoryview) -> None:
    """Write all bytes: one call of the system may write only a part. Raises `OSError`."""
    written = os.write(fd, content)
    while written < len(content):
        written += os.write(fd, memoryview(content)[written:])


def replace_private_file(path: str, *parts: bytes | bytearray | memoryview, flushed: bool = False) -> None:
    """Replace a file atomically, 0600: readers see the old content or the new. Raises `OSError`.

    With ``flushed``, the content is on the medium before the rename; a file that only informs doesn't need it. Only one
    process at a time may replace a file.
    """
    temporary = f"{path}.tmp"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)  # left by a process that was killed
    replace_through(temporary, path, parts, flushed=flushed)


def replace_through(
    temporary: str,
    path: str,
    parts: Iterable[bytes | bytearray | memoryview],
    *,
    flushed: bool,
    mode: int = FILE_MODE,
) -> int:
    """Do as `replace_private_file` by a new file of this name beside it; return the number of bytes.

    With another ``mode``, the new file has exactly that one.

    Raises `FileExistsError` if the name is in use, `OSError`.
    """
    size = 0
    fd = create_private_file(temporary)
    try:
        try:
            for part in parts:
                write_all(fd, part)
                size += len(part)
            if mode != FILE_MODE:
                os.chmod(fd if os.chmod in os.supports_fd else temporary, mode)
            if flushed:
                sync_file(fd)
        finally:
            os.close(fd)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    return size


def replace_users_file(path: str, content: bytes, mode: int = FILE_MODE) -> None:
    """Replace a file of the user's atomically, with exactly this mode; it is on the medium then. Raises `OSError`.

    Its directory may be in a checkout. Others can commit a link with a name that they know, hence the random one.
    """
    temporary = f"{path}.reconcile-{os.urandom(4).hex()}.tmp"
    replace_through(temporary, path, (content,), flushed=True, mode=stat.S_IMODE(mode))
