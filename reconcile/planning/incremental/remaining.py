"""What a plain run need not plan: what is clean, or equal on both sides and only to be agreed on, at a glance.

Where that is everything, there is nothing to plan. The rules plan what is left, with all that it concerns
(`reconcile.planning.incremental.scope` says why that suffices), and come to the same plan as for everything. In any
doubt about a side as a whole, they get everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconcile.model.options import Layout, Missing
from reconcile.model.plan import Plan, states_of
from reconcile.model.snapshot import Metadata
from reconcile.planning.incremental.ancestry import kin_of
from reconcile.planning.incremental.status import Standing, by_conversation, classify
from reconcile.planning.rules.guards import compare_sides, has_lost_all, whole_of
from reconcile.planning.rules.tree import TreeIndex

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from reconcile.model.baseline import Baseline
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Copy, Snapshot
    from reconcile.model.units import Rules
    from reconcile.planning.rules.guards import Whole

MOST = 2
"""Where more than one in so many conversations is to be planned by the rules, all are."""


class Remaining(Struct, frozen=True):
    """The snapshots and the memory of what is left to plan, and what the plan says of the others."""

    store: Snapshot
    workspace: Snapshot
    baseline: Baseline
    whole: Whole
    counted: Mapping[str, str]
    places: Mapping[str, str]

    def joined(self, plan: Plan) -> Plan:
        """Return the plan of everything, from that of what was left."""
        counted = {**self.counted, **plan.counted}
        return replace(
            plan,
            counted=counted,
            states=states_of(counted),
            places=tuple(sorted({**self.places, **dict(plan.places)}.items())),
        )


def quiet_plan(store: Snapshot, workspace: Snapshot, baseline: Baseline, policy: Policy, rules: Rules) -> Plan | None:
    """Return the empty plan where nothing has changed since the last run, None where that isn't certain."""
    if _is_special(store, workspace, baseline, policy):
        return None
    # Other checkouts may still believe in what a lost store had, where this one has agreed on nothing.
    if not baseline.agreed and baseline.history and has_lost_all(store, baseline, rules.format):
        return None
    kept, here = by_conversation(store), by_conversation(workspace)
    places = rules.format.places
    derived = [each for each in here if places.is_derived(each)] if places is not None else []
    if any(len(here.pop(each)) > 1 for each in derived) or (here.keys() | baseline.agreed.keys()) - kept.keys():
        return None
    counted: dict[str, str] = {}
    for conversation, copies in kept.items():
        standing, state = classify(copies, here.get(conversation, ()), baseline, rules)
        if standing is not Standing.CLEAN or state is None:
            return None
        counted[conversation] = state
    tree = tree_of({key: copies[0] for key, copies in kept.items()}, rules)
    if tree is None or not are_placed({key: copies[0] for key, copies in here.items()}, tree, policy):
        return None
    counted |= dict.fromkeys(derived, "derived")
    return Plan(layout=policy.layout.value, states=states_of(counted), counted=counted, quiet=True)


def remaining_of(
    store: Snapshot, workspace: Snapshot, baseline: Baseline, policy: Policy, rules: Rules
) -> Remaining | None:
    """Return what is left to plan and what isn't; None where the rules must look at everything."""
    if not is_plain(store, workspace, baseline, policy, rules):
        return None
    kept, here = by_conversation(store), by_conversation(workspace)
    everything = kept.keys() | here.keys() | baseline.agreed.keys()
    counted = {}
    for conversation, copies in kept.items():
        state = state_of(copies, here.get(conversation, ()), baseline, policy, rules)
        if state is not None:
            counted[conversation] = state
    if len(counted) * MOST < len(everything):
        return None
    near = _concerned(everything - counted.keys(), store, workspace, baseline)
    rest = counted.keys() - near
    theirs = {key: here[key][0] for key in rest if key in here}
    tree = tree_of({key: kept[key][0] for key in counted}, rules)
    if tree is None or not are_placed(theirs, tree, policy):
        return None
    return Remaining(
        store=_part(store, near),
        workspace=_part(workspace, near),
        baseline=_memory_of(baseline, near),
        whole=replace(whole_of(store, workspace, baseline, rules.format), taken=everything),
        counted={key: counted[key] for key in rest},
        places={key: copy.path for key, copy in theirs.items() if not copy.archived},
    )


def is_plain(store: Snapshot, workspace: Snapshot, baseline: Baseline, policy: Policy, rules: Rules) -> bool:
    """Tell whether neither a side as a whole, nor the user, gives cause to look closer."""
    sides = compare_sides(store, workspace, baseline, rules.format)
    return not (
        policy.decisions
        or policy.only
        or policy.below
        or store.problems
        or workspace.problems
        or store.foreign
        or workspace.foreign
        or baseline.asides
        or baseline.waiting
        or baseline.renames
        or sides.store_renewed
        or sides.workspace_emptied
    )


def state_of(
    kept: Sequence[Copy], here: Sequence[Copy], baseline: Baseline, policy: Policy, rules: Rules
) -> str | None:
    """Return the state to count a conversation under; None: the rules must look at it."""
    state = classify(kept, here, baseline, rules).state
    if not here and policy.missing is Missing.REPROJECT and state not in ("local", "archived"):
        return None
    return state


def _is_special(store: Snapshot, workspace: Snapshot, baseline: Baseline, policy: Policy) -> bool:
    """Tell whether a side as a whole, or the user, gives cause to look closer."""
    return bool(
        store.problems
        or workspace.problems
        or store.foreign
        or workspace.foreign
        or baseline.asides
        or baseline.waiting
        or baseline.renames
        or policy.decisions
        or policy.missing is Missing.REPROJECT
        or baseline.layout != policy.layout.value
        or baseline.store_identity != store.identity
    )


def tree_of(kept: Mapping[str, Copy], rules: Rules) -> TreeIndex | None:
    """Return the tree of the store's conversations as they state it; None where parents form a cycle."""
    parents = {
        conversation: copy.metadata.parent.id
        for conversation, copy in kept.items()
        if not copy.archived and isinstance(copy.metadata, Metadata)
    }
    tree = TreeIndex(parents, rules.format.order)
    return None if tree.cycles else tree


def are_placed(here: Mapping[str, Copy], tree: TreeIndex, policy: Policy) -> bool:
    """Tell whether every directory lies where the layout puts it."""
    if policy.layout is Layout.FLAT:
        return all(copy.container is None for copy in here.values())
    return all(
        copy.container == (tree.parent_of(conversation) if conversation in tree else None)
        for conversation, copy in here.items()
    )


def _concerned(due: Collection[str], store: Snapshot, workspace: Snapshot, baseline: Baseline) -> set[str]:
    """Return what a plan of these is about: themselves, what is below them, and what is above all of that."""
    kin = kin_of((*store.copies, *workspace.copies), baseline)
    return kin.with_above(kin.with_below(due))


def _part(side: Snapshot, conversations: Collection[str]) -> Snapshot:
    return replace(side, copies=tuple(copy for copy in side.copies if copy.conversation in conversations))


def _memory_of(baseline: Baseline, conversations: Collection[str]) -> Baseline:
    """Return the memory as if it were of these alone; what is asked for by its key may stay."""
    return replace(
        baseline,
        agreed={key: each for key, each in baseline.agreed.items() if key in conversations},
        intents={key: each for key, each in baseline.intents.items() if key in conversations},
    )
