"""The decisions about every conversation before any step is planned (docs/design/decisions.md).

The order: the view (`rules.views`), presence (`rules.presence`), content (`rules.content`), parent (`rules.tree`), and
the directory that stays (`steps.placement`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.model.commands import typed
from reconcile.model.options import Take
from reconcile.model.policy import ProjectRequest
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import METADATA, STREAM, ParentKind, Side
from reconcile.model.units import units_of
from reconcile.planning.builder import nodes_of
from reconcile.planning.context import NAMED, Edits, PlanningContext
from reconcile.planning.filters import with_undone_conflicts
from reconcile.planning.rules.content import (
    Outcome,
    Verdict,
    beside_older_stream,
    decide_carried,
    decide_units,
    waiting,
)
from reconcile.planning.rules.guards import whole_of
from reconcile.planning.rules.presence import Goal, Presence, decide_presence, missing_side
from reconcile.planning.rules.shapes import collisions, two_shapes
from reconcile.planning.rules.tree import Parentage, TreeIndex, decide_parent, states
from reconcile.planning.rules.views import Lead, views_of, without_speakers
from reconcile.planning.steps.content import final_metadata, keeps_directories, merged_metadata, stated_content
from reconcile.planning.steps.derived import due_first, rebuild_first, with_repairs
from reconcile.planning.steps.placement import choose_directories

if TYPE_CHECKING:
    from reconcile.model.baseline import Baseline
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Snapshot
    from reconcile.model.units import Rules, Unit
    from reconcile.planning.rules.guards import Whole
    from reconcile.planning.rules.views import View

_LEADS = {Take.STORE: Lead.STORE, Take.WORKSPACE: Lead.WORKSPACE, Take.KEEP: Lead.NEITHER}


def decide(
    store: Snapshot,
    workspace: Snapshot,
    baseline: Baseline,
    policy: Policy,
    rules: Rules,
    now_ns: int,
    edits: Edits | None = None,
    whole: Whole | None = None,
) -> PlanningContext:
    """Decide presence, content and parent of every conversation; no step is planned yet.

    ``whole`` is given if the snapshots and the baseline are those of a part (`reconcile.planning.incremental.scope`).
    """
    edits = edits or Edits()
    scanned, repairs = workspace, due_first(workspace, baseline, policy, rules)
    workspace = with_repairs(workspace, repairs, rules, now_ns) if repairs else workspace
    whole = whole or whole_of(store, workspace, baseline, rules.format)
    if _recovers(policy):
        whole = replace(whole, sides=replace(whole.sides, workspace_emptied=False))
    before, baseline = baseline, edits.applied_to(baseline)
    if repairs:  # repaired data isn't old, even if the history says so
        right = {repair.path for repair in repairs}
        baseline = replace(
            baseline, history={key: digests for key, digests in baseline.history.items() if key[0] not in right}
        )
    baseline = with_undone_conflicts(baseline, workspace, rules)
    views = views_of(store, workspace, baseline, rules, leaving=edits.leaving)
    decided = (
        (conversation, _LEADS.get(take)) for conversation, take in policy.decisions.items() if conversation in views
    )
    views |= {
        conversation: replace(views[conversation], lead=lead)
        for conversation, lead in decided
        if lead and views[conversation].has_split_archive
    }
    nodes = {Side.STORE: nodes_of(store), Side.WORKSPACE: nodes_of(workspace)}
    context = PlanningContext(
        views=views,
        baseline=baseline,
        policy=policy,
        rules=rules,
        sides=whole.sides,
        whole=whole,
        now_ns=now_ns,
        program=workspace.derived_inputs,
        nodes=nodes,
        tree=TreeIndex({}, rules.format.order),
        edits=edits,
        repairs=repairs,
        held=list(edits.held),
        notes=list(edits.notes),
        asides={key: None for key in before.asides if key not in baseline.asides},
        reviewed=frozenset(conversation for conversation, _ in baseline.asides),
    )
    rebuild_first(context, scanned)
    for view in views.values():
        _decide_one(context, view)
    if rules.format.places is not None:
        _make_way(context)
    live = {view.id: context.parentage[view.id].parent for view in views.values() if _is_live(context, view)}
    live |= {conversation: container for conversation, container in edits.apart.items() if conversation in live}
    context.tree = TreeIndex(live, rules.format.order)
    walked = tuple(context.tree.walk())
    context.order = walked + tuple(conversation for conversation in views if conversation not in live)
    context.frozen = _frozen(context)
    choose_directories(context)
    return context


def _make_way(context: PlanningContext) -> None:
    """Decide about records of which one side has a file in the place of the other side's directory.

    What a run removes from the workspace makes room there. What was removed from the workspace stays in the store: only
    a person can tell that the new record has replaced it. So the file is held, and what would join it waits.
    """
    views = context.views.values()
    here = {view.id for view in views if view.store.main is None and view.workspace.main is not None}
    kept = {view.id for view in views if view.store.main is not None and view.workspace.main is None}
    met: dict[str, set[str]] = {}
    for one, other in collisions(here, kept):
        met.setdefault(min(one, other, key=len), set()).update((one, other))
    for file, records in met.items():
        goals = {record: context.presences[record].goal for record in records}
        room = sorted(record for record in records & here if goals[record] is Goal.REMOVE)
        arriving = [record for record in records if goals[record] in (Goal.IMPORT, Goal.PROJECT)]
        if len(room) == len(records & here):
            context.making_room.update((record, room) for record in records & kept)
            continue
        if not arriving:
            continue
        unwanted = () if kept & set(arriving) else sorted(records & kept)
        ways = (f"reconcile rm {typed(*unwanted)}",) if 0 < len(unwanted) <= NAMED else ()
        words = two_shapes(is_file_in_store=file in kept)
        asked = context.edits.requested
        told = {record for record in (file, *(records & asked)) if goals[record] is not Goal.REMOVE}
        for record in told.union(arriving):
            goal, reason = (Goal.HELD, Reason.OBSTRUCTED) if record in told else (Goal.NOTHING, None)
            context.presences[record] = replace(context.presences[record], goal=goal, reason=reason)
        context.two_shapes.update(dict.fromkeys(told, (words, *ways)))


def _frozen(context: PlanningContext) -> frozenset[str]:
    """Return the conversations that may not move, with everything below them (docs/design/placement.md#rule-7)."""
    frozen = {conversation for conversation, parentage in context.parentage.items() if parentage.frozen}
    for conversation in context.tree.walk():
        if context.tree.parent_of(conversation) in frozen:
            frozen.add(conversation)
    return frozenset(frozen)


def _decide_one(context: PlanningContext, view: View) -> None:
    presence = _presence(context, view)
    context.presences[view.id] = presence
    units: dict[str, Verdict] = {}
    if presence.goal is Goal.SYNC:
        verdicts = decide_units(view, context.baseline, context.policy, context.sides)
        if older := {verdict.unit for verdict in verdicts if verdict.outcome is Outcome.BEHIND}:
            view = context.views[view.id] = without_speakers(view, older)
            verdicts = decide_units(view, context.baseline, context.policy, context.sides)
        verdicts = tuple([_with_metadata(view, verdict) for verdict in verdicts])
        if any(v.unit == STREAM and v.outcome is Outcome.BEHIND for v in verdicts):
            verdicts = tuple(
                beside_older_stream(view, verdict, context.baseline, context.policy) for verdict in verdicts
            )
        units = context.verdicts[view.id] = {verdict.unit: verdict for verdict in verdicts}
    elif view.workspace.main is None:
        verdicts = decide_carried(view, context.baseline, context.policy)
        units = context.verdicts[view.id] = {verdict.unit: verdict for verdict in verdicts}
    metadata, stream = units.get(METADATA), units.get(STREAM)
    context.parentage[view.id] = decide_parent(view, metadata, is_of_remote=context.baseline.is_of_remote)
    if metadata is not None and metadata.outcome is Outcome.MERGED:
        metadata = units[METADATA] = _with_parent(view, metadata, context.parentage[view.id].parent)
    if view.id in context.edits.parents:
        _reparent(context, view)
    if is_unchanged(context, view):
        context.unchanged.add(view.id)
    else:
        _check_editable(context, view, metadata)
        if presence.goal is Goal.HELD or (stream is not None and stream.outcome in (Outcome.BEHIND, Outcome.HELD)):
            context.parentage[view.id] = Parentage(context.parentage[view.id].parent, frozen=True)
        if view.store.stale or view.workspace.stale:
            _wait_for_decision(context, view)


def is_unchanged(context: PlanningContext, view: View) -> bool:
    """Tell whether both sides have one directory each, with the same units, and metadata that states the parent.

    Then no content step and no report has anything to do. If in doubt, return False: each step checks for itself.
    """
    store, workspace = view.store, view.workspace
    if context.presences[view.id].goal is not Goal.SYNC or store.units.keys() != workspace.units.keys():
        return False
    if store.stale or workspace.stale or view.local or view.lead is not Lead.STORE:
        return False
    if view.id in context.edits.leaving or view.id in context.reviewed:
        return False
    if any(verdict.outcome is not Outcome.NOTHING for verdict in context.verdicts[view.id].values()):
        return False
    parent = context.parentage[view.id].parent
    return all(
        stated is not None and stated.parent.kind is not ParentKind.UNREADABLE and states(stated, parent)
        for stated in (store.metadata, workspace.metadata)
    )


def _recovers(policy: Policy) -> bool:
    return isinstance(policy.request, ProjectRequest) and policy.request.records is not None


def _presence(context: PlanningContext, view: View) -> Presence:
    presence = decide_presence(view, context.views, context.baseline, context.policy, context.sides)
    if view.id in context.edits.deleted:
        return Presence(Goal.REMOVE, presence.case, "removed", context.edits.deleted[view.id])
    if presence.goal in (Goal.IMPORT, Goal.PROJECT, Goal.WAIT) and missing_side(view, context.policy):
        return replace(presence, goal=Goal.NOTHING, intent=None)
    if view.id in context.edits.requested and presence.goal is Goal.PROJECT:
        recorded = _recovers(context.policy) and view.agreed is not None
        return replace(presence, reason=Reason.RECOVERED if recorded else Reason.ASKED)
    return presence


def _reparent(context: PlanningContext, view: View) -> None:
    """Set the requested parent, unless the metadata must be decided first."""
    if context.parentage[view.id].frozen:
        context.hold(
            view, METADATA, Reason.UNSETTLED, "its metadata is blocked; resolve that first, then set the parent"
        )
    else:
        context.parentage[view.id] = Parentage(context.edits.parents[view.id])


def _wait_for_decision(context: PlanningContext, view: View) -> None:
    """Make all units of a conversation wait if one is undecided and it has several directories.

    All directories stay until then. Otherwise a version that lost now would be authoritative again in every run.
    """
    verdicts = context.verdicts.get(view.id, {})
    for unit in _broken_duplicates(context, view):
        verdict = verdicts.get(unit.name) or Verdict(unit.name, None, Outcome.HELD)
        faulty = (*(other for other in verdict.faulty if other.copy is not unit.copy), unit)
        verdicts[unit.name] = Verdict(unit.name, verdict.case, Outcome.HELD, Reason.INVALID, faulty=faulty)
    if keeps_directories(verdicts.values()):
        context.verdicts[view.id] = {unit: waiting(verdict) for unit, verdict in verdicts.items()}
        context.parentage[view.id] = Parentage(context.parentage[view.id].parent, frozen=True)


def _broken_duplicates(context: PlanningContext, view: View) -> list[Unit]:
    """Return the invalid units in directories that should be removed; those stay (docs/design/decisions.md#rule-16)."""
    saved = view.store.main is not None or context.presences[view.id].goal is Goal.IMPORT
    if not saved or view.id in context.policy.decisions:
        return []
    copies = (*view.store.stale, *(() if view.local else view.workspace.stale))
    units = [unit for copy in copies for unit in units_of(copy, context.rules, None).values()]
    return [unit for unit in units if unit.fault is not None and not unit.fault.incomplete]


def _with_metadata(view: View, verdict: Verdict) -> Verdict:
    """Hold a fork if no side has metadata."""
    if verdict.forks is None or view.store.metadata or view.workspace.metadata:
        return verdict
    return replace(verdict, outcome=Outcome.HELD, reason=Reason.DIVERGED_HELD, forks=None)


def _with_parent(view: View, verdict: Verdict, parent: str | None) -> Verdict:
    """Return a verdict whose merged metadata states the decided parent: after a kill, no other one is written."""
    merged = merged_metadata(view, verdict)
    if states(merged, parent):
        return verdict
    return replace(verdict, content=view.format.with_parent(merged.content, parent) or merged.content)


def _check_editable(context: PlanningContext, view: View, verdict: Verdict | None) -> None:
    """Hold metadata that needs another parent but can't be edited byte for byte (docs/design/decisions.md#rule-18)."""
    if context.parentage[view.id].frozen:
        return
    final = final_metadata(view, verdict)
    parent = context.parentage[view.id].parent
    if final is None or states(final, parent) or stated_content(context, view, final) is not None:
        return
    held = Verdict(METADATA, verdict.case if verdict else None, Outcome.HELD, Reason.NOT_ROUND_TRIP)
    context.verdicts.setdefault(view.id, {})[METADATA] = held
    context.parentage[view.id] = Parentage(parent, frozen=True)


def _is_live(context: PlanningContext, view: View) -> bool:
    """Tell whether it is in the tree: live in the store, or about to be imported from the workspace."""
    goal = context.presences[view.id].goal
    there = view.store.main is not None or goal in (Goal.IMPORT, Goal.HELD)
    return there and not view.archived
