"""Reads the stream of a copy, and caches parsed contents by digest.

Large files of events are read in chunks, so that they need not fit into memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.fs.files import parse_or_fault, read_all, read_consistently
from reconcile.fs.hashing import HashedChunks, chunks_of, digest
from reconcile.model.snapshot import Fault, Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from reconcile.fs.dirfd import Directory
    from reconcile.fs.files import Fingerprint
    from reconcile.model.format import Format, StreamContent
    from reconcile.model.snapshot import Digest, Metadata

LARGE = 64 << 20
"""Bytes from which on a file of events is read in chunks, which takes longer."""


class ContentCache:
    """Parsed contents by digest, so that the same bytes are parsed once, on both sides.

    Faults are not cached, since a fault names the file in which it was found. The owner decides how long the cache
    lives.
    """

    __slots__ = ("_metadata", "_streams")

    def __init__(self) -> None:
        self._metadata: dict[Digest, Metadata] = {}
        self._streams: dict[tuple[Digest | None, ...], Stream] = {}

    def metadata(self, digest: Digest, read: Callable[[], Metadata | Fault]) -> Metadata | Fault:
        """Return the metadata with this digest; ``read`` parses it if it isn't cached."""
        metadata = self._metadata.get(digest)
        if metadata is None:
            result = read()
            if isinstance(result, Fault):
                return result
            metadata = self._metadata[digest] = result
        return metadata

    def stream(self, digests: tuple[Digest | None, ...], read: Callable[[], Stream | Fault]) -> Stream | Fault:
        """Return the stream without events; ``digests`` are those of its files, None for a missing one."""
        stream = self._streams.get(digests)
        if stream is None:
            result = read()
            if isinstance(result, Fault):
                return result
            stream = self._streams[digests] = result
        return stream


def read_stream(
    directory: Directory,
    sizes: Mapping[str, int],
    fmt: Format,
    *,
    events: bool,
    content: bool = False,
    cache: ContentCache | None = None,
) -> tuple[Stream | Fault, dict[str, tuple[Fingerprint, Digest]]] | Fault:
    """Return the parsed stream, and the fingerprint and digest of each of its files; a `Fault` if one can't be read.

    All files are read as they were at one moment. ``sizes``: bytes by name, from the directory's listing. ``content``:
    keep the bytes of the events as well, if they were read at once. ``cache`` is used for streams without events.
    """

    def whole(fd: int, size: int) -> tuple[tuple[StreamContent, Digest], int]:
        content, read = read_all(fd, size)
        return (content, digest(content)), read

    def summarised(fd: int, _size: int) -> tuple[tuple[StreamContent, Digest], int]:
        hashing = HashedChunks(chunks_of(fd))
        summary = fmt.summarise(hashing, events=events)
        for _ in hashing:  # a fault leaves the rest unread, and the digest needs it
            pass
        return (summary, hashing.digest), hashing.size

    large = {name for name, size in sizes.items() if size > LARGE and name == fmt.stream_files[-1]}
    result = read_consistently(directory, {name: summarised if name in large else whole for name in sizes})
    if isinstance(result, Fault):
        return result
    contents = {name: parsed for name, ((parsed, _), _) in result.items()}
    files = {name: (fingerprint, hashed) for name, ((_, hashed), fingerprint) in result.items()}

    def read() -> Stream | Fault:
        stream = parse_or_fault(max(sizes), lambda: fmt.read_stream(contents, events=events))
        events_file = contents.get(fmt.stream_files[-1])
        if content and isinstance(stream, Stream) and isinstance(events_file, bytes):
            return replace(stream, content=events_file)
        return stream

    if events or cache is None:
        return read(), files
    return cache.stream(tuple(files[name][1] if name in files else None for name in fmt.stream_files), read), files
