"""``reconcile hooks``: installs, shows and removes the hooks of git, and is what they call."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from typing import TYPE_CHECKING

import click

from reconcile.adapters.roots import LocateError
from reconcile.errors import ReconcileError
from reconcile.fs.background import run_at_most
from reconcile.fs.git_hooks import HOOKS, REFUSED, HookError, Repository, State
from reconcile.fs.git_state import checkout_top, git_busy
from reconcile.state.directory import state_directory

from ..command import Command
from ..context import find_roots, open_session, settings_of
from ..options import options_of
from ..output.errors import ExitCode
from ..output.tables import Column, table
from ..output.text import Style, clean, short_path, show

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconcile.adapters.roots import Roots
    from reconcile.scan.staged import Detector, Staged

    from ..arguments import Options

_PATIENCE = 0.7
"""Seconds that git waits for a run at most; the start of Python is not among them."""
_GIT_ENDS = 10.0
"""Seconds that a run waits in the background for the end of git's operation that called the hook."""
_LOOKS = 0.02
_OF_FILES = ("0",)
"""The last word after a checkout of single files. The pre-commit framework puts unstaged changes aside with one, for
a moment: a run must not take that for an edit, or move a directory.
"""


@click.command(
    "hooks",
    cls=Command,
    accepts=("json",),
    examples=(
        ("reconcile hooks install", "Install the hooks in this repository."),
        ("reconcile hooks install --merge-driver", "Let git merge conversations by reconcile's rules, too."),
        ("reconcile hooks status", "Show what is installed."),
        ("reconcile hooks remove", "Remove everything that was installed."),
    ),
)
@click.argument("action", type=click.Choice(["install", "status", "remove", "run"]), metavar="ACTION")
@click.argument("words", nargs=-1, metavar="[NAME]")
@click.option("--merge-driver", is_flag=True, help="With install: also git's merge and diff of conversations.")
@click.pass_context
def hooks(context: click.Context, action: str, words: tuple[str, ...], merge_driver: bool) -> None:
    """Run reconcile when git changes the project.

    ACTION is install, status or remove. After a checkout, a merge and a rewrite, a run syncs both sides. It never makes
    git fail, and after a second it goes on in the background. Before a commit, the hook refuses private conversations,
    secrets, and files that are not valid.

    Your own hooks stay: a shell script gets a few lines, and another program is called. The hooks are those of the
    repository, so all its worktrees have them. `run NAME` is what the hooks call.
    """
    options = options_of(context)
    if merge_driver and action != "install":
        raise click.UsageError("--merge-driver belongs to `reconcile hooks install`")
    if action == "run":
        context.exit(_run(options, *words))
    if words:
        raise click.UsageError(f"unexpected argument: {words[0]}")
    repository = _repository(options)
    if action == "install":
        repository.install(merge_driver=merge_driver)
    elif action == "remove":
        repository.remove()
    _report(options, repository)


def _repository(options: Options) -> Repository:
    roots = find_roots(options)
    if roots.format != "jp":
        raise HookError(
            f"hooks are for JP's conversations, and this is {roots.format}", "run `reconcile watch` instead"
        )
    return Repository.of(roots.project, _program())


def _program() -> str | None:
    """Return the directory of this command, if the hooks may need it."""
    found = shutil.which(sys.argv[0]) or shutil.which("reconcile")
    return None if found is None else os.path.dirname(os.path.abspath(found))


def _report(options: Options, repository: Repository) -> None:
    parts = list(repository.parts())
    if options.json:
        listed = [
            {"name": part.name, "state": part.state.value, "path": part.path, "note": part.note} for part in parts
        ]
        click.echo(json.dumps({"format": "reconcile.hooks/1", "parts": listed}, indent=2))
        return
    style = Style.choose(options.color)
    cells = [
        (part.name, part.state.value + (f", {part.note}" if part.note else ""), clean(short_path(part.path)))
        for part in parts
    ]
    show(table((Column("Part"), Column("State"), Column("File", shrinks=True)), cells, style))
    if any(part.state is State.OUTDATED for part in parts):
        show(["", "Outdated lines are of another version, or of a program that has moved: reconcile hooks install"])


def _run(options: Options, name: str = "", *words: str) -> int:
    if name not in HOOKS:
        raise click.UsageError(f"hooks run needs one of {', '.join(HOOKS)}")
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
    from ..plain import run_plain  # here: the process that waits doesn't need it

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
    from reconcile.fs.git import Git, GitError  # here, as below: other hooks don't need it
    from reconcile.scan.staged import refused

    top = checkout_top(roots.project)
    if top is None:
        return ExitCode.DONE
    index = os.environ.get("GIT_INDEX_FILE")
    git = Git(top, None if index is None else os.path.abspath(index))
    below = os.path.relpath(os.path.realpath(roots.workspace_conversations), top)
    settings = settings_of(roots)
    try:
        from reconcile.formats import get_format

        found = refused(git, below, get_format(roots.format, settings.ignore), _privacy(roots), _detector(roots))
    except (GitError, ReconcileError, OSError) as error:
        _say(f"the commit was not checked: {str(error) or 'git gave no answer'}")
        return ExitCode.DONE
    for each in found:
        _print(each)
    if found:
        _say("commit refused; to commit all the same: git commit --no-verify")
    return REFUSED if found else ExitCode.DONE


def _privacy(roots: Roots) -> Callable[[str], bool]:
    """Return a function that tells whether a conversation is private."""
    from reconcile.model.baseline import IntentKind  # here: see above

    private: set[str] | None = None

    def is_private(conversation: str) -> bool:
        nonlocal private
        if private is None:
            with open_session(roots, settings_of(roots), readonly=True) as session:
                intents = session.state.load(session.checkout).intents
            local = {id_ for id_, intent in intents.items() if intent.kind is IntentKind.LOCAL}
            private = {id_ for id_, intent in intents.items() if {id_, intent.waits_for} & local}
        return conversation in private

    return is_private


def _detector(roots: Roots) -> Detector:
    """Return a function that returns the secrets in a file, in words, without those that the user allows."""
    from reconcile.state.allowed_secrets import AllowedSecrets  # here: see above

    known = AllowedSecrets(state_directory(roots.key, os.environ, sys.platform))

    def secrets_in(content: bytes, before: bytes | None) -> tuple[str, ...]:
        return tuple(finding.words for finding in known.find_secrets(content, () if before is None else (before,)))

    return secrets_in


def _print(each: Staged) -> None:
    _say(f"{each.path}: {each.reason}")
    for way in each.ways:
        sys.stderr.write(f"  {clean(way)}\n")


def _say(words: str) -> None:
    sys.stderr.write(f"reconcile: {clean(words)}\n")
