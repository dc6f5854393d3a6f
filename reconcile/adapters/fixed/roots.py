"""The sides of formats whose records have fixed places: a folder of the project, and a durable copy of it.

The programs know of no other place than the project, so that the durable copy lies with reconcile's own data, one for
each project: worktrees of one git repository share it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from reconcile.adapters.fixed.markers import MARKS, place_of
from reconcile.adapters.roots import LocateError, Roots, identity_of
from reconcile.fs.git_state import in_repository
from reconcile.fs.hashing import digest
from reconcile.fs.paths import is_directory, upwards
from reconcile.state.directory import data_directory

if TYPE_CHECKING:
    from reconcile.adapters.roots import Request

FOLDERS = {"leslie": ".leslie", "claudesidian": ""}
"""The folder of the project that is the workspace's side; empty: the project itself, of which a part is looked at."""
_STORES = "stores"
_LENGTH = 16


def locate_fixed(format_name: str, request: Request) -> Roots:
    """The nearest project of this format, or one that a durable copy is known of."""
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
    """Tell whether a durable copy of such a project lies there, rather than nothing that is one's by its marks."""
    folder = f"{FOLDERS[format_name]}/"
    names = (mark.removeprefix(folder).rstrip("/") for mark in MARKS[format_name])
    return any(os.path.lexists(os.path.join(store, name)) for name in names)


def lost_project(format_name: str, request: Request) -> str | None:
    """The nearest directory upwards whose folder is gone, and of which there is a durable copy."""
    start = request.path(request.workspace or "")
    return next((at for at in upwards(start) if os.path.isdir(store_of(format_name, at, request))), None)


def store_of(format_name: str, project: str, request: Request) -> str:
    """Where the durable copy of a project lies if nobody says otherwise."""
    home = in_repository(project)
    name = f"{os.path.basename(home) or 'root'}-{digest(os.fsencode(home))[:_LENGTH]}"
    return os.path.join(data_directory(request.platform), _STORES, format_name, name)
