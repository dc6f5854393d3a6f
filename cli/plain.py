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
        from .onwards import run_on  # loaded already, where there was time to

        code = run_on(options, roots, settings, first)
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
