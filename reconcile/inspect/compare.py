"""What differs between the two sides of one conversation: metadata by key, streams by event. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from reconcile.model.snapshot import EXTRA, METADATA, STREAM, Fault

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconcile.model.snapshot import Content
    from reconcile.planning.rules.views import View

T = TypeVar("T", list[Any], dict[str, Any])

TEXT = 80
"""Characters of an event's text that are shown."""


class EventLine(Struct, frozen=True):
    """One event, as little as tells it from others."""

    position: int
    time: str
    type: str
    text: str


class Comparison(Struct, frozen=True):
    """The differences. ``metadata`` holds (key, store, workspace), None for an absent key.

    ``common`` is the number of events with which both streams begin. ``notes`` say what can't be compared.
    """

    metadata: tuple[tuple[str, Any, Any], ...]
    common: int
    store_only: tuple[EventLine, ...]
    workspace_only: tuple[EventLine, ...]
    base_config_differs: bool
    extras: tuple[tuple[str, str], ...]
    notes: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Both sides hold the same."""
        found = (self.metadata, self.store_only, self.workspace_only, self.extras, self.notes)
        return not any(found) and not self.base_config_differs


def compare(
    view: View, store: Mapping[str, Content], workspace: Mapping[str, Content], names: tuple[str, ...]
) -> Comparison:
    """Compare the managed files of both sides; ``names`` are those of metadata, base configuration and events.

    A file that isn't there holds nothing. One that can't be read, or is no valid JSON, is compared with nothing.
    """
    metadata_name, base_name, events_name = names
    notes: list[str] = []
    ours, theirs = _parsed(dict, store, workspace, metadata_name, notes)
    keys = list(dict.fromkeys([*ours, *theirs]))
    left, right = _parsed(list, store, workspace, events_name, notes)
    common = _common(left, right)
    unread = unread_on(store, workspace, base_name)
    return Comparison(
        metadata=tuple((key, ours.get(key), theirs.get(key)) for key in keys if ours.get(key) != theirs.get(key)),
        common=common,
        store_only=_lines(left, common),
        workspace_only=_lines(right, common),
        base_config_differs=not unread and store.get(base_name) != workspace.get(base_name),
        extras=extras_of(view),
        notes=(*notes, *unread),
    )


def unread_on(store: Mapping[str, Content], workspace: Mapping[str, Content], name: str) -> list[str]:
    """Say on which sides a file is there and can't be read."""
    found = (("store", store.get(name)), ("workspace", workspace.get(name)))
    return [f"{side}: {name or 'the file'}: found {each.found}" for side, each in found if isinstance(each, Fault)]


def _parsed(
    kind: type[T], store: Mapping[str, Content], workspace: Mapping[str, Content], name: str, notes: list[str]
) -> tuple[T, T]:
    """Return what a file says on both sides; nothing of either where it can't be told on one of them."""
    unread = unread_on(store, workspace, name)
    notes += unread
    said: list[T] = []
    for side, content in (("store", store.get(name)), ("workspace", workspace.get(name))):
        if content is None:
            notes.append(f"{side}: there is no {name}")
            said.append(kind())
        elif not isinstance(content, Fault):
            try:
                found = json.loads(content)
            except (ValueError, RecursionError) as error:
                notes.append(f"{side}: {name} is no valid JSON: {error}")
            else:
                said.append(found if type(found) is kind else kind())
    return (said[0], said[1]) if len(said) == 2 else (kind(), kind())


def _common(left: list[Any], right: list[Any]) -> int:
    common = 0
    for ours, theirs in zip(left, right, strict=False):
        if ours != theirs:
            break
        common += 1
    return common


def _lines(events: list[Any], common: int) -> tuple[EventLine, ...]:
    return tuple(_line(position, event) for position, event in enumerate(events[common:], common + 1))


def _line(position: int, event: Any) -> EventLine:
    fields = event if isinstance(event, dict) else {}
    text = next((fields[key] for key in ("content", "message", "reasoning", "name") if key in fields), "")
    shown = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
    shown = " ".join(shown.split())
    shown = shown if len(shown) <= TEXT else shown[: TEXT - 1] + "…"
    return EventLine(position, str(fields.get("timestamp", ""))[:19], str(fields.get("type", "?")), shown)


def extras_of(view: View) -> tuple[tuple[str, str], ...]:
    """Return the other files that differ, by name, with how."""
    names = sorted({*view.store.units, *view.workspace.units} - {METADATA, STREAM})
    found = []
    for name in names:
        ours, theirs = view.store.units.get(name), view.workspace.units.get(name)
        if ours is None or theirs is None:
            found.append((name.removeprefix(EXTRA), "only in the workspace" if ours is None else "only in the store"))
        elif ours.digest != theirs.digest:
            found.append((name.removeprefix(EXTRA), "differs"))
    return tuple(found)
