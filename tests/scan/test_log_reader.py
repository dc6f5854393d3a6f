"""Logs that grow: only the new bytes are read, and whatever else was done to the file is noticed or read in time."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from reconcile.formats import get_format
from reconcile.fs.files import Directory, fingerprint_of
from reconcile.fs.hashing import BLOCK, WHOLE, digest
from reconcile.index.rows import Index
from reconcile.model.snapshot import Metadata, Side
from reconcile.scan import log_reader
from reconcile.scan.log_reader import ReadLog, is_due, read_log
from reconcile.scan.scan import scan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from reconcile.index.rows import Log
    from reconcile.model.snapshot import Copy
    from reconcile.scan.scan import Scanned

SESSION = "00000000-0000-4000-8000-000000000000.jsonl"
CLAUDE = get_format("claude-code")
PROMPT = b'{"type":"user","message":{"content":"A prompt"}}\n'
LINE = b'{"type":"mode","mode":"plan"}\n'
TITLE = b'{"type":"custom-title","customTitle":"%s"}\n'
LARGE = PROMPT + LINE * (WHOLE // len(LINE) + 20_000)
DAY = 86_400


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / SESSION
    path.write_bytes(LARGE)
    return path


@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The bytes that were read."""
    read = [0]

    def counted(call: str) -> None:
        real = getattr(os, call)

        def reading(*args: int) -> bytes:
            content: bytes = real(*args)
            read[0] += len(content)
            return content

        monkeypatch.setattr(os, call, reading)

    counted("read")
    counted("pread")
    return read  # type: ignore[return-value]


def read(path: Path, before: Log | None = None) -> ReadLog:
    assert CLAUDE.places is not None
    with Directory.open_root(str(path.parent)) as root:
        found = read_log(root, path.name, CLAUDE.places, path.name, before)
    assert isinstance(found, ReadLog)
    return found


def again(path: Path, before: Log | None) -> ReadLog:
    """Read a log on, and demand that a reader of all of it finds the same."""
    found, whole = read(path, before), read(path)
    assert found.log is not None
    assert replace(found, log=replace(found.log, is_read=True)) == whole
    return found


def add(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)


@pytest.mark.parametrize(
    "new",
    [LINE, TITLE % b"Another", b'{"type":"mo', b"", b"\n \n", b"no object\n\0\xff", LINE * 100_000, b"x" * 3 * BLOCK],
    ids=["line", "title", "torn", "nothing", "blank", "no object", "much", "a long torn line"],
)
def test_what_was_appended_is_read_as_if_all_were_read(path: Path, new: bytes) -> None:
    first = read(path)
    add(path, new)
    second = again(path, first.log)
    add(path, b'de":"plan"}\n' + TITLE % b"The last")
    third = again(path, second.log)
    assert isinstance(third.record, Metadata)
    assert third.record.title == "The last"
    assert third.digest == digest(path.read_bytes())


def test_a_small_log_becomes_a_large_one(tmp_path: Path) -> None:
    path, before = tmp_path / SESSION, None
    for _ in range(12):
        add(path, LINE * (BLOCK // len(LINE) - 1))
        found = read(path, before)
        assert replace(found, log=None) == replace(read(path), log=None)
        assert (found.log is None) == (path.stat().st_size <= WHOLE)
        before = found.log


def test_only_the_new_bytes_and_a_block_are_read(path: Path, count: list[int]) -> None:
    before = read(path).log
    add(path, LINE)
    count[0] = 0
    after = read(path, before).log
    assert count[0] <= BLOCK + len(LINE)
    assert after is not None
    assert not after.is_read


def rewrite(path: Path, at: int, content: bytes) -> None:
    """Write other bytes into a file, which stays the same file."""
    with path.open("r+b") as file:
        file.seek(at)
        file.write(content)


@pytest.mark.parametrize("how", ["end", "shorter", "size", "replaced", "shifted", "refused"])
def test_a_log_that_was_not_only_appended_to_is_read_as_a_whole(path: Path, how: str) -> None:
    before = read(path).log
    match how:
        case "end":
            rewrite(path, len(LARGE) - 5, b"other")
            add(path, LINE)
        case "shorter":
            os.truncate(path, len(LARGE) - len(LINE))
        case "size":
            rewrite(path, 0, b" ")
        case "replaced":
            path.rename(path.with_name("old"))
            path.write_bytes(b" " * 100 + LARGE)
        case "shifted":
            rewrite(path, 0, LINE[:-4] + LARGE[2:] + LINE)
        case _:
            path.write_bytes(b"\n" * (len(LARGE) + 1))
    found = read(path, before)
    assert found == read(path)
    assert found.digest == digest(path.read_bytes())


def test_a_log_that_was_rewritten_before_its_end_is_read_when_it_rests(path: Path) -> None:
    """The premise is wrong: the program has not only appended. It's taken for granted for a day."""
    before = read(path).log
    rewrite(path, 3, b"other bytes")
    add(path, LINE)
    taken = read(path, before)
    assert taken.digest == digest(LARGE + LINE) != digest(path.read_bytes())
    now = path.stat().st_mtime_ns
    assert not is_due(taken.log, now, now + 1)
    assert is_due(taken.log, now, now + DAY * 10**9)
    assert is_due(taken.log, now + 10**9, now), "a time to come proves no rest"
    assert not is_due(read(path).log, now, now + DAY * 10**9)


# In a scan.


def scanned(path: Path, known: Index | None = None, now_ns: int | None = None) -> tuple[Scanned, Copy]:
    found = scan(Side.WORKSPACE, str(path.parent), CLAUDE, known or Index(), now_ns=now_ns)
    (copy,) = found.snapshot.copies
    return found, copy


def age(path: Path, seconds: int) -> None:
    at = time.time() - seconds
    os.utime(path, (at, at))


def test_a_log_that_rests_is_read_as_a_whole_once(path: Path, count: list[int]) -> None:
    """A day after its last change."""
    later = time.time_ns() + 10**9
    known = scanned(path, now_ns=later)[0].index
    add(path, LINE)
    known = scanned(path, known, later + 10**9)[0].index
    rewrite(path, 3, b"other bytes")
    age(path, DAY + 5)
    found = scanned(path, known, later + 2 * 10**9)
    assert found[1].files[0].digest == digest(path.read_bytes())

    known = found[0].index
    add(path, LINE)
    known = scanned(path, known, later + 3 * 10**9)[0].index
    day = later + (DAY + 10) * 10**9
    count[0] = 0
    known = scanned(path, known, day)[0].index
    assert count[0] >= path.stat().st_size
    count[0] = 0
    scanned(path, known, day + 1)
    assert count[0] == 0


def test_a_log_that_was_read_in_the_moment_of_its_change_is_known_but_not_trusted(path: Path, count: list[int]) -> None:
    now = path.stat().st_mtime_ns
    known = scanned(path, now_ns=now)[0].index
    row = known.rows[SESSION]
    assert (row.prints, row.content) == (b"", None)
    count[0] = 0
    known = scanned(path, known, now)[0].index
    assert count[0] >= len(LARGE), "read once more"
    add(path, LINE)
    count[0] = 0
    found, copy = scanned(path, known, now)
    assert count[0] < 2 * BLOCK
    assert copy.files[0].digest == digest(LARGE + LINE)
    row = found.index.rows[SESSION]
    assert row.log is not None
    assert row.log.known == fingerprint_of(path.stat())
    count[0] = 0
    scanned(path, found.index, now)
    assert 0 < count[0] <= BLOCK, "its end is read once more"


def test_the_rest_of_a_log_is_a_day() -> None:
    assert log_reader._REST_NS == DAY * 10**9
