"""Digests for comparing contents: hexadecimal xxh3_128. The vault has its own, cryptographic digest.

The digest of a content of more than `WHOLE` bytes is that of the digests of its blocks, one after the other. So a file
that has grown can be hashed from its last block on, if the digests of its blocks are known.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHUNK = 1 << 20
"""Bytes in memory at a time."""
WHOLE = 1 << 20
"""Bytes up to which a content is hashed as a whole."""
BLOCK = 1 << 16
"""Bytes of a block; the last block of a content may be shorter."""
BLOCK_DIGEST = 16
"""Bytes of the digest of a block."""


def chunks_of(fd: int, size: int = CHUNK) -> Iterator[bytes]:
    """Yield the rest of a file in chunks, so that memory use doesn't depend on its size."""
    while chunk := os.read(fd, size):
        yield chunk


def digest(content: bytes) -> str:
    """Return the digest of ``content``: 32 lower-case hexadecimal digits."""
    if len(content) <= WHOLE:
        return _hexdigest()(content)
    hasher = Hasher()
    hasher.update(content)
    return hasher.digest


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


def digest_of_block(block: bytes | memoryview) -> bytes:
    """Return the digest of one block, as `Hasher.blocks` has it."""
    from xxhash import xxh3_128_digest  # here: only large contents need it

    return xxh3_128_digest(block)


class Hasher:
    """Computes the digest of a content that is passed in pieces; ``size`` is the number of its bytes so far.

    It can go on after ``known``, the digests of the first blocks of a content that has more than `WHOLE` bytes.
    """

    __slots__ = ("_block", "_blocks", "_first", "_hashed", "_new", "size")

    def __init__(self, known: bytes = b"") -> None:
        self._first: list[bytes] = []
        """The content, while it may be hashed as a whole."""
        self._block: Any = None
        self._blocks = bytearray(known)
        self.size = self._hashed = len(known) // BLOCK_DIGEST * BLOCK

    def update(self, content: bytes) -> None:
        """Take in the next bytes."""
        self.size += len(content)
        if self.size <= WHOLE and not self._blocks:
            self._first.append(content)
            return
        for each in (*self._first, content):
            self._hash(memoryview(each))
        self._first.clear()

    def _hash(self, content: memoryview) -> None:
        from xxhash import xxh3_128  # here: most runs hash no large content

        while content:
            part = content[: BLOCK - self._hashed % BLOCK]
            content = content[len(part) :]
            if len(part) == BLOCK:
                self._blocks += digest_of_block(part)
            else:
                if self._hashed % BLOCK == 0:
                    self._block = xxh3_128()
                self._block.update(part)
                if (self._hashed + len(part)) % BLOCK == 0:
                    self._blocks += self._block.digest()
            self._hashed += len(part)

    @property
    def blocks(self) -> bytes:
        """The digests of the blocks of a content that has more than `WHOLE` bytes."""
        return bytes(self._blocks) + (self._block.digest() if self._hashed % BLOCK else b"")

    @property
    def digest(self) -> str:
        """The digest of the content so far."""
        return _hexdigest()(self.blocks if self._hashed else b"".join(self._first))


class HashedChunks:
    """An iterator that passes chunks on and computes their ``digest`` and their ``size`` in bytes."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self.hasher = chunks, Hasher()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        chunk = next(self._chunks)
        self.hasher.update(chunk)
        return chunk

    @property
    def size(self) -> int:
        """The number of bytes so far."""
        return self.hasher.size

    @property
    def digest(self) -> str:
        """The digest of the chunks so far."""
        return self.hasher.digest
