"""Records a run in the state: its planned steps, their results, and the changes of the baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconcile.apply.executor import Outcome, Result
from reconcile.model.baseline import LOST, records_of
from reconcile.model.plan import Kind
from reconcile.model.snapshot import METADATA, WHOLE, Side
from reconcile.planning.baseline_update import brought
from reconcile.planning.filters import follows_steps, without_left
from reconcile.planning.rules.tree import stated_alone
from reconcile.serialization.plan_json import action_to_json
from reconcile.state.connection import as_json
from reconcile.state.database import BaselineUpdate
from reconcile.state.journal import ROOTS, Journal, Step
from reconcile.state.vault import Version

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from reconcile.model.baseline import AsideRecord, Baseline, Intent, PendingRequest, Verb, WorldState
    from reconcile.model.plan import Action, Plan, Preserve
    from reconcile.planning.baseline_update import Changes
    from reconcile.state.database import State
    from reconcile.state.journal import Run

_INTERRUPTED = "the run was interrupted"
_OF_THE_PLAN = ("id", "needs", "touches", "together", "title")
"""Fields of an action that only concern its execution."""


class Recorder(Struct, frozen=True):
    """The executor's journal: the rows of one run."""

    state: State
    run: str
    clock: Callable[[], int]

    @property
    def journal(self) -> Journal:
        """The journal of all runs."""
        return self.state.journal

    def begun(self, outcome: Outcome, actions: Sequence[Action], kept: Sequence[Version]) -> None:
        """Record the results so far, and that these actions are about to change files.

        The vault has these versions of them.
        """
        with self.state.transaction():
            self.ended(outcome)
            self.state.versions.add(kept)
            self.journal.step_begun(self.run, [action.id for action in actions], self.clock())

    def ended(self, outcome: Outcome) -> None:
        """Record the results so far. Steps that may not be on the disk stay begun: the next run looks."""
        if not outcome.unrecorded:
            return
        by: dict[Result, dict[str, str]] = {result: {} for result in Result}
        for action in outcome.unrecorded:
            if action.id in outcome.unsettled:
                continue
            entry = outcome.results[action.id]
            by[entry.result][action.id] = entry.message
        now = self.clock()
        with self.state.transaction():
            self.journal.step_done(self.run, by[Result.DONE], now)
            self.journal.step_failed(self.run, by[Result.FAILED], now)
            self.journal.step_skipped(self.run, by[Result.SKIPPED], now)
        outcome.unrecorded = []


def planned_steps(plan: Plan) -> Iterator[Step]:
    """Yield the steps of a plan, each with everything that an undo needs."""
    rooted = frozenset(plan.rooted)
    for action in plan.actions:
        record = action_to_json(action)
        for name in _OF_THE_PLAN:
            del record[name]
        for write in record["writes"]:
            # Only the vault stores content: a purge of the vault must remove it completely.
            del write["content"]
        if action.conversation in rooted and _states_parent(action):
            record[ROOTS] = True
        yield Step(action.id, action.conversation, action.unit, record["kind"], as_json(record))


def preserved_version(version: Preserve, digest: str, run: str, mode: int) -> Version:
    """Return the version of a file that was saved to the vault although no action replaces it."""
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
        mode=mode,
    )


def _states_parent(action: Action) -> bool:
    """Tell whether an action writes the store's file that names the parent."""
    return action.target.side is Side.STORE and action.unit in (METADATA, WHOLE) and bool(action.writes)


def _parents_at_stake(plan: Plan, world: WorldState, written: set[str]) -> dict[str, str]:
    unknown = written - world.baseline.parents.keys()
    if not unknown:
        return {}
    edits = (Kind.SET_PARENT, Kind.PROMOTE)
    put_back = {action.conversation for action in plan.actions if action.kind in edits and _states_parent(action)}
    return stated_alone(world.store, world.workspace, unknown, put_back)


def planned_update(plan: Plan, world: WorldState, run: str) -> BaselineUpdate:
    """Return the changes of intents, asides, tombstones and roots that precede the first step of a plan.

    Some asides follow the steps (`asides_after`).
    """
    before, restored = world.baseline.intents, dict(plan.remembered)
    intents = {
        key: _noticed(intent, run)
        for key, intent in plan.intents
        if key in restored or not _is_repeated(intent, before.get(key))
    }
    written = {action.conversation for action in plan.actions if _states_parent(action)}
    return BaselineUpdate(
        agreed=dict.fromkeys(plan.voided),
        intents=intents,
        asides={key: record for key, record in plan.asides if not follows_steps(key, record)},
        tombstones=dict(plan.tombstones),
        store_identity=LOST if plan.store_lost and world.baseline.agreed and world.baseline.store_identity else None,
        store_lost=plan.store_lost,
        brought=brought(plan),
        waiting={key: waiting and replace(waiting, run=run, why=_INTERRUPTED) for key, waiting in plan.waiting},
        # After a kill, an absent key would mean the known parent. If the store's file still names a parent, that one
        # stays known until the file is written: otherwise it would look like a change.
        parents={
            **dict.fromkeys(key for key in plan.rooted if key not in written),
            **_parents_at_stake(plan, world, written),
        },
        run=run,
    )


