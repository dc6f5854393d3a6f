"""A part of both sides that a run can be about, and comes to the same plan for it as a run about everything.

Both sides are known from a full scan or from the saved index, and kept up to date (`Known`). A change of some
conversations concerns their closure (`reconcile.planning.incremental.ancestry.closure`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconcile.model.baseline import WorldState
from reconcile.model.options import Layout
from reconcile.model.policy import (
    ForkRequest,
    GcRequest,
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
from reconcile.planning.incremental.remaining import state_of
from reconcile.planning.incremental.side_index import KnownSide
from reconcile.planning.incremental.status import is_settled
from reconcile.planning.rules.guards import Sides, holds_any, whole_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from reconcile.model.baseline import Baseline
    from reconcile.model.format import Format
    from reconcile.model.past_run import PastRun
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Copy
    from reconcile.model.units import Rules
    from reconcile.planning.rules.guards import Whole

    LoadBaseline = Callable[[Collection[str]], Baseline]
    """Loads what is remembered of some conversations."""


USUAL = Sides(store_emptied=False, store_replaced=False, workspace_emptied=False)


class Part(Struct, frozen=True):
    """What a plan of a part is made from. ``conversations`` may be on neither side: a parent that is nowhere."""

    world: WorldState
    whole: Whole
    conversations: frozenset[str]


class Known:
    """Both sides as they are known, and who is above whom; made from a look at everything, and kept up to date.

    ``unusual``: a side as a whole gave cause to look closer, and what is below was true of that moment alone.
    """

    def __init__(
        self,
        sides: Mapping[Side, KnownSide],
        ancestry: Ancestry,
        remembered: frozenset[str],
        whole: Whole,
        rules: Rules,
        inhabited: tuple[bool, bool] | None = None,
    ) -> None:
        """Take over what was known; ``remembered``: what was agreed on at the last look at everything.

        ``inhabited``: whether the store and the workspace held any conversation then.
        """
        self._rules = rules
        self.sides = dict(sides)
        self.ancestry = ancestry
        self.remembered = remembered
        self._whole = whole
        self.inhabited = inhabited or self._are_inhabited()
        self.unusual = False

    @classmethod
    def seen(cls, world: WorldState, rules: Rules) -> Known:
        """Take over what a look at everything has found."""
        whole = whole_of(world.store, world.workspace, world.baseline, rules.format)
        sides = {Side.STORE: KnownSide.seen(world.store), Side.WORKSPACE: KnownSide.seen(world.workspace)}
        ancestry = ancestry_of((*world.store.copies, *world.workspace.copies), world.baseline)
        known = cls(sides, ancestry, frozenset(world.baseline.agreed), whole, rules)
        known.unusual = _is_unusual(world, whole.sides)
        return known

    @property
    def is_ordinary(self) -> bool:
        """Neither side as a whole says anything that isn't usual."""
        return self._whole.sides == USUAL and self.suffices()

    def __contains__(self, conversation: object) -> bool:
        """Tell whether an id belongs to a conversation already."""
        return conversation in self.remembered or any(conversation in side for side in self.sides.values())

    def conversations(self) -> frozenset[str]:
        """Return what is on either side, or was agreed on at the look at everything."""
        return self.remembered.union(*(side.conversations() for side in self.sides.values()))

    def there(self) -> frozenset[str]:
        """Return what is on either side."""
        return frozenset().union(*(side.conversations() for side in self.sides.values()))

    def nowhere(self) -> frozenset[str]:
        """Return what was agreed on, and is on neither side."""
        return self.remembered.difference(*(side.conversations() for side in self.sides.values()))

    def relate(self, conversations: Iterable[str], baseline: Baseline) -> None:
        """Know anew what these are below."""
        for each in conversations:
            self.ancestry.put(each, above(each, self._copies(each), baseline))

    def above(self, conversation: str) -> frozenset[str]:
        """Return a conversation with everything that it may be below."""
        return frozenset(self.ancestry.with_above({conversation}))

    def around(self, conversation: str) -> frozenset[str]:
        """Return a conversation with everything that may be below it, and all that any of those may be below."""
        return frozenset(self.ancestry.with_above(self.ancestry.with_below({conversation})))

    def suffices(self) -> bool:
        """Tell whether both sides as wholes are as at the look at everything, and gave no cause for another."""
        return not self.unusual and self.inhabited == self._are_inhabited()

    def states_at_rest(self, conversations: Iterable[str], baseline: Baseline, policy: Policy) -> dict[str, str]:
        """Return the states of the conversations that are clean and lie where the layout puts them.

        No plan says anything of one of these, unless another one that has changed concerns it.
        """
        states = {}
        store, workspace = self.sides[Side.STORE], self.sides[Side.WORKSPACE]
        unsettled = {each for each, _ in baseline.asides} | {each for _, each in baseline.renames}
        for each in conversations:
            kept, here = store.of(each), workspace.of(each)
            state = state_of(kept, here, baseline, policy, self._rules)
            is_there = state is not None and each not in unsettled and not self._is_circular(each)
            if is_there and state is not None and all(self._is_placed(kept[0], copy, policy) for copy in here):
                states[each] = state
        return states

    def _is_circular(self, conversation: str) -> bool:
        """Tell whether a conversation, as the store states parents, is its own ancestor."""
        above = self._parent_of(conversation)
        seen = {conversation}
        while above is not None and above not in seen:
            seen.add(above)
            above = self._parent_of(above)
        return above is not None

    def _is_placed(self, kept: Copy, here: Copy, policy: Policy) -> bool:
        """Tell whether a workspace's directory lies where the layout puts it."""
        flat = policy.layout is Layout.FLAT or kept.archived
        return here.container == (None if flat else self._parent_of(kept.conversation))

    def _parent_of(self, conversation: str) -> str | None:
        """Return the live parent that the store states for a live conversation."""
        copies = self.sides[Side.STORE].of(conversation)
        metadata = copies[0].metadata if len(copies) == 1 and not copies[0].archived else None
        parent = metadata.parent.id if isinstance(metadata, Metadata) else None
        above = self.sides[Side.STORE].of(parent) if parent is not None else []
        return parent if len(above) == 1 and not above[0].archived else None

    def part(self, changed: Collection[str], load: LoadBaseline) -> Part:
        """Return the part that a change of these conversations concerns."""
        left = frozenset().union(*(self.ancestry.parents(each) for each in changed))
        self.relate(changed, load(changed))

        def unsettled(ancestors: Collection[str]) -> set[str]:
            baseline = load(ancestors)
            return {each for each in ancestors if not self._is_settled(each, baseline)}

        near = closure(changed, left, self.ancestry, unsettled)
        return Part(self.look(near, load(near)), self.whole, near)

    @property
    def whole(self) -> Whole:
        """What there is to know of both sides besides a part.

        It leads back here, so that it isn't kept: of a circle, the memory is not free before the collector comes.
        """
        store, workspace = (len(self.sides[side].paths) for side in (Side.STORE, Side.WORKSPACE))
        return replace(self._whole, directories=workspace, stored=store, taken=self)

    def look(self, conversations: Collection[str], baseline: Baseline) -> WorldState:
        """Return both sides as if they held these conversations alone."""
        store, workspace = (side.part(conversations, self._rules.format.order) for side in self.sides.values())
        return WorldState(store, workspace, baseline)

    def _is_settled(self, conversation: str, baseline: Baseline) -> bool:
        kept, here = (side.of(conversation) for side in self.sides.values())
        return is_settled(conversation, kept, here, baseline, self._rules)

    def _copies(self, conversation: str) -> list[Copy]:
        return [copy for side in self.sides.values() for copy in side.of(conversation)]

    def _are_inhabited(self) -> tuple[bool, bool]:
        store, workspace = (holds_any(side.copies(), self._rules.format) for side in self.sides.values())
        return store, workspace


