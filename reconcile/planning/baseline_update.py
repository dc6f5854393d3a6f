"""What was achieved becomes what is remembered: never what was meant (docs/design/run.md#rule-51)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from reconcile.model.baseline import LOST, BaselineEntry, Intent, IntentKind, Verb
from reconcile.model.plan import Kind
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import EXTRA, METADATA, STREAM, WHOLE, Metadata, ParentKind, Place, Side, joined
from reconcile.model.units import units_of
from reconcile.planning.incremental.status import adoption, by_conversation, unsettled
from reconcile.planning.rules.guards import whole_of
from reconcile.planning.rules.views import PLACE, views_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from reconcile.model.baseline import AsideRecord, Baseline, PendingRequest
    from reconcile.model.plan import Action, Plan
    from reconcile.model.snapshot import Copy, Digest, Snapshot
    from reconcile.model.units import Rules
    from reconcile.planning.rules.guards import Sides, Whole
    from reconcile.planning.rules.views import View

_UNCHOSEN = (Reason.REFILL, Reason.EXTERNAL)


class Changes(Struct):
    """What is to be written to the state; empty where nothing has to be. None takes an entry out.

    ``history`` holds, per id and unit, the digest that becomes the newest entry.
    """

    agreed: dict[str, BaselineEntry | None] = field(default_factory=dict)
    history: dict[tuple[str, str], Digest] = field(default_factory=dict)
    parents: dict[str, str | None] = field(default_factory=dict)
    intents: dict[str, Intent | None] = field(default_factory=dict)
    asides: Mapping[tuple[str, str], AsideRecord | None] = field(default_factory=dict)
    tombstones: dict[str, tuple[Digest, ...] | None] = field(default_factory=dict)
    waiting: Mapping[tuple[str, Verb], PendingRequest | None] = field(default_factory=dict)
    store_identity: str | None = None
    store_lost: bool = False
    """The store that other checkouts know is no more."""
    layout: str | None = None


def update_baseline(
    store: Snapshot,
    workspace: Snapshot,
    baseline: Baseline,
    plan: Plan,
    rules: Rules,
    undone: Collection[str] = (),
    whole: Whole | None = None,
) -> Changes:
    """Return the changes of memory after a run, from new scans of both sides.

    A baseline is written only for units that both sides hold equal; everything else stays as it was. So does what is
    remembered of all that the plan isn't about: what is there isn't what would have been concluded. ``undone`` are the
    ids of actions that were not carried out after all: what they were for is still due, and not agreed on.
    ``whole`` is given where the scans and the memory are those of a part.
    """
    sides = (whole or whole_of(store, workspace, baseline, rules.format)).sides
    run = _run_of(plan, undone, baseline, (store, workspace), rules, sides)
    changes = Changes(intents=dict(plan.intents), asides=dict(plan.asides), tombstones=dict(plan.tombstones))
    touched = {action.conversation for action in plan.actions} | baseline.tombstones.keys()
    there = {copy.conversation for copy in (*store.copies, *workspace.copies)}
    found = unsettled(store, workspace, baseline, rules) | (touched & there)
    others = {each for each in found if not _is_about(plan, each)}
    left = _adopt(store, workspace, found - others, run, changes)
    buried = {conversation for conversation, digests in plan.tombstones if digests}
    for view in views_of(store, workspace, baseline, rules, left | others, places=dict(plan.places)).values():
        if view.id in others:
            _fold_other(view, run, changes)
        elif _is_gone(view, buried):
            # What is still due may be due because this one is gone.
            if not undone and (_may_forget(view, plan, sides) or view.id in baseline.tombstones):
                changes.agreed[view.id] = None
                if view.intent is not None and view.intent.kind is not IntentKind.LOCAL:
                    changes.intents[view.id] = None
        elif view.store.main is not None:
            _fold_one(view, run, changes)
    saved = {copy.conversation for copy in store.copies}
    changes.agreed |= {conversation: None for conversation in plan.voided if conversation not in saved}
    _fold_whole(store, baseline, plan, sides, changes)
    _fold_partitions(baseline, plan, undone, changes)
    if baseline.waiting:
        _fold_requests((store, workspace), run, plan, sides, changes)
    changes.intents = {key: intent for key, intent in changes.intents.items() if baseline.intents.get(key) != intent}
    return changes


def brought(plan: Plan) -> frozenset[str]:
    """Return the conversations that a plan saves into a store that lacks them."""
    return frozenset(
        action.conversation for action in plan.actions if action.kind is Kind.COPY and action.unit == WHOLE
    )


def _fold_requests(snapshots: tuple[Snapshot, Snapshot], run: _Run, plan: Plan, sides: Sides, changes: Changes) -> None:
    """End the requests that are carried out; a decision of `resolve` waits only while something of it was put off."""
    from reconcile.planning.requests.edits import is_due, is_unseen  # here: most runs find no request that waits

    baseline, rules = run.baseline, run.rules
    there = {copy.conversation for snapshot in snapshots for copy in snapshot.copies}.union(baseline.agreed)
    views = views_of(*snapshots, baseline, rules, {each for each, _ in baseline.waiting if each in there})
    put_off = plan.put_off.union(conversation for conversation, _ in run.unwritten)
    ended: dict[tuple[str, Verb], PendingRequest | None] = {}
    for (conversation, verb), waiting in baseline.waiting.items():
        view = views.get(conversation)
        parent = changes.parents.get(conversation, baseline.parents.get(conversation))
        due = view is not None and is_due(view, verb, waiting, parent, sides, rules)
        if due and view is not None and verb is Verb.RESOLVE and _is_about(plan, conversation):
            due = conversation in put_off or is_unseen(view, sides)
        if not due:
            ended[conversation, verb] = None
    changes.waiting = ended


def _is_about(plan: Plan, conversation: str) -> bool:
    """Tell whether the plan has concluded something of a conversation."""
    return (plan.about is None or conversation in plan.about) and conversation not in plan.moving


def _fold_partitions(baseline: Baseline, plan: Plan, undone: Collection[str], changes: Changes) -> None:
    """Remember which commits' partition the store's has replaced: where git puts that back, it is an older one."""
    for action in plan.actions:
        found = baseline.committed.get(action.conversation)
        moved = action.kind in (Kind.ARCHIVE, Kind.UNARCHIVE) and action.id not in undone
        if moved and found is not None and action.source == Place(Side.WORKSPACE, found.place):
            changes.history[action.conversation, PLACE] = found.since


def _fold_whole(store: Snapshot, baseline: Baseline, plan: Plan, sides: Sides, changes: Changes) -> None:
    """Remember what concerns a side as a whole; a limited run has not carried it out for the others.

    A store that is lost still, is lost for every checkout. One that was renewed is known once nothing was left out, and
    the workspace says what is still there of what it had.
    """
    changes.store_lost = sides.store_emptied or plan.store_lost
    whole = plan.about is None and not (sides.store_renewed and (plan.moving or sides.workspace_emptied))
    if whole or baseline.store_identity is None or sides.store_emptied:
        known = baseline.store_identity is not None
        identity = store.identity if store.exists and not sides.store_emptied else LOST if known else None
        if identity != baseline.store_identity:
            changes.store_identity = identity
    if baseline.layout != plan.layout and plan.about is None:
        changes.layout = plan.layout


def _fold_other(view: View, run: _Run, changes: Changes) -> None:
    """Remember what the plan wasn't about: where it lies if it was carried along, and what JP may strip any time."""
    workspace = view.workspace.main
    if workspace is not None and view.agreed is not None and view.id in run.carried:
        changes.agreed[view.id] = replace(view.agreed, place=workspace.path)
    if view.store.main is not None and (workspace is None or view.agreed is not None):
        _remember_parent(view, run, changes)
    _remember_legacy(view, changes)


