"""Streams have a direction: which of two continues the other, looked at before any mtime."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reconcile.model.snapshot import Event, Stream


class Direction(Enum):
    """How the events of the store's stream relate to those of the workspace's."""

    LEVEL = "level"
    """The same events, or neither begins with the other."""
    STORE_AHEAD = "store-ahead"
    WORKSPACE_AHEAD = "workspace-ahead"


def direction(store: Stream, workspace: Stream) -> Direction:
    """Tell which stream's events begin with all of the other's and go on."""
    here, there = events(store, workspace), events(workspace, store)
    if len(there) < len(here) and here[: len(there)] == there:
        return Direction.STORE_AHEAD
    if len(here) < len(there) and there[: len(here)] == here:
        return Direction.WORKSPACE_AHEAD
    return Direction.LEVEL


def is_torn(one: Stream, other: Stream) -> bool:
    """Tell whether one of two streams goes on from where the other ends, and yet doesn't continue it: something before
    was edited.
    """
    return direction(one, other) is Direction.LEVEL and loses_its_end(one, other) != loses_its_end(other, one)


def lives_on(loser: Stream, winner: Stream) -> bool:
    """Tell whether a stream that loses to another has something that isn't in it: its last event, or, where the winner
    goes on after that, another text of an event.

    Of two that end alike the older text is in the vault.
    """
    if loses_its_end(loser, winner):
        return True
    theirs = events(winner, loser)
    known = {event.id for event in theirs}
    edited = any(event.id in known for event in set(events(loser, winner)).difference(theirs))
    return edited and loses_its_end(winner, loser)


def loses_its_end(loser: Stream, winner: Stream) -> bool:
    """Tell whether the loser's last event isn't in the winner: the two have diverged."""
    lost = events(loser, winner)
    return bool(lost) and lost[-1].id not in {event.id for event in events(winner, loser)}


def differ_by_base(one: Stream, other: Stream) -> bool:
    """Tell whether two streams have the same events, and another base configuration."""
    return one.base != other.base and events(one, other) == events(other, one)


def events(stream: Stream, other: Stream) -> tuple[Event, ...]:
    """Return E(x) of a stream that was inspected, as far as it can be compared with another's.

    The first element of the legacy form is the base configuration. Where git puts such a stream back beside a
    ``base_config.json`` that is newer, or that git doesn't know, it is no event there either.

    Raises:
        ValueError: the scan didn't load them, though the sides differ.
    """
    if stream.events is None:
        message = "the events of a stream that differs were not loaded"
        raise ValueError(message)
    leads = stream.events[:1]
    return stream.events[1:] if leads and leads[0].content in (stream.base, other.base) else stream.events
