"""A command's pass: detects the changes, opens the session, plans, asks, carries the plan out, and reports.

Every command that plans goes through `run`; a command that only reads uses `opened`. A run that loads this module has
something to do or to show.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.apply.executor import Outcome, Result
from reconcile.engine.engine import Engine
from reconcile.engine.saved_index import LoadedIndex, plan_of
from reconcile.model.options import Prefer
from reconcile.model.plan import counted_as, number_of
from reconcile.model.policy import UndoRequest
from reconcile.model.reasons import Reason
from reconcile.state.database import StateError

from .arguments import Turn
from .context import find_ids, open_session, policy_of, refuse_missing_home, with_owned
from .output.errors import print_error, report_nothing_changed
from .output.interaction import (
    Progress,
    ask_about,
    confirm_or_exit,
    first_run_lines,
    is_interactive,
    is_question,
    is_repeated,
    print_message,
    waiting_callback,
)
from .output.plan_text import exit_code, report
from .output.text import Style, short_path, show
from .unchanged import Opening, Start

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from reconcile.adapters.roots import Roots
    from reconcile.engine.engine import Pass
    from reconcile.engine.session import Session
    from reconcile.engine.versions import Lost
    from reconcile.inspect.listing import Survey
    from reconcile.inspect.losses import Losses
    from reconcile.model.plan import Conflict, Item, Plan
    from reconcile.model.policy import Policy

    from .arguments import Options

    Adjust = Callable[[Policy, Engine], Policy]
    """Adds a command's request and decisions to the policy of its options."""
    Question = Callable[[Plan], str]
    """Returns what is asked before a plan is carried out."""

IDLE = "Nothing to sync."
"""The words of a run without an action, below a message about what can be restored."""


def open_engine(start: Start, *, readonly: bool | None = None) -> Engine:
    """Open the session of a command, and load what the last run has saved, where that holds.

    ``readonly``: whether nothing is written; None: the options say so.
    """
    options, settings, last = start.options, start.settings, start.last
    readonly, sound = options.is_dry if readonly is None else readonly, None if last is None else last.generation
    session = open_session(start.roots, settings, readonly=readonly, sound=sound)
    try:
        index = (
            None
            if last is None
            else LoadedIndex.load(session, last, replace(policy_of(options, settings), prefer=Prefer.NEWEST))
        )
    except BaseException:
        session.close()
        raise
    return Engine(session, index)


@contextmanager
def opened(options: Options) -> Iterator[Engine]:
    """Open the sides of a command that only reads, and bring what is known of them up to date."""
    opening = Opening(partial(open_engine, readonly=True))
    try:
        start = Start.of(options, opening.begin, at_once=True)
        engine = begun(start, opening)
        engine.begin()
        yield engine
    finally:
        opening.close()


def begun(start: Start, opening: Opening) -> Engine:
    """Return the open engine of a command, with the changes that were detected."""
    engine = opening.begin(start)
    if engine.index is not None:
        engine.index = engine.index.with_changes(engine.session, start.changed)
    return engine


def run(
    options: Options, command: Callable[[], str], adjust: Adjust | None = None, confirm: Question | None = None
) -> int:
    """Run one pass, and return the exit code.

    ``command`` returns what the journal calls it, which has ids in the place of titles once ``adjust`` has found them.
    ``confirm``: what is asked, with the plan shown, before anything is done; None: nothing.
    """
    opening = Opening(open_engine)
    try:
        start = Start.of(options, opening.begin, at_once=adjust is not None)
        return run_started(start, opening, command, adjust, confirm)
    finally:
        opening.close()


def run_before_watching(options: Options, command: str) -> int | None:
    """Run one pass at a terminal where it asks before it creates anything, and return the exit code; None elsewhere."""
    if not is_interactive(options):
        return None
    opening = Opening(open_engine)
    try:
        start = Start.of(options, opening.begin)
        if not (start.is_first or lacks_store(options, start.roots)) and (
            start.last is not None or begun(start, opening).session.state.journal.mark().newest
        ):
            return None
        return run_started(start, opening, lambda: command)
    finally:
        opening.close()


