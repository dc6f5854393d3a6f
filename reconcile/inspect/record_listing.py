"""The listing of a Claudesidian vault for ``ls``: the content of each record in words, and its last use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.formats.claudesidian.events import read_events
from reconcile.formats.claudesidian.finding import counted
from reconcile.formats.claudesidian.record_files import (
    Item,
    Kind,
    messages_of,
    number,
    read_item,
    sessions_of,
    traces_of,
)
from reconcile.formats.claudesidian.union import LATEST
from reconcile.formats.claudesidian.vault import Place, Role, place_of
from reconcile.inspect.listing import sides_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reconcile.planning.rules.views import View


class RecordRow(Struct, frozen=True):
    """One record of a listing. ``holds`` counts the content of a record or event file; ``last_ms`` 0: no time."""

    record: str
    title: str | None
    holds: str
    last_ms: float
    where: str


def list_records(views: Iterable[View]) -> tuple[RecordRow, ...]:
    """Return the records that a side has, last used first, without indexes."""
    rows = [_row(view) for view in views if _is_listed(view)]
    return tuple(sorted(rows, key=lambda row: (-row.last_ms, row.record)))


def _is_listed(view: View) -> bool:
    places = view.format.places
    there = view.store.main is not None or view.workspace.main is not None
    return there and places is not None and not places.is_derived(view.id)


def _row(view: View) -> RecordRow:
    facts = view.workspace.metadata or view.store.metadata
    holds, last = ("can't be read", 0.0) if facts is None else _content(view.id, facts.content)
    return RecordRow(view.id, facts.title if facts is not None else None, holds, last, sides_of(view))


def _content(path: str, content: bytes) -> tuple[str, float]:
    match place_of(path):
        case Place(Role.EVENTS):
            events = read_events(content).events
            return counted(len(events), "event"), max((event.timestamp for event in events), default=0.0)
        case Place(Role.RECORD, kind, name) if isinstance(item := read_item(kind, name, content), Item):
            return _counts(item), number(item.value.get(LATEST[kind]))
        case _:
            return "", 0.0


def _counts(item: Item) -> str:
    if item.kind is Kind.CONVERSATION:
        return counted(len(messages_of(item.value)), "message")
    sessions = sessions_of(item.value)
    traces = sum(len(traces_of(session)) for session in sessions.values())
    return f"{counted(len(sessions), 'session')}, {counted(traces, 'trace')}"
