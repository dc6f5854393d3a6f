"""``reconcile doctor``: prints the findings on both sides by kind, each with the command that repairs it.

The formats with derived data have checks of their own (`reconcile.inspect.doctor.CHECKERS`).
"""

from __future__ import annotations

import os
import time
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, NoReturn

import click
from msgspec import to_builtins
from msgspec.structs import replace

from reconcile.adapters.locate import MARKS
from reconcile.adapters.roots import LocateError
from reconcile.inspect.access import obstacles_of
from reconcile.inspect.checked import checked, machine_of
from reconcile.inspect.doctor import (
    CHECKERS,
    CheckFinding,
    examine,
    incomplete_versions,
    is_damaged,
    repair_sources,
)
from reconcile.model.commands import typed
from reconcile.model.policy import QuarantineRequest
from reconcile.model.snapshot import Side
from reconcile.planning.diagnosis import Ailment, Finding

from ..command import PLANS, Command
from ..context import find_ids, find_roots, fixed_format, is_lost, open_session, policy_of, settings_of
from ..misuse import Misuse
from ..options import IDS, command_line, options_of
from ..output.documents import print_document
from ..output.errors import ExitCode
from ..output.plan_text import with_sides
from ..output.screen import fit, show_paged
from ..output.text import Style, clean, message_text, short_path, show, with_directory
from ..run import opened, run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reconcile.engine.engine import Engine
    from reconcile.inspect.access import Obstacle
    from reconcile.inspect.checked import Checked
    from reconcile.model.policy import Policy

    from ..arguments import Options
    from ..run import Adjust

SHOWN = 20
_RUN = (*PLANS, "only", "below", "prefer", "allow_bulk_removal", "yes")
"""The shared options of the runs that repair something."""


@click.command(
    "doctor",
    cls=Command,
    names={"quarantine": "ids"},
    accepts=("json", "verbose"),
    accepts_with={"repair": _RUN, "quarantine": _RUN, "mend": _RUN},
    examples=(
        ("reconcile doctor", "Print the problems of both sides."),
        ("reconcile doctor --repair --dry-run", "Show what a repair would do."),
    ),
)
@click.option("--repair", is_flag=True, help="Fix what a normal run would fix; report the rest.")
@click.option(
    "--quarantine", metavar="ID", shell_complete=IDS, multiple=True, help="Move unreadable files of ID to .trash/."
)
@click.option(
    "--mend", metavar="FINDING", multiple=True, help="Also apply this optional fix, by the name that doctor prints."
)
@click.option("--secrets", is_flag=True, help="Look for keys and passwords in the workspace instead.")
@click.pass_context
def doctor(
    context: click.Context, repair: bool, quarantine: tuple[str, ...], mend: tuple[str, ...], secrets: bool
) -> None:
    """Check both sides for problems and suggest fixes.

    Prints first what it checked, for a bug report. Then prints each problem with its place, the reason why it matters,
    and the command that fixes it. With --secrets, reads everything in the workspace. Exits with 4 if there are errors
    or warnings; notes are normal. Only --repair, --mend and --quarantine write, and `reconcile undo` undoes them.
    """
    if repair + bool(quarantine) + bool(mend) + secrets > 1:
        raise click.UsageError("choose one: --repair, --mend, --quarantine or --secrets")
    if secrets:
        _report_secrets(context)
    if mend:
        _run(context, partial(_request_repairs, frozenset(mend)))
    if repair:
        _run(context)
    options = options_of(context)
    here = fixed_format(options)
    lost = here is not None and is_lost(options, here)
    if not quarantine and here is not None and not lost:
        _run_checks(context, here)
    if quarantine:

        def adjust(policy: Policy, engine: Engine) -> Policy:
            chosen = context.params["quarantine"] = tuple(dict.fromkeys(find_ids(engine, quarantine)))
            return replace(policy, request=QuarantineRequest(chosen))

        _run(context, adjust)
    try:
        find_roots(options)
    except LocateError:
        if not options.json:  # an error is all that it prints
            _print_machine(Style.choose(options.color))
        raise
    with opened(options) as engine:
        policy = policy_of(options, settings_of(engine.session.roots))
        findings = _with_remotes(examine(engine, policy), engine)
        seen = _checked(engine, policy)
        if not options.json:
            roots = engine.session.roots
            findings = tuple(replace(each, place=with_directory(each.place, roots)) for each in findings)
    if lost and here is not None:
        marks = f"none of {', '.join(MARKS[here])} is there"
        findings = (Finding(Ailment.UNMARKED, seen.workspace, marks, mend=("reconcile recover",)), *findings)
    _report(context, seen, findings)


def _with_remotes(findings: tuple[Finding, ...], engine: Engine) -> tuple[Finding, ...]:
    """Name the sync for what was lost with a store, and what a remote has."""
    if not any(each.ailment is Ailment.LOST for each in findings):
        return findings
    from ..lost_stores import lost_here  # here: few stores are lost

    lost = {each.conversation: each for each in lost_here(engine.session, engine.known.present())}
    return tuple(
        replace(each, found=known.left, mend=(known.command,) if known.command else ())
        if each.ailment is Ailment.LOST and (known := lost.get(str(each.conversation))) is not None
        else each
        for each in findings
    )