def run_started(
    start: Start,
    opening: Opening,
    command: Callable[[], str] | None = None,
    adjust: Adjust | None = None,
    confirm: Question | None = None,
) -> int:
    """Run a pass of which the changes have been detected; see `run`."""
    options = start.options
    command = command or (lambda: " ".join(("reconcile", *options.shaping)))
    if adjust is None and (code := _reported_unchanged(start)) is not None:
        return code
    agreed = None
    asks = adjust is None and confirm is None and not (options.is_dry or options.yes) and is_interactive(options)
    if start.is_first and asks:
        with _ending_without_yes(options) as ended:
            agreed = _agreed_first(start)
        if ended:
            return ended[0]
    elif start.is_first and (adjust is not None or options.only or options.below) and not options.is_dry:
        _refuse_first(start, adjust)
    try:
        return _run(start, opening, command, adjust, confirm, agreed)
    except StateError as error:
        if not error.is_damage or start.last is None:
            raise
    # The state was not checked, as its files are what the last run has left. Opened without that, it is.
    opening.close()
    return _run(start._replace(last=None), opening, command, adjust, confirm)


def _reported_unchanged(start: Start) -> int | None:
    """Report what the last run did where nothing has changed; None where there is something to plan.

    Questions are asked anew, at a terminal, and JSON tells more of a plan than was saved, where there is more.
    """
    options = start.options
    if start.last is None or not start.is_unchanged:
        return None
    answer = start.last.answer
    asks = answer.held and not options.is_dry and is_interactive(options)
    if asks or (options.is_dry and answer.besides) or (options.json and not answer.quiet):
        return None
    plan = plan_of(answer, policy_of(options, start.settings), time.time_ns())
    report(options, start.roots, (), plan, None if options.is_dry else Outcome())
    return exit_code(plan, None, options)


@contextmanager
def _ending_without_yes(options: Options) -> Iterator[list[int]]:
    """Yield a list, which has an exit code after a question that ends the run."""
    import click  # here: most runs ask nothing

    codes: list[int] = []
    try:
        yield codes
    except click.exceptions.Exit as ended:
        codes.append(ended.exit_code)
    except click.Abort:
        codes.append(report_nothing_changed(options))


def _agreed_first(start: Start) -> Plan | None:
    """Ask about a first run before it creates anything, and return the plan that is on the screen.

    None: the run itself asks about more than whether to go on, or has nothing to ask.
    """
    options, roots = start.options, start.roots
    refuse_missing_home(roots)
    with open_engine(start, readonly=True).session as session:
        engine = Engine(session)
        with Progress(options) as progress:
            begin(engine, roots, progress)
            policy = _policy(start, engine, None)
            plan = engine.completed(_planned(engine, policy, options))
        if not plan.actions or _has_questions(plan, options):
            return None
        warn_of_new_workspace(options, engine, policy)
        _print_first_run(options, session)
        report(options, roots, session.notices, plan, None)
        confirm_or_exit(options, _first_question(session)(plan))
        return plan


def _refuse_first(start: Start, adjust: Adjust | None) -> None:
    """Raise the error of a first command that is wrong, such as an unknown id, before it creates anything."""
    import click  # here: most runs are no first ones

    options = start.options
    is_quiet, options.quiet = options.quiet, True  # the command itself prints its messages
    try:
        with suppress(click.exceptions.Exit), open_engine(start, readonly=True).session as session:
            engine = Engine(session)
            with Progress(options) as progress:
                begin(engine, start.roots, progress)
                engine.plan(_policy(start, engine, adjust))
    finally:
        options.quiet = is_quiet


def _print_first_run(options: Options, session: Session) -> None:
    """Print what a first run creates, before its plan."""
    show([""] if options.is_following else [])
    options.is_following = False
    show(first_run_lines(session.roots, session.directory, Style.choose(options.color)))


