"""The stat cache of one side: what was read once is not read again while its file's status is the same.

Losing it costs time, nothing else. It must not lie: a file whose time is not older than the scan's start
by more than the file system's clock ticks may be written again without its status changing, so such a file is
left out (git's "racily clean" rule) and read again next time. Faults are never remembered.
"""

from __future__ import annotations

import contextlib
import functools
import os
import struct
from itertools import accumulate, pairwise
from sys import intern
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field, msgpack
from xxhash import xxh3_128, xxh3_128_digest

from reconcile.fs.paths import open_regular
from reconcile.fs.private_files import replace_private_file
from reconcile.index.rows import Changes, Packed, Rows
from reconcile.index.stat_table import past
from reconcile.model.snapshot import Copy, Fault, File, Metadata, ParentKind, ParentRef, Partition, Side, Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from reconcile.fs.files import Fingerprint
    from reconcile.index.rows import Bytes
    from reconcile.model.snapshot import Digest

_MAGIC = b"reconcile.index\x04"
_MAGIC_OF_CHANGES = b"reconcile.index.changes\x04"
_CHANGES = ".changes"
_SHARE = 16
"""Changes are stored alone while they are about no more than one in so many rows."""
_SUM = 16
_DIGEST = 32

_KINDS = {kind.value: kind for kind in ParentKind}
_NO_PARENT = ParentRef(ParentKind.ABSENT)
_PLAIN_PARENTS = {kind.value: ParentRef(kind) for kind in ParentKind if kind is not ParentKind.ID}
_PACKERS: dict[int, Callable[..., bytes]] = {}


class Row(NamedTuple):
    """What is known of one copy. Few, flat, packed fields: 30,000 of them are decoded at every start.

    ``names`` are the file names, sorted and joined by NUL, ``prints`` and ``digests`` theirs in that order.
    ``content`` None: no metadata is known; ``length`` -1: no stream is.
    """

    names: str
    prints: bytes
    digests: bytes
    title: str | None = None
    parent_kind: str = ParentKind.ABSENT.value
    parent: str | None = None
    local: bool = False
    content: bytes | None = None
    length: int = -1
    last: str | None = None

    def metadata(self) -> Metadata | None:
        """The metadata as it was read."""
        if self.content is None:
            return None
        parent = _PLAIN_PARENTS.get(self.parent_kind) or ParentRef(_KINDS[self.parent_kind], self.parent)
        return Metadata(self.title, parent, self.local, self.content)

    def stream(self) -> Stream | None:
        """The stream as it was read, without events."""
        return None if self.length < 0 else Stream(self.length, self.last)

    def files(self) -> dict[str, tuple[Fingerprint, Digest]]:
        """Fingerprint and digest of each file."""
        digests = self.digests.hex()
        pairs = zip(_split(self.names), _PRINT.iter_unpack(self.prints), strict=False)
        return {name: (known, digests[at * _DIGEST :][:_DIGEST]) for at, (name, known) in enumerate(pairs)}

    def sizes_and_times(self) -> list[tuple[int, int]]:
        """What a copy says of each file's fingerprint."""
        return [(size, mtime_ns) for size, mtime_ns, _, _ in _PRINT.iter_unpack(self.prints)]

    def copy(
        self,
        side: Side,
        conversation: str,
        path: str,
        partition: Partition,
        container: str | None,
    ) -> Copy:
        """The copy that this row describes, found with the very same fingerprints again."""
        digests = self.digests.hex()
        at = 0
        files = []
        for name, (size, mtime_ns, _, _) in zip(_split(self.names), _PRINT.iter_unpack(self.prints), strict=False):
            files.append(File(name, size, mtime_ns, digests[at : at + _DIGEST]))
            at += _DIGEST
        return Copy(side, conversation, path, partition, container, tuple(files), self.metadata(), self.stream())


_PRINT = struct.Struct("<qqQq")


@functools.lru_cache(maxsize=256)
def _split(names: str) -> tuple[str, ...]:
    """The names in one value, which many rows have; an empty one is of a copy that is a file, or of none."""
    return tuple(map(intern, names.split("\0")))


