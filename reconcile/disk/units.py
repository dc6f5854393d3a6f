"""The units of one copy: taken from the index where it knows them, read and checked where it doesn't."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from reconcile.core.model import METADATA, STREAM, Fault, Metadata, Problem, Stream
from reconcile.disk.hashing import digest as digest_of
from reconcile.disk.reading import CHANGING, digest_extra, parsed, read_files
from reconcile.disk.streams import read_stream

if TYPE_CHECKING:
    from reconcile.core.model import Digest
    from reconcile.disk.copies import Reader
    from reconcile.disk.index import Row
    from reconcile.disk.reading import Print
    from reconcile.disk.tree import Directory


class Listing(Struct):
    """The entries of a copy that matter: fingerprints of the files that belong to a unit, by name.

    ``faults`` are managed names that are no regular files, by unit.
    """

    prints: dict[str, Print] = field(default_factory=dict)
    faults: dict[str, Fault] = field(default_factory=dict)
    children: bool = False
    obstructed: bool = False


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
        self.files: dict[str, tuple[Print, Digest | None]] = {}

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
        return self.reader.facts.metadata(digest, lambda: parsed(names[0], lambda: read(contents[names[0]])))

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
        found: dict[str, tuple[Print, Digest | None]] = {}
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
