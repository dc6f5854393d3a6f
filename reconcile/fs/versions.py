"""Compares two versions of a file that a program appends to, in bounded memory."""

from __future__ import annotations

import os
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from reconcile.fs.hashing import BLOCK, BLOCK_DIGEST, CHUNK, HashedChunks

if TYPE_CHECKING:
    from collections.abc import Iterator

_AROUND = 1 << 16
"""Bytes on each side of the end of the shorter version that `Comparison.ends` has."""


class Comparison(NamedTuple):
    """The digests of two versions, and how they differ.

    ``ends``: if one version begins with the other, the bytes of both around the end of the shorter one. They begin at
    the same byte, and that of the longer one may be cut. None: each has bytes that the other lacks.
    """

    digests: tuple[str, str]
    ends: tuple[bytes, bytes] | None


def compare(files: tuple[int, int], sizes: tuple[int, int]) -> Comparison:
    """Compare the beginnings of two open files: so many bytes of each. Each byte is read once. Raises `OSError`."""
    one, other = (HashedChunks(_beginning(fd, size)) for fd, size in zip(files, sizes, strict=True))
    before, ends, is_same = b"", None, True
    for first, second in zip_longest(one, other, fillvalue=b""):
        shared = min(len(first), len(second))
        is_same = is_same and (ends is not None or first[:shared] == second[:shared])
        if not is_same or ends is not None:
            continue  # only the digests need the rest
        if len(first) != len(second):
            begin = (before + first[:shared])[-_AROUND:]
            ends = begin + first[shared:][:_AROUND], begin + second[shared:][:_AROUND]
        before = first[-_AROUND:]
    if is_same and ends is None:
        ends = before, before
    return Comparison((one.digest, other.digest), ends if is_same else None)


def compare_blocks(
    files: tuple[int, int], sizes: tuple[int, int], blocks: tuple[bytes, bytes]
) -> tuple[bytes, bytes] | None:
    """Return `Comparison.ends` of two open files by the digests of their blocks (`Hasher.blocks`): few bytes are read.

    Raises `OSError`.
    """
    shorter = min(sizes)
    same = shorter // BLOCK * BLOCK_DIGEST
    if blocks[0][:same] != blocks[1][:same]:
        return None
    begin = max(0, min(shorter - _AROUND, shorter // BLOCK * BLOCK))
    one, other = (
        b"".join(_beginning(fd, min(size, shorter + _AROUND), begin)) for fd, size in zip(files, sizes, strict=True)
    )
    if one[: shorter - begin] != other[: shorter - begin]:
        return None
    around = max(0, shorter - begin - _AROUND)
    return one[around:], other[around:]


def read_beginning(fd: int, size: int) -> bytes:
    """Return the first bytes of an open file. Raises `OSError`."""
    return b"".join(_beginning(fd, size))


def _beginning(fd: int, size: int, offset: int = 0) -> Iterator[bytes]:
    """Yield the first bytes of a file from an offset on, in chunks of equal length; the last one may be shorter."""
    while offset < size:
        wanted, chunk = min(CHUNK, size - offset), b""
        while len(chunk) < wanted and (more := os.pread(fd, wanted - len(chunk), offset + len(chunk))):
            chunk += more
        if not chunk:
            return
        yield chunk
        offset += len(chunk)
