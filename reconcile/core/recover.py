"""What `recover` offers: what records say was in this workspace, and is absent (section 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconcile.core.memory import IntentKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reconcile.core.board import Board
    from reconcile.core.memory import Memory


@dataclass(frozen=True, slots=True)
class Offer:
    """Conversations that may be put back together. ``run``: the one that noticed that they are gone; None: they were
    here at the end of the last run. ``known``: a record says so, rather than that they are merely in the store.
    """

    run: str | None
    conversations: tuple[str, ...]
    known: bool = True


def offers(board: Board, records: Iterable[Memory]) -> tuple[Offer, ...]:
    """Return what the records of this checkout offer, the newest first; without any, all that isn't local.

    Nothing local is ever offered, and nothing that isn't live in the store.
    """
    absent = {each for each in board.tree.walk() if _is_absent(board, each)}
    by_run: dict[str | None, set[str]] = {}
    seen: set[str] = set()
    recorded = False
    for memory in records:
        recorded = recorded or bool(memory.agreed)
        for conversation in (memory.agreed.keys() | memory.intents.keys()) & absent - seen:
            by_run.setdefault(_noticed_by(memory, conversation), set()).add(conversation)
            seen.add(conversation)
    if not recorded:
        return (Offer(None, _ordered(board, absent), known=False),) if absent else ()
    removed_by = sorted((run for run in by_run if run is not None), reverse=True)
    runs = [None, *removed_by] if None in by_run else list(removed_by)
    return tuple(Offer(run, _ordered(board, by_run[run])) for run in runs)


def _noticed_by(memory: Memory, conversation: str) -> str | None:
    """Return the run that found its directory removed, or that of what it went with."""
    seen: set[str] = set()
    intent = memory.intents.get(conversation)
    while intent is not None and intent.waits_for is not None and intent.waits_for not in seen:
        seen.add(intent.waits_for)
        intent = memory.intents.get(intent.waits_for)
    return intent.run if intent is not None and intent.kind is IntentKind.REMOVED else None


def _is_absent(board: Board, conversation: str) -> bool:
    view = board.views[conversation]
    return view.store.main is not None and view.workspace.main is None and not view.local


def _ordered(board: Board, conversations: set[str]) -> tuple[str, ...]:
    return tuple(each for each in board.tree.walk() if each in conversations)
