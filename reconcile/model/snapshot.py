"""The snapshot of a side: the values that a scan produces, and that all other packages read.

Terms are those of docs/concepts.md. Paths are relative to a side's ``conversations/``
directory, ``/``-separated. Times are nanoseconds since the epoch, sizes are bytes.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

from reconcile.model.names import GIT

Digest: TypeAlias = str
"""The hexadecimal xxh3_128 of a file; a unit with several files has theirs joined by ``+``."""

METADATA = "metadata"
STREAM = "stream"
EXTRA = "extra:"
"""The prefix of an extra file's unit: ``extra:NOTE.md``. Each extra file is a unit of its own."""
WHOLE = "conversation"
"""The unit of actions on a conversation's whole directory."""

EARLIEST_NS, LATEST_NS = -(2**63), 2**63 - 1
"""The range of times in ns, from 1677 to 2262, that a database and a plan file can store. A scan clamps times to it."""

ARCHIVE = ".archive"
TRASH = ".trash"


class Side(StrEnum):
    """The store or the workspace."""

    STORE = "store"
    WORKSPACE = "workspace"

    @property
    def other(self) -> Side:
        """The opposite side."""
        return Side.WORKSPACE if self is Side.STORE else Side.STORE


class Partition(StrEnum):
    """The part of a side that contains a copy; ``.archive/`` and ``.trash/`` are not live."""

    LIVE = "live"
    ARCHIVE = "archive"
    TRASH = "trash"


def joined(path: str, name: str) -> str:
    """Return the path of a file of a copy; the file of a single-file copy has an empty name."""
    return f"{path}/{name}" if name else path


def is_archived(path: str) -> bool:
    """Return whether the directory at a path is directly in an ``.archive/``."""
    return ARCHIVE in path and path.rpartition("/")[0].rpartition("/")[2] == ARCHIVE


class Place(Struct, frozen=True, gc=False):
    """A file or directory on one side; printed as ``store:17528832001-title``."""

    side: Side
    path: str

    def __str__(self) -> str:
        return self.side + ":" + self.path

    @property
    def directory(self) -> Place:
        """The directory that it is in."""
        return Place(self.side, self.path.rpartition("/")[0])


class File(Struct, frozen=True, gc=False):
    """One regular file of a copy; ``name`` is its path below the copy's directory, empty for a single-file copy.

    ``digest`` is None if the file could not be read; the copy then has a `Fault` for it.
    """

    name: str
    size: int
    mtime_ns: int
    digest: Digest | None


class Beginning(Struct, frozen=True, gc=False):
    """A file that another version continues, byte for byte: its fingerprint and its digest.

    ``after`` is the digest of that version, and ``blocks`` are those of its blocks (`reconcile.fs.hashing`).
    """

    known: tuple[int, int, int, int]
    digest: Digest
    after: Digest
    blocks: bytes


class Fault(Struct, frozen=True, gc=False):
    """The reason why a unit of a copy may not be written to the other side (docs/design/decisions.md#rule-16).

    ``file`` is the file's name in the copy; ``found`` and ``expected`` are phrases without a verb, such as "an empty
    file" and "a JSON object". ``incomplete`` marks a managed file that is missing while the unit's other files exist.
    This is damage, not an edit: the file is restored from the other side.
    """

    file: str
    found: str
    expected: str
    incomplete: bool = False

    @property
    def words(self) -> str:
        """The message for people; the name of the file stands before it."""
        return f"{self.found} (expected {self.expected})"


UNREAD = "can't be read"
"""The words about a file that can't be read, without a cause."""


class Unreadable(Fault, frozen=True, gc=False):
    """A fault of reading, not of content: the content is unknown, and may be valid. ``found`` is the cause."""

    @property
    def words(self) -> str:
        """The message for people, with the cause instead of what was expected."""
        return f"{UNREAD} ({self.found})" if self.found else UNREAD


Content: TypeAlias = bytes | Fault
"""The bytes of an existing file, or the fault that prevented reading them."""


class ParentKind(StrEnum):
    """The kinds of statements about the parent in a metadata file (docs/design/placement.md#rule-2)."""

    ABSENT = "absent"
    """No ``parent_id`` key: JP strips keys that it doesn't know, so that this states nothing."""
    ROOT = "root"
    """An explicit ``null``."""
    ID = "id"
    UNREADABLE = "unreadable"
    """A value that is no valid spelling of an id."""


