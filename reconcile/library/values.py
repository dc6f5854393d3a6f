"""Metadata and events as values: read from bytes, shown as what can't be changed, and written as JP writes them."""

from __future__ import annotations

import base64
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, cast

from reconcile.formats.jp import times
from reconcile.formats.jp.files import BASE_FILE, EVENTS_FILE, METADATA_FILE, serialised
from reconcile.formats.json import strict
from reconcile.library.errors import InvalidValueError, UnreadableError
from reconcile.model.snapshot import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from reconcile.model.format import Format

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""What a JSON file can hold, in a form that can be changed."""
Metadata: TypeAlias = dict[str, Json]
"""The object of ``metadata.json``, with the keys that JP doesn't know, in their order."""
Event: TypeAlias = dict[str, Json]
"""An element of ``events.json``, as it is stored: what JP keeps in base64 (docs/library.md) is in base64."""
Events: TypeAlias = list[Event]
View: TypeAlias = "bool | int | float | str | Sequence[View] | Mapping[str, View] | None"
"""The same, to be read only."""
Contents: TypeAlias = "Mapping[str, bytes]"
"""The managed files of a conversation, by name."""


_METADATA = ("title", "last_activated_at", "pinned_at", "archived_at", "expires_at", "labels")
"""The keys that JP writes, in its order (docs/design/formats/jp.md#fields)."""
_EXPECTED: dict[str, tuple[Callable[[Json], bool], str]] = {
    "title": (lambda value: isinstance(value, str), "a text"),
    "labels": (
        lambda value: isinstance(value, dict) and all(isinstance(each, str) for each in value.values()),
        "texts",
    ),
    **dict.fromkeys(
        ("pinned_at", "archived_at", "expires_at"),
        (lambda value: isinstance(value, str) and times.is_readable(value), "a time such as 2026-01-31 12:00:00.0"),
    ),
}
"""What of JP's keys it can read, and in words; the other ones are checked with the file as a whole."""
_OVERLAYS = ("config_delta", "compaction")
_CODED = {"tool_call_request": ("arguments",), "tool_call_response": ("content",)}


class FrozenDict(dict[str, View]):
    """A dictionary that refuses to be changed; ``json`` writes it like any other. Comes from a snapshot."""

    __slots__ = ()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("a snapshot can't be changed; use update_metadata or update_events of a mutable scope")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __deepcopy__(self, memo: object) -> dict[str, Json]:
        """Return a copy that can be changed."""
        return cast("dict[str, Json]", thawed(self))

    def __reduce__(self) -> tuple[type[dict[str, Json]], tuple[dict[str, Json]]]:
        return dict, (cast("dict[str, Json]", thawed(self)),)


def frozen(value: Json) -> View:
    """Return a value that can't be changed: dictionaries refuse it, lists are tuples."""
    if isinstance(value, dict):
        return FrozenDict((key, frozen(each)) for key, each in value.items())
    if isinstance(value, list):
        return tuple(frozen(each) for each in value)
    return value


def thawed(value: View) -> Json:
    """Return a copy of a snapshot, or of a part of one, that can be changed."""
    if isinstance(value, dict):
        return {key: thawed(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [thawed(each) for each in value]
    return cast("Json", value)


def timestamp(at_ns: int | None = None) -> str:
    """Return a time (by default now) as JP writes it: ``2026-01-31 12:00:00.5``, in UTC."""
    now = time.time_ns() if at_ns is None else at_ns
    second = datetime.fromtimestamp(now // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"{second}.{f'{now % 10**9:09d}'.rstrip('0') or '0'}"


def new_event(kind: str, /, **fields: Json) -> Event:
    """Return an event of this type that happens now, as JP stores it: the order of its keys, and what is in base64.

    ``new_event("chat_request", content="Hello")``; ``plain`` is the way back.
    """
    now: Event = {"timestamp": timestamp(), "type": kind}
    if kind in _OVERLAYS:
        return {"type": kind, **now, **fields}
    return {
        **now,
        **{key: _each_text(each, _in_base64) if key in _coded(kind) else each for key, each in fields.items()},
    }


def plain(event: Mapping[str, View]) -> Event:
    """Return a copy of an event in which everything can be read; what isn't base64 is left as it stands, as JP does."""
    copy = cast("Event", thawed(event))
    kind = copy.get("type")
    coded = _coded(kind) if isinstance(kind, str) and kind not in _OVERLAYS else ()
    return {key: _each_text(each, _from_base64) if key in coded else each for key, each in copy.items()}


def _coded(kind: str) -> tuple[str, ...]:
    """Return the keys of an event below which texts are in base64 (docs/design/formats/jp.md#base64)."""
    return ("metadata", *_CODED.get(kind, ()))


def _each_text(value: Json, change: Callable[[str], str]) -> Json:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_each_text(each, change) for each in value]
    if isinstance(value, dict):
        return {key: _each_text(each, change) for key, each in value.items()}
    return value


def _in_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _from_base64(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode()
    except ValueError:
        return text


def as_jp_orders(metadata: Metadata, before: Metadata) -> Metadata:
    """Return metadata with what it has more than before in the order in which JP writes its keys, and sorts labels.

    Of JP's own keys those are left out that say nothing: it doesn't write them.
    """
    metadata = {key: each for key, each in metadata.items() if key not in _METADATA or each not in (None, {})}
    labels = metadata.get("labels")
    if isinstance(labels, dict) and labels != before.get("labels"):
        metadata = {**metadata, "labels": dict(sorted(labels.items()))}
    if all(key in before for key in metadata if key in _METADATA):
        return metadata
    known = {key: metadata[key] for key in _METADATA if key in metadata}
    return {**known, **metadata}


def decoded(conversation: str, name: str, content: bytes) -> Json:
    """Return the value of a file. Raises `UnreadableError`."""
    try:
        value: Any = strict.load(content)
    except strict.InvalidContentError as error:
        raise UnreadableError(
            f"{conversation}: {name}: found {error.found}, expected JSON", f"see `reconcile status {conversation}`"
        ) from None
    return cast("Json", value)


def encoded(conversation: str, name: str, value: Metadata | Events) -> bytes:
    """Return the bytes that JP would write. Raises `InvalidValueError`."""
    try:
        return serialised(cast("dict[str, Any] | list[Any]", value))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValueError(
            f"{conversation}: {name}: found {error}, expected what JSON can hold; nothing was changed"
        ) from None


def check_keys(conversation: str, metadata: Metadata, before: Metadata) -> None:
    """Make sure that JP could read the keys that were changed (docs/design/formats/jp.md#fields).

    Raises `InvalidValueError`.
    """
    for key, (is_readable, expected) in _EXPECTED.items():
        if key in metadata and metadata[key] != before.get(key) and not is_readable(metadata[key]):
            raise InvalidValueError(
                f"{conversation}: {METADATA_FILE}: found {strict.kind(metadata[key])} as {key}, expected {expected}; "
                "nothing was changed"
            )


def check(fmt: Format, conversation: str, contents: Contents) -> None:
    """Make sure that JP could read these files. Raises `InvalidValueError`."""
    found = fmt.read_metadata(contents.get(METADATA_FILE, b""))
    if not isinstance(found, Fault):
        stream = {name: contents[name] for name in (BASE_FILE, EVENTS_FILE) if name in contents}
        if not isinstance(whole := fmt.read_stream(stream, events=False), Fault):
            return
        found = whole
    raise InvalidValueError(
        f"{conversation}: {found.file}: found {found.found}, expected {found.expected}; nothing was changed"
    )
