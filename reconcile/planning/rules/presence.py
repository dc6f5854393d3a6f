"""Whether a conversation belongs on a side: cases 1-3, 6-9 and 12 of docs/cases.md, and docs/design/intents.md.

This is decided once per conversation, before its units. `reconcile.planning.steps.placement` decides the rest for a
conversation that needs its ancestors, because the tree is known there.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconcile.model.baseline import Intent, IntentKind
from reconcile.model.options import Layout, Missing, Take
from reconcile.model.reasons import Reason, case_of
from reconcile.model.snapshot import METADATA, STREAM, Side, is_archived

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconcile.model.baseline import Baseline, BaselineEntry
    from reconcile.model.format import Places
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Digest
    from reconcile.planning.rules.guards import Sides
    from reconcile.planning.rules.views import View


class Goal(Enum):
    """The goals of a run for a conversation as a whole."""

    NOTHING = auto()
    IMPORT = auto()
    SYNC = auto()
    PROJECT = auto()
    """Copy it from the store to the workspace as soon as its ancestors are there."""
    WAIT = auto()
    """Copy it to the workspace only together with the ancestor that took it along."""
    REMOVE = auto()
    """Remove the workspace's directories, because it was removed from the store."""
    HELD = auto()
    REMOVED_BEFORE = auto()


class Presence(Struct, frozen=True, gc=False):
    """The decision. ``state`` is the word under which `status` and the summary count it."""

    goal: Goal
    case: int
    state: str
    reason: Reason | None = None
    intent: Intent | None = None
    """A new intent to record; None keeps the recorded one."""

    @property
    def why(self) -> Reason:
        """The reason of a goal that leads to steps."""
        assert self.reason is not None  # noqa: S101 - each of those goals has one
        return self.reason


def decide_presence(
    view: View, views: Mapping[str, View], baseline: Baseline, policy: Policy, sides: Sides
) -> Presence:
    """Decide what a run does with a conversation as a whole."""
    if view.format.places is not None and view.format.places.is_derived(view.id):
        return Presence(Goal.NOTHING, _case(view), "derived" if view.workspace.main is not None else "gone")
    if view.clash is not None:
        return Presence(Goal.HELD, _case(view), "invalid", Reason.OBSTRUCTED)
    if view.store.main is not None and view.workspace.main is not None:
        if view.has_two_shapes:
            return Presence(Goal.HELD, _case(view), "in-sync", Reason.OBSTRUCTED)
        return Presence(Goal.SYNC, _case(view), "local" if view.local else "in-sync")
    if view.workspace.main is not None:
        return _workspace_only(view, baseline, policy, sides)
    if view.store.main is not None and baseline.is_of_remote:
        return Presence(Goal.PROJECT, _case(view), "projected", Reason.REPROJECTED)
    if view.store.main is not None:
        return _store_only(view, views, policy, sides)
    return Presence(Goal.NOTHING, _case(view), "gone")


def missing_side(view: View, policy: Policy) -> Side | None:
    """Return the side that `resolve` chose if only the other side has the conversation: nothing is taken then."""
    if view.id not in policy.decisions:
        return None
    for take, side in ((Take.STORE, Side.STORE), (Take.WORKSPACE, Side.WORKSPACE)):
        if policy.decisions.get(view.id) is take and view.side(side).main is None:
            return side if view.side(side.other).main is not None else None
    return None


def _case(view: View) -> int:
    """Return the case of the whole conversation: an edit of one unit is an edit of it."""
    agreed = view.agreed.units if view.agreed else None
    names = list(agreed if agreed is not None else view.store.units.keys() | view.workspace.units.keys())
    base: list[Digest | None] | None = None if agreed is None else [agreed[name] for name in names]
    store = [view.store.digest(name) for name in names] if view.store.main else None
    workspace = [view.workspace.digest(name) for name in names] if view.workspace.main else None
    return case_of(base, store, workspace)


def _workspace_only(view: View, baseline: Baseline, policy: Policy, sides: Sides) -> Presence:
    """Decide cases 2, 7 and 8: new in the workspace, or removed from the store (docs/design/decisions.md#rule-14)."""
    if sides.store_hidden or view.id in sides.obstacles:
        return Presence(Goal.NOTHING, _case(view), "unreadable")
    if view.workspace.faults or not view.workspace.has(view.format.required):
        return Presence(Goal.HELD, _case(view), "invalid", Reason.INVALID)
    if policy.decisions.get(view.id) is Take.WORKSPACE:
        return Presence(Goal.IMPORT, 2, "external", Reason.DECIDED)
    buried = _is_buried(view, baseline)
    if view.agreed is not None and sides.store_renewed and not buried:
        return Presence(Goal.IMPORT, 2, "external", Reason.REFILL)
    if _is_old(view, baseline):
        return Presence(Goal.REMOVED_BEFORE, _case(view), "removed-before")
    if view.store.trashed:
        return Presence(Goal.IMPORT, 2, "external", Reason.TRASHED)
    if view.agreed is None:
        return Presence(Goal.IMPORT, 2, "external", Reason.EXTERNAL)
    if _is_edited(view, view.agreed) or (baseline.is_of_remote and _was_archived(view, view.agreed)):
        return Presence(Goal.IMPORT, 8, "external", Reason.EDIT_WINS)
    if not sides.believes_removal(view.id, buried=buried):
        return Presence(Goal.NOTHING, _case(view), "unreadable")
    if view.local and view.workspace.stale:
        return Presence(Goal.NOTHING, 7, "local")  # only one of its directories speaks; another may have been edited
    return Presence(Goal.REMOVE, 7, "removed-in-store", Reason.REMOVED_IN_STORE)


