"""The plain format: the files of JP, and the whole name of a directory as the id (``ROOT_A/``, ``CHILD_B/``).

No program has rules for the content, so any bytes are valid. Content that can be read as that of JP has its title,
parent and events. Any other content has none of them, and is compared and copied as bytes.
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

    from reconcile.model.format import EventSelection, StreamContent
    from reconcile.model.transcript import Transcript

_DECISECOND = 100_000_000
_NAME = re.compile(r"[^.\x00-\x1f\x7f-\x9f/\ud800-\udfff][^\x00-\x1f\x7f-\x9f/\ud800-\udfff]*")
"""No leading dot, no control characters, and no characters that JSON can't hold as a ``parent_id``.

A name that is not UTF-8 on disk has lone surrogates here.
"""

_BYTES = (Event("bytes", ""),)
"""The events of content without events: it neither continues an array of events nor is continued by one."""


class PlainFormat(ManagedFiles):
    """The plain format. Ids are names, without a title or a time."""

    @property
    def name(self) -> str:
        """The name that ``--format`` takes."""
        return "plain"

    def id_of(self, dirname: str) -> str | None:
        """Return the name itself; ``conversations`` is reserved for the directory of the tree."""
        return dirname if dirname != CHILDREN and _NAME.fullmatch(dirname) else None

    def parse_id(self, text: str) -> str | None:
        """Return a valid name unchanged: it is the full spelling of an id, whether or not it exists.

        Before a dash, ``./`` is left out: with it, no command takes the name for an option.
        """
        return self.id_of(text.removeprefix("./") if text.startswith("./-") else text)

    def is_whole(self, text: str) -> bool:  # noqa: ARG002
        """Return False: any name may be the beginning of another."""
        return False

    def parent_of(self, value: object) -> str | None:
        """Return a text that can be the name of a directory."""
        return self.id_of(value) if isinstance(value, str) else None

    def read_metadata(self, content: bytes) -> Metadata | Fault:
        """Return the title, the parent and the legacy flag of a JSON object; other bytes have none of them."""
        try:
            value = strict.load_object(content)
        except strict.InvalidContentError:
            return Metadata(None, ParentRef(ParentKind.ABSENT), local=False, content=content)
        title = value.get("title")
        known = title if isinstance(title, str) else None
        return Metadata(known, self._parent_ref(value), local=value.get("local") is True, content=content)

    def read_stream(self, contents: Mapping[str, StreamContent], *, events: bool) -> Stream | Fault:
        """Return the events of an array of events, with or without a base configuration.

        Other bytes have no events. A base configuration alone is a stream that lacks its other file.
        """
        stream = super().read_stream(contents, events=events)
        if isinstance(stream, Fault) and EVENTS_FILE in contents:
            stream = super().read_stream({**contents, BASE_FILE: b"{}"}, events=events)
            if isinstance(stream, Fault):
                return Stream(0, None, _BYTES if events else None)
        return stream

    def summarise(self, chunks: Iterable[bytes], *, events: bool) -> Summary | Fault:
        """Summarise as `read_stream`."""
        summary = super().summarise(chunks, events=events)
        return Summary(0, None, None, _BYTES if events else None) if isinstance(summary, Fault) else summary

    def expires_ns(self, content: bytes) -> int | None:
        """Return the same as in JP; content that can't be read never expires."""
        return super().expires_ns(content) if _is_object(content) else None

    def forked_metadata(self, content: bytes, *, parent: str, title: str | None) -> bytes:
        """Return the same as in JP; a fork of unreadable content has only its parent and title."""
        return super().forked_metadata(content if _is_object(content) else b"{}", parent=parent, title=title)

    def cut_stream(self, contents: Mapping[str, bytes], part: EventSelection) -> dict[str, bytes]:
        """Return the same as in JP; content without events is kept as a whole."""
        stream = super().read_stream({**contents, BASE_FILE: b"{}"}, events=False)
        return dict(contents) if isinstance(stream, Fault) else super().cut_stream(contents, part)

    def order(self, conversation: str) -> tuple[int, str]:
        """Sort by code points of the name."""
        return (0, conversation)

    def dirname(self, conversation: str, title: str | None) -> str:  # noqa: ARG002
        """Return the id, whatever the title is."""
        return conversation

    def new_id(self, now_ns: int, taken: Collection[str]) -> str:
        """Return a name made of the time in deciseconds, or of the next free number."""
        number = max(0, now_ns // _DECISECOND)
        while (conversation := f"fork-{number}") in taken:
            number += 1
        return conversation

    def transcript(self, conversation: str, contents: Mapping[str, bytes]) -> Transcript:  # noqa: ARG002
        """Return the same as in JP; other content is shown as text."""
        from reconcile.formats.jp.transcript import transcript  # here: no run needs it

        return transcript(contents, any_text=True)

    def lock_name(self, conversation: str) -> str | None:  # noqa: ARG002
        """Return None: no other program writes these files."""
        return None


def _is_object(content: bytes) -> bool:
    try:
        strict.load_object(content)
    except strict.InvalidContentError:
        return False
    return True
