"""Two processes see what one sees, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from reconcile.formats import get_format
from reconcile.fs import helper_process
from reconcile.fs.helper_process import HelperProcess
from reconcile.index.rows import Index
from reconcile.model.snapshot import Side
from reconcile.scan import shards
from reconcile.scan.scan import ScanInput, scan_sides
from tests.support.projects.mixed_side import FIRST, fill
from tests.support.projects.world import events, write_conversation

if TYPE_CHECKING:
    from pathlib import Path

    from reconcile.scan.scan import Scanned
    from reconcile.scan.walker import Walk

FORMAT = get_format("jp", ("*.bak",))


@pytest.fixture
def sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[Side, Path]:
    monkeypatch.chdir(tmp_path)
    found = {side: tmp_path / side / "conversations" for side in Side}
    for root in found.values():
        root.mkdir(parents=True)
        fill(root)
    (found[Side.WORKSPACE] / f"{FIRST + 10}-it" / "events.json").write_bytes(b"[]\n")
    time.sleep(0.05)  # what was written a moment ago isn't remembered
    return found


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests' own process has more threads, none of which holds anything."""
    monkeypatch.setattr(shards, "MIN_ENTRIES", 1)
    monkeypatch.setattr(helper_process, "is_possible", lambda: True)
    monkeypatch.setattr(shards, "is_possible", lambda: True)


def looked(sides: dict[Side, Path], known: dict[Side, Index] | None = None) -> dict[Side, Scanned]:
    where = {side: ScanInput(str(root), known[side] if known else Index()) for side, root in sides.items()}
    return scan_sides(where, FORMAT)


def comparable(found: Scanned) -> tuple[object, ...]:
    rows = dict(Index.of("jp", "", found.index.packed()).rows)  # what is kept of them
    return found.snapshot, rows, found.changed, found.read, statuses(found)


def statuses(found: Scanned) -> list[tuple[bytes, bytes]]:
    """Return the status of each path, in the order of the paths."""
    entries = []
    for names, numbers in found.stats.pieces:
        each = names.split(b"\0")
        size = len(numbers) // len(each)
        entries += [(name, numbers[size * at : size * (at + 1)]) for at, name in enumerate(each)]
    return sorted(entries)


@pytest.mark.usefixtures("shared")
def test_two_processes_see_what_one_sees(sides: dict[Side, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    both = looked(sides)
    again = looked(sides, {side: found.index for side, found in both.items()})
    monkeypatch.setattr(shards, "MIN_ENTRIES", 10**6)
    alone = looked(sides)
    alone_again = looked(sides, {side: found.index for side, found in alone.items()})
    for side in Side:
        assert comparable(both[side]) == comparable(alone[side])
        # What can't be stored is read once more where it comes from another process.
        assert again[side].read >= alone_again[side].read
        assert comparable(replace(again[side], read=0)) == comparable(replace(alone_again[side], read=0))
        assert both[side].changed


@pytest.mark.usefixtures("shared")
def test_of_an_index_that_stays_as_it_is_nothing_is_told(tmp_path: Path) -> None:
    sides = {side: tmp_path / side / "conversations" for side in Side}
    for root in sides.values():
        write_conversation(root / f"{FIRST}-it", "It", events(2))
    time.sleep(0.05)
    known = {side: found.index for side, found in looked(sides).items()}
    for side, found in looked(sides, known).items():
        assert not found.changed
        assert found.read == 0
        assert [copy.path for copy in found.snapshot.copies] == list(known[side].rows)


@pytest.mark.usefixtures("shared")
def test_what_is_the_same_on_both_sides_is_in_memory_once(sides: dict[Side, Path]) -> None:
    other = f"{FIRST + 9}-it"
    os.utime(sides[Side.WORKSPACE] / other / "metadata.json", ns=(0, 1))
    both = {side: {copy.path: copy for copy in found.snapshot.copies} for side, found in looked(sides).items()}
    kept, here = both[Side.STORE], both[Side.WORKSPACE]
    same = {path for path, copy in here.items() if copy.files is kept[path].files}
    assert same >= {f"{FIRST}-it", f"{FIRST}-it/conversations/{FIRST + 20}-child", f".archive/{FIRST + 21}-old"}
    assert not same & {other, f"{FIRST + 1}-it", f"{FIRST + 10}-it"}
    assert here[f"{FIRST}-it"].metadata is kept[f"{FIRST}-it"].metadata


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("of_helper", [True, False])
def test_a_directory_that_changes_after_its_walk_is_scanned_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, of_helper: bool
) -> None:
    number = next(n for n in range(FIRST, FIRST + 1000) if shards._SECOND.has(f"jp-c{n}") == of_helper)
    children, add = tmp_path / f"{number}-it" / "conversations", shards.add
    write_conversation(children.parent, "It", events(2))
    write_conversation(children / f"{FIRST + 2000}-before", "Before", events(2))

    def late(walk: Walk, result: shards.ShardResult) -> None:
        if (children / f"{FIRST + 2000}-before").exists():
            (children / f"{FIRST + 2000}-before").rename(children / f"{FIRST + 2000}-after")
        add(walk, result)

    monkeypatch.setattr(shards, "add", late)
    snapshot = looked({Side.STORE: tmp_path})[Side.STORE].snapshot
    assert [copy.path.rpartition("/")[2] for copy in snapshot.copies] == [f"{number}-it", f"{FIRST + 2000}-after"]
    assert not snapshot.problems


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("how", ["killed", "failed", "refused"])
def test_a_second_process_that_comes_to_no_end_is_done_without(
    sides: dict[Side, Path], how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ending(_: Walk) -> shards.ShardResult:
        if how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        raise MemoryError

    def refused() -> int:
        raise BlockingIOError

    expected = {side: comparable(found) for side, found in looked(sides).items()}
    before = set(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(shards, "result_of", ending)
    if how == "refused":
        monkeypatch.setattr(os, "fork", refused)
    assert {side: comparable(found) for side, found in looked(sides).items()} == expected
    assert set(os.listdir("/proc/self/fd")) == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


@pytest.mark.usefixtures("shared")
def test_a_second_process_ends_with_the_block(tmp_path: Path) -> None:
    def work() -> bytes:
        time.sleep(60)
        (tmp_path / "late").write_bytes(b"")
        return b""

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt), HelperProcess.start(work):
        raise KeyboardInterrupt
    assert time.monotonic() - begun < 30
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_beside_other_threads_there_is_no_second_process() -> None:
    import threading

    stop = threading.Event()
    other = threading.Thread(target=stop.wait)
    other.start()
    try:
        with HelperProcess.start(lambda: b"") as child:
            assert child.result() is None
    finally:
        stop.set()
        other.join()
