"""From a command that changes the tree to its edits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.model.requests import Localize, Project, Remove, Reparent
from reconcile.planning.edits import Edits, RefusedError
from reconcile.planning.requests.local import localize
from reconcile.planning.requests.project import project
from reconcile.planning.requests.remove import collect, keeping_parents, remove

__all__ = ["edits_of", "keeping_parents"]

if TYPE_CHECKING:
    from reconcile.model.requests import TreeEdit
    from reconcile.planning.context import Board


def edits_of(request: TreeEdit, board: Board) -> Edits:
    """Return what a command changes; ``board`` is what a plain run would decide.

    Raises:
        RefusedError: it can't be done, or not without more being said.
    """
    match request:
        case Localize(ids):
            return localize(board, ids)
        case Project():
            return project(board, request)
        case Remove():
            return remove(board, request)
        case Reparent(conversation, parent):
            return _reparent(board, conversation, parent)
        case _:
            return collect(board, request)


def _reparent(board: Board, conversation: str, parent: str | None) -> Edits:
    """Give a conversation another parent; its subtree moves along."""
    for each in (conversation, parent):
        if each is not None and each not in board.views:
            raise RefusedError(f"{each} is on neither side any more")
    if conversation not in board.tree:
        raise RefusedError(f"{conversation} is archived; unarchive it first, with JP")
    if parent is not None and parent not in board.tree:
        raise RefusedError(f"{parent} is archived, and can't be a parent")
    if parent is not None and conversation in (parent, *board.tree.ancestors(parent)):
        chain = " > ".join([*reversed([parent, *board.tree.ancestors(parent)])])
        raise RefusedError(f"{conversation} would be its own ancestor: {chain}")
    circle = [each for cycle in board.tree.cycles if conversation in cycle for each in cycle]
    scope = frozenset((conversation, *circle))  # they all get other places where it no longer is one
    return Edits(parents={conversation: parent}, scope=scope, asked=frozenset({conversation}))
