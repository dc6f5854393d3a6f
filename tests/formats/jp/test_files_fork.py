"""Which part of a stream a fork keeps (docs/design/formats/jp.md#stream)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reconcile.formats import get_format
from reconcile.formats.jp.files import turn_starts
from reconcile.formats.jp.times import instant_ns
from reconcile.model.format import EventSelection
from reconcile.model.snapshot import Stream

FORMAT = get_format("jp")
BASE = b"{}\n"
MINUTE_NS = 60 * 10**9
START = instant_ns("2026-01-31 12:00:00") or 0


def at(minute: int) -> str:
    return f"2026-01-31 12:{minute:02}:00.0"


def event(minute: int, kind: str, **more: object) -> dict[str, Any]:
    return {"timestamp": at(minute), "type": kind, **more}


TURN = [event(0, "turn_start"), event(1, "chat_request"), event(2, "chat_response")]
DELTA = event(3, "config_delta", delta={"a": 1})
SECOND = [event(4, "turn_start"), event(5, "chat_request")]
CALL = [event(6, "tool_call_request", id="x"), event(7, "tool_call_response", id="x"), event(8, "chat_response")]
STREAM = [*TURN, DELTA, *SECOND, *CALL]


def kept(elements: list[dict[str, Any]], part: EventSelection, base: bytes | None = BASE) -> list[str]:
    content = (json.dumps(elements, indent=2) + "\n").encode()
    files = {"events.json": content} | ({} if base is None else {"base_config.json": base})
    cut = FORMAT.cut_stream(files, part)
    assert isinstance(FORMAT.read_stream(cut, events=False), Stream)
    assert cut.get("base_config.json") == base
    return [str(each["type"]) for each in json.loads(cut["events.json"])]


def types(*elements: dict[str, Any]) -> list[str]:
    return [str(each["type"]) for each in elements]


def test_all_of_it_is_copied_byte_for_byte() -> None:
    files = {"events.json": b'[ {"type": 1,"timestamp":2}]', "base_config.json": b"{ }"}
    assert FORMAT.cut_stream(files, EventSelection()) == files


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (0, types(DELTA)),
        (1, types(DELTA, *SECOND, *CALL)),
        (2, types(*STREAM)),
        (99, types(*STREAM)),
    ],
)
def test_turns_are_counted_from_the_end(last: int, expected: list[str]) -> None:
    assert kept(STREAM, EventSelection(last=last)) == expected


def test_a_turn_begins_with_the_users_request_where_nothing_says_so_before() -> None:
    old = [event(0, "chat_request"), event(1, "chat_response"), event(2, "chat_request")]
    assert turn_starts([*old, *TURN]) == [0, 2, 3]
    assert kept(old, EventSelection(last=1)) == ["chat_request"]


def test_times_are_inclusive_and_pairs_stay_pairs() -> None:
    assert kept(STREAM, EventSelection(until_ns=START + 6 * MINUTE_NS)) == types(*TURN, DELTA, *SECOND)
    assert kept(STREAM, EventSelection(until_ns=START + 7 * MINUTE_NS)) == types(*TURN, DELTA, *SECOND, *CALL[:2])
    assert kept(STREAM, EventSelection(from_ns=START + 7 * MINUTE_NS)) == types(DELTA, CALL[2])
    assert kept([event(0, "odd", timestamp=1), *TURN], EventSelection(from_ns=START + 2 * MINUTE_NS)) == [
        "odd",
        "chat_response",
    ]


def test_requests_of_one_id_are_paired_in_order() -> None:
    twice = [event(0, "inquiry_request", id="x"), event(1, "inquiry_response", id="x")]
    again = [event(2, "inquiry_request", id="x"), event(3, "inquiry_response", id="x")]
    assert kept([*twice, *again], EventSelection(from_ns=START + MINUTE_NS)) == types(*again)


def test_a_legacy_stream_keeps_its_first_element() -> None:
    base = event(0, "config_delta", delta={})
    assert kept([base, *STREAM], EventSelection(last=0), base=None) == types(base, DELTA)
    assert kept([base, *STREAM], EventSelection(until_ns=START - 1), base=None) == types(base)


def test_a_compaction_stays_only_where_it_counts_the_same_turns() -> None:
    compaction = event(9, "compaction", from_turn=0, to_turn=0)
    later = event(9, "compaction", from_turn=0, to_turn=1)
    assert kept([*TURN, compaction, *SECOND], EventSelection(until_ns=START + 9 * MINUTE_NS)) == types(
        *TURN, compaction, *SECOND
    )
    assert kept([*STREAM, compaction], EventSelection(last=1)) == types(DELTA, *SECOND, *CALL)
    assert kept([*TURN, later], EventSelection(until_ns=START + 9 * MINUTE_NS)) == types(*TURN)


def test_a_fork_may_have_no_title() -> None:
    metadata = b'{"last_activated_at": "2026-01-31 12:00:00.0"}'
    assert "title" not in json.loads(FORMAT.forked_metadata(metadata, parent="jp-c1", title=None))
