"""The baseline update after a run: it records achieved results, never intentions (docs/design/run.md#rule-51)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from reconcile.model.baseline import LOST, BaselineEntry, Intent, IntentKind, Verb
from reconcile.model.plan import Kind
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import EXTRA, METADATA, STREAM, WHOLE, Metadata, ParentKind, Place, Side, joined
from reconcile.model.units import units_of
from reconcile.planning.filters import REQUESTED
from reconcile.planning.incremental.status import adoption, by_conversation, dirty_conversations
from reconcile.planning.rules.guards import was_read, whole_of
from reconcile.planning.rules.shapes import collisions
from reconcile.planning.rules.views import PLACE, views_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from reconcile.model.baseline import AsideRecord, Baseline, PendingRequest
    from reconcile.model.plan import Action, Plan
    from reconcile.model.snapshot import Copy, Digest, Snapshot
    from reconcile.model.units import Rules
    from reconcile.planning.rules.guards import Sides, Whole
    from reconcile.planning.rules.views import View

_UNCHOSEN = (Reason.REFILL, Reason.EXTERNAL)


class Changes(Struct):
    """The changes to write to the state; empty if nothing changes. None removes an entry.

    ``history`` has, per id and unit, the digest that becomes the newest entry.
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
    """The store that other checkouts know no longer exists."""
    layout: str | None = None
    known_clean: set[str] = field(default_factory=set)
    """The conversations that are clean after these changes (`reconcile.planning.incremental.status`)."""
    contents: dict[tuple[str, Digest], bytes] = field(default_factory=dict)
    """By id and digest, the metadata that was agreed on: a later merge needs it."""


LARGEST_KEPT = 64 << 10
"""The greatest size in bytes of metadata that is kept for a merge."""


def update_baseline(
    store: Snapshot,
    workspace: Snapshot,
    baseline: Baseline,
    plan: Plan,
    rules: Rules,
    undone: Collection[str] = (),
    whole: Whole | None = None,
) -> Changes:
    """Return the changes of the baseline after a run, from new scans of both sides.

    A baseline entry is written only for units that are equal on both sides; everything else stays as it was. Nothing
    changes for conversations that the plan isn't about, because the run has concluded nothing about them. ``undone``
    are the ids of actions that were not carried out: their targets are still due, and not agreed on. ``whole`` is given
    if the scans and the baseline are those of a part.
    """
    removed = {conversation: digests for conversation, digests in plan.tombstones if digests}
    if whole is None:  # a side from which a command has removed the last conversation was not emptied
        known = replace(baseline, tombstones={**baseline.tombstones, **removed})
        whole = whole_of(store, workspace, known, rules.format)
    sides = whole.sides
    run = _run_of(plan, undone, baseline, rules, sides)
    changes = Changes(intents=dict(plan.intents), asides=dict(plan.asides), tombstones=dict(plan.tombstones))
    touched = {action.conversation for action in plan.actions} | baseline.tombstones.keys() | run.restored
    there = {copy.conversation for copy in (*store.copies, *workspace.copies)}
    changed = dirty_conversations(store, workspace, baseline, rules) | (touched & there)
    others = {conversation for conversation in changed if not _is_about(plan, conversation)}
    left = _adopt(store, workspace, changed - others, run, changes)
    if left:
        projected = _as_written(plan, Kind.PROJECT, undone, workspace, rules, left)
        run = replace(run, projected=projected, saved=_as_written(plan, Kind.COPY, undone, store, rules, left))
    for view in views_of(store, workspace, baseline, rules, left | others, places=dict(plan.places)).values():
        if view.id in others:
            _record_other(view, run, changes)
        elif _is_gone(view, removed):
            # A step that is still due may be due because this conversation is gone.
            if not undone and (_may_forget(view, plan, sides) or view.id in baseline.tombstones):
                changes.agreed[view.id] = None
                if view.intent is not None and view.intent.kind is not IntentKind.LOCAL:
                    changes.intents[view.id] = None
        elif view.store.main is not None:
            _record_conversation(view, run, changes)
        elif view.id in run.unremoved and run.baseline.tombstones.get(view.id) == frozenset(removed.get(view.id, ())):
            changes.tombstones[view.id] = None  # no run would import it any more if the request ends
    saved = {copy.conversation for copy in store.copies}
    changes.agreed |= {conversation: None for conversation in plan.voided if conversation not in saved}
    _record_whole((store, workspace), run, plan, sides, changes)
    _record_partitions(baseline, plan, undone, changes)
    if baseline.waiting:
        _record_requests((store, workspace), run, plan, sides, changes)
    changes.intents = {key: intent for key, intent in changes.intents.items() if baseline.intents.get(key) != intent}
    return changes


