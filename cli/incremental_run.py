"""The command without a name where the last run's record holds: go on from that, at the cost of what has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.engine.incremental_run import OnePass
from reconcile.engine.resume import Recalled

from .context import open_session, policy_of
from .output.interaction import is_interactive, is_question, progress_bar, waiting_callback
from .output.report import exit_code, report

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from reconcile.adapters.roots import Roots
    from reconcile.apply.outcome import Outcome
    from reconcile.config import Settings
    from reconcile.index.summary import LastAnswer

    from .arguments import Options


class Onwards:
    """An open session, and what it knows of the last run."""

    def __init__(self, options: Options, roots: Roots, settings: Settings, rest: LastAnswer) -> None:
        """Open the session, and load all that doesn't depend on what has changed."""
        self._options, self._roots, self._settings = options, roots, settings
        self._session = open_session(roots, settings, readonly=options.is_dry, sound=rest.generation)
        self._recalled = Recalled.load(self._session, rest)

    def close(self) -> None:
        """Close the session."""
        self._session.close()

    def run(self, changed: Sequence[Collection[str]]) -> int | None:
        """Go on from the last run, and return the exit code; None: everything has to be looked at, or be asked.

        ``changed`` has, by side, the paths that have another status now.
        """
        options, session = self._options, self._session
        if self._recalled is None:
            return None
        policy = session.surroundings(policy_of(options, self._settings))
        if options.is_dry:
            one = OnePass.begin(session, self._recalled, changed, policy)
            return None if one is None else self._told(one, None)
        command = " ".join(("reconcile", *options.shaping))
        with session.exclusively(command, self._settings.lock_timeout, waiting_callback(options)):
            one = OnePass.begin(session, self._recalled, changed, policy)
            if one is None or (is_interactive(options) and any(is_question(item) for item in one.plan.held)):
                return None
            with progress_bar(options, len(one.plan.actions)) as progress:
                outcome = one.apply(command, progress)
            return self._told(one, outcome)

    def _told(self, one: OnePass, outcome: Outcome | None) -> int:
        report(self._options, self._roots, self._session.messages, one.plan, outcome)
        return exit_code(one.plan, outcome, self._options)
