"""The command without a name, which loads what it needs and no more: little, where nothing has changed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from .sides import find_roots, policy_of, settings_of
from .unchanged import answer_at_once

if TYPE_CHECKING:
    from reconcile.config import Settings
    from reconcile.disk.roots import Roots

    from .given import Options
    from .unchanged import First


def run_plain(options: Options) -> int | None:
    """Answer as the last run did where nothing has changed; else go on from it. Return the exit code.

    None: everything has to be looked at, or something be asked, or something else than a usual run is asked for.
    """
    code = answer_at_once(options)
    first = options.first
    if code is not None or first is None:
        return code
    roots = find_roots(options)
    settings = settings_of(roots)
    code = _answer_unchanged(options, roots, settings, first)
    if code is None and not options.json:
        code = _run_on(options, roots, settings, first)
    return code


def _answer_unchanged(options: Options, roots: Roots, settings: Settings, first: First) -> int | None:
    """Answer as the last run did, and return the exit code; None where there is something to be planned.

    Questions are asked anew, and JSON tells more of a plan than was kept where that isn't quiet.
    """
    answer = first.rest.answer
    if not first.is_unchanged or (answer.held and not options.is_dry) or (options.json and not answer.quiet):
        return None
    from reconcile.answering import plan_of
    from reconcile.apply.outcome import Outcome

    from .report import exit_code, report

    plan = plan_of(answer, policy_of(options, settings), time.time_ns())
    report(options, roots, (), plan, None if options.is_dry else Outcome())
    return exit_code(plan, None, options)


def _run_on(options: Options, roots: Roots, settings: Settings, first: First) -> int | None:
    """Go on from the last run, and return the exit code; None where everything has to be looked at, or be asked."""
    from reconcile.onepass import OnePass

    from .asking import is_interactive, is_question, tell_waiting
    from .context import open_session
    from .progress import progress_bar
    from .report import exit_code, report

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
