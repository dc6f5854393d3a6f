"""Reads a log (`Places.is_log`) in chunks. Of a large one that has grown, only the new bytes are read.

The program of a log only appends to it. So the bytes that were read before count as the same under three conditions.
The file has the same inode. It is not shorter. The bytes of the last block before its former end are the same. That
proves nothing about the bytes before (docs/safety.md#sessions-that-grow), so a log that rests is read again as a whole
(`is_due`).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.fs.files import fingerprint_of, read_consistently
from reconcile.fs.hashing import BLOCK, BLOCK_DIGEST, CHUNK, WHOLE, HashedChunks, Hasher, chunks_of, digest_of_block
from reconcile.index.rows import Log
from reconcile.model.snapshot import Fault, Metadata

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reconcile.fs.files import Directory, Fingerprint
    from reconcile.model.format import Places
    from reconcile.model.snapshot import Digest

_REST_NS = 86_400 * 10**9
"""Time without a change after which a log is read as a whole, if it wasn't since it has grown."""


class ReadLog(Struct, frozen=True):
    """A record that was read. The content of a log is not kept; ``log`` is None for a small or an invalid one."""

    record: Metadata | Fault
    digest: Digest
    known: Fingerprint
    log: Log | None = None


class _Parsed(Struct, frozen=True):
    record: Metadata | Fault
    hasher: Hasher
    state: bytes
    length: int
    is_read: bool


def read_log(level: Directory, name: str, places: Places, conversation: str, before: Log | None) -> ReadLog | Fault:
    """Return a parsed log; ``before`` is what an earlier read has returned. A `Fault`: it can't be read."""

    def parsed(fd: int, _size: int) -> tuple[_Parsed, int]:
        result = None
        if before is not None and _has_grown(fd, before):
            result = _read_new(fd, places, conversation, before)
        if result is None:
            os.lseek(fd, 0, os.SEEK_SET)
            result = _read_all(fd, places, conversation)
        return result, result.hasher.size

    result = read_consistently(level, {name: parsed})
    if isinstance(result, Fault):
        return result
    read, known = result[name]
    hasher, log = read.hasher, None
    if isinstance(read.record, Metadata) and hasher.size > WHOLE:
        log = Log(known, hasher.digest, hasher.blocks, read.state, read.length, read.is_read)
    return ReadLog(read.record, hasher.digest, known, log)


def is_due(log: Log | None, mtime_ns: int, now_ns: int) -> bool:
    """Tell whether an unchanged log must be read as a whole now."""
    return log is not None and not log.is_read and not now_ns - _REST_NS < mtime_ns <= now_ns


def _has_grown(fd: int, before: Log) -> bool:
    """Tell whether a log has grown, or has just grown and was read before its time proved anything."""
    now, known = fingerprint_of(os.fstat(fd)), before.known
    return now[2] == known[2] and (now[0] > known[0] or (now == known and not before.is_read))


def _read_all(fd: int, places: Places, conversation: str) -> _Parsed:
    hashing = HashedChunks(chunks_of(fd))
    read = places.read_log(conversation, hashing)
    for _ in hashing:  # a fault leaves the rest unread, and the digest needs it
        pass
    return _Parsed(read.record, hashing.hasher, read.state, read.length, is_read=True)


def _read_new(fd: int, places: Places, conversation: str, before: Log) -> _Parsed | None:
    """Read what was appended; None if the bytes before it differ from what is known, or if the rest is invalid."""
    size = before.known[0]
    last = (size - 1) // BLOCK * BLOCK
    block = os.pread(fd, size - last, last)
    if len(block) != size - last or digest_of_block(block) != before.blocks[last // BLOCK * BLOCK_DIGEST :]:
        return None
    hasher = Hasher(before.blocks[: last // BLOCK * BLOCK_DIGEST])
    hasher.update(block)

    def chunks() -> Iterator[bytes]:
        """Yield the bytes after those that the state covers: some may be known, the others are hashed."""
        at = before.length
        while at < size and (known := os.pread(fd, min(CHUNK, size - at), at)):
            yield known
            at += len(known)
        os.lseek(fd, size, os.SEEK_SET)
        for chunk in chunks_of(fd):
            hasher.update(chunk)
            yield chunk

    read = places.read_log(conversation, chunks(), before.state)
    if isinstance(read.record, Fault):
        return None
    return _Parsed(read.record, hasher, read.state, before.length + read.length, is_read=False)
