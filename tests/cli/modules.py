"""The command's own modules, found through its entry point: nobody knows the package by name."""

from __future__ import annotations

import importlib
from importlib.metadata import distribution
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

(_SCRIPT,) = distribution("reconcile-fs").entry_points.select(group="console_scripts", name="reconcile")


def module(name: str) -> ModuleType:
    """Return a module of the package that the command is in."""
    return importlib.import_module(f"{_SCRIPT.module.rpartition('.')[0]}.{name}")
