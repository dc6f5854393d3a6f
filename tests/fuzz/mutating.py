"""Strategies: JSON that is nearly right, and texts of every kind."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True, slots=True)
class Raw:
    """What stands in the text as it is, whether it is JSON or not."""

    text: str


@dataclass(frozen=True, slots=True)
class Object:
    """An object whose keys may come twice."""

    pairs: tuple[tuple[str, Any], ...]


TIMES = (
    "2026-01-31 12:00:00.0", "2026-01-31T12:00:00Z", "2026-1-3 4:5:6", "2026-01-31 12:00:00.123456789123",
    "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", "9999-12-31 23:59:59.999999999", "10000-01-01 00:00:00.0",
    "2026-02-30 00:00:00.0", "2026-01-01T24:00:00Z", "2016-12-31T23:59:60Z", "1969-12-31t23:59:59.5z", "",
    "0000-00-00 00:00:00.0", "2026-01-31 12:00:00.0 ", "٢٠٢٦-01-31 12:00:00.0", "2026-01-31T12:00:00+23:59",
)  # fmt: skip
IDS = (
    "jp-c17528832001", "jp-c17528832001-ab1cd", "17528832001", "17528832001-a-title", "jp-c0", "jp-c92233720368",
    "jp-c92233720369", "jp-c00017528832001", "jp-c+1", "0", "00", "-1", "1-", "1-/../x", "..", ".", "a/b", "\0",
    "ROOT_A",
    "conversations", ".archive", "\u0661", "\udc80", "x" * 300, "jp-c" + "9" * 5000,
)  # fmt: skip
NUMBERS = (
    0, -1, 1, 17528832001, 92233720368, 92233720369, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64,
    10**400, -(10**400), 0.5, 1e308, -0.0,
)  # fmt: skip
FAR = (
    "NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1E400", "1e-999", "9" * 4300, "9" * 4301, "-" + "9" * 4300,
    "-" + "9" * 4301, "0." + "1" * 500,
)  # fmt: skip
DEEP = (
    "[" * 124 + "]" * 124, "[" * 125 + "]" * 125, "[" * 126 + "]" * 126, "[" * 127 + "]" * 127, "[" * 128 + "]" * 128,
    "[" * 990 + "]" * 990, '{"a":' * 126 + "1" + "}" * 126, "[" * 5000, '"' + "[" * 300 + '"', '"\\"' + "[" * 300 + '"',
)  # fmt: skip
ODD = (
    "01", "+1", ".5", "1.", "0x1", "1_0", '"\\ud800"', '"\\udc00\\ud800"', '"\\ud83d\\ude00"', '"\\ud800\\\\udc00"',
    '"\\u0000"', '"\x01"', '"\x7f"', '"\\x41"', '"\\u12"', '"', "'a'", "", "undefined", "[1,]", "{,}", '{"a":1,}',
    '{"a":1,"a":2}', '{"\\u0061":1,"a":2}', "1 // yes", "/* no */ 1", "True", "\ufeff1", "\x00", "\u20281",
)  # fmt: skip
BYTES = (
    b"\xef\xbb\xbf", b"\0", b"\0" * 512, b"\xff", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"\xe2\x82",
    b"\n", b" ",
    b"<<<<<<< HEAD\n", b"=======\n", b">>>>>>> a\n", b"}", b"]", b",", b'"', b"\\", b"\x1b[31m", b"\xe2\x80\xae",
)  # fmt: skip

UNICODE = st.text(st.characters(exclude_categories=()), max_size=80)
"""Every code point, halves of surrogate pairs too: what a name that is no UTF-8 brings."""
LEAVES: st.SearchStrategy[Any] = (
    st.sampled_from(NUMBERS)
    | st.integers()
    | st.floats().map(lambda number: Raw(json.dumps(number)))
    | st.sampled_from([None, True, False, "", [], {}, "\udc80", "store:", "workspace:../x", "store:a//b", "=="])
    | st.sampled_from(TIMES)
    | st.sampled_from(IDS)
    | UNICODE
    | st.sampled_from(ODD).map(Raw)
    | st.sampled_from(FAR).map(Raw)
    | st.sampled_from(DEEP).map(Raw)
)
STYLES: Sequence[dict[str, Any]] = (
    {"indent": 2, "ensure_ascii": False},
    {"indent": 2},
    {},
    {"separators": (",", ":"), "ensure_ascii": False},
)


def rendered(value: Any, ascii_only: bool = True) -> str:
    """Write what may be no JSON in the end: raw parts as they are, keys as often as they come."""
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, dict):
        value = Object(tuple(value.items()))
    if isinstance(value, Object):
        inner = ", ".join(f"{json.dumps(key, ensure_ascii=ascii_only)}: {rendered(each)}" for key, each in value.pairs)
        return "{" + inner + "}"
    if isinstance(value, list):
        return "[" + ", ".join(rendered(each, ascii_only) for each in value) + "]"
    return json.dumps(value, ensure_ascii=ascii_only)


def like(value: Any) -> st.SearchStrategy[Any]:
    """Return leaves, most of them of the value's own type: those get past the first check."""
    if isinstance(value, str):
        return (
            st.sampled_from((*TIMES, *IDS, "", "stream", "store:1-a", "workspace:1-a/x", "0" * 32, "QQ=="))
            | UNICODE
            | LEAVES
        )
    if isinstance(value, bool):
        return st.booleans() | LEAVES
    if isinstance(value, int):
        return st.sampled_from([number for number in NUMBERS if isinstance(number, int)]) | st.integers() | LEAVES
    return LEAVES


