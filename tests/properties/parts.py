"""Every run beside one that is about a part: what has changed since the last plain run, what the command names, and
what both concern.

The plan of the part must be the plan of everything, and what is learned from it must be the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.library.change_plan import concerns_others
from reconcile.model.baseline import Baseline, IntentKind, WorldState, records_of
from reconcile.model.policy import ForkRequest, UndoRequest
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import Side, Stream
from reconcile.planning.baseline_update import update_baseline
from reconcile.planning.decide import decide
from reconcile.planning.filters import without_git
from reconcile.planning.incremental.scope import Part, SnapshotIndex, concerned_by_run, named_by
from reconcile.planning.planner import make_plan
from reconcile.planning.requests.fork import plan_branch
from reconcile.planning.requests.undo import plan_undo
from reconcile.planning.rules.guards import compare_sides, holds_any
from tests.support.scenarios.pure_level import RULES, PureLevel

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from reconcile.model.past_run import PastRun
    from reconcile.model.plan import Item, Note, Plan
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Copy, Snapshot
    from reconcile.planning.baseline_update import Changes
    from tests.support.scenarios.commands import Command, Outcome


def restricted(baseline: Baseline, conversations: Collection[str]) -> Baseline:
    """Return what is remembered of some conversations, as the state would load it."""
    return replace(
        baseline,
        agreed={key: each for key, each in baseline.agreed.items() if key in conversations},
        intents={key: each for key, each in baseline.intents.items() if key in conversations},
        history={key: each for key, each in baseline.history.items() if key[0] in conversations},
        parents={key: each for key, each in baseline.parents.items() if key in conversations},
        tombstones={key: each for key, each in baseline.tombstones.items() if key in conversations},
        asides={key: each for key, each in baseline.asides.items() if key[0] in conversations},
        waiting={key: each for key, each in baseline.waiting.items() if key[0] in conversations},
    )


@dataclass(slots=True)
class Kept:
    """What is kept of one checkout from run to run."""

    known: SnapshotIndex
    baseline: Baseline
    foreign: tuple[object, ...]
    identities: tuple[str, str]
    policy: Policy
    due: frozenset[str] = frozenset()
    """What has changed since the last plain run, and what limited runs have touched."""
    noteworthy: frozenset[str] = frozenset()
    """What the last plain run spoke of: another preference may decide it."""
    stuck: bool = False
    """Something is held that concerns a side as a whole, so that other conversations may be due."""

    def is_as_before(self, store: Snapshot, workspace: Snapshot, policy: Policy) -> bool:
        """Tell whether nothing is different but conversations."""
        foreign, identities = (*store.foreign, *workspace.foreign), (store.identity, workspace.identity)
        return (self.policy, self.foreign, self.identities) == (policy, foreign, identities)


@dataclass(slots=True)
class PartLevel(PureLevel):
    """The pure level, with each plain run compared."""

    kept: dict[str, Kept] = field(default_factory=dict)
    at: str = ""
    part: Part | None = None
    learned: set[str] = field(default_factory=set)
    before: Baseline = field(default_factory=Baseline)
    counts: dict[str, int] = field(default_factory=dict)

    def run(self, command: Command) -> Outcome:
        self.at, self.part, self.learned = command.workspace, None, set()
        self.before = self.memories.of(self.at)
        outcome = PureLevel.run(self, command)
        kept = self.kept.get(self.at)
        if self.learned and kept is not None:
            kept.baseline = self.memories.of(self.at)
            kept.known.update_ancestry(self.learned, kept.baseline)
        return outcome

    def _plan(self, store: Snapshot, workspace: Snapshot, baseline: Baseline, policy: Policy) -> Plan:
        named = named_by(policy)
        plan = PureLevel._plan(self, store, workspace, baseline, policy)
        self.part = self._part(WorldState(store, workspace, baseline), policy, named) if named is not None else None
        if self.part is not None:
            look, whole = self.part.world, self.part.whole
            if isinstance(policy.request, ForkRequest):
                context = decide(look.store, look.workspace, look.baseline, policy, RULES, self.now_ns, whole=whole)
                source = self._stored(context, policy.request.id)
                mine = without_git(plan_branch(context, policy.request, source), policy.git_busy)
            else:
                mine = make_plan(look.store, look.workspace, look.baseline, policy, RULES, self.now_ns, whole)
            self._compare(plan, mine, policy)
        if _is_plain(policy):
            self._compare_in_place(WorldState(store, workspace, baseline), policy)
        return plan

    def _compare_in_place(self, look: WorldState, policy: Policy) -> None:
        """Compare the library's plan of each conversation, if it moves no directory, with that of everything."""
        known = SnapshotIndex.of_world(_without_events(look), RULES)
        if not known.suffices():
            return
        for conversation in sorted(known.present()):
            part = known.part_in_place((conversation,), lambda ids: restricted(look.baseline, ids))
            if part is None:
                continue
            world, alone = (
                _with_events(part.world, look.store, look.workspace),
                replace(policy, only=frozenset({conversation})),
            )
            mine = make_plan(world.store, world.workspace, world.baseline, alone, RULES, self.now_ns, part.whole)
            if not concerns_others(mine):
                whole = make_plan(look.store, look.workspace, look.baseline, alone, RULES, self.now_ns)
                # The guard counts the removals of all conversations, and a plan in place has none.
                held = tuple(item for item in whole.held if item.reason is not Reason.BULK)
                _compare(replace(whole, held=held), mine, part)
                self.counts["in place"] = self.counts.get("in place", 0) + bool(mine.actions)

    def _undo(self, past: PastRun, look: WorldState, policy: Policy) -> Plan:
        plan = PureLevel._undo(self, past, look, policy)
        self.part = self._part(look, policy, concerned_by_run(past, RULES.format) | policy.only | policy.below)
        if self.part is not None:
            self._compare(plan, plan_undo(past, self.part.world, policy, RULES, self.now_ns, self.part.whole), policy)
        return plan

    def _compare(self, plan: Plan, mine: Plan, policy: Policy) -> None:
        assert self.part is not None
        _compare(plan, mine, self.part)
        if not _is_plain(policy):
            name = "undo" if isinstance(policy.request, UndoRequest) else type(policy.request).__name__.lower()
            self.counts[name] = self.counts.get(name, 0) + 1
            assert mine.about == plan.about
            assert mine.waiting == plan.waiting
            assert mine.remembered == plan.remembered
            if plan.about is not None and not plan.quiet and not mine.quiet:
                assert mine.states == plan.states
                assert mine.outline == plan.outline

    def _part(self, look: WorldState, policy: Policy, named: Collection[str]) -> Part | None:
        store, workspace, baseline = look.store, look.workspace, look.baseline
        kept = self.kept.get(self.at)
        if (
            kept is None
            or kept.stuck
            or not kept.is_as_before(store, workspace, self._plain(policy))
            or baseline.waiting
        ):
            return None
        # More may be remembered since another checkout's run, which makes an empty side one that was emptied.
        if kept.baseline != baseline and not (
            holds_any(store.copies, RULES.format) and holds_any(workspace.copies, RULES.format)
        ):
            return None
        # Where conversations have left a side, or another checkout has found the store lost, all is looked at.
        if compare_sides(store, workspace, baseline, RULES.format).store_renewed:
            return None
        kept.due |= _take_in(kept, look)
        if not kept.known.suffices():
            return None
        part = kept.known.part(kept.due.union(named, kept.noteworthy), lambda ids: restricted(baseline, ids))
        self.counts["parts"] = self.counts.get("parts", 0) + 1
        self.counts["smaller"] = self.counts.get("smaller", 0) + (
            len(part.world.store.copies) + len(part.world.workspace.copies) < len(store.copies) + len(workspace.copies)
        )
        return replace(part, world=_with_events(part.world, store, workspace))

    def verb(self, words: tuple[str, ...]) -> None:
        """Hold no lock: what is left undone is looked at again by every pass, whatever the part."""
        if words[0] not in ("lock", "unlock"):
            PureLevel.verb(self, words)

    def _learned(
        self, store: Snapshot, workspace: Snapshot, baseline: Baseline, plan: Plan, undone: Collection[str]
    ) -> Changes:
        changes = PureLevel._learned(self, store, workspace, baseline, plan, undone)
        if not _is_plain(plan.policy):
            if self.part is not None:
                self._check_learned(store, workspace, baseline, plan, undone, changes)
            return changes
        if self.part is None:
            known = SnapshotIndex.of_world(_without_events(WorldState(store, workspace, baseline)), RULES)
            self.learned = {*_ids(baseline), *(copy.conversation for copy in (*store.copies, *workspace.copies))}
        else:
            known = self.kept[self.at].known
            self._check_learned(store, workspace, baseline, plan, undone, changes)
        self.kept[self.at] = Kept(
            known,
            baseline,
            (*store.foreign, *workspace.foreign),
            (store.identity, workspace.identity),
            plan.policy,
            noteworthy=frozenset(_spoken_of(plan)),
            stuck=any(item.conversation is None for item in plan.held) or not known.suffices(),
        )
        return changes

    def _check_learned(
        self,
        store: Snapshot,
        workspace: Snapshot,
        baseline: Baseline,
        plan: Plan,
        undone: Collection[str],
        changes: Changes,
    ) -> None:
        assert self.part is not None
        kept = self.kept[self.at]
        known = kept.known
        kept.due |= _take_in(kept, WorldState(store, workspace, baseline))
        ids = self.part.conversations | {action.conversation for action in plan.actions}
        self.learned = set(ids)
        look = _with_events(known.world_of(ids, restricted(baseline, ids)), store, workspace)
        mine = update_baseline(look.store, look.workspace, look.baseline, plan, RULES, undone, known.whole)
        # What a plan decides ahead of a parent may be taken back by what is learned, in every run.
        again = {key for key, parent in changes.parents.items() if self.before.parents.get(key) == parent} - ids
        # That a conversation is local is learned from its metadata by the run after the one that saved it.
        late = {key for key, each in changes.intents.items() if each and each.kind is IntentKind.LOCAL} - ids
        ours = replace(
            changes,
            parents={key: each for key, each in changes.parents.items() if key not in again},
            intents={key: each for key, each in changes.intents.items() if key not in late},
        )
        assert mine == ours, f"of a part, something else is learned: {mine}\nnot {changes}"
        # A side that was empty and is not: were it emptied again, that would look as it did at the last full look.
        kept.stuck = kept.stuck or not known.suffices()


