"""What `recover` offers: what records say was in this workspace, and is absent (section 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconcile.core.memory import IntentKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from reconcile.core.board import Board
    from reconcile.core.memory import Intent, Memory


@dataclass(frozen=True, slots=True)
class Offer:
    """Conversations that may be put back together. ``run``: the one that noticed that they are gone; None: they were
    here at the end of the last run. ``known``: a record says so, rather than that they are merely in the store.
    """

    run: str | None
    conversations: tuple[str, ...]
    known: bool = True


@dataclass(frozen=True, slots=True)
class Offers:
    """What can be put back, the newest first; ``left_out`` lies below what doesn't come, whatever is chosen."""

    groups: tuple[Offer, ...] = ()
    left_out: tuple[str, ...] = ()


def absent(board: Board) -> tuple[str, ...]:
    """Return what is in the store, live or archived, and not in the workspace; never what is local."""
    found = (board.views[each] for each in board.order)
    return tuple(v.id for v in found if v.store.main is not None and v.workspace.main is None and not v.local)


def offers(board: Board, records: Iterable[Memory]) -> Offers:
    """Return what the records of this checkout offer; without any, all that is absent."""
    candidates = absent(board)
    by_run: dict[str | None, set[str]] = {}
    seen: set[str] = set()
    recorded = False
    for memory in records:
        recorded = recorded or bool(memory.agreed)
        for conversation in (memory.agreed.keys() | memory.intents.keys()) & (set(candidates) - seen):
            seen.add(conversation)
            intent = _last_of(memory, conversation)
            if intent is None or intent.kind is IntentKind.PROJECTED:
                by_run.setdefault(None, set()).add(conversation)
            elif intent.kind is IntentKind.REMOVED:
                by_run.setdefault(intent.run, set()).add(conversation)
    if not recorded:
        by_run, seen = {None: set(candidates)}, set(candidates)
    come = coming(board, set().union(*by_run.values()))
    removed_by = sorted((run for run in by_run if run is not None), reverse=True)
    runs = [None, *removed_by] if None in by_run else list(removed_by)
    groups = (Offer(run, tuple(each for each in come if each in by_run[run]), recorded) for run in runs)
    left_out = tuple(each for each in candidates if each in seen and each not in come)
    return Offers(tuple(group for group in groups if group.conversations), left_out)


def coming(board: Board, chosen: Collection[str]) -> tuple[str, ...]:
    """Return those of them that can be put back: all that they lie below is here, or comes too. What is archived lies
    below nothing. Parents come first.
    """
    come: dict[str, None] = {}
    for each in board.order:
        container = board.container_of(each)
        if each in chosen and (container is None or container in come or _is_public_here(board, container)):
            come[each] = None
    return tuple(come)


def _is_public_here(board: Board, conversation: str) -> bool:
    view = board.views[conversation]
    return view.workspace.main is not None and not view.local


def _last_of(memory: Memory, conversation: str) -> Intent | None:
    """Return the intent of a conversation, or of what it went with: removed by a run that noticed it, or local."""
    seen: set[str] = set()
    intent = memory.intents.get(conversation)
    while intent is not None and intent.waits_for is not None and intent.waits_for not in seen:
        seen.add(intent.waits_for)
        intent = memory.intents.get(intent.waits_for)
    return intent