def brought(plan: Plan) -> frozenset[str]:
    """Return the conversations that a plan saves from the workspace into a store that lacks them.

    A run has removed what `undo` and `restore` put back from the vault, so that its absence is no loss of the store.
    Tombstones say the same of other removals. An empty store is known as lost without this (`Plan.store_lost`).
    """
    return frozenset(
        action.conversation
        for action in plan.actions
        if action.kind is Kind.COPY and action.unit == WHOLE and all(write.kept is None for write in action.writes)
    )


def _record_requests(
    snapshots: tuple[Snapshot, Snapshot], run: _Run, plan: Plan, sides: Sides, changes: Changes
) -> None:
    """End the requests that are carried out; a decision of `resolve` waits only while a part of it was put off."""
    from reconcile.planning.requests.edits import is_due, is_unseen  # here: most runs find no request that waits

    baseline, rules = run.baseline, run.rules
    there = {copy.conversation for snapshot in snapshots for copy in snapshot.copies}.union(baseline.agreed)
    views = views_of(
        *snapshots, baseline, rules, {conversation for conversation, _ in baseline.waiting if conversation in there}
    )
    put_off = plan.put_off.union(run.restored, (conversation for conversation, _ in run.unwritten))
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
    """Tell whether the plan has concluded something about a conversation."""
    return (plan.about is None or conversation in plan.about) and conversation not in plan.moving


def _record_partitions(baseline: Baseline, plan: Plan, undone: Collection[str], changes: Changes) -> None:
    """Record which commits' partition the store has replaced: if git restores that one, it is older."""
    for action in plan.actions:
        committed = baseline.committed.get(action.conversation)
        moved = action.kind in (Kind.ARCHIVE, Kind.UNARCHIVE) and action.id not in undone
        if moved and committed is not None and action.source == Place(Side.WORKSPACE, committed.place):
            changes.history[action.conversation, PLACE] = committed.since


def _record_whole(snapshots: tuple[Snapshot, Snapshot], run: _Run, plan: Plan, sides: Sides, changes: Changes) -> None:
    """Record the facts about a side as a whole; a limited run has not applied them to the other conversations.

    A store that can't be read is neither lost nor new. One that is still lost is lost for every checkout. A renewed
    store is known once nothing was left out; the workspace shows what remains of the old one.
    """
    store, baseline = snapshots[0], run.baseline
    changes.store_lost = sides.store_emptied or plan.store_lost
    left_out = run.renewed and (
        run.unwritten or plan.moving or plan.put_off or sides.workspace_emptied or _is_held_back(snapshots, run, plan)
    )
    whole = plan.about is None and not left_out
    if was_read(store) and (whole or baseline.store_identity is None or sides.store_emptied):
        known = baseline.store_identity is not None
        identity = store.identity if store.exists and not sides.store_emptied else LOST if known else None
        if identity != baseline.store_identity:
            changes.store_identity = identity
    if baseline.layout != plan.layout and plan.about is None:
        changes.layout = plan.layout


