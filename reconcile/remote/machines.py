"""The names of the two sides of a sync with a remote, in messages to people."""

from __future__ import annotations

from reconcile.model.snapshot import Side

MACHINES = ("this machine", "the other machine")
"""The names of the store and of the workspace."""


def of_machines(text: str) -> str:
    """Return a plan's words about the store's version and the workspace's, as words about those of two machines."""
    for before, side, name in zip((": ", "; "), Side, MACHINES, strict=True):
        text = text.replace(f"{before}{side} file ", f"{before}{name}'s file ", 1)
        text = text.replace(f"{before}{side} ", f"{before}{name} ", 1)
    return text
