"""Reads copies from their directories, and uses the index for files whose fingerprint is unchanged.

Most copies consist of valid managed files alone. `read_common_copy` reads these in one step, with two instead of three
status calls a file. In any doubt it returns None and notes nothing; `Reader` then reads unit by unit, and reports
faults. Parsed contents are cached by digest; large files of events are read in chunks, so that they need not fit into
memory.
"""

from __future__ import annotations

import stat
from sys import intern
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from reconcile.fs.files import (
    CHANGING,
    digest_extra,
    error_text,
    fingerprint_of,
    is_special,
    kind_of,
    parse_or_fault,
    read_all,
    read_consistently,
    read_fast,
    read_files,
)
from reconcile.fs.hashing import HashedChunks, chunks_of
from reconcile.fs.hashing import digest as digest_of
from reconcile.index.rows import Index, Row, is_racy_safe, make_row, pack
from reconcile.index.stat_table import StatList
from reconcile.model.names import CHILDREN, GIT
from reconcile.model.snapshot import (
    METADATA,
    STREAM,
    Copy,
    Fault,
    File,
    Foreign,
    Metadata,
    Partition,
    Problem,
    Stream,
    Unreadable,
    nested_git,
)
from reconcile.model.units import is_nested_git
from reconcile.scan.log_reader import ReadLog, is_due, read_log

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from reconcile.fs.files import Directory, Fingerprint
    from reconcile.model.format import Format, Places, StreamContent
    from reconcile.model.snapshot import Digest, Side

_KEPT = 1 << 20
"""Bytes up to which a record is kept in the index; a larger one is read each time."""
SYMLINK = "a symbolic link, which is never followed"


class CopyLocation(Struct, frozen=True):
    """The path of a copy and its meaning. ``container`` is the id of the conversation whose directory contains it."""

    path: str
    conversation: str
    partition: Partition
    container: str | None


class Listing(Struct):
    """The relevant entries of a copy: ``prints`` are the fingerprints of the files of its units, by name.

    ``faults``: entries with a managed name that are no regular files, by unit.
    """

    prints: dict[str, Fingerprint] = field(default_factory=dict)
    faults: dict[str, Fault] = field(default_factory=dict)
    children: bool = False
    obstructed: bool = False


