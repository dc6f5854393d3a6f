"""``reconcile checkouts``: lists the checkouts that share this store, and forgets one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from reconcile.model.commands import typed
from reconcile.model.plan import number_of

from ..command import Command
from ..context import find_roots, open_session, settings_of
from ..misuse import empty_path, unknown_checkout
from ..options import CHECKOUTS, command_line, options_of
from ..output.documents import print_document
from ..output.interaction import waiting_callback
from ..output.screen import show_paged, wrap
from ..output.tables import Column, natural_width, table
from ..output.text import Style, format_time, short_path, show

if TYPE_CHECKING:
    from reconcile.engine.session import Session
    from reconcile.state.database import Checkout

    from ..arguments import Options

_WORDS = {"there": "exists", "replaced": "replaced by a new directory"}
"""The words on the screen for states; the new directory may have a record of its own."""


@click.command(
    "checkouts",
    cls=Command,
    prints_sides=False,
    accepts=("json",),
    accepts_with={"forget": ("dry_run", "quiet")},
    examples=(
        ("reconcile checkouts", "List the checkouts, also those that are gone."),
        ("reconcile checkouts --forget . --dry-run", "Show what reconcile would forget of this one."),
    ),
    extra_hint="to forget a checkout: reconcile checkouts --forget DIR",
)
@click.option(
    "--forget", metavar="DIR", shell_complete=CHECKOUTS, help="Forget this checkout (recover can no longer use it)."
)
@click.pass_context
def checkouts(context: click.Context, forget: str | None) -> None:
    """List the checkouts that share this store, or forget one.

    The list includes checkouts whose directory is gone, or replaced: another directory is at its path now. --forget
    deletes the record of a checkout and changes none of its files. The next run in a forgotten checkout is a first run.
    """
    if forget == "":
        raise empty_path("--forget")
    options = options_of(context)
    roots = find_roots(options)
    settings = settings_of(roots)
    with open_session(roots, settings, readonly=True) as session:
        known = _named(session, forget)  # an unknown path is an error, which creates nothing
        if forget is None or options.is_dry:
            _show(options, session, known)
    if forget is None:
        return
    if options.is_dry:
        if not options.json:
            click.echo(f"would forget {_counted(known)} of {short_path(forget)}")
        return
    with (
        open_session(roots, settings, readonly=False) as session,
        session.exclusively(command_line(context), settings.lock_timeout, waiting_callback(options)),
    ):
        chosen = _named(session, forget)
        if options.json:
            _show(options, session, chosen)
        waiting = [request for checkout in chosen for request in session.state.load(checkout.id).waiting]
        for checkout in chosen:
            session.state.forget_checkout(checkout.id)
        if not options.json:
            if not options.quiet:
                click.echo(f"forgotten: {_counted(chosen)} of {short_path(forget)}")
            for conversation, verb in sorted(waiting):
                click.echo(f"dropped: `reconcile {verb.value} {typed(conversation)}`, which waited there")


def _counted(checkouts: tuple[Checkout, ...]) -> str:
    return f"{len(checkouts)} record{'' if len(checkouts) == 1 else 's'}"


def _named(session: Session, path: str | None) -> tuple[Checkout, ...]:
    known = session.state.checkouts()
    if path is None:
        return known
    wanted = os.path.realpath(path)
    named = tuple(checkout for checkout in known if checkout.project == wanted)
    if not named:
        raise unknown_checkout(path, {checkout.project for checkout in known}, "--forget")
    return named


def _show(options: Options, session: Session, checkouts: tuple[Checkout, ...]) -> None:
    """Print the checkouts. On the screen, several records of one path in one state are one line.

    `reconcile --all` makes a second record of a project that is gone.
    """
    rows = [(checkout, session.state_of(checkout), session.state.load(checkout.id).agreed) for checkout in checkouts]
    if options.json:
        listed = [
            {
                "project": checkout.project,
                "state": state,
                "conversations": len(agreed),
                "layout": checkout.layout,
                "first_seen_ns": checkout.first_seen,
                "last_seen_ns": checkout.last_seen,
            }
            for checkout, state, agreed in rows
        ]
        print_document(options, {"format": "reconcile.checkouts/1", "checkouts": listed})
        return
    style, places = Style.choose(options.color), session.format.places
    if not rows:
        show(wrap("No checkout of this store is known yet: the first run in a checkout adds it.", style.columns))
        return
    listed_at: dict[tuple[str, str], tuple[int, set[str]]] = {}
    for checkout, state, agreed in rows:
        seen, had = listed_at.get((checkout.project, state), (0, set[str]()))
        listed_at[checkout.project, state] = max(seen, checkout.last_seen), had.union(agreed)
    columns = (Column("Checkout"), Column("State"), Column("Last seen"), Column("Conversations", right=True))
    cells = [
        (
            short_path(project, None),
            _WORDS.get(state, state),
            format_time(seen)[:10],
            str(number_of(had, places)),
        )
        for (project, state), (seen, had) in listed_at.items()
    ]
    if style.columns is None or natural_width(columns, cells) <= style.columns:
        show_paged(table(columns, cells, style), style)
        return
    head, *rest = table(columns[1:], [cell[1:] for cell in cells], style)
    lines = [style("Checkout", bold=True), f"  {head}"]
    for (path, *_), line in zip(cells, rest, strict=True):
        lines += [*wrap(path, style.columns, "", "  "), f"  {line}"]
    show_paged(lines, style)
