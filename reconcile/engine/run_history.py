"""Loads runs from the journal, with the versions that the vault has kept for them, as input for an undo."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from reconcile.errors import ReconcileError
from reconcile.model.baseline import is_local
from reconcile.model.commands import typed
from reconcile.model.past_run import LaterChanges, PastRun, SavedFile, changed_since, undone_runs
from reconcile.model.plan import Action, Kind, Precondition, Write
from reconcile.model.reasons import Reason, reason_of
from reconcile.model.snapshot import WHOLE, Place, Side
from reconcile.serialization.plan_json import place_from_json
from reconcile.state.journal import INTERRUPTED, StepState
from reconcile.state.schema import REMOTE
from reconcile.state.vault import VersionKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from reconcile.state.database import State
    from reconcile.state.journal import Run, Step
    from reconcile.state.vault import Version


class NoRunError(ReconcileError):
    """There is no such run, or none that can be undone here."""

    exit_code = 2


class OlderRunError(ReconcileError):
    """An `undo` or `redo` reaches further back than the last run: without a terminal, the user must name its run."""

    exit_code = 4


_NAMED = 5
"""Runs that an error lists."""


def find_run(state: State, text: str) -> Run:
    """Return the run with an id, or with the beginning of an id.

    Raises:
        NoRunError: there is none, or there are several.
    """
    matches = [run for run in state.journal.runs() if text and run.id.startswith(text)]
    exact = [run for run in matches if run.id == text]
    if len(exact or matches) == 1:
        return (exact or matches)[0]
    if not matches:
        raise NoRunError(
            f"no run has an id that starts with {text!r}",
            "list the runs: reconcile log; the versions of a conversation: reconcile restore ID",
        )
    more = f" and {len(matches) - _NAMED} more" if len(matches) > _NAMED else ""
    names = ", ".join(run.id for run in matches[:_NAMED])
    raise NoRunError(f"run {text!r} is ambiguous: {names}{more}", "give more of the id")


class RunToUndo(NamedTuple):
    """The run that `undo` reverts. ``after``: the last run, if it is the undo of a later run than this one."""

    run: Run
    after: Run | None

    def older_run_error(self) -> OlderRunError:
        """Return the error for an `undo` that nobody confirms, though it would go further back."""
        assert self.after is not None  # noqa: S101 - only then it goes further back
        return OlderRunError(
            f"the last run, {self.after.id}, is an undo of {self.after.undoes}",
            f"redo that: reconcile redo\nundo the run before it: reconcile undo {self.run.id}, or reconcile undo --yes",
        )


class LastRun(NamedTuple):
    """The newest run that has an effect left. ``reverts``: the run that it took back, if it is an undo."""

    run: Run
    reverts: Run | None


def last_run(state: State, project: str) -> LastRun | None:
    """Return the newest run in this project that was not undone as a whole; None if there is none."""
    effective = _effective_runs(state, project)
    if not effective:
        return None
    last, runs = effective[0], _by_id(state)
    return LastRun(last, _undone_by(last, runs))


def newest_run(state: State, project: str) -> RunToUndo:
    """Return the newest run in this project that changed something, is no undo, and was not undone as a whole.

    It may be a redo, or a sync with a remote (`remote_of`).

    Raises:
        NoRunError: there is none.
    """
    effective, runs = _effective_runs(state, project), _by_id(state)
    newest = next(_in_effect(effective, runs), None)
    if newest is None and effective:
        raise NoRunError("every run here is undone already", "repeat the one that was undone last: reconcile redo")
    if newest is None:
        raise NoRunError("there is no run to undo here", "`reconcile log` lists them")
    undone = _undone_by(effective[0], runs)
    return RunToUndo(newest, effective[0] if undone is not None and newest.id < undone.id else None)


def run_before(state: State, project: str, run: Run) -> Run | None:
    """Return the newest run before another one that `newest_run` would return; None if there is none."""
    effective = _effective_runs(state, project)
    return next((each for each in _in_effect(effective, _by_id(state)) if each.id < run.id), None)


def cut_short_before(state: State, project: str, run: Run) -> Run | None:
    """Return the run that was interrupted before this one, which did the rest of it; None if there is none."""
    before = run_before(state, project, run)
    if before is None:
        return None
    is_cut_short = any((step.message or "").startswith(INTERRUPTED) for step in state.journal.steps(before.id))
    between = [each for each in state.journal.runs() if before.id < each.id < run.id]
    did_the_rest = not any(_projects(state).get(each.checkout) == project for each in between)
    return before if is_cut_short and did_the_rest else None


def is_in_effect(state: State, project: str, run: str) -> bool:
    """Tell whether a run in a project, or a sync, has changed something that was not undone."""
    return run in (each.id for each in _effective_runs(state, project))


def _in_effect(effective: Iterable[Run], runs: Mapping[str, Run]) -> Iterator[Run]:
    """Yield the runs that are no undo, newest first; a run that was redone is there as its newest redo alone."""
    seen = set[str]()
    for run in effective:
        origin, times = origin_of(run, runs)
        if times % 2 == 0 and origin.id not in seen:
            seen.add(origin.id)
            yield run


def _undone_by(run: Run, runs: Mapping[str, Run]) -> Run | None:
    """Return the run that an undo took back; None if the run is no undo."""
    return runs[run.undoes or ""] if origin_of(run, runs)[1] % 2 else None


class UndoToRedo(NamedTuple):
    """The undo that `redo` reverts.

    ``origin``: the run that it repeats so. ``after``: a text on the last run, if that is another one.
    """

    run: Run
    origin: Run
    after: str

    def older_run_error(self) -> OlderRunError:
        """Return the error for a `redo` that nobody confirms, though it would go further back."""
        hint = f"repeat {self.origin.id} all the same: reconcile redo {self.run.id}, or reconcile redo --yes"
        return OlderRunError(self.after, f"{hint}\nlist the runs: reconcile log")


def newest_undo(state: State, project: str) -> UndoToRedo:
    """Return the newest undo in this project that was not undone as a whole: `redo` undoes it.

    Raises:
        NoRunError: there is none.
    """
    runs = _by_id(state)
    effective = _effective_runs(state, project)
    for run in effective:
        if origin_of(run, runs)[1] % 2:
            after = _after(run, effective[0], runs)
            return UndoToRedo(run, origin_of(run, runs)[0], after)
    if not effective:
        raise NoRunError("there is nothing to redo: no run here was undone", "`reconcile log` lists the runs")
    last = _last_run(effective[0], runs, "not undone")
    raise NoRunError(f"there is nothing to redo: {last}", "undo it: reconcile undo")


def newest_undo_of(state: State, project: str, conversations: Collection[str]) -> tuple[UndoToRedo, int] | None:
    """Return the newest undo in this project, but for those of syncs, of one of the conversations; and of how many.

    Raises:
        NoRunError: nothing was undone in this project.
    """
    newest_undo(state, project)
    runs, effective = _by_id(state), _effective_runs(state, project)
    undone, syncs = undone_changes(state), _syncs(state)
    for run in effective:
        if run.checkout in syncs or not origin_of(run, runs)[1] % 2:
            continue
        theirs = {key for key, by in undone.get(run.undoes or "", {}).items() if by == run.id}
        if count := len(theirs.intersection(conversations)):
            after = _after(run, effective[0], runs)
            return UndoToRedo(run, origin_of(run, runs)[0], after), count
    return None


def _after(undo: Run, last: Run, runs: Mapping[str, Run]) -> str:
    """Return a text on the last run, if it is another one than an undo, or a redo of it that was not completed."""
    return "" if undo.id in (last.id, last.undoes) else _last_run(last, runs)


def _last_run(run: Run, runs: Mapping[str, Run], otherwise: str = "no undo") -> str:
    origin, times = origin_of(run, runs)
    return f"the last run, {run.id}, is {f'a redo of {origin.id}' if times else otherwise}"


def find_undo(state: State, text: str) -> UndoToRedo:
    """Return the newest undo of a run that is still in effect. ``text`` is the run's id, its beginning, or the undo's.

    Raises:
        NoRunError: there is no such run, or it isn't undone.
    """
    run, runs = find_run(state, text), _by_id(state)
    if origin_of(run, runs)[1] % 2:
        return UndoToRedo(run, origin_of(run, runs)[0], "")
    undone_by = {undo for undo in undone_changes(state).get(run.id, {}).values() if undo is not None}
    if not undone_by:
        raise NoRunError(f"run {run.id} isn't undone", "`reconcile log` lists the runs")
    undo = runs[max(undone_by)]
    return UndoToRedo(undo, origin_of(undo, runs)[0], "")


def _effective_runs(state: State, project: str) -> list[Run]:
    """Return the runs in a project, and the syncs, of which some change was not undone, newest first.

    Of a sync, the changes of the store count: what it has sent stays on the remote. A run that has only noticed what is
    gone has changed nothing that a person thinks of.
    """
    projects, syncs, undone_by = _projects(state), _syncs(state), undone_changes(state)
    noting = state.journal.noting_runs()

    def has_effect(run: Run) -> bool:
        undone = undone_by.get(run.id, {})
        return None in map(undone.get, saved_conversations(state, run) if run.checkout in syncs else undone)

    runs = [run for run in state.journal.runs() if run.id not in noting]
    return [run for run in runs if (projects.get(run.checkout) == project or run.checkout in syncs) and has_effect(run)]


def _by_id(state: State) -> dict[str, Run]:
    return {run.id: run for run in state.journal.runs()}


def origin_of(run: Run, runs: Mapping[str, Run]) -> tuple[Run, int]:
    """Return the run that a chain of undos began with, and the chain's length: odd for an undo, even for a redo."""
    times = 0
    while run.undoes is not None and run.undoes in runs:
        run, times = runs[run.undoes], times + 1
    return run, times


