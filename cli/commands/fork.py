"""``reconcile fork``: a child with a filtered copy of the events."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from reconcile.model.format import Part
from reconcile.model.policy import Branch

from ..context import find_ids
from ..options import common_options
from ..output.timestamps import moment
from .sync import run_pass

if TYPE_CHECKING:
    from reconcile.engine.session import Session
    from reconcile.model.baseline import Look
    from reconcile.model.policy import Policy


@click.command(name="fork")
@common_options
@click.argument("conversation", metavar="ID")
@click.option(
    "--from", "start", metavar="T", help="Events of this time and later: 2026-01-31, 2026-01-31T12:00:00Z, 3d."
)
@click.option("--until", "end", metavar="T", help="Events up to this time.")
@click.option("--last", type=click.IntRange(min=0), metavar="N", help="The last N turns; 0: none.")
@click.option("--title", help="Another title than the source's.")
@click.option("--local", is_flag=True, help="Keep it out of the workspace.")
@click.pass_context
def command(
    context: click.Context,
    conversation: str,
    start: str | None,
    end: str | None,
    last: int | None,
    title: str | None,
    local: bool,
) -> None:
    """Make a child of ID with a copy of its events, or of a part of them.

    It gets an id of its own, and lies in its parent's directory where that is in the workspace.
    """
    if title is not None and any("\udc80" <= char <= "\udcff" for char in title):
        raise click.UsageError("--title: found bytes that are no UTF-8, expected text")
    now_ns = time.time_ns()
    part = Part(moment(start, now_ns), moment(end, now_ns), last)

    def adjust(policy: Policy, session: Session, look: Look) -> Policy:
        (found,) = find_ids(session, look, [conversation])
        return replace(policy, request=Branch(found, part, title, local))

    run_pass(context, adjust)
