"""Looking at one copy's directory: what it holds, and what the index knows of it already.

A usual copy that is read anyway is read at once: its managed files, all of them valid, and nothing else of which to
speak. Each file's status is asked for twice instead of three times. In any doubt that says nothing, and has noted
nothing: the copy is looked at again, unit by unit, which says what is wrong.
"""

from __future__ import annotations

import stat
from sys import intern
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from reconcile.fs.dirfd import is_special, kind_of
from reconcile.fs.files import CHANGING, digest_extra, error_text, fingerprint_of, parse_or_fault, read_fast, read_files
from reconcile.fs.hashing import digest as digest_of
from reconcile.index.stat_cache import Index, Row, make_row, pack, settled
from reconcile.index.stat_table import Sweep
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
from reconcile.scan.streams import LARGE, read_stream

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from reconcile.fs.dirfd import Directory
    from reconcile.fs.files import Fingerprint
    from reconcile.model.format import Format
    from reconcile.model.snapshot import Digest, Side
    from reconcile.scan.content_cache import Facts

_KEPT = 1 << 20
"""Bytes of a record that are kept in the index; a larger one is read each time."""
SYMLINK = "a symbolic link, never followed"


class Spot(NamedTuple):
    """Where a copy was found. ``container`` is the id of the copy around it."""

    path: str
    conversation: str
    partition: Partition
    container: str | None


class Listing(Struct):
    """The entries of a copy that matter: fingerprints of the files that belong to a unit, by name.

    ``faults`` are managed names that are no regular files, by unit.
    """

    prints: dict[str, Fingerprint] = field(default_factory=dict)
    faults: dict[str, Fault] = field(default_factory=dict)
    children: bool = False
    obstructed: bool = False


