"""The lines before the question of a first run: the directories that it creates, and their purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .screen import wrap
from .text import short_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reconcile.adapters.roots import Roots

    from .text import Style


def first_run_lines(roots: Roots, state_directory: str, style: Style) -> Iterator[str]:
    """Yield what a first run creates."""
    yield style("This is the first run here. It creates:", bold=True)
    if not roots.store_exists:
        yield from _directory("store", roots.store, "the durable copy of your conversations", style)
    yield from _directory(
        "records", state_directory, "the last synced state, and every version that a run replaces", style
    )
    yield ""


def _directory(name: str, path: str, purpose: str, style: Style) -> Iterator[str]:
    yield from wrap(short_path(path, None), style.columns, f"  {name:8}", " " * 10)
    yield from wrap(purpose, style.columns, " " * 10)
