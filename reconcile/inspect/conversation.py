"""One conversation: its description for ``status ID``, and its differences and unseen conflicts for ``diff ID``."""

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
    from reconcile.planning.context import PlanningContext
    from reconcile.planning.rules.views import View
    from reconcile.state.database import Conflict
    from reconcile.state.vault import Version

T = TypeVar("T", list[Any], dict[str, Any])

TEXT = 80
"""Number of characters of an event's text that are shown."""


def describe(context: PlanningContext, conversation: str) -> dict[str, Any]:
    """Return the paths, the intent, the ancestors, and for each unit its case, digests and times, for JSON and text."""
    view = context.views[conversation]
    intent = view.intent
    description: dict[str, Any] = {
        "intent": "local" if view.local else intent.kind.value if intent else "projected" if view.agreed else "none",
        "waits_for": intent.waits_for if intent else None,
        "parents": list(context.tree.ancestors(conversation)) if conversation in context.tree else [],
        "known_parent": view.known_parent,
        "units": [_unit(view, name) for name in _names(view)],
    }
    for side in Side:
        of_side = view.side(side)
        description[side.value] = [copy.path for copy in ((of_side.main, *of_side.stale) if of_side.main else ())]
    return description


def _names(view: View) -> list[str]:
    base = view.agreed.units if view.agreed else {}
    return sorted({*base, *view.store.units, *view.workspace.units})


def _unit(view: View, name: str) -> dict[str, Any]:
    base = view.agreed.units.get(name) if view.agreed else None
    units = {side: view.side(side).units.get(name) for side in Side}
    broken = [side.value for side, unit in units.items() if unit is not None and unit.digest is None]
    case = None if broken else case_of(base, view.store.digest(name), view.workspace.digest(name))
    return {
        "unit": name,
        "case": case,
        "meaning": CASES[case][1] if case else f"can't be read in the {' and the '.join(broken)}",
        "baseline": {"digest": base} if base else None,
        "store": _version(units[Side.STORE]),
        "workspace": _version(units[Side.WORKSPACE]),
    }


def _version(unit: Unit | None) -> dict[str, Any] | None:
    if unit is None:
        return None
    fault = unit.fault and f"found {unit.fault.found}, expected {unit.fault.expected}"
    return {"digest": unit.digest, "mtime_ns": unit.mtime_ns, "time": time_text(unit.mtime_ns), "fault": fault}