class Reader:
    """Reads copies from directories, builds the new index, and collects foreign entries and problems."""

    def __init__(
        self, side: Side, fmt: Format, known: Index, events_for: Collection[str], now_ns: int, cache: ContentCache
    ) -> None:
        self.cache = cache
        self.side = side
        self.fmt = fmt
        self.fixed = fmt.places is not None
        self.known = known
        self.index = Index()
        self.events_for = events_for
        self.now_ns = now_ns
        self.foreign: list[Foreign] = []
        self.problems: list[Problem] = []
        self.stats = StatList()
        self.learned: set[str] = set()
        """The paths of the new rows."""
        self.read = 0
        self.common_names = {} if self.fixed else {name: name for name in (fmt.metadata_file, *fmt.stream_files)}
        """The names of the files that nearly every copy has."""
        self.twins: Mapping[str, Copy] = {}
        """Copies of another side, by conversation: equal values are shared with them to save memory."""
        self._units: dict[str, str | None] = {}

    def bind(self, name: str, identity: str) -> None:
        """Bind the reader to a format and a root; drop an old index of another format or root."""
        self.index = Index(name, identity)
        if (self.known.format, self.known.identity) != (name, identity):
            self.known = Index()

    def read_copy(self, directory: Directory, location: CopyLocation) -> tuple[Copy, bool]:
        """Return the copy in ``directory``, and whether it has a directory of children. Raises `OSError`."""
        row = self.known.rows.get(location.path)
        if row is None and not self.fixed and location.conversation not in self.events_for:
            common = read_common_copy(self, directory, location)
            if common is not None:
                return common
        noted = len(self.foreign), len(self.problems)
        try:
            listing = self._list(directory, location.path)
        except FileNotFoundError:
            del self.foreign[noted[0] :], self.problems[noted[1] :]
            raise
        prints = listing.prints
        names = sorted(prints)
        if (
            row is not None
            and row.names == "\0".join(names)
            and not listing.faults
            and not listing.obstructed
            and location.conversation not in self.events_for
            and row.prints == pack(prints, names)
        ):
            copy = self.known.copies.get(location.path)
            # A path may belong to another conversation than before: the configuration of a format can change its id.
            if copy is None or copy.conversation != location.conversation or copy.container != location.container:
                copy = row.copy(self.side, location.conversation, location.path, location.partition, location.container)
            self.index.rows[location.path] = row
            self.index.copies[location.path] = copy
            return copy, listing.children
        return self._assemble(directory, location, listing, row), listing.children

    def read_file_copy(self, level: Directory, name: str, location: CopyLocation) -> Copy:
        """Return the copy that is a single file. Raises `OSError`."""
        status = level.stat(name)
        self.stats.add(location.path, status, self.now_ns)
        row, seen = self.known.rows.get(location.path), {"": fingerprint_of(status)}
        log = None if row is None else row.log
        if row is not None and row.names == "" and row.content is not None and row.prints == pack(seen, [""]):
            if not is_due(log, status.st_mtime_ns, self.now_ns):
                copy = self.known.copies.get(location.path)
                if copy is None:
                    place = location.conversation, location.path, location.partition, location.container
                    copy = row.copy(self.side, *place)
                self.index.rows[location.path], self.index.copies[location.path] = row, copy
                return copy
            log = None
        self.read += 1
        assert self.fmt.places is not None  # noqa: S101 - in such formats alone, a file is a record
        if self.fmt.places.is_log(location.conversation):
            result = read_log(level, name, self.fmt.places, location.conversation, log)
        else:
            read = read_record(level, name, self.fmt.places, location.conversation)
            result = read if isinstance(read, Fault) else ReadLog(*read)
        if isinstance(result, Fault):
            self.problems.append(Problem(location.path, result.words))
            files = (File("", status.st_size, seen[""][1], None),)
            return Copy(self.side, location.conversation, location.path, location.partition, None, files, None, None)
        record, digest, known, log = result.record, result.digest, result.known, result.log
        metadata = replace(record, file="") if isinstance(record, Fault) else record
        row = None if log is None else make_row({}, None, None, log)
        if isinstance(metadata, Metadata) and is_racy_safe(known, self.now_ns) and len(metadata.content) <= _KEPT:
            row = make_row({"": (known, digest)}, metadata, None, log)
        if row is not None:
            self.index.rows[location.path] = row
            self.learned.add(location.path)
        files = (File("", known[0], known[1], digest),)
        return Copy(self.side, location.conversation, location.path, location.partition, None, files, metadata, None)

    def closed(self, location: CopyLocation, error: OSError) -> Copy:
        """Return the copy of a directory that can't be read."""
        cause, expected = error_text(error), "a readable directory"
        self.problems.append(Problem(location.path, f"can't be read ({cause})"))
        metadata = Unreadable(self.fmt.metadata_file, cause, expected)
        stream = Unreadable(self.fmt.stream_files[-1], cause, expected) if self.fmt.stream_files else None
        place = location.conversation, location.path, location.partition, location.container
        return Copy(self.side, *place, (), metadata, stream)

    def unit_of(self, name: str) -> str | None:
        """Return `Format.unit_of` for a name, cached."""
        try:
            return self._units[name]
        except KeyError:
            unit = self._units[name] = self.fmt.unit_of(name)
            return unit

    def _list(self, directory: Directory, path: str) -> Listing:
        """Return the listing of a copy, with the directories of its extra files."""
        listing = Listing()
        pending = self._list_one(directory, path, "", listing)
        while pending:
            prefix = pending.pop()
            try:
                with directory.below(prefix[:-1]) as sub:
                    pending += self._list_one(sub, path, prefix, listing)
            except FileNotFoundError:
                raise
            except OSError as error:
                inside = prefix[:-1]
                if not self.fixed and any(part.startswith(".") for part in inside.split("/")):
                    self.note_unread(directory, inside, f"{path}/{inside}", error)
                else:
                    self.problems.append(Problem(f"{path}/{inside}", f"can't be read ({error_text(error)})"))
        return listing

    def _list_one(self, directory: Directory, path: str, prefix: str, listing: Listing) -> list[str]:
        """Add one directory's entries to ``listing``; return the prefixes of the directories below it."""
        below: list[str] = []
        units, prints = self._units, listing.prints
        self.stats.add(f"{path}/{prefix}"[:-1] if prefix else path, directory.status(), self.now_ns)
        for entry in directory.entries():
            name = prefix + entry.name if prefix else intern(entry.name)  # most copies have the same names
            if name == CHILDREN and not self.fixed:
                listing.children = entry.is_dir(follow_symlinks=False)
                listing.obstructed = not listing.children
                if listing.obstructed and not entry.is_file(follow_symlinks=False):
                    self._not_ours(f"{path}/{name}", entry.stat(follow_symlinks=False).st_mode)
            elif entry.name == GIT and is_nested_git(name, self.unit_of, directory=entry.is_dir(follow_symlinks=False)):
                self.foreign.append(nested_git(f"{path}/{name}", directory=not entry.is_file(follow_symlinks=False)))
            elif entry.is_file(follow_symlinks=False):
                unit = units[name] if name in units else self.unit_of(name)
                if unit is not None:
                    status = entry.stat(follow_symlinks=False)
                    prints[name] = fingerprint_of(status)
                    self.stats.add(f"{path}/{name}", status, self.now_ns)
            else:
                mode = entry.stat(follow_symlinks=False).st_mode
                unit = self.unit_of(name)
                if unit in (METADATA, STREAM):
                    listing.faults[unit] = Fault(name, kind_of(mode), "a regular file")
                    unit = None
                elif stat.S_ISDIR(mode):  # hidden ones too: a repository inside must not be removed or moved
                    below.append(name + "/")
                if is_special(mode) or (stat.S_ISLNK(mode) and unit is not None):
                    self._not_ours(f"{path}/{name}", mode)
        return below

    def note_unread(self, above: Directory, name: str, path: str, error: OSError) -> None:
        """Note an unreadable foreign directory, which prevents the removal of the directory that contains it.

        Raises `OSError` if it is gone.
        """
        self.stats.add(path, above.stat(name), self.now_ns)
        self.foreign.append(Foreign(path, f"a directory that can't be read ({error_text(error)})", special=True))

    def _not_ours(self, path: str, mode: int) -> None:
        """Note a symbolic link or a special file, which prevents the removal of its directory."""
        link = stat.S_ISLNK(mode)
        self.foreign.append(Foreign(path, SYMLINK if link else kind_of(mode), link, is_special(mode)))

    def _assemble(self, directory: Directory, location: CopyLocation, listing: Listing, row: Row | None) -> Copy:
        """Return a copy that the index doesn't hold as a whole: only its changed files are read."""
        work = UnitReader(self, directory, location.path, listing, row)
        metadata = work.metadata()
        stream = work.stream(events=location.conversation in self.events_for)
        for name in listing.prints:
            if self.unit_of(name) not in (METADATA, STREAM):
                work.extra(name)
        self.remember(location.path, work.files, metadata, stream)
        files = tuple(File(name, known[0], known[1], digest) for name, (known, digest) in sorted(work.files.items()))
        return Copy(
            self.side,
            location.conversation,
            location.path,
            location.partition,
            location.container,
            files,
            metadata,
            stream,
            listing.obstructed,
        )

    def remember(
        self,
        path: str,
        files: Mapping[str, tuple[Fingerprint, Digest | None]],
        metadata: Metadata | Fault | None,
        stream: Stream | Fault | None,
    ) -> None:
        """Add the copy to the new index: whole units without a fault, whose files are not racily clean."""
        known: dict[str, tuple[Fingerprint, Digest]] = {}
        racy: set[str | None] = set()
        for name, (at, digest) in files.items():
            if digest is not None and is_racy_safe(at, self.now_ns):
                known[name] = at, digest
            else:
                racy.add(self.unit_of(name))
        whole_metadata = metadata if isinstance(metadata, Metadata) and METADATA not in racy else None
        whole_stream = stream if isinstance(stream, Stream) and STREAM not in racy else None
        for unit, value in ((METADATA, whole_metadata), (STREAM, whole_stream)):
            if value is None:
                known = {name: entry for name, entry in known.items() if self.unit_of(name) != unit}
        row = make_row(known, whole_metadata, whole_stream)
        if row is not None:
            self.index.rows[path] = row
            self.learned.add(path)


