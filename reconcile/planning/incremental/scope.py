"""The index of both snapshots, and the part of them that a plan must cover to equal the plan of everything.

`SnapshotIndex` is built from a full scan or from the saved index, and updated by each rescan. A change of some
conversations concerns their closure (`reconcile.planning.incremental.ancestry.closure`). `completed` joins the plan of
a part with the last plan of everything; the result equals a new plan of everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from reconcile.model.baseline import WorldState
from reconcile.model.options import Layout
from reconcile.model.plan import Item, Note, states_of
from reconcile.model.policy import (
    NO_CONVERSATION,
    ForkRequest,
    LocalRequest,
    ProjectRequest,
    QuarantineRequest,
    RemoveRequest,
    RestoreRequest,
    SetParentRequest,
    UndoRequest,
)
from reconcile.model.snapshot import Metadata, Side
from reconcile.planning.incremental.ancestry import Ancestry, above, ancestry_of, closure
from reconcile.planning.incremental.side_index import SideIndex
from reconcile.planning.incremental.status import is_clean, state_of
from reconcile.planning.rules.guards import Sides, holds_any, whole_of
from reconcile.planning.rules.shapes import collisions

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from reconcile.model.baseline import Baseline
    from reconcile.model.format import Format, Places
    from reconcile.model.past_run import PastRun
    from reconcile.model.plan import Plan
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Copy
    from reconcile.model.units import Rules
    from reconcile.planning.rules.guards import Whole

    LoadBaseline = Callable[[Collection[str]], Baseline]
    """Loads the baseline of some conversations."""


T = TypeVar("T", Item, Note)
ORDINARY = Sides(store_emptied=False, store_replaced=False, workspace_emptied=False)


class Part(Struct, frozen=True):
    """The input of a plan of a part. ``conversations`` may be on neither side: for example a missing parent."""

    world: WorldState
    whole: Whole
    conversations: frozenset[str]


class SnapshotIndex:
    """The indexes of both sides, and the ancestry of all conversations.

    ``needs_full_scan``: a side as a whole had a problem at the last full scan, so that rescans can't update the index.
    """

    def __init__(
        self,
        sides: Mapping[Side, SideIndex],
        ancestry: Ancestry,
        remembered: frozenset[str],
        whole: Whole,
        rules: Rules,
        inhabited: tuple[bool, bool] | None = None,
    ) -> None:
        """Create the index; ``remembered`` are the conversations in the baseline at the last full scan.

        ``inhabited``: whether the store and the workspace held any conversation then.
        """
        self._rules = rules
        self.sides = dict(sides)
        self.ancestry = ancestry
        self.remembered = remembered
        self._whole = whole
        self.inhabited = inhabited or self._are_inhabited()
        self.needs_full_scan = False

    @classmethod
    def of_world(cls, world: WorldState, rules: Rules) -> SnapshotIndex:
        """Return the index of a full scan."""
        whole = whole_of(world.store, world.workspace, world.baseline, rules.format)
        sides = {Side.STORE: SideIndex.of_snapshot(world.store), Side.WORKSPACE: SideIndex.of_snapshot(world.workspace)}
        ancestry = ancestry_of((*world.store.copies, *world.workspace.copies), world.baseline)
        known = cls(sides, ancestry, frozenset(world.baseline.agreed), whole, rules)
        known.needs_full_scan = _needs_full_scan(world, whole.sides)
        return known

    @property
    def is_ordinary(self) -> bool:
        """Neither side as a whole was emptied, replaced or unreadable."""
        return self._whole.sides == ORDINARY and self.suffices()

    def __contains__(self, conversation: object) -> bool:
        """Tell whether an id belongs to a conversation already."""
        return conversation in self.remembered or any(conversation in side for side in self.sides.values())

    def conversations(self) -> frozenset[str]:
        """Return the conversations on either side, or in the baseline at the last full scan."""
        return self.remembered.union(*(side.conversations() for side in self.sides.values()))

    def present(self) -> frozenset[str]:
        """Return the conversations on either side."""
        return frozenset().union(*(side.conversations() for side in self.sides.values()))

    def absent(self) -> frozenset[str]:
        """Return the conversations in the baseline that are on neither side."""
        return self.remembered.difference(*(side.conversations() for side in self.sides.values()))

    def update_ancestry(self, conversations: Iterable[str], baseline: Baseline) -> None:
        """Update the ancestors of these conversations."""
        for conversation in conversations:
            self.ancestry.put(conversation, above(conversation, self._copies(conversation), baseline))

    def suffices(self) -> bool:
        """Tell whether rescans suffice: no side had a problem as a whole, was emptied or got its first copy."""
        return not self.needs_full_scan and self.inhabited == self._are_inhabited()

    def clean_states(
        self, conversations: Iterable[str], baseline: Baseline, policy: Policy, known_clean: Collection[str] = ()
    ) -> dict[str, str]:
        """Return the states of the conversations that are clean and at the place that the layout defines.

        A plan changes none of these, unless a conversation in its closure has changed. ``known_clean`` are on both
        sides, and a run has just recorded that they are clean (`reconcile.planning.baseline_update.Changes`).
        """
        states = {}
        store, workspace = self.sides[Side.STORE], self.sides[Side.WORKSPACE]
        dirty = {conversation for conversation, _ in baseline.asides}
        dirty |= {conversation for _, conversation in baseline.renames}
        for conversation in conversations:
            kept, here = store.of(conversation), workspace.of(conversation)
            is_known = conversation in known_clean
            state = "in-sync" if is_known else state_of(kept, here, baseline, policy, self._rules)
            if state is None or conversation in dirty:
                continue
            above = self._above(kept[0])
            if self._is_circular(above):
                continue
            container = above.conversation if above is not None and policy.layout is not Layout.FLAT else None
            if all(copy.container == container for copy in here):
                states[conversation] = state
        return states

    def _is_circular(self, above: Copy | None) -> bool:
        """Tell whether a copy of the store or one of its ancestors is its own ancestor, by the store's metadata."""
        seen: set[str] = set()
        while above is not None and above.conversation not in seen:
            seen.add(above.conversation)
            above = self._above(above)
        return above is not None

    def _above(self, copy: Copy) -> Copy | None:
        """Return the store's copy of the live parent of a live conversation; ``copy`` is the store's, too."""
        if copy.archived or not isinstance(copy.metadata, Metadata) or copy.metadata.parent.id is None:
            return None
        above = self.sides[Side.STORE].of(copy.metadata.parent.id)
        return above[0] if len(above) == 1 and not above[0].archived else None

    def part(self, changed: Collection[str], load: LoadBaseline, *, parents: Collection[str] = ()) -> Part:
        """Return the part that a change of these conversations concerns: their closure.

        ``parents`` are the conversations that the change puts above them.
        """
        changed = frozenset(changed) | self._colliding(changed)
        left = frozenset(parents).union(*(self.ancestry.parents(conversation) for conversation in changed))
        own = load(changed)
        self.update_ancestry(changed, own)

        def dirty(ancestors: Collection[str]) -> set[str]:
            baseline = load(ancestors)
            return {ancestor for ancestor in ancestors if not self.is_clean(ancestor, baseline)}

        near = closure(changed, left, self.ancestry, dirty)
        baseline = own if near == set(changed) else load(near)
        return Part(self.world_of(near, baseline), self.whole, near)

    def _colliding(self, changed: Collection[str]) -> frozenset[str]:
        """Return the records in whose place the other side has one of these, in another shape."""
        if self._rules.format.places is None:
            return frozenset()
        store, here = (self.sides[side] for side in (Side.STORE, Side.WORKSPACE))
        lone = {record for record in changed if (record in store) is not (record in here)}
        others = {record for side in (store, here) for record in side.conversations()} if lone else ()
        return frozenset(other for _, other in collisions(lone, others))

    def part_in_place(
        self, changed: Collection[str], load: LoadBaseline, *, parents: Collection[str] = ()
    ) -> Part | None:
        """Return the part that a change of content concerns, as long as no directory moves: without those below.

        The part holds the conversations and all above them. None: one of them differs from its baseline in more than
        the content, so that directories may move. The plan of the part holds if it moves none; else plan `part`.
        """
        own = load(changed)
        self.update_ancestry(changed, own)
        near = closure((), {*changed, *parents}, self.ancestry)
        baseline = own if near == set(changed) else load(near)
        if not all(self._is_in_place(conversation, baseline) for conversation in near):
            return None
        return Part(self.world_of(near, baseline), self.whole, near)

    @property
    def whole(self) -> Whole:
        """The properties of both sides as wholes.

        The value refers to this index, so that it isn't stored here: only the garbage collector frees a cycle.
        """
        store, workspace = (len(self.sides[side].paths) for side in (Side.STORE, Side.WORKSPACE))
        return replace(self._whole, directories=workspace, stored=store, taken=self)

    def world_of(self, conversations: Collection[str], baseline: Baseline) -> WorldState:
        """Return a world state that holds only these conversations."""
        store, workspace = (side.part(conversations, self._rules.format.order) for side in self.sides.values())
        return WorldState(store, workspace, baseline)

    def is_clean(self, conversation: str, baseline: Baseline) -> bool:
        """Tell whether a conversation equals its baseline, and no directory of it waits for the name of a new title."""
        kept, here = (side.of(conversation) for side in self.sides.values())
        clean = is_clean(conversation, kept, here, baseline, self._rules)
        return clean and not any(self._awaits_rename(copy, baseline) for copy in (*kept, *here))

    def _awaits_rename(self, copy: Copy, baseline: Baseline) -> bool:
        """Tell whether a killed run has left a directory with the name of an earlier title."""
        if (copy.side, copy.conversation) not in baseline.renames or not isinstance(copy.metadata, Metadata):
            return False
        return copy.dirname != self._rules.format.dirname(copy.conversation, copy.metadata.title)

    def _is_in_place(self, conversation: str, baseline: Baseline) -> bool:
        """Tell whether nothing but the content of a conversation can differ from its baseline."""
        if self.is_clean(conversation, baseline):
            return True
        kept, here = (side.of(conversation) for side in self.sides.values())
        agreed = baseline.agreed.get(conversation)
        return len(kept) == len(here) == 1 and agreed is not None and here[0].path == agreed.place

    def _copies(self, conversation: str) -> list[Copy]:
        return [copy for side in self.sides.values() for copy in side.of(conversation)]

    def _are_inhabited(self) -> tuple[bool, bool]:
        store, workspace = (holds_any(side.copies(), self._rules.format) for side in self.sides.values())
        return store, workspace