class Reader:
    """Turns directories into copies. Keeps the old index and the new one, and what was met on the way."""

    def __init__(
        self, side: Side, fmt: Format, known: Index, events_for: Collection[str], now_ns: int, facts: Facts
    ) -> None:
        self.facts = facts
        self.side = side
        self.fmt = fmt
        self.fixed = fmt.places is not None
        self.known = known
        self.index = Index()
        self.events_for = events_for
        self.now_ns = now_ns
        self.foreign: list[Foreign] = []
        self.problems: list[Problem] = []
        self.sweep = Sweep()
        self.learned = False
        self.read = 0
        self.usual = {} if self.fixed else {name: name for name in (fmt.metadata_file, *fmt.stream_files)}
        """The names that nearly every copy has."""
        self._units: dict[str, str | None] = {}

    def bind(self, name: str, identity: str) -> None:
        """Say what is looked at; what is known of another format or directory says nothing about it."""
        self.index = Index(name, identity)
        if (self.known.format, self.known.identity) != (name, identity):
            self.known = Index()

    def look(self, directory: Directory, spot: Spot) -> tuple[Copy, bool]:
        """The copy in ``directory``, and whether it has a directory of children."""
        row = self.known.rows.get(spot.path)
        if row is None and not self.fixed and spot.conversation not in self.events_for:
            usual = look_at_usual(self, directory, spot)
            if usual is not None:
                return usual
        met = len(self.foreign), len(self.problems)
        try:
            listing = self._list(directory, spot.path)
        except FileNotFoundError:
            del self.foreign[met[0] :], self.problems[met[1] :]
            raise
        prints = listing.prints
        names = sorted(prints)
        if (
            row is not None
            and row.names == "\0".join(names)
            and not listing.faults
            and not listing.obstructed
            and spot.conversation not in self.events_for
            and row.prints == pack(prints, names)
        ):
            copy = self.known.copies.get(spot.path)
            # The path doesn't say it all: another configuration may read another id in it.
            if copy is None or copy.conversation != spot.conversation or copy.container != spot.container:
                copy = row.copy(self.side, spot.conversation, spot.path, spot.partition, spot.container)
            self.index.rows[spot.path] = row
            self.index.copies[spot.path] = copy
            return copy, listing.children
        return self._assemble(directory, spot, listing, row), listing.children

    def look_at_file(self, level: Directory, name: str, spot: Spot) -> Copy:
        """The copy that is a single file; raises `OSError`."""
        status = level.stat(name)
        self.sweep.note(spot.path, status, self.now_ns)
        row, seen = self.known.rows.get(spot.path), {"": fingerprint_of(status)}
        if row is not None and row.names == "" and row.content is not None and row.prints == pack(seen, [""]):
            copy = self.known.copies.get(spot.path)
            if copy is None:
                copy = row.copy(self.side, spot.conversation, spot.path, spot.partition, spot.container)
            self.index.rows[spot.path], self.index.copies[spot.path] = row, copy
            return copy
        self.read += 1
        found = read_files(level, (name,))
        if isinstance(found, Fault):
            self.problems.append(Problem(spot.path, f"found {found.found}"))
            files = (File("", status.st_size, seen[""][1], None),)
            return Copy(self.side, spot.conversation, spot.path, spot.partition, None, files, None, None)
        content, known = found[name]
        digest = digest_of(content)
        assert self.fmt.places is not None  # noqa: S101 - only then are files records
        record = self.fmt.places.read_record(spot.conversation, content)
        metadata = replace(record, file="") if isinstance(record, Fault) else record
        if isinstance(metadata, Metadata) and settled(known, self.now_ns) and len(content) <= _KEPT:
            row = make_row({"": (known, digest)}, metadata, None)
            if row is not None:
                self.index.rows[spot.path], self.learned = row, True
        files = (File("", known[0], known[1], digest),)
        return Copy(self.side, spot.conversation, spot.path, spot.partition, None, files, metadata, None)

    def closed(self, spot: Spot, error: OSError) -> Copy:
        """The copy whose directory can't be looked into."""
        words = f"a directory that can't be read ({error_text(error)})"
        self.problems.append(Problem(spot.path, f"it can't be read ({error_text(error)})"))
        metadata = Unreadable(self.fmt.metadata_file, words, "a readable directory")
        stream = Unreadable(self.fmt.stream_files[-1], words, "a readable directory") if self.fmt.stream_files else None
        return Copy(self.side, spot.conversation, spot.path, spot.partition, spot.container, (), metadata, stream)

    def unit_of(self, name: str) -> str | None:
        """`Format.unit_of`, asked once for each name."""
        try:
            return self._units[name]
        except KeyError:
            unit = self._units[name] = self.fmt.unit_of(name)
            return unit

    def _list(self, directory: Directory, path: str) -> Listing:
        """The listing of a copy and of the directories of its extras."""
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
                    self.problems.append(Problem(f"{path}/{inside}", f"it can't be read ({error_text(error)})"))
        return listing

    def _list_one(self, directory: Directory, path: str, prefix: str, listing: Listing) -> list[str]:
        """Enter one directory's entries into ``listing``; returns the prefixes of those below it."""
        below: list[str] = []
        units, prints = self._units, listing.prints
        self.sweep.note(f"{path}/{prefix}"[:-1] if prefix else path, directory.status(), self.now_ns)
        for entry in directory.entries():
            name = prefix + entry.name if prefix else intern(entry.name)  # nearly all have the same
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
                    self.sweep.note(f"{path}/{name}", status, self.now_ns)
            else:
                mode = entry.stat(follow_symlinks=False).st_mode
                unit = self.unit_of(name)
                if unit in (METADATA, STREAM):
                    listing.faults[unit] = Fault(name, kind_of(mode), "a regular file")
                    unit = None
                elif stat.S_ISDIR(mode):  # also with a leading dot: a repository in it isn't removed or moved either
                    below.append(name + "/")
                if is_special(mode) or (stat.S_ISLNK(mode) and unit is not None):
                    self._not_ours(f"{path}/{name}", mode)
        return below

    def note_unread(self, above: Directory, name: str, path: str, error: OSError) -> None:
        """Note a directory that has nothing of ours and can't be read, which keeps that around it from being removed.

        Raises `OSError` where it is gone.
        """
        self.sweep.note(path, above.stat(name), self.now_ns)
        self.foreign.append(Foreign(path, f"a directory that can't be read ({error_text(error)})", special=True))

    def _not_ours(self, path: str, mode: int) -> None:
        """Note a link, or what has no content, which keeps its directory from being removed."""
        link = stat.S_ISLNK(mode)
        self.foreign.append(Foreign(path, SYMLINK if link else kind_of(mode), link, is_special(mode)))

    def _assemble(self, directory: Directory, spot: Spot, listing: Listing, row: Row | None) -> Copy:
        """The copy where the index doesn't know all of it: only what it doesn't know is read."""
        work = Work(self, directory, spot.path, listing, row)
        metadata = work.metadata()
        stream = work.stream(events=spot.conversation in self.events_for)
        for name in listing.prints:
            if self.unit_of(name) not in (METADATA, STREAM):
                work.extra(name)
        self.remember(spot.path, work.files, metadata, stream)
        files = tuple(File(name, known[0], known[1], digest) for name, (known, digest) in sorted(work.files.items()))
        return Copy(
            self.side,
            spot.conversation,
            spot.path,
            spot.partition,
            spot.container,
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
        """Put into the new index what may be trusted next time: whole units, at rest and without fault."""
        known: dict[str, tuple[Fingerprint, Digest]] = {}
        unsettled: set[str | None] = set()
        for name, (at, digest) in files.items():
            if digest is not None and settled(at, self.now_ns):
                known[name] = at, digest
            else:
                unsettled.add(self.unit_of(name))
        whole_metadata = metadata if isinstance(metadata, Metadata) and METADATA not in unsettled else None
        whole_stream = stream if isinstance(stream, Stream) and STREAM not in unsettled else None
        for unit, fact in ((METADATA, whole_metadata), (STREAM, whole_stream)):
            if fact is None:
                known = {name: each for name, each in known.items() if self.unit_of(name) != unit}
        row = make_row(known, whole_metadata, whole_stream)
        if row is not None:
            self.index.rows[path] = row
            self.learned = True


class Work:
    """The files of one copy, as far as they have been looked at."""

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
        """The metadata unit."""
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
        return self.reader.facts.metadata(digest, lambda: parse_or_fault(names[0], lambda: read(contents[names[0]])))

    def stream(self, *, events: bool) -> Stream | Fault | None:
        """The stream unit, all of its files at once."""
        names = self._names(STREAM)
        if names and STREAM not in self.listing.faults and not events and self.row is not None:
            # A file of the unit that went is a change of the unit too.
            gone = any(name in self.known and name not in names for name in self.reader.fmt.stream_files)
            remembered = self.row.stream()
            if not gone and remembered is not None and self._recall(names):
                return remembered
        if not names:
            return self.listing.faults.get(STREAM)
        self.reader.read += len(names)
        sizes = {name: self.listing.prints[name][0] for name in names}
        found = read_stream(self.directory, sizes, self.reader.fmt, events=events, facts=self.reader.facts)
        if isinstance(found, Fault):
            return self._unread(STREAM, names, found)
        self.files |= found[1]
        return self.listing.faults.get(STREAM, found[0])

    def extra(self, name: str) -> None:
        """One extra file. There is no fault for it to bear, so a problem names it."""
        if self._recall([name]):
            return
        self.reader.read += 1
        found = digest_extra(self.directory, name)
        if isinstance(found, Fault):
            self.files[name] = (self.listing.prints[name], None)
            self._report(found)
        else:
            self.files[name] = (found[1], found[0])

    def _names(self, unit: str) -> list[str]:
        return sorted(name for name in self.listing.prints if self.reader.unit_of(name) == unit)

    def _recall(self, names: list[str]) -> bool:
        """Take the digests of unchanged files from the index; all of them, or none."""
        prints = self.listing.prints
        found: dict[str, tuple[Fingerprint, Digest | None]] = {}
        for name in names:
            known = self.known.get(name)
            if known is None or known[0] != prints[name]:
                return False
            found[name] = known
        self.files |= found
        return True

    def _contents(self, unit: str, names: list[str]) -> dict[str, bytes] | Fault:
        """Read and hash the regular files of a unit; its fault where one can't be, or is no regular file."""
        self.reader.read += len(names)
        found = read_files(self.directory, names)
        if isinstance(found, Fault):
            return self._unread(unit, names, found)
        for name, (content, known) in found.items():
            self.files[name] = (known, digest_of(content))
        return self.listing.faults.get(unit) or {name: content for name, (content, _) in found.items()}

    def _unread(self, unit: str, names: list[str], fault: Fault) -> Fault:
        for name in names:
            self.files[name] = (self.listing.prints[name], None)
        if fault.found != CHANGING:
            self._report(fault)
        return self.listing.faults.get(unit, fault)

    def _report(self, fault: Fault) -> None:
        self.reader.problems.append(Problem(f"{self.path}/{fault.file}", f"found {fault.found}"))


def look_at_usual(reader: Reader, directory: Directory, spot: Spot) -> tuple[Copy, bool] | None:
    """The copy in ``directory``, and whether it has a directory of children."""
    try:
        listed_at = directory.status()
        listed = _listed(reader, directory)
    except OSError:
        return None
    if listed is None:
        return None
    names, children = listed
    found = read_fast(directory, names, LARGE)
    if found is None:
        return None
    known: dict[str, tuple[Fingerprint, Digest]] = {
        name: (at, digest_of(content)) for name, (content, at, _) in found.items()
    }
    metadata, stream = _facts(reader, {name: content for name, (content, _, _) in found.items()}, known)
    if not isinstance(metadata, Metadata) or not isinstance(stream, Stream):
        return None
    reader.read += len(names)
    reader.sweep.note(spot.path, listed_at, reader.now_ns)
    for name, (_, _, status) in found.items():
        reader.sweep.note(f"{spot.path}/{name}", status, reader.now_ns)
    reader.remember(spot.path, known, metadata, stream)
    files = tuple([File(name, at[0], at[1], digest) for name, (at, digest) in known.items()])
    return Copy(
        reader.side, spot.conversation, spot.path, spot.partition, spot.container, files, metadata, stream
    ), children


def _listed(reader: Reader, directory: Directory) -> tuple[list[str], bool] | None:
    """The names of the managed files in order, and whether there are children; None where anything else is there."""
    names, children, usual = [], False, reader.usual
    for entry in directory.entries():
        name = usual.get(entry.name)
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


def _facts(
    reader: Reader, contents: Mapping[str, bytes], known: Mapping[str, tuple[Fingerprint, Digest]]
) -> tuple[Metadata | Fault | None, Stream | Fault | None]:
    """What both units say."""
    fmt, facts, file = reader.fmt, reader.facts, reader.fmt.metadata_file
    if file not in contents:
        return None, None
    metadata = facts.metadata(known[file][1], lambda: parse_or_fault(file, lambda: fmt.read_metadata(contents[file])))
    of_stream = {name: contents[name] for name in fmt.stream_files if name in contents}
    digests = tuple([known[name][1] if name in known else None for name in fmt.stream_files])
    stream = facts.stream(
        digests, lambda: parse_or_fault(fmt.stream_files[-1], lambda: fmt.read_stream(of_stream, events=False))
    )
    return metadata, stream