def asides_after(plan: Plan, undone: Collection[str]) -> dict[tuple[str, str], AsideRecord | None]:
    """Return the changes of asides that are true after the steps; ``undone``: ids of undone actions.

    The step that merges or forks a `local` conversation saves the workspace's content. Recorded before that step, the
    record would keep the content from the store after a kill. Until its conflict is decided, what an undo has left is
    no older version: released before the steps, the record would let a kill make it one.
    """
    left = [action for action in plan.actions if action.id in undone]
    return {key: record for key, record in without_left(plan.asides, left) if follows_steps(key, record)}


def _noticed(intent: Intent | None, run: str | None) -> Intent | None:
    """Add the run to an intent without one: `recover` lists removed conversations by run."""
    return intent if intent is None or intent.run else replace(intent, run=run)


def _is_repeated(intent: Intent | None, before: Intent | None) -> bool:
    """Tell whether an intent says nothing new: the run that noticed it first stays."""
    return before is not None and intent is not None and replace(before, run=intent.run) == intent


def achieved_update(
    changes: Changes, run: str | None, asides: Mapping[tuple[str, str], AsideRecord | None]
) -> BaselineUpdate:
    """Return the changes of the baseline by the results of a run; ``asides`` are those of steps that are done."""
    return BaselineUpdate(
        asides=asides,
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
        contents=changes.contents,
    )


def unfinished_requests(
    plan: Plan, outcome: Outcome, baseline: Baseline, ended: Collection[object]
) -> dict[tuple[str, Verb], PendingRequest]:
    """Return the requests that a run has recorded and not carried out, each with the reason."""
    left = {
        entry.action.conversation: entry.message
        for entry in outcome.results.values()
        if entry.result is not Result.DONE
    }
    held = {item.conversation: item.message for item in plan.held}
    return {
        key: replace(
            waiting, why=left.get(key[0]) or held.get(key[0]) or held.get(None) or "it was not possible in that run"
        )
        for key, waiting in baseline.waiting.items()
        if waiting.run == outcome.run and key not in ended
    }


def forget_untouched(state: State, run: str, checkout: int | None) -> None:
    """Remove the conversations from the record of a run that it has not changed: `undo` and `log` read that record.

    These needed no step, or were skipped, failed, or not begun before a kill. An intent or a request that the run has
    written is a change, whatever the results of the steps are. So is an undo without a step: it isn't requested again.
    """
    _end_wishes(state, run, checkout)
    untouched = state.journal.untouched(run) | state.journal.without_step(run)
    if untouched:
        before = state.journal.records_of(run)
        recorded_before = untouched & before.keys()
        baseline = state.load(checkout, recorded_before)
        recorded = {conversation for (conversation, _), waiting in baseline.waiting.items() if waiting.run == run}
        now = records_of(baseline, recorded_before - recorded)
        state.journal.drop_records(
            run, [key for key, record in now.items() if record == replace(before[key], dropped={})]
        )


def _end_wishes(state: State, run: str, checkout: int | None) -> None:
    """End the requests to publish the forks that a run has not made: a conversation that gets such an id is another."""
    unmade = state.journal.unmade_forks(run) if checkout is not None else set()
    if unmade and checkout is not None:
        intents = state.load(checkout, unmade).intents
        ended = {key: None for key in unmade if key in intents and intents[key].is_wish}
        state.save_update(checkout, BaselineUpdate(intents=ended))


def restore_untouched(state: State, run: Run) -> None:
    """Restore the baseline of the conversations that a killed undo had not begun.

    The changes of later runs stay.
    """
    untouched = state.journal.untouched(run.id) - state.journal.concerned_since(run.id).keys()
    if run.undoes is not None and run.checkout is not None and untouched:
        before = state.journal.records_of(run.id)
        restored = {key: before[key] for key in untouched & before.keys()}
        state.journal.record_intents(run.id, run.checkout, BaselineUpdate(), restored)
