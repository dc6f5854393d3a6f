"""The rows of one side: what a scan has read of each copy is not read again while the status of its files is the same.

A row must not be wrong. A file that was written within a tick of the file system's clock before the scan may be
written again without another status. Such a file has no row (git's "racily clean" rule), and is read again next time.
Faults have no rows either.

A run knows the content of the directories that it has created, and adds their rows itself. A new file lies in the
staging directory first, where no other program writes. Its status proves its content if the file was written at least
a tick before it is moved to its place.
"""

from __future__ import annotations

import functools
import struct
from array import array
from collections.abc import MutableMapping
from functools import cached_property
from sys import intern
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct, field, msgpack

from reconcile.index.stat_table import is_racy_safe as is_time_racy_safe
from reconcile.model.snapshot import Copy, Fault, File, Metadata, ParentKind, ParentRef, Partition, Side, Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from reconcile.fs.files import Fingerprint
    from reconcile.index.on_disk import Section
    from reconcile.model.format import Format
    from reconcile.model.plan import Action
    from reconcile.model.snapshot import Digest, Place

T = TypeVar("T")
Bytes: TypeAlias = bytes | bytearray | memoryview
Files: TypeAlias = "Mapping[str, tuple[Fingerprint, Digest]]"
"""By name, the status and the content of each file."""

_DIGEST = 32
DIGEST_BYTES = _DIGEST // 2
_FINGERPRINT = struct.Struct("<qqQq")
_KINDS = {kind.value: kind for kind in ParentKind}
_NO_PARENT = ParentRef(ParentKind.ABSENT)
_PLAIN_PARENTS = {kind.value: ParentRef(kind) for kind in ParentKind if kind is not ParentKind.ID}
_PACKERS: dict[int, Callable[..., bytes]] = {}


# Rows in general: each is decoded when a run needs it, and most runs need few.


class Packed(NamedTuple):
    """Rows as they are saved: paths joined by NUL, the offsets of the rows with their end, and the rows."""

    paths: Bytes = b""
    offsets: Bytes = b""
    rows: Bytes = b""


_NO_ROWS = Packed()


class Changes(NamedTuple):
    """Changes of rows since they were saved: paths that are gone, joined by NUL, and rows that are new."""

    gone: Bytes
    new: Packed


class _Saved:
    """Rows as bytes, each by its path."""

    def __init__(self, packed: Packed) -> None:
        self._paths = bytes(packed.paths)
        self._rows: Bytes | Section = packed.rows
        self._offsets = array("q")
        self._offsets.frombytes(packed.offsets)
        if len(self._offsets) != (self._paths.count(b"\0") + 2 if self._paths else 0):
            raise ValueError("as many offsets as rows")

    @cached_property
    def at(self) -> Mapping[str, int]:
        """The number of each row by its path, computed at first use."""
        names = _split(self._paths)
        return dict(zip(names, range(len(names)), strict=True))

    def __len__(self) -> int:
        return max(len(self._offsets) - 1, 0)

    def raw(self, at: int) -> Bytes:
        return self._rows[self._offsets[at] : self._offsets[at + 1]]

    def packed(self) -> Packed:
        return Packed(self._paths, self._offsets.tobytes(), self._rows[:])

    def leave_on_disk(self, rows: Section) -> None:
        self._rows = rows


