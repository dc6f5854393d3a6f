"""reconcile's own lock on a store: one pass at a time, plan and apply (DESIGN.md section 7)."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from reconcile.disk.private import FILE_MODE, make_private_directory, replace_private_file
from reconcile.errors import ReconcileError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LOCK = "lock"
HOLDER = "lock.json"


class LockedError(ReconcileError):
    """Another reconcile is at work on this store; the message says who and since when."""

    exit_code = 5


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds the lock. ``since`` is RFC 3339 in UTC, to the second."""

    pid: int
    command: str
    since: str

    def __str__(self) -> str:
        return f"process {self.pid}, `{self.command}`, since {self.since}"


def read_holder(directory: str) -> Holder | None:
    """Who says to hold the lock, None where nobody does or it can't be read. It proves nothing."""
    try:
        with open(os.path.join(directory, HOLDER), "rb") as file:
            found = json.loads(file.read())
        return Holder(pid=int(found["pid"]), command=str(found["command"]), since=str(found["since"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None


@contextlib.contextmanager
def own_lock(
    directory: str, *, command: str, timeout: float = 0.0, waiting: Callable[[str], None] = lambda _who: None
) -> Iterator[None]:
    """Hold the lock of the state directory, which is made where it is missing, while the block runs.

    ``command`` is what others are told runs here. ``timeout``: seconds to wait, 0 to fail at once. ``waiting`` is
    called with who holds it, before the wait.
    Raises `LockedError` where somebody else holds it for so long, `OSError` where it can't be taken at all.
    """
    import filelock  # here: 80 ms that most commands need not pay

    make_private_directory(directory)
    # Without thread_local one process can't hold it twice by way of two threads.
    lock = filelock.FileLock(os.path.join(directory, LOCK), mode=FILE_MODE, thread_local=False)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        if timeout > 0:
            waiting(str(read_holder(directory) or "another process"))
        try:
            lock.acquire(timeout=timeout)
        except filelock.Timeout:
            raise _locked(directory, timeout) from None
    try:
        holder = {
            "pid": os.getpid(),
            "command": command,
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        # Who holds it is only information: a full disk must not stop the run here.
        with contextlib.suppress(OSError):
            replace_private_file(os.path.join(directory, HOLDER), json.dumps(holder).encode())
        yield
    finally:
        # Taken away while the lock is still ours, or it would be the next holder's that goes.
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(directory, HOLDER))
        lock.release()


def _locked(directory: str, timeout: float) -> LockedError:
    holder = read_holder(directory)
    who = f" ({holder})" if holder else ""
    waited = f"; waited {timeout:g} s" if timeout > 0 else ""
    return LockedError(
        f"{os.path.join(directory, LOCK)}: another reconcile is at work on this store{who}{waited}",
        hint="let it finish and run again",
    )
