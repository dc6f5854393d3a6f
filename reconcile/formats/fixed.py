"""What all formats share whose records have fixed places: no tree, no streams, no forks, no names from titles.

A record's id is its path below the root of either side.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from fnmatch import fnmatchcase, translate
from typing import TYPE_CHECKING

from reconcile.formats.jp.files import EDITOR_FILES
from reconcile.model.snapshot import EXTRA, METADATA, Fault, Metadata, ParentKind, ParentRef

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from reconcile.model.format import Entry, Mended, Part, Places, StreamContent, Summary
    from reconcile.model.snapshot import Stream

_ROOT = ParentRef(ParentKind.ROOT)
_NO_STREAM = Fault("", "a stream", "none: this format has no streams")

_HIDDEN_EDITOR_FILES = (".#*", "*.kate-swp", ".goutputstream-*")
"""Unlike with JP, a leading dot alone is no reason to leave a file out."""
_OURS = re.compile(r"(?:.*/)?\.reconcile-.*", re.DOTALL)
_ODD = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def is_blank(content: bytes) -> bool:
    """Tell whether nothing is written there: an interrupted write leaves an empty file, or one of zeros."""
    return not content.strip(b"\0 \t\r\n")


def is_odd(path: str) -> bool:
    """Tell whether there are control characters in it, or bytes that are not UTF-8."""
    return _ODD.search(path) is not None


class FixedPlaces(ABC):
    """The part of a format that follows from its places being fixed.

    ``ignore``: globs of files that are no units and no records, against the path and the name.
    """

    def __init__(self, ignore: tuple[str, ...] = ()) -> None:
        self.ignore = ignore
        # One pattern: it is asked for every file of a scan.
        self._ignored = re.compile("|".join(map(translate, (*EDITOR_FILES, *_HIDDEN_EDITOR_FILES, *ignore))))

    def is_left_out(self, path: str, *, directory: bool = False) -> bool:
        """Tell whether it is our own staging, an editor's file, or what somebody has chosen to leave out."""
        ours = _OURS.fullmatch(path) is not None
        if ours or directory:
            return ours
        name = path.rpartition("/")[2]
        return self._ignored.match(name) is not None or any(fnmatchcase(path, glob) for glob in self.ignore)

    @property
    def places(self) -> Places:
        """Every record has one place."""
        return self

    @property
    def tops(self) -> tuple[str, ...]:
        """All of the root is the format's, unless a format says otherwise."""
        return ()

    @abstractmethod
    def entry(self, path: str, *, directory: bool) -> Entry:
        """Tell what lies at a path below the root."""

    @abstractmethod
    def read_record(self, conversation: str, content: bytes) -> Metadata | Fault:
        """Check and read a record that is a single file."""

    @property
    def required(self) -> tuple[str, ...]:
        """What is there is whole: a file, or a directory with whatever is in it."""
        return ()

    @property
    def stream_files(self) -> tuple[str, ...]:
        """None."""
        return ()

    @property
    def metadata_file(self) -> str:
        """The record itself, where it is a file."""
        return ""

    def id_of(self, dirname: str) -> str | None:  # noqa: ARG002
        """No directory's name says anything by itself."""
        return None

    def parse_id(self, text: str) -> str | None:  # noqa: ARG002
        """Nothing is an id by its spelling alone: it must be there."""
        return None

    def is_whole(self, text: str) -> bool:  # noqa: ARG002
        """Any text may be the beginning of a path."""
        return False

    def order(self, conversation: str) -> tuple[int, str]:
        """By path."""
        return (0, conversation)

    def dirname(self, conversation: str, title: str | None) -> str:  # noqa: ARG002
        """The one place that a record has."""
        return conversation

    def unit_of(self, name: str) -> str | None:
        """The file that is the record, or one in its directory, those with a leading dot too."""
        if not name:
            return METADATA
        return None if self.is_left_out(name) else EXTRA + name

    def described(self, title: str | None, content: bytes) -> Metadata:
        """A valid record that is a file."""
        return Metadata(title, _ROOT, local=False, content=content)

    def read_metadata(self, content: bytes) -> Metadata | Fault:
        """A record whose kind isn't known is taken as it is."""
        return self.described(None, content)

    def read_stream(self, contents: Mapping[str, StreamContent], *, events: bool) -> Stream | Fault:  # noqa: ARG002
        """There is none."""
        return _NO_STREAM

    def summarise(self, chunks: Iterable[bytes], *, events: bool) -> Summary | Fault:  # noqa: ARG002
        """There is none."""
        return _NO_STREAM

    def with_parent(self, content: bytes, parent: str | None) -> bytes | None:
        """A record states no parent."""
        return content if parent is None else None

    def expires_ns(self, content: bytes) -> int | None:  # noqa: ARG002
        """Never."""
        return None

    def cut_stream(self, contents: Mapping[str, bytes], part: Part) -> dict[str, bytes]:  # noqa: ARG002
        """There is none."""
        return {}

    def unite_events(self, edited: bytes, continued: bytes, was: Callable[[bytes], bool]) -> bytes | None:  # noqa: ARG002
        """There are none."""
        return None

    def forked_metadata(self, content: bytes, *, parent: str, title: str | None) -> bytes:  # noqa: ARG002
        """Records aren't forked."""
        return content

    def new_id(self, now_ns: int, taken: Collection[str]) -> str:  # noqa: ARG002
        """Records aren't forked."""
        raise ValueError("a record with a fixed place can't be forked")

    def lock_name(self, conversation: str) -> str | None:  # noqa: ARG002
        """No lock, unless a format says otherwise."""
        return None

    def is_derived(self, conversation: str) -> bool:  # noqa: ARG002
        """Nothing is, unless a format says otherwise."""
        return False

    def unite(self, conversation: str, store: bytes, workspace: bytes) -> bytes | Fault | None:  # noqa: ARG002
        """Return the version that isn't empty where the other is; else the table decides, unless a format differs."""
        if is_blank(store) == is_blank(workspace):
            return None
        return workspace if is_blank(store) else store

    def loses(self, conversation: str, before: bytes, after: bytes) -> bool:  # noqa: ARG002
        """Tell whether a file was emptied; whatever else is gone was removed, unless a format says otherwise."""
        return is_blank(after) and not is_blank(before)

    def busy(self, found: object) -> str:  # noqa: ARG002
        """Nobody, as far as can be told, unless a format says otherwise."""
        return ""

    def mend(
        self,
        found: object,  # noqa: ARG002
        written: Mapping[str, bytes | None],  # noqa: ARG002
        wanted: Collection[str] = (),  # noqa: ARG002
    ) -> tuple[Mended, ...]:
        """Nothing is derived, unless a format says otherwise."""
        return ()
