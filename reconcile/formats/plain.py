"""The design texts' tree: JP's files, and the whole directory name as the id (``ROOT_A/``, ``CHILD_B/``).

No program has rules for what is in these files, so any bytes are valid. What can be read as JP's is read so: title,
parent, events. Anything else has none of them, and is compared and carried as bytes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from reconcile.formats.jp.files import BASE_FILE, EVENTS_FILE, ManagedFiles
from reconcile.formats.json import strict
from reconcile.model.format import Summary
from reconcile.model.names import CHILDREN
from reconcile.model.snapshot import Event, Fault, Metadata, ParentKind, ParentRef, Stream

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from reconcile.model.format import Part, StreamContent

_DECISECOND = 100_000_000
_NAME = re.compile(r"[^.\x00-\x1f\x7f-\x9f/\ud800-\udfff][^\x00-\x1f\x7f-\x9f/\ud800-\udfff]*")
"""No dot in front, no control characters, and nothing that JSON could not say as a ``parent_id``:
a name that is not UTF-8 on disk reaches us with lone surrogates in it.
"""

_BYTES = (Event("bytes", ""),)
"""Stands for the events of what holds none, so that it neither continues an array of events nor is continued by one."""


class PlainFormat(ManagedFiles):
    """Ids are names; they carry no title and no time."""

    @property
    def name(self) -> str:
        """The name that ``--format`` takes."""
        return "plain"

    def id_of(self, dirname: str) -> str | None:
        """The name itself; ``conversations`` is the tree's own word."""
        return dirname if dirname != CHILDREN and _NAME.fullmatch(dirname) else None

    def parse_id(self, text: str) -> str | None:
        """Every valid name is a full spelling of an id; whether it exists is for others to say."""
        return self.id_of(text)

    def is_whole(self, text: str) -> bool:  # noqa: ARG002
        """Any name may be the beginning of another."""
        return False

    def parent_of(self, value: object) -> str | None:
        """A text that could be the name of a directory."""
        return self.id_of(value) if isinstance(value, str) else None

    def read_metadata(self, content: bytes) -> Metadata | Fault:
        """Title, parent and the legacy flag of a JSON object; of any other bytes that there are none."""
        try:
            value = strict.load_object(content)
        except strict.InvalidContentError:
            return Metadata(None, ParentRef(ParentKind.ABSENT), local=False, content=content)
        title = value.get("title")
        known = title if isinstance(title, str) else None
        return Metadata(known, self._parent_ref(value), local=value.get("local") is True, content=content)

    def read_stream(self, contents: Mapping[str, StreamContent], *, events: bool) -> Stream | Fault:
        """The events of an array of events, also without a base configuration; of any other bytes that there are none.

        A base configuration alone is a stream that lacks its other file.
        """
        found = super().read_stream(contents, events=events)
        if isinstance(found, Fault) and EVENTS_FILE in contents:
            found = super().read_stream({**contents, BASE_FILE: b"{}"}, events=events)
            if isinstance(found, Fault):
                return Stream(0, None, _BYTES if events else None)
        return found

    def summarise(self, chunks: Iterable[bytes], *, events: bool) -> Summary | Fault:
        """As `read_stream`."""
        found = super().summarise(chunks, events=events)
        return Summary(0, None, None, _BYTES if events else None) if isinstance(found, Fault) else found

    def expires_ns(self, content: bytes) -> int | None:
        """As JP's; what can't be read never expires."""
        return super().expires_ns(content) if _is_object(content) else None

    def forked_metadata(self, content: bytes, *, parent: str, title: str | None) -> bytes:
        """As JP's; of what can't be read a fork has its parent and title alone."""
        return super().forked_metadata(content if _is_object(content) else b"{}", parent=parent, title=title)

    def cut_stream(self, contents: Mapping[str, bytes], part: Part) -> dict[str, bytes]:
        """As JP's; what holds no events is kept as a whole."""
        found = super().read_stream({**contents, BASE_FILE: b"{}"}, events=False)
        return dict(contents) if isinstance(found, Fault) else super().cut_stream(contents, part)

    def order(self, conversation: str) -> tuple[int, str]:
        """By code points of the name."""
        return (0, conversation)

    def dirname(self, conversation: str, title: str | None) -> str:  # noqa: ARG002
        """The id, whatever the title is."""
        return conversation

    def new_id(self, now_ns: int, taken: Collection[str]) -> str:
        """A name from the time in deciseconds, or from the next one that nobody has."""
        number = max(0, now_ns // _DECISECOND)
        while (conversation := f"fork-{number}") in taken:
            number += 1
        return conversation

    def lock_name(self, conversation: str) -> str | None:  # noqa: ARG002
        """Nobody else writes these, so there is no lock to respect."""
        return None


def _is_object(content: bytes) -> bool:
    try:
        strict.load_object(content)
    except strict.InvalidContentError:
        return False
    return True