def _run(
    start: Start,
    opening: Opening,
    command: Callable[[], str],
    adjust: Adjust | None,
    confirm: Question | None,
    agreed: Plan | None = None,
) -> int:
    """Run the pass. ``agreed``: the plan that a person has agreed to; if something has changed since, it asks again."""
    options, roots = start.options, start.roots
    engine = begun(start, opening)
    session = engine.session
    if options.is_dry:
        with Progress(options) as progress:
            begin(engine, roots, progress)
            policy = _policy(start, engine, adjust)
            pass_ = _planned(engine, policy, options)
            plan = _completed(engine, pass_, options)
        warn_of_new_workspace(options, engine, policy)
        if plan.actions:
            announce_new_store(options, roots, "a run creates")
        if options.out is not None and plan.granted:
            session.secret_check.keep_key()  # the saved plan names the secrets by fingerprints
        save_plan(options, roots, plan)
        lost, empty = _besides(engine, pass_, options)
        report(
            options,
            roots,
            session.notices,
            plan,
            None,
            is_binding=options.out is not None,
            lost=lost,
            empty=empty,
            losses=_losses(session, pass_),
        )
        report_obstacles(options, session, plan, None)
        return exit_code(plan, None, options)
    with session.exclusively(command(), start.settings.lock_timeout, waiting_callback(options)):
        options.has_finished_runs = session.has_finished_runs
        with Progress(options) as progress:
            begin(engine, roots, progress)
            policy = _policy(start, engine, adjust)
            pass_ = _planned(engine, policy, options)
        plan = pass_.plan
        warn_of_new_workspace(options, engine, policy)
        if agreed is not None and agreed.actions == plan.actions:
            return apply_pass(engine, pass_, options, command(), is_shown=True)
        asks_first = is_interactive(options) and bool(plan.actions) and not options.yes
        if asks_first and (start.is_first or lacks_store(options, roots) or _was_refused(session, pass_)):
            _print_first_run(options, session)
            confirm = confirm or _first_question(session)
        elif plan.actions and not asks_first:
            announce_new_store(options, roots, "creating")
        asks = is_interactive(options) and _has_questions(engine.completed(pass_), options)
        confirms = confirm and (plan.actions or plan.put_off) and not options.yes
        is_shown = False
        questioned: tuple[Item | Conflict, ...] = ()
        if asks or confirms:
            with _ending_without_yes(options) as ended:
                pass_, is_shown, questioned = _answers(engine, pass_, policy, options, confirm, asks=asks)
            if ended:
                return ended[0]
        return apply_pass(engine, pass_, options, command(), is_shown=is_shown, questioned=questioned)


def _first_question(session: Session) -> Question:
    """Return the question of a first run. Below a long plan, it repeats what the top of the screen has said."""
    roots = session.roots
    created = [session.directory] if roots.store_exists else [roots.store, session.directory]

    def question(plan: Plan) -> str:
        if len(plan.actions) < _LONG_PLAN:
            return "Continue?"
        return f"This first run creates {' and '.join(map(short_path, created))}. Continue?"

    return question


def begin(engine: Engine, roots: Roots, progress: Progress) -> None:
    """Bring what is known of both sides up to date, and tell how much there is to read and to plan."""
    if engine.index is None:
        count = sum(map(_entries, (roots.store_conversations, roots.workspace_conversations)))
        progress.show(f"reading about {count} directories", count)
    engine.begin()
    count = len(engine.known.present())
    progress.show(f"planning {count} {roots.noun}s", count)


def _entries(directory: str) -> int:
    try:
        return len(os.listdir(directory))
    except OSError:
        return 0


def _answers(
    engine: Engine, pass_: Pass, policy: Policy, options: Options, confirm: Question | None, *, asks: bool
) -> tuple[Pass, bool, tuple[Item | Conflict, ...]]:
    """Ask what the plan leaves open, and whether to carry it out.

    Return the pass with the answers, whether its plan is on the screen already, and what only the questions printed.
    """
    roots, notices = engine.session.roots, engine.session.notices
    is_shown = False
    questioned: tuple[Item | Conflict, ...] = ()
    if asks:
        policy = replace(policy, allow_secrets=pass_.plan.policy.allow_secrets)  # a new plan allows no others
        plan = engine.completed(pass_)
        if earlier := set(_known_in_part(plan)):
            pass_ = engine.plan(policy, also=earlier)
            plan = engine.completed(pass_)
        conflicts = undecided(plan, options)
        units = {(each.conversation, each.unit) for each in conflicts}
        repeated = (item for item in plan.held if is_repeated(item) or (item.conversation, item.unit) in units)
        questioned = (*repeated, *conflicts)
        report(options, roots, notices, plan, None, is_binding=False, questioned=questioned)
        answered = policy
        if conflicts:
            from .output.conflict_questions import ask_about_conflicts  # here, as below: few runs meet conflicts

            answered = ask_about_conflicts(engine, pass_, policy, options, conflicts)
        answered = ask_about(options, answered, plan.held)
        is_shown = answered == policy
        if answered.accept_bulk > policy.accept_bulk:
            confirm = None  # a person has just said yes to what the run does
        if not is_shown:  # a plan with decisions has only its own items: what stays open is among them
            left = {item.conversation for item in (*plan.held, *plan.aside) if item.conversation}
            pass_ = engine.plan(answered, also=left)
    if confirm and (pass_.plan.actions or pass_.plan.put_off) and not options.yes:
        if not is_shown:
            report(options, roots, notices, engine.completed(pass_), None)
        is_shown = True
        confirm_or_exit(options, confirm(pass_.plan))
    return pass_, is_shown, questioned


