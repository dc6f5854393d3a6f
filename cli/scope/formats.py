"""A project with several formats: a command does each in turn, or the one that has what is named.

``--format`` chooses one. Without it, sessions of Claude Code in the user's home may be beside another format. Nothing
here is loaded in a project with one format.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from reconcile.errors import ReconcileError

from ..arguments import Turn
from ..context import find_roots, open_session, settings_of, with_layout
from ..output.errors import FAILURES, ExitCode, first_code, report_failure
from ..output.text import Style, heading, show, show_nothing_to_do

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from click import UsageError

    from reconcile.engine.run_history import LastRun
    from reconcile.state.journal import Run

    from ..arguments import Options
    from .names import Named


class Ended(NamedTuple):
    """The end of a turn: its exit code, and an error of usage, which means that the format lacks what was asked."""

    turn: Turn
    code: int
    is_failure: bool = False
    misuse: UsageError | None = None


def run_in_turn(
    options: Options,
    formats: Sequence[str],
    run: Callable[[Options], int],
    *,
    prints_sides: bool = True,
    searches: bool = False,
    gathers: bool = False,
) -> int:
    """Run a command for each format, and return the exit code: that of `first_code`.

    An error in one format is printed, and the others are done all the same. A no at a question ends the command.
    ``prints_sides``: the command prints the two sides itself. ``searches``: a format without a result counts only if
    none has one. ``gathers``: it is a plain run; one line tells that there is nothing to do in all.

    Raises:
        click.UsageError: no format takes these options.
    """
    ended: list[Ended] = []
    try:
        for name in formats:
            turn = Turn(options, name)
            is_first = all(end.misuse is not None for end in ended)
            turn.gathers, turn.is_following = gathers, gathers and any(end.turn.has_reported for end in ended)
            _begin(turn, is_first=is_first or gathers, prints_sides=prints_sides)
            ended.append(_end_of(turn, run))
            if turn.is_cancelled or ended[-1].code == ExitCode.INTERRUPTED:
                break
    finally:
        if options.json and ended:
            from ..output.documents import print_documents  # here: a run with nothing to do prints text

            print_documents([end.turn for end in ended])
    counts = [end.turn.counts for end in ended if end.turn.has_nothing_to_do]
    if gathers and counts and not (options.json or options.quiet or any(end.turn.has_reported for end in ended)):
        idle = next((end.turn.idle for end in ended if end.turn.idle != options.idle), options.idle)
        show_nothing_to_do(counts, options.color, idle)
    misused = [end.misuse for end in ended if end.misuse is not None]
    if len(misused) == len(ended):
        raise misused[0]
    _save(options, [end.turn for end in ended])
    for end in ended:
        if end.misuse is not None:
            from ..output.interaction import print_message  # here: most commands suit all formats

            print_message(options, f"{end.turn.format} is left out: {end.misuse.format_message()}")
    return _code([end for end in ended if end.misuse is None], searches=searches)


def _begin(turn: Turn, *, is_first: bool, prints_sides: bool) -> None:
    """Print what separates the output of a format from that of the one before."""
    if turn.json or turn.quiet:
        return
    if not is_first:
        show([""])
    if not prints_sides:
        with suppress(ReconcileError, OSError):  # the command will meet it, too
            roots = find_roots(turn)
            layout = with_layout(turn, settings_of(roots)).layout.value
            show([heading(roots, layout, Style.choose(turn.color)), ""])


def _end_of(turn: Turn, run: Callable[[Options], int]) -> Ended:
    try:
        return Ended(turn, run(turn))
    except FAILURES as error:
        if not isinstance(error, (ReconcileError, OSError)):
            raise
        return Ended(
            turn, report_failure(error, as_json=turn.json, of=str(turn.format), sides=turn.sides), is_failure=True
        )
    except Exception as error:
        if not _is_misuse(error):
            raise
        return Ended(turn, ExitCode.USAGE, misuse=error)  # type: ignore[arg-type]


def _is_misuse(error: Exception) -> bool:
    """Tell whether an error is a `click.UsageError`; the parser is loaded only where it is needed."""
    click = sys.modules.get("click")
    return click is not None and isinstance(error, click.UsageError)


def _code(ended: Iterable[Ended], *, searches: bool) -> int:
    codes = {end.code for end in ended}
    if searches and ExitCode.DONE in codes:
        codes = {end.code for end in ended if end.is_failure} or {ExitCode.DONE}
    return first_code(codes)


def _save(options: Options, turns: Iterable[Turn]) -> None:
    """Save the plan of ``--out``: a file has the plan of one format."""
    plans = [(turn, text, changes) for turn in turns for text, changes in turn.plans]
    changing = [plan for plan in plans if plan[2]]
    if len(changing) > 1:
        from ..misuse import Misuse

        names = [str(turn.format) for turn, _, _ in changing]
        raise Misuse(f"--out {options.out}: a plan is of one format, and {_listed(names)} have changes", _choice(names))
    if plans:
        from ..run import write_plan

        _, text, changes = (changing or plans)[0]
        write_plan(options, text, changes=changes)


def _listed(names: Sequence[str]) -> str:
    return " and ".join(names)


def _choice(names: Iterable[str]) -> str:
    return f"choose one: {' or '.join(f'--format {name}' for name in names)}"


def first_alone(options: Options, formats: Sequence[str]) -> Options:
    """Return the options with the first format, for what only one can have; a message names the others."""
    from ..output.interaction import print_message

    first, *others = formats
    more = " or ".join(f"--format {name}" for name in others)
    print_message(options, f"this is about {first}; for {_listed(others)}: {more}")
    return options.in_format(first)


def format_of(options: Options, formats: Sequence[str], named: Sequence[Named]) -> Options:
    """Return the options with the format that knows all names; with the first if none does, whose error is printed.

    Raises:
        Misuse: several know them, or one knows some and another the rest.
    """
    from ..misuse import Misuse  # here, as below: a run of all formats names nothing
    from .names import knows_all

    def knowing(*names: Named) -> list[str]:
        return [name for name in formats if knows_all(options.in_format(name), names)]

    words = " and ".join(repr(text) for _, text in named)
    if len(found := knowing(*named)) > 1:
        raise Misuse(f"{words} can be of {_listed(found)}", _choice(found))
    if not found and len(named) > 1 and all(map(knowing, named)):
        raise Misuse(f"{words} are not of one format", "give the command for each format alone")
    return options.in_format((found or formats)[0])


def with_newest(options: Options, formats: Sequence[str], *, redoes: bool) -> Options:
    """Return the options with the format of the run that `undo` or `redo` reverts without the name of one.

    With the first format if there is none, whose error is printed. As with one format, a second undo in a row goes
    further back, and needs a yes.

    Raises:
        OlderRunError: nobody confirms it, and another format has a newer run in the way.
    """
    from reconcile.engine.run_history import NoRunError, OlderRunError, last_run, newest_run, newest_undo

    from ..output.interaction import may_reach_back, print_message

    chosen: dict[str, Run] = {}
    last: dict[str, LastRun] = {}
    for name in formats:
        with suppress(ReconcileError, OSError):
            roots = find_roots(options.in_format(name))
            with open_session(roots, settings_of(roots), readonly=True) as session:
                state, project = session.state, session.project
                if (newest := last_run(state, project)) is not None:
                    last[name] = newest
                with suppress(NoRunError):
                    chosen[name] = (newest_undo if redoes else newest_run)(state, project).run
    if not chosen:
        return options.in_format(formats[0])
    name = max(chosen, key=lambda key: chosen[key].started_ns)
    run, ended = chosen[name], max(last, key=lambda key: last[key].run.started_ns)
    newest = last[ended]
    is_in_the_way = redoes or (newest.reverts is not None and newest.reverts.started_ns > run.started_ns)
    if ended != name and newest.run.started_ns > run.started_ns and is_in_the_way and not may_reach_back(options):
        what = "no undo" if newest.reverts is None else f"an undo of {newest.reverts.id}"
        verb = "redo" if redoes else "undo"
        way = f"reconcile {verb} {run.id} --format {name}, or reconcile {verb} --yes"
        raise OlderRunError(
            f"the last run, {newest.run.id} of {ended}, is {what}",
            f"{verb} the run of {name} before it: {way}\nlist the runs: reconcile log",
        )
    print_message(options, f"the newest {'undo' if redoes else 'run'} is of {name}")
    return options.in_format(name)
