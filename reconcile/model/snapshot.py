"""What the two sides hold: the values that a scan produces and everything else reads.

Terms are those of docs/concepts.md. Paths are relative to a side's ``conversations/``
directory, ``/``-separated. Times are nanoseconds since the epoch, sizes are bytes.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

from reconcile.model.names import GIT

Digest: TypeAlias = str
"""Hexadecimal xxh3_128 of a file; of a unit with several files, theirs joined by ``+``."""

METADATA = "metadata"
STREAM = "stream"
EXTRA = "extra:"
"""Prefix of an extra's unit: ``extra:NOTE.md``; each extra file is a unit by itself."""
WHOLE = "conversation"
"""The unit of an action that concerns a conversation's whole directory."""

EARLIEST_NS, LATEST_NS = -(2**63), 2**63 - 1
"""Times that are told apart, of the years 1677 to 2262: what a database and a plan file can hold. A scan takes a time
before or after for the first or the last of them."""

ARCHIVE = ".archive"
TRASH = ".trash"


class Side(StrEnum):
    """One of the two places; there is no third name for them."""

    STORE = "store"
    WORKSPACE = "workspace"

    @property
    def other(self) -> Side:
        """The opposite side."""
        return Side.WORKSPACE if self is Side.STORE else Side.STORE


class Partition(StrEnum):
    """Which part of a side a copy lies in; ``.archive/`` and ``.trash/`` are not live."""

    LIVE = "live"
    ARCHIVE = "archive"
    TRASH = "trash"


def joined(path: str, name: str) -> str:
    """Return the path of a file of a copy; a copy that is a single file has one with no name."""
    return f"{path}/{name}" if name else path


def is_archived(path: str) -> bool:
    """Tell whether a path is that of a directory directly in an ``.archive/``."""
    return path.rpartition("/")[0].rpartition("/")[2] == ARCHIVE


class Place(Struct, frozen=True):
    """A file or directory on one side; printed as ``store:17528832001-title``."""

    side: Side
    path: str

    def __str__(self) -> str:
        return self.side + ":" + self.path


class File(Struct, frozen=True):
    """One regular file of a copy; ``name`` is its path below the copy's directory, empty where the copy is the file.

    ``digest`` is None where the file could not be read; the copy then carries a `Fault` for it.
    """

    name: str
    size: int
    mtime_ns: int
    digest: Digest | None


class Fault(Struct, frozen=True):
    """Why a unit of a copy may not be written anywhere (docs/design/decisions.md#rule-16).

    ``file`` is the file's name in the copy; ``found`` and ``expected`` complete the sentence
    "found ..., expected ...". ``incomplete`` marks a managed file that is missing while others of the
    unit are there: damage that is refilled from the other side, not content that somebody wrote.
    """

    file: str
    found: str
    expected: str
    incomplete: bool = False


class Unreadable(Fault, frozen=True):
    """A fault of reading, not of content: what the file holds isn't known, and may be as it should be."""


Content: TypeAlias = bytes | Fault
"""A file that is there: its bytes, or why they can't be read. What isn't there has none of both."""


class ParentKind(StrEnum):
    """How a metadata file speaks about the parent (docs/design/placement.md#rule-2)."""

    ABSENT = "absent"
    """No ``parent_id`` key at all: JP strips keys that it doesn't know, so this says nothing."""
    ROOT = "root"
    """An explicit ``null``."""
    ID = "id"
    UNREADABLE = "unreadable"
    """A value that is no accepted spelling of an id."""


class ParentRef(Struct, frozen=True):
    """The parent as one metadata file states it; ``id`` is set for `ParentKind.ID` alone."""

    kind: ParentKind
    id: str | None = None


class Metadata(Struct, frozen=True):
    """A valid metadata file: what the planner needs of it, and its bytes for edits of the parent."""

    title: str | None
    parent: ParentRef
    local: bool
    """A legacy ``"local": true`` (docs/design/intents.md#rule-27)."""
    content: bytes


