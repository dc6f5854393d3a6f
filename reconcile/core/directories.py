"""Which of several directories of one conversation stays: the one that lies where the conversation belongs (rule 10).

`reconcile.core.views` chooses before parents are known; here, with the tree, a duplicate that already lies at the
placement takes over, so that nothing has to move to a place that is taken by what is going to be removed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reconcile.core.model import ARCHIVE, CHILDREN, METADATA, Metadata, Side, Stream
from reconcile.core.settle import final_metadata, is_undecided
from reconcile.core.units import units_of

if TYPE_CHECKING:
    from reconcile.core.board import Board
    from reconcile.core.model import Copy
    from reconcile.core.views import SideView, View


def choose_directories(board: Board) -> None:
    """Settle which directory of each conversation stays, parents before children."""
    for conversation in board.order:
        view = board.views[conversation]
        waits = is_undecided(board.verdicts.get(conversation, {}).values())
        if view.workspace.stale and not view.local and not waits:
            view = replace(view, workspace=_chosen(board, view, view.workspace, _workspace_place(board, view)))
        if view.store.stale and not waits:
            view = replace(view, store=_chosen(board, view, view.store, ""))
        board.views[conversation] = view
        if view.store.main is not None:
            board.homes[conversation] = board.node(view.store.main)


def _workspace_place(board: Board, view: View) -> str | None:
    """Return the directory that the placement is in, None where that can't be told."""
    container = board.container_of(view.id)
    if container is None:
        return ""
    above = board.views[container].workspace.main
    return f"{above.path}/{CHILDREN}/" if above is not None else None


def _chosen(board: Board, view: View, side: SideView, place: str | None) -> SideView:
    """Return the side with a sound directory at the placement as the one that stays, if there is one."""
    main = side.main
    if main is None or place is None:
        return side
    prefix = f"{ARCHIVE}/" if main.side is Side.STORE and main.archived else ""
    wanted = f"{place}{prefix}{_name(board, view, main)}"
    for copy in side.stale:
        if copy.path == wanted and _may_stay(copy, main):
            others = tuple(sorted((main, *(c for c in side.stale if c is not copy)), key=lambda c: c.path))
            known = view.known_parent if copy.side is Side.STORE else view.base_parent
            return replace(side, main=copy, stale=others, own=units_of(copy, board.rules, known))
    return side


def _may_stay(copy: Copy, main: Copy) -> bool:
    """Tell whether a directory is sound, or has the one that would stay below it, which can't take its place."""
    sound = isinstance(copy.metadata, Metadata) and isinstance(copy.stream, Stream)
    return sound or main.path.startswith(f"{copy.path}/")


def _name(board: Board, view: View, main: Copy) -> str:
    return board.dirname_of(view, main, final_metadata(view, board.verdicts.get(view.id, {}).get(METADATA)))
