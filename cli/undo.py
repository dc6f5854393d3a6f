"""``reconcile undo``: put back what a run did."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from reconcile.core.requests import TakeBack
from reconcile.past import find_run, newest_run

from .asking import say
from .options import common_options, options_of
from .run import run_pass

if TYPE_CHECKING:
    from reconcile.core.look import Look
    from reconcile.core.policy import Policy
    from reconcile.session import Session


@click.command(name="undo")
@common_options
@click.argument("run", required=False)
@click.pass_context
def command(context: click.Context, run: str | None) -> None:
    """Put back what RUN did (`reconcile log` lists the runs); without RUN, the newest that isn't undone.

    It is a run of its own, and can be undone. What somebody has written since is refused, conversation by
    conversation. What was undone stays so until a side changes, or `reconcile resolve`.
    """

    def adjust(policy: Policy, session: Session, _look: Look) -> Policy:
        found = newest_run(session.state, session.project) if run is None else find_run(session.state, run)
        say(options_of(context), f"undo of {found.id}: {found.command}")
        return replace(policy, request=TakeBack(found.id))

    run_pass(context, adjust)
