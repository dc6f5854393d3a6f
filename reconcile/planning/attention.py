"""The items of a plan besides its actions: held, set aside, noted, and the records that follow from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.model.baseline import LOST, AsideKind, Intent, IntentKind
from reconcile.model.commands import typed
from reconcile.model.names import CHILDREN
from reconcile.model.options import Take
from reconcile.model.plan import Item, Kind
from reconcile.model.policy import ProjectRequest
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import (
    ARCHIVE,
    EXTRA,
    METADATA,
    STREAM,
    TRASH,
    UNREAD,
    WHOLE,
    Fault,
    ParentKind,
    Place,
    Side,
    Unreadable,
)
from reconcile.model.units import unit_text
from reconcile.planning.builder import owner_of
from reconcile.planning.conflicts import blocked, commands, conflict_of, taken
from reconcile.planning.rules.content import Direction, Outcome, direction
from reconcile.planning.rules.presence import Goal, missing_side
from reconcile.planning.rules.shapes import two_shapes
from reconcile.planning.rules.views import PLACE, Lead
from reconcile.planning.steps.placement import is_complete, is_sound

if TYPE_CHECKING:
    from collections.abc import Collection

    from reconcile.model.format import Format, Places
    from reconcile.model.snapshot import Snapshot
    from reconcile.planning.context import PlanningContext
    from reconcile.planning.rules.content import Verdict
    from reconcile.planning.rules.views import View

BARE = "a directory with none of a conversation's own files"
"""The description of a directory that is named as a conversation's, and has others' files alone."""
_LEFT = {AsideKind.KEPT: Reason.KEPT, AsideKind.UNDONE: Reason.UNDONE}
_REPLACES = {Outcome.TO_STORE: Side.STORE, Outcome.TO_WORKSPACE: Side.WORKSPACE}
"""By outcome, the side whose version of a unit is replaced."""


def report_conversation(context: PlanningContext, view: View) -> None:
    """Report the held, set aside and noted items of one conversation."""
    presence = context.presences[view.id]
    if view.id in context.edits.leaving:
        _report_leaving(context, view)
        return
    obstacle = _obstacle(context, view)
    if obstacle is not None:
        context.hold(view, WHOLE, Reason.UNREADABLE, obstacle)
    elif (
        view.id in context.edits.requested
        and view.id in context.edits.intents
        and view.workspace.main is None
        and view.id not in context.present
        and not view.local
    ):
        _hold_unplaced(context, view)
    lacks = missing_side(view, context.policy)
    if presence.goal is Goal.HELD:
        report = _obstructed if presence.reason is Reason.OBSTRUCTED else _invalid
        report(context, view)
    elif presence.goal is Goal.REMOVED_BEFORE:
        context.set_aside(
            view,
            WHOLE,
            Reason.REMOVED_BEFORE,
            "an old copy of a removed conversation; restore it with resolve, or remove the copy with rm",
            f"reconcile resolve {typed(view.id)} --take workspace",
            f"reconcile rm {typed(view.id)}",
        )
    elif presence.state == "unreadable" and view.store.main is None and obstacle is None:
        message = "a part of the store can't be read, and may hold it; left alone until the store can be read"
        context.hold(view, WHOLE, Reason.UNREADABLE, message)
    elif lacks is not None and presence.goal is Goal.NOTHING and not view.invalid_in_store_alone():
        message = f"the {lacks} does not have it, so its version can't be taken; left alone"
        context.hold(view, WHOLE, Reason.UNSETTLED, message, f"reconcile resolve {typed(view.id)} --take {lacks.other}")
    elif presence.reason is Reason.EDIT_WINS:
        context.note(view.id, Reason.EDIT_WINS, "removed from the store, but edited here since; the edit wins")
    if presence.state == "local" and view.workspace.main is not None and not _is_held_whole(context, view):
        context.set_aside(
            view,
            WHOLE,
            Reason.LOCAL_PRESENT,
            "marked local, but this checkout still has a copy; remove it with local, or publish it again with project",
            f"reconcile local {typed(view.id)}",
            f"reconcile project {typed(view.id)}",
        )
    for verdict in context.verdicts.get(view.id, {}).values():
        _report_unit(context, view, verdict)
    if presence.goal is not Goal.REMOVE and not any(item.conversation == view.id for item in context.held):
        _hold_invalid(context, view)
    _report_parted(context, view)
    _report_rivals(context, view)
    _report_parent(context, view)
    _report_bare(context, view)
    _remember(context, view)


def _report_bare(context: PlanningContext, view: View) -> None:
    """Note that a directory is named as a conversation's, but has none of its files, so that nothing of it is saved."""
    if context.presences[view.id].goal is Goal.NOTHING:
        for copy in view.workspace.bare_directories:
            if copy.files:
                context.note(view.id, Reason.FOREIGN, f"{copy.place}: {BARE}; left alone")


