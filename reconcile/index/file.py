"""The files of the index: sections of bytes, each with its checksum, of which a reader takes those that it needs.

A checkout has one file of everything, and beside it one of the changes since that was written: a run that changes
little writes the changes alone. A damaged, incomplete or foreign file counts as none, which costs time and nothing
else. Every start loads this module: it imports little.

The file of everything: header, the pieces of both stat tables, three sections of rows for each side, the status. The
file of changes: header, four sections of rows for each side, the status. The store comes first everywhere.
"""

from __future__ import annotations

import marshal
import os
import sys
from array import array
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeAlias

from reconcile.fs.paths import open_regular
from reconcile.index.stat_table import StatTable
from reconcile.index.summary import Answer, Summary, is_usable
from reconcile.state.directory import generation
from reconcile.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import BinaryIO

    from reconcile.index.on_disk import Section
    from reconcile.index.rows import Index, Row, Rows
    from reconcile.index.stat_table import Piece
    from reconcile.index.status import Status
    from reconcile.index.summary import Request

_LENGTH = 8
_CHECKSUM = 16
_BUFFER = 1 << 18
"""Bytes that one read takes."""
_VERSION = 11
"""Increased with every change of the sections, of their values or of the order of these."""
_KIND, _CHANGES = "index", "changes"
SHARE = 16
"""Changes are saved alone while they are at most one in so many entries of each part."""
_EARLIER = r"(index-(store|workspace-(\d+|None))(\.changes)?|(rest|swept|known)-[\d-]*)(\.tmp)?"
"""Names of the files that earlier versions have written instead."""

Bytes: TypeAlias = bytes | bytearray | memoryview
_UNUSABLE = (OSError, EOFError, ValueError, TypeError)
"""Errors of a file that counts as none."""


class Sections:
    """An open file of sections; each is read when it is asked for, and its checksum compared then."""

    def __init__(self, file: BinaryIO, kind: str, size: int) -> None:
        """Read the lengths and checksums of the sections; ``size`` is the file's, in bytes.

        Raises:
            ValueError: the file is of another kind or version, or not as it was written.
        """
        magic = _magic(kind)
        start = file.read(len(magic) + _LENGTH)
        count = int.from_bytes(start[len(magic) :], "little")
        if start[: len(magic)] != magic or count > size:
            raise ValueError("another kind of file")
        lengths = file.read(count * _LENGTH)
        self._checksums, self.key = file.read(count * _CHECKSUM), file.read(_CHECKSUM)
        if _checksum(lengths + self._checksums) != self.key:
            raise ValueError("damaged")
        self._file, self._at = file, len(start) + len(lengths) + len(self._checksums) + _CHECKSUM
        self._ends = list(accumulate(array("Q", lengths), initial=self._at))
        if self._ends[-1] != size:
            raise ValueError("incomplete")

    def read(self, number: int) -> bytes:
        """Return a section; a negative number counts from the end. Raises `ValueError`, `OSError`."""
        number = range(len(self._ends) - 1)[number]
        begin, end = self._ends[number], self._ends[number + 1]
        if self._at != begin:  # asking the file for its position would be a call of the system
            self._file.seek(begin)
        payload, self._at = self._file.read(end - begin), end
        return self._checked(payload, number)

    def value(self, number: int) -> Any:
        """Return the value that a section holds. Raises as `read`."""
        return _decode(self.read(number))

    def pieces(self, first: int, end: int, *, stays: bool) -> Sequence[Piece]:
        """Return the pieces of stat tables; those of a process that stays are read later. Raises as `read`."""
        if not stays:
            return [self.value(number) for number in range(first, end)]
        from reconcile.index.on_disk import OpenFile, Pieces  # here, as below: for processes that stay

        file, ends = OpenFile(self._file.fileno()), self._ends

        def piece(number: int) -> Any:
            return _decode(self._checked(file.read(ends[number], ends[number + 1]), number))

        return Pieces(range(first, end), piece)

    def left_on_disk(self, number: int) -> Section:
        """Return a section of which slices are read later; its checksum is compared now. Raises as `read`."""
        from xxhash import xxh3_128

        from reconcile.index.on_disk import OpenFile, Section

        number = range(len(self))[number]
        section = Section(OpenFile(self._file.fileno()), self._ends[number], self._ends[number + 1])
        checksum = xxh3_128()
        for at in range(0, len(section), _BUFFER):
            checksum.update(section[at : at + _BUFFER])
        if checksum.digest() != self._checksums[number * _CHECKSUM :][:_CHECKSUM]:
            raise ValueError("damaged")
        return section

    def _checked(self, payload: bytes, number: int) -> bytes:
        if _checksum(payload) != self._checksums[number * _CHECKSUM :][:_CHECKSUM]:
            raise ValueError("damaged")
        return payload

    def __len__(self) -> int:
        """Return the number of sections."""
        return len(self._ends) - 1


