"""Classifies all conversations of two full snapshots, and returns the part that the rules have to plan.

Clean conversations, and those that are equal on both sides, need no rules. The rest is planned with all that it
concerns (`reconcile.planning.incremental.ancestry.closure`), and gives the same plan as everything. Where a side as a
whole is in doubt, the part is everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconcile.model.options import Layout, Missing
from reconcile.model.plan import states_of
from reconcile.model.snapshot import Metadata
from reconcile.planning.incremental.ancestry import ancestry_of, closure
from reconcile.planning.incremental.status import Standing, by_conversation, classify
from reconcile.planning.rules.guards import compare_sides, has_lost_all, whole_of
from reconcile.planning.rules.tree import TreeIndex

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from reconcile.model.baseline import Baseline
    from reconcile.model.plan import Plan
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Copy, Snapshot
    from reconcile.model.units import Rules
    from reconcile.planning.incremental.status import Status
    from reconcile.planning.rules.guards import Whole

MOST = 2
"""Where more than one in so many conversations is dirty, the rules plan all."""


class DirtyPart(Struct, frozen=True):
    """The snapshots and the baseline of what the rules have to plan, and the states of all others.

    ``is_quiet``: all conversations are clean, and nothing is to be remembered of a side as a whole.
    """

    store: Snapshot
    workspace: Snapshot
    baseline: Baseline
    whole: Whole
    counted: Mapping[str, str]
    places: Mapping[str, str]
    is_quiet: bool

    def joined(self, plan: Plan) -> Plan:
        """Return the plan of everything, from that of the part."""
        counted = {**self.counted, **plan.counted}
        return replace(
            plan,
            counted=counted,
            states=states_of(counted),
            places=tuple(sorted({**self.places, **dict(plan.places)}.items())),
        )


def dirty_part(
    store: Snapshot, workspace: Snapshot, baseline: Baseline, policy: Policy, rules: Rules
) -> DirtyPart | None:
    """Classify every conversation, and return the part that the rules have to plan; None where that is everything.

    Of a format with fixed places, derived data follows from everything: the part is nothing, or everything.
    """
    if not is_plain(store, workspace, baseline, policy, rules):
        return None
    places = rules.format.places
    kept, here = by_conversation(store), by_conversation(workspace)
    everything = kept.keys() | here.keys() | baseline.agreed.keys()
    derived = [each for each in here if places.is_derived(each)] if places is not None else []
    # Several directories of one derived record are never clean; one of it needs no copy in the store.
    counted = dict.fromkeys((each for each in derived if len(here[each]) == 1), "derived")
    clean = len(counted)
    for conversation, copies in kept.items():
        status = classify(copies, here.get(conversation, ()), baseline, rules)
        state = _counted_state(status, here.get(conversation, ()), policy)
        if state is not None:
            counted[conversation] = state
            clean += status.standing is Standing.CLEAN
    is_clean = clean == len(everything)
    if len(counted) * MOST < len(everything) or (places is not None and not is_clean):
        return None
    ancestry = ancestry_of((*store.copies, *workspace.copies), baseline)
    near = closure(everything - counted.keys(), (), ancestry)
    rest = counted.keys() - near
    theirs = {key: here[key][0] for key in rest if key in here and key in kept}
    tree = tree_of({key: kept[key][0] for key in counted if key in kept}, rules)
    if tree is None or not are_placed(theirs, tree, policy):
        return None
    return DirtyPart(
        store=_part(store, near),
        workspace=_part(workspace, near),
        baseline=_baseline_of(baseline, near),
        whole=replace(whole_of(store, workspace, baseline, rules.format), taken=everything),
        counted={key: counted[key] for key in rest},
        places={key: copy.path for key, copy in theirs.items() if not copy.archived},
        is_quiet=is_clean and not _has_side_changes(store, baseline, policy, rules),
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
    return _counted_state(classify(kept, here, baseline, rules), here, policy)


def _counted_state(status: Status, here: Sequence[Copy], policy: Policy) -> str | None:
    if not here and policy.missing is Missing.REPROJECT and status.state not in ("local", "archived"):
        return None
    return status.state


def _has_side_changes(store: Snapshot, baseline: Baseline, policy: Policy, rules: Rules) -> bool:
    """Tell whether something is to be remembered of a side as a whole: the layout, the store, or that it is lost."""
    # Other checkouts may still believe in what a lost store had, where this one has agreed on nothing.
    is_lost = not baseline.agreed and baseline.history and has_lost_all(store, baseline, rules.format)
    return bool(is_lost or baseline.layout != policy.layout.value or baseline.store_identity != store.identity)


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


def _part(side: Snapshot, conversations: Collection[str]) -> Snapshot:
    return replace(side, copies=tuple(copy for copy in side.copies if copy.conversation in conversations))


def _baseline_of(baseline: Baseline, conversations: Collection[str]) -> Baseline:
    """Return the memory as if it were of these alone; what is asked for by its key may stay."""
    return replace(
        baseline,
        agreed={key: each for key, each in baseline.agreed.items() if key in conversations},
        intents={key: each for key, each in baseline.intents.items() if key in conversations},
    )
