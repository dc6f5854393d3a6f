"""Where runs of the library work: a state and a vault for each thread that writes, lent, and kept for the next."""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.adapters.jp.locks import LentLocks
from reconcile.apply.staging_cleanup import remove_library_staging
from reconcile.state.database import State
from reconcile.state.vault import Vault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reconcile.adapters.jp.locks import Lease, Locks
    from reconcile.apply.target import Site
    from reconcile.engine.session import Session

_PATIENCE = 60.0
"""Seconds that a transaction waits for those of others."""


class Sites:
    """Those of one workspace; ``others`` is how more locks than the one that is held are taken."""

    def __init__(self, session: Session, others: Locks) -> None:
        """Have none yet."""
        self._session, self._others = session, others
        self._mutex = threading.RLock()
        self._idle: list[Site] = []
        self._pid = os.getpid()

    @contextmanager
    def lend(self, lease: Lease) -> Iterator[Site]:
        """Lend a state and a vault of its own to who writes, with the lock that he has: none is for two threads."""
        mine = self._session.site
        with self._mutex:
            site = self._idle.pop() if self._idle else None
        if site is None:
            directory = self._session.directory
            state = State.open(directory, timeout=_PATIENCE)
            site = replace(mine, state=state, vault=Vault(directory, mine.durability))
        try:
            yield replace(site, locks=LentLocks(lease, self._others))
        finally:
            with self._mutex:
                self._idle.append(site)

    def close(self) -> None:
        """Give back what no thread uses now, and remove the staging directory."""
        with self._mutex, ExitStack() as stack:
            if self._idle and self._pid == os.getpid():  # in a forked child they are the parent's
                with suppress(NotADirectoryError):  # a link in a side's place; the next run removes it
                    sides = self._session.site.open_sides(stack).values()
                    remove_library_staging(self._idle[0].state.identity(), sides)
            while self._idle:
                self._idle.pop().state.close()
