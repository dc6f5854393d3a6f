"""Reports of a watcher: the events that programs and people receive, each of them once."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.apply.outcome import Result
from reconcile.model.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from reconcile.apply.outcome import Outcome
    from reconcile.model.plan import Action, Item, Plan

    About = Callable[[str | None], bool]


class What(StrEnum):
    """The kinds of news."""

    WATCHING = "watching"
    """Both sides were looked at in whole, and events come from now on."""
    POLLING = "polling"
    """The system gives no events; both sides are looked at every few seconds."""
    BEGUN = "begun"
    """A pass with much to do has begun; ``ENDED`` when all of it was said."""
    ENDED = "ended"
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"
    HELD = "held"
    RELEASED = "released"
    NOTED = "noted"
    """What needs no decision: set aside until a side changes (an ``item``), or only worth knowing (a ``message``)."""
    WAITING = "waiting"
    """Nothing is done for now: git is at work, a side is gone, another reconcile has the lock."""
    RESUMED = "resumed"
    MESSAGE = "message"
    STOPPED = "stopped"


class News(Struct, frozen=True, kw_only=True):
    """One thing that has happened. ``action`` and ``item`` are there where it is about one."""

    what: What
    message: str = ""
    action: Action | None = None
    item: Item | None = None


class Standing(Struct, frozen=True):
    """How things stand: the conversations that are watched, and those that are held or busy."""

    conversations: int = 0
    held: int = 0
    busy: int = 0


_Key = tuple[str | None, str, Reason]
_RESULTS = {Result.DONE: What.DONE, Result.SKIPPED: What.SKIPPED, Result.FAILED: What.FAILED}
_PASSING = (Reason.DRIFT, Reason.NEEDS_SKIPPED)
"""Why something was not done that is tried again at once, or was said of what it needed."""
MANY = 60
"""More actions than this in one pass are announced."""


class Teller:
    """Tells each thing once. ``conversations`` is their number, for the standing."""

    def __init__(self, tell: Callable[[News, Standing], None]) -> None:
        self._tell = tell
        self._held: dict[_Key, Item] = {}
        self._late: dict[_Key, tuple[Item, int]] = {}
        """What is to be said at a time, in ns of a monotonic clock."""
        self._undone: dict[str, tuple[Reason | None, str]] = {}
        self._noted: set[_Key] = set()
        self._waiting: str | None = None
        self._polling: str | None = None
        self.conversations = 0

    def say(self, news: News) -> None:
        """Tell something, with how things stand."""
        busy = sum(reason is Reason.BUSY for reason, _ in self._undone.values())
        self._tell(news, Standing(self.conversations, len(self._held), busy))

    def wait_for(self, message: str) -> None:
        """Say why nothing is done for now, unless that was the last word."""
        if self._waiting != message:
            self._waiting = message
            self.say(News(what=What.WAITING, message=message))

    def go_on(self) -> None:
        """Say that the waiting is over, if there was any."""
        if self._waiting is not None:
            self._waiting = None
            self.say(News(what=What.RESUMED))

    def poll(self, message: str) -> None:
        """Say why both sides are looked at again and again, unless that was the last word."""
        if self._polling != message:
            self._polling = message
            self.say(News(what=What.POLLING, message=message))

    def hear(self) -> None:
        """Say that events come from now on, if they didn't."""
        if self._polling is not None:
            self._polling = None
            self.say(News(what=What.RESUMED))

    def begin(self, actions: int) -> None:
        """Announce a pass with so much to do that it takes a while."""
        if actions > MANY:
            self.say(News(what=What.BEGUN, message=f"{actions} actions"))

    def report(self, outcome: Outcome, about: frozenset[str]) -> None:
        """Say what became of each action of a pass over these conversations; what can't be done, only once."""
        before = {each: self._undone.pop(each) for each in about if each in self._undone}
        for deed in outcome.deeds.values():
            conversation, undone = deed.action.conversation, (deed.reason, deed.message)
            if deed.reason in _PASSING or before.get(conversation) == undone:
                self._undone |= {conversation: undone} if deed.reason not in _PASSING else {}
                continue
            if deed.result is not Result.DONE:
                self._undone[conversation] = undone
            self.say(News(what=_RESULTS[deed.result], message=deed.message, action=deed.action))
        if len(outcome.deeds) > MANY:
            self.say(
                News(what=What.ENDED, message=f"{outcome.count(Result.DONE)} of {len(outcome.deeds)} actions done")
            )

    def hold(self, items: Collection[Item], is_about: About, late_ns: int) -> None:
        """Say what is held and wasn't before, and what is no longer, of what a pass was about.

        A file that can't be read may be half written: that is said at ``late_ns``, unless it can be read by then.
        """
        found: dict[_Key, Item] = {(item.conversation, item.unit, item.reason): item for item in items}
        for key in [key for key in self._held if is_about(key[0])]:
            if key not in found:
                self.say(News(what=What.RELEASED, item=self._held.pop(key)))
        for key in [key for key in self._late if is_about(key[0])]:
            if key not in found:
                del self._late[key]
        for key, item in found.items():
            if key not in self._held and key not in self._late:
                self._late[key] = item, late_ns if item.reason is Reason.INVALID else 0
        self.say_late(1)

    def note(self, plan: Plan, is_about: About) -> None:
        """Say what is set aside or worth knowing of conversations that a pass was about, and wasn't before."""
        news: dict[_Key, News] = {}
        for item in plan.aside:
            news[item.conversation, item.unit, item.reason] = News(what=What.NOTED, item=item)
        for each in plan.notes:
            if each.conversation is not None:
                message = f"{each.conversation}: {each.message}"
                news[each.conversation, each.unit, each.reason] = News(what=What.NOTED, message=message)
        for key, one in news.items():
            if key not in self._noted:
                self.say(one)
        self._noted = {key for key in self._noted if not is_about(key[0])} | news.keys()

    def say_late(self, now_ns: int) -> None:
        """Say what is held for long enough by now."""
        for key, (item, due) in list(self._late.items()):
            if due < now_ns:
                self._held[key] = item
                del self._late[key]
                self.say(News(what=What.HELD, item=item))