def _known_in_part(plan: Plan) -> Iterator[str]:
    """Yield the conversations of items of an earlier run that lack what a question needs.

    That is the fingerprints of secrets, which an answer allows, or both versions of a blocked conflict.
    """
    complete = {(each.conversation, each.unit) for each in plan.conflicts}
    for item in plan.held:
        lacks = item.reason is Reason.CONFLICT_HELD and (item.conversation, item.unit) not in complete
        if item.conversation and (lacks or (item.reason is Reason.SECRET and not item.secrets)):
            yield item.conversation


def _has_questions(plan: Plan, options: Options) -> bool:
    asks = is_question if options.yes else lambda item: is_question(item) or item.reason is Reason.CONFLICT_HELD
    return any(map(asks, plan.held)) or bool(undecided(plan, options))


def undecided(plan: Plan, options: Options) -> list[Conflict]:
    """Return the conflicts that a person may decide now; ``--yes`` leaves them to the rules."""
    if options.yes or not plan.conflicts:
        return []
    from .output.conflict_questions import is_undecided  # here: few runs meet conflicts

    return [conflict for conflict in plan.conflicts if is_undecided(conflict, plan.policy)]


def apply_pass(
    engine: Engine,
    pass_: Pass,
    options: Options,
    command: str,
    *,
    is_shown: bool = False,
    questioned: Collection[Item | Conflict] = (),
) -> int:
    """Carry out a pass with progress on long work, save what is known then, report, and return the exit code.

    ``is_shown``: its plan is on the screen already, and is not printed again, except blocked ``questioned``.
    """
    plan = _completed(engine, pass_, options)
    with Progress(options) as progress:
        outcome = engine.apply(pass_, command, progress.advance, is_saved=True)
    engine.save(pass_, outcome)
    back = way_back(engine.session, plan)
    roots, notices = engine.session.roots, [*engine.session.notices, *_remotes_with_lost(engine.session)]
    losses = _losses(engine.session, pass_)
    report(options, roots, notices, plan, outcome, is_shown=is_shown, questioned=questioned, back=back, losses=losses)
    report_obstacles(options, engine.session, plan, outcome)
    return exit_code(plan, outcome, options)


def _losses(session: Session, pass_: Pass) -> Losses | None:
    """Return what a pass has found to be removed from the workspace."""
    if not pass_.plan.intents:
        return None
    from reconcile.inspect.losses import losses_of  # here: most runs find nothing removed

    return losses_of(session, pass_)


def _remotes_with_lost(session: Session) -> Iterator[str]:
    """Yield how to take from a remote what this run has found to be lost with the store."""
    if session.has_reported_lost:
        from .lost_stores import on_remotes  # here: few stores are lost

        yield from filter(None, [on_remotes(session)])


def report_obstacles(options: Options, session: Session, plan: Plan, outcome: Outcome | None) -> None:
    """Print what prevents reading or writing a side or the state as an error, if a step failed or a side is blocked."""
    is_blocked = any(item.conversation is None and item.reason is Reason.UNREADABLE for item in plan.held)
    if is_blocked or (outcome is not None and outcome.count(Result.FAILED)):
        from reconcile.inspect.access import obstacles_of  # here: most runs have no trouble

        for obstacle in obstacles_of(session):
            hint = f"{obstacle.mend[0]}, then run `reconcile` again"
            print_error(f"{obstacle.path}: {obstacle.found}", hint, as_json=options.json)