def named_by(policy: Policy) -> frozenset[str] | None:
    """Return the conversations that a command names; None: what it asks for may concern any.

    A plan of the part around these, and around what is due, equals the plan of everything (`Known.part`). The
    conversations of an earlier run (`undo`) are in its steps (`concerned_by_run`).
    """
    chosen = policy.only | policy.below | policy.decisions.keys()
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
        case GcRequest():
            return None


def concerned_by_run(past: PastRun, fmt: Format) -> frozenset[str]:
    """Return the conversations of an earlier run, and those whose directories its paths pass through."""
    found = {*past.remembered, *past.since.changed, *past.since.undone}
    for action in past.steps:
        found.update((action.conversation, *action.touches))
        places = (action.source, action.target, *(write.target for write in action.writes), *action.removes)
        names = {name for place in places if place is not None for name in place.path.split("/")}
        found.update(each for name in names if (each := fmt.id_of(name)) is not None)
    for known in past.remembered.values():
        agreed = known.agreed
        above = (known.parent, *(() if agreed is None else (agreed.parent, agreed.container)))
        found.update(conversation for conversation in above if conversation is not None)
    return frozenset(found)


def _is_unusual(world: WorldState, sides: Sides) -> bool:
    there = world.store.exists and world.workspace.exists
    problems = world.store.problems or world.workspace.problems
    return not there or bool(problems) or sides.store_renewed or sides.workspace_emptied
