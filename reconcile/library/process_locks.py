"""How conversations are locked against other processes: as JP does it, or, for tests, not at all.

JP's rules are in docs/design/formats/jp.md#lock-files.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from reconcile.adapters.jp.locks import Busy, Lease, LockRoots, Locks, LockSet, NullLockSet
from reconcile.formats import get_format

if TYPE_CHECKING:
    from reconcile.adapters.roots import Roots

__all__ = ["Busy", "JpLocks", "Lease", "LockBackend", "NoLocks"]


class LockBackend(Protocol):
    """Locks of single conversations, across processes."""

    @property
    def others(self) -> Locks:
        """How the locks of other conversations are taken, where a change concerns those too."""

    def take(self, conversation: str, session: str | None) -> Lease | Busy:
        """Try once, without waiting; ``session`` is what others are told of who holds it."""


class JpLocks:
    """JP's own: a running JP and this process exclude each other."""

    def __init__(self, roots: Roots) -> None:
        self._format = get_format(roots.format)
        self._new = None if roots.store_exists else roots.store
        self._locks = LockSet(LockRoots(roots.store, roots.workspace))

    @property
    def others(self) -> Locks:
        """The same locks, for the executor."""
        return self._locks

    def take(self, conversation: str, session: str | None) -> Lease | Busy:
        """Try to flock JP's lock file."""
        name = self._format.lock_name(conversation)
        assert name is not None  # noqa: S101 - JP's conversations have one
        if self._new is not None:  # the first conversation of a project: there is no store yet
            os.makedirs(self._new, exist_ok=True)
        return self._locks.take(name, session)


class NoLocks:
    """Nobody is kept out, and no lock file is made: for tests, and where nothing is written."""

    others: Locks = NullLockSet()

    def take(self, conversation: str, session: str | None) -> Lease | Busy:  # noqa: ARG002 - nobody is told
        """Succeed."""
        return _Nothing(conversation)


class _Nothing(Struct, frozen=True):
    name: str

    def still_held(self) -> bool:
        return True

    def release(self) -> None:
        pass
