"""The check before a commit: no private conversation, no secret, no broken file. A check that is impossible refuses."""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from typing import TYPE_CHECKING

from reconcile.adapters.jp.lost_checkouts import known_checkouts
from reconcile.adapters.jp.roots import locate_for_recovery, locate_jp, silos_of
from reconcile.adapters.roots import Request
from reconcile.config import load_settings
from reconcile.errors import ReconcileError
from reconcile.fs.git import Git, GitError, projects_of
from reconcile.fs.hook_files import REFUSED
from reconcile.fs.paths import is_directory, status_at
from reconcile.model.commands import typed
from reconcile.model.names import CHILDREN, ID_FILE, MARKER
from reconcile.state.connection import StateError
from reconcile.state.directory import NAME, state_directory
from reconcile.state.private_list import NAME as LIST

from .output.errors import ExitCode
from .output.text import clean

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from reconcile.adapters.roots import Roots
    from reconcile.fs.git import Change
    from reconcile.scan.staged import Detector, Staged

    from .arguments import Options


def check_commit(options: Options, top: str) -> int:
    """Check the index of the checkout that has this top, and return the exit code of the hook."""
    index = os.environ.get("GIT_INDEX_FILE")
    git = Git(top, None if index is None else os.path.abspath(index))
    try:
        troubles = [trouble for place in _places(git) for trouble in _refused(git, options, *place)]
    except (GitError, ReconcileError, OSError) as error:
        reason = str(error) or "git gave no answer"
        hint = getattr(error, "hint", None)
        _say(f"the commit could not be checked: {reason}" + (f" ({hint})" if hint else ""))
        troubles = None
    for trouble in troubles or ():
        _print(trouble)
    if troubles == []:
        return ExitCode.DONE
    _say("commit refused; to commit all the same: git commit --no-verify")
    return REFUSED


def _places(git: Git) -> Iterator[tuple[str, str, Mapping[str, Change]]]:
    """Yield each project with changed conversations: its path, the directory of these in the index, and the changes.

    A directory of conversations that is a link is checked at its target, too: git has the files there.
    """
    changes = git.staged_changes()
    if not changes:
        return
    known = projects_of((*changes, *git.staged_below(MARKER)), MARKER)
    if is_directory(os.path.join(git.top, MARKER)):
        known = list(dict.fromkeys(("", *known)))
    for relative in known:
        project = os.path.join(git.top, relative) if relative else git.top
        named = os.path.join(relative, MARKER, CHILDREN)
        real = os.path.relpath(os.path.realpath(os.path.join(project, MARKER, CHILDREN)), git.top)
        for below in dict.fromkeys((named, real)):
            inside = {path: change for path, change in changes.items() if path.startswith(f"{below}/")}
            if inside:
                yield project, below, inside


def _refused(git: Git, options: Options, project: str, below: str, changes: Mapping[str, Change]) -> tuple[Staged, ...]:
    from reconcile.formats import get_format  # here: most commits change no conversation
    from reconcile.scan.staged import refused

    roots = _roots(options, project)
    directory = None if roots is None else state_directory(roots.key, os.environ, sys.platform)
    if directory is None or not any(os.path.lexists(os.path.join(directory, name)) for name in (NAME, LIST)):
        _say(f"{project}: nothing is known here about private conversations; secrets are checked")
    form = get_format("jp", load_settings(os.environ, roots.workspace_id if roots is not None else None).ignore)
    private = partial(_private, roots, directory)
    relative = os.path.relpath(project, git.top)
    command = "reconcile" if relative == "." else f"reconcile --workspace {typed(relative)}"
    return refused(git, changes, below, form, private, _detector(directory), command)


def _roots(options: Options, project: str) -> Roots | None:
    """Return the sides of a project; None if it has no id and no record knows it. Raises `LocateError`."""
    request = Request(project, options.store, os.getcwd(), os.environ, sys.platform)
    if status_at(os.path.join(project, MARKER, ID_FILE), follow=False) is not None:
        return locate_jp(request)
    known = known_checkouts(request, silos_of(request))
    return locate_for_recovery(request, None) if known.unread or known.ids_of(project) else None


def _private(roots: Roots | None, directory: str | None, conversations: Collection[str]) -> frozenset[str]:
    """Return the private ones of some conversations; the cost doesn't depend on the number of the others.

    Raises `StateError` if the state can't tell.
    """
    from reconcile.model.baseline import private_of  # here: see above
    from reconcile.state.database import State

    if roots is None or directory is None:
        return frozenset()
    with State.open(directory, readonly=True) as state:
        if state.messages:  # it is damaged or incomplete, and counts as empty
            raise StateError(state.messages[0], "run reconcile, then commit again")
        checkout = state.checkout(os.path.realpath(roots.project), roots.workspace_identity, time.time_ns())
        asked = set(wanted := frozenset(conversations))
        intents = dict(state.load(checkout, wanted).intents)
        # Each has the id of the one in whose directory it was, and that one may have left with another.
        while above := {each.waits_for for each in intents.values() if each.waits_for is not None} - asked:
            asked |= above
            intents |= state.load(checkout, above).intents
    return private_of(intents) & wanted


def _detector(directory: str | None) -> Detector:
    """Return a function that returns the secrets in a file, in words, without those that the user allows."""
    from reconcile.state.allowed_secrets import AllowedSecrets  # here: see above

    known = AllowedSecrets(directory or os.devnull)

    def secrets_in(content: bytes, before: bytes | None) -> tuple[str, ...]:
        return tuple(finding.words for finding in known.find_secrets(content, () if before is None else (before,)))

    return secrets_in


def _print(trouble: Staged) -> None:
    _say(f"{trouble.path}: {trouble.reason}")
    for way in trouble.ways:
        sys.stderr.write(f"  {clean(way)}\n")


def _say(words: str) -> None:
    sys.stderr.write(f"reconcile: {clean(words)}\n")