def read_record(
    level: Directory, name: str, places: Places, conversation: str
) -> tuple[Metadata | Fault, Digest, Fingerprint] | Fault:
    """Return a parsed record, with its content, and the digest and fingerprint of its file.

    A `Fault` of its own is returned if the file can't be read.
    """
    result = read_files(level, (name,))
    if isinstance(result, Fault):
        return result
    content, known = result[name]
    return places.read_record(conversation, content), digest_of(content), known


class UnitReader:
    """Reads the units of one copy; ``files`` are those that it has read or found in the index."""

    __slots__ = ("directory", "files", "known", "listing", "path", "reader", "row")

    def __init__(self, reader: Reader, directory: Directory, path: str, listing: Listing, row: Row | None) -> None:
        self.reader = reader
        self.path = path
        self.directory = directory
        self.listing = listing
        self.row = row
        self.known = row.files() if row is not None else {}
        self.files: dict[str, tuple[Fingerprint, Digest | None]] = {}

    def metadata(self) -> Metadata | Fault | None:
        """Return the metadata unit; None: there is no file of it."""
        names = self._names(METADATA)
        if names and METADATA not in self.listing.faults and self.row is not None and self._recall(names):
            remembered = self.row.metadata()
            if remembered is not None:
                return remembered
        contents = self._contents(METADATA, names)
        if isinstance(contents, Fault):
            return contents
        if not names:
            return None
        digest = self.files[names[0]][1] or ""
        read = self.reader.fmt.read_metadata
        return self.reader.cache.metadata(digest, lambda: parse_or_fault(names[0], lambda: read(contents[names[0]])))

    def stream(self, *, events: bool) -> Stream | Fault | None:
        """Return the stream unit, read from all of its files at once; None: there is no file of it."""
        names = self._names(STREAM)
        if names and STREAM not in self.listing.faults and not events and self.row is not None:
            # If a file of the unit is gone, the unit has changed.
            gone = any(name in self.known and name not in names for name in self.reader.fmt.stream_files)
            remembered = self.row.stream()
            if not gone and remembered is not None and self._recall(names):
                return remembered
        if not names:
            return self.listing.faults.get(STREAM)
        self.reader.read += len(names)
        sizes = {name: self.listing.prints[name][0] for name in names}
        result = read_stream(self.directory, sizes, self.reader.fmt, events=events, cache=self.reader.cache)
        if isinstance(result, Fault):
            return self._unread(STREAM, names, result)
        self.files |= result[1]
        return self.listing.faults.get(STREAM, result[0])

    def extra(self, name: str) -> None:
        """Read one extra file. An unreadable one becomes a problem, since extra files have no faults."""
        if self._recall([name]):
            return
        self.reader.read += 1
        result = digest_extra(self.directory, name)
        if isinstance(result, Fault):
            self.files[name] = (self.listing.prints[name], None)
            self._report(result)
        else:
            self.files[name] = (result[1], result[0])

    def _names(self, unit: str) -> list[str]:
        return sorted(name for name in self.listing.prints if self.reader.unit_of(name) == unit)

    def _recall(self, names: list[str]) -> bool:
        """Take the digests of these files from the index, and return True; False if one has changed."""
        prints = self.listing.prints
        unchanged: dict[str, tuple[Fingerprint, Digest | None]] = {}
        for name in names:
            known = self.known.get(name)
            if known is None or known[0] != prints[name]:
                return False
            unchanged[name] = known
        self.files |= unchanged
        return True

    def _contents(self, unit: str, names: list[str]) -> dict[str, bytes] | Fault:
        """Read and hash the files of a unit; return its fault if one can't be read or is no regular file."""
        self.reader.read += len(names)
        result = read_files(self.directory, names)
        if isinstance(result, Fault):
            return self._unread(unit, names, result)
        for name, (content, known) in result.items():
            self.files[name] = (known, digest_of(content))
        return self.listing.faults.get(unit) or {name: content for name, (content, _) in result.items()}

    def _unread(self, unit: str, names: list[str], fault: Fault) -> Fault:
        for name in names:
            self.files[name] = (self.listing.prints[name], None)
        if fault.found != CHANGING:
            self._report(fault)
        return self.listing.faults.get(unit, fault)

    def _report(self, fault: Fault) -> None:
        self.reader.problems.append(Problem(f"{self.path}/{fault.file}", fault.words))


