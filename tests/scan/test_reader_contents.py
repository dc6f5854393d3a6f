"""What contents say is found out once for the same bytes; what is wrong with them is told wherever they are."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest import mock

import pytest

from reconcile.formats import get_format
from reconcile.formats.jp.format import JpFormat
from reconcile.model.snapshot import Fault, Side
from reconcile.scan.reader import ContentCache
from reconcile.scan.scan import scan

if TYPE_CHECKING:
    from pathlib import Path

    from reconcile.model.snapshot import Copy

FORMAT = get_format("jp")
METADATA = b'{"title": "T", "last_activated_at": "2025-07-19 14:30:00.0"}'
EVENTS = b'[{"timestamp": "2025-07-19 14:30:00.0", "type": "chat_request"}]'


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    found = tmp_path / "store", tmp_path / "workspace"
    for side in found:
        write(side, METADATA, EVENTS)
    return found


def write(side: Path, metadata: bytes, events: bytes) -> None:
    directory = side / "17528832001-t"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "metadata.json").write_bytes(metadata)
    (directory / "base_config.json").write_bytes(b"{}")
    (directory / "events.json").write_bytes(events)


def look(side: Path, cache: ContentCache, *events_for: str) -> Copy:
    found = scan(Side(side.name), str(side), FORMAT, None, cache=cache, events_for=events_for)
    (copy,) = found.snapshot.copies
    return copy


def test_the_same_bytes_are_read_once(sides: tuple[Path, Path]) -> None:
    cache = ContentCache()
    first = look(sides[0], cache)
    with mock.patch.object(JpFormat, "read_stream"), mock.patch.object(JpFormat, "read_metadata"):
        other = look(sides[1], cache)
    assert (other.metadata, other.stream) == (first.metadata, first.stream)
    assert other.files[0].digest == first.files[0].digest


def test_other_bytes_are_read(sides: tuple[Path, Path]) -> None:
    cache = ContentCache()
    first = look(sides[0], cache)
    write(sides[1], METADATA.replace(b"T", b"U"), EVENTS.replace(b"]", b", " + EVENTS[1:-1] + b"]"))
    other = look(sides[1], cache)
    assert first.metadata != other.metadata
    assert first.stream != other.stream
    (sides[1] / "17528832001-t" / "base_config.json").unlink()
    assert isinstance(look(sides[1], cache).stream, Fault), "without its base, the same events are another stream"


def test_with_events_they_are_read_again(sides: tuple[Path, Path]) -> None:
    cache = ContentCache()
    assert look(sides[0], cache).stream == look(sides[1], cache).stream
    stream = look(sides[1], cache, "jp-c17528832001").stream
    assert not isinstance(stream, Fault)
    assert stream is not None
    assert stream.events is not None


def test_what_is_wrong_is_told_on_both_sides(sides: tuple[Path, Path]) -> None:
    cache = ContentCache()
    for side in sides:
        write(side, b"{", b"[1]")
    for side in sides:
        copy = look(side, cache)
        assert isinstance(copy.metadata, Fault)
        assert isinstance(copy.stream, Fault)
