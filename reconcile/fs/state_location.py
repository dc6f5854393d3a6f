"""Where the state of a store lies (docs/safety.md#the-state)."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = "state.sqlite"
OVERRIDE = "RECONCILE_STATE_DIR"
_SYSTEMS = {"darwin": ("macos", "MacOS"), "win32": ("windows", "Windows")}


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
