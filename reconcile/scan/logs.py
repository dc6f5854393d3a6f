"""Loads what planning needs of the logs (`Places.is_log`) that differ between the sides.

A log may be larger than the memory, and its program may append to it at any moment. So only the bytes that were scanned
are read, and if one version continues the other, only those around its end are kept.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.fs.files import Directory
from reconcile.fs.hashing import digest
from reconcile.fs.versions import compare, read_beginning
from reconcile.model.snapshot import Metadata, Unreadable
from reconcile.scan.scan import CHANGED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from reconcile.model.snapshot import Copy, Side, Snapshot


def with_logs(
    sides: tuple[Snapshot, Snapshot], directories: Mapping[Side, str], ids: Collection[str]
) -> tuple[Snapshot, Snapshot]:
    """Return both snapshots with the contents by which the two versions of these logs can be compared.

    They are whole if each version has bytes that the other lacks. A log without the bytes that were scanned becomes a
    `Fault`, as in `inspect`.
    """
    one, other = ({copy.conversation: copy for copy in side.copies if copy.conversation in ids} for side in sides)
    for id_ in one.keys() & other.keys():
        if isinstance(one[id_].metadata, Metadata) and isinstance(other[id_].metadata, Metadata):
            one[id_], other[id_] = _loaded((one[id_], other[id_]), directories)
    return _with(sides[0], one), _with(sides[1], other)


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
