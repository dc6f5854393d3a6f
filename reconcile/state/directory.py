"""The state directory of a store: its path, and its generation, which changes with every transaction.

The generation is known without opening the database. Each transaction writes a new random mark before it ends, because
two may fall into one tick of the clock. The stat fingerprints of the database's files belong to the generation, too: a
crash of the machine may keep these files and lose the mark.

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
REMOTES = "remotes"
"""The directory of a store's remotes in its state directory."""
_SYSTEMS = {"darwin": ("macos", "MacOS"), "win32": ("windows", "Windows")}
_DATABASE = (NAME, f"{NAME}-wal")
_BYTES = 16
_FLAGS = os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)

Generation: TypeAlias = tuple[object, ...]


def state_directory(key: str, environ: Mapping[str, str], platform: str = sys.platform) -> str:
    """Return the state directory of a store; ``key`` is ``<format>-<workspace id>``.

    Its parent is ``RECONCILE_STATE_DIR`` of ``environ``, or else `data_directory` for ``platform`` (a `sys.platform`),
    which reads the environment of the process. Raises `ValueError` for a key that isn't a single file name.
    """
    if key in {"", ".", ".."} or os.path.basename(key) != key or "\0" in key:
        raise ValueError(f"{key!r} can't be a file name")
    base = environ.get(OVERRIDE) or data_directory(platform)
    return os.path.join(os.path.abspath(base), key)


def data_directory(platform: str = sys.platform) -> str:
    """Return the directory of reconcile's data in the user's home, by platformdirs.

    A relative path in the environment, which an older platformdirs takes, counts as unset.
    """
    module, system = _SYSTEMS.get(platform, ("unix", "Unix"))
    directories = getattr(import_module(f"platformdirs.{module}"), system)
    directory = str(directories("reconcile", appauthor=False).user_data_dir)
    if os.path.isabs(directory) or platform == "win32":
        return directory
    from reconcile.fs.home import home_directory  # here: hardly anybody needs it

    return os.path.join(home_directory(os.environ), ".local", "share", "reconcile")


def advance(directory: str) -> None:
    """Write a new mark, which makes every generation that a process remembers outdated. Raises `OSError`."""
    fd = regular_descriptor(os.path.join(directory, GENERATION), _FLAGS)
    try:
        os.write(fd, os.urandom(_BYTES))
    finally:
        os.close(fd)


def generation(directory: str) -> Generation | None:
    """Return a value that differs after every transaction; None if a file can't be read."""
    try:
        with open_regular(os.path.join(directory, GENERATION)) as file:
            mark = file.read()
        return (mark, *(_status(os.path.join(directory, name)) for name in _DATABASE))
    except OSError:
        return None


def read_mark(directory: str) -> bytes | None:
    """Return the newest mark, None if there is none yet. Raises `OSError`."""
    try:
        with open_regular(os.path.join(directory, GENERATION)) as file:
            return file.read()
    except FileNotFoundError:
        return None


def _status(path: str) -> tuple[int, ...]:
    """Return the stat fingerprint of a file; an empty file counts as missing."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return ()
    if not status.st_size:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