def _is_held_back(snapshots: tuple[Snapshot, Snapshot], run: _Run, plan: Plan) -> bool:
    """Tell whether a held conversation has a version in the store that isn't the one that was agreed on.

    In a known store, that version would be an edit, and replace the agreed one once nothing is held any more.
    """
    held = run.baseline.agreed.keys() & {item.conversation for item in plan.held}
    views = views_of(*snapshots, run.baseline, run.rules, held) if held else {}
    return any(
        view.store.digest(name) not in (None, digest)
        for view in views.values()
        for name, digest in _units_before(view).items()
    )


def _record_other(view: View, run: _Run, changes: Changes) -> None:
    """Record facts about conversations that the plan wasn't about: their place if they were moved along, and parents
    that JP may strip.
    """
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
    """Tell whether neither side has it, except for an archived copy of a removed conversation, which has no baseline
    entry.
    """
    return view.workspace.main is None and (view.store.main is None or (view.id in buried and view.archived))


def _from_vault(plan: Plan) -> frozenset[tuple[str, str]]:
    """Return the units that `undo` and `restore` have written to the store."""
    put = {
        (action.conversation, unit)
        for action in plan.actions
        if action.target.side is Side.STORE and _is_restored(action)
        for unit in ((METADATA, STREAM) if action.unit == WHOLE else (action.unit,))
    }
    return frozenset(put)


