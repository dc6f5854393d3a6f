"""The extras that were deleted in the workspace, and that the store still has (docs/design/intents.md#rule-26)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from reconcile.model.snapshot import EXTRA, Side
from reconcile.planning.rules.shapes import collisions

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from reconcile.engine.session import Session
    from reconcile.model.baseline import WorldState
    from reconcile.model.snapshot import Copy


def deleted_extras(
    session: Session, world: WorldState, conversations: Collection[str] | None = None
) -> dict[str, tuple[str, ...]]:
    """Return, by conversation, the units of the deleted extras whose content was in a workspace of this store.

    Without the version that only the store ever had, and without a file that has something else in its place now. That
    is also a directory, a link or a special file, or a link in the place of a directory above it.
    ``conversations``: only of these; None: of all.
    """
    if session.format.places is not None or session.roots.is_of_remote:
        return {}  # each file is a record of its own, or each file of the store is there
    store, workspace = _only(world.store.copies, conversations), _only(world.workspace.copies, conversations)
    missing: dict[str, dict[str, str]] = {}
    foreign = {entry.path for entry in world.workspace.foreign}
    own = {session.format.metadata_file, *session.format.stream_files}
    for id_ in store.keys() & workspace.keys():
        here = {file.name for file in workspace[id_].files}
        lone = {f.name: f.digest for f in store[id_].files if f.digest and f.name not in here and f.name not in own}
        top = f"{workspace[id_].path}/"
        foreign_here = {path.removeprefix(top) for path in foreign if path.startswith(top)}
        taken = {name for _, name in collisions(here | foreign_here, lone)} | (foreign_here & lone.keys())
        if found := {name: digest for name, digest in lone.items() if name not in taken}:
            missing[id_] = found
    published = session.state.journal.published_files(missing) if missing else {}
    deleted = {
        id_: tuple(sorted(EXTRA + name for name, digest in lone.items() if digest in published.get((id_, name), ())))
        for id_, lone in sorted(missing.items())
    }
    side = session.site.conversations(Side.WORKSPACE)
    absent = {
        id_: tuple(unit for unit in units if not _is_there(side, workspace[id_], unit.removeprefix(EXTRA)))
        for id_, units in deleted.items()
    }
    return {id_: units for id_, units in absent.items() if units}


def _is_there(side: str, copy: Copy, name: str) -> bool:
    """Tell whether anything has the place of a file: a scan reports no empty directory."""
    return os.path.lexists(os.path.join(side, copy.path, name))


def _only(copies: Iterable[Copy], conversations: Collection[str] | None) -> dict[str, Copy]:
    """Return the copies by conversation, without a conversation that has several."""
    found: dict[str, Copy] = {}
    several = set[str]()
    for copy in copies:
        if conversations is None or copy.conversation in conversations:
            several |= {copy.conversation} & found.keys()
            found[copy.conversation] = copy
    return {id_: copy for id_, copy in found.items() if id_ not in several}
