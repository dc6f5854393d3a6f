"""``reconcile set-parent``: give a conversation another parent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from reconcile.model.policy import Reparent

from ..context import find_ids
from ..options import common_options
from .sync import run_pass

if TYPE_CHECKING:
    from reconcile.engine.session import Session
    from reconcile.model.baseline import Look
    from reconcile.model.policy import Policy


@click.command(name="set-parent")
@common_options
@click.argument("conversation", metavar="ID")
@click.argument("parent", required=False)
@click.option("--none", is_flag=True, help="No parent: it becomes a root.")
@click.pass_context
def command(context: click.Context, conversation: str, parent: str | None, none: bool) -> None:
    """Make ID a child of PARENT, or with --none a root; everything below it moves along."""
    if none == (parent is not None):
        raise click.UsageError("choose one: a parent, or --none")

    def adjust(policy: Policy, session: Session, look: Look) -> Policy:
        found = find_ids(session, look, [conversation, *([] if parent is None else [parent])])
        return replace(policy, request=Reparent(found[0], found[1] if parent is not None else None))

    run_pass(context, adjust)
