"""``reconcile undo``: put back what a run did."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from reconcile.engine.run_history import find_run, newest_run
from reconcile.model.policy import TakeBack

from ..options import common_options, options_of
from ..output.interaction import is_interactive, say
from ..output.timestamps import date
from .log import summed
from .sync import run_pass

if TYPE_CHECKING:
    from reconcile.engine.session import Session
    from reconcile.model.baseline import Look
    from reconcile.model.policy import Policy


@click.command(name="undo")
@common_options
@click.argument("run", required=False)
@click.pass_context
def command(context: click.Context, run: str | None) -> None:
    """Put back what RUN did (`reconcile log` lists the runs); without RUN, the newest that isn't undone.

    It prints which run that is, and asks at a terminal. After an undo, an older run is undone only by its name.

    It is a run of its own, and can be undone. What somebody has written since is refused, conversation by
    conversation. What was undone stays so until a side changes, or `reconcile resolve`.
    """
    options = options_of(context)

    def adjust(policy: Policy, session: Session, _look: Look) -> Policy:
        found = newest_run(session.state, session.project) if run is None else find_run(session.state, run)
        done = summed(session.state.journal.steps(found.id))
        say(options, f"undo of {found.id}, {date(found.started_ns)}: {found.command} ({done})")
        return replace(policy, request=TakeBack(found.id))

    # Elsewhere than at a terminal the command is the answer: what an undo removes is in the vault.
    run_pass(context, adjust, "Undo this run?" if is_interactive(options) else "")
