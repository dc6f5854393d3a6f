"""What has expired: a conversation goes when all of its subtree has expired, and nobody has it open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.model.baseline import AsideKind
from reconcile.planning.rules.content import Outcome

if TYPE_CHECKING:
    from reconcile.planning.context import Board
    from reconcile.planning.rules.content import Verdict


def expired(board: Board, active: frozenset[str]) -> tuple[str, ...]:
    """Return the live conversations that have expired, parents before children.

    A parent's expiry is the latest of its subtree; a descendant that has none, that is active, or that differs in the
    workspace and isn't saved yet, keeps its ancestors (docs/design/formats/jp.md#edge-case-51).
    """
    kept: set[str] = set()
    order = tuple(board.tree.walk())
    for conversation in reversed(order):
        over = is_over(board, conversation) and is_saved(board, conversation)
        if conversation in kept or conversation in active or not over:
            kept.add(conversation)
            kept.update(filter(None, [board.tree.parent_of(conversation)]))
    return tuple(conversation for conversation in order if conversation not in kept)


def is_over(board: Board, conversation: str) -> bool:
    """The store's metadata decides; what is in the workspace alone is somebody else's."""
    view = board.views[conversation]
    metadata = view.store.metadata
    ends_ns = board.rules.format.expires_ns(metadata.content) if metadata is not None else None
    return ends_ns is not None and ends_ns <= board.now_ns


def is_saved(board: Board, conversation: str) -> bool:
    """Tell whether the store has all that the next run would save: an edit may have taken the expiry away."""
    verdicts = board.verdicts.get(conversation, {}).values()
    return all(_is_settled(verdict) for verdict in verdicts)


def _is_settled(verdict: Verdict) -> bool:
    if verdict.forks is not None:
        return False
    if verdict.outcome is Outcome.ASIDE:
        return verdict.record is not None and verdict.record.kind is AsideKind.LOCAL
    return verdict.outcome in (Outcome.NOTHING, Outcome.TO_WORKSPACE, Outcome.DROP)
