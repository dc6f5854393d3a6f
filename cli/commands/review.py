"""``reconcile review``: walks through a plan, takes decisions, and carries the plan out on request."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING

import click

from reconcile.errors import ReconcileError

from ..command import PLANS, Command
from ..context import open_session, policy_of, settings_of
from ..options import command_line, options_of
from ..output.errors import ExitCode
from ..output.interaction import UnansweredError, cancel, is_interactive
from ..output.plan_text import exit_code, report
from ..output.summary import summary
from ..output.text import Style, short_path
from ..review.reading import Reader
from ..review.subjects import subjects_of
from ..review.walk import Walk
from ..run import announce_new_store, opened, save_plan, selection
from .apply import carry_out

if TYPE_CHECKING:
    from reconcile.engine.engine import Engine
    from reconcile.model.plan import Plan
    from reconcile.model.policy import Policy

    from ..arguments import Options
    from ..review.decisions import Decisions
    from ..review.walk import Result

_INSTALL = (
    "pipx install --force 'reconcile-fs[review]', uv tool install 'reconcile-fs[review]', or "
    "pip install 'reconcile-fs[review]'; without it: reconcile review --plain"
)


class NoTextualError(ReconcileError):
    """The library of the full-screen view is not installed."""

    exit_code = ExitCode.USAGE


@click.command(
    "review",
    cls=Command,
    accepts=(*PLANS, "only", "below", "prefer", "allow_bulk_removal"),
    examples=(
        ("reconcile review", "Walk through the plan of a run, decide conflicts, and apply it."),
        ("reconcile review --plain", "The same as lines and questions, also for a screen reader."),
    ),
)
@click.option("--plain", is_flag=True, help="Lines and questions, no full screen.")
@click.pass_context
def review(context: click.Context, plain: bool) -> None:
    """Walk through a plan, decide its conflicts, and apply it.

    Shows all conversations of the plan as a tree, and both versions of the chosen one. Nothing changes before the key
    `a`, which shows what would be done and asks once. It leaves an undecided conflict as it is: the next plain run
    takes the newer side, unless you hold it. The run is one like any other: `reconcile undo` undoes it.

    Needs the extra `review` (Textual), except with --plain.
    """
    options = options_of(context)
    plain = _is_plain(options, plain=plain)
    with opened(options) as engine:
        session, roots = engine.session, engine.session.roots
        announce_new_store(options, roots, "a run creates")
        walk = walk_of(options, engine)
        if not walk.subjects:
            report(options, roots, session.notices, walk.plan, None)
            context.exit(exit_code(walk.plan, None, options))
        result = _walked(options, walk, plain=plain)
        notices = tuple(session.notices)
    decided = result.plan
    if decided is None:
        cancel(options)
    if options.is_dry:
        save_plan(options, roots, decided)
        report(options, roots, notices, decided, None)
        context.exit(exit_code(decided, None, options))
    settings = settings_of(roots)
    with open_session(roots, settings, readonly=False) as session:
        context.exit(carry_out(options, session, decided, settings, command_line(context)))


def _is_plain(options: Options, *, plain: bool) -> bool:
    """Choose the view by the option and the terminal.

    Raises:
        UnansweredError: there is no terminal.
        NoTextualError: the full-screen view is not installed.
    """
    if plain or os.environ.get("TERM", "dumb") == "dumb":
        if not is_interactive(options):
            raise UnansweredError(
                "review --plain needs a terminal for its questions, without --json",
                "`reconcile --dry-run` shows the plan, `reconcile resolve` decides",
            )
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UnansweredError(
            "review needs a terminal", "`reconcile --dry-run` shows the plan, `reconcile resolve` decides"
        )
    try:
        import textual  # noqa: F401 - is it there?
    except ImportError:
        raise NoTextualError("review: the full-screen view needs Textual, which is not installed", _INSTALL) from None
    return False


def _planned(engine: Engine, policy: Policy) -> Plan:
    also = engine.index.spoken_of if engine.index is not None else ()
    return engine.completed(engine.plan(policy, also=also))


def walk_of(options: Options, engine: Engine) -> Walk:
    """Plan a run, and return the walk through its plan."""
    session = engine.session
    policy = policy_of(options, settings_of(session.roots), selection(engine, options))
    plan = _planned(engine, session.surroundings(policy))
    subjects = subjects_of(plan)
    reader = Reader(engine, plan.policy)

    def plan_for(decisions: Decisions) -> Plan:
        return _planned(engine, decisions.policy(plan, subjects))

    roots = session.roots
    return Walk(
        plan=plan,
        subjects=subjects,
        heading=f"reconcile review  {short_path(roots.project)}",
        read=reader.read,
        plan_for=plan_for,
        summary=partial(_summary, roots.noun),
        opened=reader.open_with,
        apply_words="show the plan" if options.is_dry else "apply",
    )


def _summary(noun: str, plan: Plan) -> str:
    return " ".join(summary(plan, Style(colored=False), noun=noun))


def _walked(options: Options, walk: Walk, *, plain: bool) -> Result:
    if plain:
        from ..review.plain import walk_in_lines

        return walk_in_lines(options, walk)
    from ..review.app import walk_in_full_screen

    return walk_in_full_screen(walk, options)
