"""Scans one side or both as a whole: returns every copy of every conversation at any depth, as immutable values.

A helper process scans the workspace if both sides are large enough.

A scan only reads, and raises no error for anything below the side's directory. An unreadable entry becomes a `Problem`,
and a `Fault` of the unit that it concerns.

JP renames whole directories. If a directory of conversations changes during a scan, a copy can be missed under both
names, and "missing" would be taken for "removed". The side is then scanned again; after the last try the directory is a
`Problem`. A conversation that seems to be absent below a directory with a problem must not count as removed.
"""

from __future__ import annotations

import gc
import marshal
import os
import stat
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconcile.fs.files import Directory, error_text, kind_of
from reconcile.fs.helper_process import HelperProcess, is_possible
from reconcile.index.rows import Index, Packed, is_whole
from reconcile.index.stat_table import StatTable
from reconcile.model.snapshot import (
    STREAM,
    Copy,
    Fault,
    Partition,
    Problem,
    Side,
    Snapshot,
    Stream,
    Unreadable,
)
from reconcile.scan.reader import read_stream
from reconcile.scan.walker import FixedWalk, Walk

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from reconcile.index.rows import Row
    from reconcile.model.format import Format
    from reconcile.scan.reader import ContentCache

_TRIES = 3
CHANGED = "it has changed since the scan"


_NOTHING = StatTable(())


class Scanned(Struct, frozen=True):
    """A snapshot, and the index for the next scan.

    ``changed``: the index differs from the one passed in, so that it should be saved. ``read``: the number of files
    that were read. ``stats``: the status of every scanned path, to detect later changes.
    """

    snapshot: Snapshot
    index: Index
    changed: bool
    read: int
    stats: StatTable = _NOTHING


def scan(
    side: Side,
    conversations_dir: str,
    fmt: Format,
    index: Index | None,
    *,
    events_for: Collection[str] = (),
    now_ns: int | None = None,
    cache: ContentCache | None = None,
) -> Scanned:
    """Scan one side. ``index`` is that of an earlier scan, of any directory and format.

    ``events_for``: ids whose streams are read with their events. ``now_ns``: a file that was written later than this
    isn't added to the index (ns; by default the time when the scan begins). ``cache`` holds parsed contents by digest,
    and is extended.
    """
    known, wanted = index or Index(), frozenset(events_for)
    walks = Walk if fmt.places is None else FixedWalk
    with _collector_paused():
        for attempt in range(_TRIES):
            walk = walks(side, fmt, known, wanted, time.time_ns() if now_ns is None else now_ns, cache)
            try:
                is_stable = walk.run(conversations_dir)
            except OSError as error:
                return _without_root(side, conversations_dir, error)
            if is_stable or attempt == _TRIES - 1:
                break
            known = walk.reader.index
        after, before = walk.reader.index, index or Index()
        same = (after.format, after.identity) == (before.format, before.identity)
        changed = not same or walk.reader.learned or len(after.rows) != len(before.rows)
        return Scanned(walk.snapshot(), after, changed, walk.reader.read, StatTable.of(walk.reader.stats))


def inspect(
    snapshot: Snapshot, conversations_dir: str, fmt: Format, ids: Collection[str], *, contents: bool = False
) -> Snapshot:
    """Return the snapshot with `Stream.events` for these conversations, of the same content that was scanned.

    A stream that has changed since the scan becomes a `Fault`: a plan must not mix two moments. ``contents``: add
    `Stream.content` as well, except for files that are too large for memory.
    """
    wanted = frozenset(ids)

    def lacks(copy: Copy) -> bool:
        if copy.conversation not in wanted or not isinstance(copy.stream, Stream):
            return False
        return copy.stream.events is None or (contents and copy.stream.content is None)

    if not any(map(lacks, snapshot.copies)):
        return snapshot
    try:
        root = Directory.open_root(conversations_dir)
    except OSError:
        root = None
    try:
        copies = tuple(
            _with_events(root, fmt, copy, contents=contents) if lacks(copy) else copy for copy in snapshot.copies
        )
    finally:
        if root is not None:
            root.close()
    return replace(snapshot, copies=copies)


def _without_root(side: Side, conversations_dir: str, error: OSError) -> Scanned:
    """Return the scan of a side whose directory is missing or can't be opened."""
    missing = Snapshot(side, exists=False, identity="", copies=())
    try:
        status = os.lstat(conversations_dir)
    except FileNotFoundError:
        return Scanned(missing, Index(), changed=False, read=0)
    except OSError:
        status = None
    message = f"can't be read ({error_text(error)})"
    if status is not None and not stat.S_ISDIR(status.st_mode):
        message = f"{kind_of(status.st_mode)} is in the place of a directory"
    elif status is not None:
        missing = replace(missing, exists=True, identity=f"{status.st_dev}:{status.st_ino}")
    unreadable = replace(missing, problems=(Problem("", message),))
    return Scanned(unreadable, Index(), changed=False, read=0)


def _with_events(root: Directory | None, fmt: Format, copy: Copy, *, contents: bool) -> Copy:
    """Return the copy with the events of its stream, or with a fault instead of the stream."""
    expected = {file.name: file.digest for file in copy.files if fmt.unit_of(file.name) == STREAM}
    sizes = {file.name: file.size for file in copy.files if file.name in expected}
    stale = Unreadable(next(iter(expected)), CHANGED, "the content that was scanned")
    if root is None:
        return replace(copy, stream=stale)
    try:
        with root.below(copy.path) as directory:
            result = read_stream(directory, sizes, fmt, events=True, content=contents)
            appeared = any(_exists(directory, name) for name in fmt.stream_files if name not in expected)
    except OSError:
        return replace(copy, stream=stale)
    if isinstance(result, Fault):
        return replace(copy, stream=result)
    stream, files = result
    if appeared or any(files[name][1] != expected[name] for name in expected):
        return replace(copy, stream=stale)
    return replace(copy, stream=stream)


def _exists(directory: Directory, name: str) -> bool:
    try:
        directory.stat(name)
    except FileNotFoundError:
        return False
    return True


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Pause the garbage collector: a scan creates no garbage, and collection took a third of its time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


MIN_ENTRIES = 400
"""Entries of a side from which on a helper process saves time."""


class ScanInput(Struct, frozen=True):
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
        list(scanned.stats.pieces),
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
        and row[2:-1] == twin[2:-1]  # without the log, which is of one file
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
