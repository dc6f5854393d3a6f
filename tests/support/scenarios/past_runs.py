"""The runs of a scenario on the pure level, as an undo needs them; the vault is every content that ever was there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.model.baseline import IntentKind, records_of, with_dropped
from reconcile.model.past_run import PastRun, SavedFile, changed_since, undone_runs
from reconcile.model.policy import UndoRequest
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import Side
from reconcile.planning.simulate import simulate
from tests.support.scenarios.line_reader import ScenarioError
from tests.support.scenarios.plan_execution import inside, is_directory_removal

if TYPE_CHECKING:
    from reconcile.model.baseline import Baseline
    from reconcile.model.plan import Plan
    from reconcile.model.snapshot import Place
    from reconcile.planning.simulate import Listing

LATEST = "latest"
"""What ``undo`` without a run asks for."""
REDO = "redo "
"""Before the run, or `LATEST`, that ``redo`` asks for."""


@dataclass(frozen=True, slots=True)
class _Past:
    workspace: str
    run: PastRun
    concerned: frozenset[str]
    undoes: str | None
    shared: frozenset[str]
    """The conversations of which it changed what all checkouts share."""
    only_notes: bool


@dataclass(slots=True)
class PastRuns:
    """Every command by its number in the file, as ``run1``, where it has changed something."""

    count: int = 0
    runs: dict[str, _Past] = field(default_factory=dict)

    def add(self, workspace: str, plan: Plan, baseline: Baseline, before: Listing) -> None:
        """Note what a command is about to do."""
        self.count += 1
        # What a run has only stopped believing of a lost store is nothing that it did.
        concerned = replace(plan, voided=()).concerned
        if plan.concerned:
            request = plan.policy.request
            undoes = request.run if isinstance(request, UndoRequest) else None
            remembered = records_of(baseline, concerned, plan.voided)
            run = PastRun(
                id=f"run{self.count}",
                steps=plan.actions,
                kept=kept_of(plan, before),
                remembered=remembered if undoes is None else with_dropped(remembered, baseline, plan.waiting),
                is_undo=undoes is not None,
                repeats=undoes is not None and not self._is_undo(undoes),
            )
            self.runs[run.id] = _Past(workspace, run, concerned, undoes, _shared(plan, baseline), _only_notes(plan))

    def of(self, workspace: str) -> list[str]:
        """Return the runs of a checkout that are no undo, and not taken back as a whole, the oldest first."""
        undoes = {name: past.undoes for name, past in self.runs.items()}
        ours = {name: past for name, past in self.runs.items() if past.workspace == workspace}
        here = [name for name, past in ours.items() if past.undoes is None and not past.only_notes]
        return [name for name in here if any(self._holds(name, each, undoes) for each in self.runs[name].concerned)]

    def resolved(self, workspace: str, text: str) -> str:
        """Return the run that is meant."""
        if text in self.runs:
            return text
        if text.startswith(REDO):
            return self._undo_of(workspace, text.removeprefix(REDO))
        known = self.of(workspace)
        if text != LATEST or not known:
            raise ScenarioError(f"there is no run {text!r} to undo")
        return known[-1]

    def undone(self, workspace: str) -> list[str]:
        """Return the runs of a checkout that an undo in effect has taken back, the last one first."""
        return [self.runs[undo].undoes or "" for undo in reversed(self._undos(workspace))]

    def _undo_of(self, workspace: str, run: str) -> str:
        undos = [undo for undo in self._undos(workspace) if run in (LATEST, undo, self.runs[undo].undoes)]
        if not undos:
            raise ScenarioError(f"there is no undone run {run!r} to redo")
        return undos[-1]

    def _undos(self, workspace: str) -> list[str]:
        """Return the undos of a checkout that hold; one that undoes an undo is a redo."""
        undoes = {name: past.undoes for name, past in self.runs.items()}
        here = [name for name, past in self.runs.items() if past.workspace == workspace and self._is_undo(name)]
        return [name for name in here if any(self._holds(name, each, undoes) for each in self.runs[name].concerned)]

    def _is_undo(self, run: str) -> bool:
        before = self.runs[run].undoes
        return before is not None and not self._is_undo(before)

    def _holds(self, run: str, conversation: str, undoes: dict[str, str | None]) -> bool:
        return run not in undone_runs([n for n, p in self.runs.items() if conversation in p.concerned], undoes)

    def find(self, name: str) -> PastRun:
        """Return a run, with what later ones have changed."""
        names = list(self.runs)
        later = names[names.index(name) + 1 :]
        concerned: dict[str, tuple[str, ...]] = {}
        for each in later:
            for conversation in self.runs[each].concerned:
                concerned[conversation] = (*concerned.get(conversation, ()), each)
        undoes = {each: past.undoes for each, past in self.runs.items()}
        ours = self.runs[name].workspace
        reach = {
            each: past.shared for each, past in self.runs.items() if past.workspace != ours and past.undoes is None
        }
        recoveries = {
            each: _recovered(past.run) for each, past in self.runs.items() if past.workspace == ours and not past.undoes
        }
        return replace(self.runs[name].run, since=changed_since(name, concerned, undoes, {}, reach, recoveries))


def _recovered(run: PastRun) -> set[str]:
    others = {step.conversation for step in run.steps if step.reason is not Reason.RECOVERED}
    wished = {conversation for conversation, record in run.remembered.items() if record.intent is not None}
    return {step.conversation for step in run.steps} - others - wished


def _shared(plan: Plan, baseline: Baseline) -> frozenset[str]:
    saved = {action.conversation for action in plan.actions if action.target.side is Side.STORE}
    local = {
        conversation
        for conversation, now in plan.intents
        for each in (baseline.intents.get(conversation), now)
        if each is not None and each.kind is IntentKind.LOCAL
    }
    return frozenset(saved | local)


def _only_notes(plan: Plan) -> bool:
    intents = [intent for _, intent in plan.intents]
    return bool(intents) and not plan.actions and all(each is not None and each.is_noticed for each in intents)


def kept_of(plan: Plan, listing: Listing) -> dict[Place, tuple[SavedFile, ...]]:
    kept: dict[Place, tuple[SavedFile, ...]] = {}
    for action in plan.actions:
        gone = [*(write.target for write in action.writes), *action.removes]
        if is_directory_removal(action):
            gone = inside(action.target, listing)
        for place in gone:
            if place in listing:
                state = listing[place]
                assert state.digest is not None
                version = SavedFile(state.size, state.mtime_ns, state.digest, state.digest)
                kept[place] = (*kept.get(place, ()), version)
        listing = simulate(replace(plan, actions=(action,)), listing)
    return kept
