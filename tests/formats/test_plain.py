"""The design texts' tree: the whole directory name is the id."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reconcile.formats import get_format
from reconcile.model.format import EventSelection, Summary
from reconcile.model.snapshot import Event, Fault, Metadata, ParentKind, ParentRef, Stream

if TYPE_CHECKING:
    from reconcile.model.format import Format

PLAIN: Format = get_format("plain")

NAMES = [
    ("the design texts' own", "ROOT_A", True),
    ("a name with spaces and dots", "my notes v1.2", True),
    ("a number", "17528832001", True),
    ("not ASCII", "会話", True),
    ("a hidden directory", ".archive", False),
    ("the children's directory", "conversations", False),
    ("a control character", "a\x07b", False),
    ("a newline at the end", "a\n", False),
    ("bytes that are not UTF-8", "a\udcff", False),
    ("a path", "a/b", False),
    ("empty", "", False),
]


@pytest.mark.parametrize(("name", "valid"), [row[1:] for row in NAMES], ids=[row[0] for row in NAMES])
def test_a_name_is_an_id(name: str, valid: bool) -> None:
    expected = name if valid else None
    assert PLAIN.id_of(name) == expected
    assert PLAIN.parse_id(name) == expected


PARENTS = [
    ("a name", b'"ROOT_A"', ParentRef(ParentKind.ID, "ROOT_A")),
    ("null", b"null", ParentRef(ParentKind.ROOT)),
    ("a number is no name", b"17528832001", ParentRef(ParentKind.UNREADABLE)),
    ("a hidden name", b'".trash"', ParentRef(ParentKind.UNREADABLE)),
]


@pytest.mark.parametrize(("value", "parent"), [row[1:] for row in PARENTS], ids=[row[0] for row in PARENTS])
def test_parent(value: bytes, parent: ParentRef) -> None:
    metadata = PLAIN.read_metadata(b'{"last_activated_at": "2026-01-31 12:00:00.0", "parent_id": ' + value + b"}")
    assert isinstance(metadata, Metadata)
    assert metadata.parent == parent


def test_the_parent_is_written_as_its_name() -> None:
    content = b'{\n  "last_activated_at": "2026-01-31 12:00:00.0"\n}\n'
    assert PLAIN.with_parent(content, "ROOT_A") == (
        b'{\n  "last_activated_at": "2026-01-31 12:00:00.0",\n  "parent_id": "ROOT_A"\n}\n'
    )


def test_the_title_does_not_name_the_directory() -> None:
    assert PLAIN.dirname("CHILD_B", "Some title") == "CHILD_B"


def test_the_smallest_id_is_by_name() -> None:
    assert sorted(["b", "a", "B"], key=PLAIN.order) == ["B", "a", "b"]


def test_a_new_id_is_a_free_name() -> None:
    now = 1_752_883_200_100_000_000
    assert PLAIN.new_id(now, ()) == "fork-17528832001"
    assert PLAIN.new_id(now, {"fork-17528832001"}) == "fork-17528832002"
    assert PLAIN.id_of(PLAIN.new_id(now, ())) is not None


def test_there_are_no_locks() -> None:
    assert PLAIN.lock_name("ROOT_A") is None
    assert PLAIN.name == "plain"


ODD = [b"", b"\xff", b"[1]", b'{"a"', b"<<<<<<< HEAD\n"]


@pytest.mark.parametrize("content", ODD)
def test_any_bytes_are_valid(content: bytes) -> None:
    metadata = PLAIN.read_metadata(content)
    assert isinstance(metadata, Metadata)
    assert (metadata.title, metadata.parent.kind, metadata.content) == (None, ParentKind.ABSENT, content)
    assert PLAIN.read_stream({"events.json": content}, events=True) == Stream(0, None, (Event("bytes", ""),))
    both = {"events.json": b"[]", "base_config.json": content}
    assert PLAIN.read_stream(both, events=False) == Stream(0, None, None)
    assert PLAIN.expires_ns(content) is None
    assert PLAIN.cut_stream({"events.json": content}, EventSelection(last=1)) == {"events.json": content}
    forked = PLAIN.read_metadata(PLAIN.forked_metadata(content, parent="ROOT_A", title="Title"))
    assert isinstance(forked, Metadata)
    assert (forked.title, forked.parent.id) == ("Title", "ROOT_A")
    whole, part = (PLAIN.summarise([content], events=events) for events in (True, False))
    assert (whole, part) == (Summary(0, None, None, (Event("bytes", ""),)), Summary(0, None, None, None))


def test_events_need_no_base_configuration() -> None:
    events = b'[{"timestamp": "2026-01-01T00:00:00Z", "type": "x"}]'
    found = PLAIN.read_stream({"events.json": events}, events=True)
    assert isinstance(found, Stream)
    assert (found.count, len(found.events or ())) == (1, 1)
    lacking = PLAIN.read_stream({"base_config.json": b"{}"}, events=True)
    assert isinstance(lacking, Fault)
    assert lacking.incomplete


def test_what_is_read_of_metadata_without_a_time() -> None:
    metadata = PLAIN.read_metadata(b'{"title": "T", "parent_id": "ROOT_A", "local": true}')
    assert isinstance(metadata, Metadata)
    assert (metadata.title, metadata.parent.id, metadata.local) == ("T", "ROOT_A", True)
    assert PLAIN.expires_ns(b'{"expires_at": "2026-01-31 12:00:00.0"}') is not None
