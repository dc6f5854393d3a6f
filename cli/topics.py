"""The topics of ``reconcile help TOPIC``: pages of the documentation, which are installed with the program.

The text is in ``docs`` alone. A wheel has these pages as data (``[tool.setuptools.data-files]``).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

import click

from .options import options_of
from .output.errors import ExitCode, print_error

if TYPE_CHECKING:
    from collections.abc import Iterator


class Topic(NamedTuple):
    """A page below ``docs``, or the section at its anchor, and its line in the program's help."""

    page: str
    summary: str


TOPICS = {
    "tutorial": Topic("tutorial.md", "From nothing to a recovered worktree, in ten minutes."),
    "concepts": Topic("concepts.md", "The words: store, workspace, base, conflict, fork."),
    "formats": Topic("formats.md", "JP, Claude Code, Leslie and Claudesidian side by side."),
    "safety": Topic("safety.md", "The guarantees, and their few exceptions."),
    "configuration": Topic("commands.md#configuration", "The settings, their files and variables."),
    "conflict": Topic("howto/conflict.md", "Resolve a conflict."),
    "deleted-jp": Topic("howto/deleted-jp.md", "Recover after `rm -rf .jp`."),
    "deleted-worktree": Topic("howto/deleted-worktree.md", "Recover a deleted worktree."),
    "claude-code": Topic("howto/claude-code.md", "Keep the sessions of Claude Code."),
    "keep-private": Topic("howto/keep-private.md", "Keep a conversation private."),
    "secrets": Topic("howto/secrets.md", "Keep a secret out of the project."),
    "several-machines": Topic("howto/several-machines.md", "Use several machines, with or without encryption."),
    "git": Topic("howto/git.md", "Use git's hooks."),
    "other-format": Topic("howto/other-format.md", "Sync any two directories."),
    "report-a-bug": Topic("howto/report-a-bug.md", "Report a bug."),
    "uninstall": Topic("howto/uninstall.md", "Uninstall, and what each directory has."),
}
"""The topics by their names. None is the name of a command: ``reconcile help review`` is about the command."""
INSTALLED = "share/doc/reconcile"
"""The directory of the pages below an environment, with the same names as below ``docs``."""
_DISTRIBUTION = "reconcile-fs"


def topic_command(name: str) -> click.Command:
    """Return the command that prints a topic, through the pager if it is long."""

    @click.pass_context
    def callback(context: click.Context) -> None:
        from .output.page_text import page_lines, section  # here, as below: most command lines ask for no topic
        from .output.screen import show_paged
        from .output.text import DEFAULT_COLUMNS, Style

        page, _, anchor = TOPICS[name].page.partition("#")
        if (path := _path(page)) is None:
            hint = f"the same page is docs/{page} in the repository"
            print_error(f"the page {page} is not installed", hint, as_json=options_of(context).json)
            context.exit(ExitCode.FAILED)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        style = Style.choose(options_of(context).color)
        others = {os.path.normpath(each.page): other for other, each in TOPICS.items()}
        shown = section(text, anchor) if anchor else text
        show_paged(page_lines(shown, style, style.columns or DEFAULT_COLUMNS, os.path.dirname(page), others), style)

    return click.Command(name, callback=callback, help=TOPICS[name].summary)


def _path(page: str) -> str | None:
    """Return the file of a page: beside the sources, or where the installer has put it."""
    return next(filter(os.path.isfile, _places(page)), None)


def _places(page: str) -> Iterator[str]:
    yield os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "docs", page)
    from importlib.metadata import PackageNotFoundError, files

    try:
        listed = files(_DISTRIBUTION) or ()
    except PackageNotFoundError:
        return
    yield from (str(file.locate()) for file in listed if file.as_posix().endswith(f"{INSTALLED}/{page}"))
