"""What distinguishes a directory from a later one at the same path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reconcile.fs import paths
from reconcile.fs.paths import directory_identity, generation_of, identity_of
from reconcile.model.snapshot import is_same_directory

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("generation", [None, 0, 7])
def test_the_generation_counts_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, generation: int | None
) -> None:
    monkeypatch.setattr(paths, "generation_of", lambda _: generation)
    status = tmp_path.stat()
    inode = f"{status.st_dev}:{status.st_ino}"
    assert identity_of(str(tmp_path)) == inode
    assert directory_identity(str(tmp_path)) == (inode if generation is None else f"{inode}:{generation}")
    assert directory_identity(str(tmp_path / "none")) == ""


def test_no_directory_has_no_generation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert generation_of(str(tmp_path / "none")) is None
    monkeypatch.setattr("sys.platform", "darwin")
    assert generation_of(str(tmp_path)) is None


@pytest.mark.parametrize(
    ("now", "recorded", "same"),
    [
        ("8:1:7", "8:1:7", True),
        ("8:1:7", "8:1:6", False),
        ("8:1:7", "8:1", True),
        ("8:1", "8:1", True),
        ("8:1:7", "8:12", False),
        ("", "", True),
        ("", "8:1:7", False),
    ],
)
def test_a_record_without_a_generation_is_compared_without_it(now: str, recorded: str, *, same: bool) -> None:
    assert is_same_directory(now, recorded) is same
