"""``reconcile doctor``: everything that is wrong on both sides, by kind, with the way out.

The formats with derived data have checks of their own (`reconcile.inspect.checks`).
"""

from __future__ import annotations

import json
import os
import shlex
import time
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, NoReturn

import click
from msgspec import to_builtins
from msgspec.structs import replace

from reconcile.inspect.checks import CHECKERS, is_damaged, repair_sources
from reconcile.inspect.doctor import examine
from reconcile.model.policy import Quarantine

from ..context import find_ids, find_roots, format_here, open_session, policy_of, settings_of
from ..options import common_options, options_of
from ..output.errors import ExitCode
from ..output.plan_text import with_sides
from ..output.text import Style, clean
from .sync import run_pass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reconcile.engine.session import Session
    from reconcile.inspect.checks import CheckFinding
    from reconcile.model.baseline import Look
    from reconcile.model.policy import Policy
    from reconcile.planning.diagnosis import Ailment, Finding

    from ..arguments import Options

SHOWN = 20


@click.command(name="doctor")
@common_options
@click.option("--repair", is_flag=True, help="Do what a plain run mends; everything else is only named.")
@click.option(
    "--quarantine", metavar="ID", multiple=True, help="Move what nobody can read of it into .trash/, with a note."
)
@click.option("--mend", metavar="FINDING", multiple=True, help="Do also what is mended on request only, by its name.")
@click.pass_context
def doctor(context: click.Context, repair: bool, quarantine: tuple[str, ...], mend: tuple[str, ...]) -> None:
    """Say what is wrong on both sides: where, why it matters, and the command that mends it.

    Exit 4 with errors or warnings; notes are normal. Nothing is written without --repair, --mend or --quarantine; all
    are plans like any other, which can be undone.
    """
    if repair + bool(quarantine) + bool(mend) > 1:
        raise click.UsageError("choose one: --repair, --mend or --quarantine")
    if mend:
        run_pass(context, partial(_mending, frozenset(mend)))
    if repair:
        run_pass(context)
    if not quarantine and (here := format_here(options_of(context))) is not None:
        _check_up(context, here)
    if quarantine:

        def adjust(policy: Policy, session: Session, look: Look) -> Policy:
            return replace(policy, request=Quarantine(tuple(dict.fromkeys(find_ids(session, look, quarantine)))))

        run_pass(context, adjust)
    options = options_of(context)
    roots = find_roots(options)
    settings = settings_of(roots)
    with open_session(roots, settings, readonly=True) as session:
        look = session.look()
        found = examine(session, look, policy_of(options, settings, {"only": frozenset(), "below": frozenset()}))
    if options.json:
        click.echo(
            json.dumps({"format": "reconcile.doctor/1", "findings": [_as_json(each) for each in found]}, indent=2)
        )
    else:
        for line in _lines(found, options, Style.choose(options.color)):
            click.echo(line)
    context.exit(ExitCode.HELD if any(each.ailment.severity != "note" for each in found) else ExitCode.DONE)


def _mending(wanted: frozenset[str], policy: Policy, session: Session, look: Look) -> Policy:
    """Ask for what is mended on request only, if there is all of that."""
    places = session.format.places
    there = {each.id for each in places.mend(look.workspace.found, {})} if places is not None else set()
    if unknown := sorted(wanted - there):
        raise click.UsageError(
            f"--mend: found nothing called {unknown[0]} to be mended; `reconcile doctor` says what there is"
        )
    return replace(policy, mend=wanted)


def _lines(found: tuple[Finding, ...], options: Options, style: Style) -> Iterator[str]:
    verbose = options.verbose
    for ailment, group in groupby(found, key=_kind):
        each = list(group)
        color = None if ailment.severity == "note" else "yellow"
        yield style(f"{ailment} ({_counted_by_severity([ailment.severity] * len(each))})", color, bold=True)
        yield style(f"  {ailment.matters}", dim=True)
        for finding in each if verbose else each[:SHOWN]:
            yield f"  {clean(finding.place)}: {clean(finding.found)}"
            for command in finding.mend:
                yield style(f"    {clean(with_sides(command, options.sides))}", dim=True)
        if len(each) > SHOWN and not verbose:
            yield f"  ... and {len(each) - SHOWN} more (-v shows all)"
        yield ""
    safe = sum(finding.repairable for finding in found)
    told = _counted_by_severity([finding.ailment.severity for finding in found])
    if all(finding.ailment.severity == "note" for finding in found):
        yield style(f"Nothing is wrong; {told}." if told else "Nothing is wrong.", "green", bold=True)
    else:
        verb = "is" if safe == 1 else "are"
        tail = f"; {safe} of them {verb} mended by `reconcile doctor --repair`" if safe else ""
        yield style(f"{told}{tail}.", "yellow", bold=True)


