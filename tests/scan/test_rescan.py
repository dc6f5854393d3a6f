"""Looking at a part of a side again: what comes of it is what a scan of the whole side finds."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from reconcile.formats import get_format
from reconcile.index.rows import is_racy_safe
from reconcile.model.snapshot import Side
from reconcile.planning.incremental.side_index import SideIndex
from reconcile.scan import rescan as rescanning
from reconcile.scan.rescan import rescan
from reconcile.scan.scan import scan
from tests.support.projects.world import LONG_AGO, append, events, write_conversation

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FORMAT = get_format("jp")
ONE, TWO, THREE = "17500000001-a", "17500000002-b", "17500000003-c"
BELOW = f"{ONE}/conversations/{TWO}"
DEEP = f"{BELOW}/conversations/{THREE}"


class Seen:
    """A side that is known, and its index."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.until_settled()
        scanned = scan(Side.WORKSPACE, str(root), FORMAT, None)
        self.known, self.index = SideIndex.of_snapshot(scanned.snapshot), scanned.index

    def until_settled(self) -> None:
        """Wait for a moment later than the file system's last: what changed right now is read again next time."""
        last = max((path.lstat().st_ctime_ns for path in self.root.rglob("*")), default=0)
        while not is_racy_safe((0, last, 0, last), time.time_ns()):
            time.sleep(0.001)

    def again(self, *paths: str) -> bool:
        """Look again and take it in; tell whether that was enough, and then is the same as a scan."""
        self.until_settled()
        found = rescan(self.known, str(self.root), FORMAT, self.index, paths)
        if found is None:
            return False
        for path in found.gone:
            self.known.drop(path)
        for copy in found.copies:
            self.known.put(copy)
        meant = scan(Side.WORKSPACE, str(self.root), FORMAT, None)
        assert {copy.path: copy for copy in self.known.copies()} == {copy.path: copy for copy in meant.snapshot.copies}
        assert self.index.rows == meant.index.rows
        return True


@pytest.fixture
def side(tmp_path: Path) -> Seen:
    for path in (ONE, BELOW, DEEP, "17500000004-d"):
        write_conversation(tmp_path / "side" / path, "It", events(2))
    return Seen(tmp_path / "side")


def edit(root: Path) -> set[str]:
    append(root / BELOW, 1, "b", LONG_AGO + 5)
    return {BELOW}


def remove(root: Path) -> set[str]:
    os.rename(root / BELOW, root.parent / "away")
    return {BELOW}


def remove_what_is_around(root: Path) -> set[str]:
    os.rename(root / ONE, root.parent / "away")
    return {ONE, BELOW, f"{BELOW}/conversations"}


def rename(root: Path) -> set[str]:
    os.rename(root / ONE, root / "17500000001-other")
    return {ONE, "17500000001-other"}


def rename_in_a_listing(root: Path) -> set[str]:
    os.rename(root / ONE, root / "17500000001-other")
    return {""}


def move_down(root: Path) -> set[str]:
    os.mkdir(root / "17500000004-d" / "conversations")
    os.rename(root / ONE, root / "17500000004-d" / "conversations" / ONE)
    return {ONE, "17500000004-d"}


def archive(root: Path) -> set[str]:
    os.mkdir(root / ".archive")
    os.rename(root / ONE, root / ".archive" / ONE)
    return {"", ".archive"}


def name_a_file(root: Path) -> set[str]:
    (root / ONE / "sub").mkdir()
    (root / ONE / "sub" / "x.txt").write_text("x")
    os.utime(root / ONE / "sub" / "x.txt", ns=(LONG_AGO, LONG_AGO))
    return {f"{ONE}/sub/x.txt"}


def begin_one(root: Path) -> set[str]:
    write_conversation(root / BELOW / "conversations" / "17500000009-z", "New", events(1))
    return {f"{BELOW}/conversations"}


def nothing(_root: Path) -> set[str]:
    return {"", ONE, f"{ONE}/conversations", "17500000099-x", f"{DEEP}/conversations", ".trash"}


@pytest.mark.parametrize(
    "change",
    [
        edit,
        remove,
        remove_what_is_around,
        rename,
        rename_in_a_listing,
        move_down,
        archive,
        name_a_file,
        begin_one,
        nothing,
    ],
)
def test_a_part_looked_at_again_is_what_a_scan_finds(side: Seen, change: Callable[[Path], set[str]]) -> None:
    assert side.again(*change(side.root))


def test_a_partition_that_is_gone(side: Seen) -> None:
    archive(side.root)
    assert side.again("")
    os.rename(side.root / ".archive", side.root.parent / "away")
    assert side.again("")
    assert ONE not in side.known.paths


def foreign_name(root: Path) -> set[str]:
    (root / "notes").mkdir()
    return {""}


def foreign_name_by_itself(root: Path) -> set[str]:
    (root / "notes").mkdir()
    return {"notes"}


def link(root: Path) -> set[str]:
    os.rename(root / ONE, root.parent / "away")
    (root / ONE).symlink_to(root.parent / "away")
    return {ONE}


def pipe(root: Path) -> set[str]:
    os.mkfifo(root / ONE / "pipe")
    return {ONE}


def another_root(root: Path) -> set[str]:
    os.rename(root, root.parent / "away")
    root.mkdir()
    return {ONE}


def no_root(root: Path) -> set[str]:
    os.rename(root, root.parent / "away")
    return {ONE}


def file_in_the_way(root: Path) -> set[str]:
    os.rename(root / ONE, root.parent / "away")
    (root / ONE).write_text("x")
    return {BELOW}


@pytest.mark.parametrize(
    "change", [foreign_name, foreign_name_by_itself, link, pipe, another_root, no_root, file_in_the_way]
)
def test_what_is_no_conversation_is_looked_at_with_everything(side: Seen, change: Callable[[Path], set[str]]) -> None:
    assert not side.again(*change(side.root))


@pytest.mark.parametrize(("times", "enough"), [(1, True), (9, False)])
def test_what_changes_on_the_way_is_looked_at_once_more(
    side: Seen, monkeypatch: pytest.MonkeyPatch, times: int, enough: bool
) -> None:
    real, left = rescanning._PartialWalk.add_copy, [times]

    def rename(self: rescanning._PartialWalk, *args: object) -> None:
        real(self, *args)  # type: ignore[arg-type]
        if left[0]:
            left[0] -= 1
            os.rename(side.root / "17500000004-d", side.root / "17500000004-e")
            os.rename(side.root / "17500000004-e", side.root / "17500000004-d")

    monkeypatch.setattr(rescanning._PartialWalk, "add_copy", rename)
    assert side.again(ONE) is enough
