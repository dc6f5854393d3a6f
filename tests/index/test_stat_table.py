"""A stat table shows every change that a scan would see, and no other."""

from __future__ import annotations

import itertools
import os
import time
from array import array
from typing import TYPE_CHECKING

import pytest

from reconcile.formats import get_format
from reconcile.index import stat_table
from reconcile.index.stat_table import SharedComparison, StatList, StatTable, compare_both
from reconcile.model.snapshot import Side
from reconcile.scan.scan import scan
from tests.support.projects.stat_rows import whole

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FORMAT = get_format("jp")
A, B, C = "17528832001-a", "17528832002-b", "17528832003-c"
FILES = {
    "metadata.json": b'{\n  "title": "T"\n}\n',
    "base_config.json": b"{}\n",
    "events.json": b'[{"timestamp": "2025-07-19 14:30:00.0", "type": "chat_request"}]\n',
    "sub/NOTE.md": b"note",
}
LATER = 10_000_000_000


def write(directory: Path) -> None:
    for name, content in FILES.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(content)


@pytest.fixture
def side(tmp_path: Path) -> Path:
    root = tmp_path / "conversations"
    for path in (A, f"{A}/conversations/{B}", f".archive/{C}"):
        write(root / path)
    (root / "README").write_bytes(b"foreign")
    return root


def scanned(root: Path) -> StatTable:
    return scan(Side.STORE, str(root), FORMAT, None, now_ns=time.time_ns() + LATER).stats


def in_place(path: Path) -> None:
    before = path.stat()
    path.write_bytes(path.read_bytes()[::-1])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replaced(path: Path) -> None:
    before = path.stat()
    other = path.with_suffix(".tmp")
    other.write_bytes(path.read_bytes()[::-1])
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(path)


def linked(root: Path, path: Path) -> None:
    elsewhere = root.parent / path.name
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


