"""The calls of git's hooks: a run after a checkout, a merge or a rewrite, and the check before a commit.

git waits for a hook, so this loads no parser, and little else.
"""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from typing import TYPE_CHECKING

from reconcile.adapters.roots import LocateError
from reconcile.errors import ReconcileError
from reconcile.fs.background import run_at_most
from reconcile.fs.git_state import checkout_top, git_busy
from reconcile.fs.hook_files import REFUSED
from reconcile.state.directory import state_directory

from .context import find_roots, settings_of
from .output.errors import ExitCode
from .output.text import clean

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from reconcile.adapters.roots import Roots
    from reconcile.fs.git import Git
    from reconcile.scan.staged import Detector, Staged

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


def run_hook(options: Options, name: str, words: tuple[str, ...]) -> int:
    """Do the work of one of `HOOKS`, and return the exit code. ``words`` are the arguments that git gives to it."""
    if name == "post-checkout" and words[2:] == _OF_FILES:
        return ExitCode.DONE
    try:
        roots = find_roots(options)
    except LocateError:  # a checkout without conversations
        return ExitCode.DONE
    return _before_commit(roots) if name == "pre-commit" else _after(options, roots)


def _after(options: Options, roots: Roots) -> int:
    """Run a pass in a process of its own. The exit code is 0, whatever happens."""
    options.quiet = options.yes = True
    is_busy = git_busy(roots.project) is not None
    # git waits for this hook, and may end its operation only then.
    code = run_at_most(0 if is_busy else _PATIENCE, lambda: _pass(options, roots))
    if code is None and not is_busy:
        _say("the sync continues in the background")
    elif code == ExitCode.HELD:
        _say("some conversations need you: reconcile status")
    elif code == ExitCode.FAILED:
        _say("the sync has failed: run reconcile to see why")
    return ExitCode.DONE


def _pass(options: Options, roots: Roots) -> int:
    from .plain import run_plain  # here: the process that waits doesn't need it

    until = time.monotonic() + _GIT_ENDS
    while git_busy(roots.project) is not None and time.monotonic() < until:
        time.sleep(_LOOKS)
    try:
        return run_plain(options)
    except ReconcileError as error:
        return error.exit_code
    except OSError:
        return ExitCode.FAILED


def _before_commit(roots: Roots) -> int:
    """Refuse a commit that must not be made. A check that is impossible refuses nothing."""
    from reconcile.fs.git import Git, GitError  # here: other hooks don't need it

    top = checkout_top(roots.project)
    if top is None:
        return ExitCode.DONE
    index = os.environ.get("GIT_INDEX_FILE")
    git = Git(top, None if index is None else os.path.abspath(index))
    below = os.path.relpath(os.path.realpath(roots.workspace_conversations), top)
    try:
        changes = dict(git.staged_changes(below))
        troubles = _refused(git, changes, below, roots) if changes else ()
    except (GitError, ReconcileError, OSError) as error:
        _say(f"the commit was not checked: {str(error) or 'git gave no answer'}")
        return ExitCode.DONE
    for trouble in troubles:
        _print(trouble)
    if troubles:
        _say("commit refused; to commit all the same: git commit --no-verify")
    return REFUSED if troubles else ExitCode.DONE


def _refused(git: Git, changes: Mapping[str, str], below: str, roots: Roots) -> tuple[Staged, ...]:
    from reconcile.formats import get_format  # here: most commits change no conversation
    from reconcile.scan.staged import refused

    form = get_format(roots.format, settings_of(roots).ignore)
    return refused(git, changes, below, form, partial(_private, roots), _detector(roots))


def _private(roots: Roots, conversations: Collection[str]) -> frozenset[str]:
    """Return the private ones of some conversations; the cost doesn't depend on the number of the others."""
    from reconcile.model.baseline import IntentKind  # here: see above
    from reconcile.state.database import State

    directory = state_directory(roots.key, os.environ, sys.platform)
    with State.open(directory, readonly=True) as state:
        checkout = state.checkout(os.path.realpath(roots.project), roots.workspace_identity, time.time_ns())
        intents = state.load(checkout, conversations).intents
        above = {intent.waits_for for intent in intents.values() if intent.waits_for is not None}
        known = {**(state.load(checkout, above).intents if above else {}), **intents}
    local = {conversation for conversation, intent in known.items() if intent.kind is IntentKind.LOCAL}
    return frozenset(id_ for id_, intent in intents.items() if {id_, intent.waits_for} & local)


def _detector(roots: Roots) -> Detector:
    """Return a function that returns the secrets in a file, in words, without those that the user allows."""
    from reconcile.state.allowed_secrets import AllowedSecrets  # here: see above

    known = AllowedSecrets(state_directory(roots.key, os.environ, sys.platform))

    def secrets_in(content: bytes, before: bytes | None) -> tuple[str, ...]:
        return tuple(finding.words for finding in known.find_secrets(content, () if before is None else (before,)))

    return secrets_in


def _print(trouble: Staged) -> None:
    _say(f"{trouble.path}: {trouble.reason}")
    for way in trouble.ways:
        sys.stderr.write(f"  {clean(way)}\n")


def _say(words: str) -> None:
    sys.stderr.write(f"reconcile: {clean(words)}\n")
