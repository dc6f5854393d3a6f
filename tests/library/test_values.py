"""Values as JP stores them: the order of keys, base64, times, and real conversations written again byte for byte."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reconcile import InvalidValueError, Json, new_event, plain, timestamp
from reconcile.library.values import decode, encode, in_jp_order
from tests.support.library.conversations import directory, mutable, read
from tests.support.projects.three_conversations import FIRST
from tests.support.projects.world import CORPUS, NO_CORPUS

if TYPE_CHECKING:
    from reconcile import Workspace
    from tests.support.projects.world import World

FLOAT = (
    r"-?(0\.0|0\.0{0,4}[1-9][0-9]*|[1-9][0-9]{0,15}\.[0-9]+"
    r"|[1-9](\.[0-9]+)?e(-[1-9][0-9]*|\+(1[6-9]|[2-9][0-9]|[1-9][0-9]{2})))"
)
"""A float as JP writes it: an exponent below five places and from 17 digits on, with its sign and no zeros."""


@pytest.mark.parametrize(
    ("at_ns", "text"),
    [
        (1_700_000_000_000_000_000, "2023-11-14 22:13:20.0"),
        (1_700_000_000_500_000_000, "2023-11-14 22:13:20.5"),
        (1_700_000_000_000_000_001, "2023-11-14 22:13:20.000000001"),
    ],
)
def test_times_as_jp_writes_them(at_ns: int, text: str) -> None:
    assert timestamp(at_ns) == text


def test_events_as_jp_stores_them() -> None:
    request = new_event(
        "tool_call_request", id="x", name="grep", arguments={"a": ["text", 1, {"b": "é"}]}, metadata={"m": "y"}
    )
    assert list(request) == ["timestamp", "type", "id", "name", "arguments", "metadata"]
    assert request["arguments"] == {"a": ["dGV4dA==", 1, {"b": "w6k="}]}
    assert request["metadata"] == {"m": "eQ=="}
    assert plain(request)["arguments"] == {"a": ["text", 1, {"b": "é"}]}
    response = new_event("tool_call_response", id="x", content="ok", is_error=False)
    assert (response["content"], plain(response)["content"]) == ("b2s=", "ok")
    assert new_event("chat_request", content="ok")["content"] == "ok"
    assert list(new_event("config_delta", delta={"a": "b"})) == ["type", "timestamp", "delta"]
    assert new_event("config_delta", delta={"a": "b"})["delta"] == {"a": "b"}


def test_what_is_no_base64_stays() -> None:
    assert plain({"type": "tool_call_response", "content": "by hand"})["content"] == "by hand"


@pytest.mark.parametrize(
    ("before", "after", "keys"),
    [
        ("last_activated_at parent_id", "last_activated_at parent_id title", "title last_activated_at parent_id"),
        ("zzz last_activated_at title", "zzz last_activated_at title", "zzz last_activated_at title"),
        ("title last_activated_at zzz", "title last_activated_at zzz labels", "title last_activated_at labels zzz"),
    ],
)
def test_keys_come_where_jp_writes_them(before: str, after: str, keys: str) -> None:
    def made(names: str) -> dict[str, Json]:
        return {name: {"b": "", "a": ""} if name == "labels" else "x" for name in names.split()}

    ordered = in_jp_order(made(after), made(before))
    assert list(ordered) == keys.split()
    if isinstance(labels := ordered.get("labels"), dict):
        assert list(labels) == ["a", "b"]


def test_a_first_title_comes_first(world: World, workspace: Workspace) -> None:
    with mutable(workspace) as mut:
        mut.update_metadata(lambda metadata: metadata.pop("title"))
        mut.flush()
        mut.update_metadata(lambda metadata: metadata.update(title="Again"))
    assert list(read(directory(world.workspace, FIRST) / "metadata.json"))[:2] == ["title", "last_activated_at"]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0001, "0.0001"), (0.00001, "0.00001"), (-0.0000123, "-0.0000123"), (1e-6, "1e-6"), (-1.5e-7, "-1.5e-7"),
        (5e-324, "5e-324"), (1e15, "1000000000000000.0"), (1e16, "1e+16"), (1.25e22, "1.25e+22"), (-0.0, "-0.0"),
        (2**64 - 1, "18446744073709551615"), (2**64, "1.8446744073709552e+19"), (10**20, "1e+20"),
        (-(2**63), "-9223372036854775808"), (-(2**63) - 1, "-9.223372036854776e+18"), (10**308, "1e+308"),
        (288376031888403322737101196458818177577, "2.883760318884033e+38"), (2**53 + 1, "9007199254740993"),
        ("x 1e-07", '"x 1e-07"'), ('": 1e+16', r'"\": 1e+16"'), (f": {2**64}", f'": {2**64}"'),
    ],
)  # fmt: skip
def test_numbers_as_rust_writes_them(number: Json, text: str) -> None:
    content = encode("x", "metadata.json", {"a": number, "b": [number]})
    assert content.decode() == f'{{\n  "a": {text},\n  "b": [\n    {text}\n  ]\n}}\n'
    assert encode("x", "metadata.json", json.loads(content)) == content


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.integers(2**64 - 9, 10**308))
@example(-(2**63) - 1)
@example(-0.0)
def test_a_number_is_written_once_as_jp_has_it(number: float) -> None:
    """Digits as in `serde_json` 1.0.149 with `zmij` 1.0.17, what JP's lock file names; and then it stays."""
    content = encode("x", "metadata.json", {"a": number})
    text = content.decode()[len('{\n  "a": ') : -len("\n}\n")]
    shape = r"-?(0|[1-9][0-9]*)" if isinstance(number, int) and -(2**63) <= number < 2**64 else FLOAT
    assert re.fullmatch(shape, text)
    assert json.loads(text) == pytest.approx(number, rel=1e-15, abs=0)
    assert encode("x", "metadata.json", json.loads(content)) == content


