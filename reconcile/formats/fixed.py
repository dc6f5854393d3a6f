"""The common part of formats whose records have fixed places: no tree, no streams, no forks, no names from titles.

The id of a record is its path below the root of either side.
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

    from reconcile.model.format import DerivedRepair, Entry, EventSelection, Places, StreamContent, Summary
    from reconcile.model.snapshot import Stream

_ROOT = ParentRef(ParentKind.ROOT)
_NO_STREAM = Fault("", "a stream", "none: this format has no streams")

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

    def unite_events(self, edited: bytes, continued: bytes, was: Callable[[bytes], bool]) -> bytes | None:  # noqa: ARG002
        """Return None: there are no streams."""
        return None

    def forked_metadata(self, content: bytes, *, parent: str, title: str | None) -> bytes:  # noqa: ARG002
        """Return the content: records are not forked."""
        return content

    def new_id(self, now_ns: int, taken: Collection[str]) -> str:  # noqa: ARG002
        """Raise `ValueError`: records are not forked."""
        raise ValueError("a record with a fixed place can't be forked")

    def lock_name(self, conversation: str) -> str | None:  # noqa: ARG002
        """Return None: there is no lock, unless a format overrides this."""
        return None

    def is_derived(self, conversation: str) -> bool:  # noqa: ARG002
        """Return False: no record is derived, unless a format overrides this."""
        return False

    def unite(self, conversation: str, store: bytes, workspace: bytes) -> bytes | Fault | None:  # noqa: ARG002
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

    def mend(
        self,
        inputs: object,  # noqa: ARG002
        written: Mapping[str, bytes | None],  # noqa: ARG002
        wanted: Collection[str] = (),  # noqa: ARG002
    ) -> tuple[DerivedRepair, ...]:
        """Return no repairs: no data is derived, unless a format overrides this."""
        return ()
