"""The directory of a store's state: its path, and whether the state in it has changed, without opening the database.

Each transaction leaves a new mark before it ends, also where two of them fall into one tick of the clock. The status of
the database's files tells it, too: a machine that stopped may have kept them and lost the mark.

See docs/safety.md#the-state.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias

from reconcile.fs.paths import open_regular, regular_descriptor

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = "state.sqlite"
GENERATION = "generation"
OVERRIDE = "RECONCILE_STATE_DIR"
_SYSTEMS = {"darwin": ("macos", "MacOS"), "win32": ("windows", "Windows")}
_DATABASE = (NAME, f"{NAME}-wal")
_BYTES = 16
_FLAGS = os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)

Generation: TypeAlias = tuple[object, ...]


def state_directory(key: str, environ: Mapping[str, str], platform: str = sys.platform) -> str:
    """The directory of one store's state; ``key`` is ``<format>-<workspace id>``.

    ``RECONCILE_STATE_DIR`` in ``environ`` is the directory above it, else it is platformdirs' user data
    directory for ``platform`` (a `sys.platform`), which reads the process's own environment.
    Raises `ValueError` for a key that is no single file name.
    """
    if key in {"", ".", ".."} or os.path.basename(key) != key or "\0" in key:
        raise ValueError(f"{key!r} is no file name")
    base = environ.get(OVERRIDE) or data_directory(platform)
    return os.path.join(os.path.abspath(base), key)


def data_directory(platform: str = sys.platform) -> str:
    """The directory of reconcile's data in the user's home."""
    module, system = _SYSTEMS.get(platform, ("unix", "Unix"))
    known = getattr(import_module(f"platformdirs.{module}"), system)
    return str(known("reconcile", appauthor=False).user_data_dir)


def advance(directory: str) -> None:
    """Leave a new mark: what is written now isn't known to anybody. Raises `OSError`."""
    fd = regular_descriptor(os.path.join(directory, GENERATION), _FLAGS)
    try:
        os.write(fd, os.urandom(_BYTES))
    finally:
        os.close(fd)


def generation(directory: str) -> Generation | None:
    """Return what is another value after every transaction; None where that can't be told."""
    try:
        with open_regular(os.path.join(directory, GENERATION)) as file:
            mark = file.read()
        return (mark, *(_status(os.path.join(directory, name)) for name in _DATABASE))
    except OSError:
        return None


def mark_of(directory: str) -> bytes | None:
    """Return the newest mark; None before the first one. Raises `OSError`."""
    try:
        with open_regular(os.path.join(directory, GENERATION)) as file:
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
