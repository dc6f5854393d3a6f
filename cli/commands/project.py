"""``reconcile project``: put conversations into the workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from reconcile.model.policy import Project

from ..context import find_ids
from ..options import common_options, options_of
from .sync import run_pass

if TYPE_CHECKING:
    from reconcile.engine.session import Session
    from reconcile.model.baseline import Look
    from reconcile.model.policy import Policy


@click.command(name="project")
@common_options
@click.argument("ids", nargs=-1, metavar="ID...")
@click.option("--all", "everything", is_flag=True, help="Everything that isn't local.")
@click.option("--behind", is_flag=True, help="Replace every older version that is set aside by the store's.")
@click.option("--with-ancestors", is_flag=True, help="Also what they lie below and isn't here; it becomes public.")
@click.pass_context
def command(context: click.Context, ids: tuple[str, ...], everything: bool, behind: bool, with_ancestors: bool) -> None:
    """Put conversations into the workspace, which is committed to git; what waits below them comes back.

    Also moves a directory to its place that somebody else has moved.
    """
    if bool(ids) + everything + behind != 1:
        raise click.UsageError("name conversations, or --all, or --behind")
    # What --all meets is nobody's choice: a local ancestor becomes public only where it is said in so many words.
    ancestors = with_ancestors or (options_of(context).yes and not everything)

    def adjust(policy: Policy, session: Session, look: Look) -> Policy:
        chosen = tuple(dict.fromkeys(find_ids(session, look, ids)))
        return replace(policy, request=Project(chosen, everything, behind, ancestors))

    run_pass(context, adjust)
