"""``reconcile apply FILE``: carries out a saved plan, and refuses each conversation that has changed since."""

from __future__ import annotations

import os
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

import click
from msgspec import Struct
from msgspec.structs import replace

from reconcile.apply.executor import Outcome
from reconcile.engine.engine import Engine
from reconcile.errors import ReconcileError
from reconcile.model.reasons import Reason
from reconcile.planning.revalidate import DONE_ALREADY, agreeing, moved_on

from ..command import Command, Several
from ..context import find_roots, formats_here, is_id, open_session, settings_of
from ..options import command_line, options_of
from ..output.interaction import Progress, print_message, print_warning, waiting_callback
from ..output.plan_text import exit_code, report
from ..run import SYNC_PLAN, way_back
from ..saved_versions import know_remotes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconcile.adapters.everywhere import Target
    from reconcile.adapters.roots import Roots
    from reconcile.config import Settings
    from reconcile.engine.engine import Pass
    from reconcile.engine.session import Session
    from reconcile.model.format import Format
    from reconcile.model.plan import Action, Heading, Plan
    from reconcile.model.policy import Policy

    from ..arguments import Options


T = TypeVar("T", bound="Action | Heading")


class PlanElsewhereError(ReconcileError):
    """The plan was made for other sides than the given ones."""

    exit_code = 2


def _read_text(file: str) -> str:
    from reconcile.serialization.plan_file import PlanFileError

    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as opened:
            return opened.read()
    except OSError as error:
        raise PlanFileError(
            f"{file}: can't be read ({error.strerror})", "name a plan that was saved with --out"
        ) from None


def read_saved(options: Options, file: str, text: str | None = None) -> tuple[Plan, Roots]:
    """Read a saved plan, and locate its sides. They become options if they aren't found without.

    ``text``: the content, if it was read already: a pipe can be read only once.

    Raises:
        PlanFileError: it can't be read, or is no plan.
        PlanElsewhereError: the options name other sides.
    """
    from reconcile.serialization.plan_file import read_plan

    plan, workspace, store = read_plan(_read_text(file) if text is None else text, file)
    return plan, _find_sides(options, workspace, store, file)


@click.command(
    "apply",
    cls=Command,
    several=Several.OWN,
    accepts=("dry_run", "check", "json", "verbose", "quiet"),
    examples=(
        ("reconcile --out plan.json", "Save the plan of a run; nothing else is written."),
        ("reconcile apply plan.json", "Carry it out."),
    ),
)
@click.argument("file", type=click.Path())
@click.pass_context
def apply(context: click.Context, file: str) -> None:
    """Carry out a saved plan.

    Carries out the actions of FILE, which --out has saved, and no others. It asks nothing, also before removals. It
    skips each conversation that has changed since the plan was made, and exits with 4 then. A plan of `reconcile sync`
    is carried out as a whole, or not at all.
    """
    options = options_of(context)
    if SYNC_PLAN in (text := _read_text(file))[:200]:
        context.exit(_apply_sync(options, command_line(context), text, file))
    plan, roots = read_saved(options, file, text)
    settings = settings_of(roots)
    dry = options.is_dry
    with open_session(roots, settings, readonly=dry) as session:
        check_ids(plan, session.format, file)
        if dry:
            present = _present(Engine(session), plan, settings)
            outcome = _of_saved(plan, Outcome(), present)
            _report(options, roots, session, plan, outcome if outcome.results else None)
            context.exit(exit_code(plan, outcome, options))
        context.exit(carry_out(options, session, plan, settings, command_line(context)))


def _apply_sync(options: Options, command: str, text: str, file: str) -> int:
    from reconcile.remote.known import Half, Planned  # here: other plans need no remote
    from reconcile.remote.saved import read_saved_sync
    from reconcile.serialization.plan_file import PlanFileError

    from ..remotes.syncing import run_sync

    try:
        saved = read_saved_sync(text)
    except ValueError as error:
        raise PlanFileError(f"{file}: {error}", "make the plan again with --out") from None
    _find_sides(options, saved.workspace, saved.store, file)
    options.only, options.allow_bulk_removal = tuple(saved.only), saved.allow_bulk_removal
    planned = Planned(**saved.planned.model_dump())
    return run_sync(options, command, saved.remote, Half[saved.half], planned)


def carry_out(
    options: Options,
    session: Session,
    plan: Plan,
    settings: Settings,
    command: str,
    titles: Mapping[str, str] = MappingProxyType({}),
) -> int:
    """Carry out a plan that was made before, report, and return the exit code.

    Skips each conversation that has changed since the plan was made. The report calls conversations by ``titles``.
    """
    with session.exclusively(command, settings.lock_timeout, waiting_callback(options)):
        engine = Engine(session)
        present = _present(engine, plan, settings)
        with Progress(options) as progress:
            achieved = engine.apply(present.found, command, progress.advance, is_saved=True)
        engine.save(present.found, achieved)
        outcome = _of_saved(plan, achieved, present)
        if titles:
            plan, outcome = _retitled(plan, outcome, titles)
        _report(options, session.roots, session, plan, outcome)
        _warn_of_losses(options, session, plan, present.found)
    return exit_code(plan, outcome, options)


def _warn_of_losses(options: Options, session: Session, saved: Plan, present: Pass) -> None:
    """Print a warning about what a program has removed since the plan was made: no later run finds it again."""
    if present.plan.intents == saved.intents:
        return
    from reconcile.inspect.losses import losses_of  # here: few plans meet a loss

    losses = losses_of(session, present)
    if losses is not None and losses.is_usual:
        print_warning(options, losses.words(options.sides))


