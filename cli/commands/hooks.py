"""``reconcile hooks``: installs, shows and removes the hooks of git, and is what they call."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

import click

from reconcile.fs.git_hooks import HookError, Repository, State
from reconcile.fs.hook_files import HOOKS

from ..command import Command, Several
from ..context import find_roots
from ..hook import run_hook
from ..options import options_of
from ..output.documents import print_document
from ..output.tables import Column, table
from ..output.text import Style, short_path, show

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reconcile.fs.git_hooks import Part

    from ..arguments import Options


_OPTIONAL = ("attributes", "merge driver")
"""The parts that `hooks install` leaves out without --merge-driver."""


@click.command(
    "hooks",
    cls=Command,
    several=Several.OWN,
    accepts=("dry_run", "json"),
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
    """Install git's hooks, show them, or remove them.

    ACTION is install, status or remove. The hooks run reconcile when git changes the project. After a checkout, a merge
    and a rewrite, a run syncs both sides. It never makes git fail, and after a second it goes on in the background.
    Before a commit, the hook refuses private conversations, secrets, and files that are not valid. It also refuses
    a commit of conversations that it can't check.

    Your own hooks stay: a shell script gets a few lines, and another program is called. The hooks are those of the
    repository, so all its worktrees and all its projects have them. `run NAME` is what the hooks call.
    """
    options = options_of(context)
    if merge_driver and action != "install":
        raise click.UsageError("--merge-driver belongs to `reconcile hooks install`")
    if action == "run":
        name, *more = words or ("",)
        if name not in HOOKS:
            raise click.UsageError(f"hooks run needs one of {', '.join(HOOKS)}")
        context.exit(run_hook(options, name, tuple(more)))
    if words:
        raise click.UsageError(f"unexpected argument: {words[0]}")
    repository = _repository(options)
    if options.is_dry and action != "status":
        _report_dry(options, repository, is_install=action == "install", merge_driver=merge_driver)
        return
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


def _report_dry(options: Options, repository: Repository, *, is_install: bool, merge_driver: bool) -> None:
    """Print the parts that would be installed or removed, each with its file."""
    usual, done = (State.INSTALLED, "to install") if is_install else (State.ABSENT, "to remove")
    parts = [part for part in repository.parts() if part.state is not usual]
    if is_install and not merge_driver:
        parts = [part for part in parts if part.name not in _OPTIONAL]
    if options.json:
        _print_parts(options, parts, dry_run=True)
    elif parts:
        _show_table(options, parts, done)
    else:
        show([f"Nothing to do: everything is {usual}."])


def _print_parts(options: Options, parts: Iterable[Part], *, dry_run: bool) -> None:
    listed = [{"name": part.name, "state": part.state.value, "path": part.path, "note": part.note} for part in parts]
    print_document(options, {"format": "reconcile.hooks/1", "dry_run": dry_run, "parts": listed})


def _show_table(options: Options, parts: Iterable[Part], state: str = "") -> None:
    """Print a table of the parts. ``state``: it is printed in the place of theirs."""
    cells = [
        (part.name, (state or part.state.value) + (f", {part.note}" if part.note else ""), short_path(part.path))
        for part in parts
    ]
    columns = (Column("Part"), Column("State"), Column("File", shrinks=True))
    show(table(columns, cells, Style.choose(options.color)))


def _report(options: Options, repository: Repository) -> None:
    parts = list(repository.parts())
    if options.json:
        _print_parts(options, parts, dry_run=False)
        return
    _show_table(options, parts)
    absent = [part.name for part in parts if part.state is State.ABSENT]
    if len(absent) < len(parts) and any(name in _OPTIONAL for name in absent):
        show(["", "Optional: reconcile hooks install --merge-driver"])
    if any(part.state is State.DAMAGED for part in parts):
        show(["", "Damaged lines lack a mark, are there twice, or have others among them: reconcile hooks install"])
    if any(part.note.startswith("nothing calls") for part in parts):
        show(["", "A hook that nothing calls was yours: another one has taken its place. Keep what you need of it."])
    if any(part.state is State.UNCALLED for part in parts):
        show(["", "Git doesn't call a file that is not executable: chmod +x FILE; with husky: npx husky"])
    if any(part.note.endswith(" writes this file") for part in parts):
        show(["", "Some files are of lefthook or pre-commit, which may write them again without these lines."])
        show(["The manager's configuration can call reconcile instead."])
    if any(part.state is State.OUTDATED for part in parts):
        show(["", "Outdated lines are of another version, or of a program that has moved: reconcile hooks install"])
