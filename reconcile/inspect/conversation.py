"""One conversation: its description for ``status ID``, and its differences and decided conflicts for ``diff ID``."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from reconcile.engine.run_history import undone_changes
from reconcile.formats.json import strict
from reconcile.formats.reading import lines_of
from reconcile.fs.files import Directory, read_files, uncopied_entries
from reconcile.model.commands import typed
from reconcile.model.names import CHILDREN
from reconcile.model.plan import Kind
from reconcile.model.reasons import CASES, Reason, case_of
from reconcile.model.snapshot import EXTRA, METADATA, STREAM, WHOLE, Fault, Side
from reconcile.model.units import unit_text
from reconcile.planning.conflicts import time_text
from reconcile.state.journal import StepState
from reconcile.state.vault import VersionKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from reconcile.engine.session import Session
    from reconcile.model.snapshot import Content, Copy
    from reconcile.model.units import Unit
    from reconcile.planning.context import PlanningContext
    from reconcile.planning.rules.views import View
    from reconcile.state.database import Conflict
    from reconcile.state.journal import Step
    from reconcile.state.vault import Version

T = TypeVar("T", list[Any], dict[str, Any])

Both: TypeAlias = "Mapping[str, tuple[Content | None, Content | None]]"
"""Two versions of each file, by name; None: a version lacks it."""
_SIDES = ("store", "workspace")

ONLY_IN_STORE = 3
"""The case of a unit that only the store has, and the baseline does not."""

_ACTIVATED = "last_activated_at"
"""The key of JP's metadata that JP itself changes with every message."""
TEXT = 80
"""Number of characters of an event's text that are shown."""


def describe(session: Session, context: PlanningContext, conversation: str) -> dict[str, Any]:
    """Return the paths, the intent, the ancestors, and for each unit its case, digests and times, for JSON and text.

    ``removed_by`` is the run that removed the conversation here, if nothing else is recorded of it. ``hidden`` are the
    files of its directories that no run copies, in formats with a directory for each conversation.
    """
    view = context.views[conversation]
    intent = view.intent
    removed_by = None
    if session.checkout is not None and not (view.local or intent or view.agreed):
        removed_by = session.state.journal.removed_by(conversation, session.checkout)
    description: dict[str, Any] = {
        "intent": "local" if view.local else intent.kind.value if intent else "projected" if view.agreed else "none",
        "removed_by": removed_by,
        "waits_for": intent.waits_for if intent else None,
        "parents": list(context.tree.ancestors(conversation)) if conversation in context.tree else [],
        "known_parent": view.known_parent,
        "units": [_unit(view, name, removed_by) for name in _names(view)],
    }
    for side in Side:
        of_side = view.side(side)
        description[side.value] = [copy.path for copy in ((of_side.main, *of_side.stale) if of_side.main else ())]
    if session.format.places is None:
        roots = session.roots
        places = {Side.STORE: roots.store_conversations, Side.WORKSPACE: roots.workspace_conversations}
        description["hidden"] = [
            f"{side}:{path}/{name}"
            for side, place in places.items()
            for path in description[side.value]
            for name in uncopied_entries(os.path.join(place, path), (CHILDREN,), session.format.unit_of)
        ]
    return description


def _names(view: View) -> list[str]:
    base = view.agreed.units if view.agreed else {}
    return sorted({*base, *view.store.units, *view.workspace.units})


def _unit(view: View, name: str, removed_by: str | None) -> dict[str, Any]:
    base = view.agreed.units.get(name) if view.agreed else None
    units = {side: view.side(side).units.get(name) for side in Side}
    broken = [side.value for side, unit in units.items() if unit is not None and unit.digest is None]
    case = None if broken else case_of(base, view.store.digest(name), view.workspace.digest(name))
    meaning = CASES[case][1] if case else ""
    if case == ONLY_IN_STORE and removed_by is not None:
        meaning = "only in the store, removed here"
    elif case == ONLY_IN_STORE and name.startswith(EXTRA) and view.workspace.main is not None:
        meaning = "only in the store (deleted here, or never here)"
    return {
        "unit": name,
        "case": case,
        "meaning": meaning if case else f"can't be read in the {' and the '.join(broken)}",
        "baseline": {"digest": base} if base else None,
        "store": _version(units[Side.STORE]),
        "workspace": _version(units[Side.WORKSPACE]),
    }