def way_back(session: Session, plan: Plan) -> str:
    """Return the command that reverts the run of a plan: `redo` after an undo, else `undo`."""
    if not isinstance(plan.policy.request, UndoRequest):
        return "undo"
    from reconcile.engine.run_history import is_redo  # here: most runs undo nothing

    return "undo" if is_redo(session.state, plan.policy.request.run) else "redo"


def _planned(engine: Engine, policy: Policy, options: Options) -> Pass:
    """Plan. With ``--json`` or ``--out``, the plan is also about what the last one held, set aside or noted.

    A dry run is also about conversations without a state: `status` has a command for those with an empty directory.
    """
    in_full = options.json or options.out is not None
    if options.is_dry and not in_full:
        return engine.plan(policy, also=engine.noteworthy)
    return engine.plan(policy, also=engine.index.spoken_of if in_full and engine.index is not None else ())


def _besides(engine: Engine, pass_: Pass, options: Options) -> tuple[tuple[Lost, ...], int]:
    """Return what was lost with a store, and the number of conversations without a file, for a dry run."""
    if options.json or options.quiet or not pass_.plan.policy.is_unlimited:
        return (), 0
    from .lost_stores import lost_here  # here: a run names neither

    world = pass_.world
    whole = {copy.conversation for copy in (*world.store.copies, *world.workspace.copies) if copy.files}
    empty = {copy.conversation for copy in engine.empty_directories(pass_)} - whole
    return lost_here(engine.session, engine.known.present()), len(empty)


def _completed(engine: Engine, pass_: Pass, options: Options) -> Plan:
    return engine.completed(pass_, with_places=options.json or options.out is not None)


def _policy(start: Start, engine: Engine, adjust: Adjust | None) -> Policy:
    options = start.options
    policy = engine.session.surroundings(policy_of(options, start.settings, selection(engine, options)))
    if options.yes:
        policy = replace(policy, accept_bulk=True)
    return adjust(policy, engine) if adjust else policy


def selection(engine: Engine, options: Options) -> dict[str, frozenset[str]]:
    """Resolve the ids of ``--only`` and ``--below``, and put them in the place of titles, for the journal.

    With what belongs to a record, such as the files beside a session.
    """
    options.only, options.below = (tuple(find_ids(engine, texts)) for texts in (options.only, options.below))
    return {"only": frozenset(with_owned(engine, options.only)), "below": frozenset(with_owned(engine, options.below))}


def selected(engine: Engine, options: Options, survey: Survey) -> frozenset[str] | None:
    """Return the conversations of a listing that ``--only`` and ``--below`` name; None for all."""
    chosen = selection(engine, options)
    if not (chosen["only"] or chosen["below"]):
        return None
    below = [id_ for top in chosen["below"] if top in survey.tree for id_ in survey.tree.descendants(top)]
    return chosen["only"].union(chosen["below"], below)


def top_of(engine: Engine, text: str, survey: Survey) -> str:
    """Return the conversation at the top of a listing, which the user has named."""
    (top,) = find_ids(engine, [text])
    if top not in survey.tree:
        import click  # here: most runs list nothing

        raise click.UsageError(f"{text!r} is archived, so it has no descendants")
    return top


def warn_of_new_workspace(options: Options, engine: Engine, policy: Policy) -> None:
    """Name `recover` where a plain run finds a new ``.jp`` in the place of one that had conversations.

    Where a run could go on from the last one, this is no new one. A project in the user's home may have been moved.
    """
    if options.quiet or policy.request is not None or engine.full_scan is None or _is_gone(engine):
        return
    if lost := had_before(engine, policy):
        options.idle = IDLE
        engine.session.messages.append(f"{lost} can be restored: reconcile recover{options.sides}")
    elif not engine.session.roots.is_in_project and not engine.full_scan.baseline.agreed:
        from reconcile.adapters.claude_code.directories import find_orphans  # here: a first run looks for them

        projects = engine.session.gone()
        gone = [short_path(each) for each in projects if any(find_orphans(engine.session.roots, [each])[1:])]
        if gone:
            which = f"{' and '.join(gone)} {'is' if len(gone) == 1 else 'are'} gone"
            options.idle = IDLE
            engine.session.messages.append(f"{which}; if this project was there: reconcile recover{options.sides}")


