"""What `reconcile project` changes: the targets, what they lie in, and what comes back with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.core.content import Outcome
from reconcile.core.edits import NOBODY, Edits, held_item, names, still_there
from reconcile.core.memory import Intent, IntentKind
from reconcile.core.policy import Take
from reconcile.core.reasons import Reason

if TYPE_CHECKING:
    from reconcile.core.board import Board
    from reconcile.core.plan import Item
    from reconcile.core.requests import Project


def project(board: Board, request: Project) -> Edits:
    """Put the targets into the workspace, and what comes back with them."""
    views = board.views
    targets = still_there(board, request.ids)
    decisions: dict[str, Take] = {}
    if request.everything:
        targets += [each for each in board.tree.walk() if _in_store_alone(board, each) and not views[each].local]
    if request.behind:
        decisions = dict.fromkeys(_behind(board), Take.STORE)
    intents: dict[str, Intent | None] = {}
    held: list[Item] = []
    scope = {*targets, *decisions}
    for target in dict.fromkeys(targets):
        if views[target].archived and request.records is None:
            message = "it is archived in the store; unarchive it first, with JP"
            held.append(held_item(board, target, Reason.ARCHIVED_HELD, message))
            continue
        private = [each for each in reversed(_above(board, target)) if _is_private(board, each) and each not in scope]
        if private and not request.ancestors:
            message = (
                f"it lies below what doesn't belong in this workspace, and would be public with it: "
                f"{names(board, private)}"
            )
            again = f"reconcile project {target} --with-ancestors"
            held.append(held_item(board, target, Reason.ANCESTORS_ABSENT, message, again))
            continue
        public = (*private, target)
        intents |= dict.fromkeys(public, Intent(IntentKind.PROJECTED))
        scope.update(_above(board, target), _joining_below(board, public[0]))
    return Edits(
        intents=intents,
        asked=frozenset(intents),
        decisions=decisions,
        scope=frozenset(scope) or NOBODY,
        held=tuple(held),
    )


def _in_store_alone(board: Board, conversation: str) -> bool:
    view = board.views[conversation]
    return view.store.main is not None and view.workspace.main is None


def _behind(board: Board) -> list[str]:
    return [
        conversation
        for conversation, verdicts in board.verdicts.items()
        if any(verdict.outcome is Outcome.BEHIND for verdict in verdicts.values())
    ]


def _above(board: Board, conversation: str) -> list[str]:
    """Return the ancestors whose directories the conversation's is to lie in, the nearest first."""
    above = []
    each = board.container_of(conversation)
    while each is not None:
        above.append(each)
        each = board.container_of(each)
    return above


def _is_private(board: Board, conversation: str) -> bool:
    """Tell whether a conversation doesn't belong in this workspace unasked, also where a branch has brought it."""
    view = board.views[conversation]
    if view.local or view.workspace.main is not None:
        return view.local
    projected = view.intent is not None and view.intent.kind is IntentKind.PROJECTED
    return not (projected or (view.intent is None and view.agreed is not None))


def _joining_below(board: Board, top: str) -> set[str]:
    """Return what comes back below a conversation, or moves there from where it lay without its parent."""
    below = board.tree.descendants(top) if top in board.tree else ()
    return {each for each in below if board.presences[each].state == "waiting" or _is_apart(board, each)}


def _is_apart(board: Board, conversation: str) -> bool:
    """Tell whether it is in the workspace and its parent isn't."""
    container = board.container_of(conversation)
    there = board.views[conversation].workspace.main is not None
    return there and container is not None and board.views[container].workspace.main is None
