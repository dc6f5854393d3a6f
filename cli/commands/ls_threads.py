"""``reconcile ls`` for Leslie: its threads, flat or as the tree that they form."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, NoReturn

import click
from msgspec import to_builtins

from reconcile.adapters.leslie.files import project_at, read_leslie
from reconcile.inspect.thread_listing import listed

from ..options import options_of
from ..output.errors import ExitCode
from ..output.text import Style, clean, print_table, shorten

if TYPE_CHECKING:
    from reconcile.inspect.thread_listing import ThreadRow

TITLE = 60
AIM = 40
UNTITLED = "(no title)"


def list_threads(context: click.Context, *, tree: bool, other: bool) -> NoReturn:
    """Print the listing, and end the command; ``other``: something was asked for that only conversations have."""
    options = options_of(context)
    given = [f"--{option}" for option in ("store", "layout", "only", "below") if getattr(options, option)]
    if other or given:
        unknown = ", ".join(given) or "--root and --archived"
        raise click.UsageError(f"ls shows all threads of leslie, flat or with --tree: leave out {unknown}")
    rows = listed(read_leslie(project_at(options.workspace or os.getcwd()), time.time_ns()), tree=tree)
    if options.json:
        found = [{key: value for key, value in to_builtins(row).items() if key != "branch"} for row in rows]
        click.echo(json.dumps({"format": "reconcile.threads/1", "threads": found}, indent=2))
    elif not rows:
        click.echo("no threads")
    else:
        _show(rows, Style.choose(options.color))
    context.exit(ExitCode.DONE)


def _show(rows: tuple[ThreadRow, ...], style: Style) -> None:
    head = ("Title", "Id", "Status", "Objective", "References", "Depends on")
    table = [
        (
            row.branch + shorten(clean(row.title or UNTITLED), TITLE),
            clean(row.thread),
            clean(row.status or ""),
            shorten(clean(row.objective_title or row.objective or ""), AIM),
            clean(", ".join(row.references)),
            clean(_depends(row)),
        )
        for row in rows
    ]
    print_table(head, table, style)


def _depends(row: ThreadRow) -> str:
    """What it depends on; in parentheses what those depend on in turn."""
    indirect = f"({', '.join(row.depends_on_indirectly)})" if row.depends_on_indirectly else ""
    return " ".join(part for part in (", ".join(row.depends_on), indirect) if part)
