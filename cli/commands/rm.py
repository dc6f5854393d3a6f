"""``reconcile rm``: remove conversations from both sides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from reconcile.engine.lost_versions import lost_with_store
from reconcile.model.policy import Children, Remove

from ..context import find_ids
from ..options import common_options
from ..output.git_hint import tell_history
from .sync import run_pass

if TYPE_CHECKING:
    from reconcile.engine.session import Session
    from reconcile.model.baseline import Look
    from reconcile.model.policy import Policy


@click.command(name="rm")
@common_options
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("--cascade", is_flag=True, help="Also everything below them.")
@click.option("--promote", is_flag=True, help="Their children get the parent of the removed one, or none.")
@click.pass_context
def command(context: click.Context, ids: tuple[str, ...], cascade: bool, promote: bool) -> None:
    """Remove conversations from the store and the workspace; they stay in the vault, and can be undone.

    One that has children is refused unless --cascade or --promote says what becomes of them. Asks first. One that was
    lost with a store is not listed as lost any more.
    """
    if cascade and promote:
        raise click.UsageError("choose one: --cascade or --promote")
    children = Children.CASCADE if cascade else Children.PROMOTE if promote else Children.REFUSE

    def adjust(policy: Policy, session: Session, look: Look) -> Policy:
        lost = {each.conversation for each in lost_with_store(session.state, session.project, session.format, look)}
        missed = {each: found for each in ids if (found := session.format.parse_id(each)) in lost}
        if missed and not session.readonly:
            session.state.lost_no_more(missed.values())
            session.messages += [f"{each}: it was lost with a store, and is not listed any more" for each in missed]
        wanted = find_ids(session, look, [each for each in ids if each not in missed])
        tell_history(session, look, wanted)
        return replace(policy, request=Remove(tuple(dict.fromkeys(wanted)), children))

    run_pass(context, adjust, confirm="Remove them from both sides?")
