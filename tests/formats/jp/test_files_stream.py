"""The stream: what is valid, its count, its last time and E(x) (docs/design/formats/jp.md#stream).

"edge N" is the heading of that number, such as docs/design/formats/jp.md#edge-case-37.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcile.formats import get_format
from reconcile.model.snapshot import Fault, Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

JP = get_format("jp")
BASE, EVENTS = "base_config.json", "events.json"
EVENT = b'{"timestamp": "2026-01-31 12:00:00.0", "type": "turn_start"}'
DELTA = b'{"type": "config_delta", "timestamp": "2026-01-31 11:00:00.5", "delta": {}}'
TURN = "2026-01-31 12:00:00 turn_start"
BASE_DELTA = "2026-01-31 11:00:00.5 config_delta"


def array(*elements: bytes) -> bytes:
    return b"[" + b", ".join(elements) + b"]"


VALID: list[tuple[str, bytes | None, bytes, tuple[int, str | None, tuple[str, ...]]]] = [
    ("nothing yet", b"{}", b"[]", (0, None, ())),
    ("one event", b"{}", array(EVENT), (1, "2026-01-31 12:00:00.0", (TURN,))),
    (
        "edge 37: a legacy stream, its leading base counts but is no event",
        None,
        array(DELTA, EVENT),
        (2, "2026-01-31 12:00:00.0", (TURN,)),
    ),
    ("edge 37: nothing but the base", None, array(DELTA), (1, "2026-01-31 11:00:00.5", ())),
    (
        "edge 38: the base delta is still there beside the file: an ordinary delta",
        b"{}",
        array(DELTA, EVENT),
        (2, "2026-01-31 12:00:00.0", (BASE_DELTA, TURN)),
    ),
    (
        "a later delta is an event in either form",
        None,
        array(DELTA, EVENT, DELTA),
        (3, "2026-01-31 11:00:00.5", (TURN, BASE_DELTA)),
    ),
    (
        "edge 40: a time and a type of any kind",
        b"{}",
        b'[{"timestamp": 1, "type": null}]',
        (1, None, ("1 None",)),
    ),
    (
        "the last time cannot be read",
        b"{}",
        b'[{"timestamp": "yesterday", "type": "x"}]',
        (1, None, ("yesterday x",)),
    ),
    (
        "a type that JP does not know, a key twice, an escaped key",
        b"{}",
        rb'[{"timestamp": "2026-01-31 12:00:00.0", "\u0074ype": "new", "a": 1, "a": 2}]',
        (1, "2026-01-31 12:00:00.0", ("2026-01-31 12:00:00 new",)),
    ),
]


def contents(base: bytes | None, events: bytes | None) -> dict[str, bytes]:
    pairs = ((BASE, base), (EVENTS, events))
    return {name: content for name, content in pairs if content is not None}


@pytest.mark.parametrize(("base", "events", "found"), [row[1:] for row in VALID], ids=[row[0] for row in VALID])
def test_valid(base: bytes | None, events: bytes, found: tuple[int, str | None, tuple[str, ...]]) -> None:
    count, last, ids = found
    stream = JP.read_stream(contents(base, events), events=True)
    assert isinstance(stream, Stream)
    assert (stream.count, stream.last) == (count, last)
    assert stream.events is not None
    assert tuple(event.id for event in stream.events) == ids
    assert JP.read_stream(contents(base, events), events=False) == Stream(count, last)


def content_of(element: bytes) -> str:
    stream = JP.read_stream({BASE: b"{}", EVENTS: array(element)}, events=True)
    assert isinstance(stream, Stream)
    assert stream.events is not None
    return stream.events[0].content


SAID = b'{"timestamp": "2026-01-31 12:00:00.0", "type": "x", "content": "\xc3\xa9", "more": {"a": 1, "b": [2]}}'
SAYS = {
    "formatted in another way": (SAID.replace(b" ", b"").replace(b"3112", b"31 12"), True),
    "its keys in another order": (
        b'{"more": {"b": [2], "a": 1}, "content": "\xc3\xa9", "type": "x", "timestamp": "2026-01-31 12:00:00.0"}',
        True,
    ),
    "the text escaped": (SAID.replace(b"\xc3\xa9", rb"\u00e9"), True),
    "the time in another form": (SAID.replace(b"2026-01-31 12:00:00.0", b"2026-01-31T12:00:00Z"), True),
    "another text": (SAID.replace(b"\xc3\xa9", b"e"), False),
    "another value far inside": (SAID.replace(b"[2]", b"[3]"), False),
    "a key more": (SAID.replace(b'"more"', b'"metadata": {}, "more"'), False),
    "another type": (SAID.replace(b'"x"', b'"y"'), False),
    "a number that is out of range": (SAID.replace(b"[2]", b"[1e999]"), False),
    "an integer of many digits": (SAID.replace(b"[2]", b"[" + b"2" * 400 + b"]"), False),
}


@pytest.mark.parametrize(("other", "same"), SAYS.values(), ids=SAYS)
def test_an_event_says_the_same_however_it_is_written(other: bytes, same: bool) -> None:
    assert (content_of(SAID) == content_of(other)) is same
    assert content_of(other) == content_of(other)


def test_a_base_configuration_is_named_as_the_event_that_it_was() -> None:
    for value in (b"{}", b'{"a": {"b": 1, "c": 2}}', b'{"a": %s}' % (b"1" * 300)):
        delta = b'{"type": "config_delta", "timestamp": "2026-01-31 11:00:00.5", "delta": %s}' % value
        split, legacy, twice = (
            JP.read_stream(files, events=True)
            for files in (
                {BASE: value, EVENTS: array(EVENT)},
                {EVENTS: array(delta, EVENT)},
                {BASE: value.replace(b" ", b"\n"), EVENTS: array(delta, EVENT)},
            )
        )
        assert isinstance(split, Stream)
        assert isinstance(legacy, Stream)
        assert isinstance(twice, Stream)
        assert twice.events is not None
        assert split.base == legacy.base == twice.base == twice.events[0].content
        assert split.events == legacy.events == twice.events[1:]


def fault(file: str, found: str, *, incomplete: bool = False) -> Fault:
    expected = "a JSON object" if file == BASE else "an array of events, each with timestamp and type"
    return Fault(file, found, expected, incomplete=incomplete)


def skipped(value: bytes) -> bytes:
    """An array of one event with a value in a field that the check skips."""
    return b'[{"timestamp": "t", "type": "x", "a": %s}]' % value


DEEP = "JSON nested more than 127 levels deep"
INVALID: list[tuple[str, bytes | None, bytes, Fault]] = [
    ("edge 40: an object", b"{}", b"{}", fault(EVENTS, "a JSON object")),
    ("edge 40: an element without keys", b"{}", b"[{}]", fault(EVENTS, "no timestamp in event 1")),
    ("edge 40: an element that is a number", b"{}", b"[1]", fault(EVENTS, "a number as event 1")),
    ("edge 40: null", b"{}", b"null", fault(EVENTS, "null")),
    ("edge 40: an empty file", b"{}", b"", fault(EVENTS, "an empty file")),
    (
        "edge 40: a trailing comma",
        b"{}",
        b"[\n" + EVENT + b",\n]",
        fault(EVENTS, "invalid JSON in line 2 column 61: trailing comma in array"),
    ),
    (
        "edge 40: an element without type",
        b"{}",
        array(EVENT, b'{"timestamp": "t"}'),
        fault(EVENTS, "no type in event 2"),
    ),
    ("an element that is an array", b"{}", b'[["t", "x"]]', fault(EVENTS, "a JSON array as event 1")),
    ("merge markers", b"{}", b"[\n<<<<<<< HEAD\n]", fault(EVENTS, "a git conflict marker in line 2")),
    ("only NUL bytes", b"{}", b"\0" * 20_000, fault(EVENTS, "only NUL bytes")),
    (
        "truncated",
        b"{}",
        array(EVENT)[:-9],
        fault(EVENTS, "a truncated file, which ends inside a value in line 1"),
    ),
    (
        "broken JSON goes before an element of the wrong shape",
        b"{}",
        b"[1, NaN]",
        fault(EVENTS, "invalid JSON in line 1: NaN"),
    ),
    ("NaN where nobody looks", b"{}", skipped(b"NaN"), fault(EVENTS, "invalid JSON in line 1: NaN")),
    (
        "half of a surrogate pair where nobody looks",
        b"{}",
        skipped(rb'"\ud83d"'),
        fault(EVENTS, "half of a surrogate pair in line 1"),
    ),
    (
        "bytes that are not UTF-8 where nobody looks",
        b"{}",
        skipped(b'"\xff"'),
        fault(EVENTS, "invalid UTF-8 in line 1"),
    ),
    (
        "invalid UTF-8 in a type",
        b"{}",
        b'[{"timestamp": 1, "type": "\xff"}]',
        fault(EVENTS, "invalid UTF-8 in line 1"),
    ),
    ("deeper than JP reads", b"{}", skipped(b"[" * 126 + b"]" * 126), fault(EVENTS, DEEP)),
    ("deeper than Python can", b"{}", skipped(b"[" * 100_000 + b"]" * 100_000), fault(EVENTS, DEEP)),
    (
        "a time beyond any number",
        b"{}",
        b'[{"timestamp": 1e999, "type": "x"}]',
        fault(EVENTS, "a number that is out of range"),
    ),
    ("a base configuration that is an array", b"[]", array(EVENT), fault(BASE, "a JSON array")),
    ("a base configuration that is empty", b"", array(EVENT), fault(BASE, "an empty file")),
    ("a key twice in the base", b'{"a": 1, "a": 1}', array(EVENT), fault(BASE, 'the key "a" twice')),
]


@pytest.mark.parametrize(("base", "events", "expected"), [row[1:] for row in INVALID], ids=[row[0] for row in INVALID])
def test_invalid(base: bytes | None, events: bytes, expected: Fault) -> None:
    assert JP.read_stream(contents(base, events), events=False) == expected
    assert JP.read_stream(contents(base, events), events=True) == expected


BASES = [
    ("empty", b"{}", True),
    ("one key", b'{"a": 1}', True),
    (
        "commas and brackets in texts and further down",
        rb'{"a,[": "{,\\\",", "b": [1, {"c": 1, "c": 2}, []], "d": {}}',
        True,
    ),
    ("a key twice among others", b'{"a": [1, 2], "b": {}, "a": []}', False),
    ("a key twice in two spellings", rb'{"a": 1, "\u0061": 2}', False),
]


@pytest.mark.parametrize(("base", "valid"), [row[1:] for row in BASES], ids=[row[0] for row in BASES])
def test_base_configuration(base: bytes, valid: bool) -> None:
    assert isinstance(JP.read_stream(contents(base, b"[]"), events=False), Stream if valid else Fault)


BESIDE = "config_delta, as there is no base_config.json"
INCOMPLETE: list[tuple[str, bytes | None, bytes | None, Fault]] = [
    (
        "edge 20: no events",
        b"{}",
        None,
        Fault(EVENTS, "no such file", "an array of events", incomplete=True),
    ),
    ("edge 39: no base, no event", None, b"[]", Fault(EVENTS, "an empty array", BESIDE, incomplete=True)),
    (
        "edge 39: no base, a chat request first",
        None,
        b'[{"timestamp": 1, "type": "chat_request"}]',
        Fault(EVENTS, 'the text "chat_request" as type of the first event', BESIDE, incomplete=True),
    ),
]


@pytest.mark.parametrize(
    ("base", "events", "expected"), [row[1:] for row in INCOMPLETE], ids=[row[0] for row in INCOMPLETE]
)
def test_incomplete(base: bytes | None, events: bytes | None, expected: Fault) -> None:
    assert JP.read_stream(contents(base, events), events=False) == expected


def test_what_is_broken_goes_before_what_is_missing() -> None:
    assert JP.read_stream({BASE: b"{"}, events=False) == fault(
        BASE, "a truncated file, which ends inside a value in line 1"
    )
    assert JP.read_stream({EVENTS: b"[1]"}, events=False) == fault(EVENTS, "a number as event 1")


def test_as_deep_as_jp_reads() -> None:
    deep = skipped(b"[" * 125 + b"]" * 125)
    assert isinstance(JP.read_stream({BASE: b"{}", EVENTS: deep}, events=False), Stream)


@pytest.mark.parametrize("others", [1, 126, 127, 128, 300])
@pytest.mark.parametrize(("depth", "valid"), [(125, True), (126, False)])
def test_so_deep_beside_others(others: int, depth: int, valid: bool) -> None:
    deep = skipped(b"[" * depth + b"]" * depth)[1:-1]
    for elements in ([deep, *[EVENT] * others], [*[EVENT] * others, deep]):
        found = JP.read_stream({BASE: b"{}", EVENTS: array(*elements)}, events=False)
        assert (isinstance(found, Stream) and found.count == others + 1) if valid else found == fault(EVENTS, DEEP)


def test_both_forms_of_time_give_the_same_events() -> None:
    one = b'[{"timestamp": "2026-01-31 12:00:00.50", "type": "x"}]'
    two = b'[{"type": "x", "timestamp": "2026-01-31T13:00:00.5+01:00"}]'
    streams = [JP.read_stream({BASE: b"{}", EVENTS: content}, events=True) for content in (one, two)]
    assert all(isinstance(stream, Stream) for stream in streams)
    assert len({stream.events for stream in streams if isinstance(stream, Stream)}) == 1


def test_the_split_of_a_legacy_stream_keeps_its_events() -> None:
    legacy = JP.read_stream({EVENTS: array(DELTA, EVENT, EVENT)}, events=True)
    split = JP.read_stream({BASE: b"{}", EVENTS: array(EVENT, EVENT)}, events=True)
    assert isinstance(legacy, Stream)
    assert isinstance(split, Stream)
    assert legacy.events is not None
    assert legacy.events == split.events
    assert [event.id for event in legacy.events] == [TURN, TURN]
    assert legacy.base == split.base


def saying(*texts: str) -> list[dict[str, Any]]:
    """Return events named by their first letter, each with its text."""
    return [{"timestamp": f"2026-01-31 12:00:0{ord(text[0]) % 10}", "type": "x", "content": text} for text in texts]


def as_jp_writes(elements: Sequence[dict[str, Any]]) -> bytes:
    return (json.dumps(elements, indent=2, ensure_ascii=False) + "\n").encode()


UNITED = {
    "edited, and continued": ("ab! c", "abcde", "abc", "ab! cde"),
    "the last one edited": ("abc!", "abcd", "abc", "abc!d"),
    "one removed": ("ac", "abcd", "abc", "acd"),
    "one put in between": ("axbc", "abcd", "abc", "axbcd"),
    "the last one removed": ("ab", "abcd", "abc", None),
    "both have gone on": ("ab! cd", "abcde", "abc", None),
    "the other was edited too": ("ab! c", "a! bcd", "abc", None),
    "nothing was added": ("ab! c", "abc", "abc", None),
    "emptied": ("", "abc", "ab", None),
    "continued from nothing": ("", "abc", "", None),
    "the other emptied": ("ab!", "", "ab", None),
    "another one": ("xyz", "abcd", "abc", None),
    "an event that is there twice": ("a! bb", "abbc", "abb", "a! bbc"),
}


def read_texts(text: str) -> list[dict[str, Any]]:
    return saying(*re.findall(r"\w!?", text))


@pytest.mark.parametrize(("edited", "continued", "before", "merged"), UNITED.values(), ids=UNITED)
def test_an_edit_and_an_addition_are_united(edited: str, continued: str, before: str, merged: str | None) -> None:
    ours, theirs, was = (as_jp_writes(read_texts(text)) for text in (edited, continued, before))
    found = JP.merge_events(ours, theirs, was.__eq__)
    assert found == (None if merged is None else as_jp_writes(read_texts(merged)))


def test_what_is_united_keeps_the_bytes_of_both() -> None:
    """However each side is formatted; what was there before is known by the form of the side that goes on."""
    ours = b'[ {"type":"x","timestamp":"a"} ,\n\t{"timestamp":"b","type":"x","n":"}{\\"[,"}]'
    theirs = (
        b'[{"timestamp": "a", "type": "x", "z": {}},{"timestamp": "b", "type": "x"},\n {"type": 1, "timestamp": 2}\n]\n'
    )
    was = b'[{"timestamp": "a", "type": "x", "z": {}},{"timestamp": "b", "type": "x"}\n]\n'
    found = JP.merge_events(ours, theirs, was.__eq__)
    assert found == ours[:-1] + b',\n {"type": 1, "timestamp": 2}\n]\n'


@given(st.lists(st.text('xyz{}[]," \\\né', max_size=6), min_size=1, max_size=5), st.data())
def test_any_edit_and_any_addition_are_united(texts: Sequence[str], data: st.DataObject) -> None:
    before = [event | {"content": text} for event, text in zip(saying(*"abcde"), texts, strict=False)]
    edited = [
        event | {"content": data.draw(st.text("xyz{}[]", max_size=3))}
        for number, event in enumerate(before)
        if number == len(before) - 1 or data.draw(st.booleans())
    ]
    added = saying(*"fgh"[: data.draw(st.integers(1, 3))])
    found = JP.merge_events(
        as_jp_writes(edited), as_jp_writes([*before, *added]), lambda content: content == as_jp_writes(before)
    )
    assert found == as_jp_writes([*edited, *added])


def compact(elements: Sequence[dict[str, Any]]) -> bytes:
    return json.dumps(elements, ensure_ascii=False).encode()


BOTH = {
    "none reformatted": (as_jp_writes, as_jp_writes, as_jp_writes, True),
    "one reformatted": (as_jp_writes, compact, as_jp_writes, True),
    "the other reformatted": (compact, as_jp_writes, as_jp_writes, True),
    "both reformatted what JP wrote": (compact, compact, as_jp_writes, True),
    "one has what another program wrote": (as_jp_writes, compact, compact, True),
    "both reformatted what another program wrote": (as_jp_writes, as_jp_writes, compact, False),
}


@pytest.mark.parametrize(("form", "other_form", "form_before", "found"), BOTH.values(), ids=BOTH)
def test_two_continuations_are_found_in_another_form(
    form: Callable[[Any], bytes], other_form: Callable[[Any], bytes], form_before: Callable[[Any], bytes], found: bool
) -> None:
    was = form_before(read_texts("a b"))
    assert JP.both_continue(form(read_texts("a b c")), other_form(read_texts("a b c!")), was.__eq__) is found


@pytest.mark.parametrize("before", ["a", "a b c", "", "a b!"])
def test_an_edit_is_no_continuation_in_any_form(before: str) -> None:
    was = as_jp_writes(read_texts(before))
    assert not JP.both_continue(compact(read_texts("a b c")), as_jp_writes(read_texts("a b c!")), was.__eq__)


def test_streams_without_a_common_event_continue_nothing() -> None:
    assert not JP.both_continue(as_jp_writes(read_texts("a")), as_jp_writes(read_texts("a!")), lambda _: True)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NESTED = st.recursive(st.none() | TEXT, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=8)
LISTS = st.lists(st.fixed_dictionaries({"timestamp": TEXT, "type": TEXT, "content": NESTED}), max_size=6)


@given(LISTS, LISTS)
def test_a_continuation_has_the_events_of_what_it_continues(
    one: Sequence[dict[str, Any]], two: Sequence[dict[str, Any]]
) -> None:
    short, long = (
        JP.read_stream({BASE: b"{}", EVENTS: json.dumps(elements).encode()}, events=True)
        for elements in (one, [*one, *two])
    )
    assert isinstance(short, Stream)
    assert isinstance(long, Stream)
    assert short.events is not None
    assert long.events is not None
    assert long.events[: short.count] == short.events
    assert long.count == len(one) + len(two)


@given(LISTS, st.data())
def test_every_truncation_is_a_fault(elements: Sequence[dict[str, Any]], data: st.DataObject) -> None:
    content = json.dumps(elements, ensure_ascii=False).encode()
    cut = data.draw(st.integers(min_value=0, max_value=len(content) - 1))
    assert isinstance(JP.read_stream({BASE: b"{}", EVENTS: content[:cut]}, events=True), Fault)


@given(st.dictionaries(TEXT, NESTED), st.data())
def test_a_base_configuration_is_valid_until_a_key_comes_twice(base: dict[str, Any], data: st.DataObject) -> None:
    content = json.dumps(base, ensure_ascii=data.draw(st.booleans())).encode()
    assert JP.read_stream({BASE: content, EVENTS: b"[]"}, events=False) == Stream(0, None)
    if base:
        key = json.dumps(data.draw(st.sampled_from(sorted(base)))).encode()
        doubled = content[:-1] + b", " + key + b": 1}"
        assert isinstance(JP.read_stream({BASE: doubled, EVENTS: b"[]"}, events=False), Fault)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_stream_or_a_fault(content: bytes) -> None:
    assert isinstance(JP.read_stream({EVENTS: content}, events=True), (Stream, Fault))
    assert isinstance(JP.read_stream({BASE: content, EVENTS: b"[]"}, events=True), (Stream, Fault))
