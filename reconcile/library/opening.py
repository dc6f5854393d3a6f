"""Finding a workspace and its store, and opening them: to be written to, or only read with changes going elsewhere."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from reconcile.adapters.locate import locate
from reconcile.adapters.roots import LocateError, refuse_state_inside
from reconcile.config import load_settings
from reconcile.engine.session import Session
from reconcile.library.process_locks import JpLocks, NoLocks
from reconcile.library.rw_locks import entered
from reconcile.library.shared_index import Sight
from reconcile.library.storage import Disk, Memory
from reconcile.model.policy import Policy
from reconcile.state.directory import state_directory

if TYPE_CHECKING:
    from reconcile.library.backend import PersistBackend
    from reconcile.library.process_locks import LockBackend
    from reconcile.library.storage import Storage


def open_storage(
    path: str | os.PathLike[str] | None,
    store: str | os.PathLike[str] | None,
    backend: PersistBackend | None,
    locks: LockBackend | None,
) -> tuple[Storage, LockBackend]:
    """Return what `Workspace.open` works with."""
    where = None if path is None else os.fspath(path)
    roots = locate(None, where, None if store is None else os.fspath(store), os.getcwd(), os.environ, sys.platform)
    if roots.format != "jp":
        raise LocateError(f"{roots.workspace}: found the format {roots.format}, expected JP's, which has locks")
    settings = load_settings(os.environ, roots.workspace_id)
    directory = state_directory(roots.key, os.environ, sys.platform)
    refuse_state_inside(roots, directory)
    session = Session(roots, directory, readonly=backend is not None, ignore=settings.ignore)
    policy = Policy(
        layout=settings.layout, stream=settings.stream, diverged=settings.diverged, missing=settings.missing
    )
    try:
        with entered():
            sight = Sight(session, policy)
    except BaseException:
        session.state.close()
        raise
    locks = locks or (JpLocks(roots) if backend is None else NoLocks())
    disk = Disk(sight, locks.others)
    return disk if backend is None else Memory(disk, backend), locks
