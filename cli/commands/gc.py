"""``reconcile gc``: remove what has expired."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from reconcile.model.policy import Collect

from ..options import common_options
from .sync import run_pass

if TYPE_CHECKING:
    from reconcile.engine.session import Session
    from reconcile.model.baseline import Look
    from reconcile.model.policy import Policy


@click.command(name="gc")
@common_options
@click.pass_context
def command(context: click.Context) -> None:
    """Remove conversations that have expired from the store and the workspace; they stay in the vault.

    A conversation goes only when everything below it has expired as well, and none of it is open in a terminal of JP's.
    """

    def adjust(policy: Policy, session: Session, look: Look) -> Policy:
        return replace(policy, request=Collect(session.open_in_terminals(look)))

    run_pass(context, adjust)
