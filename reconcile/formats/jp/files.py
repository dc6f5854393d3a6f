"""The three managed files that JP and the plain format share: units, checks, edits of the parent, and cuts for a fork.

Validity is defined in docs/design/formats/jp.md#validity: strict JSON, and the additions listed there. Invalid content
is never written to either side, so everything that could break a reader is a `Fault` here, in words.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from enum import Enum, auto
from fnmatch import fnmatchcase, translate
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from reconcile.formats.jp import times
from reconcile.formats.json import strict
from reconcile.formats.json.strict import fragments
from reconcile.model.format import MergedMetadata, Summary
from reconcile.model.names import CHILDREN
from reconcile.model.snapshot import EXTRA, METADATA, STREAM, Event, Fault, Metadata, ParentKind, ParentRef, Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from hashlib import blake2b

    from reconcile.model.format import EventSelection, StreamContent

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
"""Swap and backup files of editors; files that begin with a dot are ignored anyway."""

Element = dict[str, Any]

_PARENT = "parent_id"
_ACTIVATED = "last_activated_at"
_ENDED_WITH_THE_SOURCE = ("pinned_at", "archived_at", "expires_at")
"""Fields of a conversation that a fork does not inherit."""
_LEADING_BASE = "config_delta"
_EVENTS_EXPECTED = "an array of events, each with timestamp and type"


_UNLIKE_RUST = r"(?m)(?<= )-?(?:[0-9.]+e[-+][0-9]+|[0-9]{19,})(?=,?$)"  # not compiled here: such numbers are rare
"""A number that Rust writes differently; in indented JSON it ends a line and is not in quotes."""
_LEAST_WITHOUT = -5

_KNOWN_BASES, _KNOWN_SIZE = 64, 64 << 10
"""The number and the greatest size in bytes of recent base configurations that are not checked again."""


class _Event(msgspec.Struct):
    """The fields of an element of events.json that every reader agrees on; other keys are skipped."""

    timestamp: Any
    type: Any


_EVENTS = msgspec.json.Decoder(list[_Event])
_ELEMENTS = msgspec.json.Decoder(list[msgspec.Raw])
_OBJECT = msgspec.json.Decoder(dict[str, Any])
_SORTED = msgspec.json.Encoder(order="sorted")


class ManagedFiles(ABC):
    """The common part of JP and the plain format.

    ``ignore``: globs of files that are no extras, matched against the name below the directory of the conversation and
    against its last component.
    """

    def __init__(self, ignore: tuple[str, ...] = ()) -> None:
        self.ignore = ignore
        # One pattern, because every file of a scan is matched.
        self._ignored = re.compile("|".join(map(translate, (*EDITOR_FILES, "*.tmp", *ignore))))

    written_keys: frozenset[str] | None = None
    """The keys of metadata that the program writes: it drops all others at its next write. None: it drops none."""

    @abstractmethod
    def parent_of(self, value: object) -> str | None:
        """Return the id that a ``parent_id`` states, None if its spelling is not accepted."""

    @property
    def places(self) -> None:
        """None: directories are nested."""
        return

    @property
    def required(self) -> tuple[str, ...]:
        """Both units."""
        return (METADATA, STREAM)

    @property
    def stream_files(self) -> tuple[str, ...]:
        """The files in the order in which JP writes them: an interruption leaves a readable mix.

        See docs/design/formats/jp.md#legacy-stream.
        """
        return (BASE_FILE, EVENTS_FILE)

    @property
    def metadata_file(self) -> str:
        """The file of the metadata unit."""
        return METADATA_FILE

    def unit_of(self, name: str) -> str | None:
        """Return the unit of a file (docs/concepts.md#conversations). The globs do not apply to managed files."""
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
        """Read an object with a readable ``last_activated_at``; keys of older versions of JP are accepted.

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
        """Read the stream of the given files. A fault in a file takes precedence over a missing file."""
        base = contents.get(BASE_FILE)
        if isinstance(base, bytes):
            # Conversations with the same initial configuration have the same bytes.
            fault = _known_base_fault(base) if len(base) <= _KNOWN_SIZE else _base_fault(base)
            if fault is not None:
                return fault
        content = contents.get(EVENTS_FILE)
        if content is None:
            return Fault(EVENTS_FILE, "no such file", "an array of events", incomplete=True)
        summary = _summary(content, events=events) if isinstance(content, bytes) else content
        if isinstance(summary, Fault):
            return summary
        if base is None and (fault := _lacks_base(summary)) is not None:
            return fault
        stream = Stream(count=summary.count, last=_readable_time(summary.last))
        if summary.events is None:
            return stream
        if not isinstance(base, bytes):
            return replace(stream, events=summary.events[1:], base=summary.events[0].content)
        return replace(stream, events=summary.events, base=_base_content(base))

    def summarise(self, chunks: Iterable[bytes], *, events: bool) -> Summary | Fault:
        """Summarise as `Format.summarise`; the result is the same as for all bytes at once."""
        whole = Summary(0, None, None, () if events else None)
        elements: list[Event] = []
        try:
            for part, newlines in fragments(chunks):
                summary = _summarised(_load_fragment(part, newlines, whole.count), part if events else None)
                elements += summary.events or ()
                whole = Summary(
                    count=whole.count + summary.count,
                    first=whole.first if whole.count else summary.first,
                    last=summary.last if summary.count else whole.last,
                    events=None,
                )
        except strict.InvalidContentError as error:
            return Fault(EVENTS_FILE, error.found, _EVENTS_EXPECTED)
        return replace(whole, events=tuple(elements) if events else None)

    def with_parent(self, content: bytes, parent: str | None) -> bytes | None:
        """Edit the parent as `Format.with_parent`; content that states the parent in any spelling is unchanged."""
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
        """Return the expiry in ns, from both forms of timestamps; any other value never expires.

        See docs/design/formats/jp.md#timestamps and docs/design/formats/jp.md#edge-case-52.
        """
        value = strict.load_object(content).get("expires_at")
        return times.instant_ns(value) if isinstance(value, str) else None

    def cut_stream(self, contents: Mapping[str, bytes], part: EventSelection) -> dict[str, bytes]:
        """Cut as `Format.cut_stream`; the base configuration is kept, also as the first event.

        See docs/design/formats/jp.md#legacy-stream.
        """
        if part.whole:
            return dict(contents)
        elements = strict.load(contents[EVENTS_FILE])
        assert isinstance(elements, list)  # noqa: S101 - the stream is valid
        lead = 0 if BASE_FILE in contents else 1
        kept = elements[:lead] + cut(elements[lead:], part)
        return {**contents, EVENTS_FILE: serialised(kept, errors="replace")}

    def merge_events(self, edited: bytes, continued: bytes, was: Callable[[bytes], bool]) -> bytes | None:
        """Merge as `Format.merge_events`.

        Programs write a file of events as a whole, each time in the same form. So the former content of the other file
        is its beginning up to some event, and its end. No copy of it is needed.
        """
        edited_ends, continued_ends = _ends(edited), _ends(continued)
        (last, end), closing = (
            edited_ends[-1] if edited_ends else (None, 0),
            continued[continued_ends[-1][1] :] if continued_ends else b"",
        )
        for event, at in continued_ends[:-1]:
            if event == last and was(continued[:at] + closing):
                return edited[:end] + continued[at:]
        return None

    def both_continue(self, one: bytes, other: bytes, was: Callable[[bytes], bool]) -> bool:
        """Tell as `Format.both_continue`; the former content had the form of either file, or the one that JP writes."""
        ends, other_ends = _ends(one), _ends(other)
        events, other_events = (_sequence(_EVENTS.decode(content), content) for content in (one, other))
        common = 0
        while common < min(len(events), len(other_events)) and events[common] == other_events[common]:
            common += 1
        if not common:
            return False
        if any(was(_beginning(*each, common)) for each in ((one, ends), (other, other_ends))):
            return True
        elements = strict.load(one)
        assert isinstance(elements, list)  # noqa: S101 - the stream is valid
        return was(serialised(elements[:common], errors="replace"))

    def merge_metadata(self, base: bytes, winner: bytes, other: bytes) -> MergedMetadata | None:
        """Merge as `Format.merge_metadata`; the later time of activation stays.

        An absent parent states nothing (docs/design/placement.md#rule-2). A key that the program drops was not removed
        by a person, so that an edit of it stays.
        """
        try:
            before, kept, there = (strict.load_object(content) for content in (base, winner, other))
        except strict.InvalidContentError:
            return None
        taken: dict[str, Any] = {}
        conflicts = []
        for key in dict.fromkeys((*kept, *there, *before)):
            who = self._edited_by(key, before, kept, there)
            if who is _Editor.OTHER:
                taken[key] = there.get(key, _ABSENT)
            elif who is _Editor.BOTH:
                conflicts.append(key)
        if not taken:
            return MergedMetadata(winner, tuple(conflicts))
        if serialised(kept) != winner or serialised(there) != other:
            return None
        return MergedMetadata(serialised(_with_values(kept, there, taken)), tuple(conflicts))

    def _edited_by(self, key: str, before: Element, kept: Element, there: Element) -> _Editor:
        """Tell whose value of a key stays, or that both have edited it."""
        was, now, beside = (self._comparable(key, value) for value in (before, kept, there))
        if key == _PARENT and (key not in kept or key not in there):
            return _Editor.OTHER if key in there else _Editor.WINNER
        if key == _ACTIVATED and now != beside and (later := _later(now, beside)) is not None:
            return later
        if beside in (was, now):
            return _Editor.WINNER
        if now == was:
            return _Editor.OTHER
        if self.written_keys is not None and key not in self.written_keys and None in (now, beside):
            return _Editor.OTHER if now is None else _Editor.WINNER
        return _Editor.BOTH

    def _comparable(self, key: str, metadata: Element) -> object:
        """Return a value in a form that is equal for equal values, however they are written; None: there is none."""
        if key not in metadata:
            return None
        if key == _PARENT and (parent := self._parent_ref(metadata)).kind is not ParentKind.UNREADABLE:
            return parent
        value = metadata[key]
        if key == _ACTIVATED and isinstance(value, str) and (instant := times.instant_ns(value)) is not None:
            return instant
        return json.dumps(value, sort_keys=True)

    def forked_metadata(self, content: bytes, *, parent: str, title: str | None) -> bytes:
        """Return new metadata as `Format.forked_metadata`, serialised as by JP, whatever the form of the source.

        Content that `read_metadata` accepts never fails here. Other content raises `ValueError`.
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


class _Editor(Enum):
    """Whose value of a key stays in a merge."""

    WINNER = auto()
    OTHER = auto()
    BOTH = auto()
    """Both have edited it: a conflict, and the winner's value stays."""


_ABSENT: Final = object()


def _later(winner: object, other: object) -> _Editor | None:
    """Tell which of two times is later; None if one of them is no time."""
    if not (isinstance(winner, int) and isinstance(other, int)):
        return None
    return _Editor.OTHER if other > winner else _Editor.WINNER


def _with_values(kept: Element, there: Element, taken: Element) -> Element:
    """Return an object with some values of another one.

    A new key comes after the one that it follows there, and a new parent at the end, as in `with_parent`.
    """
    order = list(kept)
    last = -1
    for key in there:
        if key in kept:
            last = order.index(key)
        elif key in taken and key != _PARENT:
            last += 1
            order.insert(last, key)
    order += [key for key in taken if key not in order]
    values = kept | taken
    return {key: values[key] for key in order if values[key] is not _ABSENT}


def _activation_fault(metadata: dict[str, Any]) -> Fault | None:
    key, expected = _ACTIVATED, "a time such as 2026-01-31 12:00:00.0"
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
    """Return the summary of elements; ``content`` are the bytes of the elements if their values are needed."""
    return Summary(
        count=len(elements),
        first=elements[0].type if elements else None,
        last=elements[-1].timestamp if elements else None,
        events=_sequence(elements, content) if content is not None else None,
    )


def _load_events(content: bytes, before: int = 0) -> list[_Event]:
    """Return the elements of an events.json, or raise `InvalidContentError` with the reason in words.

    ``before`` is the number of elements before these.
    """
    try:
        elements = _EVENTS.decode(content)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        # The slow path: broken JSON explains more than the first element of a wrong shape.
        raise strict.InvalidContentError(_wrong_shape(strict.load(content), before)) from None
    strict.check_text(content)
    strict.check_nesting(content, objects=len(elements))
    return elements


def _load_fragment(content: bytes, newlines: int, before: int) -> list[_Event]:
    try:
        return _load_events(content, before)
    except strict.InvalidContentError:
        # Again with the lines before it, so that the message has the right line.
        return _load_events(b"\n" * newlines + content, before)


def _wrong_shape(value: object, before: int) -> str:
    if not isinstance(value, list):
        return strict.kind(value)
    for number, element in enumerate(value, start=before + 1):
        if not isinstance(element, dict):
            return f"{strict.kind(element)} as event {number}"
        for key in ("timestamp", "type"):
            if key not in element:
                return f"no {key} in event {number}"
    return "a number that is out of range"


def _lacks_base(events: Summary) -> Fault | None:
    """Return a fault unless the first element carries the base configuration.

    See docs/design/formats/jp.md#legacy-stream.
    """
    if events.count and events.first == _LEADING_BASE:
        return None
    first = f"{strict.kind(events.first)} as type of the first event" if events.count else "an empty array"
    expected = f"{_LEADING_BASE}, as there is no {BASE_FILE}"
    return Fault(EVENTS_FILE, first, expected, incomplete=True)


def _readable_time(time: object) -> str | None:
    """Return the time of the last element as JP shows it: as written, if it can be read.

    See docs/design/formats/jp.md#count-and-last-event.
    """
    return time if isinstance(time, str) and times.is_readable(time) else None


def _sequence(elements: Iterable[_Event], content: bytes) -> tuple[Event, ...]:
    """Return the events as values that do not depend on the form of their times and objects."""
    pairs = zip(elements, _ELEMENTS.decode(content), strict=True)
    return tuple([Event(_id(known), _event_content(raw)) for known, raw in pairs])


def _id(event: _Event) -> str:
    return f"{_time(event.timestamp)} {_word(event.type)}"


def _ends(content: bytes) -> list[tuple[str, int]]:
    """Return each element of valid events, with the position of its end."""
    ends = []
    at = 0
    for event, raw in zip(_EVENTS.decode(content), _ELEMENTS.decode(content), strict=True):
        at = content.index(b"{", at) + len(bytes(raw))
        ends.append((_id(event), at))
    return ends


def _beginning(content: bytes, ends: Sequence[tuple[str, int]], count: int) -> bytes:
    """Return a file of events without those after the first ``count``."""
    return content[: ends[count - 1][1]] + content[ends[-1][1] :]


def _event_content(raw: bytes | msgspec.Raw) -> str:
    try:
        value = _OBJECT.decode(raw)
        del value["timestamp"]
        return _named(_SORTED.encode(value))
    except msgspec.MsgspecError:
        # Unchecked fields can have numbers out of range and lone surrogates.
        return _named(bytes(raw))


def _base_content(content: bytes) -> str:
    """Return the name of a base configuration, as the content of its event in the legacy form."""
    return _named(_SORTED.encode({"type": _LEADING_BASE, "delta": _OBJECT.decode(content)}))


def _named(content: bytes) -> str:
    return _hash()(content, digest_size=16).hexdigest()


@cache
def _hash() -> type[blake2b]:
    from hashlib import blake2b  # here: most runs look at no event

    return blake2b


def _time(value: object) -> str:
    return times.comparable(value) if isinstance(value, str) else repr(value)


def _word(value: object) -> str:
    return value if isinstance(value, str) else repr(value)


def serialised(value: dict[str, Any] | list[Any], errors: str = "strict") -> bytes:
    """Return the bytes that JP writes for an object (docs/design/formats/jp.md#bytes).

    Raises `ValueError` for a number that JP can't read.
    """
    if all(map(_has_same_form, _numbers(value))):
        # A quarter of the time: json indents in Python, and msgspec writes strings in another form.
        text = json.dumps(value, ensure_ascii=False)
        return msgspec.json.format(text.encode(errors=errors), indent=2) + b"\n"
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return (re.sub(_UNLIKE_RUST, _as_rust_writes, text) + "\n").encode(errors=errors)


def _numbers(value: Any) -> Iterator[int | float]:
    left = [value]
    while left:
        element = left.pop()
        if isinstance(element, dict):
            left.extend(element.values())
        elif isinstance(element, list | tuple):
            left.extend(element)
        elif isinstance(element, int | float):
            yield element


def _has_same_form(number: float) -> bool:
    """Tell whether Python and Rust write a number in the same way."""
    if isinstance(number, int):
        return strict.fits(number)
    return "e" not in float.__repr__(number)


def _as_rust_writes(number: re.Match[str]) -> str:
    """Return a number as the JSON library of JP writes it: without an exponent up to five decimal places.

    An exponent has a sign and no leading zeros.
    """
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


_PAIRS: Final = {"tool_call_request": "tool_call_response", "inquiry_request": "inquiry_response"}
_CONFIG: Final = "config_delta"
_COMPACTION: Final = "compaction"


def cut(elements: Sequence[Element], part: EventSelection) -> list[Element]:
    """Return the elements of a part of a stream, without a leading base configuration, so that JP can load the result.

    See docs/design/formats/jp.md#stream.
    ``--last`` counts turns from the end; the times are inclusive. Configuration changes before the part are kept,
    because they are in force in it. A request without its response is left out, as is a response without its request,
    and a compaction whose turns are not all at the positions that it counts.
    """
    first = _start_of_last(elements, part.last) if part.last is not None else 0
    kept = [
        element
        for number, element in enumerate(elements)
        if _is_before_end(element, part) and (_kind(element) == _CONFIG or _is_in(number, element, first, part))
    ]
    whole_from_start = len(kept) == len(elements) or kept == list(elements[: len(kept)])
    turns = len(turn_starts(kept))
    kept = [
        element_
        for element_ in kept
        if _kind(element_) != _COMPACTION or (whole_from_start and _counts(element_, turns))
    ]
    return _paired(kept)


def turn_starts(elements: Iterable[Element]) -> list[int]:
    """Return the positions where turns begin: each ``turn_start``, and each user request without one before it."""
    starts = []
    announced = False
    for number, element in enumerate(elements):
        if _kind(element) == "turn_start":
            starts.append(number)
            announced = True
        elif _kind(element) == "chat_request":
            if not announced:
                starts.append(number)
            announced = False
    return starts


def _kind(element: Element) -> str:
    return str(element["type"])


def _start_of_last(elements: Sequence[Element], last: int) -> int:
    starts = turn_starts(elements)
    if last == 0:
        return len(elements)
    return starts[-last] if last < len(starts) else 0


def _is_in(number: int, element: Element, first: int, part: EventSelection) -> bool:
    at_ns = _instant_of(element)
    return number >= first and (part.from_ns is None or at_ns is None or at_ns >= part.from_ns)


def _is_before_end(element: Element, part: EventSelection) -> bool:
    at_ns = _instant_of(element)
    return part.until_ns is None or at_ns is None or at_ns <= part.until_ns


def _instant_of(element: Element) -> int | None:
    value = element["timestamp"]
    return times.instant_ns(value) if isinstance(value, str) else None


def _counts(compaction: Element, turns: int) -> bool:
    to = compaction.get("to_turn")
    return isinstance(to, int) and to < turns


def _paired(elements: list[Element]) -> list[Element]:
    """Leave out requests without their response and responses without their request; ids may repeat."""
    waiting: dict[tuple[str, object], list[int]] = {}
    paired: set[int] = set()
    for number, element in enumerate(elements):
        kind = _kind(element)
        key = str(element.get("id"))
        if kind in _PAIRS:
            waiting.setdefault((_PAIRS[kind], key), []).append(number)
        elif waiting.get((kind, key)):
            paired |= {number, waiting[kind, key].pop(0)}
    kinds = {*_PAIRS, *_PAIRS.values()}
    return [element for number, element in enumerate(elements) if _kind(element) not in kinds or number in paired]
