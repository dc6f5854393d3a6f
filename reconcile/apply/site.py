"""A site: the two sides of one checkout, with the state, the vault and the locks that a run needs."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.adapters.jp.locks import LockRoots, LockSet, NullLockSet
from reconcile.errors import ReconcileError
from reconcile.fs.mutations import Root
from reconcile.fs.paths import is_directory
from reconcile.model.snapshot import Side

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from contextlib import ExitStack

    from reconcile.adapters.jp.locks import Locks
    from reconcile.adapters.roots import Roots
    from reconcile.fs.durability import Durability
    from reconcile.model.baseline import WorldState
    from reconcile.model.format import Format
    from reconcile.state.database import State
    from reconcile.state.journal import Mark
    from reconcile.state.vault import Vault

_AGAIN = "run again; nothing was changed"


def locks_of(where: Roots) -> Locks:
    """Return a format's locks of single conversations."""
    if where.format == "jp":
        return LockSet(LockRoots(where.store, where.workspace))
    if where.format == "leslie":
        from reconcile.adapters.leslie.locks import LeslieLocks  # here: most runs have another format

        return LeslieLocks(where.workspace)
    return NullLockSet()


class MovedError(ReconcileError):
    """A side was moved or replaced between the scan and the run."""

    exit_code = 4


class Site(Struct, frozen=True, kw_only=True):
    """The store and one checkout, with their state, vault and format."""

    where: Roots
    checkout: int | None
    """None for a dry run in a checkout without a record."""
    state: State
    vault: Vault
    durability: Durability
    format: Format
    clock: Callable[[], int]
    locks: Locks
    """The format's locks of single conversations."""
    since: Mark | None = None
    """The moment at which the run lock was taken. Later changes by the library update the baseline themselves."""

    def written_meanwhile(self) -> frozenset[str]:
        """Return the conversations that the library has changed since the lock was taken: their scan is outdated."""
        return frozenset() if self.since is None else self.state.journal.written_since(self.since)

    @property
    def number(self) -> int:
        """The number of the checkout in the state. Only a dry run may have none."""
        assert self.checkout is not None  # noqa: S101 - see above
        return self.checkout

    def conversations(self, side: Side) -> str:
        """Return the directory of a side's conversations."""
        return self.where.store_conversations if side is Side.STORE else self.where.workspace_conversations

    def open_sides(self, stack: ExitStack) -> dict[Side, Root]:
        """Open the existing sides. Raises `OSError` if the system can't tell."""
        paths = {side: path for side in Side if is_directory(path := self.conversations(side))}
        return {side: stack.enter_context(closing(Root(path))) for side, path in paths.items()}

    def open_scanned(self, stack: ExitStack, world: WorldState, *, wanted: Collection[Side]) -> dict[Side, Root]:
        """Open the sides that were scanned, and make those ``wanted`` that did not exist.

        The identity is compared, because JP renames silos, and a `.jp` may be replaced.

        Raises:
            MovedError: a side isn't the directory any more that was scanned.
        """
        roots = {}
        for side, snapshot in ((Side.STORE, world.store), (Side.WORKSPACE, world.workspace)):
            path = self.conversations(side)
            if not snapshot.exists and side not in wanted:
                continue
            try:
                roots[side] = stack.enter_context(closing(Root(path, make=not snapshot.exists)))
            except (FileNotFoundError, NotADirectoryError):
                found = "a symbolic link" if os.path.islink(path) else "nothing"
                raise MovedError(f"{path}: found {found}, expected the directory of a moment ago", _AGAIN) from None
            if snapshot.exists and roots[side].identity != snapshot.identity:
                raise MovedError(f"{path}: found another directory, expected the one of a moment ago", _AGAIN)
        return roots
