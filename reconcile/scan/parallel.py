"""Both sides at once: a second process looks at one of them, where there is enough to look at."""

from __future__ import annotations

import marshal
import os
from typing import TYPE_CHECKING, NamedTuple

from reconcile.fs.helper_process import HelperProcess, is_possible
from reconcile.index.stat_cache import Index, is_whole
from reconcile.index.stat_table import KeptSweep
from reconcile.model.snapshot import Copy, Partition, Side, Snapshot, Stream
from reconcile.scan.scan import Scanned, scan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconcile.index.stat_cache import Row
    from reconcile.model.format import Format
    from reconcile.scan.content_cache import Facts

WORTH = 400
"""Entries of a side from which on a second process saves time."""
_LENGTH = 8


class Where(NamedTuple):
    """A side's directory, and what an earlier scan left of it."""

    conversations: str
    known: Index


def scan_both(sides: Mapping[Side, Where], fmt: Format, facts: Facts) -> dict[Side, Scanned]:
    """Look at both sides, as `scan` does at one."""
    store, workspace = sides[Side.STORE], sides[Side.WORKSPACE]

    def here(side: Side) -> Scanned:
        return scan(side, sides[side].conversations, fmt, sides[side].known, facts=facts)

    if not is_possible() or min(_entries(store.conversations), _entries(workspace.conversations)) < WORTH:
        return {side: here(side) for side in Side}
    with HelperProcess.start(lambda: told(here(Side.WORKSPACE))) as child:
        kept = here(Side.STORE)
        there = heard(Side.WORKSPACE, child.result(), workspace.known, kept)
    # Where it didn't get to the end, this process looks itself.
    return {Side.STORE: kept, Side.WORKSPACE: there or here(Side.WORKSPACE)}


def told(scanned: Scanned) -> bytes:
    """Return what was found as bytes. Of an index that is as it was, nothing is said."""
    snapshot, rows = scanned.snapshot, scanned.index.rows
    spots: list[tuple[str, str, str, str | None] | None] = []
    others: list[Copy] = []
    for copy in snapshot.copies:
        if is_whole(copy, rows.get(copy.path)) and not _has_events(copy):
            spots.append((copy.path, copy.conversation, copy.partition.value, copy.container))
        else:
            spots.append(None)
            others.append(copy)
    import pickle  # here, as below: most looks are one process's

    about = (others, snapshot.foreign, snapshot.problems)
    values = (
        (snapshot.exists, snapshot.identity, scanned.changed, scanned.read),
        spots,
        pickle.dumps(about, pickle.HIGHEST_PROTOCOL),
        scanned.sweep.pieces,
    )
    first = marshal.dumps(values)
    return len(first).to_bytes(_LENGTH, "little") + first + (scanned.index.encode() if scanned.changed else b"")


def heard(side: Side, blob: bytes | None, before: Index, other: Scanned) -> Scanned | None:
    """Return what was told, if it was; ``before`` is the index that was passed to the scan.

    What is the same on the ``other`` side is in memory once.
    """
    if blob is None:
        return None
    end = _LENGTH + int.from_bytes(blob[:_LENGTH], "little")
    view = memoryview(blob)
    (exists, identity, changed, read), spots, about, pieces = marshal.loads(view[_LENGTH:end])  # noqa: S302 - our own
    index = Index.decode(bytes(view[end:])) if changed else before  # a view would keep all of it in memory
    del view, blob
    import pickle

    others, foreign, problems = pickle.loads(about)  # noqa: S301 - as above
    rest, copies, like = iter(others), [], {copy.conversation: copy for copy in other.snapshot.copies}
    for spot in spots:
        if spot is None:
            copies.append(next(rest))
            continue
        path, conversation, partition, container = spot
        row, twin, place = (
            index.rows[path],
            like.get(conversation),
            (conversation, path, Partition(partition), container),
        )
        if twin is not None and _describes(row, twin, other.index.rows.get(twin.path)):
            copy = Copy(side, *place, twin.files, twin.metadata, twin.stream)
        else:
            copy = row.copy(side, *place)
        index.copies[path] = copy
        copies.append(copy)
    snapshot = Snapshot(side, exists, identity, tuple(copies), foreign, problems)
    return Scanned(snapshot, index, changed, read, KeptSweep(pieces))


def _describes(row: Row, copy: Copy, its: Row | None) -> bool:
    """Tell whether a row that says all of a copy says the same as another copy, whose row is ``its``."""
    return (
        its is not None
        and row.names == its.names
        and row[2:] == its[2:]
        and row.sizes_and_times() == [(file.size, file.mtime_ns) for file in copy.files]
        and is_whole(copy, its)
        and not _has_events(copy)
    )


def _has_events(copy: Copy) -> bool:
    return isinstance(copy.stream, Stream) and copy.stream.events is not None


def _entries(directory: str) -> int:
    try:
        return len(os.listdir(directory))
    except OSError:
        return 0
