"""The common part of formats whose records have fixed places: no tree, no streams, no forks, no names from titles.

The id of a record is its path below the root of either side. Some records are append-only files of lines: `merged` and
`merge_lines` merge two versions of one.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter, deque
from fnmatch import fnmatchcase, translate
from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.formats.jp.files import EDITOR_FILES
from reconcile.model.format import LogRead
from reconcile.model.snapshot import EXTRA, METADATA, Fault, Metadata, ParentKind, ParentRef

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence

    from reconcile.model.format import (
        DerivedRepair,
        Entry,
        EventSelection,
        Merge,
        MergedMetadata,
        Places,
        StreamContent,
        Summary,
    )
    from reconcile.model.snapshot import Stream
    from reconcile.model.transcript import Transcript

_ROOT = ParentRef(ParentKind.ROOT)
_NO_STREAM = Fault("", "events", "none, as records have no events")

_HIDDEN_EDITOR_FILES = (".#*", "*.kate-swp", ".goutputstream-*")
"""Here, unlike in JP, files with a leading dot are not left out in general."""
_OURS = re.compile(r"(?:.*/)?\.reconcile-.*", re.DOTALL)
_ODD = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def is_blank(content: bytes) -> bool:
    """Tell whether the content is empty, white space or NUL bytes, as an interrupted write leaves it."""
    return not content.strip(b"\0 \t\r\n")


def is_odd(path: str) -> bool:
    """Tell whether a path has control characters, or bytes that are not UTF-8."""
    return _ODD.search(path) is not None


class FixedPlaces(ABC):
    """The part of a format that follows from fixed places.

    ``ignore``: globs of files that are neither units nor records, matched against the path and the name.
    """

    def __init__(self, ignore: tuple[str, ...] = ()) -> None:
        self.ignore = ignore
        # One pattern, because every file of a scan is matched.
        self._ignored = re.compile("|".join(map(translate, (*EDITOR_FILES, *_HIDDEN_EDITOR_FILES, *ignore))))

    def is_left_out(self, path: str, *, directory: bool = False) -> bool:
        """Tell whether a path is our own staging, a file of an editor, or ignored by configuration."""
        ours = _OURS.fullmatch(path) is not None
        if ours or directory:
            return ours
        name = path.rpartition("/")[2]
        return self._ignored.match(name) is not None or any(fnmatchcase(path, glob) for glob in self.ignore)

    @property
    def places(self) -> Places:
        """This format: every record has one place."""
        return self

    @property
    def tops(self) -> tuple[str, ...]:
        """The directories of the format below the root; empty: all of the root."""
        return ()

    @abstractmethod
    def entry(self, path: str, *, directory: bool) -> Entry:
        """Classify the entry at a path below the root."""

    @property
    def is_shared(self) -> bool:
        """True: the program knows no other place, unless a format overrides this."""
        return True

    @property
    def is_for_others(self) -> bool:
        """False, unless a format overrides this."""
        return False

    def owner(self, conversation: str) -> str | None:  # noqa: ARG002
        """Return None: no record belongs to another one, unless a format overrides this."""
        return None

    def counted_as(self, conversation: str) -> str | None:
        """Return the record itself, unless a format overrides this."""
        return conversation

    def is_log(self, conversation: str) -> bool:  # noqa: ARG002
        """Return False: the content of a record is kept, unless a format overrides this."""
        return False

    def read_log(self, conversation: str, chunks: Iterable[bytes], state: bytes = b"") -> LogRead:  # noqa: ARG002
        """Read a log like any other record."""
        return LogRead(self.read_record(conversation, b"".join(chunks)))

    @abstractmethod
    def read_record(self, conversation: str, content: bytes) -> Metadata | Fault:
        """Check and read a record that is a single file."""

    @property
    def required(self) -> tuple[str, ...]:
        """No unit is required: a record is complete with the files that it has."""
        return ()

    @property
    def stream_files(self) -> tuple[str, ...]:
        """No files: there are no streams."""
        return ()

    @property
    def metadata_file(self) -> str:
        """The record itself, if it is a file."""
        return ""

    def id_of(self, dirname: str) -> str | None:  # noqa: ARG002
        """Return None: the name of a directory alone is no id."""
        return None

    def parse_id(self, text: str) -> str | None:  # noqa: ARG002
        """Return None: a text is an id only if the record exists."""
        return None

    def is_whole(self, text: str) -> bool:  # noqa: ARG002
        """Return False: any text may be the beginning of a path."""
        return False

    def order(self, conversation: str) -> tuple[int, str]:
        """Sort by path."""
        return (0, conversation)

    def dirname(self, conversation: str, title: str | None) -> str:  # noqa: ARG002
        """Return the fixed place of a record."""
        return conversation

    def unit_of(self, name: str) -> str | None:
        """Return the unit of the record's file, or of a file in its directory, also with a leading dot."""
        if not name:
            return METADATA
        return None if self.is_left_out(name) else EXTRA + name

    def described(self, title: str | None, content: bytes) -> Metadata:
        """Return the metadata of a valid record that is a file."""
        return Metadata(title, _ROOT, local=False, content=content)

    def read_metadata(self, content: bytes) -> Metadata | Fault:
        """Accept a record of an unknown kind as it is."""
        return self.described(None, content)

    def read_stream(self, contents: Mapping[str, StreamContent], *, events: bool) -> Stream | Fault:  # noqa: ARG002
        """Return a fault: there are no streams."""
        return _NO_STREAM

    def summarise(self, chunks: Iterable[bytes], *, events: bool) -> Summary | Fault:  # noqa: ARG002
        """Return a fault: there are no streams."""
        return _NO_STREAM

    def with_parent(self, content: bytes, parent: str | None) -> bytes | None:
        """Return the content if no parent is to be stated: a record can't state one."""
        return content if parent is None else None

    def expires_ns(self, content: bytes) -> int | None:  # noqa: ARG002
        """Return None: records never expire."""
        return None

    def cut_stream(self, contents: Mapping[str, bytes], part: EventSelection) -> dict[str, bytes]:  # noqa: ARG002
        """Return no files: there are no streams."""
        return {}

    def merge_events(self, edited: bytes, continued: bytes, was: Callable[[bytes], bool]) -> bytes | None:  # noqa: ARG002
        """Return None: there are no streams."""
        return None

    def both_continue(self, one: bytes, other: bytes, was: Callable[[bytes], bool]) -> bool:  # noqa: ARG002
        """Return False: there are no streams."""
        return False

    def merge_metadata(self, base: bytes, winner: bytes, other: bytes) -> MergedMetadata | None:  # noqa: ARG002
        """Return None: the records of each program have their own merge (`Places.merge`)."""
        return None

    def forked_metadata(self, content: bytes, *, parent: str, title: str | None) -> bytes:  # noqa: ARG002
        """Return the content: records are not forked."""
        return content

    def new_id(self, now_ns: int, taken: Collection[str]) -> str:  # noqa: ARG002
        """Raise `ValueError`: records are not forked."""
        raise ValueError("records of this format can't be forked")

    def transcript(self, conversation: str, contents: Mapping[str, bytes]) -> Transcript:  # noqa: ARG002
        """Return a record for people to read: each file as one text."""
        from reconcile.formats.reading import file_transcript  # here: no run needs it

        return file_transcript(contents)

    def lock_name(self, conversation: str) -> str | None:  # noqa: ARG002
        """Return None: there is no lock, unless a format overrides this."""
        return None

    @property
    def has_derived(self) -> bool:
        """False, unless a format overrides this."""
        return False

    def is_derived(self, conversation: str) -> bool:  # noqa: ARG002
        """Return False: no record is derived, unless a format overrides this."""
        return False

    def time_here(self, mtime_ns: int, now_ns: int) -> int:  # noqa: ARG002
        """Return the store's mtime, unless a format overrides this."""
        return mtime_ns

    def can_fork(self, conversation: str) -> bool:  # noqa: ARG002
        """Return False: records are not forked, unless a format overrides this."""
        return False

    def time_there(self, mtime_ns: int, now_ns: int) -> int:  # noqa: ARG002
        """Return the workspace's mtime, unless a format overrides this."""
        return mtime_ns

    @property
    def deletes_old(self) -> bool:
        """False, unless a format overrides this."""
        return False

    @property
    def noun(self) -> str:
        """`record`, unless a format overrides this."""
        return "record"

    @property
    def way_back(self) -> str:
        """`project`, unless a format overrides this."""
        return "project"

    def forked(self, conversation: str, content: bytes, new: str | None = None) -> tuple[str, bytes]:  # noqa: ARG002
        """Raise `ValueError`: records are not forked, unless a format overrides this."""
        raise ValueError("records of this format can't be forked")

    def merge(self, conversation: str, store: bytes, workspace: bytes) -> Merge:  # noqa: ARG002
        """Return the version that is not blank if the other one is; None otherwise, unless a format overrides this."""
        if is_blank(store) == is_blank(workspace):
            return None
        return workspace if is_blank(store) else store

    def loses(self, conversation: str, before: bytes, after: bytes) -> bool:  # noqa: ARG002
        """Tell whether a file was emptied. Other missing content counts as removed, unless a format overrides this."""
        return is_blank(after) and not is_blank(before)

    def busy(self, inputs: object) -> str:  # noqa: ARG002
        """Return no reason: no process is known to be at work, unless a format overrides this."""
        return ""

    def is_busy(self, conversation: str, inputs: object) -> bool:  # noqa: ARG002
        """Tell whether the program locks this record, unless a format overrides this."""
        return self.lock_name(conversation) is not None

    def holder(self, conversation: str, inputs: object) -> str:  # noqa: ARG002
        """Return no process: none is known, unless a format overrides this."""
        return ""

    def mend(
        self,
        inputs: object,  # noqa: ARG002
        written: Mapping[str, bytes | None],  # noqa: ARG002
        wanted: Collection[str] = (),  # noqa: ARG002
    ) -> tuple[DerivedRepair, ...]:
        """Return no repairs: no data is derived, unless a format overrides this."""
        return ()


