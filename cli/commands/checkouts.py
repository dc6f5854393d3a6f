"""``reconcile checkouts``: the workspaces that share this store."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import click

from reconcile.adapters.roots import identity_of

from ..context import find_roots, open_session, settings_of
from ..options import command_line, common_options, options_of
from ..output.interaction import waiting_callback
from ..output.text import Style, clean, pad
from ..output.timestamps import format_time

if TYPE_CHECKING:
    from reconcile.engine.session import Session
    from reconcile.state.database import Checkout


@click.command(name="checkouts")
@common_options
@click.option("--forget", metavar="DIR", help="Drop the records of this path; `recover` can't use them any more.")
@click.pass_context
def checkouts(context: click.Context, forget: str | None) -> None:
    """List the checkouts of this store that reconcile knows, also those that are gone.

    Dropping a record changes no file. The checkout at that path, if it is there, starts anew with its next run.
    """
    options = options_of(context)
    roots = find_roots(options)
    settings = settings_of(roots)
    if forget is None or options.is_dry:
        with open_session(roots, settings, readonly=True) as session:
            _show(session, _named(session, forget), json_wanted=options.json, style=Style.choose(options.color))
        return
    with (
        open_session(roots, settings, readonly=False) as session,
        session.exclusively(command_line(context), settings.lock_timeout, waiting_callback(options)),
    ):
        chosen = _named(session, forget)
        if options.json:
            _show(session, chosen, json_wanted=True, style=Style.choose(options.color))
        waiting = [request for each in chosen for request in session.state.load(each.id).waiting]
        for each in chosen:
            session.state.forget_checkout(each.id)
        if not options.json:
            click.echo(f"forgotten: {len(chosen)} record{'' if len(chosen) == 1 else 's'} of {clean(forget)}")
            for conversation, verb in sorted(waiting):
                click.echo(f"dropped: `reconcile {verb.value} {conversation}` had waited there")


def _named(session: Session, path: str | None) -> tuple[Checkout, ...]:
    known = session.state.checkouts()
    if path is None:
        return known
    wanted = os.path.realpath(path)
    found = tuple(each for each in known if each.project == wanted)
    if not found:
        raise click.UsageError(f"no checkout is known at {wanted}; `reconcile checkouts` lists them")
    return found


def _show(session: Session, found: tuple[Checkout, ...], *, json_wanted: bool, style: Style) -> None:
    rows = [(each, _state(session, each), len(session.state.load(each.id).agreed)) for each in found]
    if json_wanted:
        listed = [
            {
                "project": each.project,
                "state": state,
                "conversations": count,
                "layout": each.layout,
                "first_seen_ns": each.first_seen,
                "last_seen_ns": each.last_seen,
            }
            for each, state, count in rows
        ]
        click.echo(json.dumps({"format": "reconcile.checkouts/1", "checkouts": listed}, indent=2))
        return
    if not rows:
        click.echo("No checkout of this store is known yet: its first run makes it known.")
        return
    width = max(len("Checkout"), *(len(clean(each.project)) for each, _, _ in rows))
    click.echo(style(f"{pad('Checkout', width)}  {pad('Is', 10)}  {pad('Last seen', 10)}  Conversations", bold=True))
    for each, state, count in rows:
        color = {"here": "green", "there": None}.get(state, "yellow")
        line = f"{pad(clean(each.project), width)}  {style(pad(state, 10), color)}  {format_time(each.last_seen)[:10]}"
        click.echo(f"{line}  {count:>13}")


def _state(session: Session, each: Checkout) -> str:
    """Say what has become of a checkout: this one, another that is there, one whose directory is another by now.

    One that may not be looked at need not be gone.
    """
    if each.id == session.checkout:
        return "here"
    try:
        now = identity_of(os.path.join(each.project, os.path.basename(session.roots.workspace)))
    except OSError:
        return "unreadable"
    return "there" if now == each.identity else "replaced" if now else "gone"
