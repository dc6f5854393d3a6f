"""One conversation: everything known of it, the differences between its sides, and the conflicts nobody has seen.

`describe` is for ``status ID``, the rest for ``diff ID``. Comparing is pure.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from reconcile.model.reasons import CASES, case_of
from reconcile.model.snapshot import EXTRA, METADATA, STREAM, Fault, Side

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from reconcile.engine.session import Session
    from reconcile.model.snapshot import Content
    from reconcile.model.units import Unit
    from reconcile.planning.context import Board
    from reconcile.planning.rules.views import View
    from reconcile.state.database import Conflict
    from reconcile.state.vault import Version

T = TypeVar("T", list[Any], dict[str, Any])

TEXT = 80
"""Characters of an event's text that are shown."""


def describe(board: Board, conversation: str) -> dict[str, Any]:
    """Return places, intent, parents and the case of each unit with the digests and times of all three."""
    view = board.views[conversation]
    intent = view.intent
    chain = list(board.tree.ancestors(conversation)) if conversation in board.tree else []
    found: dict[str, Any] = {
        "intent": "local" if view.local else intent.kind.value if intent else "projected" if view.agreed else "none",
        "waits_for": intent.waits_for if intent else None,
        "parents": chain,
        "known_parent": view.known_parent,
        "units": [_unit(view, name) for name in _names(view)],
    }
    for side in Side:
        seen = view.side(side)
        found[side.value] = [copy.path for copy in ((seen.main, *seen.stale) if seen.main else ())]
    return found


def _names(view: View) -> list[str]:
    base = view.agreed.units if view.agreed else {}
    return sorted({*base, *view.store.units, *view.workspace.units})


def _unit(view: View, name: str) -> dict[str, Any]:
    base = view.agreed.units.get(name) if view.agreed else None
    seen = {side: view.side(side).units.get(name) for side in Side}
    broken = [side.value for side, unit in seen.items() if unit is not None and unit.digest is None]
    case = None if broken else case_of(base, view.store.digest(name), view.workspace.digest(name))
    return {
        "unit": name,
        "case": case,
        "meaning": CASES[case][1] if case else f"can't be read in the {' and the '.join(broken)}",
        "baseline": {"digest": base} if base else None,
        "store": _seen(seen[Side.STORE]),
        "workspace": _seen(seen[Side.WORKSPACE]),
    }


def _seen(unit: Unit | None) -> dict[str, Any] | None:
    if unit is None:
        return None
    fault = unit.fault and f"found {unit.fault.found}, expected {unit.fault.expected}"
    return {"digest": unit.digest, "mtime_ns": unit.mtime_ns, "time": time_text(unit.mtime_ns), "fault": fault}


def time_text(mtime_ns: int) -> str:
    """Return a time in UTC to the second; one that no calendar holds as the bare number."""
    try:
        return datetime.fromtimestamp(mtime_ns // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"{mtime_ns} ns"


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
    unread = _unread_on(store, workspace, base_name)
    return Comparison(
        metadata=tuple((key, ours.get(key), theirs.get(key)) for key in keys if ours.get(key) != theirs.get(key)),
        common=common,
        store_only=_lines(left, common),
        workspace_only=_lines(right, common),
        base_config_differs=not unread and store.get(base_name) != workspace.get(base_name),
        extras=_extras_of(view),
        notes=(*notes, *unread),
    )


def _unread_on(store: Mapping[str, Content], workspace: Mapping[str, Content], name: str) -> list[str]:
    """Say on which sides a file is there and can't be read."""
    found = (("store", store.get(name)), ("workspace", workspace.get(name)))
    return [f"{side}: {name or 'the file'}: found {each.found}" for side, each in found if isinstance(each, Fault)]


def _parsed(
    kind: type[T], store: Mapping[str, Content], workspace: Mapping[str, Content], name: str, notes: list[str]
) -> tuple[T, T]:
    """Return what a file says on both sides; nothing of either where it can't be told on one of them."""
    unread = _unread_on(store, workspace, name)
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


def _extras_of(view: View) -> tuple[tuple[str, str], ...]:
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


def compare_records(view: View, store: Mapping[str, Content], workspace: Mapping[str, Content]) -> Comparison:
    """Compare the file that is the record, value by value where it is JSON, else line by line.

    One that can't be read is compared with nothing.
    """
    unread = _unread_on(store, workspace, "")
    contents = (store.get(""), workspace.get(""))
    ours, theirs = (None if unread or isinstance(content, Fault) else _value(content) for content in contents)
    return Comparison(
        metadata=tuple(_differences(ours, theirs)),
        common=0,
        store_only=(),
        workspace_only=(),
        base_config_differs=False,
        extras=_extras_of(view),
        notes=tuple(unread),
    )


def _value(content: bytes | None) -> Any:
    """JSON as it is; lines of JSON by their ids; other lines by their numbers."""
    if content is None:
        return None
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        lines = content.decode(errors="replace").splitlines()
    found: dict[str, Any] = {}
    for number, line in enumerate(lines, 1):
        try:
            value: Any = json.loads(line)
        except (ValueError, RecursionError):
            value = line
        found[_member_name(value, f"line {number}")] = value
    return found


def _member_name(value: Any, otherwise: str) -> str:
    known = value.get("id") if isinstance(value, dict) else None
    return known if isinstance(known, str) else otherwise


def _differences(ours: Any, theirs: Any) -> Iterator[tuple[str, Any, Any]]:
    """Every value that isn't the same, with the way to it, in the order of the store's; None: it isn't there."""
    pending = [("", ours, theirs)]
    while pending:
        way, left, right = pending.pop()
        if left == right:
            continue
        here, there = _members(left), _members(right)
        if here is None or there is None:
            yield way or "content", left, right
            continue
        keys = dict.fromkeys((*here, *there))
        inner = [(f"{way}.{key}" if way else key, here.get(key), there.get(key)) for key in keys]
        if all(before == after for _, before, after in inner):
            yield way or "content", "the same in another order", None
        pending += reversed(inner)


def _members(value: Any) -> dict[str, Any] | None:
    if isinstance(value, dict):
        return value
    if isinstance(value, list):
        return {_member_name(each, str(number)): each for number, each in enumerate(value, 1)}
    return None


def unseen_conflicts(session: Session) -> tuple[Conflict, ...]:
    """Return the conflicts that nobody has looked at, oldest run first."""
    if session.checkout is None:
        return ()
    return tuple(each for each in session.state.conflicts(session.checkout) if not each.seen)


def losing_versions(session: Session, conversation: str) -> tuple[Version, ...]:
    """Return the versions that lost a conflict which nobody has looked at."""
    lost = {(each.run, each.unit) for each in unseen_conflicts(session) if each.conversation == conversation}
    kept = session.state.versions.of_conversation(conversation) if lost else ()
    return tuple(each for each in kept if (each.run, each.unit) in lost)


def mark_seen(session: Session, conversations: Sequence[str]) -> None:
    """Note that the user has looked at these."""
    if session.checkout is not None:
        session.state.conflicts_seen(session.checkout, conversations)
