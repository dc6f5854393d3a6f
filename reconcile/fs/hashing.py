"""Digests for comparing contents: hexadecimal xxh3_128. The vault has its own, cryptographic digest."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHUNK = 1 << 20
"""Bytes in memory at a time."""


def chunks_of(fd: int) -> Iterator[bytes]:
    """Yield the rest of a file in chunks, so that memory use doesn't depend on its size."""
    while chunk := os.read(fd, CHUNK):
        yield chunk


def digest(content: bytes) -> str:
    """Return the digest of ``content``: 32 lower-case hexadecimal digits."""
    return _hexdigest()(content)


@cache
def _hexdigest() -> Callable[[bytes], str]:
    # Imported on first use: a run that finds every file in the index hashes nothing.
    from xxhash import xxh3_128_hexdigest

    return xxh3_128_hexdigest


def digest_file(fd: int) -> str:
    """Return the digest of the rest of a file."""
    return digest_and_size(fd)[0]


def digest_and_size(fd: int) -> tuple[str, int]:
    """Return the digest of the rest of a file, and its number of bytes, which shows a change of size."""
    hashing = HashedChunks(chunks_of(fd))
    for _ in hashing:
        pass
    return hashing.digest, hashing.size


class HashedChunks:
    """An iterator that passes chunks on and computes their ``digest`` and their ``size`` in bytes."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        from xxhash import xxh3_128

        self._chunks, self._state, self.size = chunks, xxh3_128(), 0

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        chunk = next(self._chunks)
        self._state.update(chunk)
        self.size += len(chunk)
        return chunk

    @property
    def digest(self) -> str:
        """The digest of the chunks so far."""
        return self._state.hexdigest()
