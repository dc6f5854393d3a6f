"""The three managed files that jp and plain share: units, checks, and edits of the parent.

Validity is that of docs/design/formats/jp.md#validity: level 1, strictly, plus what its list adds. Invalid
content is never written to either side, so everything a reader could stumble over is a `Fault` here, in words.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from fnmatch import fnmatchcase, translate
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from reconcile.formats.jp import times
from reconcile.formats.jp.fork import cut
from reconcile.formats.json import strict
from reconcile.formats.json.strict import fragments
from reconcile.model.format import Summary
from reconcile.model.names import CHILDREN
from reconcile.model.snapshot import EXTRA, METADATA, STREAM, Event, Fault, Metadata, ParentKind, ParentRef, Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from reconcile.model.format import Part, StreamContent

METADATA_FILE = "metadata.json"
BASE_FILE = "base_config.json"
EVENTS_FILE = "events.json"

EDITOR_FILES = (
    "*~",  # vim, emacs, nano: backups
    "*.sw[opx]",  # vim: swap files without a leading dot
    "4913",  # vim: tries whether it may write in a directory
    "#*#",  # emacs: auto-save
    "*.vsctmp",  # VS Code: before the rename
    "*___jb_tmp___",  # JetBrains: before the rename
    "*___jb_old___",
)
"""Swap and backup files of editors; those that begin with a dot are ignored anyway."""

_PARENT = "parent_id"
_ENDED_WITH_THE_SOURCE = ("pinned_at", "archived_at", "expires_at")
"""States of one conversation that a fork of it does not share."""
_LEADING_BASE = "config_delta"
_EVENTS_EXPECTED = "an array of events, each with timestamp and type"


_UNLIKE_RUST = re.compile(r"(?<= )-?(?:[0-9.]+e[-+][0-9]+|[0-9]{19,})(?=,?$)", re.MULTILINE)
"""In indented JSON: what ends a line and isn't in quotes is no part of a text."""
_LEAST_WITHOUT = -5

_KNOWN_BASES, _KNOWN_SIZE = 64, 64 << 10
"""So many base configurations of so many bytes, the last ones, are not checked again."""


class _Event(msgspec.Struct):
    """An element of events.json as far as every reader agrees on it; other keys are skipped."""

    timestamp: Any
    type: Any


_EVENTS = msgspec.json.Decoder(list[_Event])
_ELEMENTS = msgspec.json.Decoder(list[msgspec.Raw])
_OBJECT = msgspec.json.Decoder(dict[str, Any])
_SORTED = msgspec.json.Encoder(order="sorted")