def _is_held_whole(context: PlanningContext, view: View) -> bool:
    return any(item.conversation == view.id and item.unit == WHOLE for item in context.held)


def _report_leaving(context: PlanningContext, view: View) -> None:
    """Report a conversation that leaves the workspace: the reasons why it can't, and edits on both sides."""
    for verdict in context.verdicts.get(view.id, {}).values():
        if verdict.outcome is Outcome.HELD:
            _report_held(context, view, verdict)
        _note_conflict(context, view, verdict)


def _hold_unplaced(context: PlanningContext, view: View) -> None:
    """Hold a requested conversation that isn't placed in the workspace, unless its obstacle is reported already."""
    container = context.container_of(view.id)
    if context.sides.workspace_emptied:
        message = "the workspace was emptied; restore its conversations first"
        context.hold(view, WHOLE, Reason.UNSETTLED, message, "reconcile recover")
    elif context.presences[view.id].goal is Goal.NOTHING:
        message = "its place in the workspace can't be read, so it is not copied there"
        context.hold(view, WHOLE, Reason.UNSETTLED, message, "reconcile doctor")
    elif not is_complete(view):
        if not view.invalid_in_store_alone():  # those are reported as in any run
            message = "incomplete in the store, so it can't be copied into the workspace"
            context.hold(view, WHOLE, Reason.UNSETTLED, message, f"reconcile status {typed(view.id)}")
    elif not is_sound(context, container):
        message = f"its parent {container} is incomplete here"
        context.hold(view, WHOLE, Reason.UNSETTLED, message, f"reconcile status {typed(str(container))}")


def _obstacle(context: PlanningContext, view: View) -> str | None:
    """Return the message about something else at the conversation's place, or a link above it in the workspace; None if
    there is none.

    The scan doesn't see a conversation there.
    """
    what = "directory" if view.format.places is None else view.format.places.noun
    entry = context.sides.obstacles.get(view.id) if view.store.main is None else None
    if entry is not None and not entry.link:
        way = "move it away" if view.agreed is None else f"put the {what} back"
        return f"store:{entry.path}: {entry.what} is in the place of the {what}; {way}"
    place = None if entry is None else f"store:{entry.path}"
    if view.workspace.main is None and view.agreed is not None:
        link = context.sides.link_above(view.agreed.place)
        place = place if link is None else f"workspace:{link}"
    if place is None:
        return None
    return (
        f"{place}: a symbolic link replaced the {what}; links are never followed. "
        f"Put the {what} back, or remove the link"
    )


def _obstructed(context: PlanningContext, view: View) -> None:
    """Hold what can't be at one place: a record as a file and as a directory, or such files of two directories."""
    if (clash := view.clash) is not None:
        file, inside = clash
        path = f"{file.copy.path}/{file.name.removeprefix(EXTRA)}"
        words = f"{file.copy.side}:{path} is a file, in {inside.copy.path} it is a directory; rename one, and run again"
        context.hold(view, WHOLE, Reason.OBSTRUCTED, words)
        return
    same_name = (two_shapes(is_file_in_store=METADATA in view.store.own),)
    message, *ways = context.two_shapes.get(view.id, same_name)
    context.hold(view, WHOLE, Reason.OBSTRUCTED, message, *ways)


