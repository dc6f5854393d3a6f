"""``reconcile ls`` for Claudesidian: the records of both sides, those that were used last first."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NoReturn

import click
from msgspec import to_builtins

from reconcile.inspect.record_listing import listed

from ..context import find_roots, open_session, policy_of, settings_of
from ..options import options_of
from ..output.errors import ExitCode
from ..output.text import Style, clean, print_table, shorten
from ..output.timestamps import date

if TYPE_CHECKING:
    from reconcile.inspect.record_listing import RecordRow

TITLE = 60
_FAR_MS = 1e14
"""Times from here on are no dates that a calendar has."""


def list_records(context: click.Context, *, other: bool) -> NoReturn:
    """Print the listing, and end the command; ``other``: something was asked for that only a tree has."""
    options = options_of(context)
    given = [f"--{option}" for option in ("layout", "only", "below") if getattr(options, option)]
    if other or given:
        unknown = ", ".join(given) or "--tree, --root and --archived"
        raise click.UsageError(f"ls shows all records of claudesidian: leave out {unknown}")
    roots = find_roots(options)
    settings = settings_of(roots)
    with open_session(roots, settings, readonly=True) as session:
        rows = listed(session.board(session.look(), policy_of(options, settings)).views.values())
    if options.json:
        click.echo(json.dumps({"format": "reconcile.records/1", "records": to_builtins(rows)}, indent=2))
    elif not rows:
        click.echo("no records")
    else:
        print_table(
            ("Title", "Id", "Holds", "Last used", "Where"), list(map(_cells, rows)), Style.choose(options.color)
        )
    context.exit(ExitCode.DONE)


def _cells(row: RecordRow) -> tuple[str, ...]:
    last = date(int(row.last_ms) * 1_000_000) if 0 < row.last_ms < _FAR_MS else ""
    return (shorten(clean(row.title or ""), TITLE), clean(row.record), row.holds, last, row.where)
