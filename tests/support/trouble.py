"""What other processes, a full disk and ``kill -9`` do to a command while it runs."""

from __future__ import annotations

import contextlib
import errno
import os
import warnings
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any
from unittest import mock

from reconcile.disk import changes, posix
from reconcile.disk.changes import Root
from reconcile.disk.jp_locks import Busy, HeldLock, LockRoots

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_SYSTEM_CALLS = ("ftruncate", "link", "mkdir", "open", "rename", "replace", "rmdir", "unlink", "utime", "write")
_KILLED = 137
_CREATES = ("create_file", "make_directories")
_CHANGES = (*_CREATES, "rename", "rename_new", "exchange", "unlink", "remove_directory", "set_time")


def hold(path: Path) -> ExitStack:
    """Hold a lock file as another process would: another descriptor is another holder."""
    import fcntl

    path.parent.mkdir(exist_ok=True)
    stack = ExitStack()
    file = stack.enter_context(path.open("w"))
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return stack


@contextlib.contextmanager
def unlinked(name: str, then: Callable[[], None]) -> Iterator[None]:
    """Have JP's cleanup take the name of a lock away as soon as it is held, and do something ``then``."""
    take = HeldLock.take

    def taken(cls: type[HeldLock], asked: str, roots: LockRoots) -> HeldLock | Busy:
        got = take(asked, roots)
        if asked == name and isinstance(got, HeldLock):
            path = roots.path(name)
            assert path is not None
            os.unlink(path)
            then()
        return got

    with mock.patch.object(HeldLock, "take", classmethod(taken)):
        yield


@contextlib.contextmanager
def spoilt_disk(workspace: str, how: str) -> Iterator[None]:
    """Let nothing be added to the workspace (``full``), a number of files and nothing more, or nothing be changed."""
    fits = int(how) if how.isdecimal() else 0
    code = errno.EROFS if how == "readonly" else errno.ENOSPC

    def refusing(name: str) -> Callable[..., Any]:
        change = getattr(Root, name)

        def refused(root: Root, path: str, *more: Any) -> Any:
            nonlocal fits
            there = name == "make_directories" and os.path.isdir(root.absolute(path))
            if root.path == workspace and not there:
                if not fits:
                    raise OSError(code, os.strerror(code), root.absolute(path))
                fits -= name == "create_file"
            return change(root, path, *more)

        return refused

    with ExitStack() as stack:
        for name in _CHANGES if how == "readonly" else _CREATES:
            stack.enter_context(mock.patch.object(Root, name, refusing(name)))
        yield


def dies_at(step: int, command: Callable[[], object]) -> bool:
    """Run a command in a process that is killed at its ``step``-th call that changes anything; tell whether it was."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads, which the child has no use for
        child = os.fork()
    if child == 0:
        try:
            with _fatal(step):
                command()
        finally:
            os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status == _KILLED


@contextlib.contextmanager
def _fatal(step: int) -> Iterator[None]:
    left = step

    def fatal(name: str) -> Callable[..., Any]:
        call = getattr(os, name)

        def called(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            left -= name != "open" or bool(args[1] & os.O_CREAT)
            if left == 0:
                os._exit(_KILLED)
            return call(*args, **kwargs)

        return called

    def fatal_rename(*args: Any) -> bool:
        nonlocal left
        left -= 1
        if left == 0:
            os._exit(_KILLED)
        return posix.rename_with(*args)

    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(changes, "rename_with", fatal_rename))
        for name in _SYSTEM_CALLS:
            stack.enter_context(mock.patch.object(os, name, fatal(name)))
        yield
