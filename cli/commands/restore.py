"""``reconcile restore``: bring a version back from the vault."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from reconcile.model.policy import PutBack

from ..options import common_options
from .sync import run_pass

if TYPE_CHECKING:
    from reconcile.engine.session import Session
    from reconcile.model.baseline import Look
    from reconcile.model.policy import Policy


@click.command(name="restore")
@common_options
@click.argument("version")
@click.pass_context
def command(context: click.Context, version: str) -> None:
    """Make VERSION what both sides hold: ID@RUN, ID@RUN:metadata, ID@RUN:stream, or the beginning of a digest.

    ID@RUN is the conversation as RUN found it, where RUN replaced or removed it. What is replaced now goes into the
    vault in turn. A conversation that is gone is made again in the store alone.
    """

    def adjust(policy: Policy, _session: Session, _look: Look) -> Policy:
        return replace(policy, request=PutBack(version))

    run_pass(context, adjust)
