"""The command without a name where nothing has changed since the last run: that run's answer, and not one module more.

Whatever differs from a plain run, or asks for anything else, is `cli.run`'s affair.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

from reconcile.answering import asked_of, plan_of
from reconcile.apply.outcome import Outcome
from reconcile.disk.gitstate import git_busy
from reconcile.disk.last_answer import LastAnswer
from reconcile.disk.state_place import state_directory

from .report import exit_code, report
from .sides import policy_of

if TYPE_CHECKING:
    from reconcile.config import Settings
    from reconcile.disk.roots import Roots

    from .options import Options


class First(NamedTuple):
    """What a first look has found: the last run's record, and by side the paths that have another status now."""

    rest: LastAnswer
    changed: tuple[list[str], list[str]]


def look_first(options: Options, roots: Roots, settings: Settings) -> First | None:
    """Look for what has changed since the last run; None where that can't be told, or something else is asked for."""
    policy = policy_of(options, settings)
    special = options.only or options.below or options.yes or options.out is not None
    if special or not policy.is_plain or git_busy(roots.project) is not None:
        return None
    directory = state_directory(roots.key, os.environ, sys.platform)
    rest = LastAnswer.load(directory, roots.workspace_identity)
    if rest is None or not rest.is_about(asked_of(roots, policy, settings.ignore), directory, time.time_ns()):
        return None
    return First(rest, rest.changed())


def answer_unchanged(options: Options, roots: Roots, settings: Settings, first: First) -> int | None:
    """Answer as the last run did, and return the exit code; None where there is something to be planned.

    Questions are asked anew, and JSON tells more of a plan than was kept where that isn't quiet.
    """
    answer = first.rest.answer
    if first.rest.due or any(first.changed) or (answer.held and not options.is_dry):
        return None
    if options.json and not answer.quiet:
        return None
    plan = plan_of(answer, policy_of(options, settings), time.time_ns())
    report(options, roots, (), plan, None if options.is_dry else Outcome())
    return exit_code(plan, None, options)