def encode_sections(kind: str, sections: Sequence[Bytes]) -> tuple[bytes, list[Bytes]]:
    """Return the key of a file with these sections, and its bytes in parts."""
    checksums = b"".join(map(_checksum, sections))
    lengths = array("Q", map(len, sections)).tobytes()
    key = _checksum(lengths + checksums)
    return key, [_magic(kind), len(sections).to_bytes(_LENGTH, "little"), lengths, checksums, key, *sections]


def write_sections(path: str, kind: str, sections: Sequence[Bytes]) -> bytes:
    """Replace a file, mode 0600, and return its key. Raises `OSError`."""
    from reconcile.fs.private_files import replace_private_file  # here, as below: a run with nothing to do only reads

    key, parts = encode_sections(kind, sections)
    replace_private_file(path, *parts)
    return key


def save_values(path: str, kind: str, *values: Any) -> None:
    """Replace a file of values, one a section. A failure is ignored: the next run only takes longer."""
    import contextlib

    with contextlib.suppress(OSError):
        write_sections(path, kind, [_encode(value) for value in values])


def load_values(path: str, kind: str) -> list[Any] | None:
    """Return the values of a file; None if it is missing, damaged, of another kind or of another version."""
    try:
        with open_regular(path, _BUFFER) as file:
            sections = _sections(file, kind)
            return [sections.value(number) for number in range(len(sections))]
    except _UNUSABLE:
        return None


def cache_path(directory: str, kind: str, checkout: str) -> str:
    """Return the path of a checkout's file; ``checkout`` is the identity of its directory."""
    return os.path.join(directory, f"{kind}-{checkout.replace(':', '-')}")