class Rows(MutableMapping[str, T], Generic[T]):
    """Rows by path; a saved row stays bytes until it is read.

    One thread may change them while others read.
    """

    __slots__ = ("_decode", "_gone", "_new", "_saved")

    def __init__(self, decode: Callable[[Bytes], T], packed: Packed = _NO_ROWS) -> None:
        """Take what `packed` has returned; nothing, where a scan begins.

        Raises:
            ValueError: the parts do not belong together.
        """
        self._decode, self._saved = decode, _Saved(packed)
        self._new: dict[str, T] = {}
        self._gone: set[str] = set()

    def __getitem__(self, path: str) -> T:
        """Return a row."""
        if (row := self._new.get(path)) is not None:
            return row
        saved = self._saved
        if path in self._gone or (at := saved.at.get(path)) is None:
            raise KeyError(path)
        return self._decode(saved.raw(at))

    def __setitem__(self, path: str, row: T) -> None:
        """Put a row at a path, in the place of the one that was there."""
        self._new[path] = row

    def __delitem__(self, path: str) -> None:
        """Remove a row."""
        if path not in self:
            raise KeyError(path)
        if path in self._saved.at:
            self._gone.add(path)
        self._new.pop(path, None)

    def __contains__(self, path: object) -> bool:
        """Tell whether there is a row."""
        return path in self._new or (path in self._saved.at and path not in self._gone)

    def __iter__(self) -> Iterator[str]:
        """Yield the paths."""
        new, gone, saved = self._new, self._gone, self._saved.at
        yield from (path for path in saved if path in new or path not in gone)
        yield from (path for path in new if path not in saved)

    def __len__(self) -> int:
        """Return the number of rows, in one step: other threads may add some meanwhile."""
        saved = self._saved.at.keys()
        return len(saved) - len(self._gone - self._new.keys()) + len(self._new.keys() - saved)

    @property
    def saved_paths(self) -> Sequence[str]:
        """The paths of the saved rows in their order, whatever has changed since."""
        return list(self._saved.at)

    def arrange(self) -> None:
        """Compute now what the first reader of a row would have to wait for."""
        self._saved.at  # noqa: B018 - it is computed once

    def leave_on_disk(self, rows: Section) -> None:
        """Free the bytes of the saved rows; ``rows`` are the same in their file."""
        self._saved.leave_on_disk(rows)

    def frozen(self) -> Rows[T]:
        """Return the rows as they are now, which later changes of these do not change."""
        rows = Rows(self._decode)
        rows._saved, rows._new, rows._gone = self._saved, dict(self._new), set(self._gone)
        return rows

    def is_compact(self, share: int) -> bool:
        """Tell whether at most one row in ``share`` is not as it was saved."""
        return len(self._new.keys() | self._gone) * share <= len(self)

    def packed(self, encode: Callable[[T], bytes | None]) -> Packed:
        """Return all rows to be saved; a row that can't be encoded is left out."""
        saved = self._saved
        if not self._new and not self._gone:
            return saved.packed()
        return _packed(
            (path, encode(self._new[path]) if path in self._new else saved.raw(saved.at[path])) for path in self
        )

    def changes(self, encode: Callable[[T], bytes | None]) -> Changes:
        """Return what is not as it was saved; a row that can't be encoded counts as gone."""
        new = [(path, encode(row)) for path, row in self._new.items()]
        gone = self._gone.union(path for path, raw in new if raw is None)
        return Changes(_joined(gone), _packed(new))

    def saved_as(self, packed: Packed) -> Rows[T]:
        """Return the same rows, saved as `packed` has returned them."""
        rows = Rows(self._decode, packed)
        if len(rows._saved) < len(self):  # one could not be encoded
            at = rows._saved.at
            rows._new = {path: row for path, row in self._new.items() if path not in at}
        return rows

    def change(self, changes: Changes) -> None:
        """Apply what `changes` has returned of rows that were saved as these. Raises `ValueError`."""
        new = Rows(self._decode, changes.new)
        self._gone.update(path for path in _split(changes.gone) if path in self._saved.at)
        self._new.update(new)


def _packed(rows: Iterable[tuple[str, Bytes | None]]) -> Packed:
    paths: list[str] = []
    offsets, blob = array("q"), bytearray()
    for path, raw in rows:
        if raw is not None and "\0" not in path:
            paths.append(path)
            offsets.append(len(blob))
            blob += raw
    if paths:
        offsets.append(len(blob))
    return Packed(_joined(paths), offsets.tobytes(), blob)


def _joined(paths: Iterable[str]) -> bytes:
    return "\0".join(paths).encode("utf-8", "surrogatepass")


def _split(paths: Bytes) -> list[str]:
    return str(paths, "utf-8", "surrogatepass").split("\0") if paths else []


# The row of a copy.