def _report_secrets(context: click.Context) -> NoReturn:
    """Print the secrets in the workspace, and end the command."""
    from reconcile.inspect.published_secrets import published_secrets  # here: most checks look for none

    options = options_of(context)
    with opened(options) as engine:
        findings = published_secrets(engine)
        seen = _checked(engine, policy_of(options, settings_of(engine.session.roots)))
    _report(context, seen, findings, "No secrets found")


def _checked(engine: Engine, policy: Policy) -> Checked:
    counts = tuple(len(engine.known.sides[side].conversations()) for side in (Side.WORKSPACE, Side.STORE))
    return checked(engine.session, policy.layout.value, counts, os.environ)


def _report(
    context: click.Context, seen: Checked, findings: tuple[Finding, ...], nothing: str = "No problems found"
) -> NoReturn:
    """Print findings, and end the command with the exit code that they need."""
    options = options_of(context)
    if options.json:
        _print_json(options, seen, [_as_json(finding, seen.format) for finding in findings])
    else:
        style = Style.choose(options.color)
        _print_checked(seen, style)
        show_paged(fit(_lines(findings, options, style, nothing, seen.format), style), style)
    context.exit(ExitCode.HELD if any(finding.ailment.severity != "note" for finding in findings) else ExitCode.DONE)


def _print_json(options: Options, seen: Checked, findings: list[dict[str, object]]) -> None:
    document = {"format": "reconcile.doctor/1", "checked": to_builtins(seen), "findings": findings}
    print_document(options, document)


def _print_machine(style: Style) -> None:
    """Print what can be checked without a project."""
    seen = machine_of(os.environ)
    config = f"{short_path(seen.config, None)}{'' if seen.config_exists else ': absent'}"
    lines = {
        "reconcile": seen.version,
        "python": f"{seen.python}, SQLite {seen.sqlite}",
        "system": seen.system,
        "settings": config,
    }
    show([style(f"{name:9} {text}", dim=True) for name, text in lines.items()] + [""])


def _print_checked(seen: Checked, style: Style) -> None:
    """Print what was checked, fit for a bug report."""

    def counted(path: str, *counts: str) -> str:
        after = f": {', '.join(counts)}" if counts else ""
        return short_path(path, None if style.columns is None else style.columns - 10, after) + after

    def number(count: int | None, noun: str) -> list[str]:
        return [] if count is None else [f"{count} {noun}{'' if count == 1 else 's'}"]

    lines = {
        "reconcile": seen.version,
        "python": f"{seen.python}, SQLite {seen.sqlite}",
        "system": seen.system,
        "format": seen.format + (f" ({seen.layout})" if seen.layout else ""),
        "workspace": counted(seen.workspace, *number(seen.in_workspace, "conversation")),
        "store": counted(seen.store, *number(seen.in_store, "conversation")),
        "state": counted(seen.state, *number(seen.runs, "run"), *number(seen.checkouts, "checkout")),
        "settings": counted(seen.config, *([] if seen.config_exists else ["absent"])),
        "locks": f"{seen.locked} held by other processes",
    }
    show([style(f"{name:9} {text}", dim=True) for name, text in lines.items()] + [""])


def _run(context: click.Context, adjust: Adjust | None = None) -> NoReturn:
    context.exit(run(options_of(context), partial(command_line, context), adjust))


def _request_repairs(wanted: frozenset[str], policy: Policy, engine: Engine) -> Policy:
    """Add the named repairs to the policy. An unknown name is a `click.UsageError`."""
    places = engine.session.format.places
    known = (
        {repair.id for repair in places.mend(engine.world.workspace.derived_inputs, {})}
        if places is not None
        else set()
    )
    if unknown := sorted(wanted - known):
        raise Misuse(f"--mend: no fix has the name {unknown[0]!r}", "list them: reconcile doctor")
    return replace(policy, mend=wanted)


def _lines(findings: tuple[Finding, ...], options: Options, style: Style, nothing: str, fmt: str) -> Iterator[str]:
    verbose = options.verbose
    for ailment, group in groupby(findings, key=_kind):
        same_kind = list(group)
        color = None if ailment.severity == "note" else "yellow"
        yield style(f"{ailment} ({_severity_counts([ailment.severity] * len(same_kind))})", color, bold=True)
        yield style(f"  {ailment.matters_in(fmt)}", dim=True)
        for finding in same_kind if verbose else same_kind[:SHOWN]:
            yield f"  {message_text(finding.place)}: {message_text(finding.found)}"
            for command in finding.mend:
                yield style(f"    {clean(with_sides(command, options.sides))}", dim=True)
        if len(same_kind) > SHOWN and not verbose:
            yield f"  ... and {len(same_kind) - SHOWN} more (-v shows all)"
        yield ""
    safe = sum(finding.repairable for finding in findings)
    counts = _severity_counts([finding.ailment.severity for finding in findings])
    if all(finding.ailment.severity == "note" for finding in findings):
        yield style(f"{nothing}; {counts}." if counts else f"{nothing}.", "green", bold=True)
    else:
        verb = "is" if safe == 1 else "are"
        tail = f"; {safe} of them {verb} fixed by `reconcile doctor --repair`" if safe else ""
        yield style(f"{counts}{tail}.", "yellow", bold=True)