def named_by(policy: Policy) -> frozenset[str] | None:
    """Return the conversations that a command names; None: its request may concern any.

    A plan of the closure of these and of the due conversations equals the plan of everything (`SnapshotIndex.part`).
    For `undo`, `concerned_by_run` returns the conversations in the steps of the earlier run.
    """
    chosen = (
        (policy.only - NO_CONVERSATION)
        | policy.below
        | policy.decisions.keys()
        | {conversation for conversation, _ in policy.choices}
    )
    chosen |= policy.allow_secrets.keys()
    match policy.request:
        case None | UndoRequest() | RestoreRequest():
            return chosen
        case LocalRequest(ids) | RemoveRequest(ids) | QuarantineRequest(ids):
            return chosen.union(ids)
        case ProjectRequest(ids, everything, behind, _, records):
            return None if everything or behind or records is not None else chosen.union(ids)
        case SetParentRequest(conversation, parent):
            return chosen.union((conversation, *(() if parent is None else (parent,))))
        case ForkRequest(conversation):
            return chosen | {conversation}
        case _:  # `gc` removes whatever has expired
            return None


def concerned_by_run(past: PastRun, fmt: Format) -> frozenset[str]:
    """Return the conversations of an earlier run, and those whose directories its paths pass through."""
    conversations = {*past.remembered, *past.since.changed, *past.since.undone}
    for action in past.steps:
        conversations.update((action.conversation, *action.touches))
        places = (action.source, action.target, *(write.target for write in action.writes), *action.removes)
        names = {name for place in places if place is not None for name in place.path.split("/")}
        conversations.update(conversation for name in names if (conversation := fmt.id_of(name)) is not None)
    for record in past.remembered.values():
        agreed = record.agreed
        above = (record.parent, *(() if agreed is None else (agreed.parent, agreed.container)))
        conversations.update(conversation for conversation in above if conversation is not None)
    return frozenset(conversations)