class Index(Struct):
    """Rows by the path of the copy, good for one format and one directory (`Snapshot.identity`).

    It is stored whole, and then the rows that have changed since in a file of their own, while those are few.
    ``copies`` keeps the values built from rows for the next scan in this process; it is never stored.
    """

    format: str = ""
    identity: str = ""
    rows: Rows[Row] = field(default_factory=lambda: Rows(_decode_row))
    copies: dict[str, Copy] = field(default_factory=dict)
    base: bytes = b""
    """The checksum under which it was stored whole; empty: it wasn't."""
    saved: bytes = b""
    """The checksum of what was to be stored last, whole or as changes: where that failed, no file has it."""

    @classmethod
    def load(cls, directory: str, root: str) -> Index:
        """The index that was saved for a root in a state's directory; an empty one where there is none."""
        path = _path(directory, root)
        try:
            with open_regular(path) as file:
                found = cls.decode(file.read())
                found.base = found.saved
        except OSError:
            return cls()
        with contextlib.suppress(OSError), open_regular(path + _CHANGES) as file:
            found.change(file.read())
        return found

    def save(self, directory: str, root: str) -> None:
        """Save it for a root; where that can't be, more has to be read next time."""
        path = _path(directory, root)
        with contextlib.suppress(OSError):
            if self.base and self.rows.changed * _SHARE <= len(self.rows):
                self.saved, parts = self._changes()
                replace_private_file(path + _CHANGES, *parts)
                return
            packed = self.rows.packed(_encode_row)
            self.saved, parts = self._whole(packed)
            replace_private_file(path, *parts)
            # Only now: what is stored as changes is what differs from the file that is there.
            self.rows, self.base = self.rows.stored(packed), self.saved
            os.unlink(path + _CHANGES)  # they were of another one

    def encode(self) -> bytes:
        """The index as one blob."""
        return b"".join(self._whole(self.rows.packed(_encode_row))[1])

    @classmethod
    def decode(cls, blob: bytes | memoryview) -> Index:
        """The index in a blob, of which it is a view; an empty one where that is damaged or another version's."""
        checksum, parts = _opened(_MAGIC, blob)
        try:
            name, identity, *packed = parts
            return cls(str(name, "utf-8"), str(identity, "utf-8"), Rows(_decode_row, Packed(*packed)), saved=checksum)
        except (TypeError, ValueError):
            return cls()

    def change(self, blob: bytes) -> None:
        """Take the changes in a blob, where it is whole and they are of this index."""
        checksum, parts = _opened(_MAGIC_OF_CHANGES, blob)
        with contextlib.suppress(TypeError, ValueError):
            base, gone, *packed = parts
            if base == self.base:
                self.rows.change(Changes(gone, Packed(*packed)))
                self.saved = checksum

    def _whole(self, packed: Packed) -> tuple[bytes, tuple[Bytes, ...]]:
        checksum, parts = _sealed(self.format.encode(), self.identity.encode(), *packed)
        return checksum, (_MAGIC, checksum, *parts)

    def _changes(self) -> tuple[bytes, tuple[Bytes, ...]]:
        gone, packed = self.rows.changes(_encode_row)
        checksum, parts = _sealed(self.base, gone, *packed)
        return checksum, (_MAGIC_OF_CHANGES, checksum, *parts)


def is_whole(copy: Copy, row: Row | None) -> bool:
    """Tell whether a row says all that there is to know of a copy, so that it can be built from that again."""
    if row is None or copy.obstructed or isinstance(copy.metadata, Fault) or isinstance(copy.stream, Fault):
        return False
    known = (copy.metadata is None) == (row.content is None) and (copy.stream is None) == (row.length < 0)
    return known and row.names == "\0".join([file.name for file in copy.files]) and _is_kept(row)


def _path(directory: str, root: str) -> str:
    return os.path.join(directory, f"index-{root}")


def pack(prints: Mapping[str, Fingerprint], names: list[str]) -> bytes | None:
    """The fingerprints of ``names`` in one value; None where a number is too odd to be remembered."""
    packer = _PACKERS.get(len(names))
    if packer is None:
        packer = _PACKERS[len(names)] = struct.Struct("<" + "qqQq" * len(names)).pack
    flat: list[int] = []
    for name in names:
        flat += prints[name]
    try:
        return packer(*flat)
    except struct.error:  # a time after the year 2262
        return None


def settled(known: Fingerprint, now_ns: int) -> bool:
    """Whether a later write must show in the file's status: both times are strictly in the past."""
    return past(known[1], now_ns) and past(known[3], now_ns)


def make_row(
    files: Mapping[str, tuple[Fingerprint, Digest]], metadata: Metadata | None, stream: Stream | None
) -> Row | None:
    """The row of a copy, of the files that may be remembered."""
    names = sorted(files)
    prints = pack({name: files[name][0] for name in names}, names)
    if prints is None:
        return None
    parent = _NO_PARENT if metadata is None else metadata.parent
    return Row(
        names=intern("\0".join(names)),
        prints=prints,
        digests=bytes.fromhex("".join([files[name][1] for name in names])),
        title=None if metadata is None else metadata.title,
        parent_kind=parent.kind.value,
        parent=parent.id,
        local=metadata is not None and metadata.local,
        content=None if metadata is None else metadata.content,
        length=-1 if stream is None else stream.count,
        last=None if stream is None else stream.last,
    )


def _is_kept(row: Row) -> bool:
    """Tell whether a row can be stored."""
    plain = row.names.isascii() and (row.title is None or row.title.isascii())
    return plain or _encode_row(row) is not None


def _encode_row(row: Row) -> bytes | None:
    """A row as bytes; names that aren't UTF-8, and titles with half a character, don't fit into msgpack."""
    try:
        return msgpack.encode(row)
    except UnicodeEncodeError:
        return None


def _decode_row(raw: Bytes) -> Row:
    return _row_decoder().decode(raw)


@functools.cache
def _row_decoder() -> msgpack.Decoder[Row]:
    return msgpack.Decoder(Row)


def _sealed(*parts: Bytes) -> tuple[bytes, tuple[Bytes, ...]]:
    """Return a checksum, and what it is of, as it is stored: how many bytes each part has, and the parts."""
    lengths = struct.pack(f"<B{len(parts)}Q", len(parts), *map(len, parts))
    checksum = xxh3_128(lengths)
    for part in parts:
        checksum.update(part)
    return checksum.digest(), (lengths, *parts)


def _opened(magic: bytes, blob: bytes | memoryview) -> tuple[bytes, list[memoryview]]:
    """Return the checksum and the parts in such a blob; none where it is damaged or another version's."""
    start = len(magic) + _SUM
    checksum, payload = bytes(blob[len(magic) : start]), memoryview(blob)[start:]
    if blob[: len(magic)] != magic or checksum != xxh3_128_digest(payload):
        return checksum, []
    lengths = struct.unpack_from(f"<{payload[0]}Q", payload, 1)
    ends = list(accumulate(lengths, initial=1 + 8 * len(lengths)))
    return checksum, [payload[begin:end] for begin, end in pairwise(ends)]