def _is_edited(view: View, agreed: BaselineEntry) -> bool:
    return any(unit.digest != agreed.units.get(name) for name, unit in view.workspace.units.items())


def _was_archived(view: View, agreed: BaselineEntry) -> bool:
    """Tell whether another machine has archived it: that is an edit, and it stays (docs/design/remotes.md#rule-63)."""
    return view.archived and not is_archived(agreed.place)


def _is_buried(view: View, baseline: Baseline) -> bool:
    """Tell whether the workspace has a version that a deliberate removal left a tombstone of.

    Where no unit is required, as in records, all of them count. Such a record is new if the sides had not agreed on it:
    a program makes some records again, with the same bytes.
    """
    if view.agreed is None and not view.format.required:
        return False
    buried = baseline.tombstones.get(view.id, frozenset())
    names = view.format.required or tuple(view.workspace.units)
    return bool(names) and all(
        view.workspace.digest(name) in buried or view.workspace.raw(name) in buried for name in names
    )


def _is_old(view: View, baseline: Baseline) -> bool:
    """Tell whether the workspace has a version with a tombstone, or one that was replaced long ago."""
    if view.agreed is not None and not _is_edited(view, view.agreed):
        return False  # case 7: still to be removed here, though the tombstone was written ahead, or by another checkout
    if _is_buried(view, baseline):
        return not baseline.is_of_remote  # another machine has restored it
    if view.agreed is None:
        return False
    metadata, stream = (view.workspace.digest(name) for name in (METADATA, STREAM))
    return baseline.superseded(view.id, STREAM, stream) and (
        metadata == view.agreed.units.get(METADATA)
        or baseline.superseded(view.id, METADATA, metadata, view.workspace.raw(METADATA))
    )


def _store_only(view: View, views: Mapping[str, View], policy: Policy, sides: Sides) -> Presence:
    """Decide cases 3, 9 and 12 by the intent (docs/design/intents.md#rule-22)."""
    case = _case(view)
    if view.local:
        return Presence(Goal.NOTHING, case, "local")
    hidden = view.agreed is not None and sides.hides(view.agreed.place)
    doubtful = sides.workspace_emptied or hidden
    if view.archived:
        return Presence(Goal.NOTHING, case, "archived") if doubtful else _archived(view, case)
    if hidden:
        return Presence(Goal.NOTHING, case, "unreadable")
    if doubtful:
        return Presence(Goal.NOTHING, case, "projected" if view.agreed else "available")
    if policy.missing is Missing.REPROJECT:
        return Presence(Goal.PROJECT, case, "projected", Reason.REPROJECTED)
    if view.intent is not None and view.intent.kind is IntentKind.REMOVED:
        return Presence(Goal.NOTHING, case, "removed")
    if view.intent is not None:
        goal = Goal.WAIT if view.intent.waits_for else Goal.PROJECT
        state = "waiting" if goal is Goal.WAIT else "projected"
        return Presence(goal, case, state, Reason.PROJECTED, view.intent)
    if view.agreed is None and view.format.places is not None and _is_public(view.format.places, view, views):
        return Presence(Goal.PROJECT, case, "projected", Reason.SHARED)
    if view.agreed is None:
        return Presence(Goal.NOTHING, case, "available")
    container = view.agreed.container
    if container is not None and policy.layout is Layout.NESTED and _is_absent(views.get(container)):
        waiting = Intent(IntentKind.PROJECTED, waits_for=container, place=view.agreed.place)
        return Presence(Goal.WAIT, case, "waiting", Reason.WAITING, waiting)
    return removed_here(view, case)


def _is_public(places: Places, view: View, views: Mapping[str, View]) -> bool:
    """Tell whether a record that is new to this checkout belongs in its workspace: all do, or its owner is there."""
    owner = places.owner(view.id)
    return places.is_shared or (owner is not None and not _is_absent(views.get(owner)))


def _archived(view: View, case: int) -> Presence:
    """Decide for an archived conversation.

    It is copied to the workspace's `.archive/` if `recover` asked for it. If it was removed there, it stays removed.
    """
    if view.intent is not None and view.intent.kind is IntentKind.PROJECTED and view.intent.waits_for is None:
        return Presence(Goal.PROJECT, case, "archived", Reason.PROJECTED)
    if view.agreed is not None and view.intent is None:
        return replace(removed_here(view, case), state="archived")
    return Presence(Goal.NOTHING, case, "archived")


def removed_here(view: View, case: int) -> Presence:
    """Return the presence of a conversation whose workspace directory was removed.

    It is the topmost removed directory, or a child that may not come back without a request.
    """
    place = view.agreed.place if view.agreed else None
    intent = Intent(IntentKind.REMOVED, place=place)
    return Presence(Goal.NOTHING, case, "removed", Reason.REMOVED_HERE, intent)


def _is_absent(view: View | None) -> bool:
    return view is None or view.workspace.main is None
