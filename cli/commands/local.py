"""``reconcile local``: keep conversations out of workspaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from reconcile.model.policy import Localize

from ..context import find_ids
from ..options import common_options
from ..output.git_hint import tell_history
from .sync import run_pass

if TYPE_CHECKING:
    from reconcile.engine.session import Session
    from reconcile.model.baseline import Look
    from reconcile.model.policy import Policy


@click.command(name="local")
@common_options
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.pass_context
def command(context: click.Context, ids: tuple[str, ...]) -> None:
    """Take conversations out of the workspace, and keep them out of every checkout.

    Everything in their directories goes along, and comes back with them (`reconcile project`). All of it is saved in
    the store first; if something can't be, its directory stays. The conversation is local at once, and its directory
    leaves with the first run that can take it out. What was committed stays in git's history.
    """

    def adjust(policy: Policy, session: Session, look: Look) -> Policy:
        found = tuple(dict.fromkeys(find_ids(session, look, ids)))
        tell_history(session, look, found)
        return replace(policy, request=Localize(found))

    run_pass(context, adjust)
