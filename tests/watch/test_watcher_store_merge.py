"""Stores of one workspace that JP brings together: what has gone from one may lie in another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reconcile.adapters.jp.roots import locate_jp
from reconcile.adapters.roots import Request, Roots
from reconcile.model.baseline import WorldState
from reconcile.watch.watcher import MergingError, refuse_merging
from tests.support.scenarios.building import agreed_on, here, stored
from tests.support.scenarios.pure_level import FORMAT

if TYPE_CHECKING:
    from pathlib import Path

A = '1-a  metadata 09:00 title "A"  stream 09:00 [1]'
GONE = WorldState(stored(), here(A), agreed_on(A))


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    (tmp_path / "project" / ".jp").mkdir(parents=True)
    (tmp_path / "project" / ".jp" / ".id").write_text("ab1cd\n")
    for name in ("project-ab1cd", "other-ab1cd"):
        (tmp_path / "jp" / "workspace" / name).mkdir(parents=True)
    environment = {"JP_USER_DATA_DIR": str(tmp_path / "jp")}
    found = locate_jp(Request(str(tmp_path / "project"), None, str(tmp_path), environment, "linux"))
    assert len(found.siblings) == 1
    return found


def test_what_lies_in_another_store_was_not_removed(roots: Roots, tmp_path: Path) -> None:
    refuse_merging(GONE, roots, FORMAT)
    (tmp_path / "jp" / "workspace" / "other-ab1cd" / "conversations" / ".archive" / "1-a").mkdir(parents=True)
    with pytest.raises(MergingError, match="watch waits until JP has merged the two stores"):
        refuse_merging(GONE, roots, FORMAT)
    refuse_merging(WorldState(stored(A), here(A), agreed_on(A)), roots, FORMAT)


def test_a_store_that_cannot_be_read_may_hold_it(roots: Roots, tmp_path: Path) -> None:
    loop = tmp_path / "jp" / "workspace" / "other-ab1cd" / "conversations"
    loop.symlink_to(loop)
    with pytest.raises(MergingError, match=r"can't be read \(Too many levels of symbolic links\)"):
        refuse_merging(GONE, roots, FORMAT)
