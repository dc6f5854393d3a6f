"""What the planner and the scanner must know of a format, and nothing more.

A format is added by one package in ``reconcile/formats`` that satisfies this protocol.
Every method is pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from reconcile.core.model import Fault, Metadata, Stream


@dataclass(frozen=True, slots=True)
class Part:
    """What of a stream a fork keeps: events of these times, in ns and inclusive, of so many turns at the end."""

    from_ns: int | None = None
    until_ns: int | None = None
    last: int | None = None

    @property
    def whole(self) -> bool:
        """Everything is kept."""
        return self.from_ns is None and self.until_ns is None and self.last is None


@dataclass(frozen=True, slots=True)
class Summary:
    """What is needed of a file of events that is too large to be held: `Format.summarise` makes it.

    ``first`` and ``last`` are the type of the first event and the time of the last as they were parsed, None where
    there is none; ``texts`` is E(x) of DESIGN.md 4, None where it wasn't asked for.
    """

    count: int
    first: object
    last: object
    texts: tuple[str, ...] | None


StreamContent: TypeAlias = "bytes | Summary | Fault"
"""A file of a stream: its bytes, or what `Format.summarise` made of it."""


class Format(Protocol):
    """The rules of one system's files."""

    @property
    def name(self) -> str:
        """The name that ``--format`` takes."""

    @property
    def stream_files(self) -> tuple[str, ...]:
        """The files of the stream unit, in the order in which they must be replaced."""

    @property
    def metadata_file(self) -> str:
        """The file of the metadata unit."""

    def id_of(self, dirname: str) -> str | None:
        """The id that a directory's name carries, or None: the name is foreign."""

    def parse_id(self, text: str) -> str | None:
        """The id that a user's spelling names, or None where it is no full spelling of one."""

    def is_whole(self, text: str) -> bool:
        """Tell whether a user's spelling can only be a whole id, never the beginning of one."""

    def order(self, conversation: str) -> tuple[int, str]:
        """A total order of ids; "the smallest id" of section 3 is by this."""

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

        None where re-serialising the unchanged object would not give the same bytes (section 4).
        """

    def expires_ns(self, content: bytes) -> int | None:
        """Return when valid metadata says that the conversation expires; None for never."""

    def cut_stream(self, contents: Mapping[str, bytes], part: Part) -> dict[str, bytes]:
        """Return the files of a part of a valid stream; all of it byte for byte."""

    def forked_metadata(self, content: bytes, *, parent: str, title: str | None) -> bytes:
        """The metadata of a fork: that of its source with another parent and title (None: the source's)."""

    def new_id(self, now_ns: int, taken: Collection[str]) -> str:
        """An unused id for a conversation that is made at ``now_ns``."""

    def lock_name(self, conversation: str) -> str | None:
        """Name of the system's own lock file of a conversation, None: the system has no locks."""