_TIME = re.compile(rb"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z")


class Line(Struct, frozen=True):
    """One line of a version. Lines of two versions are the same line if their ``key`` is equal.

    ``time`` orders the lines that only one version has; the times of a file can be compared with each other.
    """

    key: Hashable
    time: float | bytes
    text: bytes


def merged(first: Sequence[Line], second: Sequence[Line]) -> list[Line]:
    """Return the lines of both versions: the shared lines, then both tails by time, each in its own order.

    The result does not depend on the order of the two versions.
    """
    first_keys, second_keys = {line.key for line in first}, {line.key for line in second}
    left = [line for line in first if line.key not in second_keys]
    right = [line for line in second if line.key not in first_keys]
    shared = [line for line in first if line.key in second_keys]
    if [line.key for line in shared] != [line.key for line in second if line.key in first_keys]:
        # One of them was merged elsewhere before, so the shared lines are sorted by time.
        shared.sort(key=_order)
    return [*shared, *_by_time(left, right)]


def merge_lines(store: bytes, workspace: bytes) -> bytes:
    """Return one log with every line of both; a truncated line is replaced by the complete one.

    A line is identified by its text and its first time alone, so equal lines are counted.
    """
    store_lines, workspace_lines = _split(store, workspace), _split(workspace, store)
    for whole, other in ((store, workspace), (workspace, store)):
        if not lacks_lines(other, whole):
            return whole
    lines = merged(_numbered(store_lines), _numbered(workspace_lines))
    return b"".join(line.text + b"\n" for line in lines)