def test_minus_zero_is_what_rust_has_for_it(world: World, workspace: Workspace) -> None:
    """And a file of which nothing else is changed stays as it is."""
    path = directory(world.store, FIRST) / "metadata.json"
    path.write_text(json.dumps({**read(path), "long": 0, "zero": 0}).replace('"long": 0', f'"long": {2**64}, "n": -0'))
    with mutable(workspace) as mut:
        mut.update_metadata(lambda metadata: metadata.update(zero=0))
        assert not mut.dirty
        mut.update_metadata(lambda metadata: metadata.update(zero=1))
    assert '"long": 1.8446744073709552e+19,\n  "n": -0.0,\n  "zero": 1' in path.read_text()


@pytest.mark.parametrize("number", [10**309, -(10**400), 10**5000], ids=["long", "negative", "longer"])
def test_a_number_that_rust_can_not_hold(number: int) -> None:
    """JP would put the whole conversation away."""
    with pytest.raises(InvalidValueError, match=r"jp-c1: events\.json: not a JSON value: "):
        encode("jp-c1", "events.json", [{"n": number}])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("title", 3), ("title", ["x"]), ("labels", "x"), ("labels", {"a": 1}), ("pinned_at", 3), ("archived_at", "x"),
        ("expires_at", "tomorrow"), ("last_activated_at", 3), ("parent_id", "x"), ("parent_id", 1.5),
    ],
)  # fmt: skip
def test_keys_that_jp_could_not_read_are_refused(world: World, workspace: Workspace, key: str, value: Json) -> None:
    with mutable(workspace) as mut:
        with pytest.raises(InvalidValueError, match=rf"jp-c{FIRST}: .*{key}.*nothing was changed"):
            mut.update_metadata(lambda metadata: metadata.update({key: value}))
        assert not mut.dirty


def test_keys_that_say_nothing_are_left_out(world: World, workspace: Workspace) -> None:
    with mutable(workspace) as mut:
        mut.update_metadata(lambda metadata: metadata.update(title=None, labels={}, pinned_at=None, mine=None))
    assert list(read(directory(world.workspace, FIRST) / "metadata.json")) == ["last_activated_at", "mine"]


def test_what_is_wrong_already_is_no_obstacle(world: World, workspace: Workspace) -> None:
    path = directory(world.store, FIRST) / "metadata.json"
    path.write_text(json.dumps({**read(path), "labels": 3}))
    with mutable(workspace) as mut:
        mut.update_metadata(lambda metadata: metadata.update(title="Another"))
    assert read(directory(world.store, FIRST) / "metadata.json")["labels"] == 3


@pytest.mark.skipif(not CORPUS.is_dir(), reason=NO_CORPUS)
def test_real_files_come_out_as_they_are() -> None:
    """The small ones; the largest have megabytes."""
    found = [path for path in CORPUS.rglob("*.json") if path.stat().st_size < 40_000 and path.name != "messages.json"]
    assert len(found) > 20
    for path in found:
        content = path.read_bytes()
        value = decode("x", path.name, content)
        assert isinstance(value, dict | list)
        assert encode("x", path.name, json.loads(json.dumps(value))) in (content, content + b"\n"), path
