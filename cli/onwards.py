"""The command without a name where the last run's record holds: go on from that, at the cost of what has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.onepass import OnePass

from .asking import is_interactive, is_question, tell_waiting
from .context import open_session
from .progress import progress_bar
from .report import exit_code, report
from .sides import policy_of

if TYPE_CHECKING:
    from reconcile.config import Settings
    from reconcile.disk.roots import Roots

    from .given import Options
    from .unchanged import First


def run_on(options: Options, roots: Roots, settings: Settings, first: First) -> int | None:
    """Go on from the last run, and return the exit code; None where everything has to be looked at, or be asked."""
    command = " ".join(("reconcile", *options.shaping))
    with open_session(roots, settings, readonly=options.is_dry) as session:
        policy = session.surroundings(policy_of(options, settings))
        if options.is_dry:
            one = OnePass.begin(session, *first, policy)
            if one is not None:
                report(options, roots, session.messages, one.plan, None)
            return None if one is None else exit_code(one.plan, None, options)
        with session.exclusively(command, settings.lock_timeout, tell_waiting(options)):
            one = OnePass.begin(session, *first, policy)
            if one is None or (is_interactive(options) and any(is_question(item) for item in one.plan.held)):
                return None
            with progress_bar(options, len(one.plan.actions)) as progress:
                outcome = one.apply(command, progress)
            report(options, roots, session.messages, one.plan, outcome)
        return exit_code(one.plan, outcome, options)
