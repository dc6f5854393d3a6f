"""The command without a name where nothing has changed since the last run: that run's answer, and not one module more.

Whatever differs from a plain run, or asks for anything else, is `cli.plain_run`'s affair.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

from reconcile.engine.result_cache import asked_of
from reconcile.fs.git_state import git_busy
from reconcile.index.summary import LastAnswer
from reconcile.state.directory import state_directory

from .context import with_layout
from .output.errors import ExitCode
from .output.text import SETTLED_COLOR, Style, count_line, heading, show

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconcile.adapters.roots import Roots
    from reconcile.config import Settings

    from .arguments import Options


class First(NamedTuple):
    """What a first look has found: the last run's record, and by side the paths that have another status now."""

    rest: LastAnswer
    changed: tuple[list[str], list[str]]

    @property
    def is_unchanged(self) -> bool:
        """Everything is as the last run has left it."""
        return not self.rest.due and not any(self.changed)


def look_first(
    options: Options, roots: Roots, settings: Settings, meanwhile: Callable[[LastAnswer], object]
) -> First | None:
    """Look for what has changed since the last run; None where that can't be told, or something else is asked for.

    ``meanwhile`` may be called as soon as it is clear that something has, while another process looks for the rest.
    """
    special = options.only or options.below or options.accept or options.yes or options.out is not None
    if special or options.prefer != "newest" or git_busy(roots.project) is not None:
        return None
    directory = state_directory(roots.key, os.environ, sys.platform)
    rest = LastAnswer.load(directory, roots.workspace_identity)
    asked = asked_of(roots, with_layout(options, settings), settings.ignore)
    if rest is None or not rest.is_about(asked, directory, time.time_ns()):
        return None
    return First(rest, rest.changed(lambda: meanwhile(rest)))


def answer_at_once(options: Options, roots: Roots, first: First) -> int | None:
    """Say that there is nothing to do, and return the exit code; None where there is, or more is to be said."""
    answer = first.rest.answer
    if not first.is_unchanged or options.json or answer.held or answer.aside or answer.notes:
        return None
    if not options.quiet:
        style = Style.choose(options.color)
        end = count_line((), (), answer.states, roots.noun, done=not options.is_dry)
        show((heading(roots, answer.layout, style), "", style(end, SETTLED_COLOR, bold=True)))
    return ExitCode.DONE
