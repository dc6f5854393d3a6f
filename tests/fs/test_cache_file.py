"""A file of values is whole, or there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reconcile.fs.cache_file import load_values, save_values

if TYPE_CHECKING:
    from pathlib import Path

VALUES = [("a", 1, None), (b"names\0", b"\0" * 300), ()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "values"
    save_values(str(path), "kind", *VALUES)
    return path


def test_what_was_kept_is_there_again(path: Path) -> None:
    assert load_values(str(path), "kind") == VALUES
    assert load_values(str(path), "another") is None
    assert load_values(str(path.with_name("missing")), "kind") is None


def test_a_file_that_was_cut_has_none(path: Path) -> None:
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert load_values(str(path), "kind") is None, length


def test_a_file_with_another_byte_has_none(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    for at in range(len(whole)):
        whole[at] ^= 0x55
        path.write_bytes(whole)
        assert load_values(str(path), "kind") is None, at
        whole[at] ^= 0x55
    path.write_bytes(whole + b"more")
    assert load_values(str(path), "kind") is None
