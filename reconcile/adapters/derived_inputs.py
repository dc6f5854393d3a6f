"""Reads the inputs of derived data in a workspace, for the formats that have some (`Snapshot.derived_inputs`)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from reconcile.errors import ReconcileError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def _leslie(root: str, now_ns: int) -> object:
    from reconcile.adapters.leslie.files import read_leslie

    return read_leslie(os.path.dirname(root), now_ns)


def _claudesidian(root: str, now_ns: int) -> object:
    from reconcile.adapters.claudesidian.files import read_vault
    from reconcile.formats.claudesidian.vault import VaultSnapshot

    return VaultSnapshot(read_vault(root), now_ns // 1_000_000)


_READERS: Mapping[str, Callable[[str, int], object]] = {"leslie": _leslie, "claudesidian": _claudesidian}


def read_inputs(format_name: str, root: str, now_ns: int) -> object:
    """Return the argument ``inputs`` of `Places.mend`; None if there is nothing to read, or if it can't be read."""
    try:
        return _READERS[format_name](root, now_ns)
    except (OSError, ReconcileError):
        return None