class ManagedFiles(ABC):
    """What jp and plain have in common.

    ``ignore``: globs of files that are no extras, matched against the name below the conversation's
    directory and against its last component.
    """

    def __init__(self, ignore: tuple[str, ...] = ()) -> None:
        self.ignore = ignore
        # One pattern: it is asked for every file of a scan.
        self._ignored = re.compile("|".join(map(translate, (*EDITOR_FILES, "*.tmp", *ignore))))

    @abstractmethod
    def parent_of(self, value: object) -> str | None:
        """The id that a ``parent_id`` names, None where it is no accepted spelling of one."""

    @property
    def places(self) -> None:
        """Directories lie in each other."""
        return

    @property
    def required(self) -> tuple[str, ...]:
        """Both units."""
        return (METADATA, STREAM)

    @property
    def stream_files(self) -> tuple[str, ...]:
        """JP's own order of writing: an interruption leaves a mix that can be read.

        See docs/design/formats/jp.md#legacy-stream.
        """
        return (BASE_FILE, EVENTS_FILE)

    @property
    def metadata_file(self) -> str:
        """The file of the metadata unit."""
        return METADATA_FILE

    def unit_of(self, name: str) -> str | None:
        """The unit of a file (docs/concepts.md#conversations); managed files are managed whatever the globs say."""
        if name == METADATA_FILE:
            return METADATA
        if name in (BASE_FILE, EVENTS_FILE):
            return STREAM
        parts = name.split("/")
        if parts[0] == CHILDREN or any(part.startswith(".") for part in parts):
            return None
        if self._ignored.match(parts[-1]) or any(fnmatchcase(name, glob) for glob in self.ignore):
            return None
        return EXTRA + name

    def read_metadata(self, content: bytes) -> Metadata | Fault:
        """An object with a readable ``last_activated_at``; keys of older JPs are fine.

        See docs/design/formats/jp.md#older-fields.
        """
        try:
            value = strict.load_object(content)
        except strict.InvalidContentError as error:
            return Fault(METADATA_FILE, error.found, "a JSON object")
        if (fault := _activation_fault(value)) is not None:
            return fault
        title = value.get("title")
        return Metadata(
            title=title if isinstance(title, str) else None,
            parent=self._parent_ref(value),
            local=value.get("local") is True,
            content=content,
        )

    def read_stream(self, contents: Mapping[str, StreamContent], *, events: bool) -> Stream | Fault:
        """The stream of the files that are there; a fault in what is there goes before what is missing."""
        base = contents.get(BASE_FILE)
        if isinstance(base, bytes):
            # Conversations that were begun with one configuration have the same bytes.
            fault = _known_base_fault(base) if len(base) <= _KNOWN_SIZE else _base_fault(base)
            if fault is not None:
                return fault
        content = contents.get(EVENTS_FILE)
        if content is None:
            return Fault(EVENTS_FILE, "no such file", "an array of events", incomplete=True)
        found = _summary(content, events=events) if isinstance(content, bytes) else content
        if isinstance(found, Fault):
            return found
        if base is None and (fault := _lacks_base(found)) is not None:
            return fault
        stream = Stream(count=found.count, last=_readable_time(found.last))
        if found.events is None:
            return stream
        if not isinstance(base, bytes):
            return replace(stream, events=found.events[1:], base=found.events[0].content)
        return replace(stream, events=found.events, base=_base_content(base))

    def summarise(self, chunks: Iterable[bytes], *, events: bool) -> Summary | Fault:
        """As `Format.summarise`, the same of any content as of its bytes at once."""
        whole = Summary(0, None, None, () if events else None)
        elements: list[Event] = []
        try:
            for part, newlines in fragments(chunks):
                found = _summarised(_load_fragment(part, newlines, whole.count), part if events else None)
                elements += found.events or ()
                whole = Summary(
                    count=whole.count + found.count,
                    first=whole.first if whole.count else found.first,
                    last=found.last if found.count else whole.last,
                    events=None,
                )
        except strict.InvalidContentError as error:
            return Fault(EVENTS_FILE, error.found, _EVENTS_EXPECTED)
        return replace(whole, events=tuple(elements) if events else None)

    def with_parent(self, content: bytes, parent: str | None) -> bytes | None:
        """As `Format.with_parent`; content that states the parent in any spelling stays as it is."""
        try:
            value = strict.load_object(content)
        except strict.InvalidContentError:
            return None
        wanted = ParentRef(ParentKind.ABSENT if parent is None else ParentKind.ID, parent)
        if self._parent_ref(value) == wanted:
            return content
        if serialised(value) != content:
            return None
        if parent is None:
            del value[_PARENT]
        else:
            value[_PARENT] = parent
        return serialised(value)

    def expires_ns(self, content: bytes) -> int | None:
        """Both forms of timestamps (docs/design/formats/jp.md#timestamps); anything else never expires.

        See docs/design/formats/jp.md#edge-case-52.
        """
        value = strict.load_object(content).get("expires_at")
        return times.instant_ns(value) if isinstance(value, str) else None

    def cut_stream(self, contents: Mapping[str, bytes], part: Part) -> dict[str, bytes]:
        """As `Format.cut_stream`; the base configuration stays, also as the first event.

        See docs/design/formats/jp.md#legacy-stream.
        """
        if part.whole:
            return dict(contents)
        elements = strict.load(contents[EVENTS_FILE])
        assert isinstance(elements, list)  # noqa: S101 - the stream is valid
        lead = 0 if BASE_FILE in contents else 1
        kept = elements[:lead] + cut(elements[lead:], part)
        return {**contents, EVENTS_FILE: serialised(kept, errors="replace")}

    def unite_events(self, edited: bytes, continued: bytes, was: Callable[[bytes], bool]) -> bytes | None:
        """As `Format.unite_events`.

        Programs write a file of events as a whole, each time alike. So what the other file was before something was
        added is its beginning, up to some event, and its end: nobody has to have kept it.
        """
        ours, theirs = _ends(edited), _ends(continued)
        (last, end), closing = ours[-1] if ours else (None, 0), continued[theirs[-1][1] :] if theirs else b""
        for event, at in theirs[:-1]:
            if event == last and was(continued[:at] + closing):
                return edited[:end] + continued[at:]
        return None

    def forked_metadata(self, content: bytes, *, parent: str, title: str | None) -> bytes:
        """As `Format.forked_metadata`: a new file, serialised as JP would, whatever the source's form.

        Content that `read_metadata` accepts never fails here; anything else is a `ValueError`.
        """
        source = strict.load_object(content)
        kept = {key: value for key, value in source.items() if key not in _ENDED_WITH_THE_SOURCE}
        if title is None:
            return serialised(kept | {_PARENT: parent}, errors="replace")
        # JP writes the title first (docs/design/formats/jp.md#fields).
        ordered = kept if "title" in kept else {"title": title} | kept
        return serialised(ordered | {"title": title, _PARENT: parent}, errors="replace")

    def _parent_ref(self, metadata: dict[str, Any]) -> ParentRef:
        if _PARENT not in metadata:
            return ParentRef(ParentKind.ABSENT)
        value = metadata[_PARENT]
        if value is None:
            return ParentRef(ParentKind.ROOT)
        parent = self.parent_of(value)
        return ParentRef(ParentKind.UNREADABLE if parent is None else ParentKind.ID, parent)