def had_before(engine: Engine, policy: Policy) -> str:
    """Return what the previous ``.jp`` had and a new one lacks, in words; empty if there is nothing."""
    if engine.full_scan is None or _is_gone(engine):
        return ""
    session = engine.session
    lost, places = session.lost(engine.full_scan, policy), session.format.places
    elsewhere: Mapping[str, str] = {}
    if lost and not session.roots.is_in_project:
        from reconcile.adapters.claude_code.directories import held_elsewhere  # here, as above

        elsewhere = held_elsewhere(lost, session.roots.workspace)
        lost = frozenset(id_ for id_ in lost if counted_as(id_, places) not in elsewhere)
    count = number_of(lost, places)
    if not lost or (elsewhere and not count):
        return ""  # the notes have gone with the sessions
    what = f"{count} {session.roots.noun}{'' if count == 1 else 's'}" if count else "files"
    return f"{what} of the {'previous .jp' if session.roots.is_in_project else 'previous workspace'}"


def _is_gone(engine: Engine) -> bool:
    return not os.path.lexists(engine.session.project)


def announce_new_store(options: Options, roots: Roots, how: str) -> None:
    """Name the store that a run makes because JP has none for this workspace."""
    if lacks_store(options, roots):
        print_message(options, f"this workspace has no store yet; {how} {roots.store}")


def _was_refused(session: Session, pass_: Pass) -> bool:
    """Tell whether earlier runs have asked and got no yes: there is a state, and neither a run nor a baseline in it."""
    since = session.site.since
    return pass_.full and since is not None and not since.newest and not pass_.world.baseline.agreed


def lacks_store(options: Options, roots: Roots) -> bool:
    """Tell whether JP has no store for this workspace, and none is named.

    It may be that of another user's environment, or of a clone in which JP was never started.
    """
    return roots.format == "jp" and not roots.store_exists and options.store is None


_LONG_PLAN = 10
"""Steps from which the beginning of a plan may have left the screen."""
SYNC_PLAN = '"format": "reconcile.sync-plan/'
"""The beginning of a saved plan of a sync (`reconcile.remote.saved`)."""


def save_plan(options: Options, roots: Roots, plan: Plan) -> None:
    """Save the plan of ``--out``."""
    if options.out is None:
        return
    from reconcile.serialization.plan_json import plan_to_json  # here: most runs save no plan

    text = json.dumps(plan_to_json(plan, workspace=roots.workspace, store=roots.store), indent=2)
    write_plan(options, text + "\n", changes=bool(plan.actions or plan.intents))


def write_plan(options: Options, text: str, *, changes: bool) -> None:
    """Write the text of a plan to the file of ``--out``, or collect it in the turn of a format.

    ``changes``: whether the plan changes something. A file that is no plan isn't overwritten.
    """
    if isinstance(options, Turn):
        options.plans.append((text, changes))
        return
    from reconcile.fs.paths import quoted_path  # here, as below: most runs save no plan

    from .misuse import Misuse

    assert options.out is not None  # noqa: S101 - the caller asked
    if os.path.exists(options.out) and not _is_plan(options.out):
        raise Misuse(f"--out {options.out}: the file exists and is not a plan", "choose another name")
    if os.path.exists(options.out) and not os.path.isfile(options.out):  # a pipe, or a terminal
        with open(options.out, "w", encoding="utf-8") as file:
            file.write(text)
    elif os.path.islink(options.out):
        raise Misuse(f"--out {options.out}: it is a symbolic link", "name the file itself")
    else:
        _replace_plan(options.out, text.encode())
    print_message(options, f"plan saved; apply it: reconcile apply {quoted_path(options.out)}")


def _replace_plan(path: str, content: bytes) -> None:
    """Write a plan, which may have private contents, for its owner only; an older one keeps its mode."""
    from reconcile.errors import ReconcileError
    from reconcile.fs.private_files import FILE_MODE, replace_users_file

    try:
        replace_users_file(path, content, os.stat(path).st_mode if os.path.exists(path) else FILE_MODE)
    except OSError as error:
        raise ReconcileError(f"--out {path}: {error.strerror}", "check the path") from error


def _is_plan(path: str) -> bool:
    if not os.path.isfile(path):  # a pipe, or a terminal: nothing there is overwritten
        return True
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read(200)
    return '"format": "reconcile.plan/' in text or SYNC_PLAN in text
