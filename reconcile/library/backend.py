"""The protocol of persistence backends, and two simple ones: one discards changes, the other records them for tests.

`reconcile.library.filesystem_backend` writes to the disk.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from reconcile.adapters.jp.locks import Lease
    from reconcile.library.values import Contents


class Strategy(StrEnum):
    """The treatment of the children of a removed conversation."""

    CASCADE = "cascade"
    """All descendants are removed, too."""
    PROMOTE = "promote"
    """The children get the parent of the removed conversation, or become roots."""


class Change(Struct, frozen=True, kw_only=True):
    """One change of one conversation: the managed files as they were read, and as they must be written.

    ``before`` is empty for a new conversation. ``local`` keeps a new conversation out of workspaces.
    """

    conversation: str
    before: Contents
    after: Contents
    local: bool = False
    lease: Lease
    """The lock that is held from reading to writing."""

    @property
    def files(self) -> Contents:
        """The files whose content differs."""
        return {name: content for name, content in self.after.items() if self.before.get(name) != content}


class Removal(Struct, frozen=True, kw_only=True):
    """The removal of one conversation; ``strategy`` says how its children are treated (None: it has none)."""

    conversation: str
    strategy: Strategy | None
    lease: Lease


class PersistBackend(Protocol):
    """Receives changes, one call for each flush, while the conversation's lock is held.

    A call returns messages about work that must wait although the change is safe: a git operation is in progress in
    the workspace. An exception reaches the caller of `flush`, and the scope stays dirty.
    """

    def persist(self, change: Change) -> tuple[str, ...]:
        """Write a change."""

    def remove(self, removal: Removal) -> tuple[str, ...]:
        """Remove a conversation."""


class NullBackend:
    """Discards every change; the open workspace still shows it."""

    def persist(self, change: Change) -> tuple[str, ...]:  # noqa: ARG002 - discarded
        """Do nothing."""
        return ()

    def remove(self, removal: Removal) -> tuple[str, ...]:  # noqa: ARG002 - discarded
        """Do nothing."""
        return ()


class RecordingBackend:
    """Appends each change to ``recorded``, then passes it to the backend ``then`` (default: discards it)."""

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