CHANGES: dict[str, Callable[[Path], object]] = {
    "written in place, its time put back": lambda root: in_place(root / A / "events.json"),
    "replaced by one of the same size and time": lambda root: replaced(root / A / "conversations" / B / "events.json"),
    "a file that is gone": lambda root: (root / A / "metadata.json").unlink(),
    "a new extra": lambda root: (root / A / "NOTE.md").write_bytes(b"n"),
    "a new extra in a directory": lambda root: (root / A / "sub" / "more.md").write_bytes(b"n"),
    "an edited extra": lambda root: (root / A / "sub" / "NOTE.md").write_bytes(b"edited"),
    "a new conversation": lambda root: write(root / "17528832009-new"),
    "a new child": lambda root: write(root / A / "conversations" / "17528832009-new"),
    "a first child": lambda root: write(root / A / "conversations" / B / "conversations" / "17528832009-new"),
    "a new one in the archive": lambda root: write(root / ".archive" / "17528832009-new"),
    "a first trash": lambda root: write(root / ".trash" / "17528832009-new"),
    "another name": lambda root: (root / A).rename(root / "17528832001-other"),
    "moved": lambda root: (root / A / "conversations" / B).rename(root / B),
    "archived": lambda root: (root / A).rename(root / ".archive" / A),
    "something foreign": lambda root: (root / "OTHER").write_bytes(b""),
    "other rights": lambda root: (root / A / "events.json").chmod(0o600),
    "a link instead of a directory": lambda root: linked(root, root / A),
    "a link instead of a file": lambda root: linked(root, root / A / "events.json"),
    "all of it gone": lambda root: root.rename(root.parent / "elsewhere"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_is_seen(side: Path, change: Callable[[Path], object]) -> None:
    known = scanned(side)
    assert known.changed(str(side)) == []
    change(side)
    assert known.changed(str(side))


def test_what_was_just_written_counts_as_changed(side: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stat_table, "_TICK_NS", 10 * 10**9)  # a busy machine takes longer than a tick from the write on
    known = scan(Side.STORE, str(side), FORMAT, None).stats
    assert set(known.changed(str(side))) == set(whole(known).names)


def test_numbers_that_are_too_large_are_told_apart(side: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status = side.stat()

    def with_inode(inode: int) -> os.stat_result:
        values = list(status)
        values[1] = inode
        return os.stat_result(values, {"st_mtime_ns": status.st_mtime_ns, "st_ctime_ns": status.st_ctime_ns})

    known = StatList()
    known.add("", with_inode(2**64 - 7), time.time_ns() + LATER)
    monkeypatch.setattr(os, "stat", lambda *_, **__: with_inode(2**64 - 7))
    assert StatTable.of(known).changed(str(side)) == []
    monkeypatch.setattr(os, "stat", lambda *_, **__: with_inode(2**64 - 8))
    assert StatTable.of(known).changed(str(side)) == ["."]


def test_two_processes_see_what_one_sees(side: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other"
    write(other / A)
    roots, tables = (str(side), str(other)), (scanned(side), scanned(other))
    (side / A / "events.json").unlink()
    (other / A / "NOTE.md").write_bytes(b"")
    alone = compare_both(roots, tables)
    monkeypatch.setattr(stat_table, "WORTH_A_PROCESS", 1)
    assert compare_both(roots, tables) == alone
    assert all(alone)


def test_where_no_process_can_be_made_one_looks_at_both(side: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> int:
        raise BlockingIOError

    known = scanned(side)
    (side / A / "events.json").unlink()
    monkeypatch.setattr(stat_table, "WORTH_A_PROCESS", 1)
    monkeypatch.setattr(os, "fork", refused)
    one, other = compare_both((str(side), str(side)), (known, known))
    assert one == other != []


def test_what_such_a_run_needs_is_done_once_while_another_process_looks(
    side: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stat_table, "_PIECE", 1)
    other = tmp_path / "other"
    write(other / A)
    roots, tables, done = (str(side), str(other)), (scanned(side), scanned(other)), []
    compare_both(roots, tables, lambda: done.append("of a few"))
    monkeypatch.setattr(stat_table, "WORTH_A_PROCESS", 1)
    compare_both(roots, tables, lambda: done.append("of nothing"))
    assert done == []
    for path in (side, other):
        (path / A / "events.json").unlink()
    begin = SharedComparison.from_the_end

    def late(both: SharedComparison) -> bytes:
        time.sleep(0.2)
        return begin(both)

    monkeypatch.setattr(SharedComparison, "from_the_end", late)
    changed = compare_both(roots, tables, lambda: done.append("once"))
    assert changed == tuple(known.changed(root) for root, known in zip(roots, tables, strict=True))
    assert done == ["once"]


def test_what_a_command_needs_in_any_case_is_done_at_once(side: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With no second process, there is nothing to gain: the caller does it afterwards."""
    roots, tables, done = (str(side), str(side)), (scanned(side), scanned(side)), []
    compare_both(roots, tables, lambda: done.append("alone"), at_once=True)
    assert done == []
    monkeypatch.setattr(stat_table, "WORTH_A_PROCESS", 1)
    assert compare_both(roots, tables, lambda: done.append("first"), at_once=True) == ([], [])
    (side / A / "events.json").unlink()
    own = SharedComparison.from_the_start

    def told(both: SharedComparison, on_change: Callable[[], object] | None) -> dict[int, list[str]]:
        done.append("compared")
        return own(both, on_change)

    monkeypatch.setattr(SharedComparison, "from_the_start", told)
    one, other = compare_both(roots, tables, lambda: done.append("second"), at_once=True)
    assert one == other != []
    assert done == ["first", "second", "compared"]


@pytest.mark.parametrize("most", [0, 3, 1000])
def test_what_the_other_process_took_and_has_not_told_is_looked_at_here(
    side: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    def killed(both: SharedComparison) -> bytes:
        for _ in itertools.islice(both.take(reversed(range(len(both)))), most):
            pass
        os._exit(1)

    monkeypatch.setattr(stat_table, "_PIECE", 1)
    known = scanned(side)
    (side / A / "events.json").unlink()
    write(side / "17528832009-new")
    expected = known.changed(str(side))
    monkeypatch.setattr(stat_table, "WORTH_A_PROCESS", 1)
    monkeypatch.setattr(SharedComparison, "from_the_end", killed)
    assert compare_both((str(side), str(side)), (known, known)) == (expected, expected)
    assert expected


def test_what_was_just_written_and_is_gone_has_changed(side: Path) -> None:
    known = scan(Side.STORE, str(side), FORMAT, None).stats
    (side / A / "events.json").unlink()
    assert f"{A}/events.json" in known.changed(str(side))


def test_later_looks_have_the_last_word(side: Path) -> None:
    known = scanned(side)
    (side / A / "events.json").write_bytes(b"[]\n")
    (side / A / "metadata.json").unlink()
    (side / A / "NOTE.md").write_bytes(b"")
    (side / ".archive" / C).rename(side / C)
    stale = set(known.changed(str(side)))
    kept = known.patched([whole(scanned(side))], stale, {f".archive/{C}"})
    patched, fresh = whole(kept), whole(scanned(side))
    assert sorted(patched.names) == sorted(fresh.names)
    assert not kept.changed(str(side))
    assert len(patched.fingerprints) == 4 * len(patched.names)
    assert isinstance(patched.fingerprints, array)


@pytest.mark.parametrize("piece", [1, 3, 4096])
def test_what_is_kept_in_pieces_is_the_same(side: Path, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stat_table, "_PIECE", piece)
    kept = scanned(side)
    known = whole(kept)
    assert len(kept) == len(known.names)
    assert len(kept.pieces) == -(-len(kept) // piece)
    assert StatTable.of(known).pieces == kept.pieces
    (side / A / "events.json").write_bytes(b"[]\n")
    (side / "17528832009-new").mkdir()
    assert sorted(kept.changed(str(side))) == [".", f"{A}/events.json"]


def test_of_a_side_that_is_gone_everything_has_changed(side: Path) -> None:
    kept = scanned(side)
    side.rename(side.parent / "elsewhere")
    assert kept.changed(str(side)) == whole(kept).names


@pytest.mark.parametrize("piece", [1, 2, 4096])
def test_a_patch_changes_what_it_is_about_alone(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stat_table, "_PIECE", piece)
    names = [".", "a", "a/x", "a/y", "ab", "b", "b/x", "c"]
    known = StatList(list(names), array("q", [at for at in range(len(names)) for _ in range(4)]))
    look = StatList(["b", "new", "b/x"], array("q", [100] * 4 + [101] * 4 + [102] * 4))
    kept = StatTable.of(known)
    found = whole(kept.patched([look], {"c", "b/x"}, {"a"}))
    numbers = [found.fingerprints[4 * at] for at in range(len(found.names))]
    assert list(zip(found.names, numbers, strict=True)) == [(".", 0), ("ab", 4), ("b", 100), ("b/x", 102), ("new", 101)]
    assert kept.patched([], (), ()).pieces == kept.pieces