class Log(Struct, frozen=True, array_like=True, gc=False):
    """The facts of a large log (`Places.is_log`) by which only the bytes that its program appends have to be read.

    ``known`` is its fingerprint, and ``blocks`` are the digests of its blocks (`reconcile.fs.hashing`). ``state`` is
    that of `LogRead` after its first ``length`` bytes. ``is_read``: all of it was read. If not, bytes that were known
    before count as the same, because the file has grown and has the same bytes at its former end.
    """

    known: tuple[int, int, int, int]
    digest: str
    blocks: bytes
    state: bytes
    length: int
    is_read: bool


class Row(NamedTuple):
    """The content of one copy, as a scan has read it. Few, flat, packed fields: a scan may decode 100,000 rows.

    ``names`` are the file names, sorted and joined by NUL, ``prints`` and ``digests`` theirs in that order.
    ``content`` None: no metadata is known; ``length`` -1: no stream is. A ``log`` is known even if the fingerprint of
    its file proves nothing yet; then it is the only value.
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
    log: Log | None = None

    def metadata(self) -> Metadata | None:
        """Return the metadata as it was read."""
        if self.content is None:
            return None
        parent = _PLAIN_PARENTS.get(self.parent_kind) or ParentRef(_KINDS[self.parent_kind], self.parent)
        return Metadata(self.title, parent, self.local, self.content)

    def stream(self) -> Stream | None:
        """Return the stream as it was read, without events."""
        return None if self.length < 0 else Stream(self.length, self.last)

    def files(self) -> dict[str, tuple[Fingerprint, Digest]]:
        """Return fingerprint and digest of each file."""
        digests = self.digests.hex()
        pairs = zip(split_names(self.names), _FINGERPRINT.iter_unpack(self.prints), strict=False)
        return {name: (known, digests[at * _DIGEST :][:_DIGEST]) for at, (name, known) in enumerate(pairs)}

    def sizes_and_times(self) -> list[tuple[int, int]]:
        """Return size and time of each file, as a copy has them."""
        return [(size, mtime_ns) for size, mtime_ns, _, _ in _FINGERPRINT.iter_unpack(self.prints)]

    def copy(
        self,
        side: Side,
        conversation: str,
        path: str,
        partition: Partition,
        container: str | None,
    ) -> Copy:
        """Return the copy that this row describes, where its files have the same fingerprints."""
        digests = self.digests.hex()
        at = 0
        files = []
        numbers = _FINGERPRINT.iter_unpack(self.prints)
        for name, (size, mtime_ns, _, _) in zip(split_names(self.names), numbers, strict=False):
            files.append(File(name, size, mtime_ns, digests[at : at + _DIGEST]))
            at += _DIGEST
        return Copy(side, conversation, path, partition, container, tuple(files), self.metadata(), self.stream())


@functools.lru_cache(maxsize=256)
def split_names(names: str) -> tuple[str, ...]:
    """Return the names in one value, which many rows have; an empty one is of a copy that is a file, or of none."""
    return tuple(map(intern, names.split("\0")))


@functools.cache
def _decoder() -> Callable[[Bytes], Row]:
    return msgpack.Decoder(Row).decode


class Index(Struct):
    """Rows by the path of the copy, good for one format and one directory (`Snapshot.identity`).

    ``copies`` keeps the values built from rows for the next scan in this process; it is never saved. ``base`` is the
    key of the file that has the rows, but for their changes; empty: none has. ``is_saved``: changes included.
    """

    format: str = ""
    identity: str = ""
    rows: Rows[Row] = field(default_factory=lambda: Rows(_decoder()))
    copies: dict[str, Copy] = field(default_factory=dict)
    base: bytes = b""
    is_saved: bool = True

    @classmethod
    def load(cls, name: str, identity: str, saved: Packed, changes: Changes, base: bytes) -> Index:
        """Return the index of saved rows and their changes. Raises `ValueError`."""
        rows = Rows(_decoder(), saved)
        rows.change(changes)
        return cls(name, identity, rows, base=base)

    @classmethod
    def of(cls, name: str, identity: str, packed: Packed) -> Index:
        """Return the index of rows of a format, as `packed` has returned them."""
        return cls(name, identity, Rows(_decoder(), packed))

    def packed(self) -> Packed:
        """Return all rows to be saved."""
        return self.rows.packed(_encode_row)

    def changes(self) -> Changes:
        """Return the changes of the rows to be saved."""
        return self.rows.changes(_encode_row)


def is_whole(copy: Copy, row: Row | None) -> bool:
    """Tell whether a row has all that is known of a copy, so that the copy can be built from it."""
    if row is None or copy.obstructed or isinstance(copy.metadata, Fault) or isinstance(copy.stream, Fault):
        return False
    known = (copy.metadata is None) == (row.content is None) and (copy.stream is None) == (row.length < 0)
    return known and row.names == "\0".join([file.name for file in copy.files]) and _is_encodable(row)


def pack(fingerprints: Mapping[str, Fingerprint], names: list[str]) -> bytes | None:
    """Return the fingerprints of ``names`` in one value; None where a number is too large for a row."""
    packer = _PACKERS.get(len(names))
    if packer is None:
        packer = _PACKERS[len(names)] = struct.Struct("<" + "qqQq" * len(names)).pack
    flat: list[int] = []
    for name in names:
        flat += fingerprints[name]
    try:
        return packer(*flat)
    except struct.error:  # a time after the year 2262
        return None


def is_racy_safe(known: Fingerprint, now_ns: int) -> bool:
    """Tell whether a later write must show in the file's status: both times are strictly in the past."""
    return is_time_racy_safe(known[1], now_ns) and is_time_racy_safe(known[3], now_ns)


