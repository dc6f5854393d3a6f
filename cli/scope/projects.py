"""``reconcile --all``: a plain run in each project of the user, one after the other, in one process.

It asks nothing: what needs an answer is blocked, with the command that decides it. No project stops the others.
"""

from __future__ import annotations

import copy
import gc
import json
import os
import sys
import traceback
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

from reconcile.adapters.claude_code.places import FORMAT
from reconcile.adapters.everywhere import Target, every_project
from reconcile.adapters.roots import Request
from reconcile.errors import ReconcileError
from reconcile.model.commands import quoted

from ..context import policy_of, settings_of
from ..misuse import Misuse
from ..options import spelling
from ..output.errors import FAILURES, ExitCode, first_code, report_failure
from ..output.interaction import print_message
from ..output.text import SETTLED_COLOR, Style, short_path, show
from ..run import open_engine, opened, run_started
from ..unchanged import Opening, Start
from .shared import run_shared

if TYPE_CHECKING:
    from collections.abc import Collection

    from reconcile.adapters.everywhere import LeftOut

    from ..arguments import Options

NO_PROJECT = "No project was found. A run in a project adds it: cd PROJECT && reconcile"
"""The words of a command for all projects if there is none."""
RESTORE_ALL = "restore what all of them have lost: reconcile recover --all-projects"
BESIDE = frozenset(("all", "dry_run", "check", "json", "verbose", "quiet", "format", "color", "no_pager"))
"""The options that ``--all`` takes."""


def no_project(left_out: Collection[LeftOut]) -> str:
    """Return the words of a command for all projects that has looked at none."""
    return f"No project was looked at: {len(left_out)} left out." if left_out else NO_PROJECT


def home_request() -> Request:
    """Return the request that names no project."""
    return Request(None, None, os.getcwd(), os.environ, sys.platform)


def refuse_beside(options: Options, allowed: Collection[str] = BESIDE, option: str = "--all") -> None:
    """Raise `Misuse` if an option was given that means nothing for every project, which ``option`` selects."""
    if unknown := sorted(options.given - set(allowed)):
        which = "it" if len(unknown) == 1 else "them"
        hint = f"leave {which} out, or run reconcile in one project"
        if unknown == ["yes"]:
            hint = f"leave it out: {option} asks nothing, and leaves what needs an answer for a run in that project"
        raise Misuse(f"{option}: {', '.join(map(spelling, unknown))} can't be used with it", hint)


def options_for(options: Options, target: Target) -> Options:
    """Return the options of the run in one project."""
    own = copy.copy(options)
    own.workspace, own.format = target.project, target.format
    return own


def run_all(options: Options) -> int:
    """Run in every project, print what was done or is blocked, and return the worst exit code."""
    refuse_beside(options)
    gc.enable()  # a run makes hundreds of thousands of values, and here are many runs
    found = every_project(home_request(), options.format)
    codes, changed = Counter[int](), 0
    for target in found.targets:
        own = options_for(options, target)
        code = _run(own, short_path(target.project))
        codes[code] += 1
        changed += own.has_changes and code in (ExitCode.DONE, ExitCode.PENDING)
    _report(options, codes, changed, found.left_out)
    failed = [ExitCode.FAILED] if any(each.is_failure for each in found.left_out) else []
    skipped = [ExitCode.HELD] if found.left_out and not found.targets else []  # nothing was done
    return first_code([*codes, *failed, *skipped] or [ExitCode.DONE])


def _run(options: Options, name: str) -> int:
    """Run in one project; an error is reported, and is the project's alone."""
    opening = Opening(open_engine)
    try:
        start = Start.of(options, opening.begin)
        code = run_started(start, opening)
        opening.close()
        return run_shared(options, code) if start.roots.folder else code
    except FAILURES as error:
        if not isinstance(error, Exception):
            raise  # Ctrl-C is about all of them
        code = report_failure(error, as_json=options.json, of=name)
        return ExitCode.FAILED if code == ExitCode.USAGE else code
    except Exception:  # noqa: BLE001 - a bug that one project meets must not cost the others their copies
        sys.stderr.write(f"{name}:\n{traceback.format_exc()}")
        return ExitCode.FAILED
    finally:
        opening.close()


def _why(options: Options, lost: LeftOut) -> str:
    """Return why a project is left out: of one without a session, what its store has; nothing is written."""
    if lost.lost != FORMAT:
        return lost.why
    from reconcile.inspect.losses import losses_of, no_session_words  # here: this is rare

    own = options_for(options, Target(lost.path, FORMAT))
    sides = f" {' '.join(map(quoted, own.side_words))}" if options.json else own.sides  # JSON has full paths
    with suppress(ReconcileError, OSError), opened(own) as engine:
        found = engine.plan(policy_of(own, settings_of(engine.session.roots)))
        losses, states = losses_of(engine.session, found), dict(engine.completed(found).states)
        if losses is not None:
            return f"Claude Code has no session of it; {losses.words(sides)}"
        if states.get("removed"):
            return no_session_words(states["removed"], engine.session.roots.noun, sides)
    return lost.why


def _report(options: Options, codes: Counter[int], changed: int, left_out: Collection[LeftOut]) -> None:
    """Print what was left out, and the counts of the projects, each under the worst that was met in it."""
    count, held = codes.total(), codes[ExitCode.HELD]
    failed = codes[ExitCode.FAILED] + codes[ExitCode.LOCKED]
    if options.json:
        counts = {"projects": count, "changed": changed, "blocked": held, "failed": failed}
        out = [{"path": each.path, "why": _why(options, each)} for each in left_out]
        show([json.dumps({"format": "reconcile.all/1", **counts, "left_out": out})])
        return
    for each in left_out:
        is_trouble = bool(each.lost) or each.is_failure or not count
        print_message(options, f"left out: {short_path(each.path)}: {_why(options, each)}", trouble=is_trouble)
    if sum(bool(each.lost) for each in left_out) > 1:
        print_message(options, RESTORE_ALL, trouble=True)
    if options.quiet:
        return
    verb = "to change" if options.is_dry else "changed"
    parts = ((changed, verb), (held, "blocked"), (failed, "failed"))
    told = ", ".join(f"{number} {words}" for number, words in parts if number)
    projects = f"{count} project{'' if count == 1 else 's'}"
    text = f"{projects}: {told}." if told else f"Nothing to do in {projects}."
    if not count:
        text = no_project(left_out)
    color = "yellow" if held or failed or (left_out and not count) else SETTLED_COLOR
    show([Style.choose(options.color)(text, color, bold=True)])
