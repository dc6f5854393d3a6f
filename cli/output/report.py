"""The report of a run: the plan, the outcome, and the exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.apply.executor import Result
from reconcile.model.reasons import Reason

from .errors import ExitCode
from .interaction import is_interactive, print_message
from .plan_text import PlanText, results, summary
from .text import Style, heading, show

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reconcile.adapters.roots import Roots
    from reconcile.apply.executor import Outcome
    from reconcile.model.plan import Plan

    from ..arguments import Options


def report(options: Options, roots: Roots, messages: Iterable[str], plan: Plan, outcome: Outcome | None) -> None:
    """Print a plan and its outcome, as text or as JSON; ``messages`` go to standard error."""
    for message in messages:
        print_message(options, message, trouble=True)
    if options.json:
        import json

        from reconcile.serialization.plan_json import plan_to_json  # here: text needs none

        document = plan_to_json(plan, workspace=roots.workspace, store=roots.store)
        if outcome is not None:
            document["outcome"] = outcome.to_json()
        show([json.dumps(document, indent=2)])
        return
    style = Style.choose(options.color)
    undone = [*results(outcome, style), *_waiting(plan, outcome)] if outcome else []
    # A question follows: the user must see the plan that it is about.
    quiet = options.quiet and (outcome is not None or options.is_dry or not is_interactive(options))
    shown = replace(plan, actions=(), aside=(), notes=()) if quiet else _carried_out(plan, outcome)
    lines = [*PlanText(shown, style, verbose=options.verbose, sides=options.sides).lines(), *undone]
    if not quiet:
        end = summary(plan, style, done=outcome, noun=roots.noun)
        lines = [heading(roots, plan.layout, style), "", *lines, end]
    show(lines)


def _waiting(plan: Plan, outcome: Outcome) -> list[str]:
    """Return the lines about requests of this command that a later run will carry out."""
    left = plan.put_off.union(deed.action.conversation for deed in outcome.results.values() if not deed.is_done)
    waits = {conversation for (conversation, _), request in plan.waiting if request is not None} & left
    if not waits:
        return []
    which = "1 request waits" if len(waits) == 1 else f"{len(waits)} requests wait"
    return [
        f"{which}: the first run that can carries it out; `reconcile status` shows it, `reconcile undo` drops it",
        "",
    ]


def _carried_out(plan: Plan, outcome: Outcome | None) -> Plan:
    """Return the plan without the actions that failed or were skipped, which `results` lists, and their notes."""
    left = outcome.undone() if outcome is not None else frozenset()
    stays = {action.conversation for action in plan.actions if action.id in left}
    return replace(
        plan,
        actions=tuple(action for action in plan.actions if action.id not in left),
        notes=tuple(n for n in plan.notes if n.reason is not Reason.TAKEN_ALONG or n.conversation not in stays),
    )


def exit_code(plan: Plan, outcome: Outcome | None, options: Options) -> int:
    """Return the first exit code that applies."""
    if outcome is not None and outcome.count(Result.FAILED):
        return ExitCode.FAILED
    if plan.held or (outcome is not None and outcome.count(Result.SKIPPED)):
        return ExitCode.HELD
    if options.check and plan.actions:
        return ExitCode.PENDING
    return ExitCode.DONE
