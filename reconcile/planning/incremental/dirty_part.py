"""Classifies all conversations of two full snapshots, and returns the part that the rules have to plan.

Clean conversations, and those that are equal on both sides, need no rules. The others are planned with their closure
(`reconcile.planning.incremental.ancestry.closure`); the result equals the plan of everything. If a side as a whole has
changed in a way that the rules must see, the part is everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconcile.model.options import Layout, Missing
from reconcile.model.plan import states_of
from reconcile.model.snapshot import Metadata
from reconcile.planning.incremental.ancestry import ancestry_of, closure
from reconcile.planning.incremental.status import Verdict, by_conversation, classify
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
"""The rules plan everything if more than one conversation in so many is dirty."""


class DirtyPart(Struct, frozen=True):
    """The snapshots and the baseline of the part that the rules plan, and the states of all other conversations.

    ``is_quiet``: all conversations are clean, and the baseline of both sides as wholes is up to date.
    """

    store: Snapshot
    workspace: Snapshot
    baseline: Baseline
    whole: Whole
    counted: Mapping[str, str]
    places: Mapping[str, str]
    is_quiet: bool

    def joined(self, plan: Plan) -> Plan:
        """Return the plan of everything from the plan of the part."""
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
    """Classify every conversation, and return the part that the rules have to plan; None: everything.

    In a format with fixed places, derived data depends on all records: the part is empty, or everything.
    """
    if not is_plain(store, workspace, baseline, policy, rules):
        return None
    places = rules.format.places
    kept, here = by_conversation(store), by_conversation(workspace)
    everything = kept.keys() | here.keys() | baseline.agreed.keys()
    derived = [record for record in here if places.is_derived(record)] if places is not None else []
    # A derived record needs no copy in the store. With several directories it is never clean.
    counted = dict.fromkeys((record for record in derived if len(here[record]) == 1), "derived")
    clean = len(counted)
    for conversation, copies in kept.items():
        status = classify(copies, here.get(conversation, ()), baseline, rules)
        state = _counted_state(status, here.get(conversation, ()), policy)
        if state is not None:
            counted[conversation] = state
            clean += status.verdict is Verdict.CLEAN
    is_clean = clean == len(everything)
    if len(counted) * MOST < len(everything) or (places is not None and not is_clean):
        return None
    ancestry = ancestry_of((*store.copies, *workspace.copies), baseline)
    near = closure(everything - counted.keys(), (), ancestry)
    clean_keys = counted.keys() - near
    placed = {key: here[key][0] for key in clean_keys if key in here and key in kept}
    tree = tree_of({key: kept[key][0] for key in counted if key in kept}, rules)
    if tree is None or not are_placed(placed, tree, policy):
        return None
    return DirtyPart(
        store=_part(store, near),
        workspace=_part(workspace, near),
        baseline=_baseline_of(baseline, near),
        whole=replace(whole_of(store, workspace, baseline, rules.format), taken=everything),
        counted={key: counted[key] for key in clean_keys},
        places={key: copy.path for key, copy in placed.items() if not copy.archived},
        is_quiet=is_clean and not _has_side_changes(store, baseline, policy, rules),
    )


def is_plain(store: Snapshot, workspace: Snapshot, baseline: Baseline, policy: Policy, rules: Rules) -> bool:
    """Tell whether neither a side as a whole nor a request of the user requires the rules for everything."""
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
    """Return the state of a conversation in the summary; None: the rules must plan it."""
    return _counted_state(classify(kept, here, baseline, rules), here, policy)


def _counted_state(status: Status, here: Sequence[Copy], policy: Policy) -> str | None:
    if not here and policy.missing is Missing.REPROJECT and status.state not in ("local", "archived"):
        return None
    return status.state


def _has_side_changes(store: Snapshot, baseline: Baseline, policy: Policy, rules: Rules) -> bool:
    """Tell whether the baseline of a side as a whole changes: its layout, its store, or that the store is lost."""
    # Other checkouts may still expect the content of a lost store, even if this one has no baseline of it.
    is_lost = not baseline.agreed and baseline.history and has_lost_all(store, baseline, rules.format)
    return bool(is_lost or baseline.layout != policy.layout.value or baseline.store_identity != store.identity)


def tree_of(kept: Mapping[str, Copy], rules: Rules) -> TreeIndex | None:
    """Return the tree of the store's conversations by their metadata; None if parents form a cycle."""
    parents = {
        conversation: copy.metadata.parent.id
        for conversation, copy in kept.items()
        if not copy.archived and isinstance(copy.metadata, Metadata)
    }
    tree = TreeIndex(parents, rules.format.order)
    return None if tree.cycles else tree


def are_placed(here: Mapping[str, Copy], tree: TreeIndex, policy: Policy) -> bool:
    """Tell whether every directory is at the place that the layout defines."""
    if policy.layout is Layout.FLAT:
        return all(copy.container is None for copy in here.values())
    return all(
        copy.container == (tree.parent_of(conversation) if conversation in tree else None)
        for conversation, copy in here.items()
    )


def _part(side: Snapshot, conversations: Collection[str]) -> Snapshot:
    return replace(side, copies=tuple(copy for copy in side.copies if copy.conversation in conversations))


def _baseline_of(baseline: Baseline, conversations: Collection[str]) -> Baseline:
    """Return the baseline of these conversations; maps that are only queried by key stay complete."""
    return replace(
        baseline,
        agreed={key: entry for key, entry in baseline.agreed.items() if key in conversations},
        intents={key: intent for key, intent in baseline.intents.items() if key in conversations},
    )