def _remember_parent(view: View, run: _Run, changes: Changes) -> str | None:
    parent = _parent(view, run)
    if run.baseline.parents.get(view.id) != parent:
        changes.parents[view.id] = parent
    return parent


def _remember_legacy(view: View, changes: Changes) -> bool:
    legacy = view.store.metadata is not None and view.store.metadata.local
    if legacy and view.local:
        changes.intents[view.id] = Intent(IntentKind.LOCAL)
    return legacy


def _is_gone(view: View, buried: Collection[str]) -> bool:
    """Tell whether neither side has it, but for an archived copy of what was removed: that one is nobody's baseline."""
    return view.workspace.main is None and (view.store.main is None or (view.id in buried and view.archived))


def _from_vault(plan: Plan) -> frozenset[tuple[str, str]]:
    """Return the units that `undo` and `restore` have put into the store."""
    put = {
        (action.conversation, unit)
        for action in plan.actions
        if action.target.side is Side.STORE and any(write.kept is not None for write in action.writes)
        for unit in ((METADATA, STREAM) if action.unit == WHOLE else (action.unit,))
    }
    return frozenset(put)


def _as_written(
    plan: Plan, kind: Kind, undone: Collection[str], target: Snapshot, rules: Rules
) -> frozenset[tuple[str, str | None]]:
    """Return the units that were copied from one side to the other, and are there as they were written."""
    copied = [
        action
        for action in plan.actions
        if action.kind is kind and action.id not in undone and not (kind is Kind.COPY and _is_created(action))
    ]
    wanted = {action.conversation for action in copied}
    there = {
        joined(copy.path, file.name): file.digest
        for copy in target.copies
        if copy.conversation in wanted
        for file in copy.files
    }
    return frozenset(
        (action.conversation, unit)
        for action in copied
        if all(there.get(write.target.path) == write.digest for write in action.writes)
        for unit in _units_written(action, rules)
    )


