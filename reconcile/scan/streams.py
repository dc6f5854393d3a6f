"""Reading the stream of a copy: at once, or piece by piece where its events are larger than memory should hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.fs.files import parse_or_fault, read_all, read_consistently
from reconcile.fs.hashing import HashedChunks, chunks_of, digest
from reconcile.model.snapshot import Fault, Stream

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconcile.fs.dirfd import Directory
    from reconcile.fs.files import Fingerprint
    from reconcile.model.format import Format, StreamContent
    from reconcile.model.snapshot import Digest
    from reconcile.scan.content_cache import Facts

LARGE = 64 << 20
"""Bytes from which on a file of events is read piece by piece, which takes longer."""


def read_stream(
    directory: Directory,
    sizes: Mapping[str, int],
    fmt: Format,
    *,
    events: bool,
    content: bool = False,
    facts: Facts | None = None,
) -> tuple[Stream | Fault, dict[str, tuple[Fingerprint, Digest]]] | Fault:
    """Return what the stream's files say with the fingerprints and digests that they were read with, all as they were
    at one moment; a `Fault` alone where they can't be read. ``sizes`` in bytes, by name, as they were listed.
    ``content``: the bytes of its events too, where they are held. ``facts`` is what is known of contents already.
    """

    def held(fd: int, size: int) -> tuple[tuple[StreamContent, Digest], int]:
        held, read = read_all(fd, size)
        return (held, digest(held)), read

    def summarised(fd: int, _size: int) -> tuple[tuple[StreamContent, Digest], int]:
        hashing = HashedChunks(chunks_of(fd))
        summary = fmt.summarise(hashing, events=events)
        for _ in hashing:  # what a fault has left unread
            pass
        return (summary, hashing.digest), hashing.size

    large = {name for name, size in sizes.items() if size > LARGE and name == fmt.stream_files[-1]}
    found = read_consistently(directory, {name: summarised if name in large else held for name in sizes})
    if isinstance(found, Fault):
        return found
    contents = {name: each for name, ((each, _), _) in found.items()}
    files = {name: (known, hashed) for name, ((_, hashed), known) in found.items()}

    def read() -> Stream | Fault:
        stream = parse_or_fault(max(sizes), lambda: fmt.read_stream(contents, events=events))
        held = contents.get(fmt.stream_files[-1])
        if content and isinstance(stream, Stream) and isinstance(held, bytes):
            return replace(stream, content=held)
        return stream

    if events or facts is None:
        return read(), files
    return facts.stream(tuple(files[name][1] if name in files else None for name in fmt.stream_files), read), files
