"""Which of two streams continues the other."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconcile.model.snapshot import Event, Stream
from reconcile.planning.rules.content import (
    Direction,
    direction,
    events,
    is_edited_and_continued,
    lives_on,
    loses_its_end,
)


def stream(letters: str) -> Stream:
    """Return a stream of events named by letters: in upper case the same event with another text."""
    found = tuple(Event(letter.lower(), letter) for letter in letters)
    return Stream(len(letters), letters[-1] if letters else None, found, "config")


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
    "the workspace goes on, the store has another text": ("aBc", "abcd", Direction.LEVEL),
    "the store goes on, the workspace has another text": ("abcd", "abC", Direction.LEVEL),
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
    "it is there with another text": ("aB", "abc", False),
}


@pytest.mark.parametrize(("loser", "winner", "lost"), ENDS.values(), ids=ENDS)
def test_loses_its_end(loser: str, winner: str, lost: bool) -> None:
    assert loses_its_end(stream(loser), stream(winner)) is lost


LIVES = {
    "its last event isn't in the winner": ("ab", "ac", True),
    "the winner goes on, and has another text": ("aBc", "abcd", True),
    "the winner goes on, and has another text of the last event": ("abC", "abcd", True),
    "the winner goes on, and has all of it": ("ac", "abcd", False),
    "both end alike, with other texts": ("aBc", "abc", False),
    "both have the same event twice, with two texts": ("abB", "abBc", False),
    "the winner lacks what comes before": ("abc", "bcd", False),
}


@pytest.mark.parametrize(("loser", "winner", "lives"), LIVES.values(), ids=LIVES)
def test_lives_on(loser: str, winner: str, lives: bool) -> None:
    assert lives_on(stream(loser), stream(winner)) is lives


TORN = {
    "one goes on": ("ab", "abc", False),
    "one goes on, and has another text": ("aB", "abc", True),
    "one goes on, and the other lacks something": ("ac", "abcd", True),
    "both end alike": ("aBc", "abc", False),
    "both go on": ("abc", "abd", False),
}


@pytest.mark.parametrize(("one", "other", "torn"), TORN.values(), ids=TORN)
def test_is_torn(one: str, other: str, torn: bool) -> None:
    assert is_edited_and_continued(stream(one), stream(other)) is torn
    assert is_edited_and_continued(stream(other), stream(one)) is torn


def test_events_that_were_never_loaded_are_an_error_and_not_none() -> None:
    with pytest.raises(ValueError, match="are not loaded"):
        events(Stream(3, "c"), stream("a"))


LEADS = {
    "its own file has it as well": ("one", "one", "two", "ab"),
    "the other has it as a file": ("one", "two", "one", "ab"),
    "neither has it": ("one", "two", "three", "one ab"),
}


@pytest.mark.parametrize(("lead", "base", "other", "left"), LEADS.values(), ids=LEADS)
def test_a_base_configuration_in_front_is_no_event_where_a_file_holds_it(
    lead: str, base: str, other: str, left: str
) -> None:
    first = Event("0 config_delta", lead)
    old, new = stream("ab"), replace(stream("abc"), base=other)
    assert old.events is not None
    old = replace(old, events=(first, *old.events), base=base)
    assert " ".join(event.content for event in events(old, new)).replace("a b", "ab") == left
    way = Direction.LEVEL if "one" in left else Direction.WORKSPACE_AHEAD
    assert direction(old, new) is way
    assert direction(new, old) is (Direction.STORE_AHEAD if way is not Direction.LEVEL else way)
    assert events(new, old) == new.events
    assert events(replace(old, events=()), new) == ()