def _needs_full_scan(world: WorldState, sides: Sides) -> bool:
    there = world.store.exists and world.workspace.exists
    problems = world.store.problems or world.workspace.problems
    return not there or bool(problems) or sides.store_renewed or sides.workspace_emptied


def completed(plan: Plan, about: Collection[str], before: Plan, places: Places | None = None) -> Plan:
    """Return a plan of some conversations, completed with the entries of ``before`` for all others.

    ``before`` is a plan of everything. An entry for a conversation that already had one keeps its position.
    """
    counted = dict(before.counted)
    for conversation in about:
        counted.pop(conversation, None)
    counted.update(plan.counted)
    return replace(
        plan,
        held=_in_place(plan.held, about, before.held),
        aside=_in_place(plan.aside, about, before.aside),
        notes=_in_place(_of_conversations(plan.notes), about, before.notes),
        conflicts=_in_place(plan.conflicts, about, before.conflicts),
        counted=counted,
        states=states_of(counted, places),
        quiet=plan.quiet and before.quiet,
    )


def _of_conversations(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Return the notes on conversations; notes on a side are unchanged, since a change of those causes a full scan."""
    return tuple(note for note in notes if note.conversation is not None)


def _in_place(items: Iterable[T], about: Collection[str], before: Iterable[T]) -> tuple[T, ...]:
    now: dict[str | None, list[T]] = {}
    for item in items:
        now.setdefault(item.conversation, []).append(item)
    merged: list[T] = []
    for item in before:
        if item.conversation in about:
            merged += now.pop(item.conversation, ())
        else:
            merged.append(item)
    for left in now.values():
        merged += left
    return tuple(merged)
