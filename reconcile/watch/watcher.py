"""The watcher: round after round, for as long as it is left running (docs/watch.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.errors import ReconcileError
from reconcile.fs.locks import watch_lock
from reconcile.watch.event_queue import Inbox
from reconcile.watch.events import News, What
from reconcile.watch.loop import COMMAND, Round
from reconcile.watch.reporter import Teller

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconcile.watch.events import Standing
    from reconcile.watch.loop import Watched

_AGAIN_NS = 10**9


class Watcher:
    """One watcher over one workspace. ``opening`` opens what is watched, again whenever that may be another."""

    def __init__(self, opening: Callable[[], Watched], tell: Callable[[News, Standing], None]) -> None:
        self._opening = opening
        self._teller = Teller(tell)
        self.inbox = Inbox()

    def run(self) -> None:
        """Watch until it is told to stop.

        Raises:
            ReconcileError: there is nothing to watch to begin with.
            LockedError: another one watches this workspace.
        """
        watched: Watched | None = self._opening()
        while watched is not None:
            self.inbox.reopening = False
            with watched.session as session, watch_lock(session.directory, session.project, COMMAND):
                Round(watched, self.inbox, self._teller).run()
            watched = self._opened_again()
        self._teller.say(News(what=What.STOPPED))

    def _opened_again(self) -> Watched | None:
        """Open what is watched as soon as it can be; None where it is told to stop before."""
        while not self.inbox.stopping:
            try:
                return self._opening()
            except (ReconcileError, OSError) as error:
                self._teller.wait_for(error.message if isinstance(error, ReconcileError) else str(error))
            self.inbox.take(_AGAIN_NS)
        return None
