"""System calls that only some systems have, each with the behaviour on the others.

`reconcile` can be imported on every system.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import gc
import os
import sys
from typing import TYPE_CHECKING

if sys.platform != "win32":
    import fcntl
    import resource

if TYPE_CHECKING:
    from collections.abc import Callable

O_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
O_CLOEXEC: int = getattr(os, "O_CLOEXEC", 0)
O_BINARY: int = getattr(os, "O_BINARY", 0)

MOST_PID = 2**31 - 1
"""The largest number of a process. A larger one in a file is invalid."""


def sync_file(fd: int) -> None:
    """Flush one open file to the medium. Raises `OSError`.

    On macOS, fsync only reaches the cache of the drive, so F_FULLFSYNC is used. File systems without it get fsync.
    """
    if sys.platform == "darwin":
        try:
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
        except OSError as error:
            if error.errno not in {errno.EINVAL, errno.ENOTSUP, errno.ENOTTY}:
                raise
        else:
            return
    os.fsync(fd)


_REPORTING = (5, 8)
"""The first Linux whose ``syncfs`` reports that a write has failed."""


def find_syncfs() -> Callable[[int], None] | None:
    """Return Linux's ``syncfs(2)``, None on a system without one that reports what failed."""
    if sys.platform != "linux" or _kernel(os.uname().release) < _REPORTING:
        return None
    import ctypes  # here: most runs write too little for a syncfs

    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "syncfs"):
        return None

    def syncfs(fd: int) -> None:
        if library.syncfs(fd) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    return syncfs


def _kernel(release: str) -> tuple[int, ...]:
    """Return the first two numbers of a release such as ``6.1.0-13-amd64``; none that can be read count as old."""
    first, _, rest = release.partition(".")
    second = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    return (int(first), int(second)) if first.isdigit() and second else ()


RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2
_NO_SUCH_RENAME = {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP}


def rename_with(flag: int, source_fd: int, source: str, target_fd: int, target: str) -> bool:
    """Call Linux's ``renameat2(2)`` with one of its flags, relative to two open directories. Raises `OSError`.

    Return False, without any change, if the system or the file system doesn't support the flag.
    """
    renameat2 = _find_renameat2()
    if renameat2 is None:
        return False
    number = renameat2(source_fd, os.fsencode(source), target_fd, os.fsencode(target), flag)
    if number in _NO_SUCH_RENAME:
        return False
    if number:
        raise OSError(number, os.strerror(number), target)
    return True


@functools.cache
def _find_renameat2() -> Callable[[int, bytes, int, bytes, int], int] | None:
    """Return a function that calls the C library and returns the error number; None on a system without it."""
    if sys.platform != "linux":
        return None
    import ctypes  # here: most runs change nothing

    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "renameat2"):
        return None

    def renameat2(source_fd: int, source: bytes, target_fd: int, target: bytes, flag: int) -> int:
        failed = library.renameat2(source_fd, source, target_fd, target, flag) != 0
        return ctypes.get_errno() if failed else 0

    return renameat2


def release_memory() -> None:
    """Give back to the system the memory that the process has freed: both allocators keep much of it otherwise."""
    gc.collect()  # it frees the values that the interpreter keeps for later, each of which holds a whole arena
    if sys.platform != "linux":
        return
    import ctypes  # here: for processes that stay

    with contextlib.suppress(AttributeError):  # another C library than glibc
        ctypes.CDLL(None).malloc_trim(0)


def raise_descriptor_limit(needed: int) -> None:
    """Raise the soft limit of open files to the hard limit if ``needed`` more might not fit.

    A refusal is ignored: opening a file then fails with EMFILE, which the caller reports.
    """
    if sys.platform != "win32":
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        spare = 128  # for all other open files
        if soft != resource.RLIM_INFINITY and needed + spare > soft:
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            except (OSError, ValueError):  # macOS reports a hard limit that it doesn't accept
                return


def process_lives(pid: int) -> bool:
    """Tell whether a process of this number exists on this machine; True if the system can't tell."""
    if sys.platform == "win32":
        return True  # os.kill(pid, 0) would end it there
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


_ESCAPE = r"\\([0-7]{3})"
_MOUNTS = "/proc/self/mountinfo"
_NETWORK = (
    "nfs",
    "cifs",
    "smb",
    "9p",
    "afs",
    "ceph",
    "fuse.sshfs",
    "fuse.rclone",
    "ncpfs",
    "glusterfs",
    "fuse.gluster",
)


def network_type(path: str) -> str | None:
    """Return the type of the network file system that holds a path; None if it is local or if the system can't tell.

    Other machines write to a network file system without an event on this one. Only Linux tells the type.
    """
    mounted = file_system_type(path)
    return mounted if mounted.startswith(_NETWORK) else None


def file_system_type(path: str) -> str:
    """Return the type of the file system that holds a path, as Linux names it; empty if the system can't tell."""
    try:
        with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
            return type_in(file.read(), os.path.realpath(path))
    except OSError:
        return ""


def type_in(table: str, path: str) -> str:
    """Return the same from the text of ``mountinfo`` (proc(5)). The longest mount point above the path counts."""
    import re  # here: only a watcher and a flush of many files need it

    mounted, longest = "", -1
    for line in table.splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(" "), right.split(" ")[0]
        point = re.sub(_ESCAPE, lambda match: chr(int(match[1], 8)), fields[4])
        above = f"{path}/".startswith(f"{point.rstrip('/')}/")
        if above and len(point) >= longest:
            mounted, longest = kind, len(point)
    return mounted


def is_alive(pid: int) -> bool:
    """Tell whether there is a process with this number, whoever owns it."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