def _invalid(context: PlanningContext, view: View) -> None:
    """Hold a conversation of the workspace alone that can't be imported as it is."""
    fmt = context.rules.format
    assert view.workspace.main is not None  # noqa: S101 - it is in the workspace alone
    for name in fmt.required:
        if name not in view.workspace.units:
            file = fmt.metadata_file if name == METADATA else fmt.stream_files[-1]
            missing = Fault(file, "no such file", "one beside the other files")
            context.hold_file(view, name, view.workspace.main, missing)
    for name, unit in view.workspace.faults.items():
        assert unit.fault is not None  # noqa: S101 - the side lists those with one
        context.hold_file(view, name, unit.copy, unit.fault)
    for unit in view.workspace.units.values():
        context.keep_version(unit)


def _hold_invalid(context: PlanningContext, view: View) -> None:
    """Hold a conversation that only the store has, for its invalid files: no run can publish it."""
    for unit, copy, fault in view.invalid_in_store_alone():
        context.hold_file(view, unit, copy, fault, f"reconcile doctor --quarantine {typed(view.id)}")


def _report_unit(context: PlanningContext, view: View, verdict: Verdict) -> None:
    if verdict.outcome is Outcome.HELD:
        _report_held(context, view, verdict)
    elif verdict.outcome is Outcome.BEHIND:
        context.set_aside(
            view,
            verdict.unit,
            Reason.BEHIND_ASIDE,
            "the workspace has an older version; the store keeps the newer one",
            *(f"reconcile resolve {typed(view.id)} --take {side}" for side in Side),
        )
        for side in (view.store, view.workspace):
            context.keep_version(side.units[verdict.unit])
    elif verdict.record is not None and verdict.record.kind in _LEFT:
        reason = _LEFT[verdict.record.kind]
        takes = [Take.STORE, Take.WORKSPACE]
        if verdict.unit == STREAM and _goes_on_twice(view):
            takes.append(Take.BOTH)
        ways = (f"reconcile resolve {typed(view.id)} --take {take.value}" for take in takes)
        context.set_aside(view, verdict.unit, reason, reason.words, *ways)
    _note_conflict(context, view, verdict)
    if verdict.noted is not None:
        saved = "the store's version is saved, and `reconcile undo` restores it"
        message = f"{unit_text(verdict.unit)}: {verdict.noted.words}; {saved}"
        context.note(view.id, verdict.noted, message, verdict.unit)
    if context.baseline.asides.get((view.id, verdict.unit)) != verdict.record:
        context.asides[view.id, verdict.unit] = verdict.record


def _goes_on_twice(view: View) -> bool:
    """Tell whether neither side has all events of the other, so that to take both makes a fork."""
    store, workspace = (view.side(side).units[STREAM].stream for side in Side)
    return direction(store, workspace) is Direction.LEVEL


def _note_conflict(context: PlanningContext, view: View, verdict: Verdict) -> None:
    if not verdict.conflict:
        return
    conflict = conflict_of(view, verdict, context.policy)
    if conflict is not None:
        context.conflicts.append(conflict)
    if verdict.outcome is not Outcome.HELD:
        what = "both sides changed it" if verdict.case == 15 else "both sides differ"
        way = f"; {taken(conflict)}" if conflict is not None else ""
        keys = f" ({', '.join(verdict.keys)})" if verdict.keys else ""
        context.note(view.id, Reason.CONFLICT, f"{unit_text(verdict.unit)}{keys}: {what}{way}", verdict.unit)


