"""The command without a name where nothing has changed since the last run: that run's answer, and not one module more.

Whatever differs from a plain run, or asks for anything else, is `cli.run`'s affair.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from reconcile.apply.outcome import Outcome
from reconcile.disk.at_rest import AtRest
from reconcile.disk.gitstate import git_busy
from reconcile.disk.state_place import state_directory
from reconcile.resting import asked_of, plan_of

from .options import options_of
from .report import exit_code, report
from .sides import find_roots, policy_of, settings_of

if TYPE_CHECKING:
    import click

    from .options import Options


def answer_unchanged(context: click.Context) -> int | None:
    """Answer as the last run did, and return the exit code; None where that can't be done."""
    options = options_of(context)
    roots = find_roots(options)
    settings = settings_of(roots)
    policy = policy_of(options, settings)
    directory = state_directory(roots.key, os.environ, sys.platform)
    if not policy.is_plain or options.only or options.below or options.yes or options.out is not None:
        return None
    rest, now_ns = AtRest.load(directory, roots.workspace_identity), time.time_ns()
    if rest is None or not _answers(rest, options) or git_busy(roots.project) is not None:
        return None
    if not rest.holds(asked_of(roots, policy, settings.ignore), directory, now_ns):
        return None
    plan = plan_of(rest.answer, policy, now_ns)
    report(options, roots, (), plan, None if options.is_dry else Outcome())
    return exit_code(plan, None, options)


def _answers(rest: AtRest, options: Options) -> bool:
    """Tell whether it has all that is to be said: questions are asked anew, and JSON tells more of what isn't quiet."""
    return (options.is_dry or not rest.answer.held) and (not options.json or rest.answer.quiet)
