"""Sessions of Claude Code that a repository shares: a second pair of sides beside the one in the user's home.

A plain run of the home's pair is followed by one of the folder's, which takes over what colleagues have committed. New
sessions of theirs are then copied into the directory of the program, once, and only if no project of it has them.
"""

from __future__ import annotations

import copy
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.adapters.claude_code.directories import homes_of
from reconcile.adapters.claude_code.places import FORMAT, SHARED
from reconcile.adapters.claude_code.shared_folder import keep_line_ends
from reconcile.errors import ReconcileError
from reconcile.fs.git import Git, GitError
from reconcile.model.policy import ProjectRequest
from reconcile.model.snapshot import METADATA, Side
from reconcile.state.directory import generation, state_directory

from ..context import find_roots, policy_of, request_of, settings_of, with_owned
from ..output.errors import FAILURES, first_code, report_failure
from ..output.interaction import print_message
from ..output.text import short_path
from ..run import open_engine, opened, run, run_started
from ..unchanged import Opening, Start, print_unchanged

if TYPE_CHECKING:
    from reconcile.adapters.roots import Roots
    from reconcile.engine.engine import Engine
    from reconcile.model.policy import Policy
    from reconcile.state.directory import Generation

    from ..arguments import Options


def run_shared(options: Options, code: int) -> int:
    """Run the folder's pair after the home's, which has ended with ``code``; return the code of both.

    With ``--json``, ``--out``, ``--only`` or ``--below`` only the home's pair is run.
    """
    if options.json or options.out is not None or options.only or options.below:
        return code
    folder, home = options.in_format(SHARED), options.in_format(FORMAT)
    for each in (folder, home):
        each.gathers, each.is_following, each.has_reported = True, options.has_reported, False
    if options.is_dry:
        _print_what_follows(home)
    before = _state_of(folder)
    codes = [code, _plain(folder)]
    home.is_following |= folder.has_reported
    if not options.is_dry:
        if _state_of(folder) != before:  # it may have written to the store
            codes.append(_plain(home))
        with opened(home) as engine:
            are_new = bool(_new_sessions(engine))
        if are_new:
            codes.append(run(home, lambda: "reconcile", _bring))
    options.has_reported |= folder.has_reported or home.has_reported
    options.has_changes |= folder.has_changes or home.has_changes
    return first_code(codes)


def _print_what_follows(home: Options) -> None:
    """Print how many shared sessions get new lines in the folder, as the store has these only after a run."""
    with suppress(ReconcileError, OSError), opened(home) as engine:
        roots = engine.session.roots
        plan = engine.plan(policy_of(home, settings_of(roots))).plan
        shared = set(_names(roots.folder))
        if count := len(
            shared.intersection(each.conversation for each in plan.actions if each.target.side is Side.STORE)
        ):
            of = f"{short_path(roots.project)}: " if home.all else ""
            what = "1 of these sessions is" if count == 1 else f"{count} of these sessions are"
            place = os.path.relpath(roots.folder, roots.project)
            print_message(
                home, f"{of}{what} shared: a run checks the new lines for secrets, and copies them to {place}"
            )


def save_first(options: Options) -> None:
    """Save the newest lines of the home's sessions in the store, before one of them is shared; a dry run tells that."""
    home = options.in_format(FORMAT)
    if not options.is_dry:
        _plain(_quiet(home))
        return
    with suppress(ReconcileError, OSError), opened(home) as engine:
        plan = engine.plan(policy_of(home, settings_of(engine.session.roots))).plan
        if any(action.target.side is Side.STORE for action in plan.actions):
            message = f"lines that no run has saved yet are not shown; a run saves them: reconcile{home.sides}"
            print_message(options, message)


def prepare_commit(options: Options, *, is_published: bool) -> None:
    """Keep git from changing line ends in the folder, and print how a commit shares the sessions.

    A commit shares nothing that is blocked.
    """
    roots = find_roots(options)
    place = os.path.relpath(roots.workspace, roots.project)
    if options.is_dry or not os.path.isdir(roots.workspace):
        return
    try:
        ignored = Git(roots.project).ignored(place)
        keep_line_ends(roots.project, request_of(options))
    except (GitError, OSError):
        return
    if not is_published:
        return
    if ignored:
        print_message(options, f"git ignores {place}; commit a session of it with: git add --force")
    else:
        print_message(options, f"a commit of {place} shares it: git add {place}")


def _state_of(options: Options) -> Generation | None:
    """Return what every change of a pair's state changes; None if its sides are refused."""
    try:
        return generation(state_directory(find_roots(options).key, os.environ, sys.platform))
    except FAILURES:
        return None


def _quiet(options: Options) -> Options:
    quiet = copy.copy(options)
    quiet.quiet, quiet.json = True, False
    return quiet


def _plain(options: Options) -> int:
    """Make a plain run, which is silent if nothing has changed; an error is printed, and its exit code returned."""
    opening = Opening(open_engine)
    try:
        start = Start.of(options, opening.begin)
        code = print_unchanged(start._replace(options=_quiet(options)))
        return run_started(start, opening) if code is None else code
    except FAILURES as error:
        return report_failure(error, as_json=options.json, sides=options.sides)
    finally:
        opening.close()


def _new_sessions(engine: Engine) -> tuple[str, ...]:
    """Return the sessions in the folder that were never live here, and that no project of the program has."""
    roots = engine.session.roots
    stored = engine.known.sides[Side.STORE].conversations()
    new = [name for name in sorted(_sessions_in(roots)) if name in stored]
    if not new:
        return ()
    history = engine.session.state.load(engine.session.checkout, new).history
    projects = os.path.dirname(roots.workspace)
    return tuple(name for name in new if (name, METADATA) not in history and not homes_of(name, projects))


def _sessions_in(roots: Roots) -> set[str]:
    """Return the names in the folder that the directory of the program lacks; none if the folder can't be read.

    The run of its own pair has reported that.
    """
    try:
        names = _names(roots.folder)
    except OSError:
        return set()
    return set(names).difference(_names(roots.workspace))


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        return []


def _bring(policy: Policy, engine: Engine) -> Policy:
    new = with_owned(engine, _new_sessions(engine))
    return replace(policy, request=ProjectRequest(new, records=()))
