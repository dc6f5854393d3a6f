"""Directories of conversations that a run itself has made: what it has written, it need not read again.

A file's status tells whether somebody has written to it since, unless that came within a tick of the file system's
clock (`reconcile.index.stat_cache`). Until it gets its place, a file lies in our staging directory, where nobody else
writes; so the status that it was written with says what is in it if a tick lay between. One that is younger is read
again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from reconcile.index.stat_cache import make_row, settled
from reconcile.model.snapshot import Metadata, Stream

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reconcile.fs.files import Fingerprint
    from reconcile.index.stat_cache import Row
    from reconcile.model.format import Format
    from reconcile.model.plan import Action
    from reconcile.model.snapshot import Copy, Digest, Place

Files: TypeAlias = "Mapping[str, tuple[Fingerprint, Digest]]"
"""By name, the status and the content with which each was written."""


def are_settled(files: Files, placed_ns: int) -> bool:
    """Tell whether whatever is written to any of these shows, from the time on at which they got their place."""
    return all(settled(known, placed_ns) for known, _ in files.values())


def rows_of(
    made: Mapping[str, Files], actions: Iterable[Action], sources: Iterable[Copy], fmt: Format
) -> dict[Place, Row]:
    """Return the index's rows of the directories that these actions have made as they were written to be.

    ``sources`` are the copies of before: what their contents mean is known.
    """
    by_place = {copy.place: copy for copy in sources} if made else {}
    found = {}
    for action in actions if made else ():
        source = by_place.get(action.source) if action.source is not None else None
        if source is not None and action.id in made:
            row = _row_of(made[action.id], source, fmt)
            if row is not None:
                found[action.target] = row
    return found


def _row_of(files: Files, source: Copy, fmt: Format) -> Row | None:
    """Return what there is to know of a directory with these files; None where they aren't its source's."""
    managed = (fmt.metadata_file, *fmt.stream_files)
    wanted = {file.name: file.digest for file in source.files if file.name in managed}
    found = {name: digest for name, (_, digest) in files.items() if name in managed}
    metadata, stream = source.metadata, source.stream
    if wanted != found or not isinstance(metadata, Metadata) or not isinstance(stream, Stream):
        return None
    return make_row(files, metadata, stream)
