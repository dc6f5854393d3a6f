"""The merge of one file for git: the results of docs/design/git.md#rule-56, with the rules of a run."""

from __future__ import annotations

import json

import pytest

from reconcile.formats import get_format
from reconcile.formats.jp.times import instant_ns
from reconcile.fs.hashing import digest
from reconcile.model.options import Diverged
from reconcile.model.snapshot import Fault
from reconcile.model.units import Rules
from reconcile.planning.file_merge import FileMerge, Versions, merge_events, merge_metadata

RULES = Rules(get_format("jp"), digest)
ID = "jp-c17500000001"


def stream(*texts: str, lead: bool = False) -> bytes:
    """Return events; the first character is the minute, so that an edited text keeps the event's identity."""
    found = [{"timestamp": f"2026-01-01T00:0{text[0]}:00Z", "type": "chat_request", "content": text} for text in texts]
    first = [{"timestamp": "2026-01-01T00:00:00Z", "type": "config_delta", "delta": {}}] if lead else []
    return json.dumps([*first, *found], indent=2).encode() + b"\n"


def merged(base: bytes | None, ours: bytes, others: bytes, diverged: Diverged = Diverged.FORK) -> FileMerge | Fault:
    return merge_events(ID, Versions(base, ours, others), b"{}", RULES, diverged, instant_ns)


def described(**keys: object) -> bytes:
    values = {"title": "A", "last_activated_at": "2026-01-01 00:00:00.0"} | keys
    return json.dumps(values, indent=2).encode() + b"\n"


BASE = stream("1", "2")


@pytest.mark.parametrize("base", [BASE, None])
def test_the_longer_stream_stays_on_either_branch(base: bytes | None) -> None:
    short, long = stream("1", "2", "3"), stream("1", "2", "3", "4")
    assert merged(base, short, long) == FileMerge(long)
    assert merged(base, long, short) == FileMerge(long)


def test_equal_versions_stay() -> None:
    assert merged(None, BASE, BASE) == FileMerge(BASE)


@pytest.mark.parametrize("base", [BASE, None])
def test_of_two_continuations_the_later_one_stays(base: bytes | None) -> None:
    older, newer = stream("1", "2", "3a", "4a"), stream("1", "2", "5b")
    assert merged(base, older, newer) == FileMerge(newer, continuation=older)
    assert merged(base, newer, older) == FileMerge(newer, continuation=older)


def test_ours_stays_if_both_end_at_the_same_time() -> None:
    base = stream("1")
    ours, others = (stream("1", "2").replace(b"chat_request", kind, 2) for kind in (b"chat_request", b"turn_start"))
    assert merged(base, ours, others) == FileMerge(ours, continuation=others)


def test_an_edit_and_an_addition_are_united() -> None:
    assert merged(BASE, stream("1x", "2"), stream("1", "2", "3")) == FileMerge(stream("1x", "2", "3"))


def test_one_event_that_both_edited_is_a_conflict() -> None:
    ours = stream("1x", "2")
    assert merged(BASE, ours, stream("1y", "2")) == FileMerge(ours, conflict=True)


def test_continuations_that_the_settings_hold_are_a_conflict() -> None:
    ours = stream("1", "2", "3a")
    assert merged(BASE, ours, stream("1", "2", "4b"), Diverged.HOLD) == FileMerge(ours, conflict=True)


def test_an_invalid_version_is_a_fault() -> None:
    assert isinstance(merged(BASE, b"[", BASE), Fault)
    assert isinstance(merged(BASE, BASE, b"<<<<<<< ours\n"), Fault)
    assert isinstance(merge_metadata(ID, Versions(None, described(), b"{}"), RULES), Fault)


@pytest.mark.parametrize("lead", [True, False])
def test_a_configuration_in_front_or_nowhere_is_enough(lead: bool) -> None:
    short, long = stream("1", lead=lead), stream("1", "2", lead=lead)
    assert merge_events(ID, Versions(None, short, long), None, RULES, Diverged.FORK, instant_ns) == FileMerge(long)


def test_a_configuration_in_front_goes_with_its_events() -> None:
    base, long = (stream(*texts, lead=True) for texts in ("1", "12"))
    ours = base.replace(b'"delta": {}', b'"delta": {"a": 1}')
    assert merge_events(ID, Versions(base, ours, long), None, RULES, Diverged.FORK, instant_ns) == FileMerge(long)


def test_a_configuration_in_front_of_one_version_alone_is_enough() -> None:
    short, long = stream("1", lead=True), stream("1", "2")
    found = merge_events(ID, Versions(None, short, long), None, RULES, Diverged.FORK, instant_ns)
    assert isinstance(found, FileMerge)


def test_events_without_a_readable_time_are_the_oldest() -> None:
    ours = json.dumps([{"timestamp": 7, "type": "chat_request"}]).encode()
    first = stream("1").replace(b"2026-01-01T00:01:00Z", b"1970-01-01T00:00:00.000000001Z")
    for others in (stream("1"), first):
        assert merged(None, ours, others) == FileMerge(others, continuation=ours)


def test_metadata_is_merged_key_by_key() -> None:
    ours, others = described(title="B"), described(labels="ci", last_activated_at="2026-01-02 00:00:00.0")
    result = merge_metadata(ID, Versions(described(), ours, others), RULES)
    assert isinstance(result, FileMerge)
    assert json.loads(result.content) == json.loads(
        described(title="B", labels="ci", last_activated_at="2026-01-02 00:00:00.0")
    )
    assert not result.conflict


@pytest.mark.parametrize("base", [described(), None])
def test_a_key_that_both_edited_is_a_conflict_with_our_value(base: bytes | None) -> None:
    ours, others = described(title="B", labels="ours"), described(title="C", pinned_at="others")
    result = merge_metadata(ID, Versions(base, ours, others), RULES)
    assert isinstance(result, FileMerge)
    assert (result.conflict, result.keys) == (True, ("title",))
    assert json.loads(result.content) == json.loads(described(title="B", labels="ours", pinned_at="others"))


def test_a_key_that_both_edited_is_a_conflict_if_nothing_else_differs() -> None:
    ours = described(title="B")
    result = merge_metadata(ID, Versions(described(), ours, described(title="C")), RULES)
    assert result == FileMerge(ours, conflict=True, keys=("title",))


def test_metadata_in_another_form_is_a_conflict_as_a_whole() -> None:
    ours = described(title="B").replace(b"  ", b" ")
    result = merge_metadata(ID, Versions(described(), ours, described(labels="ci")), RULES)
    assert result == FileMerge(ours, conflict=True)
