"""What a watcher has to tell: values, for people and for programs."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from reconcile.model.plan import Action, Item


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