class ParentRef(Struct, frozen=True, gc=False):
    """The parent that a metadata file states; ``id`` is set for `ParentKind.ID` alone."""

    kind: ParentKind
    id: str | None = None


class Metadata(Struct, frozen=True, gc=False):
    """A valid metadata file: the fields that the planner needs, and the bytes for edits of the parent."""

    title: str | None
    parent: ParentRef
    local: bool
    """A legacy ``"local": true`` (docs/design/intents.md#rule-27)."""
    content: bytes


class Event(Struct, frozen=True, gc=False):
    """One event of a stream: its identity and the digest of its content.

    ``id`` consists of time and type, so that an edit of the text keeps it. ``content`` is the digest of all values but
    the time, independent of formatting.
    """

    id: str
    content: Digest


class Stream(Struct, frozen=True, gc=False):
    """A valid stream.

    ``events`` are E(x) of docs/cases.md: all events in order, without the base configuration in front. ``base`` is the
    digest of that configuration, whether it is the first event or a file. Both are None while no rule needs them (both
    sides in sync). ``count`` is the number of array elements of every kind, as JP counts
    (docs/design/formats/jp.md#count-and-last-event).
    """

    count: int
    last: str | None
    """The time of the last event as written, or None."""
    events: tuple[Event, ...] | None = None
    base: Digest | None = None
    content: bytes | None = None
    """The bytes of its events; None while no rule needs them (`reconcile.planning.planner.needs_contents`)."""


class Copy(Struct, frozen=True, gc=False):
    """One directory of one conversation on one side.

    ``metadata`` and ``stream`` are None if the copy has no file of that unit. ``container`` is the id of the
    conversation whose directory contains this one, whatever the metadata states. ``obstructed``: its
    ``conversations`` is no directory.
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
        """The directory's own name; the path if the format has fixed places."""
        return self.path if self.path == self.conversation else self.path.rpartition("/")[2]

    @property
    def archived(self) -> bool:
        """Whether the directory is directly in an ``.archive/``; its children are not archived by that."""
        return is_archived(self.path)

    @property
    def place(self) -> Place:
        """The place of the directory."""
        return Place(self.side, self.path)


class Foreign(Struct, frozen=True):
    """An entry that is no part of a conversation: never touched, reported once. ``what`` describes it in words."""

    path: str
    what: str
    link: bool = False
    """A symbolic link: a scan does not follow it, so that the content of its target is unknown."""
    special: bool = False
    """A pipe, socket, device, git repository or unreadable directory. The vault can't keep it, so that the directory
    around it isn't removed."""

    @property
    def repository(self) -> bool:
        """Whether it is the `.git` of a repository or worktree: the directory around it isn't moved either.

        A worktree and its repository contain each other's absolute path.
        """
        return self.special and self.path.rpartition("/")[2] == GIT

    @property
    def obstacle(self) -> str:
        """The message for people: the entry, and how to proceed."""
        if not self.repository:
            return f"{self.what} can't be saved in the vault; move it away and run again"
        way_on = "move it away (a worktree: `git worktree move`) and run again"
        return f"{self.what} is not removed or moved with the directory around it; {way_on}"


def nested_git(path: str, *, directory: bool) -> Foreign:
    """Return the foreign entry for a `.git`: the directory of a repository, or the file of a worktree."""
    return Foreign(path, "a git repository" if directory else "a git worktree", special=True)


def is_same_directory(identity: str, recorded: str) -> bool:
    """Tell whether a directory is the recorded one; old records have no generation."""
    return recorded in (identity, without_generation(identity))


def without_generation(identity: str) -> str:
    """Return only device and inode of an identity."""
    return ":".join(identity.split(":")[:2])


class Problem(Struct, frozen=True):
    """A path that could not be scanned, and the reason in words."""

    path: str
    message: str


class Snapshot(Struct, frozen=True):
    """One side at one moment. ``copies`` is sorted by id, then path.

    ``identity`` is that of the directory: device, inode, and the inode's generation if the file system has one, joined
    by colons. It reveals a wiped, restored or replaced side: a file system such as ext4 gives the inode of a removed
    directory to the next one, with another generation. It is empty if the side does not exist.
    """

    side: Side
    exists: bool
    identity: str
    copies: tuple[Copy, ...]
    foreign: tuple[Foreign, ...] = ()
    problems: tuple[Problem, ...] = ()
    derived_inputs: object = None
    """Further files that a format with derived data has read: the input of `Places.mend`."""
