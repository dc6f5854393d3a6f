"""What the state is told of a run: its steps ahead, how far they came, and what was learned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconcile.apply.outcome import Outcome, Result
from reconcile.model.baseline import LOST, records_of
from reconcile.model.snapshot import METADATA, WHOLE, Side
from reconcile.planning.baseline_update import brought
from reconcile.planning.rules.tree import stated_alone
from reconcile.serialization.plan_json import action_to_json
from reconcile.state.connection import as_json
from reconcile.state.database import BaselineUpdate
from reconcile.state.journal import ROOTS, Journal, Step
from reconcile.state.vault import Version

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from reconcile.model.baseline import Baseline, Intent, PendingRequest, Verb, WorldState
    from reconcile.model.plan import Action, Plan, Preserve
    from reconcile.planning.baseline_update import Changes
    from reconcile.state.database import State
    from reconcile.state.journal import Run

_INTERRUPTED = "the run was interrupted"
_OF_THE_PLAN = ("id", "needs", "touches", "together", "title")
"""Fields of an action that say how to carry it out, not what it did."""


class Recorder(Struct, frozen=True):
    """The executor's journal: rows of one run."""

    state: State
    run: str
    clock: Callable[[], int]

    @property
    def journal(self) -> Journal:
        """The rows of all runs."""
        return self.state.journal

    def begun(self, actions: Sequence[Action], kept: Sequence[Version]) -> None:
        """Note that these actions are about to change files, of which the vault has these versions."""
        with self.state.transaction():
            self.state.versions.add(kept)
            self.journal.step_begun(self.run, [action.id for action in actions], self.clock())

    def ended(self, outcome: Outcome, actions: Sequence[Action]) -> None:
        """Note what became of these actions."""
        by: dict[Result, dict[str, str]] = {result: {} for result in Result}
        for action in actions:
            deed = outcome.deeds[action.id]
            by[deed.result][action.id] = deed.message
        now = self.clock()
        self.journal.step_done(self.run, by[Result.DONE], now)
        self.journal.step_failed(self.run, by[Result.FAILED], now)
        self.journal.step_skipped(self.run, by[Result.SKIPPED], now)


def planned_steps(plan: Plan) -> Iterator[Step]:
    """Yield the rows of a plan's actions, each with all that an undo must know of it."""
    rooted = frozenset(plan.rooted)
    for action in plan.actions:
        record = action_to_json(action)
        for name in _OF_THE_PLAN:
            del record[name]
        for write in record["writes"]:
            # The vault is the one place that keeps content, so that what is purged from it is nowhere.
            del write["content"]
        if action.conversation in rooted and _states_parent(action):
            record[ROOTS] = True
        yield Step(action.id, action.conversation, action.unit, action.kind.value, as_json(record))


def preserved(version: Preserve, digest: str, run: str) -> Version:
    """Return the row of a version that was put into the vault although nothing replaces it."""
    return Version(
        digest=digest,
        xxh3=version.digest,
        size=version.size,
        conversation=version.conversation,
        unit=version.unit,
        file=version.place.path.rpartition("/")[2],
        side=version.place.side,
        path=version.place.path,
        mtime_ns=version.mtime_ns,
        run=run,
        why="kept",
    )


def _states_parent(action: Action) -> bool:
    """Tell whether an action writes the file of the store that says who the parent is."""
    return action.target.side is Side.STORE and action.unit in (METADATA, WHOLE) and bool(action.writes)


def _parents_at_stake(world: WorldState, written: set[str]) -> dict[str, str]:
    unknown = written - world.baseline.parents.keys()
    return stated_alone(world.store, world.workspace, unknown) if unknown else {}


def decided_ahead(plan: Plan, world: WorldState, run: str) -> BaselineUpdate:
    """Return what a plan decides of intents, set-aside states, tombstones and roots, written before its first step."""
    intents = {key: _noticed(intent, run) for key, intent in plan.intents}
    written = {action.conversation for action in plan.actions if _states_parent(action)}
    return BaselineUpdate(
        agreed=dict.fromkeys(plan.voided),
        intents=intents,
        asides=dict(plan.asides),
        tombstones=dict(plan.tombstones),
        store_identity=LOST if plan.store_lost and world.baseline.agreed and world.baseline.store_identity else None,
        store_lost=plan.store_lost,
        brought=brought(plan),
        waiting={key: waiting and replace(waiting, run=run, why=_INTERRUPTED) for key, waiting in plan.waiting},
        # An absent key would mean the known parent to whoever comes after a kill. Where the store's file still states
        # one, it is known until that is written: else that would look like a change.
        parents={
            **dict.fromkeys(each for each in plan.rooted if each not in written),
            **_parents_at_stake(world, written),
        },
        run=run,
    )


def _noticed(intent: Intent | None, run: str | None) -> Intent | None:
    """Say which run noticed, or decided: `recover` offers what is gone run by run."""
    return intent if intent is None or intent.run else replace(intent, run=run)


def learned(changes: Changes, run: str | None) -> BaselineUpdate:
    """Return the rows of what a run has achieved."""
    return BaselineUpdate(
        agreed=changes.agreed,
        history={key: (digest,) for key, digest in changes.history.items()},
        parents=changes.parents,
        intents={key: _noticed(intent, run) for key, intent in changes.intents.items()},
        tombstones={key: None for key, digests in changes.tombstones.items() if digests is None},
        waiting=dict(changes.waiting),
        run=run,
        store_identity=changes.store_identity,
        store_lost=changes.store_lost,
        layout=changes.layout,
    )


def explained(
    plan: Plan, outcome: Outcome, baseline: Baseline, ended: Collection[object]
) -> dict[tuple[str, Verb], PendingRequest]:
    """Return the requests that a run has recorded and not carried out, each with what was in the way."""
    left = {deed.action.conversation: deed.message for deed in outcome.deeds.values() if deed.result is not Result.DONE}
    held = {item.conversation: item.message for item in plan.held}
    return {
        key: replace(waiting, why=left.get(key[0]) or held.get(key[0]) or held.get(None) or "it could not be done then")
        for key, waiting in baseline.waiting.items()
        if waiting.run == outcome.run and key not in ended
    }


def forget_untouched(state: State, run: str, checkout: int | None) -> None:
    """Take out of the journal that a run concerned conversations of which it has changed nothing.

    An intent that it wrote ahead holds, and is a change, whatever became of the steps; so is a request that waits.
    """
    untouched = state.journal.untouched(run)
    if untouched:
        before = state.journal.remembered(run)
        asked = untouched & before.keys()
        baseline = state.load(checkout, asked)
        recorded = {each for (each, _), waiting in baseline.waiting.items() if waiting.run == run}
        now = records_of(baseline, asked - recorded)
        state.journal.drop_remembered(run, [each for each, found in now.items() if found == before[each]])


def put_back_untouched(state: State, run: Run) -> None:
    """Have hold again what was remembered before an undo that was killed, of the conversations that it had not begun.

    What a later run has remembered meanwhile stays.
    """
    untouched = state.journal.untouched(run.id) - state.journal.concerned_since(run.id).keys()
    if run.undoes is not None and run.checkout is not None and untouched:
        before = state.journal.remembered(run.id)
        again = {each: before[each] for each in untouched & before.keys()}
        state.journal.record_intents(run.id, run.checkout, BaselineUpdate(), again)