def is_redo(state: State, undone: str) -> bool:
    """Tell whether the undo of a run repeats an earlier one."""
    runs = _by_id(state)
    return undone in runs and origin_of(runs[undone], runs)[1] % 2 == 1


def undone_changes(state: State) -> dict[str, dict[str, str | None]]:
    """Return the conversations that each run has changed, each with the run that has undone the change, or None."""
    runs = state.journal.runs()
    undoes = {run.id: run.undoes for run in runs}
    unfinished = {run.id: _unfinished(state, run) for run in runs if run.undoes is not None}
    undone: dict[str, dict[str, str | None]] = {}
    for conversation, run_ids in state.journal.concerned_since().items():
        incomplete = {run_id for run_id in run_ids if conversation in unfinished.get(run_id, ())}
        undone_by = undone_runs(run_ids, undoes, incomplete)
        for run_id in run_ids:
            undone.setdefault(run_id, {})[conversation] = undone_by.get(run_id)
    return undone


def _syncs(state: State) -> dict[int | None, str]:
    """Return the names of the remotes whose syncs have records, by the ids of these."""
    known = {checkout.id for checkout in state.checkouts()}
    records = (each for each in state.checkouts(with_remotes=True) if each.id not in known)
    return {each.id: each.identity.removeprefix(REMOTE).partition(" ")[0] for each in records}