def read_common_copy(reader: Reader, directory: Directory, location: CopyLocation) -> tuple[Copy, bool] | None:
    """Return the copy in ``directory``, and whether it has a directory of children; None: `Reader` must read it."""
    try:
        directory_status = directory.status()
        listed = _listed(reader, directory)
    except OSError:
        return None
    if listed is None:
        return None
    names, children = listed
    contents = read_fast(directory, names, LARGE)
    if contents is None:
        return None
    known: dict[str, tuple[Fingerprint, Digest]] = {
        name: (at, digest_of(content)) for name, (content, at, _) in contents.items()
    }
    metadata, stream = _parse_units(reader, {name: content for name, (content, _, _) in contents.items()}, known)
    if not isinstance(metadata, Metadata) or not isinstance(stream, Stream):
        return None
    reader.read += len(names)
    reader.stats.add(location.path, directory_status, reader.now_ns)
    for name, (_, _, status) in contents.items():
        reader.stats.add(f"{location.path}/{name}", status, reader.now_ns)
    reader.remember(location.path, known, metadata, stream)
    files = tuple([File(name, at[0], at[1], digest) for name, (at, digest) in known.items()])
    if (twin := reader.twins.get(location.conversation)) is not None and twin.files == files:
        files = twin.files
    place = location.conversation, location.path, location.partition, location.container
    return Copy(reader.side, *place, files, metadata, stream), children


