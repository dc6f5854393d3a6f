"""Formats whose records have fixed places: the markers of a project, and its two sides.

The programs know no other place than the project. The durable copy lies with the data of reconcile, one for each
project; worktrees of one git repository share it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from reconcile.adapters.roots import LocateError, Roots, identity_of
from reconcile.fs.git_state import path_in_repository
from reconcile.fs.hashing import digest
from reconcile.fs.paths import is_directory, status_at, with_parents
from reconcile.state.directory import data_directory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconcile.adapters.roots import Request


MARKS: Mapping[str, tuple[str, ...]] = {
    "claudesidian": (".workspaces/", ".conversations/", ".nexus/"),
    "leslie": (".leslie/thread_relations.json", ".leslie/objectives.json"),
}
"""Any of these marks the directory that contains it as a project of the format; a slash marks directories.

A ``.leslie`` alone is no marker: that of a home directory holds settings (docs/design/formats/leslie.md#layout).
"""


def place_of(format_name: str, start: str) -> str | None:
    """Return the nearest directory, from ``start`` upwards, that is a project of this format.

    Raises `OSError` if this is unknown.
    """
    return next((at for at in with_parents(start) if _is(format_name, at)), None)


def format_at(start: str) -> str | None:
    """Return the format whose project is the nearest; None inside of a JP project, which takes precedence.

    Raises `OSError` if this is unknown: a project further up must not be used if there may be a nearer one.
    """
    above = with_parents(start)
    if any(is_directory(os.path.join(at, ".jp")) for at in above):
        return None
    return next((format_name for at in above for format_name in MARKS if _is(format_name, at)), None)


def _is(format_name: str, at: str) -> bool:
    return any(_is_marked(os.path.join(at, mark)) for mark in MARKS[format_name])


def _is_marked(mark: str) -> bool:
    return is_directory(mark[:-1]) if mark.endswith("/") else status_at(mark, follow=False) is not None


FOLDERS = {"leslie": ".leslie", "claudesidian": ""}
"""The folder of the project that is the workspace's side; empty: the project itself, of which a part is read."""
_STORES = "stores"
_LENGTH = 16


def locate_fixed(format_name: str, request: Request) -> Roots:
    """Return the nearest project of this format, or a lost one with a durable copy.

    Raises `LocateError`.
    """
    start = request.path(request.workspace or "")
    project = place_of(format_name, start) or lost_project(format_name, request)
    if project is None and request.store is not None and _is_kept(format_name, request.path(request.store)):
        project = start
    if project is None:
        raise LocateError(
            f"found no place of the format {format_name}: looked for {' or '.join(MARKS[format_name])} in {start} and "
            "in every directory above it",
            "go to the project, or name it with --workspace",
        )
    store = request.path(request.store) if request.store is not None else store_of(format_name, project, request)
    folder = FOLDERS[format_name]
    return Roots(
        format=format_name,
        workspace=os.path.join(project, folder) if folder else project,
        project=project,
        store=store,
        store_exists=is_directory(store),
        workspace_id=None,
        workspace_identity=identity_of(project),
        key=f"{format_name}-{digest(os.fsencode(os.path.realpath(store)))}",
        inner="",
    )


def _is_kept(format_name: str, store: str) -> bool:
    """Tell whether a directory is a durable copy of such a project, by its markers."""
    folder = f"{FOLDERS[format_name]}/"
    names = (mark.removeprefix(folder).rstrip("/") for mark in MARKS[format_name])
    return any(os.path.lexists(os.path.join(store, name)) for name in names)


def lost_project(format_name: str, request: Request) -> str | None:
    """Return the nearest directory upwards whose folder is gone and that has a durable copy."""
    start = request.path(request.workspace or "")
    return next((at for at in with_parents(start) if os.path.isdir(store_of(format_name, at, request))), None)


def store_of(format_name: str, project: str, request: Request) -> str:
    """Return the default place of the durable copy of a project."""
    home = path_in_repository(project)
    name = f"{os.path.basename(home) or 'root'}-{digest(os.fsencode(home))[:_LENGTH]}"
    return os.path.join(data_directory(request.platform), _STORES, format_name, name)
