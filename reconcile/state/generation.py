"""Which state the state is in, told without opening it: who knew it can tell whether it is still as it was.

Each transaction leaves a new mark before it ends, also where two of them fall into one tick of the clock. The status of
the database's files tells it, too: a machine that stopped may have kept them and lost the mark.
"""

from __future__ import annotations

import os
from typing import TypeAlias

from reconcile.fs.paths import open_regular, regular_descriptor

NAME = "generation"
_DATABASE = ("state.sqlite", "state.sqlite-wal")
_BYTES = 16
_FLAGS = os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)

Generation: TypeAlias = tuple[object, ...]


def advance(directory: str) -> None:
    """Leave a new mark: what is written now isn't known to anybody. Raises `OSError`."""
    fd = regular_descriptor(os.path.join(directory, NAME), _FLAGS)
    try:
        os.write(fd, os.urandom(_BYTES))
    finally:
        os.close(fd)


def generation(directory: str) -> Generation | None:
    """Return what is another value after every transaction; None where that can't be told."""
    try:
        with open_regular(os.path.join(directory, NAME)) as file:
            mark = file.read()
        return (mark, *(_status(os.path.join(directory, name)) for name in _DATABASE))
    except OSError:
        return None


def mark_of(directory: str) -> bytes | None:
    """Return the newest mark; None before the first one. Raises `OSError`."""
    try:
        with open_regular(os.path.join(directory, NAME)) as file:
            return file.read()
    except FileNotFoundError:
        return None


def _status(path: str) -> tuple[int, ...]:
    """The status of a file; one that is empty is as good as none."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return ()
    if not status.st_size:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
