"""metadata.json: what is valid, what it says, how its parent is edited (docs/design/formats/jp.md#metadata).

"edge N" is the heading of that number, such as docs/design/formats/jp.md#edge-case-41.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcile.formats import get_format
from reconcile.formats.jp.files import serialised
from reconcile.formats.jp.format import GREATEST_ID_NUMBER
from reconcile.model.snapshot import Fault, Metadata, ParentKind, ParentRef

JP = get_format("jp")
TIME = "2026-01-31 12:00:00.0"
AT = b'"last_activated_at": "2026-01-31 12:00:00.0"'
P = "jp-c17528832001"


def written(value: object) -> bytes:
    """The bytes that JP writes."""
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def read(content: bytes) -> Metadata:
    metadata = JP.read_metadata(content)
    assert isinstance(metadata, Metadata), metadata
    assert metadata.content == content
    return metadata


VALID: list[tuple[str, bytes, str | None]] = [
    ("the least there can be", b"{%s}" % AT, None),
    ("a title", b'{"title": "A", %s}' % AT, "A"),
    ("an empty title is a title", b'{"title": "", %s}' % AT, ""),
    ("edge 43: a null title is none", b'{"title": null, %s}' % AT, None),
    ("edge 44: no labels, a time of RFC 3339", b'{"last_activated_at": "2026-01-31T13:00:00+01:00"}', None),
    ("edge 44: labels unsorted", b'{"labels": {"b": "", "a": "1"}, %s}' % AT, None),
    (
        "edge 42: keys that JP does not know",
        b'{"hidden": true, "x": {"y": [1e5, -0, 18446744073709551616]}, %s}' % AT,
        None,
    ),
    ("keys of 2025", b'{"context": {}, "config": {}, "private": false, "ephemeral": true, %s}' % AT, None),
    ("a pair of surrogates", rb'{"title": "\ud83d\ude00", %s}' % AT, "\U0001f600"),
    ("a backslash before what looks like a surrogate", rb'{"title": "\\ud800", %s}' % AT, r"\ud800"),
    ("no white space, or much of it", b" {%s}\r\n\t\n" % AT, None),
    ("a key twice further down", b'{"labels": {"a": "1", "a": "2"}, %s}' % AT, None),
    ("as deep as JP reads", b'{"a": ' + b"[" * 126 + b"]" * 126 + b", %s}" % AT, None),
    ("many brackets in a text", b'{"title": "' + b"[{" * 200 + b'\\"", %s}' % AT, "[{" * 200 + '"'),
]


@pytest.mark.parametrize(("content", "title"), [row[1:] for row in VALID], ids=[row[0] for row in VALID])
def test_valid(content: bytes, title: str | None) -> None:
    assert read(content).title == title


OBJECT, ACTIVATED = "a JSON object", "a time such as 2026-01-31 12:00:00.0"
INVALID: list[tuple[str, bytes, str, str]] = [
    ("empty", b"", "an empty file", OBJECT),
    ("white space", b" \n", "only white space", OBJECT),
    ("only NUL bytes", b"\0" * 90, "only NUL bytes", OBJECT),
    ("padded with NUL bytes", b"{%s}\n" % AT + b"\0" * 9, "NUL bytes in line 2", OBJECT),
    (
        "truncated in a text",
        b'{\n  "title": "A',
        "a truncated file, which ends inside a value in line 2",
        OBJECT,
    ),
    (
        "truncated in a character",
        b'{"title": "\xc3',
        "a truncated file, which ends inside a value in line 1",
        OBJECT,
    ),
    (
        "merge markers",
        b'{\n  "title":\n<<<<<<< HEAD\n "a"\n=======\n "b"\n>>>>>>> x\n}',
        "a git conflict marker in line 3",
        OBJECT,
    ),
    (
        "merge markers, bytes that are not UTF-8",
        b"<<<<<<< \xff\n{}",
        "a git conflict marker in line 1",
        OBJECT,
    ),
    ("a byte order mark", b"\xef\xbb\xbf{%s}" % AT, "a byte order mark", OBJECT),
    ("UTF-16", "{}".encode("utf-16"), "UTF-16 text", OBJECT),
    (
        "bytes that are not UTF-8",
        b'{\n"title": "\xff", %s}' % AT,
        "invalid UTF-8 in line 2",
        OBJECT,
    ),
    (
        "a surrogate as bytes",
        b'{"title": "\xed\xa0\x80", %s}' % AT,
        "invalid UTF-8 in line 1",
        OBJECT,
    ),
    ("half of a pair", rb'{"title": "\ud800", %s}' % AT, "half of a surrogate pair in line 1", OBJECT),
    (
        "half of a pair at the end",
        b'{%s,\n"a": "\\\\\\ud800"}' % AT,
        "half of a surrogate pair in line 2",
        OBJECT,
    ),
    (
        "the second half of a pair",
        rb'{"title": "\uDC00", %s}' % AT,
        "half of a surrogate pair in line 1",
        OBJECT,
    ),
    ("NaN", b'{"a": NaN, %s}' % AT, "invalid JSON in line 1: NaN", OBJECT),
    ("minus infinity", b'{\n"a": -Infinity, %s}' % AT, "invalid JSON in line 2: -Infinity", OBJECT),
    (
        "a trailing comma",
        b'{\n  "a": 1,\n}',
        "invalid JSON in line 2 column 9: trailing comma in object",
        OBJECT,
    ),
    (
        "two values",
        b"{%s}{}" % AT,
        "invalid JSON in line 1 column 47: more text after the end of the value",
        OBJECT,
    ),
    ("a comment", b"// x\n{%s}" % AT, "invalid JSON in line 1 column 1: invalid character", OBJECT),
    (
        "a column counts characters",
        '{"é": 1 2}'.encode(),
        "invalid JSON in line 1 column 9: expected ',' or '}'",
        OBJECT,
    ),
    ("a key twice", b'{"title": "a", "title": "b", %s}' % AT, 'the key "title" twice', OBJECT),
    ("a number beyond any reader", b'{"a": 1e999, %s}' % AT, "a number that is out of range", OBJECT),
    (
        "an integer of 5000 digits",
        b'{"a": %s, %s}' % (b"9" * 5000, AT),
        "a number that is out of range",
        OBJECT,
    ),
    (
        "deeper than JP reads",
        b'{"a": ' + b"[" * 127 + b"]" * 127 + b", %s}" % AT,
        "JSON nested more than 127 levels deep",
        OBJECT,
    ),
    (
        "deeper than Python can",
        b"[" * 100_000 + b"]" * 100_000,
        "JSON nested more than 127 levels deep",
        OBJECT,
    ),
    ("deep and truncated", b'{"a":' * 100_000, "JSON nested more than 127 levels deep", OBJECT),
    ("edge 41: an array", b"[]", "a JSON array", OBJECT),
    (
        "JP's own reader takes an array in field order",
        b'["A", "2026-01-31 12:00:00.0"]',
        "a JSON array",
        OBJECT,
    ),
    ("a text", b'"' + b"x" * 50 + b'"', f'the text "{"x" * 39}…"', OBJECT),
    ("null", b"null", "null", OBJECT),
    ("true", b"true", "true", OBJECT),
    ("no activation", b'{"title": "A"}', "no last_activated_at", ACTIVATED),
    ("activation null", b'{"last_activated_at": null}', "null as last_activated_at", ACTIVATED),
    ("activation a number", b'{"last_activated_at": 17}', "a number as last_activated_at", ACTIVATED),
    (
        "activation garbage",
        b'{"last_activated_at": "no\\nw"}',
        r'the text "no\nw" as last_activated_at',
        ACTIVATED,
    ),
]


@pytest.mark.parametrize(
    ("content", "found", "expected"), [row[1:] for row in INVALID], ids=[row[0] for row in INVALID]
)
def test_invalid(content: bytes, found: str, expected: str) -> None:
    assert JP.read_metadata(content) == Fault("metadata.json", found, expected)


def test_what_jp_refuses_beyond_level_1_is_valid_here() -> None:
    # edge 43: null labels are a load error in JP, and no part of the validity that decides what is written
    assert read(b'{"labels": null, "title": 5, %s}' % AT).title is None


@pytest.mark.parametrize(("value", "local"), [("true", True), ("false", False), ("null", False), ("1", False)])
def test_only_a_legacy_true_means_local(value: str, local: bool) -> None:
    assert read(b'{"local": %s, %s}' % (value.encode(), AT)).local is local


def test_no_key_means_not_local() -> None:
    assert read(b"{%s}" % AT).local is False


UNREADABLE = ParentRef(ParentKind.UNREADABLE)
PARENTS: list[tuple[str, str, ParentRef]] = [
    ("a JSON integer", "17528832001", ParentRef(ParentKind.ID, P)),
    ("the canonical text", '"jp-c17528832001"', ParentRef(ParentKind.ID, P)),
    ("edge 14: with a workspace suffix", '"jp-c17528832001-otvo8"', ParentRef(ParentKind.ID, P)),
    ("a bare decimal text", '"17528832001"', ParentRef(ParentKind.ID, P)),
    ("null", "null", ParentRef(ParentKind.ROOT)),
    ("a directory name", '"17528832001-title"', UNREADABLE),
    ("true is no number", "true", UNREADABLE),
    ("a float", "17528832001.0", UNREADABLE),
    ("out of range", "92233720369", UNREADABLE),
    ("negative", "-1", UNREADABLE),
    ("a text out of range", '"92233720369"', UNREADABLE),
    ("empty", '""', UNREADABLE),
    ("an array", '["jp-c17528832001"]', UNREADABLE),
]


@pytest.mark.parametrize(("value", "parent"), [row[1:] for row in PARENTS], ids=[row[0] for row in PARENTS])
def test_parent(value: str, parent: ParentRef) -> None:
    content = written({"last_activated_at": TIME, "parent_id": json.loads(value)})
    assert read(content).parent == parent
    if parent.kind is ParentKind.ID:
        assert JP.with_parent(content, P) == content  # an accepted spelling is left as it is


def test_edge_42_a_stripped_key_says_nothing() -> None:
    assert read(b"{%s}" % AT).parent == ParentRef(ParentKind.ABSENT)


def test_a_new_parent_goes_last_and_the_rest_stays() -> None:
    before = {"title": "É", "last_activated_at": TIME, "labels": {"b": "", "a": "\x01\x7f\u2028/"}}
    assert JP.with_parent(written(before), P) == written({**before, "parent_id": P})


def test_a_changed_parent_keeps_its_position() -> None:
    before = {"parent_id": 5, "title": "A", "last_activated_at": TIME}
    assert JP.with_parent(written(before), P) == written({**before, "parent_id": P})


def test_a_parent_taken_out_leaves_the_rest() -> None:
    before = {"title": "A", "parent_id": None, "last_activated_at": TIME}
    assert JP.with_parent(written(before), None) == written({"title": "A", "last_activated_at": TIME})


BASE = {"title": "A", "last_activated_at": TIME}
NOT_EDITABLE: list[tuple[str, bytes]] = [
    ("the final line feed is missing", written(BASE)[:-1]),
    ("another indent", (json.dumps(BASE, indent=4) + "\n").encode()),
    ("line ends of Windows", written(BASE).replace(b"\n", b"\r\n")),
    ("an escaped slash", written({**BASE, "a": "/"}).replace(b"/", rb"\/")),
    ("a float in another spelling", written({**BASE, "a": 1}).replace(b'"a": 1', b'"a": 1e16')),
    (
        "an integer that JP takes for a float",
        written({**BASE, "a": 1}).replace(b'"a": 1', b'"a": 18446744073709551616'),
    ),
    ("minus zero", written({**BASE, "a": 1}).replace(b'"a": 1', b'"a": -0')),
    ("a key twice further down", b'{\n  "a": {\n    "b": 1,\n    "b": 1\n  },\n  %s\n}\n' % AT),
    ("a key twice at the top", b'{\n  "title": "a",\n  "title": "a",\n  %s\n}\n' % AT),
    ("no JSON", b"<<<<<<< HEAD\n"),
    ("no object", b"[]\n"),
]


@pytest.mark.parametrize("content", [row[1] for row in NOT_EDITABLE], ids=[row[0] for row in NOT_EDITABLE])
def test_not_editable(content: bytes) -> None:
    assert JP.with_parent(content, P) is None


@pytest.mark.parametrize("number", [b"1e+16", b"1e-7", b"0.00001", b"-1.5e+300", b"-0.0"])
def test_a_float_as_jp_writes_it_is_no_obstacle(number: bytes) -> None:
    content = written({**BASE, "a": 1}).replace(b'"a": 1', b'"a": ' + number)
    edited = JP.with_parent(content, P)
    assert edited is not None
    assert b'"a": %s,\n' % number in edited


def test_what_states_the_parent_needs_no_edit_in_whatever_form() -> None:
    content = b'{"parent_id":"jp-c17528832001-otvo8",%s}' % AT
    assert JP.with_parent(content, P) == content
    assert JP.with_parent(b"{%s}" % AT, None) == b"{%s}" % AT


def test_a_fork_takes_the_keys_in_order_without_what_ended_with_its_source() -> None:
    source = {"x": 1, "title": "A", "pinned_at": TIME, "archived_at": TIME, "expires_at": TIME, **BASE}
    content = json.dumps(source).encode()
    fork = {"x": 1, "title": "[diverged] A", "last_activated_at": TIME, "parent_id": P}
    assert JP.forked_metadata(content, parent=P, title="[diverged] A") == written(fork)


def test_a_fork_of_an_untitled_source_is_titled_first_as_jp_writes_it() -> None:
    content = written({"parent_id": 7, "last_activated_at": TIME})
    fork = {"title": "T", "parent_id": P, "last_activated_at": TIME}
    assert JP.forked_metadata(content, parent=P, title="T") == written(fork)


def test_no_metadata_no_fork() -> None:
    with pytest.raises(ValueError, match="a JSON array"):
        JP.forked_metadata(b"[]", parent=P, title="T")


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=10,
)
OBJECTS = st.dictionaries(TEXT, JSON, max_size=5).map(
    lambda keys: {k: v for k, v in keys.items() if k != "parent_id"} | {"last_activated_at": TIME}
)
CONVERSATIONS = st.integers(min_value=0, max_value=GREATEST_ID_NUMBER).map(lambda number: f"jp-c{number}")


PLAIN = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0.5, -0.0, 1.0]) | st.text()


@given(st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_the_bytes_are_those_of_indented_json(value: Any) -> None:
    assert serialised([value]) == written([value])
    with pytest.raises(ValueError, match="JSON is malformed"):
        serialised([value, float("nan")])


@given(OBJECTS, CONVERSATIONS, CONVERSATIONS)
def test_a_parent_that_was_written_is_read_and_taken_out_again(value: dict[str, Any], one: str, two: str) -> None:
    content = serialised(value)
    first = JP.with_parent(content, one)
    assert first is not None
    assert read(first).parent == ParentRef(ParentKind.ID, one)
    second = JP.with_parent(first, two)
    assert second is not None
    assert read(second).parent == ParentRef(ParentKind.ID, two)
    assert JP.with_parent(second, None) == content


@given(OBJECTS, CONVERSATIONS, st.text(max_size=20), st.integers(min_value=0, max_value=4) | st.none())
def test_a_fork_of_valid_metadata_never_fails(
    value: dict[str, Any], parent: str, title: str, indent: int | None
) -> None:
    fork = read(JP.forked_metadata(json.dumps(value, indent=indent).encode(), parent=parent, title=title))
    assert fork.parent == ParentRef(ParentKind.ID, parent)
    assert fork.title == title.encode(errors="replace").decode()
    assert JP.with_parent(fork.content, parent) == fork.content


@given(st.binary(max_size=60) | TEXT.map(str.encode) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_metadata_or_a_fault(content: bytes) -> None:
    assert isinstance(JP.read_metadata(content), (Metadata, Fault))
    assert JP.with_parent(content, P) is None or isinstance(JP.read_metadata(content), (Metadata, Fault))
