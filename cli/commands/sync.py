"""The command without a name: plan and apply one pass over everything, or show the plan."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from reconcile.engine.dispatch import plan_as_asked
from reconcile.engine.incremental_run import carry_out_whole
from reconcile.engine.passes import Passes
from reconcile.serialization.plan_json import plan_to_json

from ..context import find_roots, open_session, policy_of, selection, settings_of
from ..options import command_line, options_of
from ..output.interaction import (
    ask_about,
    confirm_or_exit,
    is_interactive,
    is_question,
    print_message,
    progress_bar,
    waiting_callback,
)
from ..output.report import exit_code, report

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconcile.adapters.roots import Roots
    from reconcile.apply.outcome import Outcome
    from reconcile.config import Settings
    from reconcile.engine.session import Session
    from reconcile.model.baseline import WorldState
    from reconcile.model.plan import Plan
    from reconcile.model.policy import Policy

    from ..arguments import Options


def run_pass(
    context: click.Context,
    adjust: Callable[[Policy, Session, WorldState], Policy] | None = None,
    confirm: str = "",
) -> None:
    """Run one pass; ``adjust`` adds a command's own decisions to the policy.

    ``confirm``: what is asked, with the plan shown, before anything is done.
    """
    options = options_of(context)
    roots = find_roots(options)
    settings = settings_of(roots)
    if options.is_dry:
        with open_session(roots, settings, readonly=True) as session:
            world = session.look()
            policy = _policy(options, settings, session, world, adjust)
            plan = plan_as_asked(session, world, policy)
            tell_lost(options, session, world, policy)
            tell_new_store(options, roots)
            save_plan(options, roots, plan)
            report(options, roots, session.messages, plan, None)
        context.exit(exit_code(plan, None, options))
    with open_session(roots, settings, readonly=False) as session:
        with session.exclusively(command_line(context), settings.lock_timeout, waiting_callback(options)):
            passes = Passes(session)
            world = passes.look()
            policy = _policy(options, settings, session, world, adjust)
            plan = plan_as_asked(session, world, policy)
            tell_lost(options, session, world, policy)
            if tell_new_store(options, roots) and is_interactive(options) and plan.actions:
                confirm = confirm or "Make the store?"
            if is_interactive(options) and any(is_question(item) for item in plan.held):
                report(options, roots, session.messages, plan, None)
                policy, before = ask_about(policy, plan.held), policy
                plan = plan if policy == before else plan_as_asked(session, world, policy)
            if confirm and (plan.actions or plan.put_off) and not options.yes:
                report(options, roots, session.messages, plan, None)
                confirm_or_exit(options, confirm)
            outcome = apply_plan(options, roots, passes, world, plan, command_line(context))
        context.exit(exit_code(plan, outcome, options))


def apply_plan(options: Options, roots: Roots, passes: Passes, world: WorldState, plan: Plan, command: str) -> Outcome:
    """Carry out a plan with progress on long work, and report; ``command`` is what the journal calls it."""
    with progress_bar(options, len(plan.actions)) as progress:
        outcome = carry_out_whole(passes, world, plan, command, progress)
    report(options, roots, passes.session.messages, plan, outcome)
    return outcome


def _policy(
    options: Options,
    settings: Settings,
    session: Session,
    world: WorldState,
    adjust: Callable[[Policy, Session, WorldState], Policy] | None,
) -> Policy:
    policy = session.surroundings(policy_of(options, settings, selection(session, world, options)))
    if options.yes:
        policy = replace(policy, accept_bulk=True)
    return adjust(policy, session, world) if adjust else policy


def tell_lost(options: Options, session: Session, world: WorldState, policy: Policy) -> None:
    """Name `recover` where a plain run finds a new ``.jp`` in the place of one that had conversations."""
    count = 0 if options.quiet or policy.request is not None else session.lost(world, policy)
    if count:
        which = "1 conversation that was" if count == 1 else f"{count} conversations that were"
        session.messages.append(f"this .jp is a new one; {which} in the one before can come back: reconcile recover")


def tell_new_store(options: Options, roots: Roots) -> bool:
    """Name the store that a run makes because JP has none for this workspace; tell whether there is such a one.

    It may be that of another user's environment, or of a clone in which JP was never started.
    """
    is_new = roots.format == "jp" and not roots.store_exists and options.store is None
    if is_new:
        how = "a run makes" if options.is_dry else "making"
        print_message(options, f"there is no store for this workspace yet; {how} {roots.store}")
    return is_new


def save_plan(options: Options, roots: Roots, plan: Plan) -> None:
    """Save the plan; a file that is no plan isn't overwritten."""
    if options.out is None:
        return
    if os.path.exists(options.out) and not _is_plan(options.out):
        raise click.UsageError(f"--out {options.out}: found a file that is no plan; name another")
    text = json.dumps(plan_to_json(plan, workspace=roots.workspace, store=roots.store), indent=2)
    with open(options.out, "w", encoding="utf-8") as file:
        file.write(text + "\n")
    print_message(options, f"saved; carry it out with: reconcile apply {options.out}")


def _is_plan(path: str) -> bool:
    if not os.path.isfile(path):  # a pipe, or a terminal: nothing there is overwritten
        return True
    with open(path, encoding="utf-8", errors="replace") as file:
        return '"format": "reconcile.plan/' in file.read(200)
