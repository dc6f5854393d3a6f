"""Leslie's own locks of its control files: an empty directory beside each (docs/design/formats/leslie.md#locking).

Leslie waits 2.5 seconds for a lock and then fails, so a lock is held only for a moment. New content is computed before,
and compared with the file under the lock. Nothing is ever put into the directory, and a lock that another process may
hold is never touched. `LeslieLocks` acquires those of the workspace for a run. The backups beside the control files
belong to the program and stay unchanged: the vault has what a run replaces.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from msgspec import Struct, field

from reconcile.adapters.jp.locks import Acquired, Busy
from reconcile.errors import ReconcileError
from reconcile.formats.leslie.checks.model import LEAD, STALE_AFTER
from reconcile.fs.files import kind_of
from reconcile.fs.paths import is_directory
from reconcile.fs.posix import RENAME_NOREPLACE, rename_with

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


SUFFIX = ".lock"
PATIENCE = 2.5
"""Seconds that Leslie itself waits."""
_PAUSE = 0.05
_REFRESH = 4.0
"""Seconds after which a lock is touched; Leslie touches it after five, and takes over after ten."""
_SECOND = 10**9


class LeslieBusyError(ReconcileError):
    """The lock can't be acquired. The message states the obstacle, the waiting time, and what to do next."""

    exit_code = 4


class LockLostError(ReconcileError):
    """Another process has removed the lock while it was held: nothing more may be written."""

    exit_code = 4


class Held(Struct):
    """A lock that is held. Call `check` before each write."""

    path: str
    inode: int
    mtime_ns: int

    def check(self) -> None:
        """Raise `LockLostError` unless the lock is still ours; touch it before it grows stale."""
        status = _status(self.path)
        if status is None or (status.st_ino, status.st_mtime_ns) != (self.inode, self.mtime_ns):
            self._raise_lost(is_removed=status is None)
        if time.time_ns() - self.mtime_ns > _REFRESH * _SECOND:
            with contextlib.suppress(OSError):
                os.utime(self.path)
            status = _status(self.path)
            if status is None or status.st_ino != self.inode:
                self._raise_lost(is_removed=status is None)
            self.mtime_ns = status.st_mtime_ns

    def _raise_lost(self, *, is_removed: bool) -> NoReturn:
        raise LockLostError(
            f"{self.path}: another process {'removed' if is_removed else 'replaced'} the lock of this run",
            "check the latest changes, then run again",
        )

    def release(self) -> None:
        """Release it, if it is still ours."""
        with contextlib.suppress(LockLostError):
            self.check()
            with contextlib.suppress(OSError):
                os.rmdir(self.path)


def _status(path: str) -> os.stat_result | None:
    """Return the status of a lock; None if it is gone, or if its directory is none any more."""
    try:
        return os.lstat(path)
    except OSError:
        return None


@contextlib.contextmanager
def leslie_locks(paths: Sequence[str], patience: float = PATIENCE) -> Iterator[tuple[Held, ...]]:
    """Hold the locks of control files while the block runs: acquired in this order, released in reverse.

    The order is the relations before the objectives. Leslie itself never holds both
    (docs/design/formats/leslie.md#locking). Raises `LeslieBusyError` if a lock can't be acquired for ``patience``
    seconds.
    """
    with contextlib.ExitStack() as stack:
        held = []
        for path in paths:
            lock = acquire(path, patience)
            stack.callback(lock.release)
            held.append(lock)
        yield tuple(held)


def acquire(path: str, patience: float = PATIENCE) -> Held:
    """Acquire the lock of the control file at ``path``. The file need not exist; its directory must.

    Raises `LeslieBusyError` after ``patience`` seconds.
    """
    lock = path + SUFFIX
    end = time.monotonic() + patience
    while True:
        with contextlib.suppress(FileExistsError):
            os.mkdir(lock)
            status = os.lstat(lock)
            return Held(lock, status.st_ino, status.st_mtime_ns)
        obstacle = _obstacle(lock)
        if obstacle is None:
            continue  # removed meanwhile: try again at once
        if time.monotonic() >= end:
            raise LeslieBusyError(
                f"{lock}: {obstacle}", "let Leslie finish, then run again\nif the lock is stale: reconcile doctor"
            )
        time.sleep(_PAUSE)