def _as_written(
    plan: Plan, kind: Kind, undone: Collection[str], target: Snapshot, rules: Rules, conversations: Collection[str]
) -> frozenset[tuple[str, str | None]]:
    """Return the units of these conversations that were copied from one side to the other, and are unchanged since.

    What an undo restores on one side was never on the other one: no content was in sync then. If it restores both
    sides, the run had united them; the base of that is not kept, and the restored version has to stand for it.
    """
    restored = [action for action in plan.actions if _is_restored(action)]
    in_store, here = (
        {(action.conversation, action.unit) for action in restored if action.kind is each}
        for each in (Kind.COPY, Kind.PROJECT)
    )
    copied = [
        action
        for action in plan.actions
        if action.kind is kind
        and action.conversation in conversations
        and action.id not in undone
        and not (kind is Kind.COPY and _is_created(action))
        and (not _is_restored(action) or (action.conversation, action.unit) in in_store & here)
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


def _is_restored(action: Action) -> bool:
    return any(write.kept is not None for write in action.writes)


def _units_written(action: Action, rules: Rules) -> set[str | None]:
    if action.unit != WHOLE:
        return {action.unit}
    start = len(action.target.path) + 1
    return {rules.format.unit_of(write.target.path[start:]) for write in action.writes}


def _is_created(action: Action) -> bool:
    """Tell whether a saved conversation was on neither side before: the library creates it, and no side has it yet."""
    return any(write.source is None or write.source.side is not Side.WORKSPACE for write in action.writes)


def _may_forget(view: View, plan: Plan, sides: Sides) -> bool:
    """Tell whether the baseline entry of a conversation on neither side ends (docs/design/guards.md#rule-39)."""
    if view.agreed is None or view.store.trashed or plan.about is not None:
        return False
    return sides.may_forget(view.id, view.agreed.place)


class _Run(Struct, frozen=True, kw_only=True):
    """The inputs of one conversation's update besides its view; all but the first two come from the plan."""

    baseline: Baseline
    rules: Rules
    displaced: frozenset[str]
    places_none: bool
    """The plan is not the planner's. Only the planner's plans state where a directory belongs."""
    rooted: frozenset[str]
    written: frozenset[tuple[str, str]]
    chosen: frozenset[tuple[str, str]]
    """Copied units that were preferred to another version. A unit that a side merely lacked may be newer in another
    checkout.
    """
    kept: frozenset[tuple[str, str]]
    """Units that the store got from the vault: they are its newest versions, whatever the workspace has."""
    projected: frozenset[tuple[str, str | None]] = frozenset()
    """Units of the workspace that are as this run has written them, whatever the store has by now."""
    saved: frozenset[tuple[str, str | None]] = frozenset()
    """Units of the store that are as this run has copied them, whatever the workspace has by now."""
    unwritten: frozenset[tuple[str, str]]
    doubled: frozenset[str]
    unnamed: frozenset[str]
    """Conversations whose directory was to get the name of another title."""
    carried: frozenset[str]
    """Conversations with a directory that was to be moved, written or removed, alone or with its container."""
    restored: frozenset[str]
    """Conversations whose entry of before the undone run is valid again."""
    touched: frozenset[str]
    """Conversations with an action: an undo restores their entry before its steps, and the metadata after them."""
    unremoved: frozenset[str]
    """Conversations of which a requested removal was not carried out at all."""
    renewed: bool
    """The store isn't the one of the baseline: a unit that it lacks was never agreed on."""

    @property
    def special(self) -> frozenset[str]:
        """The conversations for which equality of both sides isn't the whole result: some of their steps are undone or
        due.
        """
        return frozenset([key for key, _ in self.unwritten] + [key for _, key in self.baseline.renames])

    def becomes_newest(self, conversation: str, unit: str, digest: Digest) -> bool:
        """Tell whether a content of both sides is a new version, or an old one that this run has chosen.

        An old version that another program put on both sides stays old: the history continues from the newest one.
        """
        known = self.baseline.history.get((conversation, unit), ())
        chosen = not self.chosen.isdisjoint({(conversation, unit), (conversation, WHOLE)})
        return digest not in known or (chosen and known[-1] != digest)


def _run_of(plan: Plan, undone: Collection[str], baseline: Baseline, rules: Rules, sides: Sides) -> _Run:
    left = [action for action in plan.actions if action.id in undone]
    asked = [action for action in plan.actions if action.reason in REQUESTED]
    return _Run(
        baseline=baseline,
        rules=rules,
        displaced=plan.displaced,
        places_none=plan.policy.request is not None and plan.policy.tree_edit is None,
        rooted=frozenset(plan.rooted),
        written=frozenset((action.conversation, action.unit) for action in plan.actions),
        chosen=frozenset(
            (action.conversation, action.unit) for action in plan.actions if action.reason not in _UNCHOSEN
        ),
        kept=_from_vault(plan),
        unwritten=frozenset((action.conversation, action.unit) for action in left),
        doubled=frozenset(action.conversation for action in left if action.kind is Kind.REMOVE_STALE),
        carried=frozenset(conversation for action in plan.actions for conversation in action.touches),
        unnamed=frozenset(action.conversation for action in left if action.kind is Kind.MOVE and _is_rename(action)),
        restored=frozenset(conversation for conversation, _ in plan.remembered),
        touched=frozenset(action.conversation for action in plan.actions),
        unremoved=frozenset(action.conversation for action in asked)
        - {action.conversation for action in asked if action.id not in undone},
        renewed=sides.store_renewed,
    )


def _is_rename(action: Action) -> bool:
    """Tell whether a move changes the directory's own name, and not only its parent."""
    assert action.source is not None  # noqa: S101 - a move has a source
    return action.source.path.rpartition("/")[2] != action.target.path.rpartition("/")[2]


def _adopt(
    store: Snapshot, workspace: Snapshot, conversations: Collection[str], run: _Run, changes: Changes
) -> set[str]:
    """Record the conversations that are equal on both sides and not in the baseline; return the others."""
    special, baseline, rules = run.special, run.baseline, run.rules
    kept, here = by_conversation(store), by_conversation(workspace)
    left = set()
    for conversation in conversations:
        stored, copies = kept.get(conversation, ()), here.get(conversation, ())
        agreed = None
        if len(stored) == len(copies) == 1 and conversation not in special:
            agreed = adoption(stored[0], copies[0], baseline, rules)
        if agreed is None:
            left.add(conversation)
            continue
        changes.agreed[conversation] = agreed
        if stored[0].files == copies[0].files and "/" not in stored[0].path:
            changes.known_clean.add(conversation)
        if run.baseline.parents.get(conversation) != agreed.parent:
            changes.parents[conversation] = agreed.parent
        metadata = stored[0].metadata
        if isinstance(metadata, Metadata) and len(metadata.content) <= LARGEST_KEPT:
            changes.contents[conversation, agreed.units[METADATA]] = metadata.content
        for unit, digest in agreed.units.items():
            if run.becomes_newest(conversation, unit, digest):
                changes.history[conversation, unit] = digest
    return left


def _record_conversation(view: View, run: _Run, changes: Changes) -> None:
    """Record one conversation of the store: its parent, and the units that are equal in the workspace."""
    parent = _remember_parent(view, run, changes)
    legacy = _remember_legacy(view, changes)
    workspace = view.workspace.main
    if view.id in run.baseline.tombstones:
        changes.tombstones[view.id] = None
    for name in (METADATA, STREAM):
        digest = view.store.digest(name)
        known = run.baseline.history.get((view.id, name), ())
        # A repeated undo has no step for a unit that its killed predecessor has put back.
        put_back = (view.id, name) in run.kept or (view.id in run.restored and digest == _units_before(view).get(name))
        if digest is not None and put_back and known and known[-1] != digest:
            changes.history[view.id, name] = digest
    if workspace is None:
        _remember_saved(view, run, changes)
        return
    agreed = _entry_of(view, workspace, parent, run, changes)
    if agreed is not None:
        if agreed != view.agreed:
            changes.agreed[view.id] = agreed
        if view.id in run.touched or agreed.units.get(METADATA) != _units_before(view).get(METADATA):
            assert view.store.main is not None  # noqa: S101 - the caller asked
            _keep_content(agreed, view.store.main, run, changes)
            _keep_content(agreed, workspace, run, changes)
    if view.intent is not None and not legacy and _is_back(view):
        changes.intents[view.id] = None


def _keep_content(agreed: BaselineEntry, copy: Copy, run: _Run, changes: Changes) -> None:
    """Keep the metadata of a copy, if it is the one that was agreed on."""
    digest, metadata = agreed.units.get(METADATA), copy.metadata
    if digest is None or run.rules.format.places is not None or not isinstance(metadata, Metadata):
        return
    name, is_small = run.rules.format.metadata_file, len(metadata.content) <= LARGEST_KEPT
    if is_small and any(file.name == name and file.digest == digest for file in copy.files):
        changes.contents[copy.conversation, digest] = metadata.content


def _is_back(view: View) -> bool:
    """Tell whether the workspace's content ends an intent."""
    assert view.intent is not None  # noqa: S101 - the caller asked
    if view.intent.keeps_away:
        return view.workspace.has(view.format.required)
    return view.intent.kind is not IntentKind.LOCAL


def _remember_saved(view: View, run: _Run, changes: Changes) -> None:
    """Record the extras that were saved before the directory was removed: they return with it."""
    saved = {
        name: digest
        for name in view.store.units
        if name.startswith(EXTRA) and (view.id, name) in run.written - run.unwritten - run.kept
        if (digest := view.store.digest(name)) is not None
    }
    if view.agreed is not None and saved.items() - view.agreed.units.items():
        changes.agreed[view.id] = replace(view.agreed, units={**view.agreed.units, **saved})


def _entry_of(view: View, workspace: Copy, parent: str | None, run: _Run, changes: Changes) -> BaselineEntry | None:
    """Return the new baseline entry: the units that are equal on both sides, and the facts of equal metadata."""
    assert view.store.main is not None  # noqa: S101 - the caller asked
    in_store, in_workspace = units_of(view.store.main, run.rules, None), units_of(workspace, run.rules, None)
    # An extra that was removed from the workspace belongs to the store alone: no run copies it back.
    before_it = _units_before(view)
    lasts = run.rules.format.places is not None
    stays = lasts or run.baseline.is_of_remote  # without its entry, it would be sent again
    # A duplicate that has to stay has the removed extra still: without its entry, the next run would take it for new.
    doubled = {name for copy in view.workspace.stale for name in units_of(copy, run.rules, None)}
    here = in_workspace.keys() | doubled
    there = {n for n in before_it if n in here or (n in in_store and (stays or not n.startswith(EXTRA)))}
    # If this run could not let a directory take its place, the next one still has to know that it was not edited.
    there.update(gone for gone, _ in collisions(before_it.keys() & in_store.keys() - here, here))
    there = there & in_store.keys() if run.renewed else there
    units = {name: digest for name, digest in before_it.items() if name in there}
    for name, unit in in_workspace.items():
        said = {unit.digest, view.store.raw(name), view.workspace.raw(name)}
        if unit.digest is None or name not in in_store or view.id in run.doubled or (view.id, name) in run.unwritten:
            continue  # a duplicate that still has another content would be taken for an edit
        digest = in_store[name].digest
        # A side was changed meanwhile: both were equal when this was copied to the other.
        saved = digest == view.store.raw(name) and (view.id, name) in run.saved
        if digest is not None and (saved or {digest} == said):
            units[name] = digest
            if run.becomes_newest(view.id, name, digest):
                changes.history[view.id, name] = digest
        elif (view.id, name) in run.projected and view.workspace.raw(name) == unit.digest:
            units[name] = unit.digest
    before = view.agreed
    # A directory with nothing but extras has no entry: it would be taken for the rest of a conversation.
    sound = lasts or any(unit.digest is not None for name, unit in in_workspace.items() if not name.startswith(EXTRA))
    if not units or (before is None and not sound):
        return None
    in_sync = (
        METADATA in in_store and METADATA in in_workspace and in_store[METADATA].digest == in_workspace[METADATA].digest
    )
    elsewhere = run.places_none or view.id in run.displaced
    # After a half of a sync one side may still have to follow the other into the archive: the next sync needs the base.
    follows = run.baseline.is_of_remote and view.has_split_archive
    return BaselineEntry(
        units=units,
        parent=parent if in_sync or before is None else before.parent,
        title=_title(view, workspace, run) if before is None or in_sync else before.title,
        container=before.container if before is not None and elsewhere else workspace.container,
        place=before.place if before is not None and follows else workspace.path,
    )


def _title(view: View, workspace: Copy, run: _Run) -> str | None:
    """Return the title that the directories are named by: a rename that was held or skipped is still due."""
    title = view.store.metadata.title if view.store.metadata is not None else None
    name = run.rules.format.dirname(view.id, title)
    assert view.store.main is not None  # noqa: S101 - the caller asked
    unnamed = [copy.side for copy in (view.store.main, workspace) if copy.dirname != name]
    if view.agreed is None or METADATA not in view.agreed.units:
        # A first run that was interrupted before a rename may be followed by one that isn't about it.
        due = view.id in run.unnamed or any((side, view.id) in run.baseline.renames for side in unnamed)
        return None if due else title
    return view.agreed.title if unnamed else title


def _units_before(view: View) -> Mapping[str, Digest]:
    return view.agreed.units if view.agreed is not None else {}


def _parent(view: View, run: _Run) -> str | None:
    """Return the parent as the store's metadata states it; an absent key keeps the known one."""
    assert view.store.main is not None  # noqa: S101 - the caller asked
    metadata = view.store.main.metadata
    if not isinstance(metadata, Metadata) or metadata.parent.kind is ParentKind.UNREADABLE:
        return view.known_parent
    if metadata.parent.kind is ParentKind.ABSENT:
        return None if view.id in run.rooted else view.known_parent
    return metadata.parent.id
