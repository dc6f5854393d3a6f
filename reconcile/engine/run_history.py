"""A run of the journal with what the vault kept of it, as the values that an undo is planned from."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.errors import ReconcileError
from reconcile.model.baseline import IntentKind
from reconcile.model.past_run import LaterChanges, PastRun, SavedFile, changed_since, undone_runs
from reconcile.model.plan import Action, Kind, Precondition, Write
from reconcile.model.reasons import reason_of
from reconcile.model.snapshot import Place, Side
from reconcile.serialization.plan_json import place_from_json
from reconcile.state.journal import StepState
from reconcile.state.vault import VersionKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconcile.state.database import State
    from reconcile.state.journal import Run, Step
    from reconcile.state.vault import Version


class NoRunError(ReconcileError):
    """There is no such run, or none that can be taken back here."""

    exit_code = 2


class OlderRunError(ReconcileError):
    """The newest run is an undo already: which one is meant must be said."""

    exit_code = 4


def find_run(state: State, text: str) -> Run:
    """Return the run that an id, or the beginning of one, names.

    Raises:
        NoRunError: none, or several.
    """
    found = [run for run in state.journal.runs() if text and run.id.startswith(text)]
    exact = [run for run in found if run.id == text]
    if len(exact or found) == 1:
        return (exact or found)[0]
    if not found:
        raise NoRunError(f"there is no run {text!r}", "`reconcile log` lists them")
    raise NoRunError(f"{text!r} is ambiguous: {', '.join(run.id for run in found[:5])}")


def newest_run(state: State, project: str) -> Run:
    """Return the newest run in this project that changed something, is no undo, and was not taken back as a whole.

    Raises:
        NoRunError: there is none.
        OlderRunError: the newest run has undone a later one, and who says `undo` twice may mean a redo.
    """
    projects, became, runs = _projects(state), what_became(state), state.journal.runs()
    standing = [
        run for run in runs if projects.get(run.checkout) == project and None in became.get(run.id, {}).values()
    ]
    found = next((run for run in standing if run.undoes is None), None)
    if found is None:
        raise NoRunError("there is no run to undo here", "`reconcile log` lists them")
    last = standing[0]
    undone = _undone_by(last, {run.id: run for run in runs})
    if undone is not None and found.id < undone.id:
        raise OlderRunError(
            f"the last run, {last.id}, is an undo of {last.undoes}",
            f"redo that: reconcile undo {last.id}\nundo the run before it: reconcile undo {found.id}",
        )
    return found


def _undone_by(run: Run, runs: Mapping[str, Run]) -> Run | None:
    """Return the run whose work an undo took back; None: it is none, or took back an undo, which is a redo."""
    is_undo = False
    while run.undoes is not None and run.undoes in runs:
        run, is_undo = runs[run.undoes], not is_undo
    return run if is_undo else None


def what_became(state: State) -> dict[str, dict[str, str | None]]:
    """Return the conversations of which each run changed something, each with the run that took it back, if any."""
    runs = state.journal.runs()
    undoes = {each.id: each.undoes for each in runs}
    unfinished = {each.id: _unfinished(state, each) for each in runs if each.undoes is not None}
    became: dict[str, dict[str, str | None]] = {}
    for conversation, concerned in state.journal.concerned_since().items():
        back = undone_runs(concerned, undoes, {each for each in concerned if conversation in unfinished.get(each, ())})
        for run in concerned:
            became.setdefault(run, {})[conversation] = back.get(run)
    return became


def _projects(state: State) -> dict[int | None, str]:
    """Return the path of every checkout that has a record."""
    return {each.id: each.project for each in state.checkouts()}


def _is_there(project: str | None) -> bool:
    return project is not None and os.path.isdir(project)


def _named(project: str | None) -> str:
    if project is None:
        return "a checkout that was forgotten"
    return project if _is_there(project) else f"{project}, which is gone"


def _way_on(run: Run, project: str | None) -> str:
    hints = [f"undo it there: reconcile undo {run.id} --workspace {project}"] if _is_there(project) else []
    return "\n".join([*hints, f"one conversation can be brought back here: reconcile restore ID@{run.id}"])


def past_run(state: State, run: Run, project: str) -> PastRun:
    """Return all that is known of a run in this project, also in a ``.jp`` that was there before: what it did is taken
    back only where everything is as it left it.

    Raises:
        NoRunError: it was made elsewhere, whose workspace isn't this one.
    """
    made_in = _projects(state).get(run.checkout)
    if made_in != project:
        raise NoRunError(
            f"run {run.id} was made in {_named(made_in)}, expected one of {project}", _way_on(run, made_in)
        )
    steps = [step for step in state.journal.steps(run.id) if step.state is StepState.DONE]
    return PastRun(
        id=run.id,
        steps=tuple(_action(step) for step in steps),
        kept=_kept(state.versions.of_run(run.id)),
        remembered=state.journal.records_of(run.id),
        since=_since(state, run.id, project),
        is_undo=run.undoes is not None,
    )


def _since(state: State, run: str, project: str) -> LaterChanges:
    later = {each.id: each for each in state.journal.runs() if each.id > run}
    projects = _projects(state)
    made_in = {each.id: projects.get(each.checkout) for each in later.values()}
    found = changed_since(
        run,
        state.journal.concerned_since(run),
        {each.id: each.undoes for each in later.values()},
        {each.id: _unfinished(state, each) for each in later.values() if each.undoes is not None},
        {each.id: _shared(state, each) for each in later.values() if made_in[each.id] != project and not each.undoes},
    )
    return replace(found, gone=frozenset(each for each, path in made_in.items() if not _is_there(path)))


def _shared(state: State, run: Run) -> set[str]:
    """Return the conversations of which a run has changed what all checkouts share: the store, or whether it is local.

    An undo made elsewhere puts back more than that.
    """
    saved = {step.conversation for step in state.journal.steps(run.id) if _action(step).target.side is Side.STORE}
    decided = {
        change.conversation
        for change in state.journal.intent_changes(run.id)
        if any(each is not None and each.kind is IntentKind.LOCAL for each in (change.before, change.after))
    }
    return saved | decided


def _unfinished(state: State, run: Run) -> set[str]:
    """Return the conversations of which a run has not done every step; all, where it ended without closing itself.

    Who asks for it again then gets it, with nothing left to do, and not the run before.
    """
    steps = state.journal.steps(run.id)
    open_ones = {step.conversation for step in steps if step.state is not StepState.DONE}
    return open_ones or ({step.conversation for step in steps} if run.exit_code != 0 else set())


def _action(step: Step) -> Action:
    """Read an action as the journal keeps it (`reconcile.apply.recorder`)."""
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
            Write(place_from_json(each["target"]), None, None, each["size"], each["mtime_ns"], each["digest"])
            for each in record["writes"]
        ),
        removes=tuple(place_from_json(each) for each in record["removes"]),
        mtime_ns=record["mtime_ns"],
        bytes=record["bytes"],
        events=(record["events"]["before"], record["events"]["after"]) if record["events"] else None,
        expect=tuple(
            Precondition(place_from_json(each["path"]), each["size"], each["mtime_ns"], each["digest"])
            for each in record["expect"]
        ),
    )


def _kept(versions: tuple[Version, ...]) -> dict[Place, tuple[SavedFile, ...]]:
    kept: dict[Place, tuple[SavedFile, ...]] = {}
    for version in versions:
        if version.kind is VersionKind.FILE and version.conversation:
            place = Place(Side(version.side), version.path)
            found = SavedFile(version.size, version.mtime_ns, version.xxh3, version.digest)
            kept[place] = (*kept.get(place, ()), found)
    return kept
