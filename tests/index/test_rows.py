"""The rows of an index save reading, and are never wrong."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from reconcile.formats import get_format
from reconcile.index.rows import Index, Row, is_racy_safe, make_row
from reconcile.model.snapshot import Fault, Side, Stream
from reconcile.scan.scan import scan

if TYPE_CHECKING:
    from pathlib import Path

    from reconcile.scan.scan import Scanned

FORMAT = get_format("jp")
A, B = "17528832001", "17528832002"
METADATA = (
    b'{\n  "title": "T",\n  "last_activated_at": "2025-07-19 14:30:00.0",\n  "parent_id": "jp-c1",\n'
    b'  "local": true\n}\n'
)
EVENTS = b'[{"timestamp": "2025-07-19 14:30:00.0", "type": "chat_request"}]\n'
LATER = 10_000_000_000
OLD = 1_600_000_000_000_000_001


def make(directory: Path) -> Path:
    directory.mkdir(parents=True)
    (directory / "metadata.json").write_bytes(METADATA)
    (directory / "base_config.json").write_bytes(b"{}\n")
    (directory / "events.json").write_bytes(EVENTS)
    (directory / "NOTE.md").write_bytes(b"note")
    return directory


def look(root: Path, index: Index | None, *, now_ns: int | None = None, events: str = "") -> Scanned:
    """A scan that takes place well after everything was written, unless said otherwise."""
    now = time.time_ns() + LATER if now_ns is None else now_ns
    return scan(Side.STORE, str(root), FORMAT, index, now_ns=now, events_for=[events] if events else [])


def stored(scanned: Scanned) -> Index:
    """The index as another process gets it."""
    return Index.of(scanned.index.format, scanned.index.identity, scanned.index.packed())


def test_nothing_is_read_twice(root: Path) -> None:
    make(root / A / "conversations" / B)
    make(root / f"{A}-x")
    (root / B).mkdir()
    first = look(root, None)
    assert (first.read, first.changed) == (8, True)
    for index in (stored(first), first.index):
        again = look(root, index)
        assert again.snapshot == first.snapshot
        assert (again.read, again.changed) == (0, False)
        assert look(root, again.index).snapshot == first.snapshot


@pytest.mark.parametrize(
    ("name", "read"), [("metadata.json", 1), ("events.json", 2), ("base_config.json", 2), ("NOTE.md", 1)]
)
def test_an_edit_is_seen_and_only_its_unit_is_read(root: Path, name: str, read: int) -> None:
    path = make(root / A) / name
    first = look(root, None)
    path.write_bytes(path.read_bytes() + b" ")
    again = look(root, stored(first))
    assert (again.read, again.changed) == (read, True)
    assert again.snapshot == look(root, None).snapshot != first.snapshot


def test_same_size_and_the_time_put_back(tmp_path: Path) -> None:
    path = make(tmp_path / A) / "NOTE.md"
    os.utime(path, ns=(OLD, OLD))
    first = look(tmp_path, None)
    path.write_bytes(b"etON")
    os.utime(path, ns=(OLD, OLD))
    assert look(tmp_path, stored(first)).snapshot != first.snapshot


@pytest.mark.parametrize("name", ["metadata.json", "base_config.json", "events.json", "NOTE.md"])
def test_a_file_that_went_and_came_back(root: Path, name: str) -> None:
    path = make(root / A) / name
    first = look(root, None)
    path.rename(root / "aside")
    without = look(root, stored(first))
    assert without.snapshot.copies == look(root, None).snapshot.copies != first.snapshot.copies
    (root / "aside").rename(path)
    assert look(root, stored(without)).snapshot == first.snapshot


def test_copies_that_went_and_came(root: Path) -> None:
    make(root / A)
    first = look(root, None)
    (root / A).rename(root / f"{A}-other")
    moved = look(root, stored(first))
    assert moved.snapshot == look(root, None).snapshot
    assert list(moved.index.rows) == [f"{A}-other"]


def test_recently_written_files_are_read_again(root: Path) -> None:
    directory = make(root / A)
    young = min(path.stat().st_ctime_ns for path in directory.iterdir())
    first = look(root, None, now_ns=young)
    again = look(root, stored(first))
    assert (first.read, again.read) == (4, 4)
    assert look(root, stored(again)).read == 0
    # only the one whose time is young, even if nothing but its modification time is
    os.utime(directory / "NOTE.md", ns=(1, time.time_ns() + 2 * LATER))
    assert look(root, stored(look(root, stored(again)))).read == 1


@pytest.mark.parametrize(
    ("mtime", "ctime", "trusted"),
    [
        (OLD, OLD, True),
        (1_000_000_000 - 20_000_000, 5, False),
        (1_000_000_000 - 20_000_001, 5, True),
        (5, 1_000_000_000 - 20_000_000, False),
        (5, 2_000_000_000, False),
    ],
)
def test_the_racily_clean_rule(mtime: int, ctime: int, trusted: bool) -> None:
    now = OLD + LATER if mtime == OLD else 1_000_000_000
    assert is_racy_safe((1, mtime, 1, ctime), now) is trusted


def test_a_time_without_fraction_needs_two_seconds() -> None:
    second = 1_000_000_000
    assert not is_racy_safe((1, 8 * second, 1, 5), 10 * second)
    assert is_racy_safe((1, 8 * second, 1, 5), 10 * second + 1)
    assert is_racy_safe((1, 8 * second + 1, 1, 5), 10 * second)


def test_faults_are_never_remembered(root: Path) -> None:
    (make(root / A) / "metadata.json").write_bytes(b"<<<<<<< HEAD")
    first = look(root, None)
    assert isinstance(first.snapshot.copies[0].metadata, Fault)
    again = look(root, stored(first))
    assert again.read == 1
    assert again.snapshot == first.snapshot


def test_events_are_read_again_and_not_stored(root: Path) -> None:
    make(root / A)
    first = look(root, None, events=f"jp-c{A}")
    again = look(root, stored(first))
    assert again.read == 0
    stream = again.snapshot.copies[0].stream
    assert isinstance(stream, Stream)
    assert stream.events is None
    assert look(root, stored(first), events=f"jp-c{A}").snapshot == first.snapshot


def test_an_obstruction_is_no_news_about_the_files(root: Path) -> None:
    make(root / A)
    first = look(root, None)
    (root / A / "conversations").write_text("x")
    again = look(root, stored(first))
    assert again.read == 0
    assert again.snapshot.copies[0].obstructed


def test_an_index_of_another_directory_or_format_says_nothing(root: Path) -> None:
    make(root / "one" / A)
    make(root / "two" / A)
    first = look(root / "one", None)
    assert look(root / "two", stored(first)).read == 4
    other = scan(Side.STORE, str(root / "one"), get_format("plain"), stored(first))
    assert other.read == 4
    assert other.snapshot.copies[0].conversation == A


def test_a_changed_configuration_is_heeded(root: Path) -> None:
    make(root / A)
    first = look(root, None)
    ignoring = scan(Side.STORE, str(root), get_format("jp", ("*.md",)), stored(first))
    assert "NOTE.md" not in [file.name for file in ignoring.snapshot.copies[0].files]
    assert ignoring.read == 0


def test_names_and_titles_that_are_no_text(tmp_path: Path) -> None:
    make(tmp_path / os.fsdecode(b"17528832001-caf\xe9"))
    make(tmp_path / B)
    odd = make(tmp_path / "17528832003")
    (odd / "metadata.json").write_bytes(METADATA.replace(b'"T"', rb'"\ud800"'))
    first = look(tmp_path, None)
    assert B in stored(first).rows
    assert look(tmp_path, stored(first)).snapshot == first.snapshot


def test_a_time_too_far_away_is_not_remembered() -> None:

    assert make_row({"x": ((1, 1 << 70, 1, 1), "0" * 32)}, None, None) is None
    assert Row("", b"", b"").files() == {}