def lacks_lines(before: bytes, after: bytes) -> bool:
    """Tell whether ``after`` has fewer of some line than ``before``, which may end in a truncated line."""
    return bool(Counter(_split(before, after)) - Counter(_lines(after)))


def _split(content: bytes, other: bytes) -> list[bytes]:
    """Return the lines of one version, without a truncated last line that is complete in the other."""
    lines = _lines(content)
    cut = lines and not content.endswith(b"\n")
    if cut and any(line_.startswith(lines[-1]) and line_ != lines[-1] for line_ in _lines(other)):
        return lines[:-1]
    return lines


def _lines(content: bytes) -> list[bytes]:
    return [line for line in (raw.rstrip(b"\r") for raw in content.split(b"\n")) if line.strip()]


def _numbered(texts: Iterable[bytes]) -> list[Line]:
    seen: Counter[bytes] = Counter()
    numbered = []
    for text in texts:
        seen[text] += 1
        numbered.append(Line((text, seen[text]), _time_in(text), text))
    return numbered


def _time_in(text: bytes) -> bytes:
    """Return the first ISO time in a line, which can be sorted as text; empty if there is none."""
    match = _TIME.search(text)
    return match[0] if match else b""


def _order(line: Line) -> tuple[float | bytes, bytes]:
    return line.time, line.text


def _by_time(left: Sequence[Line], right: Sequence[Line]) -> Iterator[Line]:
    """Yield both sequences merged, the older next line first; neither's own order changes."""
    first, second = deque(left), deque(right)
    while first and second:
        yield (first if _order(first[0]) <= _order(second[0]) else second).popleft()
    yield from first or second
