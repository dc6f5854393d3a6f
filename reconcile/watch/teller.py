"""What is said, and what was said already: nobody reads the same line all day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.apply.outcome import Result
from reconcile.core.reasons import Reason
from reconcile.watch.news import News, Standing, What

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from reconcile.apply.outcome import Outcome
    from reconcile.core.plan import Item

_Key = tuple[str | None, str, Reason]
_RESULTS = {Result.DONE: What.DONE, Result.SKIPPED: What.SKIPPED, Result.FAILED: What.FAILED}
_RETRIED = (Reason.BUSY, Reason.DRIFT, Reason.NEEDS_SKIPPED)
"""Reasons for which something is tried again by itself, sooner or later."""


class Teller:
    """Tells each thing once. ``conversations`` and ``busy`` are counts, for the standing."""

    def __init__(self, tell: Callable[[News, Standing], None]) -> None:
        self._tell = tell
        self._held: dict[_Key, Item] = {}
        self._unread: set[_Key] = set()
        self._waiting: str | None = None
        self.conversations = 0
        self.busy: frozenset[str] = frozenset()

    def say(self, news: News) -> None:
        """Tell something, with how things stand."""
        self._tell(news, Standing(self.conversations, len(self._held), len(self.busy)))

    def wait_for(self, message: str) -> None:
        """Say what nothing is done for now, unless that was the last word."""
        if self._waiting != message:
            self._waiting = message
            self.say(News(what=What.WAITING, message=message))

    def go_on(self) -> None:
        """Say that the waiting is over, if there was any."""
        if self._waiting is not None:
            self._waiting = None
            self.say(News(what=What.RESUMED))

    def report(self, outcome: Outcome) -> None:
        """Say what became of each action; of a busy conversation only the first time."""
        busy = {deed.action.conversation for deed in outcome.deeds.values() if deed.reason is Reason.BUSY}
        for deed in outcome.deeds.values():
            again = deed.reason in _RETRIED and (
                deed.reason is not Reason.BUSY or deed.action.conversation in self.busy
            )
            if not again:
                self.say(News(what=_RESULTS[deed.result], message=deed.message, action=deed.action))
        self.busy |= busy

    def hold(self, items: Collection[Item], about: frozenset[str] | None) -> list[str]:
        """Say what is held and wasn't before, and what is no longer; ``about``: of these conversations alone.

        Return the conversations with a file that can't be read for the first time: it may be half written, and is
        said when it is looked at again.
        """
        found: dict[_Key, Item] = {(item.conversation, item.unit, item.reason): item for item in items}
        known = {key for key in self._held if about is None or key[0] in about}
        for key in known - found.keys():
            self.say(News(what=What.RELEASED, item=self._held.pop(key)))
        new = {key for key in found if key not in self._held}
        doubtful = {key for key in new if key[2] is Reason.INVALID} - self._unread
        self._unread = (self._unread if about is not None else set()) & new | doubtful
        for key in found:
            if key in new - doubtful:
                self._held[key] = found[key]
                self.say(News(what=What.HELD, item=found[key]))
        return [conversation for conversation, _, _ in doubtful if conversation is not None]