def _activation_fault(metadata: dict[str, Any]) -> Fault | None:
    key, expected = "last_activated_at", "a time such as 2026-01-31 12:00:00.0 as last_activated_at"
    if key not in metadata:
        return Fault(METADATA_FILE, f"no {key}", expected)
    value = metadata[key]
    if isinstance(value, str) and times.is_readable(value):
        return None
    return Fault(METADATA_FILE, f"{strict.kind(value)} as {key}", expected)


def _base_fault(content: bytes) -> Fault | None:
    try:
        strict.load_object(content)
    except strict.InvalidContentError as error:
        return Fault(BASE_FILE, error.found, "a JSON object")
    return None


_known_base_fault = lru_cache(maxsize=_KNOWN_BASES)(_base_fault)


def _summary(content: bytes, *, events: bool) -> Summary | Fault:
    try:
        return _summarised(_load_events(content), content if events else None)
    except strict.InvalidContentError as error:
        return Fault(EVENTS_FILE, error.found, _EVENTS_EXPECTED)


def _summarised(elements: list[_Event], content: bytes | None) -> Summary:
    """Return what is needed of elements; ``content`` is what they were read from, where their values are asked for."""
    return Summary(
        count=len(elements),
        first=elements[0].type if elements else None,
        last=elements[-1].timestamp if elements else None,
        events=_sequence(elements, content) if content is not None else None,
    )


def _load_events(content: bytes, before: int = 0) -> list[_Event]:
    """The elements of an events.json, or `InvalidContentError` with the words for what is wrong with it.

    ``before`` counts the elements that come before these.
    """
    try:
        elements = _EVENTS.decode(content)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        # slow from here on: broken JSON is the better explanation, then the first element of the wrong shape
        raise strict.InvalidContentError(_wrong_shape(strict.load(content), before)) from None
    strict.check_text(content)
    strict.check_nesting(content, objects=len(elements))
    return elements


def _load_fragment(content: bytes, newlines: int, before: int) -> list[_Event]:
    try:
        return _load_events(content, before)
    except strict.InvalidContentError:
        # Once more with the lines that come before, which the words speak of.
        return _load_events(b"\n" * newlines + content, before)


