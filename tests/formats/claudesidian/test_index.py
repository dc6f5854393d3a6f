"""Both indexes: as the program derives them, and the rules by which a stored index is compared, in words.

The real rebuild of the program and a straightforward reference are the models. The rules are those of
docs/design/formats/claudesidian.md#comparison.
"""

from __future__ import annotations

import json
import random
import re
from typing import TYPE_CHECKING, Any

import pytest

from reconcile.formats.claudesidian.index import (
    Sort,
    compare,
    index_changes,
    rebuild,
    shape_problem,
    tokens,
    written,
)
from reconcile.formats.claudesidian.record_files import Item, Kind, in_order, is_listed, read_item
from reconcile.formats.json import javascript
from tests.support.formats.claudesidian import CORPUS, NOW, conversation, needs_corpus, session, workspace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


INTACT = ["job-search-2025-11", "job-search-2025-12"]


def records(kind: Kind, directory: Path, without: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """What the program's own rebuild goes through."""
    names = [name for name in in_order(file.name for file in directory.iterdir()) if is_listed(name)]
    read = [read_item(kind, name, (directory / name).read_bytes()) for name in names if name not in without]
    return [item.value for item in read if isinstance(item, Item)]


@needs_corpus
@pytest.mark.parametrize("kind", Kind)
def test_the_programs_real_rebuild_has_these_bytes(kind: Kind) -> None:
    expected = CORPUS / "index-drift" / "expected-real-rebuild-without-poison" / f"{kind}s-index.json"
    found = records(
        kind, CORPUS / "index-drift" / kind.directory, ("ws_ctor.json", ".trace-schema.json", "conv_x.json")
    )
    now = json.loads(expected.read_bytes())["lastUpdated"]
    assert javascript.stringify(rebuild(kind, found, now)) == expected.read_bytes()


@needs_corpus
@pytest.mark.parametrize("vault", INTACT)
@pytest.mark.parametrize("kind", Kind)
def test_an_intact_index_is_made_again_byte_by_byte(kind: Kind, vault: str) -> None:
    directory = CORPUS / vault / kind.directory
    stored = (directory / "index.json").read_bytes()
    index = rebuild(kind, records(kind, directory), json.loads(stored)["lastUpdated"], buckets=False)
    assert written(index, json.loads(stored)) == stored


TOKENS = {
    "letters with accents part a word": ("résumé naïve", ["sum"]),
    "Japanese makes none": ("日本語の会話", []),
    "nor does what is too short": ("AI 42 a_b", ["a_b"]),
    "a year does": ("Plan 2025 007", ["plan", "2025", "007"]),
    "an apostrophe parts": ("don't it's", ["don"]),
    "an underscore doesn't": ("foo_bar", ["foo_bar"]),
    "the Kelvin sign is a k": ("\u212aelvin", ["kelvin"]),
    "a dotted I leaves its dot behind": ("\u0130stanbul", ["stanbul"]),
    "what is no text": (None, []),
    "a number": (12345, []),
    "what has no width parts": ("foo\u200bbar", ["foo", "bar"]),
    "half of a surrogate pair": ("abc\ud800def", ["abc", "def"]),
}


@pytest.mark.parametrize(("text", "expected"), TOKENS.values(), ids=TOKENS)
def test_words(text: object, expected: list[str]) -> None:
    assert tokens(text) == expected


def reference_words(text: object) -> list[str]:
    """The program's own steps, one after the other."""
    if not text or not isinstance(text, str):
        return []
    return [word for word in re.split(r"\s+", re.sub(r"[^A-Za-z0-9_\s]", " ", text.lower())) if len(word) > 2]


def put(index: dict[str, list[str]], text: object, id_: str) -> None:
    for word in reference_words(text):
        if word not in index:
            index[word] = []
        if id_ not in index[word]:
            index[word].append(id_)


def by_index(value: object) -> object:
    """Keys as JavaScript has them, by sorting pairs."""
    if isinstance(value, list):
        return [by_index(each) for each in value]
    if not isinstance(value, dict):
        return value
    numbers = {key for key in value if re.fullmatch("0|[1-9][0-9]*", key, re.ASCII) and int(key) < 4294967295}
    ordered = [*sorted(numbers, key=int), *(key for key in value if key not in numbers)]
    return {key: by_index(value[key]) for key in ordered}


def reference(kind: Kind, found: list[dict[str, Any]], now: int) -> bytes:
    index: dict[str, Any]
    if kind is Kind.WORKSPACE:
        index = {"workspaces": {}, "byName": {}, "byDescription": {}, "byFolder": {}, "sessionsByWorkspace": {}}
        for record in found:
            copied = {name: value for name, value in record.items() if name not in ("context", "sessions")}
            copied["sessionCount"] = len(record["sessions"])
            copied["traceCount"] = sum(len(each["memoryTraces"]) for each in record["sessions"].values())
            index["workspaces"][record["id"]] = copied
            put(index["byName"], record["name"], record["id"])
            if record.get("description"):
                put(index["byDescription"], record["description"], record["id"])
            index["byFolder"][record["rootFolder"]] = record["id"]
            index["sessionsByWorkspace"][record["id"]] = list(by_index(record["sessions"]))  # type: ignore[call-overload]
    else:
        month = 30 * 24 * 3600 * 1000
        buckets: list[dict[str, Any]] = [
            {"start": now - (at + 1) * month, "end": now - at * month, "conversationIds": []} for at in range(12)
        ]
        index = {"conversations": {}, "byTitle": {}, "byContent": {}, "byVault": {}, "byDateRange": buckets}
        for record in found:
            index["conversations"][record["id"]] = {name: value for name, value in record.items() if name != "messages"}
            put(index["byTitle"], record["title"], record["id"])
            put(index["byVault"], record["vault_name"], record["id"])
            for message in record["messages"]:
                put(index["byContent"], message["content"], record["id"])
            for bucket in buckets:
                ids = bucket["conversationIds"]
                if bucket["start"] <= record["created"] < bucket["end"] and record["id"] not in ids:
                    ids.append(record["id"])
    index["lastUpdated"] = now
    return json.dumps(by_index(index), indent=2, ensure_ascii=False).encode("utf-8", "surrogatepass")


WORDS = [
    "résumé",
    "naïve",
    "日本語",
    "🎉abc🎉",
    "\u212aelvin",
    "\u0130STANBUL",
    "2025",
    "42",
    "007",
    "4294967295",
    "999",
]
WORDS += [
    "constructor",
    "__proto__",
    "don't",
    "foo_bar",
    "AI",
    "abc",
    "Abc",
    "zero\u200bwidth",
    "Straße",
    "ΣΑΣ",
    "a\tb\nc",
]
IDS = ["ws_a", "ws_b", "7", "42", "default", "0", "ws_c", "__proto__"]
REBUILT_AT = 1_795_293_649_227


def some_text(chance: random.Random) -> str:
    letters = "".join(chr(chance.choice([*range(32, 127), *range(0x80, 0x250), 0x212A, 0x1F389])) for _ in range(9))
    return " ".join([*chance.choices(WORDS, k=chance.randrange(4)), letters[: chance.randrange(9)]])


def some_time(chance: random.Random) -> int:
    return REBUILT_AT - chance.randrange(-5, 400 * 24 * 3600 * 1000)


def some_workspace(chance: random.Random) -> dict[str, Any]:
    value: dict[str, Any] = {"id": chance.choice(IDS), "name": some_text(chance)}
    if chance.random() < 0.6:
        value["description"] = chance.choice(["", some_text(chance)])
    value |= {"rootFolder": chance.choice(["/", "Notes", "a/ü", "12"]), "created": some_time(chance)}
    value["lastAccessed"] = some_time(chance)
    if chance.random() < 0.5:
        value["isActive"] = chance.random() < 0.5
    sessions = chance.sample([*IDS, "s-20251101090000"], k=chance.randrange(4))
    traces = [{key: {"content": "x"} for key in chance.sample(IDS, k=chance.randrange(3))} for _ in sessions]
    value["context"] = {"purpose": "x"}
    value["sessions"] = {id_: {"id": id_, "memoryTraces": each} for id_, each in zip(sessions, traces, strict=True)}
    return value


def some_conversation(chance: random.Random) -> dict[str, Any]:
    contents = [chance.choice([None, "", some_text(chance)]) for _ in range(chance.randrange(4))]
    return {
        "id": chance.choice(IDS),
        "title": some_text(chance),
        "created": some_time(chance),
        "updated": some_time(chance),
        "vault_name": some_text(chance),
        "message_count": chance.randrange(3),
        "messages": [{"content": content} for content in contents],
    }


@pytest.mark.parametrize(("kind", "some"), [(Kind.WORKSPACE, some_workspace), (Kind.CONVERSATION, some_conversation)])
def test_of_random_vaults_both_are_as_the_reference_has_them(
    kind: Kind, some: Callable[[random.Random], dict[str, Any]]
) -> None:
    for seed in range(400):
        chance = random.Random(seed)
        found = [some(chance) for _ in range(chance.randrange(6))]
        parsed = javascript.parse(json.dumps(found).encode())
        assert javascript.stringify(rebuild(kind, parsed, REBUILT_AT)) == reference(kind, found, REBUILT_AT), seed


def test_what_is_unknown_in_the_stored_index_is_kept() -> None:
    index = rebuild(Kind.CONVERSATION, [], 5, buckets=False)
    stored = {"lastUpdated": 1, "byMood": {"good": []}, "conversations": {"x": {}}}
    assert list(json.loads(written(index, stored))) == [*index, "byMood"]
    assert json.loads(written(index, stored))["lastUpdated"] == 5


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
        "lastAccessed is 2001 in the index and 2000 in the file, since an older copy replaced the file",
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
    throws = 'the program fails to index this, at "constructor"'
    assert of_workspaces(without("ws_b")) == [
        (Sort.UNINDEXED, "ws_b", 'no entry of ws_b ("Constructor")'),
        (Sort.BREAKING, "ws_b", throws),
    ]
    both = rebuild(Kind.WORKSPACE, [workspace("ws_b", "constructor __proto__", description="constructor")], NOW)
    told = compare(Kind.WORKSPACE, rebuild(Kind.WORKSPACE, [], NOW), both)
    assert told[1].words == 'the program fails to index this, at "__proto__", "constructor"'


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
        [(Sort.LOST, "ws_a", 'the index lists sessions that the file lacks: "s7", "s8"')],
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


def test_a_folder_that_leads_to_no_text_is_replaced() -> None:
    new = rebuild(Kind.WORKSPACE, [workspace("ws_a")], NOW)
    old = {**new, "byFolder": {"/": ["ws_a"], "Notes": ["ws_a"]}}
    assert index_changes(Kind.WORKSPACE, old, new, "") == (
        'byFolder "/": a JSON array → ws_a',
        'byFolder "Notes": a JSON array → none',
    )


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
        stored, expected = {**whole, **stored}, "a member of workspaces that is not an object"
    assert shape_problem(Kind.WORKSPACE, stored) == expected
    assert shape_problem(Kind.WORKSPACE, whole) is None
    odd = {**whole, "sessionsByWorkspace": {"a": {}}}
    assert shape_problem(Kind.WORKSPACE, odd) == "a member of sessionsByWorkspace that is not a list"
