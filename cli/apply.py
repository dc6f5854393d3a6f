"""``reconcile apply FILE``: exactly a saved plan, refused per conversation where something has drifted."""

from __future__ import annotations

import click

from reconcile.core.policy import Layout, Policy
from reconcile.errors import ReconcileError

from .context import find_roots, open_session, settings_of
from .options import common_options, options_of
from .run import apply_plan, exit_code, report


class PlanElsewhereError(ReconcileError):
    """The plan was made for other sides than the ones given."""

    exit_code = 2


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
    with open(file, encoding="utf-8", errors="surrogateescape") as opened:
        plan, workspace, store = read_plan(opened.read(), file)
    options.workspace = options.workspace or workspace
    options.store = options.store or store
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
        if dry:
            report(options, roots, session, plan, None)
            context.exit(exit_code(plan, None, options))
        with session.exclusively(f"reconcile apply {file}", settings.lock_timeout):
            look = session.look()
            policy = session.surroundings(Policy(layout=Layout(plan.layout)))
            plan = session.allowed(plan, policy)
            outcome = apply_plan(options, roots, session, look, policy, plan)
        context.exit(exit_code(plan, outcome, options))
