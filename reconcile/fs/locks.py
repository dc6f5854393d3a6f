"""Lock files, and the two locks of reconcile: one run at a time on a store, one watcher on a project.

See docs/safety.md#lock-files.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from datetime import UTC, datetime
from functools import cache, partial
from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.errors import ReconcileError
from reconcile.fs.hashing import digest
from reconcile.fs.paths import open_regular, regular_descriptor
from reconcile.fs.posix import MOST_PID, O_NOFOLLOW
from reconcile.fs.private_files import FILE_MODE, make_private_directory, replace_private_file
from reconcile.signals import Uninterrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LIMIT = 65536
"""Bytes that are read of a holder's file."""
_PAUSE = 0.05
"""Seconds between two attempts."""


class LockedError(ReconcileError):
    """Another process holds the lock; the message says which one and since when."""

    exit_code = 5


class Holder(Struct, frozen=True):
    """The process that holds a lock. ``since`` is RFC 3339 in UTC, to the second."""

    pid: int
    command: str
    since: str

    def __str__(self) -> str:
        return f"process {self.pid}, `{self.command}`, since {self.since}"


class _Name(Struct, frozen=True):
    """The names of the lock file and the holder's file; the words of an error: what the holder does, and a hint."""

    lock: str
    holder: str
    doing: str
    hint: str


_STORE = _Name("lock", "lock.json", "is running on this store", "let it finish, then run again")


_WHO = "is watching every project"
_HOME = _Name("watch-all.lock", "watch-all.json", _WHO, "stop it first: reconcile service status")


def read_holder(directory: str) -> Holder | None:
    """Return the holder of the run lock, by its own file; None if the file is missing or invalid.

    The file proves nothing: a process that was killed leaves it.
    """
    return _read_holder(directory, _STORE)


def read_home_watcher(directory: str) -> tuple[Holder | None, int | None]:
    """Return the holder of the lock of `home_lock`, as `read_holder`, and the time of its last pass in ns; None: none.

    The time is the lock file's, which `note_pass` sets.
    """
    try:
        passed = os.stat(os.path.join(directory, _HOME.lock)).st_mtime_ns
    except OSError:
        passed = None
    return _read_holder(directory, _HOME), passed


def note_pass(directory: str) -> None:
    """Note the time of a pass of the watcher of every project."""
    with contextlib.suppress(OSError):  # it only informs
        os.utime(os.path.join(directory, _HOME.lock))


def _read_holder(directory: str, name: _Name) -> Holder | None:
    try:
        with open_regular(os.path.join(directory, name.holder)) as file:
            holder = json.loads(file.read(_LIMIT))
        pid, command, since = holder["pid"], holder["command"], holder["since"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    if type(pid) is not int or not 0 < pid <= MOST_PID or not isinstance(command, str) or not isinstance(since, str):
        return None
    return Holder(pid, command, since)


def run_lock(
    directory: str, *, command: str, timeout: float = 0.0, waiting: Callable[[str], None] = lambda _who: None
) -> contextlib.AbstractContextManager[None]:
    """Hold the run lock of a state directory while the block runs. The directory is made if it is missing.

    Other processes show ``command`` as the holder's. ``timeout`` is in seconds, 0 fails at once; ``waiting`` is called
    with the holder before a wait.

    Raises:
        LockedError: another process holds it for that long.
        OSError: the lock file can't be opened or locked.
    """
    return _lock(directory, _STORE, command, timeout, waiting)


def watch_lock(directory: str, project: str, command: str) -> contextlib.AbstractContextManager[None]:
    """Hold the lock of a project's watcher while the block runs. Other commands don't take this lock.

    Raises:
        LockedError: another process watches the project.
        OSError: the lock file can't be opened or locked.
    """
    name = f"watch-{digest(os.fsencode(project))[:12]}"
    hint = "stop the other watcher first"
    names = _Name(f"{name}.lock", f"{name}.json", "is watching this workspace", hint)
    return _lock(directory, names, command, 0.0, lambda _who: None)


def home_lock(directory: str, command: str) -> contextlib.AbstractContextManager[None]:
    """Hold the lock of the watcher of every project, in the directory of the states, while the block runs.

    Raises:
        LockedError: another process watches them.
        OSError: the lock file can't be opened or locked.
    """
    return _lock(directory, _HOME, command, 0.0, lambda _who: None)


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
    owner = os.getpid()
    try:
        holder = {
            "pid": owner,
            "command": command,
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        # The holder's file only informs: a full disk must not stop the run here.
        with contextlib.suppress(OSError):
            replace_private_file(os.path.join(directory, name.holder), json.dumps(holder).encode())
        yield
    finally:
        # Removed before the release: afterwards it may be the next holder's. A forked copy leaves it to the owner.
        if os.getpid() == owner:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(directory, name.holder))
        release()


def _locked(directory: str, name: _Name, timeout: float) -> LockedError:
    holder = _read_holder(directory, name)
    who = f" ({holder})" if holder else ""
    waited = f" after {timeout:g} s" if timeout > 0 else ""
    return LockedError(
        f"{os.path.join(directory, name.lock)}: another reconcile {name.doing}{waited}{who}",
        hint=name.hint,
    )


def acquire(path: str, timeout: float) -> Callable[[], None] | None:
    """Lock the file at ``path``, made 0600 where it is missing, and return the function that releases it.

    Return None if another process, or another holder in this one, has it for ``timeout`` seconds. Raises `OSError`
    where the file can't be opened or its file system has no locks.
    """
    deadline = time.monotonic() + timeout
    while True:
        fd = _take(path)
        if fd is not None:
            return partial(_release, fd, os.getpid())
        if time.monotonic() >= deadline:
            return None
        time.sleep(_PAUSE)


def try_lock(fd: int) -> bool:
    """Lock an open file without waiting; return False if it is locked by another open file description.

    The lock belongs to the open file description: a forked copy shares it, and closing another descriptor keeps it
    (docs/safety.md#lock-files). Raises `OSError` where the file system has no locks.
    """
    return _lock_descriptor()(fd, blocking=False)


def unlock(fd: int) -> None:
    """Unlock an open file, also where a forked copy has it open. A failure is ignored: closing unlocks it, too."""
    import filelock

    with contextlib.suppress(OSError):
        filelock.unlock_descriptor(fd)


@cache
def _lock_descriptor() -> Callable[..., bool]:
    with Uninterrupted():
        import filelock  # here: it takes longer to load than a run with nothing to do

    return filelock.lock_descriptor


def _take(path: str) -> int | None:
    """Try once. The locked file must still have its name: another process may have replaced it before the lock."""
    fd = regular_descriptor(path, os.O_RDWR | os.O_CREAT | O_NOFOLLOW, FILE_MODE)
    try:
        if try_lock(fd) and _is_at(fd, path):
            return fd
    except BaseException:
        os.close(fd)
        raise
    os.close(fd)
    return None


def _is_at(fd: int, path: str) -> bool:
    """Tell whether an open file still has this path."""
    try:
        return os.fstat(fd).st_ino == os.stat(path).st_ino
    except FileNotFoundError:
        return False


def _release(fd: int, owner: int) -> None:
    """Unlock and close. A forked copy of the owner shares the lock: it only closes its descriptor."""
    import filelock

    try:
        if os.getpid() == owner:
            filelock.unlock_descriptor(fd)
    finally:
        os.close(fd)
