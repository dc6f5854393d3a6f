"""Usual copies are read at once, and come out as they do where each is looked at as carefully as an odd one."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from reconcile.formats import get_format
from reconcile.model.snapshot import Side
from reconcile.scan import reader
from reconcile.scan.reader import ContentCache
from reconcile.scan.scan import scan
from tests.support.projects.mixed_side import FIRST, fill
from tests.support.projects.stat_rows import whole
from tests.support.projects.world import events, write_conversation

if TYPE_CHECKING:
    from pathlib import Path

    from reconcile.scan.scan import Scanned

FORMAT = get_format("jp", ("*.bak",))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "conversations"
    root.mkdir()
    fill(root)
    usual = root / f"{FIRST + 11}-it"
    (usual / "events.json.bak").write_bytes(b"ignored")
    (usual / ".DS_Store").write_bytes(b"ignored")
    (usual / ".git").mkdir()
    alone = write_conversation(root / f"{FIRST + 30}-it", "It", events(3))
    (alone / "base_config.json").unlink()
    (root / f"{FIRST + 10}-it" / "base_config.json").write_bytes(b"not strict JSON")
    (root / f"{FIRST + 31}-it").mkdir()
    return root


def looked(root: Path, now_ns: int | None) -> Scanned:
    return scan(Side.STORE, str(root), FORMAT, None, now_ns=now_ns, cache=ContentCache())


def comparable(found: Scanned) -> tuple[object, ...]:
    stats = whole(found.stats)
    seen = {name: tuple(stats.fingerprints[4 * at : 4 * at + 4]) for at, name in enumerate(stats.names)}
    return found.snapshot, dict(found.index.rows.items()), found.changed, found.read, seen


@pytest.mark.parametrize("age", ["at rest", "half of it just written", "just written"])
def test_what_is_read_at_once_comes_out_as_what_is_read_with_care(
    root: Path, age: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_ns = (root / f"{FIRST}-it" / "metadata.json").stat().st_ctime_ns - 10**9
    if age != "just written":
        time.sleep(0.05)
        now_ns = time.time_ns()
    if age == "half of it just written":
        for number in range(0, 12, 2):
            path = root / f"{FIRST + number}-it" / "base_config.json"
            path.write_bytes(path.read_bytes())
    at_once = looked(root, now_ns)
    calls: list[str] = []
    monkeypatch.setattr(reader, "read_common_copy", lambda _reader, _directory, location: calls.append(location.path))
    assert comparable(looked(root, now_ns)) == comparable(at_once)
    assert len(calls) == len(at_once.snapshot.copies)
    assert any(row.content for row in at_once.index.rows.values()) == (age != "just written")
