"""Conflicts of one checkout: what was edited on both sides and not looked at since."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reconcile.engine.session import Session
    from reconcile.state.database import Conflict
    from reconcile.state.vault import Version


def unseen(session: Session) -> tuple[Conflict, ...]:
    """Return the conflicts that nobody has looked at, oldest run first."""
    if session.checkout is None:
        return ()
    return tuple(each for each in session.state.conflicts(session.checkout) if not each.seen)


def losers(session: Session, conversation: str) -> tuple[Version, ...]:
    """Return the versions that lost a conflict which nobody has looked at."""
    lost = {(each.run, each.unit) for each in unseen(session) if each.conversation == conversation}
    kept = session.state.versions.of_conversation(conversation) if lost else ()
    return tuple(each for each in kept if (each.run, each.unit) in lost)


def see(session: Session, conversations: Sequence[str]) -> None:
    """Note that the user has looked at these."""
    if session.checkout is not None:
        session.state.conflicts_seen(session.checkout, conversations)
