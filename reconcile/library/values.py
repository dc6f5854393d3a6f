"""Metadata and events as values: decoded from files, shown as immutable views, and encoded as JP writes them."""

from __future__ import annotations

import base64
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, cast

from reconcile.formats.jp import times
from reconcile.formats.jp.files import BASE_FILE, EVENTS_FILE, METADATA_FILE, serialised
from reconcile.formats.json import strict
from reconcile.library.errors import InvalidValueError, UnreadableError
from reconcile.model.commands import typed
from reconcile.model.snapshot import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from reconcile.model.format import Format

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""A mutable value of a JSON file."""
Metadata: TypeAlias = dict[str, Json]
"""The object of ``metadata.json``, including keys that JP doesn't know, in the order of the file."""
Event: TypeAlias = dict[str, Json]
"""An element of ``events.json`` as it is stored: JP encodes some texts in base64 (docs/library.md)."""
Events: TypeAlias = list[Event]
View: TypeAlias = "bool | int | float | str | Sequence[View] | Mapping[str, View] | None"
"""An immutable value of a JSON file."""
Contents: TypeAlias = "Mapping[str, bytes]"
"""The managed files of a conversation, by name."""


_METADATA = ("title", "last_activated_at", "pinned_at", "archived_at", "expires_at", "labels")
"""The keys that JP writes, in its order (docs/design/formats/jp.md#fields)."""
_EXPECTED: dict[str, tuple[Callable[[Json], bool], str]] = {
    "title": (lambda value: isinstance(value, str), "a text"),
    "labels": (
        lambda value: isinstance(value, dict) and all(isinstance(text, str) for text in value.values()),
        "texts",
    ),
    **dict.fromkeys(
        ("pinned_at", "archived_at", "expires_at"),
        (lambda value: isinstance(value, str) and times.is_readable(value), "a time such as 2026-01-31 12:00:00.0"),
    ),
}
"""For some of JP's keys: whether JP can read a value, and the expected kind in words. The format checks the others."""
_OVERLAYS = ("config_delta", "compaction")
_CODED = {"tool_call_request": ("arguments",), "tool_call_response": ("content",)}


class FrozenDict(dict[str, View]):
    """An immutable dictionary of a snapshot; ``json`` can write it."""

    __slots__ = ()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("a snapshot is read-only; use update_metadata or update_events of a mutable scope")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __deepcopy__(self, memo: object) -> dict[str, Json]:
        """Return a mutable copy."""
        return cast("dict[str, Json]", thawed(self))

    def __reduce__(self) -> tuple[type[dict[str, Json]], tuple[dict[str, Json]]]:
        return dict, (cast("dict[str, Json]", thawed(self)),)


def frozen(value: Json) -> View:
    """Return an immutable view: dictionaries refuse changes, and lists become tuples."""
    if isinstance(value, dict):
        return FrozenDict((key, frozen(item)) for key, item in value.items())
    if isinstance(value, list):
        return tuple(frozen(item) for item in value)
    return value


def thawed(value: View) -> Json:
    """Return a mutable copy of a snapshot, or of a part of one."""
    if isinstance(value, dict):
        return {key: thawed(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [thawed(item) for item in value]
    return cast("Json", value)


def timestamp(at_ns: int | None = None) -> str:
    """Return a time (by default now) as JP writes it: ``2026-01-31 12:00:00.5``, in UTC."""
    now = time.time_ns() if at_ns is None else at_ns
    second = datetime.fromtimestamp(now // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"{second}.{f'{now % 10**9:09d}'.rstrip('0') or '0'}"


def new_event(kind: str, /, **fields: Json) -> Event:
    """Return an event of this type with the current time, in JP's order of keys and with JP's base64.

    Example: ``new_event("chat_request", content="Hello")``. `plain` decodes it.
    """
    now: Event = {"timestamp": timestamp(), "type": kind}
    if kind in _OVERLAYS:
        return {"type": kind, **now, **fields}
    return {
        **now,
        **{key: _map_texts(value, _in_base64) if key in _coded(kind) else value for key, value in fields.items()},
    }


def plain(event: Mapping[str, View]) -> Event:
    """Return a copy of an event with decoded texts; a text that isn't base64 stays unchanged, as in JP."""
    copy = cast("Event", thawed(event))
    kind = copy.get("type")
    coded = _coded(kind) if isinstance(kind, str) and kind not in _OVERLAYS else ()
    return {key: _map_texts(value, _from_base64) if key in coded else value for key, value in copy.items()}


def _coded(kind: str) -> tuple[str, ...]:
    """Return the keys of an event whose texts are in base64 (docs/design/formats/jp.md#base64)."""
    return ("metadata", *_CODED.get(kind, ()))


def _map_texts(value: Json, change: Callable[[str], str]) -> Json:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_map_texts(item, change) for item in value]
    if isinstance(value, dict):
        return {key: _map_texts(item, change) for key, item in value.items()}
    return value


def _in_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _from_base64(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode()
    except ValueError:
        return text


def in_jp_order(metadata: Metadata, before: Metadata) -> Metadata:
    """Return metadata with new keys in JP's order, and with changed labels sorted.

    Keys of JP with an empty value are left out, because JP doesn't write them.
    """
    metadata = {key: value for key, value in metadata.items() if key not in _METADATA or value not in (None, {})}
    labels = metadata.get("labels")
    if isinstance(labels, dict) and labels != before.get("labels"):
        metadata = {**metadata, "labels": dict(sorted(labels.items()))}
    if all(key in before for key in metadata if key in _METADATA):
        return metadata
    known = {key: metadata[key] for key in _METADATA if key in metadata}
    return {**known, **metadata}


def decode(conversation: str, name: str, content: bytes) -> Json:
    """Return the value that a file holds. Raises `UnreadableError`."""
    try:
        value: Any = strict.load(content)
    except strict.InvalidContentError as error:
        raise UnreadableError(
            f"{conversation}: {name}: {error.found}", f"see what is wrong: reconcile status {typed(conversation)}"
        ) from None
    return cast("Json", value)


def encode(conversation: str, name: str, value: Metadata | Events) -> bytes:
    """Return the bytes that JP would write for a value. Raises `InvalidValueError`."""
    try:
        return serialised(cast("dict[str, Any] | list[Any]", value))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValueError(f"{conversation}: {name}: not a JSON value: {error}; nothing was changed") from None


def check_keys(conversation: str, metadata: Metadata, before: Metadata) -> None:
    """Check that JP can read the changed keys (docs/design/formats/jp.md#fields).

    Raises `InvalidValueError`.
    """
    for key, (is_readable, expected) in _EXPECTED.items():
        if key in metadata and metadata[key] != before.get(key) and not is_readable(metadata[key]):
            raise InvalidValueError(
                f"{conversation}: {METADATA_FILE}: {strict.kind(metadata[key])} as {key} (expected {expected}); "
                "nothing was changed"
            )


def check(fmt: Format, conversation: str, contents: Contents) -> None:
    """Check that JP can read these files. Raises `InvalidValueError`."""
    fault = fmt.read_metadata(contents.get(METADATA_FILE, b""))
    if not isinstance(fault, Fault):
        files = {name: contents[name] for name in (BASE_FILE, EVENTS_FILE) if name in contents}
        if not isinstance(stream := fmt.read_stream(files, events=False), Fault):
            return
        fault = stream
    raise InvalidValueError(f"{conversation}: {fault.file}: {fault.words}; nothing was changed")