def _version(unit: Unit | None) -> dict[str, Any] | None:
    if unit is None:
        return None
    fault = unit.fault and unit.fault.words
    return {"digest": unit.digest, "mtime_ns": unit.mtime_ns, "time": time_text(unit.mtime_ns), "fault": fault}


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
    return replace(compare_files(store, workspace, names), extras=_extras_of(view))


def compare_files(
    store: Mapping[str, Content],
    workspace: Mapping[str, Content],
    names: tuple[str, ...],
    labels: tuple[str, str] = _SIDES,
    left_out: Collection[str] = (),
) -> Comparison:
    """Compare the managed files of two versions, which ``labels`` name; files in ``left_out`` aren't compared."""
    metadata_name, base_name, events_name = names
    both = {name: (store.get(name), workspace.get(name)) for name in names}
    notes: list[str] = []
    ours, theirs = ({}, {}) if metadata_name in left_out else _parsed(dict, both, metadata_name, notes, labels)
    keys = list(dict.fromkeys([*ours, *theirs]))
    left, right = ([], []) if events_name in left_out else _parsed(list, both, events_name, notes, labels)
    common = _common(left, right)
    unread = _unread_on(both, base_name, labels)
    differs = base_name not in left_out and not unread and store.get(base_name) != workspace.get(base_name)
    return Comparison(
        metadata=tuple((key, ours.get(key), theirs.get(key)) for key in keys if ours.get(key) != theirs.get(key)),
        common=common,
        store_only=_lines(left, common),
        workspace_only=_lines(right, common),
        base_config_differs=differs,
        extras=(),
        notes=(*notes, *unread),
    )


def _unread_on(both: Both, name: str, labels: tuple[str, str] = _SIDES) -> list[str]:
    """Return a note for each version of which a file exists and can't be read."""
    contents = zip(labels, both[name], strict=True)
    return [f"{label}: {name or 'the file'}: {fault.words}" for label, fault in contents if isinstance(fault, Fault)]


def _parsed(kind: type[T], both: Both, name: str, notes: list[str], labels: tuple[str, str]) -> tuple[T, T]:
    """Return the parsed file of both versions, or two empty values if one can't be parsed. Adds to ``notes``."""
    unread = _unread_on(both, name, labels)
    notes += unread
    values: list[T] = []
    for side, content in zip(labels, both[name], strict=True):
        if content is None:
            notes.append(f"{side}: {name} is missing")
            values.append(kind())
        elif not isinstance(content, Fault):
            try:
                value = json.loads(content)
            except (ValueError, RecursionError):
                notes.append(f"{side}: {name}: {_invalid(content)}")
            else:
                values.append(value if type(value) is kind else kind())
    return (values[0], values[1]) if len(values) == 2 else (kind(), kind())


def _invalid(content: bytes) -> str:
    """Return what is wrong with a JSON file, in the words that a plan has for it."""
    try:
        strict.load(content)
    except strict.InvalidContentError as error:
        return str(error)
    return "invalid JSON"


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
    return replace(compare_contents(store.get(""), workspace.get("")), extras=_extras_of(view))


def compare_contents(store: Content | None, workspace: Content | None, labels: tuple[str, str] = _SIDES) -> Comparison:
    """Compare two versions of a record that is a single file; None: it has none."""
    unread = _unread_on({"": (store, workspace)}, "", labels)
    ours, theirs = (None if unread or isinstance(each, Fault) else _value(each) for each in (store, workspace))
    return Comparison(
        metadata=tuple(_differences(ours, theirs)),
        common=0,
        store_only=(),
        workspace_only=(),
        base_config_differs=False,
        extras=(),
        notes=tuple(unread),
    )


def _value(content: bytes | None) -> Any:
    """Return a file as a value: JSON as it is, lines of JSON by their ids, other lines by their numbers."""
    if content is None:
        return None
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        lines = lines_of(content.decode(errors="replace"))
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


