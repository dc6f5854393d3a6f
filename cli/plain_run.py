"""The command without a name, which loads what it needs and no more: little, where nothing has changed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from reconcile.errors import ReconcileError
from reconcile.signals import Uninterrupted

from .context import find_roots, policy_of, settings_of
from .unchanged import answer_at_once, look_first

if TYPE_CHECKING:
    from typing import Self

    from reconcile.adapters.roots import Roots
    from reconcile.config import Settings
    from reconcile.index.summary import LastAnswer

    from .arguments import Options
    from .incremental_run import Onwards
    from .unchanged import First


def run_plain(options: Options) -> int | None:
    """Answer as the last run did where nothing has changed; else go on from it. Return the exit code.

    None: everything has to be looked at, or something be asked, or something else than a usual run is asked for.
    Raises `ReconcileError`, `OSError`.
    """
    options.looked = True
    try:
        return _run_plain(options)
    except ReconcileError as error:
        if not _is_damage(error):
            raise
        return None  # the state is checked then


def _run_plain(options: Options) -> int | None:
    roots = find_roots(options)
    settings = settings_of(roots)
    with _Ahead(options, roots, settings) as ahead:
        first = look_first(options, roots, settings, _nothing if options.json else ahead.begin)
        if first is None:
            return None
        code = answer_at_once(options, roots, first)
        if code is None:
            code = _answer_unchanged(options, roots, settings, first)
        if code is None and not options.json:
            code = ahead.begin(first.rest).run(first.changed)
        return code


def _nothing(_: LastAnswer) -> None:
    """What JSON is made of is planned from a look at everything."""


def _is_damage(error: ReconcileError) -> bool:
    """Tell whether the state's file is broken: going on from the last run doesn't check it first."""
    from reconcile.state.connection import StateError

    return isinstance(error, StateError) and error.is_damage


class _Ahead:
    """What goes on from the last run. It is begun once, as soon as it is clear that there is something to do."""

    def __init__(self, options: Options, roots: Roots, settings: Settings) -> None:
        self._about = options, roots, settings
        self._begun: Onwards | None = None

    def begin(self, rest: LastAnswer) -> Onwards:
        if self._begun is None:
            with Uninterrupted():
                from .incremental_run import Onwards
            self._begun = Onwards(*self._about, rest)
        return self._begun

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._begun is not None:
            self._begun.close()


def _answer_unchanged(options: Options, roots: Roots, settings: Settings, first: First) -> int | None:
    """Answer as the last run did, and return the exit code; None where there is something to be planned.

    Questions are asked anew, at a terminal, and JSON tells more of a plan than was kept where that isn't quiet.
    """
    answer = first.rest.answer
    from .output.interaction import is_interactive

    asks = bool(answer.held) and not options.is_dry and is_interactive(options)
    if not first.is_unchanged or asks or (options.json and not answer.quiet):
        return None
    from reconcile.apply.outcome import Outcome
    from reconcile.engine.result_cache import plan_of

    from .output.report import exit_code, report

    plan = plan_of(answer, policy_of(options, settings), time.time_ns())
    report(options, roots, (), plan, None if options.is_dry else Outcome())
    return exit_code(plan, None, options)