def _report_held(context: PlanningContext, view: View, verdict: Verdict) -> None:
    take = [f"reconcile resolve {typed(view.id)} --take {side}" for side in ("store", "workspace")]
    if verdict.reason is Reason.DIVERGED_HELD:
        both = f"reconcile resolve {typed(view.id)} --take both"
        context.hold(view, verdict.unit, Reason.DIVERGED_HELD, Reason.DIVERGED_HELD.words, *take, both)
        return
    if verdict.reason is Reason.CONFLICT_HELD:
        conflict = conflict_of(view, verdict, context.policy)
        assert conflict is not None  # noqa: S101 - see the reason
        context.hold(view, verdict.unit, Reason.CONFLICT_HELD, blocked(conflict), *commands(conflict))
        return
    if verdict.reason in (Reason.CONTRADICTING, Reason.LOSING):
        context.hold(view, verdict.unit, verdict.reason, verdict.words, *take)
        return
    if verdict.reason in (Reason.GIT_BUSY, Reason.OBSTRUCTED):
        context.hold(view, verdict.unit, verdict.reason, verdict.words)
        return
    if verdict.reason is Reason.NOT_ROUND_TRIP:
        message = "its metadata is not formatted as JP writes it, so its parent can't be set there"
        context.hold(view, verdict.unit, Reason.NOT_ROUND_TRIP, message)
        return
    for unit in verdict.faulty:
        context.keep_version(unit)
        other = unit.copy.side.other
        sound = view.side(other).digest(verdict.unit) is not None
        resolve = (f"reconcile resolve {typed(view.id)} --take {other.value}",) if sound else ()
        if view.local and other is Side.STORE:  # no run writes to it
            resolve = (f"reconcile doctor --quarantine {typed(view.id)}",)
        if isinstance(unit.fault, Unreadable):  # the vault can't save it either, so that no run replaces it
            resolve = ("reconcile doctor",)
        assert unit.fault is not None  # noqa: S101 - the verdict has the faulty ones
        context.hold_file(view, verdict.unit, unit.copy, unit.fault, *resolve)
    if not verdict.faulty:
        _report_missing(context, view, verdict)


def _report_missing(context: PlanningContext, view: View, verdict: Verdict) -> None:
    whole = next(side for side in Side if view.side(side).digest(verdict.unit) is not None)
    message = f"the {whole.other} has no {unit_text(verdict.unit)}"
    context.hold(view, verdict.unit, Reason.INVALID, message, f"reconcile resolve {typed(view.id)} --take {whole}")


def _report_parent(context: PlanningContext, view: View) -> None:
    if view.id in context.edits.parents and not context.parentage[view.id].frozen:
        return  # the run writes another one
    verdict = context.verdicts.get(view.id, {}).get(METADATA)
    replaced = _REPLACES.get(verdict.outcome) if verdict is not None else None
    for side in Side:
        metadata = view.side(side).metadata
        if side is not replaced and metadata is not None and metadata.parent.kind is ParentKind.UNREADABLE:
            message = "its parent_id is not a conversation id (such as jp-c17528832001); left alone"
            context.note(view.id, Reason.PARENT_UNREADABLE, message)
            return


def _report_parted(context: PlanningContext, view: View) -> None:
    """Report that each side keeps its own partition, and record it, so that git isn't asked again."""
    record = view.split_record if view.lead is Lead.NEITHER else None
    if record is not None:
        here, there = ("archived", "live") if view.archived else ("live", "archived")
        message = f"{here} here by a commit, but {there} in the store; both are left alone"
        ways = (f"reconcile resolve {typed(view.id)} --take {side}" for side in Side)
        context.set_aside(view, WHOLE, Reason.DISPLACED, message, *ways)
    if context.baseline.asides.get((view.id, PLACE)) != record:
        context.asides[view.id, PLACE] = record


def _report_rivals(context: PlanningContext, view: View) -> None:
    for side in (view.store, view.workspace):
        for unit in side.rivals:
            message = f"{unit_text(unit.name)} in {unit.copy.place} was edited too; the newest directory wins"
            context.note(view.id, Reason.DUPLICATE_CONFLICT, message, unit.name)


