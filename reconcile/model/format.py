"""What the planner and the scanner must know of a format, and nothing more.

A format is added by one package in ``reconcile/formats`` that satisfies this protocol.
Every method is pure.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Protocol, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from reconcile.model.snapshot import Event, Fault, Metadata, Stream


class Part(Struct, frozen=True):
    """What of a stream a fork keeps: events of these times, in ns and inclusive, of so many turns at the end."""

    from_ns: int | None = None
    until_ns: int | None = None
    last: int | None = None

    @property
    def whole(self) -> bool:
        """Everything is kept."""
        return self.from_ns is None and self.until_ns is None and self.last is None


class Summary(Struct, frozen=True):
    """What is needed of a file of events that is too large to be held: `Format.summarise` makes it.

    ``first`` and ``last`` are the type of the first event and the time of the last as they were parsed, None where
    there is none; ``events`` are all elements, None where they weren't asked for.
    """

    count: int
    first: object
    last: object
    events: tuple[Event, ...] | None


class Entry(Enum):
    """What an entry of a directory is to a format whose records have fixed places."""

    RECORD = auto()
    ENTER = auto()
    """A directory in which there may be records."""
    IGNORED = auto()
    """The program's own business: it stays where it is, and nothing is said of it."""
    FOREIGN = auto()


class Mended(Struct, frozen=True):
    """What is derived, made again: a file, empty directories, or what is left over and goes.

    Paths are below the side's root. ``path`` gets ``content`` (None: it goes), where it still has the bytes of
    ``before`` (None: nothing is there). ``makes`` are directories to be made, ``clears`` locks that were left
    behind and go by being taken over (`Format.lock_name`).
    ``words`` say what changes, one line each. ``asked``: it is only done where somebody asks for ``id``; it says why.
    ``mtime_ns`` is the time of a file that goes.
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


StreamContent: TypeAlias = "bytes | Summary | Fault"
"""A file of a stream: its bytes, or what `Format.summarise` made of it."""


class Places(Protocol):
    """Records that each have one place, the same on both sides: a directory, or a single file.

    There is no tree of directories, no title names one, and what one side gets the other gets too. A record's id is its
    path below the root.
    """

    @property
    def tops(self) -> tuple[str, ...]:
        """The directories of a workspace's root in which all records lie; empty: all of it is the format's."""

    def entry(self, path: str, *, directory: bool) -> Entry:
        """Tell what lies at a path below the root, where places are fixed."""

    def is_derived(self, conversation: str) -> bool:
        """Tell whether a record follows from the others as a whole: then each workspace has its own, the store none."""

    def read_record(self, conversation: str, content: bytes) -> Metadata | Fault:
        """Check and read a record that is a single file."""

    def unite(self, conversation: str, store: bytes, workspace: bytes) -> bytes | Fault | None:
        """Make two valid versions of a record one, where each has what the other lacks.

        None: they aren't united, and the table decides. A fault: a person has to; it says about what.
        """

    def loses(self, conversation: str, before: bytes, after: bytes) -> bool:
        """Tell whether a version lacks some of another's history, of a kind that its program never removes."""

    def busy(self, found: object) -> str:
        """Why nothing may be written in the workspace now, in words; empty: nobody is at work there."""

    def mend(
        self, found: object, written: Mapping[str, bytes | None], wanted: Collection[str] = ()
    ) -> tuple[Mended, ...]:
        """What is derived and differs from what it follows from, in the workspace.

        ``found`` is what the format's reader has found there (`Snapshot.found`); ``written`` what a plan changes before
        that, by path: bytes, or None for what goes. ``wanted`` are the ids of what is done only where it is asked for.
        """


class Format(Protocol):
    """The rules of one system's files."""

    @property
    def name(self) -> str:
        """The name that ``--format`` takes."""

    @property
    def places(self) -> Places | None:
        """What records with fixed places are; None: conversations, in a tree of directories."""

    @property
    def required(self) -> tuple[str, ...]:
        """The units without which a copy isn't whole."""

    @property
    def stream_files(self) -> tuple[str, ...]:
        """The files of the stream unit, in the order in which they must be replaced."""

    @property
    def metadata_file(self) -> str:
        """The file of the metadata unit; empty: a record that is a single file is its own metadata."""

    def id_of(self, dirname: str) -> str | None:
        """The id that a directory's name carries, or None: the name is foreign."""

    def parse_id(self, text: str) -> str | None:
        """The id that a user's spelling names, or None where it is no full spelling of one."""

    def is_whole(self, text: str) -> bool:
        """Tell whether a user's spelling can only be a whole id, never the beginning of one."""

    def order(self, conversation: str) -> tuple[int, str]:
        """A total order of ids; "the smallest id" of docs/design/placement.md#rule-4 is by this."""

    def dirname(self, conversation: str, title: str | None) -> str:
        """The directory name for a new copy, and after a change of the title."""

    def unit_of(self, name: str) -> str | None:
        """The unit that a file below a conversation's directory belongs to, None: ignored."""

    def read_metadata(self, content: bytes) -> Metadata | Fault:
        """Check and read one metadata file."""

    def read_stream(self, contents: Mapping[str, StreamContent], *, events: bool) -> Stream | Fault:
        """Check and read the stream files that are there; with their events where asked for."""

    def summarise(self, chunks: Iterable[bytes], *, events: bool) -> Summary | Fault:
        """Check and read the last of the stream's files, which may be larger than memory."""

    def with_parent(self, content: bytes, parent: str | None) -> bytes | None:
        """The metadata with its parent stated (None: the key taken out), order of keys kept.

        None where re-serialising the unchanged object would not give the same bytes (docs/design/decisions.md#rule-18).
        """

    def expires_ns(self, content: bytes) -> int | None:
        """Return when valid metadata says that the conversation expires; None for never."""

    def cut_stream(self, contents: Mapping[str, bytes], part: Part) -> dict[str, bytes]:
        """Return the files of a part of a valid stream; all of it byte for byte."""

    def unite_events(self, edited: bytes, continued: bytes, was: Callable[[bytes], bool]) -> bytes | None:
        """Return the events of one file with what another adds to them, in the bytes of both; None where that can't be.

        ``was`` tells whether both sides once had a content. What the other adds to must be one; what the first one has
        instead of that is an edit of it, which adds nothing at the end.
        """

    def forked_metadata(self, content: bytes, *, parent: str, title: str | None) -> bytes:
        """The metadata of a fork: that of its source with another parent and title (None: the source's)."""

    def new_id(self, now_ns: int, taken: Collection[str]) -> str:
        """An unused id for a conversation that is made at ``now_ns``."""

    def lock_name(self, conversation: str) -> str | None:
        """Name of the system's own lock file of a conversation, None: the system has no locks."""
