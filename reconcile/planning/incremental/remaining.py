"""What a run about everything need not plan: what is at rest, or equal on both sides and to be agreed on, at a glance.

The rules plan what is left, with all that it concerns (`reconcile.planning.incremental.scope` says why that suffices),
and come to the same plan as for everything. In any doubt about a side as a whole, they get everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconcile.model.baseline import Agreed
from reconcile.model.options import Missing
from reconcile.model.plan import states_of
from reconcile.model.snapshot import Metadata, ParentKind, Partition, Stream
from reconcile.planning.incremental.ancestry import kin_of
from reconcile.planning.incremental.no_op import are_placed, digests_of, tree_of
from reconcile.planning.incremental.no_op import state_of as glance_at
from reconcile.planning.rules.guards import look_at_sides, look_at_whole
from reconcile.planning.rules.parents import states

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from reconcile.model.baseline import Memory
    from reconcile.model.plan import Plan
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
    memory: Memory
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


def remaining_of(
    store: Snapshot, workspace: Snapshot, memory: Memory, policy: Policy, rules: Rules
) -> Remaining | None:
    """Return what is left to plan and what isn't; None where the rules must look at everything."""
    if not is_plain(store, workspace, memory, policy, rules):
        return None
    kept, here = by_conversation(store), by_conversation(workspace)
    everything = kept.keys() | here.keys() | memory.agreed.keys()
    counted = {}
    for conversation, copies in kept.items():
        state = state_of(copies, here.get(conversation, ()), memory, policy, rules)
        if state is not None:
            counted[conversation] = state
    if len(counted) * MOST < len(everything):
        return None
    near = _concerned(everything - counted.keys(), store, workspace, memory)
    rest = counted.keys() - near
    theirs = {key: here[key][0] for key in rest if key in here}
    tree = tree_of({key: kept[key][0] for key in counted}, rules)
    if tree is None or not are_placed(theirs, tree, policy):
        return None
    return Remaining(
        store=_part(store, near),
        workspace=_part(workspace, near),
        memory=_memory_of(memory, near),
        whole=replace(look_at_whole(store, workspace, memory, rules.format), taken=everything),
        counted={key: counted[key] for key in rest},
        places={key: copy.path for key, copy in theirs.items() if not copy.archived},
    )


def agreement(copy: Copy, other: Copy, memory: Memory, rules: Rules) -> Agreed | None:
    """Return what is to be agreed on of a conversation that nothing was agreed on and that is equal on both sides.

    None where that isn't certain at a glance, or where it isn't all that there is to do.
    """
    metadata, conversation = copy.metadata, copy.conversation
    if not (is_sound(copy) and is_sound(other)) or copy.container is not None:
        return None
    if conversation in memory.agreed or conversation in memory.intents or conversation in memory.tombstones:
        return None
    assert isinstance(metadata, Metadata)  # noqa: S101 - it is sound
    if conversation in memory.parents and not states(metadata, memory.parents[conversation]):
        return None
    ours, found = digests_of(copy, rules), {}
    theirs = ours if other.files is copy.files else digests_of(other, rules)
    for name, digest in theirs.items():
        if digest is None or ours.get(name) != digest:
            return None
        found[name] = digest
    return Agreed(found, metadata.parent.id, metadata.title, other.container, other.path)


def is_sound(copy: Copy) -> bool:
    """Tell whether a copy is live and has both managed units, and nothing odd about it."""
    metadata = copy.metadata
    return (
        isinstance(metadata, Metadata)
        and isinstance(copy.stream, Stream)
        and copy.partition is Partition.LIVE
        and not metadata.local
        and metadata.parent.kind is not ParentKind.UNREADABLE
    )


def is_plain(store: Snapshot, workspace: Snapshot, memory: Memory, policy: Policy, rules: Rules) -> bool:
    """Tell whether neither a side as a whole, nor the user, gives cause to look closer."""
    sides = look_at_sides(store, workspace, memory, rules.format)
    return not (
        policy.decisions
        or policy.only
        or policy.below
        or store.problems
        or workspace.problems
        or store.foreign
        or workspace.foreign
        or memory.asides
        or memory.waiting
        or memory.renames
        or sides.store_renewed
        or sides.workspace_emptied
    )


def by_conversation(side: Snapshot) -> dict[str, tuple[Copy, ...]]:
    """Return the copies of each conversation of a side."""
    found: dict[str, tuple[Copy, ...]] = {}
    for copy in side.copies:
        found[copy.conversation] = (*found.get(copy.conversation, ()), copy)
    return found


def state_of(kept: Sequence[Copy], here: Sequence[Copy], memory: Memory, policy: Policy, rules: Rules) -> str | None:
    """Return the state to count a conversation under; None: the rules must look at it."""
    if len(kept) != 1 or len(here) > 1:
        return None
    other = here[0] if here else None
    state = glance_at(kept[0], other, memory, rules)
    if state is None and other is not None and agreement(kept[0], other, memory, rules) is not None:
        return "in-sync"
    if other is None and policy.missing is Missing.REPROJECT and state not in ("local", "archived"):
        return None
    return state


def _concerned(due: Collection[str], store: Snapshot, workspace: Snapshot, memory: Memory) -> set[str]:
    """Return what a plan of these is about: themselves, what is below them, and what is above all of that."""
    kin = kin_of((*store.copies, *workspace.copies), memory)
    return kin.with_above(kin.with_below(due))


def _part(side: Snapshot, conversations: Collection[str]) -> Snapshot:
    return replace(side, copies=tuple(copy for copy in side.copies if copy.conversation in conversations))


def _memory_of(memory: Memory, conversations: Collection[str]) -> Memory:
    """Return the memory as if it were of these alone; what is asked for by its key may stay."""
    return replace(
        memory,
        agreed={key: each for key, each in memory.agreed.items() if key in conversations},
        intents={key: each for key, each in memory.intents.items() if key in conversations},
    )
