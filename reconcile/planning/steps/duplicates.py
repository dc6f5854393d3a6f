"""Which of several directories of one conversation stays: the one that lies where the conversation belongs.

docs/design/placement.md#rule-10 has the rule.

`reconcile.planning.rules.views` chooses before parents are known; here, with the tree, a duplicate that already lies at
the placement takes over, so that nothing has to move to a place that is taken by what is going to be removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.model.names import CHILDREN
from reconcile.model.snapshot import ARCHIVE, METADATA, Metadata, Side, Stream
from reconcile.model.units import units_of
from reconcile.planning.steps.content import final_metadata, keeps_directories

if TYPE_CHECKING:
    from reconcile.model.snapshot import Copy
    from reconcile.planning.context import Board
    from reconcile.planning.rules.views import SideView, View


def choose_directories(board: Board) -> None:
    """Settle which directory of each conversation stays, parents before children."""
    for conversation in board.order:
        view = board.views[conversation]
        if not keeps_directories(board.verdicts.get(conversation, {}).values()):
            workspace = view.workspace if view.local else _chosen(board, view, view.workspace)
            view = replace(view, store=_chosen(board, view, view.store), workspace=workspace)
        board.views[conversation] = view
        if view.store.main is not None:
            board.homes[conversation] = board.node(view.store.main)


def _chosen(board: Board, view: View, side: SideView) -> SideView:
    """Return the side with a sound directory at the placement as the one that stays, if there is one."""
    for copy in side.stale:
        main = side.main
        assert main is not None  # noqa: S101 - of several directories, one stays
        if copy.path == _placement(board, view, main) and _may_stay(copy, main):
            others = sorted((main, *(c for c in side.stale if c is not copy)), key=lambda c: c.path)
            return replace(side, main=copy, stale=tuple(others), own=units_of(copy, board.rules, None))
    return side


def _placement(board: Board, view: View, main: Copy) -> str | None:
    """Return where the directory that stays belongs, None where that can't be told."""
    name = board.dirname_of(view, main, final_metadata(view, board.verdicts.get(view.id, {}).get(METADATA)))
    if main.archived:
        return f"{ARCHIVE}/{name}"
    container = board.container_of(view.id) if main.side is Side.WORKSPACE else None
    if container is None:
        return name
    above = board.views[container].workspace.main
    return f"{above.path}/{CHILDREN}/{name}" if above is not None else None


def _may_stay(copy: Copy, main: Copy) -> bool:
    """Tell whether a directory is sound, or has the one that would stay below it, which can't take its place."""
    sound = isinstance(copy.metadata, Metadata) and isinstance(copy.stream, Stream)
    return sound or main.path.startswith(f"{copy.path}/")
