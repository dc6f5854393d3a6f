"""What contents say, by their digests: the same bytes are checked once, on whichever side and however often they are
found. Faults are not among them, so that whatever is wrong is told of the file that it is found in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.model.snapshot import Fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconcile.model.snapshot import Digest, Metadata, Stream


class Facts:
    """Grows with what is read; whoever keeps it says for how long."""

    __slots__ = ("_metadata", "_streams")

    def __init__(self) -> None:
        self._metadata: dict[Digest, Metadata] = {}
        self._streams: dict[tuple[Digest | None, ...], Stream] = {}

    def metadata(self, digest: Digest, read: Callable[[], Metadata | Fault]) -> Metadata | Fault:
        """Return what a metadata file says."""
        known = self._metadata.get(digest)
        if known is None:
            found = read()
            if isinstance(found, Fault):
                return found
            known = self._metadata[digest] = found
        return known

    def stream(self, digests: tuple[Digest | None, ...], read: Callable[[], Stream | Fault]) -> Stream | Fault:
        """Return what a stream says without events; ``digests`` are its files', None for one that is missing."""
        known = self._streams.get(digests)
        if known is None:
            found = read()
            if isinstance(found, Fault):
                return found
            known = self._streams[digests] = found
        return known