def _units_written(action: Action, rules: Rules) -> set[str | None]:
    if action.unit != WHOLE:
        return {action.unit}
    start = len(action.target.path) + 1
    return {rules.format.unit_of(write.target.path[start:]) for write in action.writes}


def _is_created(action: Action) -> bool:
    """Tell whether something that is saved was on neither side before: what the library writes is still to be given."""
    return any(write.source is None or write.source.side is not Side.WORKSPACE for write in action.writes)


def _may_forget(view: View, plan: Plan, sides: Sides) -> bool:
    """Tell whether a conversation that is on neither side is forgotten (docs/design/guards.md#rule-39)."""
    if view.agreed is None or view.store.trashed or plan.about is not None:
        return False
    return sides.may_forget(view.id, view.agreed.place)


class _Run(Struct, frozen=True, kw_only=True):
    """What the fold of one conversation depends on besides its view; all but the first two are the plan's."""

    baseline: Baseline
    rules: Rules
    displaced: frozenset[str]
    places_none: bool
    """The plan is none of the planner's, which alone says where a directory belongs."""
    rooted: frozenset[str]
    written: frozenset[tuple[str, str]]
    chosen: frozenset[tuple[str, str]]
    """What of that was preferred to another version; what a side only lacked may be newer in another checkout."""
    kept: frozenset[tuple[str, str]]
    """Units that the store got from the vault: they are its newest ones, whatever the workspace has."""
    given: frozenset[tuple[str, str | None]]
    """Units of the workspace that are as this run has projected them, whatever the store has by now."""
    saved: frozenset[tuple[str, str | None]]
    """Units of the store that are as this run has copied them from the workspace, whatever that has by now."""
    unwritten: frozenset[tuple[str, str]]
    doubled: frozenset[str]
    unmoved: frozenset[str]
    carried: frozenset[str]
    """Conversations of which a directory was to be moved, written or removed, alone or with the one that it is in."""
    renewed: bool
    """The store isn't the one that was agreed with: what it lacks was never agreed on."""

    @property
    def special(self) -> frozenset[str]:
        """The conversations of which what the run has left undone, or still has to, says more than that both sides are
        equal.
        """
        return frozenset([key for key, _ in self.unwritten] + [key for _, key in self.baseline.renames])

    def becomes_newest(self, conversation: str, unit: str, digest: Digest) -> bool:
        """Tell whether a content that both sides hold is a new version, or an old one that this run has chosen.

        An old version that somebody else put on both sides stays old: the history goes on from the newest one.
        """
        known = self.baseline.history.get((conversation, unit), ())
        chosen = not self.chosen.isdisjoint({(conversation, unit), (conversation, WHOLE)})
        return digest not in known or (chosen and known[-1] != digest)