class IndexFile:
    """The two files of one checkout in a state directory.

    The rows, the stat tables and the status are true of the same moment: no run saves the rows alone without making the
    other two void.
    """

    def __init__(self, directory: str, checkout: str, *, stays: bool = False) -> None:
        """Name the file; ``checkout`` is the identity of its directory.

        ``stays``: the process goes on for days. Rows and stat tables stay in the file, which it keeps open.
        """
        self._directory, self._checkout, self._stays = directory, checkout, stays
        self._path = cache_path(directory, _KIND, checkout)

    def load_summary(self, request: Request, now_ns: int, *, of_any_state: bool = False) -> Summary | None:
        """Return the summary of the last run with its stat tables; None where that answered another request.

        The stat tables are read only then; rows and status are not read. ``of_any_state``: the caller compares the
        state of that time with the present one.
        """
        try:
            with open_regular(self._path, _BUFFER) as file:
                sections = _sections(file, _KIND)
                _, counts, values = sections.value(0)
                mark, changes = _changes(self._path, sections.key)
                since: tuple[dict[bytes, bytes | None], ...] = {}, {}
                if changes:
                    _, values, *since = changes[0]
                if values is None:
                    return None
                saved_for, saved_at, saved_ns, roots, answer, due = values
                of = saved_at if of_any_state else generation(self._directory)
                if not is_usable(saved_for, saved_at, saved_ns, request, of, now_ns):
                    return None
                pieces = sections.pieces(1, 1 + sum(counts), stays=self._stays)
        except _UNUSABLE:
            return None
        store = StatTable(pieces[: counts[0]], since[0], sections.key)
        workspace = StatTable(pieces[counts[0] :], since[1], sections.key)
        return Summary(request, saved_at, saved_ns, roots, Answer(*answer), due, (store, workspace), mark)

    def load_indexes(self) -> tuple[bytes, tuple[Index, Index]]:
        """Return the mark of the saved rows, and the rows of both sides.

        Without any, the mark is empty, and the store's rows are those that another checkout has saved.
        """
        from reconcile.index.rows import Index

        loaded = _load_indexes(self._path, stays=self._stays)
        if loaded is not None:
            return loaded
        for path in self._others():
            loaded = _load_indexes(path, stays=self._stays)
            if loaded is not None:
                loaded[1][0].base = b""
                return b"", (loaded[1][0], Index())
        return b"", (Index(), Index())

    def load_status(self, mark: bytes, paths: Sequence[Sequence[str]]) -> Status | None:
        """Return the status saved with the rows of this mark; ``paths`` are those of the rows of the whole file."""
        from reconcile.index.status import Status

        try:
            with open_regular(self._path, _BUFFER) as file:
                sections = _sections(file, _KIND)
                now, changes = _changes(self._path, sections.key, whole=True)
                if now != mark or (status := sections.read(-1)) == b"":
                    return None
                return Status.decode(_decode(status), _decode(changes[-1]) if changes else None, paths, sections.key)
        except _UNUSABLE:
            return None

    def save(self, indexes: Sequence[Index], summary: Summary | None = None, status: Status | None = None) -> bytes:
        """Save the rows of both sides, and with them the summary and the status that a run ends with.

        Return the mark of what was saved, which is empty if nothing was.

        Without a summary, the next run can't tell that nothing has changed, and without a status, it can't rescan only
        changes. Only changes are saved where all parts are of the same file
        of everything, and few entries of each have changed. A failure is ignored: more is read next time.
        """
        import contextlib

        if not self._checkout:
            return b""
        bases, are_few = {index.base for index in indexes}, all(index.rows.is_compact(SHARE) for index in indexes)
        if summary is not None:
            bases |= {table.base for table in summary.tables}
            are_few = are_few and all(table.is_compact(SHARE) for table in summary.tables)
        if status is not None:
            bases.add(status.base)
            are_few = are_few and status.is_compact(SHARE)
        (base, *others) = bases
        with contextlib.suppress(OSError):
            if base and not others and are_few:
                return self._save_changes(base, indexes, summary, status)
            return self._save_whole(indexes, summary, status)
        return b""

    def _save_changes(
        self, base: bytes, indexes: Sequence[Index], summary: Summary | None, status: Status | None
    ) -> bytes:
        tables = [table.since for table in summary.tables] if summary is not None else ({}, {})
        header = _encode((base, None if summary is None else summary.values, *tables))
        rows: list[Bytes] = []
        for index in indexes:
            changes = index.changes()
            rows += (changes.gone, *changes.new)
        last = b"" if status is None else _encode(status.encode_changes())
        key = write_sections(self._path + f".{_CHANGES}", _CHANGES, [header, *rows, last])
        for index in indexes:
            index.is_saved = True
        return base + key

    def _save_whole(self, indexes: Sequence[Index], summary: Summary | None, status: Status | None) -> bytes:
        packed = [index.packed() for index in indexes]
        rows = [index.rows.saved_as(packed_rows) for index, packed_rows in zip(indexes, packed, strict=True)]
        tables = [table.merged().pieces for table in summary.tables] if summary is not None else [(), ()]
        header = (
            [(index.format, index.identity) for index in indexes],
            tuple(map(len, tables)),
            None if summary is None else summary.values,
        )
        sections: list[Bytes] = [_encode(header)]
        sections += (_encode(piece) for pieces in tables for piece in pieces)
        sections += (part for packed_rows in packed for part in packed_rows)
        sections.append(b"" if status is None else _encode(status.encode([side.saved_paths for side in rows])))
        key = write_sections(self._path, _KIND, sections)
        # Only now: changes are what differs from the file that is there.
        for index, stored in zip(indexes, rows, strict=True):
            index.rows, index.base, index.is_saved = stored, key, True
        if self._stays:
            self._leave_on_disk(key, rows)
        self._remove_earlier()
        return key

    def _leave_on_disk(self, key: bytes, sides: Sequence[Rows[Row]]) -> None:
        """Free the bytes of rows that were just saved."""
        with open_regular(self._path, _BUFFER) as file:
            sections = _sections(file, _KIND)
            for number, rows in enumerate(sides) if sections.key == key else ():
                rows.leave_on_disk(sections.left_on_disk(3 * number - 5))

    def _remove_earlier(self) -> None:
        """Remove the changes of an earlier file, and the files of earlier versions."""
        import re

        changes = os.path.basename(self._path) + f".{_CHANGES}"
        for name in os.listdir(self._directory):
            if name == changes or re.fullmatch(_EARLIER, name):
                os.unlink(os.path.join(self._directory, name))

    def _others(self) -> Iterator[str]:
        """Yield the paths of the other checkouts' files, the newest first."""
        try:
            with os.scandir(self._directory) as entries:
                with_time = [
                    (entry.stat().st_mtime_ns, entry.path)
                    for entry in entries
                    if entry.name.startswith(f"{_KIND}-") and "." not in entry.name and entry.path != self._path
                ]
        except OSError:
            return
        yield from (path for _, path in sorted(with_time, reverse=True))