def _listed(reader: Reader, directory: Directory) -> tuple[list[str], bool] | None:
    """Return the sorted names of the managed files, and whether there are children; None if others are there too."""
    names, children, common = [], False, reader.common_names
    for entry in directory.entries():
        name = common.get(entry.name)
        if name is not None and entry.is_file(follow_symlinks=False):
            names.append(name)
        elif entry.name == CHILDREN:
            children = entry.is_dir(follow_symlinks=False)
            if not children:
                return None
        elif entry.name == GIT or not entry.is_file(follow_symlinks=False) or reader.unit_of(entry.name) is not None:
            return None
    names.sort()
    return names, children


def _parse_units(
    reader: Reader, contents: Mapping[str, bytes], known: Mapping[str, tuple[Fingerprint, Digest]]
) -> tuple[Metadata | Fault | None, Stream | Fault | None]:
    """Return the parsed metadata and stream."""
    fmt, cache, file = reader.fmt, reader.cache, reader.fmt.metadata_file
    if file not in contents:
        return None, None
    metadata = cache.metadata(known[file][1], lambda: parse_or_fault(file, lambda: fmt.read_metadata(contents[file])))
    of_stream = {name: contents[name] for name in fmt.stream_files if name in contents}
    digests = tuple([known[name][1] if name in known else None for name in fmt.stream_files])
    stream = cache.stream(
        digests, lambda: parse_or_fault(fmt.stream_files[-1], lambda: fmt.read_stream(of_stream, events=False))
    )
    return metadata, stream


