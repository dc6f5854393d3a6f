"""`undo` and `redo` of a sync with a remote: the store of this machine, and nothing else."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from reconcile.engine.run_history import NoRunError, RunToUndo, is_in_effect, origin_of, remote_of
from reconcile.remote.engine import RemoteError
from reconcile.remote.known import known_of
from reconcile.state.database import State

from ..output.errors import ExitCode
from ..output.interaction import confirm_or_exit, is_interactive, print_message
from ..output.plan_text import exit_code, report
from ..run import way_back
from .actions import Shared
from .syncing import opened_sync

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconcile.adapters.roots import Roots
    from reconcile.engine.run_history import UndoToRedo
    from reconcile.engine.session import Session
    from reconcile.model.plan import Plan
    from reconcile.state.journal import Run

    from ..arguments import Options

F = TypeVar("F", RunToUndo, "UndoToRedo")


def undo_sync(
    options: Options,
    command: str,
    roots: Roots,
    state_at: str,
    find: Callable[[State, str], F],
    announce: Callable[[Session, F], None],
    question: Callable[[Plan], str],
) -> int | None:
    """Undo or redo a sync, if ``find`` returns the run of one; return the exit code, and None if it is another run.

    ``state_at`` is the state's directory. ``announce`` prints the run. ``question`` is asked at a terminal.
    """
    shared = Shared(roots, state_at)
    if not shared.remotes:
        return None
    with State.open(state_at, readonly=True) as state:
        try:
            found = find(state, os.path.realpath(roots.project))
        except NoRunError:  # the command itself reports it
            return None
        name = remote_of(state, found.run)
    if name is None:
        return None
    if len(shared.remotes) > 1:
        way = f"restore one conversation, which the next sync sends: reconcile restore ID@{found.run.id}"
        raise RemoteError(f"run {found.run.id} is a sync with {name}, and the store has other remotes, too", way)
    place = shared.remote(name, command)
    with opened_sync(options, command, shared, place) as sync:
        session, is_shown = sync.session, False
        is_allowed = options.yes or options.allow_bulk_removal  # as for the undo of any other run
        sync.policy = replace(sync.policy, accept_bulk=is_allowed)
        announce(session, found)
        removals = None
        if isinstance(found, RunToUndo):
            removals = _removals(session, found.run, os.path.realpath(roots.project), name)
        if removals is not None:
            message = f"the sync has also removed conversations, in the run {removals}: that is not undone with it"
            print_message(options, message)

        def agrees(plan: Plan) -> bool:
            nonlocal is_shown
            if options.is_dry or not plan.actions or options.yes or not is_interactive(options):
                return not options.is_dry
            report(options, roots, session.notices, replace(plan, layout=""), None)
            is_shown = True
            confirm_or_exit(options, question(plan))
            return True

        plan, outcome = sync.undo(found.run.id, agrees)
        back = way_back(session, plan)
        if isinstance(found, RunToUndo):
            options.idle = f"Nothing to undo in the store. An undo takes nothing back that was sent to {name}."
        report(options, roots, session.notices, replace(plan, layout=""), outcome, is_shown=is_shown, back=back)
    if outcome is not None and plan.actions and back == "redo":
        print_message(options, f"{name} keeps what it has; syncs leave it alone until a machine changes it")
    code = exit_code(plan, outcome, options)
    if removals is not None and code == ExitCode.DONE and not options.is_dry:
        print_message(options, f"undo the removals too: reconcile undo {removals}")
    return code


def _removals(session: Session, run: Run, project: str, name: str) -> str | None:
    """Return the run with the removals of the sync whose other part a run is; None: it has none that has an effect."""
    known, runs = known_of(session.state, name), {each.id: each for each in session.state.journal.runs()}
    if known.removals is None or origin_of(run, runs)[0].id != known.rest:
        return None
    return known.removals if is_in_effect(session.state, project, known.removals) else None