def _remember(context: PlanningContext, view: View) -> None:
    """Record changes of the intent, and release records that no longer apply."""
    presence = context.presences[view.id]
    if presence.intent is not None and presence.intent != view.intent:
        # This includes a conversation that comes back in this run: after an interruption, its absence is no removal.
        context.intents[view.id] = presence.intent
        if presence.goal is not Goal.PROJECT:
            _note_intent(context, view, presence.intent)
    if view.local and (view.intent is None or view.intent.kind is not IntentKind.LOCAL):
        context.intents[view.id] = Intent(IntentKind.LOCAL)
    _bridge(context, view)
    for unit in (METADATA, STREAM):
        if (view.id, unit) in context.baseline.asides and unit not in context.verdicts.get(view.id, {}):
            context.asides[view.id, unit] = None


def _bridge(context: PlanningContext, view: View) -> None:
    """Record that a record of which every file is replaced by others belongs where it is.

    Between two steps it has no file there. After an interruption, this is neither a removal by a person nor a loss.
    """
    if context.baseline.is_of_remote:
        return
    verdicts = context.verdicts.get(view.id, {}).values()
    outcomes = {verdict.outcome for verdict in verdicts}
    for side, leaves, arrives in (
        (Side.WORKSPACE, Outcome.DROP, Outcome.TO_WORKSPACE),
        (Side.STORE, Outcome.DROP_HERE, Outcome.TO_STORE),
    ):
        dropped = {verdict.unit for verdict in verdicts if verdict.outcome is leaves}
        if not outcomes.issuperset((leaves, arrives)) or dropped != view.side(side).units.keys():
            continue
        if side is Side.WORKSPACE:
            context.intents[view.id] = Intent(IntentKind.PROJECTED)
        else:
            digests = {view.store.digest(name) for name in dropped}
            context.tombstones[view.id] = tuple(sorted(digest for digest in digests if digest is not None))


def _note_intent(context: PlanningContext, view: View, intent: Intent) -> None:
    if intent.kind is IntentKind.REMOVED:
        if context.sides.workspace_cleared and not is_for_others(view):
            return  # `report_sides` counts all of them
        trash = view.workspace.trash
        where = f"moved to {trash[-1].place}" if trash else "deleted from the workspace"
        again = restoring(view) if is_for_others(view) else f"{restoring(view)} (all that were here: reconcile recover)"
        context.note(view.id, Reason.REMOVED_HERE, f"{where}, still in the store; {again}")
    else:
        message = f"left the workspace with its parent; restored together with {intent.waits_for}"
        context.note(view.id, Reason.WAITING, message)


def is_for_others(view: View) -> bool:
    """Tell whether colleagues share the workspace: one of them may have withdrawn what went from it."""
    return view.format.places is not None and view.format.places.is_for_others


def restoring(view: View) -> str:
    """Return the commands that decide about what was deleted in the workspace, each after its purpose."""
    places = view.format.places
    command = f"reconcile {'project' if places is None else places.way_back} {typed(view.id)}"
    if is_for_others(view):
        return f"keep it private: reconcile local {typed(view.id)}; share it again: {command}"
    return f"restore it: {command}"


