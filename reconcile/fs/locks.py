"""reconcile's own locks, each of one process at a time: a pass over a store, a watcher of a project.

See docs/safety.md#locks.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.errors import ReconcileError
from reconcile.fs.hashing import digest
from reconcile.fs.paths import open_regular, regular_descriptor
from reconcile.fs.posix import MOST_PID, O_NOFOLLOW, lock_exclusively
from reconcile.fs.private_files import FILE_MODE, make_private_directory, replace_private_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LIMIT = 65536
"""Bytes of who holds it that are read."""
_PAUSE = 0.05
"""Seconds between two attempts."""


class LockedError(ReconcileError):
    """Another reconcile is at work on this store; the message says who and since when."""

    exit_code = 5


class Holder(Struct, frozen=True):
    """Who holds the lock. ``since`` is RFC 3339 in UTC, to the second."""

    pid: int
    command: str
    since: str

    def __str__(self) -> str:
        return f"process {self.pid}, `{self.command}`, since {self.since}"


class _Name(Struct, frozen=True):
    """A lock's file, that of who holds it, what the holder does, in words, and what to do then."""

    lock: str
    holder: str
    doing: str
    hint: str


_STORE = _Name("lock", "lock.json", "is at work on this store", "let it finish and run again")


def read_holder(directory: str) -> Holder | None:
    """Who says to hold the lock, None where nobody does or it can't be read. It proves nothing."""
    return _read_holder(directory, _STORE)


def _read_holder(directory: str, name: _Name) -> Holder | None:
    try:
        with open_regular(os.path.join(directory, name.holder)) as file:
            found = json.loads(file.read(_LIMIT))
        pid, command, since = found["pid"], found["command"], found["since"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    if type(pid) is not int or not 0 < pid <= MOST_PID or not isinstance(command, str) or not isinstance(since, str):
        return None
    return Holder(pid, command, since)


def own_lock(
    directory: str, *, command: str, timeout: float = 0.0, waiting: Callable[[str], None] = lambda _who: None
) -> contextlib.AbstractContextManager[None]:
    """Hold the lock of the state directory, which is made where it is missing, while the block runs.

    ``command`` is what others are told runs here. ``timeout``: seconds to wait, 0 to fail at once. ``waiting`` is
    called with who holds it, before the wait.
    Raises `LockedError` where somebody else holds it for so long, `OSError` where it can't be taken at all.
    """
    return _lock(directory, _STORE, command, timeout, waiting)


def watch_lock(directory: str, project: str, command: str) -> contextlib.AbstractContextManager[None]:
    """Be the only one to watch a project, while the block runs; single passes don't mind.

    Raises `LockedError` where somebody else does, `OSError` where it can't be taken at all.
    """
    name = f"watch-{digest(os.fsencode(project))[:12]}"
    hint = "one is enough; stop it first to start another"
    watched = _Name(f"{name}.lock", f"{name}.json", "watches this workspace", hint)
    return _lock(directory, watched, command, 0.0, lambda _who: None)


@contextlib.contextmanager
def _lock(directory: str, name: _Name, command: str, timeout: float, waiting: Callable[[str], None]) -> Iterator[None]:
    make_private_directory(directory)
    path = os.path.join(directory, name.lock)
    release = acquire(path, 0)
    if release is None and timeout > 0:
        waiting(str(_read_holder(directory, name) or "another process"))
        release = acquire(path, timeout)
    if release is None:
        raise _locked(directory, name, timeout)
    try:
        holder = {
            "pid": os.getpid(),
            "command": command,
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        # Who holds it is only information: a full disk must not stop the run here.
        with contextlib.suppress(OSError):
            replace_private_file(os.path.join(directory, name.holder), json.dumps(holder).encode())
        yield
    finally:
        # Taken away while the lock is still ours, or it would be the next holder's that goes.
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(directory, name.holder))
        release()


def _locked(directory: str, name: _Name, timeout: float) -> LockedError:
    holder = _read_holder(directory, name)
    who = f" ({holder})" if holder else ""
    waited = f"; waited {timeout:g} s" if timeout > 0 else ""
    return LockedError(
        f"{os.path.join(directory, name.lock)}: another reconcile {name.doing}{who}{waited}",
        hint=name.hint,
    )


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
