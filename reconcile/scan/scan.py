"""Scans one side or both as a whole: returns every copy of every conversation at any depth, as immutable values.

A scan only reads, and raises no error for anything below the side's directory. An unreadable entry becomes a `Problem`,
and a `Fault` of the unit that it concerns.

JP renames whole directories. If a directory of conversations changes during a scan, a copy can be missed under both
names, and "missing" would be taken for "removed". The side is then scanned again; after the last try the directory is a
`Problem`. A conversation that seems to be absent below a directory with a problem must not count as removed.
"""

from __future__ import annotations

import gc
import os
import stat
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconcile.fs.files import Directory, error_text, kind_of
from reconcile.index.rows import Index
from reconcile.index.stat_table import StatTable
from reconcile.model.snapshot import (
    STREAM,
    Copy,
    Fault,
    Problem,
    Side,
    Snapshot,
    Stream,
    Unreadable,
)
from reconcile.scan.reader import ContentCache, read_stream
from reconcile.scan.shards import OpenWalk, run_walks
from reconcile.scan.walker import FixedWalk, Walk

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from reconcile.model.format import Format

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


class ScanInput(Struct, frozen=True):
    """A side's directory of conversations, and its index of an earlier scan, of any directory and format."""

    conversations: str
    known: Index


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
    """Scan one side as `scan_sides` does."""
    inputs = {side: ScanInput(conversations_dir, index or Index())}
    return scan_sides(inputs, fmt, events_for=events_for, now_ns=now_ns, cache=cache)[side]


def scan_sides(
    inputs: Mapping[Side, ScanInput],
    fmt: Format,
    *,
    events_for: Collection[str] = (),
    now_ns: int | None = None,
    cache: ContentCache | None = None,
) -> dict[Side, Scanned]:
    """Scan one side or both.

    ``events_for``: ids whose streams are read with their events. ``now_ns``: a file that was written later than this
    isn't added to the index (ns; by default the time when the scan begins). ``cache`` holds parsed contents by digest,
    and is extended.
    """
    known, wanted = {side: source.known for side, source in inputs.items()}, frozenset(events_for)
    walk_type, cache = Walk if fmt.places is None else FixedWalk, cache or ContentCache()
    scanned: dict[Side, Scanned] = {}
    with _collector_paused():
        for attempt in range(_TRIES):
            with ExitStack() as stack:
                walks = []
                for side, source in inputs.items():
                    if side in scanned:
                        continue
                    walk = walk_type(
                        side, fmt, known[side], wanted, time.time_ns() if now_ns is None else now_ns, cache
                    )
                    try:
                        root = stack.enter_context(walk.opened(source.conversations))
                    except OSError as error:
                        scanned[side] = _without_root(side, source.conversations, error)
                    else:
                        walks.append(OpenWalk(walk, root, source.conversations))
                run_walks(walks)
                for opened in walks:
                    walk = opened.walk
                    if walk.is_unchanged(opened.root, opened.conversations) or attempt == _TRIES - 1:
                        scanned[walk.side] = _scanned(walk, inputs[walk.side].known)
                    known[walk.side] = walk.reader.index
    return scanned


def _scanned(walk: Walk, before: Index) -> Scanned:
    after = walk.reader.index
    is_same = (after.format, after.identity) == (before.format, before.identity)
    changed = not is_same or bool(walk.reader.learned) or len(after.rows) != len(before.rows)
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
