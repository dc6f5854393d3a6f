"""Comparing two versions of a file that grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconcile.fs import hashing, versions
from reconcile.fs.hashing import Hasher, digest
from reconcile.fs.versions import compare, compare_blocks, read_beginning

if TYPE_CHECKING:
    from pathlib import Path

_TEXTS = st.text("ab", max_size=14).map(str.encode)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "CHUNK", 4)
    monkeypatch.setattr(versions, "_AROUND", 3)
    for module in (versions, hashing):
        monkeypatch.setattr(module, "BLOCK", 2)
    monkeypatch.setattr(hashing, "WHOLE", 4)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(shared=_TEXTS, one=_TEXTS, other=_TEXTS, more=_TEXTS)
@pytest.mark.usefixtures("short")
def test_the_ends_tell_what_the_whole_contents_tell(
    tmp_path: Path, shared: bytes, one: bytes, other: bytes, more: bytes
) -> None:
    contents = shared + one, shared + other
    paths = tmp_path / "one", tmp_path / "other"
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content + more)  # appended since the scan
    with paths[0].open("rb") as first, paths[1].open("rb") as second:
        compared = compare((first.fileno(), second.fileno()), (len(contents[0]), len(contents[1])))
        assert read_beginning(first.fileno(), len(contents[0])) == contents[0]
    assert compared.digests == (digest(contents[0]), digest(contents[1]))
    continues = contents[0].startswith(contents[1]), contents[1].startswith(contents[0])
    assert (compared.ends is None) == (continues == (False, False))
    if compared.ends is not None:
        assert (
            compared.ends[0].startswith(compared.ends[1]),
            compared.ends[1].startswith(compared.ends[0]),
        ) == continues
        assert max(map(len, compared.ends)) <= 6


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(shared=_TEXTS, one=_TEXTS, other=_TEXTS, more=_TEXTS)
@pytest.mark.usefixtures("short")
def test_the_blocks_tell_the_same(tmp_path: Path, shared: bytes, one: bytes, other: bytes, more: bytes) -> None:
    contents = b"12345" + shared + one, b"12345" + shared + other
    blocks = []
    paths = tmp_path / "one", tmp_path / "other"
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content + more)
        hasher = Hasher()
        hasher.update(content)
        blocks.append(hasher.blocks)
    sizes = len(contents[0]), len(contents[1])
    with paths[0].open("rb") as first, paths[1].open("rb") as second:
        files = first.fileno(), second.fileno()
        known, read = compare_blocks(files, sizes, (blocks[0], blocks[1])), compare(files, sizes).ends
    assert (known is None) == (read is None)
    if known is not None:
        end = min(sizes)
        assert known == (contents[0][end - 3 : end + 3], contents[1][end - 3 : end + 3])


def test_a_file_that_has_become_shorter_has_another_digest(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    with path.open("rb") as file:
        assert compare((file.fileno(), file.fileno()), (3, 9)).digests == (digest(b"abc"), digest(b"abc"))
