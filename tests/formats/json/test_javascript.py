"""JSON as JavaScript reads and writes it; compared with node itself where that is installed."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconcile.formats.json import javascript
from reconcile.formats.json.strict import InvalidContentError

NODE = shutil.which("node")
ECHO = """
const lines = require("fs").readFileSync(0, "utf-8").split("\\n").filter(line => line);
for (const line of lines) console.log(JSON.stringify(JSON.stringify(JSON.parse(JSON.parse(line)), null, 2)));
"""

NUMBERS = [
    ("1.0", "1"),
    ("-0", "0"),
    ("-0.0", "0"),
    ("1e21", "1e+21"),
    ("1e20", "100000000000000000000"),
    ("123456789012345678901", "123456789012345680000"),
    ("9007199254740993", "9007199254740992"),
    ("-9007199254740993", "-9007199254740992"),
    ("0.000001", "0.000001"),
    ("1e-7", "1e-7"),
    ("-1.5e-10", "-1.5e-10"),
    ("5e-324", "5e-324"),
    ("1.7976931348623157e308", "1.7976931348623157e+308"),
    ("1e400", "null"),
    ("-1e400", "null"),
    ("0.30000000000000004", "0.30000000000000004"),
    ("12.50", "12.5"),
    ("1E+2", "100"),
]


@pytest.mark.parametrize(("read", "written"), NUMBERS)
def test_numbers(read: str, written: str) -> None:
    assert javascript.stringify(javascript.parse(read.encode())) == written.encode()


def test_whole_numbers_are_integers_in_either_spelling() -> None:
    found = javascript.parse(b"[1.0, 1, -0, 1e3, 1e16, 0.5]")
    assert [type(each) for each in found] == [int, int, int, int, float, float]


def test_an_integer_of_python_that_no_double_holds() -> None:
    assert javascript.stringify([2**53 + 1, 10**400]) == b"[\n  9007199254740992,\n  null\n]"


def test_indices_come_first_in_every_object() -> None:
    content = b'{"b": {"10": 1, "x": 2, "9": 3}, "4294967295": 1, "01": 2, "4294967294": 3, "0": 4, "-1": 5}'
    found = javascript.parse(content)
    assert list(found) == ["0", "4294967294", "b", "4294967295", "01", "-1"]
    assert list(found["b"]) == ["9", "10", "x"]
    assert javascript.stringify({"x": 1, "2": 2, "1": 3}) == b'{\n  "1": 3,\n  "2": 2,\n  "x": 1\n}'


def test_a_key_twice() -> None:
    assert list(javascript.parse(b'{"a": 1, "b": 2, "a": 3}').items()) == [("a", 3), ("b", 2)]


@pytest.mark.parametrize(
    ("read", "written"),
    [
        (r'"\ud800"', r'"\ud800"'),
        (r'"\uDC00\uD83D\uDE00"', '"\\udc00\N{GRINNING FACE}"'),
        (r'"\u00e9\/\u007f\u2028"', '"é/\x7f\u2028"'),
        (r'"\u0001\b\f\n\r\t\"\\"', r'"\u0001\b\f\n\r\t\"\\"'),
    ],
)
def test_texts(read: str, written: str) -> None:
    assert javascript.stringify(javascript.parse(read.encode())) == written.encode()


def test_two_halves_in_one_text_are_a_character() -> None:
    assert javascript.stringify("\ud83d" + "\ude00") == '"\N{GRINNING FACE}"'.encode()


def test_halves_in_a_key() -> None:
    assert javascript.stringify({"\ud800": True}) == b'{\n  "\\ud800": true\n}'


def test_empty_containers() -> None:
    assert javascript.stringify({"a": [], "b": {}, "c": [[]]}) == b'{\n  "a": [],\n  "b": {},\n  "c": [\n    []\n  ]\n}'


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "an empty file"),
        (b"\xef\xbb\xbf{}", "a byte order mark"),
        (b"[NaN]", "invalid JSON in line 1: NaN"),
        (b"[-Infinity]", "invalid JSON in line 1: -Infinity"),
        (b'{"a": 1', "a truncated file, which ends inside a value in line 1"),
        (b'["\xff"]', "invalid UTF-8 in line 1"),
        (b"{}\n<<<<<<< HEAD\n", "a git conflict marker in line 2"),
        (b"[1,]", "invalid JSON in line 1 column 3: trailing comma in array"),
        (b"[" * 128 + b"]" * 128, "JSON nested more than 127 levels deep"),
        (b"[" * 1_000_000 + b"]" * 1_000_000, "JSON nested more than 127 levels deep"),
        (b"[" * 1_000_000, "JSON nested more than 127 levels deep"),
    ],
)
def test_what_is_no_json(content: bytes, found: str) -> None:
    with pytest.raises(InvalidContentError) as error:
        javascript.parse(content)
    assert error.value.found == found


def test_writing_has_no_limit_of_depth() -> None:
    value: Any = []
    for _ in range(3_000):
        value = [value]
    assert javascript.stringify(value).count(b"[") == 3_001


def test_what_is_no_value_of_json() -> None:
    with pytest.raises(TypeError, match="no JSON"):
        javascript.stringify([b"bytes"])


KEYS = st.text(max_size=6) | st.integers(0, 2**33).map(str) | st.sampled_from(["__proto__", "constructor", "00", "1.5"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=30,
)


@given(VALUES)
def test_what_was_written_is_read_and_written_the_same(value: object) -> None:
    written = javascript.stringify(value)
    read = javascript.parse(written)
    assert javascript.stringify(read) == written
    assert javascript.parse(json.dumps(value).encode()) == read


SIMPLE = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text("ab_é", max_size=3), inner, max_size=5),
    max_leaves=30,
)


@given(SIMPLE)
def test_where_the_languages_agree_it_is_python_s_text(value: object) -> None:
    assert javascript.stringify(value).decode() == json.dumps(value, indent=2, ensure_ascii=False)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_no_digit_of_a_number_is_lost(value: float) -> None:
    assert float(javascript.number(value)) == value


@pytest.mark.skipif(NODE is None, reason="node is not installed")
@settings(max_examples=8)
@given(st.lists(VALUES | st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=60))
@example(json.loads("[" + ", ".join(read for read, _ in NUMBERS if "400" not in read) + "]"))
@example(["\ud800", {"\udc00": "\ud83d\ude00"}, {"2": 1, "10": {"1": 1, "a": 2, "0": 3}, "4294967295": 0, "9": 2}])
def test_node_writes_the_same(values: list[object]) -> None:
    assert NODE is not None
    texts = [json.dumps(value) for value in values]
    ran = subprocess.run(
        [NODE, "-e", ECHO], input="\n".join(map(json.dumps, texts)), capture_output=True, check=True, encoding="utf-8"
    )
    expected = [json.loads(line).encode() for line in ran.stdout.split("\n") if line]
    assert [javascript.stringify(javascript.parse(text.encode())) for text in texts] == expected