def _wrong_shape(value: object, before: int) -> str:
    if not isinstance(value, list):
        return strict.kind(value)
    for number, element in enumerate(value, start=before + 1):
        if not isinstance(element, dict):
            return f"{strict.kind(element)} as element {number}"
        for key in ("timestamp", "type"):
            if key not in element:
                return f"no {key} in element {number}"
    return "a number that is out of range"


def _lacks_base(events: Summary) -> Fault | None:
    """Without base_config.json, the first element must carry it (docs/design/formats/jp.md#legacy-stream)."""
    if events.count and events.first == _LEADING_BASE:
        return None
    first = f"a first element whose type is {strict.kind(events.first)}" if events.count else "an empty array"
    expected = f"{BASE_FILE} beside it, or a leading {_LEADING_BASE}"
    return Fault(EVENTS_FILE, first, expected, incomplete=True)


def _readable_time(time: object) -> str | None:
    """The last element's time as JP shows it (docs/design/formats/jp.md#count-and-last-event):
    as written, if it can be read.
    """
    return time if isinstance(time, str) and times.is_readable(time) else None


def _sequence(elements: Iterable[_Event], content: bytes) -> tuple[Event, ...]:
    """The same events give the same values, in whichever form their times are written and their objects formatted."""
    found = zip(elements, _ELEMENTS.decode(content), strict=True)
    return tuple(Event(_id(known), _event_content(raw)) for known, raw in found)


def _id(event: _Event) -> str:
    return f"{_time(event.timestamp)} {_word(event.type)}"


def _ends(content: bytes) -> list[tuple[str, int]]:
    """Return each element of valid events, with where it ends."""
    found = []
    at = 0
    for event, raw in zip(_EVENTS.decode(content), _ELEMENTS.decode(content), strict=True):
        at = content.index(b"{", at) + len(bytes(raw))
        found.append((_id(event), at))
    return found


def _event_content(raw: bytes | msgspec.Raw) -> str:
    try:
        value = _OBJECT.decode(raw)
        del value["timestamp"]
        return _named(_SORTED.encode(value))
    except msgspec.MsgspecError:
        # Numbers out of range, and lone surrogates, can be in fields that no check looks at.
        return _named(bytes(raw))


def _base_content(content: bytes) -> str:
    """Name a base configuration as the content of the event that it was in the legacy form."""
    return _named(_SORTED.encode({"type": _LEADING_BASE, "delta": _OBJECT.decode(content)}))


def _named(content: bytes) -> str:
    from hashlib import blake2b  # here: most runs compare no events

    return blake2b(content, digest_size=16).hexdigest()


def _time(value: object) -> str:
    return times.comparable(value) if isinstance(value, str) else repr(value)


def _word(value: object) -> str:
    return value if isinstance(value, str) else repr(value)


def serialised(value: dict[str, Any] | list[Any], errors: str = "strict") -> bytes:
    """The bytes that JP writes for an object (docs/design/formats/jp.md#bytes).

    A number that it can't read is a `ValueError`.
    """
    text = json.dumps(value, indent=2, ensure_ascii=False)
    if not all(map(_is_alike, _numbers(value))):
        text = _UNLIKE_RUST.sub(_as_rust_writes, text)
    return (text + "\n").encode(errors=errors)


def _numbers(value: Any) -> Iterator[int | float]:
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, dict):
            left.extend(each.values())
        elif isinstance(each, list | tuple):
            left.extend(each)
        elif isinstance(each, int | float):
            yield each


def _is_alike(number: float) -> bool:
    """Tell whether Python and Rust write a number alike."""
    if isinstance(number, int):
        return strict.fits(number)
    return "e" not in float.__repr__(number)


def _as_rust_writes(number: re.Match[str]) -> str:
    """A number as the library that JP has pinned writes it: five places need no exponent, and that has no zeros."""
    text = number[0]
    if "e" not in text:
        if strict.fits(int(text)):
            return text
        text = float.__repr__(strict.as_float(text))
    digits, _, exponent = text.partition("e")
    if int(exponent) != _LEAST_WITHOUT:
        return f"{digits}e{int(exponent):+}"
    sign = "-" if digits.startswith("-") else ""
    return f"{sign}0.0000{digits.lstrip('-').replace('.', '')}"
