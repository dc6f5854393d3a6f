"""``reconcile review``: walks through a plan, takes decisions, and carries the plan out on request."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import click

from reconcile.engine.engine import Engine
from reconcile.fs.locks import LockedError
from reconcile.model.commands import install_command

from ..command import PLANS, Command, Several
from ..context import open_session, policy_of, settings_of
from ..options import RUNS, command_line, options_of
from ..output.errors import ExitCode
from ..output.interaction import UnansweredError, cancel, is_interactive, print_message
from ..output.plan_text import exit_code, report
from ..output.text import short_path
from ..review.reading import Reader
from ..review.subjects import subjects_of
from ..review.walk import Walk, summary_text
from ..run import announce_new_store, opened, save_plan, selection
from .apply import carry_out, check_ids, read_saved

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconcile.engine.session import Session
    from reconcile.model.plan import Plan
    from reconcile.model.policy import Policy

    from ..arguments import Options
    from ..review.decisions import Decisions
    from ..review.walk import Result

TEXTUAL = "textual>=8,<9"
"""The requirement of the extra `review`."""
_SHAPING = frozenset({"only", "below", "prefer", "allow_bulk_removal"})
"""The options that shape a new plan."""
_OF_OTHERS = {"--recover": frozenset({"allow_bulk_removal"}), "--undo": _SHAPING - {"prefer"}}
"""Those of them that `recover` and `undo` take."""


@click.command(
    "review",
    cls=Command,
    names={"undo": "runs", "run": "runs"},
    several=Several.FIRST,
    accepts=(*PLANS, "only", "below", "prefer", "allow_bulk_removal"),
    examples=(
        ("reconcile review", "Walk through the plan of a run, decide conflicts, and apply it."),
        ("reconcile review --plain", "The same as lines and questions, also for a screen reader."),
        ("reconcile review plan.json", "Walk through a saved plan, leave conversations out, and apply the rest."),
        ("reconcile review --undo", "The same with the undo of the last run."),
    ),
)
@click.argument("file", required=False, type=click.Path())
@click.option("--recover", "recovers", is_flag=True, help="Walk through what `recover` would restore.")
@click.option("--undo", metavar="[RUN]", is_flag=False, flag_value="", help="The undo of RUN, or of the last run.")
@click.option("--run", metavar="RUN", help="A run of the log, only to look at.", shell_complete=RUNS)
@click.option("--plain", is_flag=True, help="Lines and questions, no full screen.")
@click.pass_context
def review(
    context: click.Context, file: str | None, recovers: bool, undo: str | None, run: str | None, plain: bool
) -> None:
    """Walk through a plan, decide its conflicts, and apply it.

    Shows all conversations of the plan as a tree, and both versions of the chosen one. Nothing changes before the key
    `a`, which shows what would be done and asks once. It leaves an undecided conflict as it is: the next plain run
    takes the newer side, unless you hold it. The run is one like any other: `reconcile undo` undoes it.

    FILE is a plan that --out has saved. Of such a plan, an undo and `recover`, you can leave conversations out.

    The full screen needs Textual. Without it, the same is asked line by line, as with --plain.
    """
    options = options_of(context)
    if sum((file is not None, recovers, undo is not None, run is not None)) > 1:
        raise click.UsageError("choose one: FILE, --recover, --undo or --run")
    if (file is not None or run is not None) and (shaping := _SHAPING & options.given):
        name = min(shaping).replace("_", "-")
        raise click.UsageError(f"--{name}: the plan of {'FILE' if file is not None else '--run'} is made already")
    other = "--recover" if recovers else None if undo is None else "--undo"
    if other is not None and (shaping := (_SHAPING - _OF_OTHERS[other]) & options.given):
        raise click.UsageError(f"--{min(shaping)}: {other} doesn't take it; the key k leaves conversations out")
    if run is not None and options.out is not None:
        raise click.UsageError("--out: --run only shows what a run has done")
    plain = _is_plain(options, plain=plain)
    if recovers:
        from .recover import restore_lost

        restore_lost(context, walked=partial(_walked_recovery, options, plain=plain))
    saved = None if file is None else read_saved(options, file)[0]
    with opened(options) as engine:
        session, roots = engine.session, engine.session.roots
        walk = _walk_of(options, engine, saved, file, undo, run)
        if walk.plan.actions:
            announce_new_store(options, roots, "a run creates")
        if not walk.subjects:
            options.dry_run = True  # nothing is carried out
            report(options, roots, session.notices, walk.plan, None)
            context.exit(exit_code(walk.plan, None, options))
        result = _walked(options, walk, plain=plain)
        notices = tuple(session.notices)
    if not walk.apply_words:
        context.exit(ExitCode.DONE)
    decided = result.plan
    if decided is None:
        cancel(options)
    if options.is_dry:
        save_plan(options, roots, decided)
        report(options, roots, notices, decided, None)
        context.exit(exit_code(decided, None, options))
    settings = settings_of(roots)
    with open_session(roots, settings, readonly=False) as session:
        context.exit(carry_out(options, session, decided, settings, command_line(context), result.titles))


def _walk_of(
    options: Options, engine: Engine, saved: Plan | None, file: str | None, undo: str | None, run: str | None
) -> Walk:
    """Return the walk that the options choose."""
    if saved is None and undo is None and run is None:
        return walk_of(options, engine)
    from ..review.sources import walk_of_run, walk_of_saved, walk_of_undo

    policy = policy_of(options, settings_of(engine.session.roots), selection(engine, options))
    if undo is not None:
        return walk_of_undo(engine, policy, undo, _apply_words(options))
    if saved is None:
        return walk_of_run(engine, policy, run or "")
    check_ids(saved, engine.session.format, file or "")
    return walk_of_saved(engine, saved, f"reconcile review {file}", _apply_words(options))


def _walked_recovery(
    options: Options, session: Session, plan: Plan, planned: Callable[[tuple[str, ...]], Plan], *, plain: bool
) -> Plan:
    """Walk through what `recover` offers, and return the plan of the rest; quitting ends the command."""
    from ..review.sources import walk_of_recovery

    engine = Engine(session)
    engine.refresh()
    result = _walked(options, walk_of_recovery(engine, plan, planned, _apply_words(options)), plain=plain)
    return cancel(options) if result.plan is None else result.plan


def _apply_words(options: Options) -> str:
    return "show the plan" if options.is_dry else "apply"


def _is_plain(options: Options, *, plain: bool) -> bool:
    """Choose the view by the option, the terminal and what is installed.

    Raises:
        UnansweredError: there is no terminal.
    """
    if not plain and os.environ.get("TERM", "dumb") != "dumb":
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise UnansweredError(
                "review needs a terminal", "`reconcile --dry-run` shows the plan, `reconcile resolve` decides"
            )
        try:
            import textual  # noqa: F401 - is it there?
        except ImportError:
            command = install_command(TEXTUAL, sys.prefix, sys.executable)
            print_message(options, f"no full screen, as Textual is not installed; install it: {command}")
        else:
            return False
    if not is_interactive(options):
        raise UnansweredError(
            "review --plain needs a terminal for its questions, without --json",
            "`reconcile --dry-run` shows the plan, `reconcile resolve` decides",
        )
    return True


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

    def confirmed(plan: Plan) -> None:
        if not options.is_dry:
            with suppress(LockedError), open_session(roots, settings_of(roots), readonly=False) as writing:
                writing.record_decisions(plan, "reconcile review")

    return Walk(
        plan=plan,
        subjects=subjects,
        heading=f"reconcile review  {short_path(roots.project)}",
        read=reader.read,
        plan_for=plan_for,
        summary=partial(summary_text, roots.noun),
        opened=reader.open_with,
        apply_words=_apply_words(options),
        confirmed=confirmed,
    )


def _walked(options: Options, walk: Walk, *, plain: bool) -> Result:
    if plain:
        from ..review.plain import walk_in_lines

        return walk_in_lines(options, walk)
    from ..review.app import walk_in_full_screen

    return walk_in_full_screen(walk, options)
