"""A page as a file: outside of both sides, private, complete or not there."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from reconcile.adapters.roots import within
from reconcile.errors import ReconcileError
from reconcile.fs.private_files import replace_through

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reconcile.adapters.roots import Roots

STDOUT = "-"


def refuse_place(path: str, roots: Roots, state: str) -> None:
    """Raise `ReconcileError` if a page may not be written to a path.

    Inside a side, it could be committed, or be taken for another file of a conversation.
    """
    if path == STDOUT:
        if sys.stdout.isatty():
            raise ReconcileError(f"{STDOUT}: a terminal can't show the page", "name a file: --html tree.html")
        return
    if os.path.isdir(path):
        raise ReconcileError(f"{path}: is a directory", f"name a file in it: --html {os.path.join(path, 'tree.html')}")
    place = os.path.realpath(os.path.dirname(os.path.abspath(path)))
    kept = {"the workspace": [roots.workspace, roots.workspace_conversations]}
    kept["the store"] = [roots.store, roots.store_conversations, *roots.siblings]
    kept["the state directory"] = [state]
    for name, directories in kept.items():
        for directory in map(os.path.realpath, directories):
            if place == directory or within(place, directory):
                raise ReconcileError(
                    f"{path}: is inside {name}, {directory}", "choose a place outside: --html ~/tree.html"
                )


def write_page(path: str, parts: Iterable[bytes]) -> int:
    """Write a page, and return its number of bytes. A file appears when it is complete, for its owner only.

    Raises:
        ReconcileError: the file can't be written.
    """
    if path == STDOUT:
        size = sum(sys.stdout.buffer.write(part) for part in parts)
        sys.stdout.buffer.flush()
        return size
    try:
        # The name is not that of another process, nor of a file of the user's.
        return replace_through(f"{path}.{os.getpid()}.tmp", path, parts, flushed=True)
    except OSError as error:
        raise ReconcileError(f"{path}: {error.strerror}", "choose another place for --html") from error
