"""What was undone stays as it is until a side changes, `resolve`, or a command that names it.

This is docs/design/run.md#rule-53.

The record is bound to how both sides of the conversation stand as wholes, so that an undone import, removal or move
holds as well as an undone edit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from reconcile.model.baseline import AsideKind, AsideRecord
from reconcile.model.names import CHILDREN
from reconcile.model.options import Take
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import WHOLE, Side
from reconcile.planning.rules.presence import lacking

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from reconcile.model.plan import Action, Plan
    from reconcile.model.snapshot import Digest, File, Snapshot
    from reconcile.model.units import Rules
    from reconcile.planning.context import Board


class Standing(NamedTuple):
    """One directory of a conversation: its path up to the conversation that it lies in, that one's id, its files."""

    path: str
    container: str
    files: tuple[tuple[str, str], ...]


def standing(path: str, container: str | None, files: Iterable[File]) -> Standing:
    """Return how one directory stands; what lies above its container's ``conversations/`` doesn't count."""
    return Standing(
        path.rpartition(f"/{CHILDREN}/")[2],
        container or "",
        tuple(sorted((file.name, file.digest or "") for file in files)),
    )


def side_digest(standings: Iterable[Standing], rules: Rules) -> Digest | None:
    """Name how a conversation stands on one side; None where it is not there."""
    rows = sorted(standings)
    return rules.digest(repr(rows).encode()) if rows else None


def undone_record(store: Iterable[Standing], workspace: Iterable[Standing], rules: Rules) -> AsideRecord | None:
    """Return the record that sets a conversation aside while it stands like this; None where it is nowhere."""
    ours, theirs = side_digest(store, rules), side_digest(workspace, rules)
    return AsideRecord(AsideKind.UNDONE, ours, theirs) if ours or theirs else None


def left_alone(plan: Plan, undone: Collection[str]) -> frozenset[str]:
    """Return the conversations of which an undo has taken back nothing after all; what is remembered still holds.

    ``undone`` are the ids of actions that were not carried out.
    """
    planned = {action.conversation for action in plan.actions}
    done = {action.conversation for action in plan.actions if action.id not in undone}
    return frozenset((planned - done) & dict(plan.remembered).keys())


def leave_undone(board: Board, actions: list[Action], store: Snapshot, workspace: Snapshot) -> list[Action]:
    """Leave out what would do again what was undone; records that no longer hold are released."""
    records = {key[0]: record for key, record in board.memory.asides.items() if key[1] == WHOLE}
    if not records:
        return actions
    refused = {key for key in records if key in board.views and lacking(board.views[key], board.policy)}
    ours, theirs = _standings(store, records), _standings(workspace, records)
    resting = {
        key
        for key, record in records.items()
        if (board.policy.decisions.get(key, Take.KEEP) is Take.KEEP or key in refused)
        and key not in board.edits.scope
        and record == undone_record(ours.get(key, ()), theirs.get(key, ()), board.rules)
    }
    for conversation in records.keys() - resting:
        board.asides[conversation, WHOLE] = None
    spoken = {board.forks.get(action.conversation, action.conversation) for action in actions} | board.intents.keys()
    silenced = (resting - refused) & (spoken | {item.conversation for item in board.held + board.aside})
    for conversation in sorted(silenced, key=board.rules.format.order):
        _set_aside(board, conversation)
    blocked = _blocked(board, actions, resting)
    return [action for action in actions if action.id not in blocked]


def _blocked(board: Board, actions: Iterable[Action], resting: Collection[str]) -> dict[str, str]:
    """Return the actions that would do again what was undone, and those that need them, each with the conversation
    that rests. Others that have to wait for it are set aside too.
    """
    blocked: dict[str, str] = {}
    waiting: dict[str, str] = {}
    for action in actions:
        own = board.forks.get(action.conversation, action.conversation)
        by = own if own in resting else next((blocked[need] for need in action.needs if need in blocked), None)
        if by is not None:
            blocked[action.id] = by
            waiting.setdefault(own, by)
    for conversation, by in waiting.items():
        if conversation not in resting:
            board.tombstones.pop(conversation, None)
            words = f"has to wait for {by}, which was undone and is left as it is until a side changes"
            board.set_aside(board.views[conversation], WHOLE, Reason.UNDONE, words, *_ways(board, by))
    return blocked


def _ways(board: Board, conversation: str) -> list[str]:
    view = board.views[conversation]
    return [f"reconcile resolve {conversation} --take {side}" for side in Side if view.side(side).main is not None]


def _standings(side: Snapshot, wanted: Collection[str]) -> dict[str, list[Standing]]:
    found: dict[str, list[Standing]] = {}
    for copy in side.copies:
        if copy.conversation in wanted:
            found.setdefault(copy.conversation, []).append(standing(copy.path, copy.container, copy.files))
    return found


def _set_aside(board: Board, conversation: str) -> None:
    """Set a conversation aside. What is in the workspace alone, an edit of before the undo, goes into the vault."""
    view = board.views[conversation]
    for name, unit in view.workspace.units.items():
        if unit.digest != view.store.digest(name):
            board.keep_version(unit)
    for each in (conversation, *(fork for fork, source in board.forks.items() if source == conversation)):
        board.intents.pop(each, None)
    board.tombstones.pop(conversation, None)
    for key in [key for key in board.asides if key[0] == conversation]:
        del board.asides[key]
    board.held = [item for item in board.held if item.conversation != conversation]
    board.aside = [item for item in board.aside if item.conversation != conversation]
    board.notes = [note for note in board.notes if note.conversation != conversation]
    board.set_aside(view, WHOLE, Reason.UNDONE, Reason.UNDONE.words, *_ways(board, conversation))