def _retitled(plan: Plan, outcome: Outcome, titles: Mapping[str, str]) -> tuple[Plan, Outcome]:
    """Return a plan and its outcome with other titles of some conversations."""

    def named(entry: T) -> T:
        return replace(entry, title=titles.get(entry.conversation, entry.title))

    shown = Outcome(outcome.run)
    for key, deed in outcome.results.items():
        shown.results[key] = replace(deed, action=named(deed.action))
    actions, outline = tuple(map(named, plan.actions)), tuple(map(named, plan.outline))
    return replace(plan, actions=actions, outline=outline), shown


def _find_sides(options: Options, workspace: str, store: str, file: str) -> Roots:
    """Locate the sides of the plan. They become options if they aren't found without, as suggested commands need them.

    Raises:
        PlanElsewhereError: the options name other sides.
    """
    chosen = options.format
    for name in formats_here(options) or (options.format,):
        with suppress(ReconcileError):
            options.format = name
            roots = find_roots(options)
            if (roots.workspace, roots.store) == (workspace, store):
                return roots
    options.format = chosen
    if options.workspace is None and (target := _in_home(workspace)) is not None:
        options.workspace, options.format = target.project, chosen or target.format
        with suppress(ReconcileError):
            roots = find_roots(options)
            if (roots.workspace, roots.store) == (workspace, store):
                return roots
    options.workspace = options.workspace or workspace
    # The store may not exist yet, if this plan is the first to fill it; the search finds the same one as then.
    options.store = options.store or (store if os.path.isdir(store) else None)
    roots = find_roots(options)
    if (roots.workspace, roots.store) != (workspace, store):
        raise PlanElsewhereError(
            f"{file}: the plan is for the workspace {workspace} and the store {store}, "
            f"not for {roots.workspace} and {roots.store}",
            "make the plan again with --out",
        )
    return roots


def _in_home(workspace: str) -> Target | None:
    """Return the project of Claude Code whose sessions are in a directory of the program; None if it is none such."""
    from reconcile.adapters.claude_code.places import FORMAT  # here, as below: other plans are of a project's directory
    from reconcile.adapters.everywhere import every_project
    from reconcile.formats.claude_code.names import directory_name

    from ..scope.projects import home_request

    known = every_project(home_request(), FORMAT)
    if os.path.dirname(workspace) != known.programs:
        return None
    name = os.path.basename(workspace)
    return next((each for each in known.targets if directory_name(each.project) == name), None)


class _Present(Struct, frozen=True):
    """A saved plan compared with the present.

    ``kept`` is the part that can be carried out; ``saved`` has the saved action of each of its actions, by id.
    ``changes`` has, by id of the other saved actions, the change since then.
    """

    found: Pass
    saved: Mapping[str, Action]
    changes: Mapping[str, str]


def _present(engine: Engine, plan: Plan, settings: Settings) -> _Present:
    session = engine.session
    know_remotes(session)
    engine.refresh()
    policy, decided = session.surroundings(_saved_policy(plan, settings)), _decided_since(session, plan)
    fresh = engine.plan(policy, now_ns=plan.now_ns)
    kept, saved = agreeing(plan, fresh.plan, decided)
    return _Present(replace(fresh, plan=kept, is_cut=True), saved, moved_on(plan, fresh.plan, fresh.world, decided))


def _report(options: Options, roots: Roots, session: Session, plan: Plan, outcome: Outcome | None) -> None:
    report(options, roots, session.messages, plan, outcome, back=way_back(session, plan))
    results = outcome.results.values() if outcome is not None else ()
    if any(deed.reason is Reason.OUTDATED and deed.message != DONE_ALREADY for deed in results):
        print_message(options, "the skipped files changed since the plan was made; make the plan again with --out")


def _decided_since(session: Session, plan: Plan) -> frozenset[str]:
    """Return the conversations whose intent the plan changes, and a later run has changed, too."""
    return session.state.journal.decided_since(plan.now_ns) & dict(plan.intents).keys()


def _of_saved(plan: Plan, achieved: Outcome, present: _Present) -> Outcome:
    """Return the outcome by saved action; those that aren't in the present plan were refused."""
    outcome = Outcome(achieved.run)
    for key, deed in achieved.results.items():
        reason = Reason.OUTDATED if deed.reason is Reason.DRIFT else deed.reason
        outcome.results[present.saved[key].id] = replace(deed, action=present.saved[key], reason=reason)
    agreed = {action.id for action in present.saved.values()}
    for action in plan.actions:
        if action.id not in agreed:
            outcome.skip(action, Reason.OUTDATED, present.changes[action.id])
    return outcome


def _saved_policy(plan: Plan, settings: Settings) -> Policy:
    """Return the policy of the saved plan with the present settings."""
    return replace(
        plan.policy,
        stream=settings.stream,
        diverged=settings.diverged,
        conflict=settings.conflict,
        missing=settings.missing,
    )


def check_ids(plan: Plan, form: Format, file: str) -> None:
    """Refuse actions whose conversation has an invalid id: ids name the locks that are taken.

    Raises:
        PlanFileError: an id is invalid.
    """
    from reconcile.serialization.plan_file import PlanFileError

    for action in plan.actions:
        invalid = [id_ for id_ in action.touches if not is_id(form, id_)]
        if invalid or action.conversation not in action.touches:
            wrong = (invalid or [action.conversation])[0]
            raise PlanFileError(
                f"{file}: action {action.id}: {wrong!r} is not a conversation id", "make the plan again with --out"
            )
