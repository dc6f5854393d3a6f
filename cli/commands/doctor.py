"""``reconcile doctor``: everything that is wrong on both sides, by kind, with the way out."""

from __future__ import annotations

import json
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from reconcile.inspect.doctor import examine
from reconcile.model.policy import Quarantine

from ..context import find_ids, find_roots, open_session, policy_of, settings_of
from ..options import common_options, options_of
from ..output.errors import ExitCode
from ..output.plan_text import again
from ..output.text import Style, clean
from .doctor_records import check_up, counted_by_severity, format_here
from .sync import run_pass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reconcile.engine.session import Session
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
def command(context: click.Context, repair: bool, quarantine: tuple[str, ...], mend: tuple[str, ...]) -> None:
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
        check_up(context, here)
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
        yield style(f"{ailment} ({counted_by_severity([ailment.severity] * len(each))})", color, bold=True)
        yield style(f"  {ailment.matters}", dim=True)
        for finding in each if verbose else each[:SHOWN]:
            yield f"  {clean(finding.place)}: {clean(finding.found)}"
            for command in finding.mend:
                yield style(f"    {clean(again(command, options.sides))}", dim=True)
        if len(each) > SHOWN and not verbose:
            yield f"  ... and {len(each) - SHOWN} more (-v shows all)"
        yield ""
    safe = sum(finding.repairable for finding in found)
    told = counted_by_severity([finding.ailment.severity for finding in found])
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
