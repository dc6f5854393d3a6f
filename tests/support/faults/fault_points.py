"""Faults at the N-th call that changes anything: killed before it, killed half-way, no space left, an I/O error."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import sqlite3
import warnings
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from unittest import mock

from reconcile.fs import mutations, posix
from reconcile.state import database_file
from reconcile.state.connection import LiveConnection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

C = TypeVar("C", bound=sqlite3.Connection)

_KILLED = 137
_CALLS = ("chmod", "ftruncate", "link", "mkdir", "open", "rename", "replace", "rmdir", "unlink", "utime", "write")
_NEEDS_SPACE = {"link", "mkdir", "open", "rename", "replace", "write", "COMMIT"}


class Mode(StrEnum):
    """What happens at the N-th step."""

    KILLED = "killed"
    """Before the call."""
    TORN = "killed half-way"
    """After half of a write; other calls don't count."""
    FULL = "full"
    """Half of a write fits, and from then on nothing does; calls that need no space don't count."""
    BROKEN = "broken"
    """This call, which may be a flush, fails with EIO; the next ones don't."""


KILLS = (Mode.KILLED, Mode.TORN)


@dataclass(slots=True)
class Fault:
    """Counts the calls of one run, and does what it must at the one that it is for."""

    mode: Mode
    left: int
    hit: bool = False

    def around(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a call of the system, with the fault before it or in it."""

        def called(*args: Any, **kwargs: Any) -> Any:
            if not self._counts(name, args):
                return call(*args, **kwargs)
            self.left -= 1
            if self.left > 0 or (self.left < 0 and self.mode is not Mode.FULL):
                return call(*args, **kwargs)
            first, self.hit = not self.hit, True
            if name == "write" and first and self.mode in (Mode.TORN, Mode.FULL) and len(args[1]) > 1:
                written = call(args[0], memoryview(args[1])[: len(args[1]) // 2])
                return written if self.mode is Mode.FULL else os._exit(_KILLED)
            return self._fail(name)

        return called

    def connections(self, kind: type[C]) -> type[C]:
        """Return a kind of connection whose commits count: SQLite's own calls can't be seen from here."""
        commit = self.around("COMMIT", lambda: None)

        class Connection(kind):  # type: ignore[misc, valid-type]
            def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
                if sql == "COMMIT":
                    commit()
                cursor: sqlite3.Cursor = super().execute(sql, *args)
                return cursor

        return Connection

    def _counts(self, name: str, args: tuple[Any, ...]) -> bool:
        if name == "open" and not args[1] & os.O_CREAT:
            return False
        match self.mode:
            case Mode.TORN:
                return name == "write"
            case Mode.FULL:
                return name in _NEEDS_SPACE
            case Mode.KILLED:
                return name != "fsync"
            case Mode.BROKEN:
                return True

    def _fail(self, name: str) -> None:
        if self.mode in KILLS:
            os._exit(_KILLED)
        code, primary = (
            (errno.ENOSPC, sqlite3.SQLITE_FULL) if self.mode is Mode.FULL else (errno.EIO, sqlite3.SQLITE_IOERR)
        )
        if name != "COMMIT":
            raise OSError(code, os.strerror(code))
        failed = sqlite3.OperationalError("database or disk is full" if self.mode is Mode.FULL else "disk I/O error")
        failed.sqlite_errorcode = primary
        raise failed


def under_fault(mode: Mode, step: int, command: Callable[[], object]) -> bool:
    """Run a command with a fault at its ``step``-th call that counts; tell whether it came so far.

    One that is killed runs in a process of its own: nothing is tidied up behind it.
    """
    if mode not in KILLS:
        with fault(mode, step) as found:
            command()
        return found.hit
    return in_child(command, fault(mode, step))


def dies_before(owner: object, call: str, number: int, command: Callable[[], object]) -> None:
    """Kill a command right before its ``number``-th call of a method of ours."""
    left = number
    method = getattr(owner, call)

    def fatal(*args: Any, **kwargs: Any) -> Any:
        nonlocal left
        left -= 1
        return method(*args, **kwargs) if left else os._exit(_KILLED)

    assert in_child(command, mock.patch.object(owner, call, fatal)), f"{call} was not called so often"


def in_child(command: Callable[[], object], spoilt: AbstractContextManager[object]) -> bool:
    """Run a command in a process of its own; tell whether it was killed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads, which the child has no use for
        child = os.fork()
    if child == 0:
        gc.disable()  # a collection would look at all memory, and so copy it
        try:
            with spoilt:
                command()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == _KILLED


@contextlib.contextmanager
def fault(mode: Mode, step: int) -> Iterator[Fault]:
    """Have the ``step``-th call that counts go wrong within the block."""
    found = Fault(mode, step)
    with ExitStack() as stack:
        # Only the power's failing would tell whether something was flushed.
        stack.enter_context(mock.patch.object(os, "fsync", found.around("fsync", lambda _: None)))
        for name in _CALLS:
            stack.enter_context(mock.patch.object(os, name, found.around(name, getattr(os, name))))
        renamed = found.around("rename", posix.rename_with)
        stack.enter_context(mock.patch.object(mutations, "rename_with", renamed))
        connect = partial(sqlite3.connect, factory=found.connections(sqlite3.Connection))
        stack.enter_context(mock.patch.object(sqlite3, "connect", connect))
        live = found.connections(vars(database_file)[LiveConnection.__name__])
        stack.enter_context(mock.patch.object(database_file, LiveConnection.__name__, live))
        yield found


def dies_at(step: int, command: Callable[[], object]) -> bool:
    """Kill a command at its ``step``-th call that changes anything; tell whether it came so far."""
    return under_fault(Mode.KILLED, step, command)