def _kind(finding: Finding) -> Ailment:
    return finding.ailment


def _as_json(finding: Finding) -> dict[str, object]:
    return {
        "kind": finding.ailment.value,
        "severity": finding.ailment.severity,
        "place": finding.place,
        "found": finding.found,
        "conversation": finding.conversation,
        "matters": finding.ailment.matters,
        "mend": list(finding.mend),
        "repairable": finding.repairable,
    }


def _check_up(context: click.Context, name: str) -> NoReturn:
    """Print what is wrong, and end the command."""
    options = options_of(context)
    given = [f"--{option}" for option in ("layout", "only", "below") if getattr(options, option)]
    if given:
        raise click.UsageError(f"doctor looks at the whole of what {name} keeps: leave out {', '.join(given)}")
    found = _with_sources(CHECKERS[name](options.workspace or os.getcwd(), time.time_ns()), options)
    if options.json:
        click.echo(
            json.dumps({"format": "reconcile.doctor/1", "findings": [_check_as_json(each) for each in found]}, indent=2)
        )
    else:
        for line in _check_lines(found, Style.choose(options.color), None if options.verbose else SHOWN):
            click.echo(line)
    context.exit(ExitCode.HELD if any(each.severity != "note" for each in found) else ExitCode.DONE)


def _with_sources(found: tuple[CheckFinding, ...], options: Options) -> tuple[CheckFinding, ...]:
    """Put a whole version of a damaged record, where there is one, before what is made of its remains."""
    places = {each.place for each in found if each.severity == "error"}
    if not places:
        return found
    roots = find_roots(options)
    with open_session(roots, settings_of(roots), readonly=True) as session:
        better = {place: repair_sources(session, place) for place in places if is_damaged(session, place)}
    return tuple(replace(each, mend=(*better.get(each.place, ()), *each.mend)) for each in found)


def _check_lines(found: tuple[CheckFinding, ...], style: Style, shown: int | None) -> Iterator[str]:
    for kind, group in groupby(found, key=lambda each: each.kind):
        every = list(group)
        yield style(f"{kind} ({len(every)})", "yellow", bold=True)
        yield style(f"  {every[0].matters}", dim=True)
        for mend, same in groupby(every[:shown], key=lambda each: each.mend):
            alike = list(same)
            for each in alike:
                yield f"  {each.severity}: {clean(each.place)}: {clean(each.found)}"
            for line in mend:
                yield style(f"    {clean(line)}", dim=True)
            for each in alike:
                if each.on_request:
                    yield style(f"    reconcile doctor --mend {shlex.quote(clean(each.id))}", dim=True)
        if shown is not None and len(every) > shown:
            yield f"  ... and {len(every) - shown} more (-v shows all)"
        yield ""
    told = _counted_by_severity([each.severity for each in found])
    if any(each.severity != "note" for each in found):
        safe = sum(each.repairable for each in found)
        tail = f"; {safe} of them {'is' if safe == 1 else 'are'} mended by any run of reconcile" if safe else ""
        yield style(f"{told}{tail}.", "yellow", bold=True)
    else:
        yield style(f"Nothing is wrong; {told}." if told else "Nothing is wrong.", "green", bold=True)


def _counted_by_severity(found: Sequence[str]) -> str:
    """Return how many findings there are of each severity, the worst first."""
    counts = {severity: found.count(severity) for severity in ("error", "warning", "note")}
    return ", ".join(f"{count} {severity}{'' if count == 1 else 's'}" for severity, count in counts.items() if count)


def _check_as_json(each: CheckFinding) -> dict[str, object]:
    return {**to_builtins(each), "mend": list(each.mend), "conversation": None}