class Event(Struct, frozen=True):
    """One event of a stream: which one it is, and what it says.

    ``id`` is its time and type: it stays where somebody edits the event's text. ``content`` names the value of all but
    the time, however that is formatted.
    """

    id: str
    content: Digest


class Stream(Struct, frozen=True):
    """A valid stream. ``events`` is E(x): each event in order, without the base configuration in front. ``base`` names
    that configuration as the content of an event would, whether it is the first event or a file. Both are None where
    nothing has needed them (both sides in sync).

    ``count`` is the number of array elements of every kind, as JP counts
    (docs/design/formats/jp.md#count-and-last-event).
    """

    count: int
    last: str | None
    """Time of the last event as written, or None."""
    events: tuple[Event, ...] | None = None
    base: Digest | None = None
    content: bytes | None = None
    """The bytes of its events; None where nothing has needed them (`reconcile.planning.planner.needs_contents`)."""


class Copy(Struct, frozen=True):
    """One directory of one conversation on one side.

    ``metadata`` and ``stream`` are None where the copy has no file of that unit.
    ``container`` is the id of the copy in whose directory this one lies, whatever the metadata says.
    ``obstructed``: something that is no directory is called ``conversations`` in it.
    """

    side: Side
    conversation: str
    path: str
    partition: Partition
    container: str | None
    files: tuple[File, ...]
    metadata: Metadata | Fault | None
    stream: Stream | Fault | None
    obstructed: bool = False

    @property
    def dirname(self) -> str:
        """The directory's own name; where places are fixed, its path."""
        return self.path if self.path == self.conversation else self.path.rpartition("/")[2]

    @property
    def archived(self) -> bool:
        """Directly in an ``.archive/``; what an archived directory carries along is not archived by that."""
        return is_archived(self.path)

    @property
    def place(self) -> Place:
        """Where the directory is."""
        return Place(self.side, self.path)


class Foreign(Struct, frozen=True):
    """An entry that is not ours: never touched, reported once. ``what`` names it in words."""

    path: str
    what: str
    link: bool = False
    """A symbolic link: what it stands for is not looked at, so that it says nothing about what is there."""
    special: bool = False
    """A pipe, socket, device, git repository, or a directory that can't be read: the vault can't keep it, so that what
    it lies in isn't removed."""

    @property
    def repository(self) -> bool:
        """Tell whether it is the `.git` of a repository or worktree: what it lies in isn't moved either.

        A worktree and its repository hold each other's absolute path.
        """
        return self.special and self.path.rpartition("/")[2] == GIT

    @property
    def obstacle(self) -> str:
        """Return what stays where it is, and the way on."""
        if not self.repository:
            return f"found {self.what}, which the vault can't keep; move it away, and run again"
        way_on = "move that away (a worktree: `git worktree move`), and run again"
        return f"found {self.what}, which isn't removed or moved with the directory around it; {way_on}"


def nested_git(path: str, *, directory: bool) -> Foreign:
    """Return the `.git` in a conversation's directory: the directory of a repository, or the file of a worktree."""
    return Foreign(path, "a git repository" if directory else "a git worktree", special=True)


class Problem(Struct, frozen=True):
    """Something that could not be looked at: ``path`` and the reason in words."""

    path: str
    message: str


class Snapshot(Struct, frozen=True):
    """One side at one moment, immutable. ``copies`` is sorted by id, then path.

    ``identity`` names the directory itself (device and inode), so that a wiped, restored or replaced
    side is noticed; empty where the side does not exist.
    """

    side: Side
    exists: bool
    identity: str
    copies: tuple[Copy, ...]
    foreign: tuple[Foreign, ...] = ()
    problems: tuple[Problem, ...] = ()
    found: object = None
    """What a format with derived data has found here besides: `Places.mend` is a function of it."""
