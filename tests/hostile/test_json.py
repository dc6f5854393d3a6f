"""JSON that is meant to break its reader, in each of the three files, on each side: held in words, and never spread."""

from __future__ import annotations

import contextlib
import json
import time
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcile.formats.json import strict
from tests.support.projects.world import events, write_conversation

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.projects.world import World

pytestmark = pytest.mark.long

NUMBER = 17500000001
NAME = f"{NUMBER}-it"
EVENT = '{"timestamp": "2026-01-01T00:00:00Z", "type": "x", "bomb": %s}'
BASE = '{"a": %s}'
METADATA = '{"title": "It", "last_activated_at": "2026-01-01 00:00:00.0", "bomb": %s}'
DEEP = 100_000
BOMBS = {
    "deep arrays": "[" * DEEP + "]" * DEEP,
    "deep objects": '{"a":' * DEEP + "1" + "}" * DEEP,
    "deep and open": "[" * DEEP,
    "deep after a string": '"' + "\\\\" * 1000 + '\\"[[[" ,' + "[" * DEEP,
    "a huge integer": "9" * 100_000,
    "a huge negative integer": "-" + "9" * 100_000,
    "a number without end": "1e" + "9" * 1000,
    "a long fraction": "0." + "1" * 100_000,
    "NaN": "NaN",
    "-Infinity": "-Infinity",
    "a lone high surrogate": '"\\ud800"',
    "a lone low surrogate": '"\\udc00"',
    "a pair the wrong way round": '"\\udc00\\ud800"',
    "many keys twice": "{" + ",".join('"a":1' for _ in range(20_000)) + "}",
    "many keys of one hash": "{" + ",".join(f'"{"a" * at}": 1' for at in range(600)) + "}",
    "a control character": '"\x01"',
    "NUL": '"\\u0000"',
    "an escape that is none": '"\\x41"',
    "a comment": "1 // yes",
    "two values": "1} {",
    "half an escape": '"\\u12',
    "many escapes": '"' + "\\u0041" * 100_000 + '"',
    "many half escapes": '"' + "\\" * 100_001,
    "a wide character": '"' + "\U0001f600" * 1000 + '"',
}


def put(path: Path, text: str) -> None:
    path.write_bytes(text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_a_bomb_anywhere_is_held_or_copied_as_it_is(world: World, bomb: str) -> None:
    """Six conversations: each of the three files, broken here and broken in the store."""
    for at in range(6):
        write_conversation(world.workspace / f"{NUMBER + at}-it", "It", events(3))
    world.reconcile()
    for at in range(6):
        directory = (world.workspace, world.store)[at // 3] / f"{NUMBER + at}-it"
        name, text = (
            ("metadata.json", METADATA % bomb),
            ("base_config.json", BASE % bomb),
            ("events.json", f"[{EVENT % bomb}]"),
        )[at % 3]
        put(directory / name, text)
    bytes_of = {path: path.read_bytes() for side in (world.workspace, world.store) for path in side.rglob("*.json")}
    result = world.run("--workspace", world.project)
    assert result.exit_code in (0, 4), result.output[:2000]
    assert len(result.output) < 20_000
    for path, content in bytes_of.items():
        other = (
            (world.store if path.is_relative_to(world.workspace) else world.workspace) / path.parent.name / path.name
        )
        assert path.read_bytes() in (content, other.read_bytes())
    for words in (["status"], ["ls"], ["diff", str(NUMBER + 2)], ["diff", str(NUMBER)], ["status", str(NUMBER)]):
        result = world.run(*words, "--workspace", world.project)
        assert result.exit_code in (0, 4), result.output[:2000]
        assert len(result.output) < 20_000
    again = world.run("--workspace", world.project)
    assert again.exit_code in (0, 4)


BIG = 20_000_000
LONG = {
    "a long string": '"' + "a" * BIG + '"',
    "many brackets": "[" + "[],"[:3] * (BIG // 3) + "[]]",
    "many quotes": "[" + '"",' * (BIG // 3) + '""]',
    "many backslashes": '"' + "\\\\" * (BIG // 2) + '"',
    "many numbers": "[" + "1," * (BIG // 2) + "1]",
    "one open string": '"' + "a" * BIG,
    "open arrays": "[" * BIG,
    "lines": "\n" * BIG + "x",
    "conflict markers that are none": "<<<<<<\n" * (BIG // 7),
    "half surrogates": '"' + "\\ud800" * (BIG // 6) + '"',
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_twenty_megabytes_take_a_moment(text: str) -> None:
    """In time that grows with the length: a hundred megabytes take five times as long."""
    content = text.encode()
    begin = time.process_time()
    with contextlib.suppress(strict.InvalidContentError):
        strict.check_syntax(content)
    assert time.process_time() - begin < 10


@pytest.mark.parametrize("file", ["metadata.json", "events.json"])
def test_a_key_that_comes_twice_inside_counts_once(world: World, file: str) -> None:
    """What a reader makes of it depends on the reader: the bytes are copied as they are, or the file is held."""
    write_conversation(world.workspace / NAME, "It", events(3))
    twice = {"metadata.json": METADATA, "events.json": f"[{EVENT}]"}[file] % '{"a": 1, "a": 2}'
    put(world.workspace / NAME / file, twice)
    world.reconcile()
    assert (world.store / NAME / file).read_text() == twice


def test_a_hundred_thousand_small_events(world: World) -> None:
    stream = [{"timestamp": "2026-01-01T00:00:00Z", "type": "x"}] * 100_000
    write_conversation(world.workspace / NAME, "It", stream)
    path = world.workspace / NAME / "events.json"
    path.write_text(json.dumps(stream))
    world.reconcile()
    assert world.event_count(NUMBER) == 100_000


VALUES = st.recursive(
    st.none() | st.text(alphabet='[]{}"\\ab\n', max_size=6) | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet='[{"\\', max_size=3), inner, max_size=3)
    ),
)


def depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)


@given(VALUES, st.integers(1, 9) | st.just(1 << 20), st.integers(1, 6))
def test_the_depth_is_told_whatever_the_chunks_are(value: Any, chunk: int, limit: int) -> None:
    content = json.dumps([[value], value, "x" * 20]).encode()
    with mock.patch.object(strict, "_CHUNK", chunk), mock.patch.object(strict, "_NESTING", limit):
        if depth(json.loads(content)) > limit:
            with pytest.raises(strict.InvalidContentError):
                strict.check_nesting(content)
        else:
            strict.check_nesting(content)


@given(st.text(max_size=20), st.binary(max_size=3), st.text(max_size=20), st.integers(1, 9))
def test_what_is_no_text_is_told_whatever_the_chunks_are(one: str, odd: bytes, two: str, chunk: int) -> None:
    content = one.encode(errors="replace") + odd + two.encode(errors="replace")
    try:
        content.decode()
        valid = True
    except UnicodeDecodeError:
        valid = False
    with mock.patch.object(strict, "_CHUNK", chunk):
        if valid:
            strict.check_text(content)
        else:
            with pytest.raises(strict.InvalidContentError):
                strict.check_text(content)