def _load_indexes(path: str, *, stays: bool) -> tuple[bytes, tuple[Index, Index]] | None:
    from reconcile.index.rows import Changes, Index, Packed  # here: a run with nothing to do reads no row

    try:
        with open_regular(path, _BUFFER) as file:
            sections = _sections(file, _KIND)
            sides, *_ = sections.value(0)
            mark, changed = _changes(path, sections.key, whole=True)
            indexes = []
            for number, (name, identity) in enumerate(sides):
                first = 3 * number - 7
                rows = b"" if stays else sections.read(first + 2)
                saved = Packed(sections.read(first), sections.read(first + 1), rows)
                gone, paths, offsets, new = changed[1 + 4 * number :][:4] if changed else (b"",) * 4
                changes = Changes(gone, Packed(paths, offsets, new))
                indexes.append(Index.load(name, identity, saved, changes, sections.key))
                if stays:
                    indexes[-1].rows.leave_on_disk(sections.left_on_disk(first + 2))
    except _UNUSABLE:
        return None
    store, workspace = indexes
    return mark, (store, workspace)


def _changes(path: str, base: bytes, *, whole: bool = False) -> tuple[bytes, list[Any]]:
    """Return the mark of a file and of its changes, and the sections of these; none where they are of another file.

    The header is decoded; ``whole``: with the sections that follow it.
    """
    try:
        with open_regular(f"{path}.{_CHANGES}", _BUFFER) as file:
            sections = _sections(file, _CHANGES)
            header = sections.value(0)
            if header[0] == base:
                rest = [sections.read(number) for number in range(1, len(sections))] if whole else []
                return base + sections.key, [header, *rest]
    except _UNUSABLE:
        pass
    return base, []


def _sections(file: BinaryIO, kind: str) -> Sections:
    return Sections(file, kind, os.fstat(file.fileno()).st_size)


def _magic(kind: str) -> bytes:
    return f"reconcile.{kind}/{_VERSION} {__version__} {sys.hexversion} {sys.byteorder}\n".encode()


def _encode(value: Any) -> bytes:
    return marshal.dumps(value)


def _decode(payload: Bytes) -> Any:
    return marshal.loads(payload)  # noqa: S302 - our own file, and its checksum is right


def _checksum(payload: Bytes) -> bytes:
    from xxhash import xxh3_128_digest  # here: a run that finds no file needs none

    return xxh3_128_digest(payload)
