"""Loads what planning needs of the logs (`Places.is_log`) that differ between the sides.

A log may be larger than the memory, and its program may append to it at any moment. So only the bytes that were scanned
are read, and if one version continues the other, only those around its end are kept.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.fs.files import Directory, fingerprint_of
from reconcile.fs.hashing import digest
from reconcile.fs.versions import compare, compare_blocks, read_beginning
from reconcile.model.snapshot import Beginning, Metadata, Side, Unreadable
from reconcile.scan.scan import CHANGED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from reconcile.index.rows import Log, Row
    from reconcile.model.baseline import WorldState
    from reconcile.model.snapshot import Copy, Snapshot


def with_logs(
    world: WorldState, directories: Mapping[Side, str], ids: Collection[str], rows: Mapping[Side, Mapping[str, Row]]
) -> WorldState:
    """Return the world state with the contents by which the two versions of these logs can be compared.

    They are whole if each version has bytes that the other lacks. A log without the bytes that were scanned becomes a
    `Fault`, as in `inspect`. ``rows`` are those of the index: of logs that they know, few bytes are read.
    """
    sides = world.store, world.workspace
    one, other = ({copy.conversation: copy for copy in side.copies if copy.conversation in ids} for side in sides)
    beginnings = {}
    for id_ in one.keys() & other.keys():
        stored, live = one[id_], other[id_]
        if isinstance(stored.metadata, Metadata) and isinstance(live.metadata, Metadata):
            logs = _log_of(stored, rows), _log_of(live, rows)
            ends = _ends((stored, live), logs, directories)
            if ends is None:
                one[id_], other[id_] = _loaded((stored, live), directories)
                continue
            one[id_], other[id_] = _with_ends(stored, ends[0]), _with_ends(live, ends[1])
            before, after = logs
            assert before is not None  # noqa: S101 - there are no ends without both
            assert after is not None  # noqa: S101 - as above
            if before.known[0] < after.known[0] and rows[Side.STORE][stored.path].prints:
                beginnings[stored.place] = Beginning(before.known, before.digest, after.digest, after.blocks)
    return replace(world, store=_with(sides[0], one), workspace=_with(sides[1], other), beginnings=beginnings)


def _log_of(copy: Copy, rows: Mapping[Side, Mapping[str, Row]]) -> Log | None:
    """Return what the index knows of the content of a log that was scanned; None: nothing, or of another content."""
    row, file = rows[copy.side].get(copy.path), copy.files[0]
    log = None if row is None else row.log
    known = log is not None and (log.known[0], log.known[1], log.digest) == (file.size, file.mtime_ns, file.digest)
    return log if known else None


def _ends(
    copies: tuple[Copy, Copy], logs: tuple[Log | None, Log | None], directories: Mapping[Side, str]
) -> tuple[bytes, bytes] | None:
    """Return the bytes of both versions around the end of the shorter one; None: their contents have to be read."""
    stored, live = logs
    if stored is None or live is None:
        return None
    try:
        with _opened(copies[0], directories) as one, _opened(copies[1], directories) as other:
            if fingerprint_of(os.fstat(one)) != stored.known or os.fstat(other).st_ino != live.known[2]:
                return None
            return compare_blocks((one, other), (stored.known[0], live.known[0]), (stored.blocks, live.blocks))
    except OSError:
        return None


def _with_ends(copy: Copy, content: bytes) -> Copy:
    assert isinstance(copy.metadata, Metadata)  # noqa: S101 - see `with_logs`
    return replace(copy, metadata=replace(copy.metadata, content=content))


def _with(side: Snapshot, copies: Mapping[str, Copy]) -> Snapshot:
    return replace(side, copies=tuple(copies.get(copy.conversation, copy) for copy in side.copies))


def _loaded(copies: tuple[Copy, Copy], directories: Mapping[Side, str]) -> tuple[Copy, Copy]:
    first, second = copies
    sizes = first.files[0].size, second.files[0].size
    try:
        with _opened(first, directories) as one, _opened(second, directories) as other:
            digests, contents = compare((one, other), sizes)
            if contents is None:
                contents = read_beginning(one, sizes[0]), read_beginning(other, sizes[1])
                digests = digest(contents[0]), digest(contents[1])
    except OSError:
        digests, contents = ("", ""), (b"", b"")
    return _with_content(first, contents[0], digests[0]), _with_content(second, contents[1], digests[1])


@contextmanager
def _opened(copy: Copy, directories: Mapping[Side, str]) -> Iterator[int]:
    above, _, name = copy.path.rpartition("/")
    with Directory.open_root(directories[copy.side]) as root, root.below(above) as level:
        fd = level.open_file(name)
    try:
        yield fd
    finally:
        os.close(fd)


def _with_content(copy: Copy, content: bytes, read: str) -> Copy:
    """Return the copy with the content of its record, or with a fault if the bytes that were read differ."""
    if read != copy.files[0].digest or not isinstance(copy.metadata, Metadata):
        return replace(copy, metadata=Unreadable("", CHANGED, "the content that was scanned"))
    return replace(copy, metadata=replace(copy.metadata, content=content))
