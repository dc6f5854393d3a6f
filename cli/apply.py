"""``reconcile apply FILE``: exactly a saved plan, refused per conversation where something has drifted."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from reconcile.core.policy import Layout, Policy
from reconcile.errors import ReconcileError

from .context import find_roots, open_session, settings_of
from .options import common_options, options_of
from .run import apply_plan, exit_code, report

if TYPE_CHECKING:
    from reconcile.core.format import Format
    from reconcile.core.plan import Plan


class PlanElsewhereError(ReconcileError):
    """The plan was made for other sides than the ones given."""

    exit_code = 2


def _text(file: str) -> str:
    from reconcile.schema import PlanFileError

    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as opened:
            return opened.read()
    except OSError as error:
        raise PlanFileError(f"{file}: {error.strerror}, expected a plan saved with --out") from None


@click.command(name="apply")
@common_options
@click.argument("file", type=click.Path())
@click.pass_context
def command(context: click.Context, file: str) -> None:
    """Carry out a plan that was saved with --out, and nothing else.

    What has changed since is refused, conversation by conversation; the rest is done (exit 4).
    """
    from reconcile.schema import read_plan

    options = options_of(context)
    plan, workspace, store = read_plan(_text(file), file)
    options.workspace = options.workspace or workspace
    # A store that the plan is the first to fill isn't there yet; it is found as it was when the plan was made.
    options.store = options.store or (store if os.path.isdir(store) else None)
    roots = find_roots(options)
    if (roots.workspace, roots.store) != (workspace, store):
        raise PlanElsewhereError(
            f"{file}: made for the workspace {workspace} and the store {store}, "
            f"found {roots.workspace} and {roots.store}",
            "make the plan again with --out",
        )
    settings = settings_of(roots)
    dry = options.is_dry
    with open_session(roots, settings, readonly=dry) as session:
        _check_ids(plan, session.format, file)
        if dry:
            report(options, roots, session, plan, None)
            context.exit(exit_code(plan, None, options))
        with session.exclusively(f"reconcile apply {file}", settings.lock_timeout):
            look = session.look()
            policy = session.surroundings(Policy(layout=Layout(plan.layout)))
            plan = session.allowed(plan, policy)
            outcome = apply_plan(options, roots, session, look, policy, plan, f"reconcile apply {file}")
        context.exit(exit_code(plan, outcome, options))


def _check_ids(plan: Plan, form: Format, file: str) -> None:
    """Refuse actions for what can be no conversation: their ids name the locks to be taken."""
    from reconcile.schema import PlanFileError

    for action in plan.actions:
        wrong = [each for each in action.touches if form.parse_id(each) != each]
        if wrong or action.conversation not in action.touches:
            found = (wrong or [action.conversation])[0]
            raise PlanFileError(f"{file}: action {action.id}: found {found!r}, expected a conversation's id")
