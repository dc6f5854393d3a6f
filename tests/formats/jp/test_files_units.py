"""Which file belongs to which unit: docs/concepts.md#conversations."""

from __future__ import annotations

import pytest

from reconcile.formats import get_format

UNITS = [
    ("the metadata", "metadata.json", "metadata"),
    ("the base configuration", "base_config.json", "stream"),
    ("the events", "events.json", "stream"),
    ("a note", "NOTE.md", "extra:NOTE.md"),
    ("a note in a directory", "notes/a.md", "extra:notes/a.md"),
    ("a managed name further down is an extra", "notes/metadata.json", "extra:notes/metadata.json"),
    ("a stream of 2025", "messages.json", "extra:messages.json"),
    ("the draft of a query", "QUERY_MESSAGE.md", "extra:QUERY_MESSAGE.md"),
    ("a backup that somebody keeps", "events.json.bak", "extra:events.json.bak"),
    ("another file with a number for a name", "49130", "extra:49130"),
    ("a directory whose name ends like a temporary file", "a.tmp/b", "extra:a.tmp/b"),
    ("a child's file", "conversations/17528832001/metadata.json", None),
    ("a plain file in the children's place", "conversations", None),
    ("the children's word further down", "notes/conversations", "extra:notes/conversations"),
    ("a hidden file", ".DS_Store", None),
    ("a file in a hidden directory", "a/.git/b", None),
    ("JP's temporary file", "events.json.tmp", None),
    ("vim's swap file", ".events.json.swp", None),
    ("vim's swap file without a dot", "events.json.swo", None),
    ("vim's backup", "events.json~", None),
    ("vim's test file", "4913", None),
    ("emacs' auto-save", "#events.json#", None),
    ("emacs' lock", ".#events.json", None),
    ("VS Code's temporary file", "events.json.vsctmp", None),
    ("JetBrains' temporary file", "events.json___jb_tmp___", None),
    ("JetBrains' old file", "notes/a.md___jb_old___", None),
]


@pytest.mark.parametrize("format_name", ["jp", "plain"])
@pytest.mark.parametrize(("name", "unit"), [row[1:] for row in UNITS], ids=[row[0] for row in UNITS])
def test_unit(format_name: str, name: str, unit: str | None) -> None:
    assert get_format(format_name).unit_of(name) == unit


def test_more_can_be_ignored_by_last_component_or_whole_name() -> None:
    jp = get_format("jp", ("*.bak", "drafts/*", "*.json"))
    assert jp.unit_of("notes/a.bak") is None
    assert jp.unit_of("drafts/x/y.md") is None
    assert jp.unit_of("other.json") is None
    assert jp.unit_of("NOTE.md") == "extra:NOTE.md"


def test_managed_files_are_managed_whatever_is_ignored() -> None:
    assert get_format("jp", ("*",)).unit_of("events.json") == "stream"


def test_the_base_configuration_is_replaced_first() -> None:
    jp = get_format("jp")
    assert jp.stream_files == ("base_config.json", "events.json")
    assert jp.metadata_file == "metadata.json"
    assert all(jp.unit_of(name) == "stream" for name in jp.stream_files)


def test_an_unknown_format_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        ValueError,
        match=r"unknown format 'json' \(choose from claude-code, claude-shared, claudesidian, jp, leslie, plain\)",
    ):
        get_format("json")