def _obstacle(lock: str) -> str | None:
    """Return the obstacle in words; None if another try at once is worth it.

    Raises `LeslieBusyError` for an obstacle that waiting can't remove.
    """
    try:
        status = os.lstat(lock)
        if not stat.S_ISDIR(status.st_mode):
            raise LeslieBusyError(
                f"{lock}: {kind_of(status.st_mode)} is in the place of a lock",
                "check it, then remove it by hand; it blocks Leslie too",
            )
        age = (time.time_ns() - status.st_mtime_ns) / _SECOND
        if age < -LEAD:
            return f"the lock is {-age:.0f} seconds ahead of the clock"
        if age <= STALE_AFTER:
            return f"the lock is held, and {max(0.0, age):.0f} seconds old"
        if names := sorted(os.listdir(lock)):
            raise LeslieBusyError(
                f"{lock}: the stale lock can't be removed, as it contains {names[0]}",
                "check that, then remove it by hand; it blocks Leslie too",
            )
    except FileNotFoundError:
        return None
    return _take_over(lock, status)


def _take_over(lock: str, seen: os.stat_result) -> str | None:
    """Remove a stale lock by a rename: only one of several processes that find it stale succeeds.

    The program's own takeover has a race (docs/design/formats/leslie.md#takeover).
    """
    aside = f"{lock}.stale-{uuid.uuid4()}"
    try:
        os.rename(lock, aside)
    except FileNotFoundError:
        return None
    moved = os.lstat(aside)
    if (moved.st_ino, moved.st_mtime_ns) == (seen.st_ino, seen.st_mtime_ns):
        with contextlib.suppress(OSError):
            os.rmdir(aside)
        return None
    # Another process was faster and has acquired it again: put it back, unless a third process has acquired it.
    with contextlib.suppress(OSError):
        _put_back(aside, lock)
    with contextlib.suppress(OSError):
        os.rmdir(aside)
    return "another process took the lock"


def _put_back(aside: str, lock: str) -> None:
    """Rename without replacing: a plain rename would replace another empty directory."""
    directory = os.open(os.path.dirname(lock) or ".", os.O_RDONLY)
    try:
        done = rename_with(RENAME_NOREPLACE, directory, os.path.basename(aside), directory, os.path.basename(lock))
    finally:
        os.close(directory)
    if not done and not os.path.lexists(lock):
        os.rename(aside, lock)


class LeslieLease(Struct):
    """One lock that this process holds."""

    name: str
    held: Held
    released: bool = field(default=False)

    def still_held(self) -> bool:
        """Tell whether the lock is still held; touch it before it grows stale."""
        try:
            self.held.check()
        except LockLostError:
            return False
        return True

    def release(self) -> None:
        """Release the lock, once."""
        if not self.released:
            self.released = True
            self.held.release()


class LeslieLocks(Struct, frozen=True):
    """The locks beside the control files of one ``.leslie``. If that is gone, no process can use it."""

    directory: str

    def _may_be_there(self) -> bool:
        """Tell whether the directory exists or is unreadable; then each lock reports the error."""
        try:
            return is_directory(self.directory)
        except OSError:
            return True

    def acquire(self, names: Sequence[str]) -> Acquired:
        """Acquire each lock in the order of the names, and wait for a held one as long as Leslie would."""
        held: list[LeslieLease] = []
        busy: list[Busy] = []
        for name in names if self._may_be_there() else ():
            try:
                held.append(LeslieLease(name, acquire(os.path.join(self.directory, name))))
            except LeslieBusyError as error:
                busy.append(Busy(name, None, error.message))
            except OSError as error:
                lock = f"{self.directory}/{name}{SUFFIX}"
                words = f"{lock}: the lock can't be created ({error.strerror})"
                busy.append(Busy(name, None, words, impossible=True, errno=error.errno))
            except BaseException:
                for lease in held:
                    with suppress(OSError):
                        lease.release()
                raise
        return Acquired(tuple(held), tuple(busy))
