"""The rules of docs/design/formats/claudesidian.md#comparison by which a stored index is compared, in words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reconcile.formats.claudesidian.index import rebuild
from reconcile.formats.claudesidian.index_diff import Sort, compare, shape_problem
from reconcile.formats.claudesidian.record_files import Kind
from tests.support.claudesidian import NOW, conversation, session, workspace

WORKSPACES = [
    workspace("ws_a", "Alpha notes", description="all about it", rootFolder="A", sessions={"s1": session("s1", "t1")}),
    workspace("ws_b", "Constructor", rootFolder="B"),
]
CONVERSATIONS = [conversation("c1", "hello there", title="First talk"), conversation("c2", title="日本語")]
RECORDS = {Kind.WORKSPACE: WORKSPACES, Kind.CONVERSATION: CONVERSATIONS}


def found(kind: Kind, change: Any, unread: frozenset[str] = frozenset()) -> list[tuple[Sort, str, str]]:
    """What is said of an index that a function has changed."""
    right = rebuild(kind, RECORDS[kind], NOW)
    stored = json.loads(json.dumps(right))
    change(stored)
    assert shape_problem(kind, stored) is None
    return [(each.sort, each.id, each.words) for each in compare(kind, stored, right, unread)]


def of_workspaces(change: Any, **more: Any) -> list[tuple[Sort, str, str]]:
    return found(Kind.WORKSPACE, change, **more)


def of_conversations(change: Any, **more: Any) -> list[tuple[Sort, str, str]]:
    return found(Kind.CONVERSATION, change, **more)


@pytest.mark.parametrize("kind", Kind)
def test_what_was_rebuilt_is_in_order(kind: Kind) -> None:
    assert found(kind, lambda index: index.update(lastUpdated=1, more={"x": ["gone"]})) == []


def entry(id_: str, **members: Any) -> Any:
    return lambda index: index["workspaces"][id_].update(members)


ENTRIES = [
    (
        entry("ws_a", name="Old"),
        Sort.STALE,
        'name is the text "Old" in the index and the text "Alpha notes" in the file',
    ),
    (entry("ws_a", isActive=False), Sort.STALE, "isActive is false in the index and true in the file"),
    (entry("ws_a", more=1), Sort.STALE, "more is 1 in the index and not in the file"),
    (entry("ws_a", sessionCount=0), Sort.STALE, "sessionCount is 0 in the index and 1 in the file"),
    (entry("ws_a", traceCount=0), Sort.STALE, "traceCount is 0 in the index and 1 in the file"),
    (entry("ws_a", traceCount="9"), Sort.STALE, 'traceCount is the text "9" in the index and 1 in the file'),
    (entry("ws_a", created=9000), Sort.STALE, "created is 9000 in the index and 1000 in the file"),
    (entry("ws_a", lastAccessed=1999), Sort.STALE, "lastAccessed is 1999 in the index and 2000 in the file"),
    (
        entry("ws_a", lastAccessed=2001),
        Sort.REPLACED,
        "lastAccessed is 2001 in the index and 2000 in the file, which an older copy has replaced",
    ),
    (entry("ws_a", sessionCount=3), Sort.LOST, "3 sessions in the index, 1 in the file: 2 may be lost"),
    (entry("ws_a", traceCount=2), Sort.LOST, "2 traces in the index, 1 in the file: 1 may be lost"),
]


@pytest.mark.parametrize(("change", "sort", "words"), ENTRIES, ids=[row[2] for row in ENTRIES])
def test_rule_1_members_of_an_entry(change: Any, sort: Sort, words: str) -> None:
    assert of_workspaces(change) == [(sort, "ws_a", words)]


def test_rule_1_what_the_file_has_and_the_index_lacks() -> None:
    def change(index: Any) -> None:
        del index["workspaces"]["ws_a"]["isActive"]

    assert of_workspaces(change) == [(Sort.STALE, "ws_a", "isActive is not in the index and true in the file")]


def test_rule_1_several_members_are_told_together_and_evidence_by_itself() -> None:
    change = entry("ws_a", created=1, isActive=None, traceCount=5)
    assert [each[0] for each in of_workspaces(change)] == [Sort.LOST, Sort.STALE]
    assert of_workspaces(change)[1][2] == (
        "created is 1 in the index and 1000 in the file; isActive is null in the index and true in the file"
    )


def test_rule_1_messages() -> None:
    def fewer(index: Any) -> None:
        index["conversations"]["c1"]["message_count"] = 0

    def more(index: Any) -> None:
        index["conversations"]["c1"].update(message_count=4, updated=9000)

    words = "message_count is 0 in the index and 1 in the file"
    assert of_conversations(fewer) == [(Sort.STALE, "c1", words)]
    assert [each[:2] for each in of_conversations(more)] == [(Sort.REPLACED, "c1"), (Sort.LOST, "c1")]


def without(*ids: str) -> Any:
    """An index without entries of some records, and without anything that leads to them."""

    def change(index: Any) -> None:
        block = index.get("workspaces") or index["conversations"]
        for id_ in ids:
            del block[id_]
        for name, part in index.items():
            if name.startswith("by") and name not in ("byFolder", "byDateRange"):
                index[name] = {
                    token: rest for token, each in part.items() if (rest := [i for i in each if i not in ids])
                }

    return change


def test_a_record_without_an_entry_is_told_once() -> None:
    assert of_workspaces(without("ws_a")) == [(Sort.UNINDEXED, "ws_a", 'no entry of ws_a ("Alpha notes")')]
    assert of_conversations(without("c2")) == [(Sort.UNINDEXED, "c2", 'no entry of c2 ("日本語")')]
    nameless = rebuild(Kind.WORKSPACE, [{"id": "ws_a"}], NOW)
    (only,) = compare(Kind.WORKSPACE, rebuild(Kind.WORKSPACE, [], NOW), nameless)
    assert only.words == "no entry of ws_a"


def test_words_at_which_the_program_throws() -> None:
    throws = 'the program could not index this: it throws at "constructor"'
    assert of_workspaces(without("ws_b")) == [
        (Sort.UNINDEXED, "ws_b", 'no entry of ws_b ("Constructor")'),
        (Sort.BREAKING, "ws_b", throws),
    ]
    both = rebuild(Kind.WORKSPACE, [workspace("ws_b", "constructor __proto__", description="constructor")], NOW)
    told = compare(Kind.WORKSPACE, rebuild(Kind.WORKSPACE, [], NOW), both)
    assert told[1].words == 'the program could not index this: it throws at "__proto__", "constructor"'


def test_rule_2_words_that_lead_nowhere_and_words_that_lead_here_still() -> None:
    def change(index: Any) -> None:
        del index["byName"]["alpha"]
        index["byName"]["notes"] = []
        index["byDescription"]["old"] = ["ws_a", 5]

    assert of_workspaces(change) == [
        (Sort.MISSING, "ws_a", 'byName lacks "alpha", "notes"'),
        (Sort.STALE_TOKEN, "ws_a", 'byDescription still has "old"'),
    ]


def test_rule_2_a_long_list_is_cut() -> None:
    def change(index: Any) -> None:
        index["byTitle"] |= {f"word{number}": ["c1"] for number in range(20)}

    ((_, _, words),) = of_conversations(change)
    assert words.endswith('"word7" and 12 more')


def test_rule_3_folders() -> None:
    def gone(index: Any) -> None:
        del index["byFolder"]["A"]

    def moved(index: Any) -> None:
        index["byFolder"] |= {"Old": "ws_a", "Older": "ws_a", "A": "ws_b"}

    assert of_workspaces(gone) == [(Sort.MISSING, "ws_a", 'byFolder lacks "A"')]
    assert of_workspaces(moved) == [
        (Sort.STALE_TOKEN, "ws_a", 'byFolder still has "Old", "Older"'),
        (Sort.STALE_TOKEN, "ws_b", 'byFolder still has "A"'),
    ]


SESSIONS = [
    ({"ws_a": ["s1", "s1"]}, []),
    ({"ws_a": []}, [(Sort.STALE, "ws_a", 'sessionsByWorkspace lacks "s1"')]),
    (
        {"ws_a": ["s1", "s7", "s8"]},
        [(Sort.LOST, "ws_a", 'the index knows of sessions that the file lacks: "s7", "s8"')],
    ),
]


@pytest.mark.parametrize(("sessions", "expected"), SESSIONS)
def test_rule_4_sessions_as_sets(sessions: Any, expected: list[tuple[Sort, str, str]]) -> None:
    assert of_workspaces(lambda index: index["sessionsByWorkspace"].update(sessions)) == expected


def test_rule_4_a_workspace_without_its_list() -> None:
    def neither(index: Any) -> None:
        index["sessionsByWorkspace"] = {}

    assert of_workspaces(neither) == [
        (Sort.STALE, "ws_a", 'sessionsByWorkspace lacks "s1"'),
        (Sort.STALE, "ws_b", "sessionsByWorkspace lacks the workspace"),
    ]


def test_ghosts_are_told_once_with_all_that_leads_to_them() -> None:
    def haunted(index: Any) -> None:
        index["workspaces"]["gone"] = {}
        index["byName"]["alpha"].append("gone")
        index["byFolder"]["G"] = "gone"
        index["sessionsByWorkspace"]["gone"] = []
        index["byDescription"]["odd"] = [["no id"]]

    words = "workspaces, byName, byFolder, sessionsByWorkspace lead to gone, which has no file"
    assert of_workspaces(haunted) == [(Sort.GHOST, "gone", words)]
    assert of_workspaces(haunted, unread=frozenset({"gone"})) == [], "its file is there, and can't be read"


@pytest.mark.parametrize("ranges", [None, [], [5], [{}], [{"conversationIds": 7}], [{"conversationIds": ["c1"]}]])
def test_rule_5_ranges_of_dates_are_not_compared(ranges: Any) -> None:
    assert of_conversations(lambda index: index.update(byDateRange=ranges)) == []


def test_rule_5_but_their_ids_must_exist() -> None:
    change = {"byDateRange": [{"start": 0, "end": 1, "conversationIds": ["c1", "gone"]}]}
    words = "byDateRange leads to gone, which has no file"
    assert of_conversations(lambda index: index.update(change)) == [(Sort.GHOST, "gone", words)]


SHAPES = [
    ([], "a JSON array"),
    ({}, "no workspaces"),
    ({"workspaces": 1}, "a number as workspaces"),
    ({"workspaces": {}, "byName": {}, "byDescription": {}}, "no byFolder"),
    ({"workspaces": {}, "byName": {}, "byDescription": {}, "byFolder": {}}, "no sessionsByWorkspace"),
    ({"workspaces": {"a": 1}}, None),
]


@pytest.mark.parametrize(("stored", "expected"), SHAPES)
def test_an_index_that_can_not_be_gone_through(stored: Any, expected: str | None) -> None:
    whole: dict[str, Any] = {
        name: {} for name in ("workspaces", "byName", "byDescription", "byFolder", "sessionsByWorkspace")
    }
    if expected is None:
        stored, expected = {**whole, **stored}, "something that is no object in workspaces"
    assert shape_problem(Kind.WORKSPACE, stored) == expected
    assert shape_problem(Kind.WORKSPACE, whole) is None
    odd = {**whole, "sessionsByWorkspace": {"a": {}}}
    assert shape_problem(Kind.WORKSPACE, odd) == "something that is no list in sessionsByWorkspace"