def _spoken_of(plan: Plan) -> Iterator[str]:
    items: tuple[Item | Note, ...] = (*plan.held, *plan.aside, *plan.notes)
    return (item.conversation for item in items if item.conversation is not None)


def _is_plain(policy: Policy) -> bool:
    return not (policy.request or policy.only or policy.below or policy.decisions)


def _take_in(kept: Kept, look: WorldState) -> set[str]:
    """Have what is known be what is there; return what has changed of files, or of what is remembered."""
    look = _without_events(look)
    changed: set[str] = set()
    for side, snapshot in ((Side.STORE, look.store), (Side.WORKSPACE, look.workspace)):
        known, now = kept.known.sides[side], {copy.path: copy for copy in snapshot.copies}
        before = {copy.path: copy for copy in known.copies()}
        gone = [copy for path, copy in before.items() if path not in now]
        new = [copy for path, copy in now.items() if before.get(path) != copy]
        changed |= {copy.conversation for copy in (*gone, *new)}
        changed |= {before[copy.path].conversation for copy in new if copy.path in before}
        for copy in gone:
            known.drop(copy.path)
        for copy in new:
            known.put(copy)
    ids = {*_ids(kept.baseline), *_ids(look.baseline)}
    earlier, after = records_of(kept.baseline, ids), records_of(look.baseline, ids)
    history = (kept.baseline.history, look.baseline.history)
    changed |= {each for each in ids if earlier[each] != after[each]}
    changed |= {key[0] for key in {**history[0], **history[1]} if history[0].get(key) != history[1].get(key)}
    return changed


