"""Where changes go: the file system (`reconcile.library.filesystem_backend`), nowhere, or a list for a test to look
at.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from reconcile.adapters.jp.locks import Lease
    from reconcile.library.values import Contents


class Strategy(StrEnum):
    """What becomes of the children of a conversation that is removed."""

    CASCADE = "cascade"
    """They are removed with it, and so on below them."""
    PROMOTE = "promote"
    """They get its parent, or become roots."""


class Change(Struct, frozen=True, kw_only=True):
    """What a scope has to write of one conversation: the managed files as they were read, and as they are to be.

    ``before`` is empty for a new conversation. ``local``: a new one is kept out of workspaces.
    """

    conversation: str
    before: Contents
    after: Contents
    local: bool = False
    lease: Lease
    """The lock that it was read under, and is written under."""

    @property
    def files(self) -> Contents:
        """The files that differ."""
        return {name: content for name, content in self.after.items() if self.before.get(name) != content}


class Removal(Struct, frozen=True, kw_only=True):
    """A conversation that is to go, and what becomes of its children; None: it has none."""

    conversation: str
    strategy: Strategy | None
    lease: Lease


class PersistBackend(Protocol):
    """Takes over changes, one call for each flush, while the conversation's lock is held.

    What it returns are words on what has to wait although the change is safe (git is in the middle of something in the
    workspace). Whatever it raises reaches who has flushed, and the scope stays dirty.
    """

    def persist(self, change: Change) -> tuple[str, ...]:
        """Write a change."""

    def remove(self, removal: Removal) -> tuple[str, ...]:
        """Remove a conversation."""


class NullBackend:
    """Discards every change: nothing is written anywhere. The workspace shows them for as long as it is open."""

    def persist(self, change: Change) -> tuple[str, ...]:  # noqa: ARG002 - discarded
        """Do nothing."""
        return ()

    def remove(self, removal: Removal) -> tuple[str, ...]:  # noqa: ARG002 - discarded
        """Do nothing."""
        return ()


class RecordingBackend:
    """Writes nothing either, and keeps what it was given in ``recorded``, in order; or passes it on to ``then``."""

    def __init__(self, then: PersistBackend | None = None) -> None:
        self.recorded: list[Change | Removal] = []
        self._then: PersistBackend = then or NullBackend()

    def persist(self, change: Change) -> tuple[str, ...]:
        """Record a change."""
        self.recorded.append(change)
        return self._then.persist(change)

    def remove(self, removal: Removal) -> tuple[str, ...]:
        """Record a removal."""
        self.recorded.append(removal)
        return self._then.remove(removal)
