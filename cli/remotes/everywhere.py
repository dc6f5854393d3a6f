"""The stores of all projects that have a remote, for ``watch --all --sync``."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from reconcile.adapters.everywhere import every_project
from reconcile.adapters.locate import locate
from reconcile.errors import ReconcileError
from reconcile.fs.paths import names_in
from reconcile.state.directory import REMOTES

from ..output.text import short_path

if TYPE_CHECKING:
    from reconcile.adapters.roots import Request


def stores_with_remotes(request: Request, only: str | None, states: str) -> dict[str, list[str]]:
    """Return, by the path of a project, the words that name its sides: one project for each store that has a remote.

    ``only`` limits the projects to a format, and ``states`` is the directory of the states of all stores. Raises
    `OSError`.
    """
    keys = {name for name in names_in(states) if _has_remote(os.path.join(states, name))}
    found: dict[str, list[str]] = {}
    for target in every_project(request, only).targets if keys else ():
        with suppress(ReconcileError, OSError):  # it has gone meanwhile
            there = target.project, None, request.cwd, request.environ, request.platform
            key = locate(target.format, *there).key
            if key in keys:
                keys.remove(key)
                name = f"{short_path(target.project)} ({target.format})"
                found[name] = ["--workspace", target.project, "--format", target.format]
    return found


def _has_remote(state: str) -> bool:
    remotes = os.path.join(state, REMOTES)
    return os.path.isdir(remotes) and any(os.path.isdir(os.path.join(remotes, name)) for name in names_in(remotes))
