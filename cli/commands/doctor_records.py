"""``reconcile doctor`` for the formats with derived data: what is wrong in the workspace, and what mends it."""

from __future__ import annotations

import json
import os
import shlex
import time
from itertools import groupby
from typing import TYPE_CHECKING, NoReturn

import click
from msgspec import to_builtins
from msgspec.structs import replace

from reconcile.adapters.fixed.markers import MARKS, format_at
from reconcile.inspect.checks import CHECKUPS

from ..options import options_of
from ..output.errors import ExitCode
from ..output.text import Style, clean

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reconcile.inspect.checks import Ill

    from ..arguments import Options

SHOWN = 20


def format_here(options: Options) -> str | None:
    """The format with derived data that is asked for, or the one that is found; None: another."""
    if options.format is not None:
        return options.format if options.format in MARKS else None
    return format_at(os.path.abspath(options.workspace or os.getcwd()))


def check_up(context: click.Context, name: str) -> NoReturn:
    """Print what is wrong, and end the command."""
    options = options_of(context)
    given = [f"--{option}" for option in ("layout", "only", "below") if getattr(options, option)]
    if given:
        raise click.UsageError(f"doctor looks at the whole of what {name} keeps: leave out {', '.join(given)}")
    found = _with_sources(CHECKUPS[name](options.workspace or os.getcwd(), time.time_ns()), options)
    if options.json:
        click.echo(
            json.dumps({"format": "reconcile.doctor/1", "findings": [_as_json(each) for each in found]}, indent=2)
        )
    else:
        for line in _lines(found, Style.choose(options.color), None if options.verbose else SHOWN):
            click.echo(line)
    context.exit(ExitCode.HELD if any(each.severity != "note" for each in found) else ExitCode.DONE)


def _with_sources(found: tuple[Ill, ...], options: Options) -> tuple[Ill, ...]:
    """Put a whole version of a damaged record, where there is one, before what is made of its remains."""
    places = {each.place for each in found if each.severity == "error"}
    if not places:
        return found
    from reconcile.inspect.repair_sources import better_sources, is_damaged

    from ..context import find_roots, open_session, settings_of

    roots = find_roots(options)
    with open_session(roots, settings_of(roots), readonly=True) as session:
        better = {place: better_sources(session, place) for place in places if is_damaged(session, place)}
    return tuple(replace(each, mend=(*better.get(each.place, ()), *each.mend)) for each in found)


def _lines(found: tuple[Ill, ...], style: Style, shown: int | None) -> Iterator[str]:
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
    told = counted_by_severity([each.severity for each in found])
    if any(each.severity != "note" for each in found):
        safe = sum(each.repairable for each in found)
        tail = f"; {safe} of them {'is' if safe == 1 else 'are'} mended by any run of reconcile" if safe else ""
        yield style(f"{told}{tail}.", "yellow", bold=True)
    else:
        yield style(f"Nothing is wrong; {told}." if told else "Nothing is wrong.", "green", bold=True)


def counted_by_severity(found: Sequence[str]) -> str:
    """Return how many findings there are of each severity, the worst first."""
    counts = {severity: found.count(severity) for severity in ("error", "warning", "note")}
    return ", ".join(f"{count} {severity}{'' if count == 1 else 's'}" for severity, count in counts.items() if count)


def _as_json(each: Ill) -> dict[str, object]:
    return {**to_builtins(each), "mend": list(each.mend), "conversation": None}
