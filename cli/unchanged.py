"""The first step of every run: what has changed since the last one. Where nothing has, its answer is printed.

A run with nothing to do loads this module and what it imports, and not one module more.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

from reconcile.fs.git_state import git_busy
from reconcile.index.file import IndexFile
from reconcile.index.summary import request_key
from reconcile.state.directory import state_directory

from .context import find_roots, settings_of, with_layout
from .output.errors import ExitCode
from .output.text import show_nothing_to_do
from .output.words import state_counts

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconcile.adapters.roots import Roots
    from reconcile.config import Settings
    from reconcile.engine.engine import Engine
    from reconcile.index.summary import Summary

    from .arguments import Options


class Start(NamedTuple):
    """The sides and the settings of a command, and what has changed since the last run.

    ``last``: the summary that the last run has saved; None where it doesn't hold for this one. ``changed``: by side,
    the paths that have another status now. ``is_first``: no run has been here yet.
    """

    options: Options
    roots: Roots
    settings: Settings
    last: Summary | None = None
    changed: tuple[list[str], list[str]] = ([], [])
    is_first: bool = False

    @classmethod
    def of(
        cls, options: Options, meanwhile: Callable[[Start], object] = lambda _: None, *, at_once: bool = False
    ) -> Start:
        """Find the sides, and detect what has changed.

        ``meanwhile`` may be called while another process looks for changes: ``at_once``, or else as soon as one is
        found.
        """
        roots = find_roots(options)
        start = cls(options, roots, settings_of(roots))
        directory = state_directory(roots.key, os.environ, sys.platform)
        if git_busy(roots.project):
            return start
        key = request_key(roots, with_layout(options, start.settings), start.settings.ignore)
        last = IndexFile(directory, roots.workspace_identity).load_summary(key, time.time_ns())
        if last is None:
            return start._replace(is_first=not os.path.lexists(directory))
        start = start._replace(last=last)
        return start._replace(changed=last.changed(lambda: meanwhile(start), at_once=at_once))

    @property
    def is_unchanged(self) -> bool:
        """Everything is as the last run has left it, and a run without options is asked for."""
        options = self.options
        special = options.only or options.below or options.allow_bulk_removal or options.yes or options.out is not None
        return (
            self.last is not None
            and not (special or options.prefer != "newest" or self.last.due)
            and not any(self.changed)
        )


class Opening:
    """The session of a command, opened once: by the first change that is detected, or later by the command itself."""

    def __init__(self, open_engine: Callable[[Start], Engine]) -> None:
        """Open nothing yet."""
        self._open_engine = open_engine
        self._engine: Engine | None = None

    def begin(self, start: Start) -> Engine:
        """Open the session, and load what the last run has saved."""
        if self._engine is None:
            self._engine = self._open_engine(start)
        return self._engine

    def close(self) -> None:
        """Close the session, if it is open."""
        if self._engine is not None:
            self._engine.session.close()
            self._engine = None


def print_unchanged(start: Start) -> int | None:
    """Print that there is nothing to do, and return the exit code; None where there is, or more has to be printed."""
    if start.last is None or not start.is_unchanged or start.options.json:
        return None
    answer = start.last.answer
    if answer.held or answer.aside or answer.notes or (start.options.is_dry and answer.besides):
        return None
    options, roots = start.options, start.roots
    options.has_nothing_to_do = True
    options.counts = state_counts(answer.states, roots.noun, is_public=roots.is_in_project)
    if not (options.quiet or options.gathers):
        show_nothing_to_do([options.counts], options.color, options.idle)
    return ExitCode.DONE