class Decided(Struct, frozen=True):
    """A conflict that a run has decided: the side whose version it took, and the other side's, which the vault has.

    ``chosen``: a person has chosen the side, by `resolve`. ``merged``: the run has replaced both versions by a merge.
    ``child``: the conversation that the run has made of the other side's continuation.
    """

    conversation: str
    unit: str
    run: str
    winner: Side
    lost: tuple[Version, ...]
    is_seen: bool = False
    chosen: bool = False
    merged: bool = False
    child: str | None = None

    @property
    def version(self) -> str:
        """The name of the other side's version in JSON, for `reconcile show` and `restore`.

        After a merge, the name by the run stands for both versions.
        """
        return self.lost[0].digest[:16] if self.merged else self.lost[0].name

    @property
    def spelling(self) -> str:
        """The name of the other side's version on the screen."""
        return self.version if self.merged else self.lost[0].spelling

    @property
    def words(self) -> str:
        """The notice: what was decided, and the command that brings the other version back."""
        how = "you took" if self.chosen else "both sides changed it, and the run took"
        back, other = f"reconcile restore {typed(self.spelling)}", f"the {self.winner.other}'s"
        kept = f"{other} is now the fork {self.child}; " if self.child else ""
        return f"{unit_text(self.unit)}: {how} the {self.winner}'s; {kept}`{back}` brings {other} back"

    def is_back(self, view: View) -> bool:
        """Tell whether both sides have the other version again."""
        known = {version.xxh3 for version in self.lost}
        return all(known.intersection((view.side(side).raw(self.unit) or "").split("+")) for side in Side)


def decided_conflicts(session: Session, conversation: str | None = None) -> tuple[Decided, ...]:
    """Return the decided conflicts of this checkout that the user hasn't seen, the newest of each unit.

    With a conversation, also those of it that were seen, if no run has changed the unit since, and those that the user
    has decided later. A user needs no notice of their own decision.
    """
    rows = () if session.checkout is None else session.state.conflicts(session.checkout)
    if conversation is not None:
        rows = tuple(row for row in rows if row.conversation == conversation)
    if not any(conversation is not None or not row.seen for row in rows):
        return ()
    undone = undone_changes(session.state)
    found: dict[tuple[str, str], Decided | None] = {}
    for row in reversed(rows):
        key = row.conversation, row.unit
        if key in found:
            continue
        is_undone = undone.get(row.run, {}).get(row.conversation) is not None
        if conversation is None and (row.seen or is_undone):
            found[key] = None
            continue
        chosen = _chosen(session, row, undone)
        if chosen is not None:
            found[key] = chosen if conversation is not None else None
        elif is_undone or (row.seen and _changed_since(session, row)):
            found[key] = None
        else:
            found[key] = _decided(session, row, row.run, chosen=row.chosen)
    return tuple(decided for decided in reversed(found.values()) if decided is not None)


def _decided(session: Session, row: Conflict, run: str, *, chosen: bool = False) -> Decided | None:
    """Return the conflict with the versions that a run has replaced; None if it has replaced none."""
    versions = session.state.versions.of_conversation(row.conversation)
    kept = [v for v in versions if (v.run, v.unit, v.kind) == (run, row.unit, VersionKind.FILE)]
    if not kept:
        return None
    times = {side: max((v.mtime_ns for v in kept if v.side == side), default=None) for side in Side}
    merged = None not in times.values()
    # If the run has replaced both versions, as a merge does, the older one has lost, unless the winner is recorded.
    loser = min(Side, key=lambda side: (times[side] is None, times[side] or 0, side is Side.STORE))
    if merged and row.winner is not None and run == row.run:
        loser = row.winner.other
    lost = tuple(version for version in kept if version.side == loser)
    child = _child(session.state.journal.steps(run), row, loser)
    return Decided(row.conversation, row.unit, run, loser.other, lost, row.seen, chosen, merged, child)