def time_text(mtime_ns: int) -> str:
    """Return a time (ns since the epoch) in UTC, to the second; outside of the calendar, the number."""
    try:
        return datetime.fromtimestamp(mtime_ns // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"{mtime_ns} ns"


class EventLine(Struct, frozen=True):
    """One event, as far as a line shows it. ``position`` counts from 1."""

    position: int
    time: str
    type: str
    text: str


class Comparison(Struct, frozen=True):
    """The differences between two sides. ``metadata`` has (key, store, workspace), None for an absent key.

    ``common`` is the length of the streams' common beginning, in events. ``notes`` name what can't be compared.
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
        """Both sides have the same content."""
        differences = (self.metadata, self.store_only, self.workspace_only, self.extras, self.notes)
        return not any(differences) and not self.base_config_differs


def compare(
    view: View, store: Mapping[str, Content], workspace: Mapping[str, Content], names: tuple[str, ...]
) -> Comparison:
    """Compare the managed files of both sides; ``names`` are those of metadata, base configuration and events.

    A missing file counts as empty. A file that can't be read, or is no valid JSON, isn't compared; ``notes`` name it.
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
    """Return a note for each side on which a file exists and can't be read."""
    contents = (("store", store.get(name)), ("workspace", workspace.get(name)))
    return [
        f"{side}: {name or 'the file'}: found {fault.found}" for side, fault in contents if isinstance(fault, Fault)
    ]


def _parsed(
    kind: type[T], store: Mapping[str, Content], workspace: Mapping[str, Content], name: str, notes: list[str]
) -> tuple[T, T]:
    """Return the parsed file of both sides, or two empty values if one of them can't be parsed. Adds to ``notes``."""
    unread = _unread_on(store, workspace, name)
    notes += unread
    values: list[T] = []
    for side, content in (("store", store.get(name)), ("workspace", workspace.get(name))):
        if content is None:
            notes.append(f"{side}: there is no {name}")
            values.append(kind())
        elif not isinstance(content, Fault):
            try:
                value = json.loads(content)
            except (ValueError, RecursionError) as error:
                notes.append(f"{side}: {name} is no valid JSON: {error}")
            else:
                values.append(value if type(value) is kind else kind())
    return (values[0], values[1]) if len(values) == 2 else (kind(), kind())


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
    """Return the extra files that differ, by name, each with its difference in words."""
    names = sorted({*view.store.units, *view.workspace.units} - {METADATA, STREAM})
    differing = []
    for name in names:
        ours, theirs = view.store.units.get(name), view.workspace.units.get(name)
        if ours is None or theirs is None:
            differing.append(
                (name.removeprefix(EXTRA), "only in the workspace" if ours is None else "only in the store")
            )
        elif ours.digest != theirs.digest:
            differing.append((name.removeprefix(EXTRA), "differs"))
    return tuple(differing)


def compare_records(view: View, store: Mapping[str, Content], workspace: Mapping[str, Content]) -> Comparison:
    """Compare the file of a record with a fixed place: JSON value by value, other text line by line.

    A file that can't be read isn't compared; ``notes`` name it.
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
    """Return a file as a value: JSON as it is, lines of JSON by their ids, other lines by their numbers."""
    if content is None:
        return None
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        lines = content.decode(errors="replace").splitlines()
    by_name: dict[str, Any] = {}
    for number, line in enumerate(lines, 1):
        try:
            value: Any = json.loads(line)
        except (ValueError, RecursionError):
            value = line
        by_name[_member_name(value, f"line {number}")] = value
    return by_name


def _member_name(value: Any, otherwise: str) -> str:
    id_ = value.get("id") if isinstance(value, dict) else None
    return id_ if isinstance(id_, str) else otherwise


def _differences(store: Any, workspace: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield each differing value as (path, store, workspace), in the order of the store; None: absent."""
    pending = [("", store, workspace)]
    while pending:
        path, left, right = pending.pop()
        if left == right:
            continue
        store_members, workspace_members = _members(left), _members(right)
        if store_members is None or workspace_members is None:
            yield path or "content", left, right
            continue
        keys = dict.fromkeys((*store_members, *workspace_members))
        inner = [(f"{path}.{key}" if path else key, store_members.get(key), workspace_members.get(key)) for key in keys]
        if all(our == their for _, our, their in inner):
            yield path or "content", "the same in another order", None
        pending += reversed(inner)


def _members(value: Any) -> dict[str, Any] | None:
    if isinstance(value, dict):
        return value
    if isinstance(value, list):
        return {_member_name(member, str(number)): member for number, member in enumerate(value, 1)}
    return None


def unseen_conflicts(session: Session) -> tuple[Conflict, ...]:
    """Return the conflicts of this checkout that the user hasn't seen, oldest run first."""
    if session.checkout is None:
        return ()
    return tuple(conflict for conflict in session.state.conflicts(session.checkout) if not conflict.seen)


def losing_versions(session: Session, conversation: str) -> tuple[Version, ...]:
    """Return the versions of a conversation that lost an unseen conflict."""
    conflicts = (conflict for conflict in unseen_conflicts(session) if conflict.conversation == conversation)
    lost = {(conflict.run, conflict.unit) for conflict in conflicts}
    versions = session.state.versions.of_conversation(conversation) if lost else ()
    return tuple(version for version in versions if (version.run, version.unit) in lost)


def mark_seen(session: Session, conversations: Sequence[str]) -> None:
    """Record that the user has seen the conflicts of these conversations."""
    if session.checkout is not None:
        session.state.conflicts_seen(session.checkout, conversations)
