"""Digests of contents: the same for the same bytes, in whatever pieces they come."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest
from xxhash import xxh3_128_digest, xxh3_128_hexdigest

from reconcile.fs.hashing import BLOCK, BLOCK_DIGEST, WHOLE, Hasher, digest, digest_file, digest_of_block
from reconcile.fs.mutations import Root

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SIZES = (0, 1, BLOCK, WHOLE - 1, WHOLE, WHOLE + 1, 17 * BLOCK - 1, 17 * BLOCK, 17 * BLOCK + 1)
CONTENT = random.Random(1).randbytes(18 * BLOCK)


def by_definition(content: bytes) -> str:
    if len(content) <= WHOLE:
        return xxh3_128_hexdigest(content)
    blocks = [content[at : at + BLOCK] for at in range(0, len(content), BLOCK)]
    return xxh3_128_hexdigest(b"".join(map(xxh3_128_digest, blocks)))


def pieces(content: bytes, size: int) -> Iterator[bytes]:
    yield from (content[at : at + size] for at in range(0, len(content), size))


@pytest.mark.parametrize("size", SIZES)
def test_every_way_gives_the_same_digest(tmp_path: Path, size: int) -> None:
    content, path = CONTENT[:size], tmp_path / "file"
    path.write_bytes(content)
    fd = os.open(path, os.O_RDONLY)
    root = Root(str(tmp_path))
    try:
        found = {digest(content), digest_file(fd), root.digest("file")}
        found.add(root.create_file("copy", pieces(content, 70_001), 1)[1])
    finally:
        os.close(fd)
        root.close()
    assert found == {by_definition(content)}


@pytest.mark.parametrize("size", [1000, BLOCK, BLOCK + 1, 3 * WHOLE])
def test_the_pieces_do_not_matter(size: int) -> None:
    for end in SIZES:
        hasher = Hasher()
        for piece in pieces(CONTENT[:end], size):
            hasher.update(piece)
        assert (hasher.digest, hasher.size) == (by_definition(CONTENT[:end]), end)


@pytest.mark.parametrize("before", [WHOLE + 1, 17 * BLOCK - 1, 17 * BLOCK])
@pytest.mark.parametrize("after", [17 * BLOCK, 17 * BLOCK + 1, 18 * BLOCK])
def test_a_content_that_has_grown_is_hashed_from_its_last_block_on(before: int, after: int) -> None:
    hasher = Hasher()
    hasher.update(CONTENT[:before])
    whole = before // BLOCK
    known = hasher.blocks[: whole * BLOCK_DIGEST]
    if before % BLOCK:
        assert hasher.blocks[len(known) :] == digest_of_block(CONTENT[whole * BLOCK : before])
    going_on = Hasher(known)
    going_on.update(CONTENT[whole * BLOCK : after])
    assert (going_on.digest, going_on.size) == (by_definition(CONTENT[:after]), after)