def _child(steps: Iterable[Step], row: Conflict, loser: Side) -> str | None:
    """Return the fork that a run has made of the version that lost; None if it has made none."""
    done = [(step, json.loads(step.record)) for step in steps if step.state is StepState.DONE]
    targets = [record["target"] for step, record in done if _is_about(step, row)]
    # The other files of a directory, and its title, are not those of the fork.
    directories = (target.rpartition("/")[0] for target in targets) if row.unit == STREAM else ()
    replaced = {*targets, *directories}
    forks = ((step, record["source"]) for step, record in done if step.kind == Kind.FORK)
    found = (step.conversation for step, source in forks if source in replaced and source.startswith(f"{loser}:"))
    return next(found, None)


def _chosen(session: Session, row: Conflict, undone: Mapping[str, Mapping[str, str | None]]) -> Decided | None:
    """Return the newest decision of a person after the run that had decided; None if there is none, or it is undone."""
    for run in sorted(undone, reverse=True):
        if run > row.run and undone[run].get(row.conversation, run) is None:
            steps = [s for s in session.state.journal.steps(run) if _is_about(s, row) and s.state is StepState.DONE]
            if any(json.loads(step.record)["reason"] == Reason.DECIDED.value for step in steps):
                return _decided(session, row, run, chosen=True)
    return None


def _changed_since(session: Session, row: Conflict) -> bool:
    later = session.state.journal.concerned_since(row.run).get(row.conversation, ())
    return any(_is_about(step, row) for run in later for step in session.state.journal.steps(run))


def _is_about(step: Step, row: Conflict) -> bool:
    return step.conversation == row.conversation and step.unit in (row.unit, WHOLE)


def notices(session: Session, decided: Iterable[Decided], views: Mapping[str, View]) -> dict[str, tuple[str, ...]]:
    """Return the notices on decided conflicts by conversation, each of them once.

    Left out are those whose other version is back, and those of which nothing is left: both sides have other values.
    """
    words: dict[str, list[str]] = {}
    for each in decided:
        view = views.get(each.conversation)
        if view is not None and not (each.is_back(view) or _is_edited_since(session, each, view)):
            words.setdefault(each.conversation, []).append(each.words)
            if each.child is not None:
                words.setdefault(each.child, []).append(f"the continuation of {each.conversation} that was not taken")
    return {conversation: tuple(dict.fromkeys(texts)) for conversation, texts in words.items()}


def _is_edited_since(session: Session, decided: Decided, view: View) -> bool:
    """Tell whether later runs have replaced all that a conflict was about, in metadata or in one file.

    Of metadata, these are the keys that differed: a program changes others with every message. Events that were not
    taken are not in later events, so that these have the notice until it is read.
    """
    if decided.unit == STREAM:
        return False
    versions = session.state.versions.of_conversation(decided.conversation)
    later = [
        v for v in versions if v.run and v.run > decided.run and (v.unit, v.kind) == (decided.unit, VersionKind.FILE)
    ]
    if not later:
        return False
    taken = min(later, key=lambda version: version.run or "")
    if decided.unit != METADATA:
        return all(taken.xxh3 not in (view.side(side).raw(decided.unit) or "").split("+") for side in Side)
    lost = next((version for version in decided.lost if version.file == taken.file), None)
    copies = [copy for side in Side if (copy := view.side(side).main) is not None]
    if lost is None or not copies:
        return False
    ours, theirs = (_values_of(session.vault.read(version.digest)) for version in (taken, lost))
    keys = {key for key in ours | theirs if ours.get(key) != theirs.get(key)} - {_ACTIVATED}
    present = [_values_of(_content(session, copy, taken.file)) for copy in copies]
    return bool(keys) and all(values.get(key) != ours.get(key) for values in present for key in keys)


def _content(session: Session, copy: Copy, name: str) -> bytes:
    """Return a file of a side; empty if it can't be read."""
    with Directory.open_root(session.site.conversations(copy.side)) as top, top.below(copy.path) as directory:
        read = read_files(directory, [name])
    return b"" if isinstance(read, Fault) else read[name][0]


def _values_of(content: bytes) -> dict[str, Any]:
    """Return the keys and values of metadata; none if it is no object."""
    try:
        values = json.loads(content)
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}


def mark_seen(session: Session, conversations: Sequence[str]) -> None:
    """Record that the user has seen the conflicts of these conversations."""
    if session.checkout is not None:
        session.state.conflicts_seen(session.checkout, conversations)
