"""The sides of the plain format: two directories that each hold ``conversations/``, both named by hand."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from reconcile.adapters.roots import LocateError, Roots, identity_of
from reconcile.fs.hashing import digest
from reconcile.model.names import CHILDREN

if TYPE_CHECKING:
    from reconcile.adapters.roots import Request


def locate_plain(request: Request) -> Roots:
    """The two sides as named; the workspace is the current directory by default."""
    if request.store is None:
        raise LocateError(
            "found no store: the format plain has no place of its own for it, expected --store DIR",
            "name the directory that holds (or shall hold) the durable conversations/ with --store",
        )
    workspace, store = request.path(request.workspace or ""), request.path(request.store)
    # One of the two may be lost, which is what recover is for; without either it is the wrong place.
    if not any(os.path.isdir(os.path.join(side, CHILDREN)) for side in (workspace, store)):
        raise LocateError(
            f"found no directory {CHILDREN} in {workspace} or in {store}, expected it in at least one",
            "name the directories that hold conversations/, not those directories themselves",
        )
    return Roots(
        format="plain",
        workspace=workspace,
        project=workspace,
        store=store,
        store_exists=True,
        workspace_id=None,
        workspace_identity=identity_of(workspace),
        key="plain-" + digest(os.fsencode(os.path.realpath(store))),
    )
