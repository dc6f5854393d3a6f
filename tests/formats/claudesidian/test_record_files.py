"""Which files are records, and which of them are valid."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reconcile.formats.claudesidian.record_files import (
    Item,
    Kind,
    in_order,
    is_item,
    is_listed,
    listed_id,
    messages_of,
    payload_of,
    read_item,
    sessions_of,
    states_of,
    traces_of,
)
from reconcile.model.snapshot import Fault
from tests.support.formats.claudesidian import CORPUS, needs_corpus

NAMES = [
    # name, for reconcile, for the program's listing
    ("ws_a.json", True, True),
    ("default.json", True, True),
    ("index.json", False, False),
    ("my-index.json", True, False),
    (".trace-schema.json", False, True),
    ("ws_b (conflict).json", True, True),
    ("ws_a.json.bak", False, False),
    ("backups", False, False),
    ("a.json.json", True, True),
    ("a.json-b.json", True, False),
]


@pytest.mark.parametrize(("name", "item", "listed"), NAMES, ids=[row[0] for row in NAMES])
def test_names(name: str, item: bool, listed: bool) -> None:
    assert (is_item(name), is_listed(name)) == (item, listed)


def test_the_listed_id_lacks_the_first_json() -> None:
    assert listed_id("a.json-b.json") == "a-b.json"


def test_the_order_is_that_of_utf_16() -> None:
    assert in_order(["\uff5e.json", "\U0001f389.json", "b.json", "a.json"]) == [
        "a.json",
        "b.json",
        "\U0001f389.json",
        "\uff5e.json",
    ]


def read(kind: Kind, value: object) -> Item | Fault:
    return read_item(kind, "x.json", json.dumps(value).encode())


FAULTS = [
    (Kind.WORKSPACE, [], "a JSON array", "the JSON object of a workspace"),
    (Kind.WORKSPACE, {}, "no id", "a text"),
    (Kind.WORKSPACE, {"id": 7}, "a number as id", "a text"),
    (Kind.WORKSPACE, {"id": "w", "sessions": []}, "a JSON array as sessions", "a JSON object"),
    (Kind.WORKSPACE, {"id": "w", "sessions": {"s": 1}}, "a number in sessions", "JSON objects"),
    (
        Kind.WORKSPACE,
        {"id": "w", "sessions": {"s": {"states": 1}}},
        'a number as states of session "s"',
        "a JSON object",
    ),
    (Kind.CONVERSATION, {"id": "c", "messages": {}}, "a JSON object as messages", "a JSON array"),
    (Kind.CONVERSATION, {"id": "c", "messages": ["x"]}, 'the text "x" in messages', "JSON objects"),
]


@pytest.mark.parametrize(("kind", "value", "found", "expected"), FAULTS, ids=[row[2] for row in FAULTS])
def test_what_the_program_could_not_go_through(kind: Kind, value: object, found: str, expected: str) -> None:
    assert read(kind, value) == Fault("x.json", found, expected)


def test_torn_content_says_so() -> None:
    fault = read_item(Kind.WORKSPACE, "x.json", b'{"id": "w", "na')
    assert isinstance(fault, Fault)
    assert "truncated" in fault.found


@pytest.mark.parametrize("lacking", [{"id": "w"}, {"id": "w", "sessions": None}])
def test_missing_sessions_are_none(lacking: dict[str, Any]) -> None:
    item = read(Kind.WORKSPACE, lacking)
    assert isinstance(item, Item)
    assert sessions_of(item.value) == {}
    assert (traces_of({"id": "s"}), states_of({"memoryTraces": {}})) == ({}, {})
    conversation = read(Kind.CONVERSATION, {"id": "c"})
    assert isinstance(conversation, Item)
    assert messages_of(conversation.value) == []


def test_both_spellings_of_a_state_are_read() -> None:
    assert payload_of({"snapshot": {"a": 1}}) == {"a": 1}
    assert payload_of({"state": {"b": 1}}) == {"b": 1}
    assert payload_of({"id": "state_1"}) is None


def test_an_item_knows_its_place() -> None:
    item = read(Kind.WORKSPACE, {"id": "w"})
    assert isinstance(item, Item)
    assert (item.path, item.is_named_by_id) == (".workspaces/x.json", False)


@needs_corpus
def test_of_the_corpus_all_records_but_the_torn_one_are_valid() -> None:
    found = {
        str(file): read_item(kind, file.name, file.read_bytes())
        for kind in Kind
        for file in CORPUS.glob(f"*/{kind.directory}/*")
        if is_item(file.name)
    }
    assert len(found) == 20
    assert [item.file for item in found.values() if isinstance(item, Fault)] == ["conv_z.json"]
