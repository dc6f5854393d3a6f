"""Which of two streams continues the other (DESIGN.md 4)."""

from __future__ import annotations

import pytest

from reconcile.core.model import Stream
from reconcile.core.streams import Direction, direction, events, loses_its_end


def stream(letters: str) -> Stream:
    return Stream(len(letters), letters[-1] if letters else None, tuple(letters))


DIRECTIONS = {
    "the same events": ("abc", "abc", Direction.LEVEL),
    "both empty": ("", "", Direction.LEVEL),
    "the store goes on": ("abc", "ab", Direction.STORE_AHEAD),
    "the workspace goes on": ("ab", "abc", Direction.WORKSPACE_AHEAD),
    "an empty one is the beginning of any": ("", "a", Direction.WORKSPACE_AHEAD),
    "any goes on from an empty one": ("a", "", Direction.STORE_AHEAD),
    "as long, with another end": ("abc", "abd", Direction.LEVEL),
    "longer, with another beginning": ("xbcd", "abc", Direction.LEVEL),
    "a part that is no beginning": ("abc", "bc", Direction.LEVEL),
}


@pytest.mark.parametrize(("store", "workspace", "way"), DIRECTIONS.values(), ids=DIRECTIONS)
def test_direction(store: str, workspace: str, way: Direction) -> None:
    assert direction(stream(store), stream(workspace)) is way


ENDS = {
    "its last event is in the winner": ("ab", "abc", False),
    "it is there at another place": ("ac", "abcd", False),
    "it is not": ("abx", "abc", True),
    "an empty stream has no end to lose": ("", "abc", False),
    "everything is lost to an empty one": ("a", "", True),
}


@pytest.mark.parametrize(("loser", "winner", "lost"), ENDS.values(), ids=ENDS)
def test_loses_its_end(loser: str, winner: str, lost: bool) -> None:
    assert loses_its_end(stream(loser), stream(winner)) is lost


def test_events_that_were_never_loaded_are_an_error_and_not_none() -> None:
    with pytest.raises(ValueError, match="were not loaded"):
        events(Stream(3, "c"))
