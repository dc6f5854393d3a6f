"""The places of Claude Code's sessions in the user's home, computed from paths: no session is read.

See docs/design/formats/claude-code.md#names-of-project-directories. Each run in a project of another format loads this
module, to tell whether the checkout may have sessions, too: it imports little.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from reconcile.adapters.roots import store_of, stores_of, within
from reconcile.config import load_settings
from reconcile.fs.git_state import checkout_top
from reconcile.fs.home import home_directory
from reconcile.fs.paths import is_directory, status_at, with_parents
from reconcile.model.names import MARKER

if TYPE_CHECKING:
    from reconcile.adapters.roots import Request

FORMAT = "claude-code"
SHARED = "claude-shared"


def home_of(request: Request) -> str:
    """Return the directory of the program: ``$CLAUDE_CONFIG_DIR``, or ``~/.claude``."""
    chosen = request.environ.get("CLAUDE_CONFIG_DIR")
    if chosen:
        return os.path.normpath(os.path.join(request.cwd, chosen))
    return os.path.join(home_directory(request.environ), ".claude")


def place_of(home: str, project: str) -> str:
    """Return the place of the sessions of a project. The program knows its path without links."""
    from reconcile.formats.claude_code.names import directory_name  # here: a home without sessions needs no name

    return os.path.join(home, "projects", directory_name(os.path.realpath(project)))


def start_of(request: Request) -> str:
    """Return the directory in which a search for sessions begins; that of a ``.jp`` is its project."""
    start = request.path(request.workspace or "")
    return os.path.dirname(start) if os.path.basename(start) == MARKER else start


def inside_checkout(start: str) -> list[str]:
    """Return a directory and its parents up to the top of its checkout; without git, or if it is gone, it alone."""
    if status_at(start) is None:
        return [start]
    real = os.path.realpath(start)
    try:
        top = checkout_top(real)
    except OSError:
        top = None
    if top is None or real == top:
        return [start]
    if real == start:
        return [at for at in with_parents(start) if at == top or within(at, top)]
    return [at for at in with_parents(start) if (real := os.path.realpath(at)) == top or within(real, top)]


def may_have_sessions(request: Request) -> bool:
    """Tell whether the program, or a store of reconcile, has a directory for this checkout, or a colleague shares some.

    It costs two statuses in a home without either, and else a few for each directory up to the top of the checkout. A
    store that only git's history leads to, as that of another clone, doesn't count. Raises `OSError` if it is unknown.
    """
    home, stores = home_of(request), stores_of(FORMAT, request)
    has_home, has_stores = is_directory(os.path.join(home, "projects")), is_directory(stores)
    if not (has_home or has_stores):
        return False
    above = inside_checkout(start_of(request))
    if has_home and any(is_directory(place_of(home, at)) for at in above):
        return True
    if os.path.lexists(os.path.join(above[-1], load_settings(request.environ, None).shared_sessions)):
        from reconcile.adapters.claude_code.shared_folder import folder_of  # here: few repositories have one

        if any(folder_of(at, request) for at in above):
            return True
    return has_stores and any(is_directory(store_of(FORMAT, at, request)) for at in above)