def remote_of(state: State, run: Run) -> str | None:
    """Return the name of the remote that a run, or an undo of one, was a sync with; None: it was no sync."""
    return _syncs(state).get(run.checkout)


def _projects(state: State) -> dict[int | None, str]:
    """Return the project's path of every checkout in the state, by the checkout's id."""
    return {checkout.id: checkout.project for checkout in state.checkouts()}


def _is_there(project: str | None) -> bool:
    return project is not None and os.path.isdir(project)


def _owner(project: str | None) -> str:
    if project is None:
        return "a checkout or remote that was removed"
    return f"another checkout: {project}{'' if _is_there(project) else ', which does not exist any more'}"


def _way_on(run: Run, project: str | None) -> str:
    hints = []
    if project is not None and _is_there(project):
        hints.append(f"undo it there: reconcile undo {run.id} --workspace {typed(project)}")
    return "\n".join([*hints, f"restore one conversation here: reconcile restore ID@{run.id}"])


def past_run(state: State, run: Run, project: str) -> PastRun:
    """Return a run of this project as input for an undo, also one in an earlier ``.jp`` of it.

    Of a sync, return what it has changed in the store; its project is the mirror of the remote.

    An undo changes only files that are as the run has left them.

    Raises:
        NoRunError: the run was made in another project.
    """
    made_in, name = _projects(state).get(run.checkout), remote_of(state, run)
    if name is not None:
        made_in = {each.id: each.project for each in state.checkouts(with_remotes=True)}.get(run.checkout or 0)
    if made_in != project:
        if name is not None:
            raise NoRunError(f"run {run.id} is a sync with the remote {name}", f"undo it: reconcile undo {run.id}")
        raise NoRunError(f"run {run.id} belongs to {_owner(made_in)}", _way_on(run, made_in))
    steps = tuple(_action(step) for step in state.journal.steps(run.id) if step.state is StepState.DONE)
    remembered = state.journal.records_of(run.id)
    if name is not None:
        steps = tuple(step for step in steps if step.target.side is Side.STORE)
        changed = {step.conversation for step in steps}
        remembered = {key: record for key, record in remembered.items() if key in changed}
    versions = state.versions.of_run(run.id)
    return PastRun(
        id=run.id,
        steps=steps,
        kept=_kept(versions),
        remembered=remembered,
        since=_since(state, run.id, project),
        is_undo=run.undoes is not None,
        repeats=is_redo(state, run.id),
        links={
            Place(version.side, version.path): version.digest
            for version in versions
            if version.kind is VersionKind.LINK and version.conversation
        },
    )


