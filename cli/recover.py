"""``reconcile recover``: put back what was in a workspace that is gone, or went in part."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from reconcile.core.recover import Offer, offers
from reconcile.core.requests import Project
from reconcile.disk.lost import put_marker_back
from reconcile.disk.roots import locate_lost

from . import exits
from .called import called
from .context import is_interactive, open_session, policy_of, settings_of
from .options import common_options, options_of
from .run import apply_plan, exit_code, report, save_plan, tell_waiting
from .style import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reconcile.config import Settings
    from reconcile.core.board import Board
    from reconcile.core.plan import Plan
    from reconcile.core.policy import Policy
    from reconcile.disk.roots import Roots
    from reconcile.session import Session

    from .options import Options

NAMED = 5


@click.command(name="recover")
@common_options
@click.option("--all", "everything", is_flag=True, help="Everything in the store that isn't local.")
@click.option("--from", "source", metavar="DIR", help="By the record of another checkout, which may be gone.")
@click.pass_context
def command(context: click.Context, everything: bool, source: str | None) -> None:
    """Put back what was in this workspace, after `rm -rf .jp`, git clean, or a removed worktree.

    Writes .jp/.id again where it is gone. Offers what the record of this checkout says was here, and what earlier runs
    found removed, run by run; never what is local. Asks at a terminal; elsewhere --yes takes what was here last.
    """
    options = options_of(context)
    cwd = os.getcwd()
    roots = locate_lost(options.workspace, options.store, source, cwd, os.environ, sys.platform)
    settings = settings_of(roots)
    with open_session(roots, settings, readonly=True) as session:
        look = session.look()
        board = session.board(look, policy_of(options, settings, _NOTHING))
        records = session.records(None if source is None else os.path.join(cwd, source))
        if source is not None and not records:
            raise click.UsageError(f"--from: no checkout is known at {source}; `reconcile checkouts` lists them")
        found = offers(board, [session.state.load(each.id) for each in records])
        chosen = _everything(found, board) if everything else _chosen(options, found, board)
        policy = _policy(options, settings, chosen, tuple(each.id for each in records))
        plan = session.plan(look, policy)
        go_on = _shown(options, roots, session, plan)
    if not go_on:
        context.exit(exits.HELD if go_on is False and not options.is_dry else exit_code(plan, None, options))
    put_marker_back(roots.workspace, roots.workspace_id or "")
    roots = locate_lost(options.workspace, options.store, source, cwd, os.environ, sys.platform)
    with (
        open_session(roots, settings, readonly=False) as session,
        session.exclusively(called(context), settings.lock_timeout, tell_waiting),
    ):
        look = session.look()
        plan = session.plan(look, policy)
        outcome = apply_plan(options, roots, session, look, policy, plan, called(context))
    context.exit(exit_code(plan, outcome, options))


_NOTHING: dict[str, frozenset[str]] = {"only": frozenset(), "below": frozenset()}


def _policy(options: Options, settings: Settings, chosen: tuple[str, ...], records: tuple[int, ...]) -> Policy:
    policy = policy_of(options, settings, _NOTHING)
    return replace(policy, request=Project(chosen, records=records))


def _everything(found: Sequence[Offer], board: Board) -> tuple[str, ...]:
    stored = [each for each in board.tree.walk() if board.views[each].store.main is not None]
    absent = [each for each in stored if board.views[each].workspace.main is None and not board.views[each].local]
    return tuple(dict.fromkeys([*absent, *(each for offer in found for each in offer.conversations)]))


def _chosen(options: Options, found: Sequence[Offer], board: Board) -> tuple[str, ...]:
    """Return what is to be put back: asked offer by offer, or what was here last."""
    known = [offer for offer in found if offer.known]
    if is_interactive(options) and not options.yes and not options.is_dry:
        return tuple(each for offer in found if click.confirm(_question(offer, board)) for each in offer.conversations)
    for offer in found[len(known[:1]) :]:
        click.echo(f"not taken: {_described(offer, board)}", err=True)
    return known[0].conversations if known else ()


def _question(offer: Offer, board: Board) -> str:
    return f"Put back {_described(offer, board)}?"


def _described(offer: Offer, board: Board) -> str:
    count = len(offer.conversations)
    names = [clean(board.views[each].title or each) for each in offer.conversations[:NAMED]]
    more = f" and {count - NAMED} more" if count > NAMED else ""
    kind = "conversation" if count == 1 else "conversations"
    if not offer.known:
        why = "in the store; nothing is known of what was here (--all takes them, `reconcile project ID` one)"
    elif offer.run is None:
        why = "that were here at the end of the last run"
    else:
        why = f"whose directories were gone when run {offer.run} looked"
    return f"{count} {kind} {why}: {', '.join(names)}{more}"


def _shown(options: Options, roots: Roots, session: Session, plan: Plan) -> bool | None:
    """Show what will be done, and ask; tell whether to go on, None where there is nothing to do."""
    if options.out is not None and not roots.workspace_identity:
        raise click.UsageError("--out: there is no .jp that a saved plan could be carried out in; recover at once")
    save_plan(options, roots, plan)
    marked = os.path.lexists(os.path.join(roots.workspace, ".id"))
    if not options.json and not marked:
        click.echo(f"writes {clean(roots.workspace)}/.id with the id {roots.workspace_id}", err=True)
    if options.yes and not options.is_dry:
        return True
    report(options, roots, session, plan, None)
    if options.is_dry:
        return False
    if marked and not plan.actions:
        return None
    if is_interactive(options):
        return click.confirm("\nGo on?")
    click.echo("nothing was written; --yes carries it out", err=True)
    return False
