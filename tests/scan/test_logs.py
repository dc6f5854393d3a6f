"""Logs that differ between the sides: what planning gets of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reconcile.formats import get_format
from reconcile.fs.hashing import WHOLE
from reconcile.index.rows import Index
from reconcile.model.baseline import Baseline, WorldState
from reconcile.model.snapshot import Fault, Metadata, Side
from reconcile.scan import logs
from reconcile.scan.logs import with_logs
from reconcile.scan.scan import scan

if TYPE_CHECKING:
    from pathlib import Path

SESSION = "00000000-0000-4000-8000-000000000000.jsonl"
LINE = b'{"type":"user"}\n'


@pytest.fixture
def paths(tmp_path: Path) -> tuple[Path, Path]:
    both = tmp_path / "store" / SESSION, tmp_path / "workspace" / SESSION
    for path in both:
        path.parent.mkdir()
    return both


def loaded(
    paths: tuple[Path, Path], contents: tuple[bytes, bytes], **later: bytes | None
) -> list[Metadata | Fault | None]:
    """Return the records of both sides; `later`: the content of a side's file after the scan, None if it is gone."""
    roots = {Side.STORE: paths[0].parent, Side.WORKSPACE: paths[1].parent}
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    scans = {side: scan(side, str(root), get_format("claude-code"), Index()) for side, root in roots.items()}
    world = WorldState(scans[Side.STORE].snapshot, scans[Side.WORKSPACE].snapshot, Baseline())
    for side, now in later.items():
        path = paths[side == "workspace"]
        path.unlink()
        if now is not None:
            path.write_bytes(now)
    directories = {side: str(root) for side, root in roots.items()}
    after = with_logs(world, directories, {SESSION}, {side: found.index.rows for side, found in scans.items()})
    return [snapshot.copies[0].metadata for snapshot in (after.store, after.workspace)]


def content_of(record: Metadata | Fault | None) -> bytes:
    assert isinstance(record, Metadata)
    return record.content


def test_only_the_end_of_a_continuation_is_kept(paths: tuple[Path, Path]) -> None:
    before = LINE * 20_000
    store, workspace = map(content_of, loaded(paths, (before, before + LINE)))
    assert workspace == store + LINE
    assert len(store) < len(before) / 4


def test_two_continuations_are_whole(paths: tuple[Path, Path]) -> None:
    contents = LINE * 20_000 + b'{"of":"one"}\n', LINE * 20_000 + b'{"of":"other"}\n'
    assert tuple(map(content_of, loaded(paths, contents))) == contents


LARGE = LINE * (WHOLE // len(LINE) + 1)


def test_of_a_large_continuation_little_is_read(paths: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "compare", None)
    store, workspace = map(content_of, loaded(paths, (LARGE, LARGE + LINE)))
    assert workspace == store + LINE
    assert LARGE.endswith(store)


def test_two_large_continuations_are_whole(paths: tuple[Path, Path]) -> None:
    contents = LARGE + b'{"of":"one"}\n', LARGE + b'{"of":"other"}\n'
    assert tuple(map(content_of, loaded(paths, contents))) == contents


def test_a_large_log_that_changed_since_the_scan_is_a_fault(paths: tuple[Path, Path]) -> None:
    _, workspace = loaded(paths, (LARGE, LARGE + LINE), workspace=LINE * 3)
    assert isinstance(workspace, Fault)


@pytest.mark.parametrize("end", [LINE, b'{"of":"one"}\n'], ids=["ahead", "diverged"])
def test_what_was_appended_since_the_scan_does_not_count(paths: tuple[Path, Path], end: bytes) -> None:
    """The program writes at any moment; the next run takes it."""
    contents = (LINE + end, LINE * 2)
    records = loaded(paths, contents, workspace=contents[1] + LINE * 3)
    assert all(isinstance(record, Metadata) for record in records)
    assert LINE * 5 not in map(content_of, records)


@pytest.mark.parametrize("now", [None, b"", LINE + b"}"], ids=["gone", "empty", "cut short"])
def test_other_bytes_than_the_scanned_ones_are_a_fault(paths: tuple[Path, Path], now: bytes | None) -> None:
    store, workspace = loaded(paths, (LINE, LINE * 2), workspace=now)
    assert isinstance(workspace, Fault)
    assert "changed since the scan" in workspace.words
    assert now is None or isinstance(store, Metadata)
