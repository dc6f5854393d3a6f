"""``reconcile log``: lists the runs of the journal, or the steps and kept versions of one."""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import TYPE_CHECKING

import click

from reconcile.engine.run_history import find_run, origin_of, saved_conversations, undone_changes
from reconcile.model.plan import counted_as
from reconcile.model.reasons import reason_of
from reconcile.model.snapshot import WHOLE, Side
from reconcile.model.units import unit_text
from reconcile.state.schema import REMOTE

from ..command import Command
from ..context import find_roots, open_session, settings_of
from ..options import RUNS, options_of
from ..output.documents import print_document
from ..output.screen import show_paged, wrap
from ..output.text import Style, clean, format_time, message_text, pad, short_path, show, size, width
from ..output.words import (
    DIRECTED,
    PLACES,
    VERB_COLUMNS,
    intent_words,
    is_rename,
    phrase_of,
    reason_words,
    remote_phrase_of,
    summed,
    verb_of,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from reconcile.engine.session import Session
    from reconcile.state.database import Checkout
    from reconcile.state.journal import IntentChange, Run, Step
    from reconcile.state.vault import Version

NEWEST = 20
"""Number of runs that are listed without ``-v``."""
_NAMED = 2
"""The most conversations of a run that the list names."""
_ENDING_COLOR = "yellow"
_PAST = {"undo": "undid", "redo": "redid"}
_SYNCS = ("reconcile sync", "reconcile pull", "reconcile push")
"""The beginnings of the commands that sync with a remote."""


@click.command(
    "log",
    cls=Command,
    names={"run": "runs"},
    prints_sides=False,
    accepts=("json", "verbose"),
    examples=(
        ("reconcile log", "List the newest 20 runs."),
        ("reconcile log -n 2", "List the newest two."),
        ("reconcile log 20260515-100000-00", "List the steps of a run, and the versions it saved."),
    ),
)
@click.argument("run", required=False, shell_complete=RUNS)
@click.option("-n", "--last", type=click.IntRange(min=1), metavar="N", help="List the newest N runs.")
@click.pass_context
def log(context: click.Context, run: str | None, last: int | None) -> None:
    """List the runs, or the steps of one run.

    The newest run comes first. RUN is a run's id, or the beginning of one. With RUN, the list has its steps and the
    versions that it saved in the vault.
    """
    if last is not None and run is not None:
        raise click.UsageError("choose one: a run, or -n")
    options = options_of(context)
    roots = find_roots(options)
    style = Style.choose(options.color)
    with open_session(roots, settings_of(roots), readonly=True) as session:
        runs = _listed(session) if run is None else (find_run(session.state, run),)
        wanted = runs[:last]
        if options.json:
            chains = _chains(session)
            listed = [_as_json(session, entry, chains[entry.id], steps=run is not None) for entry in wanted]
            print_document(options, {"format": "reconcile.log/1", "runs": listed})
        elif run is not None:
            show_paged(_one(session, runs[0], style), style)
        elif not runs:
            show(("No run has changed anything yet.",))
        else:
            shown = wanted if options.verbose or last else runs[:NEWEST]
            lines = list(_list(session, shown, style))
            if len(runs) > len(shown) and last is None:
                lines.append(f"... and {len(runs) - NEWEST} more (-v shows all)")
            show_paged(lines, style)


def _listed(session: Session) -> tuple[Run, ...]:
    """Return the runs of the list, newest first; without syncs that have changed nothing, such as refused ones."""
    skipped, remotes = session.state.journal.skipped_runs(), _remotes(session)
    return tuple(run for run in session.state.journal.runs() if run.id not in skipped or not _is_sync(run, remotes))


def _where(session: Session, project: str | None) -> str:
    """Return where a run of another record than that of this workspace was made."""
    if project is None:
        return "a checkout or remote that was removed"
    return "an earlier workspace at this path" if project == session.project else short_path(project)


def _list(session: Session, runs: tuple[Run, ...], style: Style) -> Iterator[str]:
    chains = _chains(session)
    projects: dict[int | None, str] = {
        each.id: _project_of(each) for each in session.state.checkouts(with_remotes=True)
    }
    remotes, became = _remotes(session), _undone(session)
    columns = max((len(run.id) for run in runs), default=0)
    for run in runs:
        steps = session.state.journal.steps(run.id)
        origin, times = chains[run.id]
        undone_by = _undone_by(became.get(run.id, {}).values(), "redone" if times % 2 else "undone")
        redone_by = [redo for redo, (of, length) in chains.items() if of == run.id and length and not length % 2]
        notes = undone_by or ([f"redone by {max(redone_by)}"] if redone_by and not times else [])
        if times:
            verb, of = ("undo", run.undoes) if times % 2 else ("redo", origin)
            part = " in part" if _is_partial(run, became) else ""
            is_idle = bool(steps) and all(step.state != "done" for step in steps)
            notes.append(f"did not {verb} {of}" if is_idle else f"{_PAST[verb]}{part} {of}")
        if run.checkout != session.checkout:
            notes.append(f"in {_where(session, projects.get(run.checkout))}")
        tail = f"  ({'; '.join(notes)})" if notes else ""
        start, command = f"{pad(run.id, columns)}  ", clean(run.command) + tail
        counts = step_counts(session, steps, is_sync=_is_sync(run, remotes))
        text = f"{format_time(run.started_ns)}  {counts}{_concerned(steps)}"
        if style.columns is None or width(f"{start}{text}  {command}") <= style.columns:
            lines = [f"{start}{text}  {command}"]
        else:
            lines = [*wrap(text, style.columns, start, "    "), *wrap(command, style.columns, "    ")]
        yield style(run.id, bold=True) + lines[0].removeprefix(run.id)
        yield from lines[1:]
        if ending := _ending(run):
            yield style(f"    {ending}", _ENDING_COLOR)


def _concerned(steps: tuple[Step, ...]) -> str:
    """Return the ids of the conversations of a run, if they are few."""
    ids = {step.conversation: None for step in steps if step.state == "done"}
    return f": {', '.join(map(clean, ids))}" if 0 < len(ids) <= _NAMED else ""


def _project_of(checkout: Checkout) -> str:
    """Return the project of a checkout; the record of a remote is named by that."""
    is_remote = checkout.identity.startswith(REMOTE)
    return f"remote {os.path.basename(os.path.dirname(checkout.project))}" if is_remote else checkout.project


def _remotes(session: Session) -> set[int | None]:
    """Return the checkouts that stand for remotes: their runs are those of syncs."""
    return {each.id for each in session.state.checkouts(with_remotes=True) if each.identity.startswith(REMOTE)}


def _is_sync(run: Run, remotes: Collection[int | None]) -> bool:
    """Tell whether a run is a sync. The record of a remote that was removed is gone, so that its command tells."""
    return run.undoes is None and (run.checkout in remotes or (run.checkout is None and run.command.startswith(_SYNCS)))


def _undone(session: Session) -> dict[str, dict[str, str | None]]:
    """Return as `undone_changes`; of a sync, only what it has changed in the store: an undo leaves the rest alone."""
    became, remotes = undone_changes(session.state), _remotes(session)
    for run in session.state.journal.runs():
        if run.checkout in remotes and (by := became.get(run.id)):
            saved = saved_conversations(session.state, run)
            became[run.id] = {key: undo for key, undo in by.items() if key in saved}
    return became


def _chains(session: Session) -> dict[str, tuple[str, int]]:
    """Return, by run, the run that its chain of undos began with, and the chain's length: even for a redo."""
    runs = {run.id: run for run in session.state.journal.runs()}
    found = {key: origin_of(run, runs) for key, run in runs.items()}
    return {key: (origin.id, times) for key, (origin, times) in found.items()}


def _is_partial(undo: Run, became: Mapping[str, Mapping[str, str | None]]) -> bool:
    """Tell whether an undo that is in effect has left out conversations of its run."""
    by = became.get(undo.undoes or "", {}).values()
    return undo.id in by and any(other != undo.id for other in by)


def _undone_by(by: Collection[str | None], word: str) -> list[str]:
    """Return a note on the runs that undid a run. ``by`` has, for each of its conversations, that run or None."""
    undoers = sorted({run for run in by if run is not None})
    how = f"{word} in part by" if None in by else f"{word} by"
    return [f"{how} {' and '.join(undoers)}"] if undoers else []


def _ending(run: Run) -> str:
    if run.finished_ns is None:
        return "interrupted, or still running"
    return "with failures" if run.exit_code else ""


def step_counts(session: Session, steps: tuple[Step, ...], *, is_sync: bool = False) -> str:
    """Return what a run or a sync did, and how many of its steps it didn't finish."""
    done = summed((_phrase(session, step, is_sync=is_sync) for step in steps if step.state == "done"), done=True)
    left = Counter(step.state.value for step in steps if step.state != "done")
    return ", ".join((*done, *(f"{count} {state}" for state, count in left.items()))) or "no file changes"


def _phrase(session: Session, step: Step, *, is_sync: bool) -> tuple[str, str, str]:
    record = json.loads(step.record)
    side, _, target = record["target"].partition(":")
    reason = record["reason"]
    whole, renames = step.unit == WHOLE, is_rename(_path(record["source"]), target)
    is_public = session.roots.is_in_project
    phrase = phrase_of(step.kind, side, reason, whole=whole, renames=renames, is_public=is_public)
    phrase = remote_phrase_of(phrase, step.kind, side) if is_sync else phrase
    return phrase, counted_as(step.conversation, session.format.places), side


def _path(place: str | None) -> str | None:
    """Return the path of a place that is written with its side."""
    return None if place is None else place.partition(":")[2]


def _one(session: Session, run: Run, style: Style) -> Iterator[str]:
    columns = style.columns
    head = wrap(f"{run.id}  {format_time(run.started_ns)}  {clean(run.command)}", columns, "", "  ")
    yield from (style(line, bold=True) for line in head)
    if ending := _ending(run):
        yield style(ending, _ENDING_COLOR)
    yield ""
    is_sync = _is_sync(run, _remotes(session))
    for step in session.state.journal.steps(run.id):
        color = {"done": None, "failed": "red"}.get(step.state.value, "yellow")
        yield from _step_lines(step, style, color, is_public=session.roots.is_in_project, is_sync=is_sync)
    for change in session.state.journal.intent_changes(run.id):
        text = _intent_text(change, is_public=session.roots.is_in_project)
        yield from wrap(f"{clean(change.conversation)}: {text}", columns, "  ", "    ")
    versions = session.state.versions.of_run(run.id)
    if versions:
        yield ""
        yield from wrap("Saved versions, for `reconcile show` and `reconcile restore`:", columns)
    for version in versions:
        yield from wrap(
            f"{version.digest[:16]}  {size(version.size):>9}  {clean(_name(version, is_sync=is_sync))}",
            columns,
            "  ",
            "      ",
        )


def _intent_text(change: IntentChange, *, is_public: bool) -> str:
    """Return a change of an intent in the words of docs/concepts.md; without one, nothing was decided."""
    before, after = (
        intent and intent_words(intent.kind.value, is_public=is_public) for intent in (change.before, change.after)
    )
    if before and after:
        return f"{before} -> {after}"
    return after or f"no longer {before}"


def _step_lines(step: Step, style: Style, color: str | None, *, is_public: bool, is_sync: bool) -> Iterator[str]:
    """Yield a step: its state and verb, what it is about and why. The workspace of a sync is the remote."""
    record = json.loads(step.record)
    source, target = record["source"], record["target"]
    verb = verb_of(step.kind, _path(source), target.partition(":")[2])
    is_file = _path(target) == step.conversation  # a record that is a single file has no other unit
    unit = "" if step.unit == WHOLE else "  file" if is_file else f"  {unit_text(step.unit)}"
    if is_sync:
        verb = verb.replace("workspace", "remote")
        source, target = source and _on_remote(source), _on_remote(target)
        is_public = False
    moved = f"{source} -> " if source and step.kind in PLACES else ""
    words = "" if step.message is None else f": {message_text(step.message)}"
    start = f"  {pad(step.state.value, 7)}  {pad(verb, VERB_COLUMNS)}  "
    why = reason_words(record["reason"], reason_of(record["reason"]).words, is_public=is_public)
    because = "" if is_sync and step.kind in DIRECTED else f"  ({why})"
    text = clean(f"{step.conversation}{unit}  {moved}{target}{because}{words}")
    first, *rest = wrap(text, style.columns, start, " " * 11)
    yield first.replace(step.state.value, style(step.state.value, color), 1)
    yield from rest


def _on_remote(place: str) -> str:
    side, _, path = place.partition(":")
    return f"{'remote' if side == Side.WORKSPACE else side}:{path}"


def _name(version: Version, *, is_sync: bool) -> str:
    place = f"{version.side}:{version.path}"
    return f"{version.spelling}  {_on_remote(place) if is_sync else place}"


def _as_json(session: Session, run: Run, chain: tuple[str, int], *, steps: bool) -> dict[str, object]:
    origin, times = chain
    document: dict[str, object] = {
        "id": run.id,
        "command": run.command,
        "started_ns": run.started_ns,
        "finished_ns": run.finished_ns,
        "exit_code": run.exit_code,
        "checkout": run.checkout,
        "undoes": run.undoes,
        "redoes": origin if times and not times % 2 else None,
        "summary": json.loads(run.summary),
    }
    if not steps:
        return document
    return document | {
        "steps": [
            {
                "id": step.action,
                "conversation": step.conversation,
                "unit": step.unit,
                "kind": step.kind,
                "state": step.state.value,
                "message": step.message,
                **{key: json.loads(step.record)[key] for key in ("reason", "source", "target")},
            }
            for step in session.state.journal.steps(run.id)
        ],
        "versions": [
            {
                "digest": version.digest,
                "conversation": version.conversation,
                "unit": version.unit,
                "file": version.file,
                "size": version.size,
                "place": f"{version.side}:{version.path}",
                "mtime_ns": version.mtime_ns,
            }
            for version in session.state.versions.of_run(run.id)
        ],
    }