def make_row(files: Files, metadata: Metadata | None, stream: Stream | None, log: Log | None = None) -> Row | None:
    """Return the row of a copy with these files, which are racy-safe; None where a number is too large."""
    names = sorted(files)
    fingerprints = pack({name: files[name][0] for name in names}, names)
    if fingerprints is None:
        return None
    parent = _NO_PARENT if metadata is None else metadata.parent
    return Row(
        names=intern("\0".join(names)),
        prints=fingerprints,
        digests=bytes.fromhex("".join([files[name][1] for name in names])),
        title=None if metadata is None else metadata.title,
        parent_kind=parent.kind.value,
        parent=parent.id,
        local=metadata is not None and metadata.local,
        content=None if metadata is None else metadata.content,
        length=-1 if stream is None else stream.count,
        last=None if stream is None else stream.last,
        log=log,
    )


def _is_encodable(row: Row) -> bool:
    plain = row.names.isascii() and (row.title is None or row.title.isascii())
    return plain or _encode_row(row) is not None


def _encode_row(row: Row) -> bytes | None:
    """Return a row as bytes; names that aren't UTF-8, and titles with half a character, don't fit into msgpack."""
    try:
        return msgpack.encode(row)
    except UnicodeEncodeError:
        return None


# The rows of what a run has written.


def are_racy_safe(files: Files, placed_ns: int) -> bool:
    """Tell whether every write to these files shows in their status, from the time on when they got their place."""
    return all(is_racy_safe(known, placed_ns) for known, _ in files.values())


def rows_of_new(
    created: Mapping[str, Files], actions: Iterable[Action], sources: Iterable[Copy], fmt: Format
) -> dict[Place, Row]:
    """Return the rows of the directories that these actions have created exactly as planned.

    ``created`` are the files of each, by action. ``sources`` are the copies of before, whose contents are known.
    """
    by_place = {copy.place: copy for copy in sources} if created else {}
    rows = {}
    for action in actions if created else ():
        source = by_place.get(action.source) if action.source is not None else None
        if source is not None and action.id in created:
            row = _row_of_new(created[action.id], source, fmt)
            if row is not None:
                rows[action.target] = row
    return rows


def _row_of_new(files: Files, source: Copy, fmt: Format) -> Row | None:
    """Return the row of a directory with these files; None where they differ from those of its source."""
    managed = (fmt.metadata_file, *fmt.stream_files)
    expected = {file.name: file.digest for file in source.files if file.name in managed}
    written = {name: digest for name, (_, digest) in files.items() if name in managed}
    metadata, stream = source.metadata, source.stream
    if expected != written or not isinstance(metadata, Metadata) or not isinstance(stream, Stream):
        return None
    return make_row(files, metadata, stream)
