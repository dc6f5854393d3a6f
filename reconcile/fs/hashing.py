"""Digests: hexadecimal xxh3_128, for telling contents apart (the vault has its own, cryptographic one)."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHUNK = 1 << 20
"""Bytes in memory at a time."""


def chunks_of(fd: int) -> Iterator[bytes]:
    """What is left to read from ``fd``, a chunk at a time whatever its size."""
    while chunk := os.read(fd, CHUNK):
        yield chunk


def digest(content: bytes) -> str:
    """The digest of ``content``: 32 lower-case hexadecimal digits."""
    return _hexdigest()(content)


@cache
def _hexdigest() -> Callable[[bytes], str]:
    # Imported where it is used: a run that finds everything in the index hashes nothing.
    from xxhash import xxh3_128_hexdigest

    return xxh3_128_hexdigest


def digest_file(fd: int) -> str:
    """The digest of what is left to read from ``fd``."""
    return digest_and_size(fd)[0]


def digest_and_size(fd: int) -> tuple[str, int]:
    """The same with the number of bytes that were read, which tells whether the file kept its size."""
    hashing = Hashing(chunks_of(fd))
    for _ in hashing:
        pass
    return hashing.digest, hashing.size


class Hashing:
    """An iterator of chunks that knows the ``digest`` and the ``size`` in bytes of what has passed."""

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
        """The digest of what has passed."""
        return self._state.hexdigest()