def _run_of(
    plan: Plan, undone: Collection[str], baseline: Baseline, snapshots: Sequence[Snapshot], rules: Rules, sides: Sides
) -> _Run:
    store, workspace = snapshots
    left = [action for action in plan.actions if action.id in undone]
    return _Run(
        baseline=baseline,
        rules=rules,
        displaced=plan.displaced,
        places_none=plan.policy.request is not None and plan.policy.tree_edit is None,
        rooted=frozenset(plan.rooted),
        written=frozenset((action.conversation, action.unit) for action in plan.actions),
        chosen=frozenset((each.conversation, each.unit) for each in plan.actions if each.reason not in _UNCHOSEN),
        kept=_from_vault(plan),
        given=_as_written(plan, Kind.PROJECT, undone, workspace, rules),
        saved=_as_written(plan, Kind.COPY, undone, store, rules),
        unwritten=frozenset((action.conversation, action.unit) for action in left),
        doubled=frozenset(action.conversation for action in left if action.kind is Kind.REMOVE_STALE),
        carried=frozenset(each for action in plan.actions for each in action.touches),
        unmoved=frozenset(action.conversation for action in left if action.kind is Kind.MOVE),
        renewed=sides.store_renewed,
    )


def _adopt(
    store: Snapshot, workspace: Snapshot, conversations: Collection[str], run: _Run, changes: Changes
) -> set[str]:
    """Remember what is alike on both sides and was not known before, at a glance; return what is left."""
    special = run.special
    kept, here = by_conversation(store), by_conversation(workspace)
    left = set()
    for conversation in conversations:
        ours, theirs = kept.get(conversation, ()), here.get(conversation, ())
        agreed = None
        if len(ours) == len(theirs) == 1 and conversation not in special:
            agreed = adoption(*ours, *theirs, run.baseline, run.rules)
        if agreed is None:
            left.add(conversation)
            continue
        changes.agreed[conversation] = agreed
        if run.baseline.parents.get(conversation) != agreed.parent:
            changes.parents[conversation] = agreed.parent
        for unit, digest in agreed.units.items():
            if run.becomes_newest(conversation, unit, digest):
                changes.history[conversation, unit] = digest
    return left


def _fold_one(view: View, run: _Run, changes: Changes) -> None:
    """Remember one conversation of the store: its parent, and what it has in common with the workspace."""
    parent = _remember_parent(view, run, changes)
    legacy = _remember_legacy(view, changes)
    workspace = view.workspace.main
    if view.id in run.baseline.tombstones:
        changes.tombstones[view.id] = None
    for name in (METADATA, STREAM):
        digest = view.store.digest(name)
        known = run.baseline.history.get((view.id, name), ())
        if digest is not None and (view.id, name) in run.kept and known and known[-1] != digest:
            changes.history[view.id, name] = digest
    if workspace is None:
        _remember_saved(view, run, changes)
        return
    agreed = _agreed(view, workspace, parent, run, changes)
    if agreed is not None and agreed != view.agreed:
        changes.agreed[view.id] = agreed
    if view.intent is not None and not legacy and _is_back(view):
        changes.intents[view.id] = None


def _is_back(view: View) -> bool:
    """Tell whether what is in the workspace ends an intent."""
    assert view.intent is not None  # noqa: S101 - the caller asked
    if view.intent.keeps_away:
        return view.workspace.has(view.format.required)
    return view.intent.kind is not IntentKind.LOCAL