def _kind(finding: Finding) -> Ailment:
    return finding.ailment


def _as_json(finding: Finding, fmt: str) -> dict[str, object]:
    return {
        "kind": finding.ailment.value,
        "severity": finding.ailment.severity,
        "place": finding.place,
        "found": finding.found,
        "conversation": finding.conversation,
        "matters": finding.ailment.matters_in(fmt),
        "mend": list(finding.mend),
        "repairable": finding.repairable,
    }


def _run_checks(context: click.Context, name: str) -> NoReturn:
    """Print the findings of a format with derived data, and end the command."""
    options = options_of(context)
    if options.layout:
        raise click.UsageError(f"doctor checks everything of a {name} workspace: leave out --layout")
    findings = _with_sources(CHECKERS[name](options.workspace or os.getcwd(), time.time_ns()), options)
    roots = find_roots(options)
    with open_session(roots, settings_of(roots), readonly=True) as session:
        found = [*(_unwritable(obstacle) for obstacle in obstacles_of(session))]
        found += map(_as_check, incomplete_versions(session))
        findings = (*found, *findings)
        seen = checked(session, None, (None, None), os.environ)
    if options.json:
        _print_json(options, seen, [_check_as_json(finding) for finding in findings])
    else:
        style = Style.choose(options.color)
        _print_checked(seen, style)
        show_paged(fit(_check_lines(findings, style, None if options.verbose else SHOWN, options.sides), style), style)
    context.exit(ExitCode.HELD if any(finding.severity != "note" for finding in findings) else ExitCode.DONE)


def _unwritable(obstacle: Obstacle) -> CheckFinding:
    return _as_check(Finding(Ailment.UNWRITABLE, obstacle.path, obstacle.found, mend=obstacle.mend))


def _as_check(finding: Finding) -> CheckFinding:
    """Return a finding of no conversation as one of a format with checks of its own."""
    kind, place = finding.ailment, finding.place
    fixed = {"repairable": False, "on_request": False}
    return CheckFinding(
        f"{kind}:{place}", kind.value, kind.severity, place, finding.found, kind.matters, finding.mend, **fixed
    )


def _with_sources(findings: tuple[CheckFinding, ...], options: Options) -> tuple[CheckFinding, ...]:
    """Put the commands that take a whole version of a damaged record first, before those that salvage its remains."""
    places = {finding.place for finding in findings if finding.severity == "error"}
    if not places:
        return findings
    roots = find_roots(options)
    with open_session(roots, settings_of(roots), readonly=True) as session:
        sources = {place: repair_sources(session, place) for place in places if is_damaged(session, place)}
    return tuple(replace(finding, mend=(*sources.get(finding.place, ()), *finding.mend)) for finding in findings)


def _check_lines(findings: tuple[CheckFinding, ...], style: Style, shown: int | None, sides: str) -> Iterator[str]:
    for kind, group in groupby(findings, key=lambda finding: finding.kind):
        same_kind = list(group)
        yield style(f"{kind} ({len(same_kind)})", "yellow", bold=True)
        yield style(f"  {same_kind[0].matters}", dim=True)
        for mend, subgroup in groupby(same_kind[:shown], key=lambda finding: finding.mend):
            same_repair = list(subgroup)
            for finding in same_repair:
                yield f"  {finding.severity}: {message_text(finding.place)}: {message_text(finding.found)}"
            for line in mend:
                yield style(f"    {clean(with_sides(line, sides))}", dim=True)
            for finding in same_repair:
                if finding.on_request:
                    yield style(f"    reconcile doctor --mend {typed(clean(finding.id))}{sides}", dim=True)
        if shown is not None and len(same_kind) > shown:
            yield f"  ... and {len(same_kind) - shown} more (-v shows all)"
        yield ""
    counts = _severity_counts([finding.severity for finding in findings])
    if any(finding.severity != "note" for finding in findings):
        safe = sum(finding.repairable for finding in findings)
        tail = f"; {safe} of them {'is' if safe == 1 else 'are'} fixed by any run of reconcile" if safe else ""
        yield style(f"{counts}{tail}.", "yellow", bold=True)
    else:
        yield style(f"No problems found; {counts}." if counts else "No problems found.", "green", bold=True)


def _severity_counts(severities: Sequence[str]) -> str:
    """Return how many findings there are of each severity, the worst first."""
    counts = {severity: severities.count(severity) for severity in ("error", "warning", "note")}
    return ", ".join(f"{count} {severity}{'' if count == 1 else 's'}" for severity, count in counts.items() if count)


def _check_as_json(finding: CheckFinding) -> dict[str, object]:
    return {**to_builtins(finding), "mend": list(finding.mend), "conversation": None}
