"""``reconcile resolve``: settle what is held or set aside over content."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from reconcile.engine.dispatch import plan_as_asked
from reconcile.model.options import Take
from reconcile.model.plan import Plan

from ..context import find_ids
from ..options import common_options, options_of
from ..output.errors import ExitCode
from ..output.report import report
from .sync import run_pass

if TYPE_CHECKING:
    from reconcile.engine.session import Session
    from reconcile.model.baseline import Look
    from reconcile.model.policy import Policy


@click.command(name="resolve")
@common_options
@click.argument("ids", nargs=-1, metavar="ID...")
@click.option("--all", "everything", is_flag=True, help="Every conversation that is held or set aside.")
@click.option(
    "--take",
    type=click.Choice(["store", "workspace", "both"]),
    help="The version that stays; both: the newer one, and the other's events as a forked child.",
)
@click.option("--keep", is_flag=True, help="Leave both sides as they are until one changes.")
@click.pass_context
def command(context: click.Context, ids: tuple[str, ...], everything: bool, take: str | None, keep: bool) -> None:
    """Decide what is held or set aside: the other version stays in the vault (both: as a forked child)."""
    if bool(ids) == everything:
        raise click.UsageError("name conversations, or --all")
    if (take is None) != keep:
        raise click.UsageError("choose one: --take store, --take workspace, --take both, or --keep")
    decision = Take.KEEP if keep else Take(take or "")

    def adjust(policy: Policy, session: Session, look: Look) -> Policy:
        chosen = find_ids(session, look, ids)
        if everything:
            plan = plan_as_asked(session, look, policy)
            chosen = [item.conversation for item in (*plan.held, *plan.aside) if item.conversation]
            if not chosen:
                nothing = Plan(layout=policy.layout.value, policy=policy)
                report(options_of(context), session.roots, session.messages, nothing, None)
                raise click.exceptions.Exit(ExitCode.DONE)
        return replace(policy, decisions=dict.fromkeys(chosen, decision), only=policy.only | frozenset(chosen))

    run_pass(context, adjust)
