"""The protocol of a format: everything that the planner and the scanner need to know of it.

A new format is one package in ``reconcile/formats`` that implements this protocol. Every method is pure.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Protocol, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from reconcile.model.snapshot import Event, Fault, Metadata, Stream
    from reconcile.model.transcript import Transcript


class EventSelection(Struct, frozen=True):
    """The part of a stream that a fork keeps: events of a range of times (ns, inclusive), or the ``last`` turns.

    ``event`` is the id of its last event, in a format whose events have ids.
    """

    from_ns: int | None = None
    until_ns: int | None = None
    last: int | None = None
    event: str | None = None

    @property
    def whole(self) -> bool:
        """Whether the fork keeps the whole stream."""
        return self == EventSelection()


class Summary(Struct, frozen=True):
    """The summary of an events file that is too large for memory, made by `Format.summarise`.

    ``first`` is the type of the first event and ``last`` the time of the last one, as parsed; None if there is none.
    ``events`` are all elements, None if they weren't requested.
    """

    count: int
    first: object
    last: object
    events: tuple[Event, ...] | None


class LogRead(Struct, frozen=True):
    """A log as `Places.read_log` has read it.

    ``state`` has the facts of its whole lines, and ``length`` is the number of bytes up to the end of the last one.
    """

    record: Metadata | Fault
    state: bytes = b""
    length: int = 0


class MergedMetadata(Struct, frozen=True):
    """Two edits of a metadata file in one. ``conflicts`` are the keys that both have edited, each in its own way."""

    content: bytes
    conflicts: tuple[str, ...] = ()


class Entry(Enum):
    """The kinds of directory entries for a format with fixed places."""

    RECORD = auto()
    ENTER = auto()
    """A directory that may contain records."""
    IGNORED = auto()
    """A private file of the program: it is never touched or reported."""
    FOREIGN = auto()


class DerivedRepair(Struct, frozen=True):
    """A repair of derived data: a file is rebuilt or removed, or directories are created.

    Paths are below the side's root. ``path`` gets ``content`` (None: it is removed) if it still has the bytes of
    ``before`` (None: it doesn't exist). ``makes`` are directories to create. ``clears`` are stale locks, which are
    removed by acquiring them (`Format.lock_name`). ``words`` describe the changes, one line each. ``asked`` is the
    reason why the repair is done only if ``id`` is requested. ``mtime_ns`` is the time of a removed file.
    """

    id: str
    path: str
    words: tuple[str, ...]
    before: bytes | None = None
    content: bytes | None = None
    makes: tuple[str, ...] = ()
    clears: tuple[str, ...] = ()
    asked: str = ""
    mtime_ns: int = 0


class TwoContinuations(Struct, frozen=True):
    """The result of `Places.merge` for versions that both stay, one of them as a record of its own."""


Merge: TypeAlias = "bytes | TwoContinuations | Fault | None"
"""The result of `Places.merge`."""
StreamContent: TypeAlias = "bytes | Summary | Fault"
"""A file of a stream: its bytes, or the result of `Format.summarise`."""


class Places(Protocol):
    """The protocol of formats with fixed places: a record is a directory or a file at the same path on both sides.

    Records form no tree, and no title names a directory. A record's id is its path below the root.
    """

    @property
    def tops(self) -> tuple[str, ...]:
        """The directories of a workspace's root that contain all records; empty: the whole root."""

    def entry(self, path: str, *, directory: bool) -> Entry:
        """Return the kind of the entry at a path below the root."""

    @property
    def has_derived(self) -> bool:
        """Whether a workspace has data that is derived from the records, which a run keeps up to date (`mend`)."""

    def is_derived(self, conversation: str) -> bool:
        """Return whether a record is derived from the others: each workspace has its own then, and the store none."""

    def owner(self, conversation: str) -> str | None:
        """Return the record that a record belongs to: both are shared, removed and forked together.

        None if to no other one.
        """

    def counted_as(self, conversation: str) -> str | None:
        """Return the record under which a record is counted for people; None: it is not counted."""

    @property
    def is_shared(self) -> bool:
        """Whether a workspace gets the records that only the store has, unless it had them before."""

    @property
    def is_for_others(self) -> bool:
        """Whether the workspace is a folder for colleagues: one of them may have withdrawn a record that went."""

    def read_record(self, conversation: str, content: bytes) -> Metadata | Fault:
        """Parse a record that is a single file."""

    def is_log(self, conversation: str) -> bool:
        """Return whether a record is a file of any size that its program only appends to.

        Its content is not kept in memory: the scan reads it with `read_log`. If the sides have different versions, they
        are loaded: whole, or only the bytes around the end of a version that the other one continues.
        """

    def read_log(self, conversation: str, chunks: Iterable[bytes], state: bytes = b"") -> LogRead:
        """Parse such a record; the content of the result is empty.

        ``state`` is that of an earlier result: then ``chunks`` are the bytes after it, and `length` counts them.
        """

    def time_here(self, mtime_ns: int, now_ns: int) -> int:
        """Return the mtime (ns) of a file of the store in a workspace that lacks the record, at ``now_ns``."""

    def time_there(self, mtime_ns: int, now_ns: int) -> int:
        """Return the mtime (ns) of a file of the workspace in a store that lacks the record, at ``now_ns``."""

    @property
    def deletes_old(self) -> bool:
        """Whether records leave the workspace as a matter of course, so that one without any is no accident."""

    @property
    def noun(self) -> str:
        """The noun for what is counted (`counted_as`)."""

    @property
    def way_back(self) -> str:
        """The command that brings back a record that has left the workspace."""

    def merge(self, conversation: str, store: bytes, workspace: bytes) -> Merge:
        """Merge two valid versions of a record that have each entries that the other lacks.

        None: the versions can't be merged, and the decision table applies. A fault: a person has to decide.
        """

    def can_fork(self, conversation: str) -> bool:
        """Return whether ``fork`` can copy this record under a new id."""

    def forked(self, conversation: str, content: bytes, new: str | None = None) -> tuple[str, bytes]:
        """Return the id and the content of a record in its fork, or in the one of the record that it belongs to.

        ``new`` is the fork's own name; None: the one of a continuation, which is equal for equal content.
        """

    def loses(self, conversation: str, before: bytes, after: bytes) -> bool:
        """Return whether a version lacks history of another one, of a kind that the program never removes."""

    def busy(self, inputs: object) -> str:
        """Return the reason why some records may not be written now; empty if no program works in the workspace."""

    def is_busy(self, conversation: str, inputs: object) -> bool:
        """Return whether this record is one of those (`busy`)."""

    def holder(self, conversation: str, inputs: object) -> str:
        """Return which process has the record open, as the subject of a sentence; empty if none is known."""

    def mend(
        self, inputs: object, written: Mapping[str, bytes | None], wanted: Collection[str] = ()
    ) -> tuple[DerivedRepair, ...]:
        """Return the repairs of derived data in the workspace that is out of date.

        ``inputs`` are `Snapshot.derived_inputs`. ``written`` are the files that a plan changes
        first, by path: bytes, or None for removed ones. ``wanted`` are the ids of requested repairs.
        """


class Format(Protocol):
    """The rules of one system's files."""

    @property
    def name(self) -> str:
        """The name that ``--format`` takes."""

    @property
    def places(self) -> Places | None:
        """The fixed places of records; None if conversations form a tree of directories."""

    @property
    def required(self) -> tuple[str, ...]:
        """The units that a complete copy must have."""

    @property
    def stream_files(self) -> tuple[str, ...]:
        """The files of the stream unit, in the order of replacement."""

    @property
    def metadata_file(self) -> str:
        """The file of the metadata unit; empty for single-file records, which are their own metadata."""

    def id_of(self, dirname: str) -> str | None:
        """Return the id in a directory's name; None if the name is foreign."""

    def parse_id(self, text: str) -> str | None:
        """Return the id for a user's spelling; None if it is no complete spelling of an id."""

    def is_whole(self, text: str) -> bool:
        """Return whether a user's spelling can only be a whole id, never a prefix of one."""

    def order(self, conversation: str) -> tuple[int, str]:
        """Return the sort key of an id; docs/design/placement.md#rule-4 uses this order for "the smallest id"."""

    def dirname(self, conversation: str, title: str | None) -> str:
        """Return the directory name for a new copy, or for a changed title."""

    def unit_of(self, name: str) -> str | None:
        """Return the unit of a file below a conversation's directory; None if the file is ignored."""

    def read_metadata(self, content: bytes) -> Metadata | Fault:
        """Parse one metadata file."""

    def read_stream(self, contents: Mapping[str, StreamContent], *, events: bool) -> Stream | Fault:
        """Parse the existing stream files; ``events`` includes their events."""

    def summarise(self, chunks: Iterable[bytes], *, events: bool) -> Summary | Fault:
        """Parse the last of the stream's files, which may be larger than memory."""

    def with_parent(self, content: bytes, parent: str | None) -> bytes | None:
        """Return the metadata with this parent (None: without the key), in the same order of keys.

        None if re-serialising the unchanged object does not return the same bytes (docs/design/decisions.md#rule-18).
        """

    def expires_ns(self, content: bytes) -> int | None:
        """Return the time of expiry in valid metadata, in ns; None for never."""

    def cut_stream(self, contents: Mapping[str, bytes], part: EventSelection) -> dict[str, bytes]:
        """Return the files of a part of a valid stream; the whole stream is unchanged, byte for byte."""

    def merge_events(self, edited: bytes, continued: bytes, was: Callable[[bytes], bool]) -> bytes | None:
        """Return the events of ``edited`` with those that ``continued`` appends, in their bytes; None if impossible.

        ``was`` returns whether both sides once had a content. ``continued`` must extend such a content, and ``edited``
        must change it without appending events.
        """

    def both_continue(self, one: bytes, other: bytes, was: Callable[[bytes], bool]) -> bool:
        """Tell whether the events that two contents have in common, from the first on, are a content that ``was``.

        Then all their other events are new, even if their times are equal.
        """

    def merge_metadata(self, base: bytes, winner: bytes, other: bytes) -> MergedMetadata | None:
        """Merge two edits of ``base`` key by key; the ``winner`` has the say on keys that both have edited.

        The result has the form of the winner's file. None if it can't be merged without changing other bytes.
        """

    def forked_metadata(self, content: bytes, *, parent: str, title: str | None) -> bytes:
        """Return the metadata of a fork: the source's with another parent and title (None: the source's)."""

    def new_id(self, now_ns: int, taken: Collection[str]) -> str:
        """Return an unused id for a conversation that is created at ``now_ns``."""

    def transcript(self, conversation: str, contents: Mapping[str, bytes]) -> Transcript:
        """Return a conversation for people to read. It never fails: its notes name what can't be read.

        ``contents`` are files by their names below the conversation's directory, empty for a single-file record. Files
        that it lacks are left out without a note.
        """

    def lock_name(self, conversation: str) -> str | None:
        """Return the name of the program's lock file of a conversation; None if the program has no locks."""
