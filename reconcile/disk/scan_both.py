"""Both sides at once: a second process looks at one of them, where there is enough to look at."""

from __future__ import annotations

import marshal
import os
import pickle
from typing import TYPE_CHECKING, NamedTuple

from reconcile.core.model import Partition, Side, Snapshot, Stream
from reconcile.disk.index import Index, is_whole
from reconcile.disk.scan import Scanned, scan
from reconcile.disk.second import Second, is_possible
from reconcile.disk.sweep import KeptSweep

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconcile.core.format import Format
    from reconcile.core.model import Copy
    from reconcile.disk.facts import Facts

WORTH = 400
"""Entries of a side from which on a second process saves time."""


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
    with Second.begun(lambda: told(here(Side.WORKSPACE))) as child:
        kept = here(Side.STORE)
        found = child.result()
    # Where it didn't get to the end, this process looks itself.
    there = here(Side.WORKSPACE) if found is None else heard(Side.WORKSPACE, found, workspace.known)
    return {Side.STORE: kept, Side.WORKSPACE: there}


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
    about = (others, snapshot.foreign, snapshot.problems)
    values = (
        (snapshot.exists, snapshot.identity, scanned.changed, scanned.read),
        spots,
        pickle.dumps(about, pickle.HIGHEST_PROTOCOL),
        scanned.index.encode() if scanned.changed else b"",
        KeptSweep.of(scanned.sweep).pieces,
    )
    return marshal.dumps(values)


def heard(side: Side, blob: bytes, before: Index) -> Scanned:
    """Return what was told; ``before`` is the index that was passed to the scan."""
    (exists, identity, changed, read), spots, about, encoded, pieces = marshal.loads(blob)  # noqa: S302 - our own
    others, foreign, problems = pickle.loads(about)  # noqa: S301 - as above
    index = Index.decode(encoded) if changed else before
    rest, copies = iter(others), []
    for spot in spots:
        if spot is None:
            copies.append(next(rest))
            continue
        path, conversation, partition, container = spot
        copy = index.rows[path].copy(side, conversation, path, Partition(partition), container)
        index.copies[path] = copy
        copies.append(copy)
    snapshot = Snapshot(side, exists, identity, tuple(copies), foreign, problems)
    return Scanned(snapshot, index, changed, read, KeptSweep(pieces).whole())


def _has_events(copy: Copy) -> bool:
    return isinstance(copy.stream, Stream) and copy.stream.events is not None


def _entries(directory: str) -> int:
    try:
        return len(os.listdir(directory))
    except OSError:
        return 0
