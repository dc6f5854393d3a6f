"""What `reconcile project` changes: the targets, what they lie in, and what comes back with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.model.baseline import Intent, IntentKind
from reconcile.model.options import Take
from reconcile.model.reasons import Reason
from reconcile.planning.edits import NOBODY, Edits
from reconcile.planning.requests.recover import coming
from reconcile.planning.rules.content import Outcome

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from reconcile.model.plan import Item
    from reconcile.model.requests import Project
    from reconcile.planning.context import Board


def project(board: Board, request: Project) -> Edits:
    """Put the targets into the workspace, and what comes back with them."""
    views = board.views
    targets = board.still_there(request.ids)
    decisions: dict[str, Take] = {}
    if request.everything:
        targets += [each for each in board.tree.walk() if _in_store_alone(board, each) and not views[each].local]
    if request.behind:
        decisions = dict.fromkeys(_behind(board), Take.STORE)
    intents: dict[str, Intent | None] = {}
    held: list[Item] = []
    scope = {*targets, *decisions}
    back = coming(board, targets) if request.records is not None else {}
    apart = _apart(board, back)
    private = _private_above(board, scope)
    for target in dict.fromkeys(targets):
        if views[target].archived and request.records is None:
            message = "it is archived in the store; unarchive it first, with JP"
            held.append(board.held_item(target, Reason.ARCHIVED_HELD, message))
            continue
        above = [] if target in back else _chain(private, target, intents)
        if above and not request.ancestors:
            message = (
                f"it lies below what doesn't belong in this workspace, and would be public with it: "
                f"{board.names(above)}"
            )
            again = f"reconcile project {target} --with-ancestors"
            held.append(board.held_item(target, Reason.ANCESTORS_ABSENT, message, again))
            continue
        intents |= dict.fromkeys((*above, target), Intent(IntentKind.PROJECTED))
    former = _former(board, intents)
    return Edits(
        intents=former | intents,
        asked=frozenset(intents),
        apart=apart,
        decisions=decisions,
        scope=frozenset(scope | _with_relatives(board, intents) | former.keys()) or NOBODY,
        held=tuple(held),
    )


def _former(board: Board, public: Collection[str]) -> dict[str, Intent | None]:
    """Return what goes on to hold of what `recover` leaves where it is."""
    return {
        each: intent
        for each, intent in board.memory.former.items()
        if each not in public and each in board.views and _in_store_alone(board, each) and not board.views[each].local
    }


def _apart(board: Board, back: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return what will lie without its parent: what comes back so, and what is at the top so already, in which more
    may come back.
    """
    apart = {each: home for each, home in back.items() if home != board.container_of(each)}
    for each in board.tree.walk() if back else ():
        parent, main = board.container_of(each), board.views[each].workspace.main
        alone = parent is not None and parent not in back and board.views[parent].workspace.main is None
        if alone and main is not None and main.container is None:
            apart[each] = None
    return apart


def _in_store_alone(board: Board, conversation: str) -> bool:
    view = board.views[conversation]
    return view.store.main is not None and view.workspace.main is None


def _behind(board: Board) -> list[str]:
    return [
        conversation
        for conversation, verdicts in board.verdicts.items()
        if any(verdict.outcome is Outcome.BEHIND for verdict in verdicts.values())
    ]


def _private_above(board: Board, asked: Collection[str]) -> dict[str, str | None]:
    """Return for each the nearest of those that it is to lie in that doesn't belong here and isn't asked for."""
    nearest: dict[str, str | None] = {}
    for each in board.tree.walk():
        container = board.container_of(each)
        if container is not None:
            private = container not in asked and _is_private(board, container)
            nearest[each] = container if private else nearest.get(container)
    return nearest


def _chain(private: Mapping[str, str | None], target: str, public: Collection[str]) -> list[str]:
    """Return what is private above a target, the outermost first; what became public is so with all above it."""
    chain = []
    each = private.get(target)
    while each is not None and each not in public:
        chain.append(each)
        each = private.get(each)
    return chain[::-1]


def _is_private(board: Board, conversation: str) -> bool:
    """Tell whether a conversation doesn't belong in this workspace unasked, also where a branch has brought it."""
    view = board.views[conversation]
    if view.local or view.workspace.main is not None:
        return view.local
    projected = view.intent is not None and view.intent.kind is IntentKind.PROJECTED
    return not (projected or (view.intent is None and view.agreed is not None))


def _with_relatives(board: Board, public: Iterable[str]) -> set[str]:
    """Return these, what they lie in, and what comes back below those or moves there from where it lay without them."""
    around = set(public)
    order = tuple(board.tree.walk())
    for each in reversed(order):
        container = board.container_of(each)
        if each in around and container is not None:
            around.add(container)
    # Also below what became public before a kill: asked again, the rest joins all the same.
    below = set(around)
    for each in order:
        if board.tree.parent_of(each) in below:
            below.add(each)
            if board.presences[each].state == "waiting" or _is_apart(board, each):
                around.add(each)
    return around


def _is_apart(board: Board, conversation: str) -> bool:
    """Tell whether it is in the workspace, but its parent isn't, or not around it."""
    container = board.container_of(conversation)
    main = board.views[conversation].workspace.main
    if main is None or container is None:
        return False
    return main.container != container or board.views[container].workspace.main is None
