"""What has expired: a conversation goes when all of its subtree has expired, and nobody has it open (section 8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reconcile.core.board import Board


def expired(board: Board, active: frozenset[str]) -> tuple[str, ...]:
    """Return the live conversations that have expired, parents before children.

    A parent's expiry is the latest of its subtree; a descendant that has none, or that is active, keeps its ancestors
    (formats/jp.md 1.7, edge case 51; O12).
    """
    kept: set[str] = set()
    order = tuple(board.tree.walk())
    for conversation in reversed(order):
        if conversation in kept or conversation in active or not _is_over(board, conversation):
            kept.add(conversation)
            kept.update(filter(None, [board.tree.parent_of(conversation)]))
    return tuple(conversation for conversation in order if conversation not in kept)


def _is_over(board: Board, conversation: str) -> bool:
    """The store's metadata decides; what is in the workspace alone is somebody else's."""
    view = board.views[conversation]
    metadata = view.store.metadata
    ends_ns = board.rules.format.expires_ns(metadata.content) if metadata is not None else None
    return ends_ns is not None and ends_ns <= board.now_ns
