"""Metadata that both sides have edited: key by key, in the form of the winner's file."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcile.formats import get_format
from reconcile.formats.jp.files import serialised
from reconcile.model.format import MergedMetadata

JP, PLAIN = get_format("jp"), get_format("plain")
Object = dict[str, Any]
OLD, NEW, NEWEST = "2026-01-01 00:00:00.0", "2026-02-01 00:00:00.0", "2026-03-01 00:00:00.0"
P, Q = "jp-c17528832001", "jp-c17528832002"
LEAST = {"title": "A", "last_activated_at": OLD}


def merged(base: Object, winner: Object, other: Object) -> tuple[Object, tuple[str, ...]]:
    found = JP.merge_metadata(*map(serialised, (base, winner, other)))
    assert found is not None
    return json.loads(found.content), found.conflicts


# The version before; the edits of the winner, of the other side and of the merge (None: removed); the conflicts.
MERGES: dict[str, tuple[Object, Object, Object, Object, tuple[str, ...]]] = {
    "each another key": (LEAST, {"title": "B"}, {"pinned_at": NEW}, {"title": "B", "pinned_at": NEW}, ()),
    "the other only": (LEAST, {}, {"title": "B"}, {"title": "B"}, ()),
    "the same edit": (LEAST, {"title": "B"}, {"title": "B", "pinned_at": NEW}, {"title": "B", "pinned_at": NEW}, ()),
    "one removed by the other": (
        LEAST | {"pinned_at": OLD},
        {"title": "B"},
        {"pinned_at": None},
        {"title": "B", "pinned_at": None},
        (),
    ),
    "one removed by the winner": (
        LEAST | {"pinned_at": OLD},
        {"pinned_at": None},
        {"title": "B"},
        {"title": "B", "pinned_at": None},
        (),
    ),
    "removed by both": (LEAST | {"pinned_at": OLD}, {"pinned_at": None}, {"pinned_at": None}, {"pinned_at": None}, ()),
    "edited by both": (LEAST, {"title": "B"}, {"title": "C"}, {"title": "B"}, ("title",)),
    "added by both": (LEAST, {"expires_at": NEW}, {"expires_at": OLD}, {"expires_at": NEW}, ("expires_at",)),
    "edited and removed": (LEAST, {"title": "B"}, {"title": None}, {"title": "B"}, ("title",)),
    "removed and edited": (LEAST, {"title": None}, {"title": "B"}, {"title": None}, ("title",)),
    "two conflicts and a merge": (
        LEAST,
        {"title": "B", "expires_at": NEW},
        {"title": "C", "expires_at": OLD, "pinned_at": NEW},
        {"title": "B", "expires_at": NEW, "pinned_at": NEW},
        ("title", "expires_at"),
    ),
    "labels are one key": (LEAST, {"labels": {"a": "b"}}, {"labels": {"c": "d"}}, {"labels": {"a": "b"}}, ("labels",)),
    "another order of labels is no edit": (
        LEAST | {"labels": {"a": "b", "c": "d"}},
        {"labels": {"c": "d", "a": "b"}},
        {"labels": {"a": "x", "c": "d"}},
        {"labels": {"a": "x", "c": "d"}},
        (),
    ),
    "one and true are two values": (LEAST | {"x": 1}, {"x": True}, {"title": "B"}, {"title": "B", "x": True}, ()),
    "the winner's activation is later": (
        LEAST,
        {"last_activated_at": NEWEST},
        {"last_activated_at": NEW},
        {"last_activated_at": NEWEST},
        (),
    ),
    "the other's activation is later": (
        LEAST,
        {"last_activated_at": NEW},
        {"last_activated_at": NEWEST},
        {"last_activated_at": NEWEST},
        (),
    ),
    "one activation in two forms is no edit": (
        LEAST,
        {"last_activated_at": "2026-01-01T00:00:00Z"},
        {"title": "B"},
        {"title": "B", "last_activated_at": "2026-01-01T00:00:00Z"},
        (),
    ),
    "a key that JP drops, edited by the other": (LEAST | {"x": 1}, {"x": None}, {"x": 2}, {"x": 2}, ()),
    "a key that JP drops, edited by the winner": (LEAST | {"x": 1}, {"x": 2}, {"x": None}, {"x": 2}, ()),
    "a key that JP drops, edited by nobody": (
        LEAST | {"x": 1},
        {"x": None},
        {"title": "B"},
        {"title": "B", "x": None},
        (),
    ),
    "a key that JP drops, edited by both": (LEAST | {"x": 1}, {"x": 2}, {"x": 3}, {"x": 2}, ("x",)),
    "a parent that the other has moved": (
        LEAST | {"parent_id": P},
        {"title": "B", "parent_id": P},
        {"parent_id": Q, "pinned_at": NEW},
        {"title": "B", "parent_id": Q, "pinned_at": NEW},
        (),
    ),
    "a parent that the winner lacks": (
        LEAST | {"parent_id": P},
        {"title": "B", "parent_id": None},
        {"pinned_at": NEW, "parent_id": P},
        {"title": "B", "pinned_at": NEW, "parent_id": P},
        (),
    ),
    "a parent that the other lacks": (
        LEAST | {"parent_id": P},
        {"title": "B", "parent_id": Q},
        {"pinned_at": NEW, "parent_id": None},
        {"title": "B", "pinned_at": NEW, "parent_id": Q},
        (),
    ),
    "one parent in two spellings": (
        LEAST | {"parent_id": P},
        {"title": "B", "parent_id": 17528832001},
        {"parent_id": Q, "pinned_at": NEW},
        {"title": "B", "parent_id": Q, "pinned_at": NEW},
        (),
    ),
    "two other parents": (
        LEAST | {"parent_id": P},
        {"parent_id": Q},
        {"parent_id": 9},
        {"parent_id": Q},
        ("parent_id",),
    ),
    "two parents that can't be read": (
        LEAST,
        {"parent_id": True},
        {"parent_id": "?"},
        {"parent_id": True},
        ("parent_id",),
    ),
}


@pytest.mark.parametrize(("base", "winner", "other", "expected", "conflicts"), MERGES.values(), ids=MERGES.keys())
def test_merge(base: Object, winner: Object, other: Object, expected: Object, conflicts: tuple[str, ...]) -> None:
    def edited(edits: Object) -> Object:
        return {key: value for key, value in (base | edits).items() if value is not None}

    assert merged(base, edited(winner), edited(other)) == (edited(expected), conflicts)


def test_a_parent_alone_is_merged_too() -> None:
    moved = {**LEAST, "parent_id": Q}
    found = merged({**LEAST, "parent_id": P}, {**LEAST, "title": "B"}, moved)
    assert found == ({**LEAST, "title": "B", "parent_id": Q}, ())


def test_a_new_key_has_the_place_that_it_has_in_its_file() -> None:
    base, winner = {"last_activated_at": OLD, "x": 1}, {"last_activated_at": OLD, "y": 2, "x": 1}
    other = {"title": "A", "last_activated_at": OLD, "pinned_at": NEW, "expires_at": NEW, "x": 1, "z": 3}
    keys = list(merged(base, winner, other)[0])
    assert keys == ["title", "last_activated_at", "pinned_at", "expires_at", "y", "x", "z"]


COMPACT = json.dumps({**LEAST, "pinned_at": NEW}).encode()


def test_what_is_not_as_jp_writes_it_is_merged_only_if_its_bytes_stay() -> None:
    base, retitled = serialised(LEAST), serialised({**LEAST, "title": "B"})
    assert JP.merge_metadata(base, retitled, COMPACT) is None
    assert JP.merge_metadata(base, COMPACT, retitled) is None
    assert JP.merge_metadata(base, COMPACT, json.dumps(LEAST).encode()) == MergedMetadata(COMPACT)


@pytest.mark.parametrize("place", range(3))
def test_what_is_no_object_is_not_merged(place: int) -> None:
    contents = [serialised(LEAST)] * 3
    contents[place] = b"\xff"
    assert PLAIN.merge_metadata(*contents) is None


def test_in_the_plain_format_no_key_is_dropped_by_a_program() -> None:
    base, removed, edited = ({"x": 1, "y": 1}, {"y": 1}, {"x": 2, "y": 1})
    found = PLAIN.merge_metadata(*map(serialised, (base, removed, edited)))
    assert found == MergedMetadata(serialised(removed), ("x",))


def test_in_the_plain_format_an_activation_may_be_anything() -> None:
    base, one, two = ({"last_activated_at": value} for value in (None, "yesterday", OLD))
    found = PLAIN.merge_metadata(*map(serialised, (base, one, two)))
    assert found == MergedMetadata(serialised(one), ("last_activated_at",))


VALUES = st.sampled_from((1, 2, True, "a", None, {"a": 1}, {"a": 2}))
OBJECTS = st.dictionaries(st.sampled_from(("title", "labels", "x", "y", "z")), VALUES, max_size=5)


@given(OBJECTS, OBJECTS, OBJECTS)
def test_every_key_is_an_edit_a_conflict_or_as_before(base: Object, winner: Object, other: Object) -> None:
    found = PLAIN.merge_metadata(*map(serialised, (base, winner, other)))
    assert found is not None
    after = json.loads(found.content)
    for key in base.keys() | winner.keys() | other.keys():
        was, mine, theirs, now = (json.dumps(each[key]) if key in each else "" for each in (base, winner, other, after))
        assert now == (theirs if mine == was else mine)
        assert (key in found.conflicts) == (mine not in (was, theirs) and theirs != was)
    again = PLAIN.merge_metadata(serialised(base), found.content, serialised(other))
    assert again == found