LARGE = 64 << 20
"""Bytes from which on a file of events is read in chunks, which takes longer."""


class ContentCache:
    """Parsed contents by digest, so that the same bytes are parsed once, on both sides.

    Faults are not cached, since a fault names the file in which it was found. The owner decides how long the cache
    lives.
    """

    __slots__ = ("_metadata", "_streams")

    def __init__(self) -> None:
        self._metadata: dict[Digest, Metadata] = {}
        self._streams: dict[tuple[Digest | None, ...], Stream] = {}

    def metadata(self, digest: Digest, read: Callable[[], Metadata | Fault]) -> Metadata | Fault:
        """Return the metadata with this digest; ``read`` parses it if it isn't cached."""
        metadata = self._metadata.get(digest)
        if metadata is None:
            result = read()
            if isinstance(result, Fault):
                return result
            metadata = self._metadata[digest] = result
        return metadata

    def stream(self, digests: tuple[Digest | None, ...], read: Callable[[], Stream | Fault]) -> Stream | Fault:
        """Return the stream without events; ``digests`` are those of its files, None for a missing one."""
        stream = self._streams.get(digests)
        if stream is None:
            result = read()
            if isinstance(result, Fault):
                return result
            stream = self._streams[digests] = result
        return stream


def read_stream(
    directory: Directory,
    sizes: Mapping[str, int],
    fmt: Format,
    *,
    events: bool,
    content: bool = False,
    cache: ContentCache | None = None,
) -> tuple[Stream | Fault, dict[str, tuple[Fingerprint, Digest]]] | Fault:
    """Return the parsed stream, and the fingerprint and digest of each of its files; a `Fault` if one can't be read.

    All files are read as they were at one moment. ``sizes``: bytes by name, from the directory's listing. ``content``:
    keep the bytes of the events as well, if they were read at once. ``cache`` is used for streams without events.
    """

    def whole(fd: int, size: int) -> tuple[tuple[StreamContent, Digest], int]:
        content, read = read_all(fd, size)
        return (content, digest_of(content)), read

    def summarised(fd: int, _size: int) -> tuple[tuple[StreamContent, Digest], int]:
        hashing = HashedChunks(chunks_of(fd))
        summary = fmt.summarise(hashing, events=events)
        for _ in hashing:  # a fault leaves the rest unread, and the digest needs it
            pass
        return (summary, hashing.digest), hashing.size

    large = {name for name, size in sizes.items() if size > LARGE and name == fmt.stream_files[-1]}
    result = read_consistently(directory, {name: summarised if name in large else whole for name in sizes})
    if isinstance(result, Fault):
        return result
    contents = {name: parsed for name, ((parsed, _), _) in result.items()}
    files = {name: (fingerprint, hashed) for name, ((_, hashed), fingerprint) in result.items()}

    def read() -> Stream | Fault:
        stream = parse_or_fault(max(sizes), lambda: fmt.read_stream(contents, events=events))
        events_file = contents.get(fmt.stream_files[-1])
        if content and isinstance(stream, Stream) and isinstance(events_file, bytes):
            return replace(stream, content=events_file)
        return stream

    if events or cache is None:
        return read(), files
    return cache.stream(tuple(files[name][1] if name in files else None for name in fmt.stream_files), read), files
