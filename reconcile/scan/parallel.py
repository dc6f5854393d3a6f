"""Scans both sides in parallel: a helper process scans the workspace if both sides are large enough."""

from __future__ import annotations

import marshal
import os
from typing import TYPE_CHECKING, NamedTuple

from reconcile.fs.helper_process import HelperProcess, is_possible
from reconcile.index.rows import Index, Packed, is_whole
from reconcile.index.stat_table import StatTable
from reconcile.model.snapshot import Copy, Partition, Side, Snapshot, Stream
from reconcile.scan.scan import Scanned, scan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconcile.index.rows import Row
    from reconcile.model.format import Format
    from reconcile.scan.contents import ContentCache

MIN_ENTRIES = 400
"""Entries of a side from which on a helper process saves time."""


class ScanInput(NamedTuple):
    """A side's directory of conversations, and its index of an earlier scan."""

    conversations: str
    known: Index


def scan_both(sides: Mapping[Side, ScanInput], fmt: Format, cache: ContentCache) -> dict[Side, Scanned]:
    """Scan both sides; `scan` scans one."""
    store, workspace = sides[Side.STORE], sides[Side.WORKSPACE]

    def here(side: Side) -> Scanned:
        return scan(side, sides[side].conversations, fmt, sides[side].known, cache=cache)

    if not is_possible() or min(_entries(store.conversations), _entries(workspace.conversations)) < MIN_ENTRIES:
        return {side: here(side) for side in Side}
    with HelperProcess.start(lambda: encode(here(Side.WORKSPACE))) as child:
        stored = here(Side.STORE)
        decoded = decode(Side.WORKSPACE, child.result(), workspace.known, stored)
    # If the helper process has failed, this process scans the workspace.
    return {Side.STORE: stored, Side.WORKSPACE: decoded or here(Side.WORKSPACE)}


def encode(scanned: Scanned) -> bytes:
    """Return a scan's result as bytes; an unchanged index is left out."""
    snapshot, rows = scanned.snapshot, scanned.index.rows
    locations: list[tuple[str, str, str, str | None] | None] = []
    others: list[Copy] = []
    for copy in snapshot.copies:
        if is_whole(copy, rows.get(copy.path)) and not _has_events(copy):
            locations.append((copy.path, copy.conversation, copy.partition.value, copy.container))
        else:
            locations.append(None)
            others.append(copy)
    import pickle  # here and below: most scans need no helper process

    rest = (others, snapshot.foreign, snapshot.problems)
    values = (
        (snapshot.exists, snapshot.identity, scanned.changed, scanned.read),
        locations,
        pickle.dumps(rest, pickle.HIGHEST_PROTOCOL),
        scanned.stats.pieces,
        (scanned.index.format, scanned.index.identity, tuple(scanned.index.packed())) if scanned.changed else None,
    )
    return marshal.dumps(values)


def decode(side: Side, blob: bytes | None, before: Index, other: Scanned) -> Scanned | None:
    """Return a scan's result from bytes, None if there are none; ``before`` is the index that was passed to the scan.

    Values that equal those of the ``other`` side are shared with it to save memory.
    """
    if blob is None:
        return None
    (exists, identity, changed, read), locations, rest, pieces, new = marshal.loads(blob)  # noqa: S302 - our own
    del blob
    index = before if new is None else Index.of(new[0], new[1], Packed(*new[2]))
    import pickle

    pickled, foreign, problems = pickle.loads(rest)  # noqa: S301 - as above
    others, copies, twins = iter(pickled), [], {copy.conversation: copy for copy in other.snapshot.copies}
    for location in locations:
        if location is None:
            copies.append(next(others))
            continue
        path, conversation, partition, container = location
        row, twin, place = (
            index.rows[path],
            twins.get(conversation),
            (conversation, path, Partition(partition), container),
        )
        if twin is not None and _describes(row, twin, other.index.rows.get(twin.path)):
            copy = Copy(side, *place, twin.files, twin.metadata, twin.stream)
        else:
            copy = row.copy(side, *place)
        index.copies[path] = copy
        copies.append(copy)
    snapshot = Snapshot(side, exists, identity, tuple(copies), foreign, problems)
    return Scanned(snapshot, index, changed, read, StatTable(pieces))


def _describes(row: Row, copy: Copy, twin: Row | None) -> bool:
    """Tell whether a complete row equals another copy, whose row is ``twin``."""
    return (
        twin is not None
        and row.names == twin.names
        and row[2:] == twin[2:]
        and row.sizes_and_times() == [(file.size, file.mtime_ns) for file in copy.files]
        and is_whole(copy, twin)
        and not _has_events(copy)
    )


def _has_events(copy: Copy) -> bool:
    return isinstance(copy.stream, Stream) and copy.stream.events is not None


def _entries(directory: str) -> int:
    try:
        return len(os.listdir(directory))
    except OSError:
        return 0
