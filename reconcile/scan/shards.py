"""Walks over one side or both in two processes: each reads the copies of one shard, on all sides.

The two copies of a conversation mostly have the same bytes, which one process parses once.
"""

from __future__ import annotations

import marshal
import os
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import astuple, replace

from reconcile.fs.helper_process import HelperProcess, is_possible
from reconcile.index.rows import Index, Packed, is_whole
from reconcile.model.snapshot import Copy, Partition, Stream
from reconcile.scan.walker import Shard

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from reconcile.fs.files import Directory
    from reconcile.index.rows import Bytes
    from reconcile.scan.walker import Walk

MIN_ENTRIES = 400
"""Entries of the sides together from which on a helper process saves time."""
Location: TypeAlias = tuple[str, str, str, str | None]
"""The path of a copy, its conversation, its partition and its container."""
_FIRST, _SECOND = Shard(0, 2), Shard(1, 2)


class OpenWalk(Struct, frozen=True):
    """A walk with the path of its side's directory, which is open."""

    walk: Walk
    root: Directory
    conversations: str


class ShardResult(Struct, frozen=True):
    """The result of a walk over a shard, in values that take little time to send.

    ``locations`` are those of the copies that are built from rows, None for one of the other copies. The ``rest`` is
    pickled: these other copies, and what can't be read. ``known``: the paths of the rows that were known before.
    """

    identity: str
    read: int
    locations: list[Location | None]
    rest: bytes
    names: list[str]
    fingerprints: bytes
    stamps: list[tuple[str, tuple[int, int]]]
    blocked: list[str]
    new: tuple[Bytes, ...]
    known: list[str]


def run_walks(walks: Sequence[OpenWalk]) -> None:
    """Run each walk over the whole of its side."""
    if not is_possible() or sum(_entries(opened.conversations) for opened in walks) < MIN_ENTRIES:
        for opened in _with_twins(walks):
            opened.walk.run(opened.root, Shard())
        return
    with HelperProcess.start(lambda: marshal.dumps([_second(opened) for opened in _with_twins(walks)])) as helper:
        for opened in _with_twins(walks):
            opened.walk.run(opened.root, _FIRST)
        sent = helper.result()
    results = [None] * len(walks) if sent is None else marshal.loads(sent)  # noqa: S302 - our own
    for opened, values in zip(_with_twins(walks), results, strict=True):
        result = values and ShardResult(*values)
        if result is None or result.identity != opened.walk.identity:  # it has failed, or has seen another directory
            opened.walk.run(opened.root, _SECOND)
        else:
            add(opened.walk, result)


def _with_twins(walks: Iterable[OpenWalk]) -> Iterator[OpenWalk]:
    """Yield each walk; it gets the copies of the walks before as twins."""
    twins: dict[str, Copy] = {}
    for opened in walks:
        opened.walk.reader.twins = twins
        yield opened
        twins = twins | {copy.conversation: copy for copy in opened.walk.copies}


def _second(opened: OpenWalk) -> tuple[object, ...] | None:
    """Run a walk over the second shard; the helper process has none of the open directories."""
    try:
        with opened.walk.opened(opened.conversations) as root:
            opened.walk.run(root, _SECOND)
    except OSError:
        return None
    return astuple(result_of(opened.walk))


def result_of(walk: Walk) -> ShardResult:
    """Return the result of a walk."""
    import pickle  # here and below: most scans need no helper process

    reader, rows = walk.reader, walk.reader.index.rows
    new = Index()
    new.rows.update({path: rows[path] for path in reader.learned})
    locations: list[Location | None] = []
    others: list[Copy] = []
    for copy in walk.copies:
        if is_whole(copy, rows.get(copy.path)) and not _has_events(copy):
            locations.append((copy.path, copy.conversation, copy.partition.value, copy.container))
        else:
            locations.append(None)
            others.append(copy)
    rest = (others, reader.foreign, reader.problems, walk.problems)
    return ShardResult(
        walk.identity,
        reader.read,
        locations,
        pickle.dumps(rest, pickle.HIGHEST_PROTOCOL),
        reader.stats.names,
        reader.stats.fingerprints.tobytes(),
        walk.stamps,
        list(walk.blocked),
        tuple(new.packed()),
        [path for path in rows if path not in reader.learned],
    )


def add(walk: Walk, result: ShardResult) -> None:
    """Add the result of another process to a walk over the same side."""
    import pickle

    reader, index = walk.reader, walk.reader.index
    new = Index.of("", "", Packed(*result.new)).rows
    index.rows.update(new)
    index.rows.update({path: reader.known.rows[path] for path in result.known})
    reader.learned.update(new)
    reader.read += result.read
    reader.stats.names += result.names
    reader.stats.fingerprints.frombytes(result.fingerprints)
    walk.stamps += result.stamps
    walk.blocked.update(result.blocked)
    pickled, foreign, problems, of_walk = pickle.loads(result.rest)  # noqa: S301 - our own
    reader.foreign += foreign
    reader.problems += problems
    walk.problems += of_walk
    others = iter(pickled)
    for location in result.locations:
        if location is None:
            walk.copies.append(next(others))
            continue
        path, conversation, partition, container = location
        copy = index.rows[path].copy(walk.side, conversation, path, Partition(partition), container)
        twin = reader.twins.get(conversation)
        if twin is not None and twin.files == copy.files and not _has_events(twin):
            copy = replace(copy, files=twin.files, metadata=twin.metadata, stream=twin.stream)
        index.copies[path] = copy
        walk.copies.append(copy)


def _has_events(copy: Copy) -> bool:
    return isinstance(copy.stream, Stream) and copy.stream.events is not None


def _entries(directory: str) -> int:
    try:
        return len(os.listdir(directory))
    except OSError:
        return 0
