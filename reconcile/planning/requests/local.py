"""What `reconcile local` changes: directories that leave the workspace, with everything in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.model.baseline import Intent, IntentKind
from reconcile.model.plan import Item, Note
from reconcile.model.reasons import Reason
from reconcile.planning.edits import NOBODY, Edits
from reconcile.planning.rules.content import Outcome
from reconcile.planning.rules.presence import Goal

if TYPE_CHECKING:
    from reconcile.planning.context import Board


def localize(board: Board, ids: tuple[str, ...]) -> Edits:
    """Take the directories of the targets, with everything in them, out of the workspace, and keep them out."""
    intents: dict[str, Intent | None] = {}
    leaving: dict[str, Reason] = {}
    together: dict[str, str] = {}
    held: list[Item] = []
    notes: list[Note] = []
    scope: set[str] = set()
    order = {conversation: number for number, conversation in enumerate(board.order)}
    for target in sorted(board.still_there(ids), key=lambda each: _depth(board, each)):
        if target in leaving:
            intents[target] = Intent(IntentKind.LOCAL)
            leaving[target] = Reason.LOCALIZED
            continue
        intents[target] = Intent(IntentKind.LOCAL)  # at once, whatever becomes of its directory now
        inside = sorted(inside_of(board, target), key=order.__getitem__)
        scope |= {target, *inside}
        open_ones = [each for each in (target, *inside) if _is_open(board, each)]
        if open_ones:
            message = f"it is local; its directory waits for {board.names(open_ones)}: see `reconcile status`"
            held.append(board.held_item(target, Reason.UNSETTLED, message))
            continue
        if board.views[target].workspace.main is None:
            continue
        leaving[target] = Reason.LOCALIZED
        together |= dict.fromkeys((target, *inside), target)
        for each in inside:
            leaving[each] = Reason.WITH_ANCESTOR
            if not board.views[each].local:
                main = board.views[each].workspace.main
                assert main is not None  # noqa: S101 - it lies inside
                intents[each] = Intent(IntentKind.PROJECTED, waits_for=main.container, place=main.path)
        if inside:
            which = "1 conversation below it goes" if len(inside) == 1 else f"{len(inside)} conversations below it go"
            message = f"{which} along, and back with it: {board.names(inside)}"
            notes.append(Note(conversation=target, reason=Reason.TAKEN_ALONG, message=message))
    return Edits(
        intents={each: intent for each, intent in intents.items() if not _is_said_again(board, each, intent)},
        leaving=leaving,
        together=together,
        scope=frozenset(scope) or NOBODY,
        held=tuple(held),
        notes=tuple(notes),
    )


def _is_said_again(board: Board, conversation: str, intent: Intent | None) -> bool:
    """Tell whether it is local already, so that there is nothing to decide, or to take back."""
    known = board.memory.intents.get(conversation)
    return known is not None and intent is not None and known.kind is intent.kind is IntentKind.LOCAL


def _is_open(board: Board, conversation: str) -> bool:
    """Tell whether what the workspace has of it can't be saved now, so that its directory must stay."""
    view = board.views[conversation]
    if view.workspace.main is None:
        return False
    known = board.presences[conversation].goal in (Goal.SYNC, Goal.IMPORT)
    verdicts = board.verdicts.get(conversation, {}).values()
    return not known or bool(view.workspace.faults) or any(verdict.outcome is Outcome.HELD for verdict in verdicts)


def _depth(board: Board, conversation: str) -> int:
    """Return how deep its directory lies in others: the outermost are looked at first, with what is in them."""
    main = board.views[conversation].workspace.main
    return main.path.count("/") if main is not None else 0


def inside_of(board: Board, target: str) -> list[str]:
    """Return the conversations whose directories lie in the target's."""
    main = board.views[target].workspace.main
    below = board.node(main).subtree() if main is not None else ()
    copies = [node.copy for node in below if node.copy is not None]
    return [copy.conversation for copy in copies if copy is board.views[copy.conversation].workspace.main]