def _remember_saved(view: View, run: _Run, changes: Changes) -> None:
    """Note the extras that were saved before the directory went: they were in the workspace, and come back with it."""
    saved = {
        name: digest
        for name in view.store.units
        if name.startswith(EXTRA) and (view.id, name) in run.written - run.unwritten - run.kept
        if (digest := view.store.digest(name)) is not None
    }
    if view.agreed is not None and saved.items() - view.agreed.units.items():
        changes.agreed[view.id] = replace(view.agreed, units={**view.agreed.units, **saved})


def _agreed(view: View, workspace: Copy, parent: str | None, run: _Run, changes: Changes) -> BaselineEntry | None:
    """Return the new baseline: units that both hold equal, and what follows from equal metadata."""
    assert view.store.main is not None  # noqa: S101 - the caller asked
    ours, theirs = units_of(view.store.main, run.rules, None), units_of(workspace, run.rules, None)
    # An extra that was removed from the workspace is the store's alone from now on: nothing puts it there again.
    before_it = _units_before(view)
    lasts = run.rules.format.places is not None
    there = {n for n in before_it if n in theirs or (n in ours and (lasts or not n.startswith(EXTRA)))}
    there = there & ours.keys() if run.renewed else there
    units = {name: digest for name, digest in before_it.items() if name in there}
    for name, unit in theirs.items():
        said = {unit.digest, view.store.raw(name), view.workspace.raw(name)}
        if unit.digest is None or name not in ours or view.id in run.doubled or (view.id, name) in run.unwritten:
            continue  # a duplicate that still has another content would be taken for an edit
        stored = ours[name].digest
        # Where somebody has written to a side since: both had the same when this was copied to the other.
        saved = stored == view.store.raw(name) and (view.id, name) in run.saved
        if stored is not None and (saved or {stored} == said):
            units[name] = stored
            if run.becomes_newest(view.id, name, stored):
                changes.history[view.id, name] = stored
        elif (view.id, name) in run.given and view.workspace.raw(name) == unit.digest:
            units[name] = unit.digest
    before = view.agreed
    # Of a directory with nothing but extras nothing is agreed on: it would be taken for what is left of one.
    sound = lasts or any(unit.digest is not None for name, unit in theirs.items() if not name.startswith(EXTRA))
    if not units or (before is None and not sound):
        return None
    in_sync = METADATA in ours and METADATA in theirs and ours[METADATA].digest == theirs[METADATA].digest
    elsewhere = run.places_none or view.id in run.displaced
    return BaselineEntry(
        units=units,
        parent=parent if in_sync or before is None else before.parent,
        title=_title(view, workspace, run) if before is None or in_sync else before.title,
        container=before.container if before is not None and elsewhere else workspace.container,
        place=workspace.path,
    )


def _title(view: View, workspace: Copy, run: _Run) -> str | None:
    """Return the title that the directories are named by: a rename that was held or skipped is still due."""
    title = view.store.metadata.title if view.store.metadata is not None else None
    name = run.rules.format.dirname(view.id, title)
    assert view.store.main is not None  # noqa: S101 - the caller asked
    unnamed = [copy.side for copy in (view.store.main, workspace) if copy.dirname != name]
    if view.agreed is None or METADATA not in view.agreed.units:
        # A first run that was cut short before a rename may be followed by one that isn't about it.
        due = view.id in run.unmoved or any((side, view.id) in run.baseline.renames for side in unnamed)
        return None if due else title
    return view.agreed.title if unnamed else title


def _units_before(view: View) -> Mapping[str, Digest]:
    return view.agreed.units if view.agreed is not None else {}


def _parent(view: View, run: _Run) -> str | None:
    """Return the parent as the store's metadata states it; an absent key leaves the one known."""
    assert view.store.main is not None  # noqa: S101 - the caller asked
    metadata = view.store.main.metadata
    if not isinstance(metadata, Metadata) or metadata.parent.kind is ParentKind.UNREADABLE:
        return view.known_parent
    if metadata.parent.kind is ParentKind.ABSENT:
        return None if view.id in run.rooted else view.known_parent
    return metadata.parent.id
