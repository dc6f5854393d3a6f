"""One side, looked at as a whole: every copy of every conversation at any depth, as immutable values.

A scan only reads. It raises nothing for what it finds: what can't be looked at is a `Problem`, and a `Fault`
of the unit that it concerns. Where a directory of conversations changed meanwhile (JP renames whole
conversations), a copy could be missed under both names, and "missing" would be read as "removed": the side
is then scanned again, and in the end the directory is a `Problem`. A problem at a directory therefore says
that nothing may be inferred from what seems to be absent below it.
"""

from __future__ import annotations

import gc
import os
import stat
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconcile.fs.dirfd import Directory, kind_of
from reconcile.fs.files import error_text
from reconcile.index.stat_cache import Index
from reconcile.index.stat_table import KeptSweep
from reconcile.model.snapshot import STREAM, Copy, Fault, Problem, Side, Snapshot, Stream, Unreadable
from reconcile.scan.streams import read_stream
from reconcile.scan.walker import Walk

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from reconcile.model.format import Format
    from reconcile.scan.content_cache import Facts

_TRIES = 3
CHANGED = "other content than a moment ago"


_NOTHING = KeptSweep(())


class Scanned(Struct, frozen=True):
    """A snapshot, and the index for the next scan.

    ``changed``: the index differs from the one passed in, so that storing it is worth while.
    ``read``: how many files had to be read. ``sweep``: everything that was looked at, to tell later whether it changed.
    """

    snapshot: Snapshot
    index: Index
    changed: bool
    read: int
    sweep: KeptSweep = _NOTHING


def scan(
    side: Side,
    conversations_dir: str,
    fmt: Format,
    index: Index | None,
    *,
    events_for: Collection[str] = (),
    now_ns: int | None = None,
    facts: Facts | None = None,
) -> Scanned:
    """Look at one side. ``index`` is what an earlier scan left, of whichever directory and format.

    ``events_for``: ids whose streams are read with their events. ``now_ns``: the time before which a file
    must have been written to be remembered; by default the system's when the scan begins. ``facts`` is what is known of
    contents already, and learned.
    """
    known, wanted = index or Index(), frozenset(events_for)
    walks = Walk if fmt.places is None else _fixed_walk()
    with _collector_paused():
        for attempt in range(_TRIES):
            walk = walks(side, fmt, known, wanted, time.time_ns() if now_ns is None else now_ns, facts)
            try:
                settled = walk.run(conversations_dir)
            except OSError as error:
                return _without_root(side, conversations_dir, error)
            if settled or attempt == _TRIES - 1:
                break
            known = walk.reader.index
        after, before = walk.reader.index, index or Index()
        same = (after.format, after.identity) == (before.format, before.identity)
        changed = not same or walk.reader.learned or len(after.rows) != len(before.rows)
        return Scanned(walk.snapshot(), after, changed, walk.reader.read, KeptSweep.of(walk.reader.sweep))


def _fixed_walk() -> type[Walk]:
    from reconcile.scan.fixed_walker import FixedWalk  # here: most runs are about another format

    return FixedWalk


def inspect(
    snapshot: Snapshot, conversations_dir: str, fmt: Format, ids: Collection[str], *, contents: bool = False
) -> Snapshot:
    """The snapshot with `Stream.events` for these conversations, of the very content that was scanned.

    A stream that is another one by now is a `Fault`: the plan must not mix two moments. ``contents``: with
    `Stream.content` as well, but where a file is too large to be held.
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
    """A side whose directory is missing, or can't be opened."""
    missing = Snapshot(side, exists=False, identity="", copies=())
    try:
        status = os.lstat(conversations_dir)
    except FileNotFoundError:
        return Scanned(missing, Index(), changed=False, read=0)
    except OSError:
        status = None
    message = f"it can't be read ({error_text(error)})"
    if status is not None and not stat.S_ISDIR(status.st_mode):
        message = f"found {kind_of(status.st_mode)}, expected a directory"
    elif status is not None:
        missing = replace(missing, exists=True, identity=f"{status.st_dev}:{status.st_ino}")
    found = replace(missing, problems=(Problem("", message),))
    return Scanned(found, Index(), changed=False, read=0)


def _with_events(root: Directory | None, fmt: Format, copy: Copy, *, contents: bool) -> Copy:
    """The copy with the events of its stream, or with a fault instead of the stream."""
    expected = {file.name: file.digest for file in copy.files if fmt.unit_of(file.name) == STREAM}
    sizes = {file.name: file.size for file in copy.files if file.name in expected}
    stale = Unreadable(next(iter(expected)), CHANGED, "the content that was scanned")
    if root is None:
        return replace(copy, stream=stale)
    try:
        with root.below(copy.path) as directory:
            found = read_stream(directory, sizes, fmt, events=True, content=contents)
            appeared = any(_exists(directory, name) for name in fmt.stream_files if name not in expected)
    except OSError:
        return replace(copy, stream=stale)
    if isinstance(found, Fault):
        return replace(copy, stream=found)
    stream, files = found
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
    """Hundreds of thousands of new values, none of them garbage: looking is a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