def report_sides(context: PlanningContext, store: Snapshot, workspace: Snapshot) -> None:
    """Report facts about the sides as wholes: emptied, replaced, cycles, foreign names, problems."""
    places, unknown = context.rules.format.places, "" in context.sides.workspace_hidden
    restores = isinstance(context.policy.request, ProjectRequest)
    if places is not None and context.sides.workspace_cleared and not (places.is_for_others or unknown or restores):
        _note_cleared(context, places)
    if context.sides.workspace_emptied and not unknown:
        what = "conversations" if places is None else f"{places.noun}s"
        ways = ["reconcile recover", *(["git checkout -- .jp"] if context.rules.format.name == "jp" else [])]
        message = f"the workspace is empty, but had {what} at the last run; nothing is treated as deleted"
        context.held.append(_whole_side(Reason.WORKSPACE_EMPTIED, message, *ways))
    if context.sides.store_replaced:
        _note_replaced(context, store)
    for cycle in context.tree.cycles:
        chain = " > ".join((*cycle, cycle[0]))
        context.note(cycle[0], Reason.CYCLE, f"its parents form a cycle: {chain}; {cycle[0]} is treated as a root")
    going: dict[Side, set[str]] = {side: set() for side in Side}
    for action in context.builder:
        if action.kind in (Kind.REMOVE, Kind.REMOVE_STALE) and action.unit == WHOLE:
            going[action.target.side].add(action.target.path)
    for side in (store, workspace):
        for foreign in side.foreign:
            what = f"{side.side}:{foreign.path}: {foreign.what}"
            if _goes_along(context, side.side, foreign.path, going[side.side]):
                context.note(None, Reason.TAKEN_ALONG, f"{what}; saved in the vault with its directory")
            else:
                unit = unit_in_copy(context.rules.format, foreign.path)
                context.note(None, Reason.FOREIGN, f"{what}; left alone", unit)
        _hold_problems(context, side)


def unit_in_copy(form: Format, path: str) -> str:
    """Return the unit that an entry would be if it could be copied; `WHOLE` if it is in no conversation's directory."""
    parts = path.split("/")
    while form.places is None and parts:
        if parts[0] in (ARCHIVE, TRASH):
            parts = parts[1:]
        elif len(parts) == 1 or form.id_of(parts[0]) is None:
            break
        elif parts[1] != CHILDREN:
            return EXTRA + "/".join(parts[1:])
        else:
            parts = parts[2:]
    return WHOLE


def _hold_problems(context: PlanningContext, side: Snapshot) -> None:
    """Hold what can't be read on a side. A file that is held with its conversation gets the cause, if it has none."""
    held = {item.place: number for number, item in enumerate(context.held) if item.place is not None}
    for problem in side.problems:
        place = Place(side.side, problem.path)
        number = held.get(place)
        is_cause = problem.message.startswith(UNREAD)
        if number is not None and is_cause and context.held[number].words == UNREAD:
            context.held[number] = replace(context.held[number], message=f"{place}: {problem.message}")
        elif number is None or problem.message not in context.held[number].message:
            message = f"{side.side}:{problem.path or '.'}: {problem.message}; left alone until it can be read"
            context.held.append(_whole_side(Reason.UNREADABLE, message))


def _note_cleared(context: PlanningContext, places: Places) -> None:
    """Note that no record is left in a workspace, with the command that brings back those of the store."""
    kept = (view.id for view in context.views.values() if view.store.main is not None and not view.local)
    count = len(set(filter(None, map(places.counted_as, kept))))  # without the files beside them
    what = f"{count} {places.noun}{'' if count == 1 else 's'}"
    them = "it" if count == 1 else "them"
    message = f"no {places.noun} is left in the workspace; the store keeps {what}; restore {them}: reconcile recover"
    context.note(None, Reason.REMOVED_HERE, message)


def _note_replaced(context: PlanningContext, store: Snapshot) -> None:
    """Note a replaced store once: the baseline records a lost store until there is one again."""
    if context.baseline.store_identity != LOST:
        context.note(None, Reason.STORE_REPLACED, Reason.STORE_REPLACED.words)
    elif store.exists:
        message = "the store was lost since the last run here; nothing is treated as deleted"
        context.note(None, Reason.STORE_REPLACED, message)


def _goes_along(context: PlanningContext, side: Side, path: str, going: Collection[str]) -> bool:
    """Tell whether the directory that contains a path is removed; it may have left a removed directory above."""
    return bool(going) and owner_of(path, context.nodes[side]) in going


def _whole_side(reason: Reason, message: str, *resolve: str) -> Item:
    return Item(conversation=None, title=None, unit=WHOLE, reason=reason, message=message, resolve=resolve)
