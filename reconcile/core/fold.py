"""What was achieved becomes what is remembered: never what was meant (section 4, last line)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reconcile.core.guards import look_at_sides
from reconcile.core.memory import Agreed, Intent, IntentKind
from reconcile.core.model import METADATA, Metadata, ParentKind
from reconcile.core.reasons import Reason
from reconcile.core.units import units_of
from reconcile.core.views import views_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconcile.core.memory import AsideRecord, Memory
    from reconcile.core.model import Digest, Snapshot
    from reconcile.core.plan import Plan
    from reconcile.core.policy import Policy
    from reconcile.core.units import Rules
    from reconcile.core.views import View


@dataclass(slots=True)
class Changes:
    """What is to be written to the state; empty where nothing has to be. None takes an entry out.

    ``history`` holds, per id and unit, the digest that becomes the newest entry.
    """

    agreed: dict[str, Agreed | None] = field(default_factory=dict)
    history: dict[tuple[str, str], Digest] = field(default_factory=dict)
    parents: dict[str, str | None] = field(default_factory=dict)
    intents: dict[str, Intent | None] = field(default_factory=dict)
    asides: Mapping[tuple[str, str], AsideRecord | None] = field(default_factory=dict)
    tombstones: Mapping[str, tuple[Digest, ...]] = field(default_factory=dict)
    store_identity: str | None = None
    layout: str | None = None


def fold(store: Snapshot, workspace: Snapshot, memory: Memory, plan: Plan, policy: Policy, rules: Rules) -> Changes:
    """Return the changes of memory after a run, from new scans of both sides.

    A baseline is written only for units that both sides hold equal; everything else stays as it was.
    """
    changes = Changes(intents=dict(plan.intents), asides=dict(plan.asides), tombstones=dict(plan.tombstones))
    sides = look_at_sides(store, workspace, memory)
    for view in views_of(store, workspace, memory, rules).values():
        if view.workspace.main is not None and view.store.main is not None:
            _fold_both(view, memory, changes, plan, rules)
        elif _is_gone(view) and view.agreed is not None and sides.may_forget(view.agreed.place):
            changes.agreed[view.id] = None
            changes.intents[view.id] = None
        if view.store.main is not None:
            _fold_parent(view, memory, changes, plan)
    if memory.store_identity != store.identity and store.exists:
        changes.store_identity = store.identity
    if memory.layout != plan.layout and not (policy.only or policy.below):
        changes.layout = plan.layout
    changes.intents = {key: intent for key, intent in changes.intents.items() if memory.intents.get(key) != intent}
    return changes


def _is_gone(view: View) -> bool:
    return view.store.main is None and view.workspace.main is None


def _fold_both(view: View, memory: Memory, changes: Changes, plan: Plan, rules: Rules) -> None:
    store, workspace = view.store.main, view.workspace.main
    assert store is not None  # noqa: S101 - the caller asked
    assert workspace is not None  # noqa: S101
    ours, theirs = units_of(store, rules, None), units_of(workspace, rules, None)
    units = dict(view.agreed.units) if view.agreed else {}
    for name, unit in theirs.items():
        other = ours.get(name)
        if unit.digest is None or other is None or other.digest != unit.digest:
            continue
        units[name] = unit.digest
        known = memory.history.get((view.id, name), ())
        if not known or known[-1] != unit.digest:
            changes.history[view.id, name] = unit.digest
    for name in list(units):
        if name not in ours and name not in theirs:
            del units[name]
    if not units:
        return
    agreed = Agreed(
        units=units,
        parent=parent_after(view, plan),
        title=_title(view, units),
        container=_container(view, plan),
        place=workspace.path,
    )
    if agreed != view.agreed:
        changes.agreed[view.id] = agreed
    if view.intent is not None and view.intent.kind is not IntentKind.LOCAL:
        changes.intents[view.id] = None


def _container(view: View, plan: Plan) -> str | None:
    """Where it was placed; a directory that somebody else moved has not been placed there (rule 6)."""
    displaced = any(item.conversation == view.id and item.reason is Reason.DISPLACED for item in plan.aside)
    if displaced and view.agreed is not None:
        return view.agreed.container
    return view.workspace.main.container if view.workspace.main else None


def _title(view: View, units: Mapping[str, Digest]) -> str | None:
    """The title agreed on: the metadata's where both sides hold it equal, else the one before."""
    in_sync = view.store.digest(METADATA) == units.get(METADATA)
    metadata = view.store.metadata
    if metadata is not None and (in_sync or view.agreed is None):
        return metadata.title
    return view.agreed.title if view.agreed else None


def parent_after(view: View, plan: Plan) -> str | None:
    """Return the parent as the store's metadata states it; an absent key leaves the one known."""
    metadata = view.store.main.metadata if view.store.main else None
    if not isinstance(metadata, Metadata) or metadata.parent.kind is ParentKind.UNREADABLE:
        return view.known_parent
    if metadata.parent.kind is ParentKind.ABSENT:
        return None if view.id in plan.rooted else view.known_parent
    return metadata.parent.id


def _fold_parent(view: View, memory: Memory, changes: Changes, plan: Plan) -> None:
    parent = parent_after(view, plan)
    if memory.parents.get(view.id) != parent:
        changes.parents[view.id] = parent
