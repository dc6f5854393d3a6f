"""The calls of git's hooks: a run after a checkout, a merge or a rewrite, and the check before a commit.

git waits for a hook, so this loads no parser, and little else. git calls it in the top of the checkout, and it serves
every project of JP in there.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from reconcile.adapters.roots import LocateError, within
from reconcile.errors import ReconcileError
from reconcile.fs.background import run_at_most
from reconcile.fs.git_state import checkout_top, git_busy
from reconcile.model.names import MARKER

from .context import find_roots
from .output.errors import ExitCode
from .output.text import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .arguments import Options

_PATIENCE = 0.7
"""Seconds that git waits for a run at most; the start of Python is not among them."""
_GIT_ENDS = 10.0
"""Seconds that a run waits in the background for the end of git's operation that called the hook."""
_LOOKS = 0.02
_OF_FILES = ("0",)
"""The last word after a checkout of single files. The pre-commit framework puts unstaged changes aside with one, for
a moment: a run must not take that for an edit, or move a directory.
"""

_FRAMEWORKS_WORD = "PRE_COMMIT_CHECKOUT_TYPE"
"""The variable that has this word if the pre-commit framework calls: it passes no arguments on."""


def run_hook(options: Options, name: str, words: tuple[str, ...]) -> int:
    """Do the work of one of `HOOKS`, and return the exit code. ``words`` are the arguments that git gives to it."""
    if name == "post-checkout" and (words[2:] or (os.environ.get(_FRAMEWORKS_WORD),)) == _OF_FILES:
        return ExitCode.DONE
    start = os.path.realpath(options.workspace or os.curdir)
    top = checkout_top(start)
    if top is None:
        return ExitCode.DONE
    if name == "pre-commit":
        from .commit_check import check_commit  # here: other hooks don't need it

        return check_commit(options, top)
    return _after(options, top, start)


def _after(options: Options, top: str, start: str) -> int:
    """Run a pass for each project, in a process of its own. The exit code is 0, whatever happens."""
    projects = _projects(options, top, start)
    if not projects:
        return ExitCode.DONE
    options.quiet = True  # it has no terminal, so it asks nothing: what needs a yes is blocked
    is_busy = git_busy(top) is not None
    # git waits for this hook, and may end its operation only then.
    code = run_at_most(0 if is_busy else _PATIENCE, lambda: _passes(options, projects, top))
    if code is None and not is_busy:
        _say("the sync continues in the background")
    elif code == ExitCode.HELD:
        _say("some conversations need you: reconcile status")
    elif code == ExitCode.FAILED:
        _say("the sync has failed: run reconcile to see why")
    return ExitCode.DONE


def _projects(options: Options, top: str, start: str) -> list[str]:
    """Return the projects of a checkout that can be synced: those that git knows, and the one around ``start``."""
    from reconcile.fs.git import Git, GitError, projects_of  # here: a checkout without git needs none

    try:
        projects = [os.path.join(top, project) for project in projects_of(Git(top).staged_below(MARKER), MARKER)]
    except GitError:
        projects = []
    found = []
    for project in dict.fromkeys((start, *projects)):
        try:
            options.workspace = project
            found.append(find_roots(options).project)
        except (LocateError, OSError):  # without conversations, or of another branch
            continue
    return [project for project in dict.fromkeys(found) if project == top or within(project, top)]


def _passes(options: Options, projects: Sequence[str], top: str) -> int:
    until = time.monotonic() + _GIT_ENDS
    while git_busy(top) is not None and time.monotonic() < until:
        time.sleep(_LOOKS)
    codes = [_pass(options, project) for project in projects]
    return next((code for code in (ExitCode.FAILED, ExitCode.HELD) if code in codes), codes[0])


def _pass(options: Options, project: str) -> int:
    from .plain import run_format  # here: the process that waits doesn't need it

    options.workspace = project
    try:
        return run_format(options)
    except ReconcileError as error:
        return error.exit_code
    except OSError:
        return ExitCode.FAILED


def _say(words: str) -> None:
    sys.stderr.write(f"reconcile: {clean(words)}\n")