def _ids(baseline: Baseline) -> Iterable[str]:
    yield from (*baseline.agreed, *baseline.intents, *baseline.parents, *baseline.tombstones)
    yield from (conversation for conversation, _ in baseline.asides)


def _without_events(look: WorldState) -> WorldState:
    store, workspace = (
        replace(side, copies=tuple(_bare(copy) for copy in side.copies)) for side in (look.store, look.workspace)
    )
    return WorldState(store, workspace, look.baseline)


def _bare(copy: Copy) -> Copy:
    if not isinstance(copy.stream, Stream):
        return copy
    return replace(copy, stream=Stream(copy.stream.count, copy.stream.last))


def _with_events(look: WorldState, store: Snapshot, workspace: Snapshot) -> WorldState:
    found = {copy.place: copy for copy in (*store.copies, *workspace.copies)}
    ours, theirs = (
        replace(side, copies=tuple(found[copy.place] for copy in side.copies)) for side in (look.store, look.workspace)
    )
    return WorldState(ours, theirs, look.baseline)


def _compare(plan: Plan, mine: Plan, part: Part) -> None:
    ids = part.conversations | {action.conversation for action in mine.actions}

    def about(items: Iterable[Item] | Iterable[Note]) -> list[object]:
        return [item for item in items if item.conversation in ids]

    assert mine.actions == plan.actions
    assert mine.intents == plan.intents
    assert mine.tombstones == plan.tombstones
    assert mine.asides == plan.asides
    assert mine.voided == plan.voided
    assert about(mine.held) == about(plan.held)
    assert about(mine.aside) == about(plan.aside)
    assert about(mine.notes) == about(plan.notes)
    assert [item for item in mine.held if item.conversation is None] == [
        item for item in plan.held if item.conversation is None
    ]
    assert mine.preserve == tuple(each for each in plan.preserve if each.conversation in ids)
    if not mine.quiet and not plan.quiet:
        assert dict(mine.places) == {key: place for key, place in plan.places if key in ids}
        assert mine.rooted == tuple(each for each in plan.rooted if each in ids)
        assert set(mine.outline) <= set(plan.outline)