def _since(state: State, run: str, project: str) -> LaterChanges:
    runs = {other.id: other for other in state.journal.runs()}
    later = {id_: other for id_, other in runs.items() if id_ > run}
    projects = _projects(state)
    made_in = {other.id: projects.get(other.checkout) for other in later.values()}
    changes = changed_since(
        run,
        state.journal.concerned_since(run),
        {other.id: other.undoes for other in later.values()},
        {other.id: _unfinished(state, other) for other in later.values() if other.undoes is not None},
        {
            other.id: reach
            for other in later.values()
            if made_in[other.id] != project and (reach := _reach(state, other, runs)) is not None
        },
        {
            other.id: _recovered(state, other)
            for other in later.values()
            if made_in[other.id] == project and not other.undoes
        },
    )
    syncs = _syncs(state)
    gone = (run_id for run_id, path in made_in.items() if not _is_there(path) and later[run_id].checkout not in syncs)
    elsewhere = {run_id: path for run_id, path in made_in.items() if path not in (None, project)}
    marked = (
        key
        for key, run_id in changes.changed.items()
        if later[run_id].checkout in syncs and key not in saved_conversations(state, later[run_id])
    )
    return replace(changes, gone=frozenset(gone), elsewhere=elsewhere, marked=frozenset(marked))


def _reach(state: State, run: Run, runs: Mapping[str, Run]) -> set[str] | None:
    """Return the conversations whose shared state a run of another checkout has changed; None if that is not known.

    An undo restores what the undone run has changed, and a redo what that undo has.
    """
    reach = _shared(state, run)
    while run.undoes is not None:
        undone = runs.get(run.undoes)
        if undone is None:
            return None
        run = undone
        reach |= _shared(state, run)
    return reach


def _shared(state: State, run: Run) -> set[str]:
    """Return the conversations whose shared state a run has changed: their files in the store, or that they are local.

    All checkouts share these. A `local` that was repeated has removed a directory, and changed no intent.
    """
    decided = {
        change.conversation
        for change in state.journal.intent_changes(run.id)
        if is_local(change.before) or is_local(change.after)
    }
    repeated = {
        step.conversation
        for step in state.journal.steps(run.id)
        if step.state is StepState.DONE and _action(step).reason is Reason.LOCALIZED
    }
    return saved_conversations(state, run) | decided | repeated


def _recovered(state: State, run: Run) -> set[str]:
    """Return the conversations of which a run restored the whole copy that was deleted here, and did nothing else."""
    restored = set[str]()
    others = {each.conversation for each in state.journal.intent_changes(run.id) if each.before is not None}
    for step in state.journal.steps(run.id):
        is_whole = (step.kind, step.unit, step.state) == (Kind.PROJECT, WHOLE, StepState.DONE)
        is_recovery = is_whole and _action(step).reason is Reason.RECOVERED
        (restored if is_recovery else others).add(step.conversation)
    return restored - others


def saved_conversations(state: State, run: Run) -> set[str]:
    """Return the conversations whose files in the store a run has changed."""
    return {step.conversation for step in state.journal.steps(run.id) if _action(step).target.side is Side.STORE}


def _unfinished(state: State, run: Run) -> set[str]:
    """Return the conversations with open steps of a run; all, if it has none but did not end successfully.

    A second `undo` then repeats this run, with nothing left to do, and does not undo the run before it.
    """
    steps = state.journal.steps(run.id)
    open_ones = {step.conversation for step in steps if step.state is not StepState.DONE}
    return open_ones or ({step.conversation for step in steps} if run.exit_code != 0 else set())


def _action(step: Step) -> Action:
    """Return an action from its record in the journal, which `reconcile.apply.recorder` writes."""
    record = json.loads(step.record)
    return Action(
        id=step.action,
        kind=Kind(record["kind"]),
        conversation=record["conversation"],
        title=None,
        unit=record["unit"],
        reason=reason_of(record["reason"]),
        case=record["case"],
        source=place_from_json(record["source"]) if record["source"] else None,
        target=place_from_json(record["target"]),
        writes=tuple(
            Write(place_from_json(write["target"]), None, None, write["size"], write["mtime_ns"], write["digest"])
            for write in record["writes"]
        ),
        removes=tuple(place_from_json(place) for place in record["removes"]),
        mtime_ns=record["mtime_ns"],
        bytes=record["bytes"],
        events=(record["events"]["before"], record["events"]["after"]) if record["events"] else None,
        expect=tuple(
            Precondition(place_from_json(file["path"]), file["size"], file["mtime_ns"], file["digest"])
            for file in record["expect"]
        ),
    )


def _kept(versions: tuple[Version, ...]) -> dict[Place, tuple[SavedFile, ...]]:
    kept: dict[Place, tuple[SavedFile, ...]] = {}
    for version in versions:
        if version.kind is VersionKind.FILE and version.conversation:
            place = Place(Side(version.side), version.path)
            file = SavedFile(version.size, version.mtime_ns, version.xxh3, version.digest)
            kept[place] = (*kept.get(place, ()), file)
    return kept
