"""What other processes and a full disk do to a command while it runs."""

from __future__ import annotations

import contextlib
import errno
import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any
from unittest import mock

from reconcile.adapters.jp.locks import Busy, HeldLock, LockRoots, SharedDirectories
from reconcile.fs.mutations import Root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

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

    def taken(
        cls: type[HeldLock],
        asked: str,
        roots: LockRoots,
        session: str | None = None,
        shared: SharedDirectories | None = None,
    ) -> HeldLock | Busy:
        got = take(asked, roots, session, shared)
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