@st.composite
def changed(draw: st.DrawFn, value: Any, depth: int = 0) -> Any:
    """Change one place in a value: replace, take out, write twice, add or rename."""
    pairs = list(value.items()) if isinstance(value, dict) else list(value.pairs) if isinstance(value, Object) else None
    inner = value if isinstance(value, list) else pairs
    if not inner or (depth and draw(st.integers(0, 5)) == 0):
        return draw(like(value))
    after = list(inner)
    at = draw(st.integers(0, len(after) - 1))
    what = draw(st.sampled_from(("into", "into", "into", "into", "out", "twice", "add", "rename")))
    if what == "out":
        del after[at]
    elif what == "twice":
        after.insert(draw(st.integers(0, len(after))), after[at])
    elif pairs is None:
        after[at] = draw(changed(after[at], depth + 1))
    elif what == "add":
        after.insert(at, (draw(UNICODE), draw(LEAVES)))
    elif what == "rename":
        after[at] = (draw(UNICODE | st.sampled_from([key for key, _ in pairs])), after[at][1])
    else:
        after[at] = (after[at][0], draw(changed(after[at][1], depth + 1)))
    return after if pairs is None else Object(tuple(after))


@st.composite
def near(draw: st.DrawFn, seeds: Callable[[], Sequence[Any]]) -> bytes:
    """Bytes of one of these values, changed a little in its structure or in its text."""
    value = draw(st.sampled_from(seeds()))
    edits = draw(st.integers(0, 4))
    if not edits:
        text = json.dumps(value, **draw(st.sampled_from(STYLES)))
    else:
        for _ in range(edits):
            value = draw(changed(value))
        text = rendered(value, draw(st.booleans()))
    content = (text + draw(st.sampled_from(("\n", "", "\r\n", " ")))).encode("utf-8", "surrogatepass")
    for _ in range(draw(st.sampled_from((0, 0, 0, 1, 2)))):
        content = draw(damaged(content))
    return content


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """Cut bytes off, take some out, or put some in."""
    start = draw(st.integers(0, len(content)))
    end = draw(st.integers(start, min(len(content), start + 8)))
    what = draw(st.sampled_from(("put", "put", "put", "cut", "utf-16")))
    if what == "cut":
        return content[:start]
    if what == "utf-16":
        return content.decode(errors="replace").encode("utf-16")
    return content[:start] + draw(st.sampled_from(BYTES) | st.binary(max_size=4)) + content[end:]


def json_like(seeds: Callable[[], Sequence[Any]]) -> st.SearchStrategy[bytes]:
    """Return bytes near JSON such as the seeds, and at times bytes that are not."""
    return near(seeds) | near(seeds) | near(seeds) | st.binary(max_size=200)


@st.composite
def lines_like(draw: st.DrawFn, seeds: Callable[[], Sequence[str]], words: Sequence[str]) -> str:
    """Return a text whose lines, or the words in them, were exchanged, taken out or put in."""
    lines = draw(st.sampled_from(seeds())).split("\n")
    for _ in range(draw(st.integers(0, 5))):
        at = draw(st.integers(0, len(lines) - 1))
        parts = lines[at].split(" ")
        part = draw(st.integers(0, len(parts) - 1))
        what = draw(st.sampled_from(("word", "word", "word", "add", "text", "out", "line", "glue")))
        if what == "out":
            del parts[part]
        elif what == "text":
            parts[part] = draw(UNICODE)
        elif what == "glue":
            parts[part] += draw(st.text(max_size=3))
        else:
            parts[part : part + (what == "word")] = [draw(st.sampled_from(words))]
        lines[at : at + (what != "line")] = [" ".join(parts)]
    return "\n".join(lines)
