"""Commands that make one request: ``fork gc local project redo resolve restore rm set-parent undo``.

Each builds a request of `reconcile.model.policy`, or decisions, from its options, and runs one pass with it.
"""

from __future__ import annotations

import os
import re
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, NoReturn, TypeVar
from uuid import uuid4

import click
from msgspec.structs import replace

from reconcile.adapters.claude_code.places import FORMAT, SHARED
from reconcile.adapters.roots import LocateError
from reconcile.model.baseline import AsideKind
from reconcile.model.commands import typed
from reconcile.model.format import EventSelection
from reconcile.model.options import Take
from reconcile.model.plan import Plan, counted_as
from reconcile.model.policy import (
    Children,
    ForkRequest,
    GcRequest,
    LocalRequest,
    ProjectRequest,
    RemoveRequest,
    RestoreRequest,
    SetParentRequest,
    UndoRequest,
)
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import STREAM, WHOLE, Side
from reconcile.model.units import unit_text
from reconcile.state.directory import REMOTES, state_directory

from ..command import PLANS, Command, Several
from ..context import find_ids, find_roots, fixed_format, parts_of_titles, with_owned
from ..misuse import Misuse
from ..options import IDS, RUNS, VERSIONS, command_line, options_of, parse_time
from ..output.errors import ExitCode
from ..output.interaction import confirm_or_exit, is_interactive, may_reach_back, print_message
from ..output.plan_text import report
from ..output.summary import NO_FILE
from ..output.text import format_time, visible
from ..run import run as run_command

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from reconcile.engine.engine import Engine, Pass
    from reconcile.engine.run_history import RunToUndo, UndoToRedo
    from reconcile.engine.session import Session
    from reconcile.errors import ReconcileError
    from reconcile.model.policy import Policy
    from reconcile.state.database import State
    from reconcile.state.journal import Run

    from ..arguments import Options
    from ..run import Adjust, Question

_F = TypeVar("_F", "RunToUndo", "UndoToRedo")


@click.command(
    "fork",
    cls=Command,
    names={"conversation": "ids"},
    accepts=PLANS,
    examples=(
        ("reconcile fork jp-c17780300000 --last 1", "Create a fork with the last turn of a conversation."),
        (
            'reconcile fork jp-c17780300000 --until 2026-05-14 --title "Second try"',
            "Create a fork with the events up to this day.",
        ),
    ),
)
@click.argument("conversation", metavar="ID", shell_complete=IDS)
@click.option("--from", "start", metavar="T", help="Copy events since T: 2026-01-31, 2026-01-31T12:00:00Z, 3d.")
@click.option("--until", "end", metavar="T", help="Copy events up to T; of Claude Code, also the uuid of a line.")
@click.option("--last", type=click.IntRange(min=0), metavar="N", help="Copy the last N turns; 0: none.")
@click.option("--title", help="Title of the fork (default: the source's).")
@click.option("--local", is_flag=True, help="Keep it out of the workspace.")
@click.pass_context
def fork(
    context: click.Context,
    conversation: str,
    start: str | None,
    end: str | None,
    last: int | None,
    title: str | None,
    local: bool,
) -> None:
    """Create a fork of a conversation, with all or some events.

    A fork is a conversation of its own, with a new id. It is a child of ID, and is published below it if the workspace
    has ID. A fork of a session of Claude Code is a session, which begins with the lines of ID.
    """
    if title is not None and any("\udc80" <= char <= "\udcff" for char in title):
        raise click.UsageError("--title: the title is not UTF-8")
    now_ns = time.time_ns()
    event = end.lower() if end is not None and _UUID.fullmatch(end) else None
    part = EventSelection(parse_time(start, now_ns), None if event else parse_time(end, now_ns), last, event)

    def adjust(policy: Policy, engine: Engine) -> Policy:
        (source,) = _chosen(context, engine, "conversation", conversation)
        if engine.session.format.places is not None:
            return replace(policy, request=ForkRequest(source, part, title, local, uuid=str(uuid4())))
        if event is not None:
            raise click.UsageError(f"--until {end}: {engine.session.format.name} events have no id; name a time")
        return replace(policy, request=ForkRequest(source, part, title, local))

    _run(context, adjust)


@click.command(
    "gc",
    cls=Command,
    several=Several.OWN,
    accepts=(*PLANS, "only", "below", "allow_bulk_removal", "yes"),
    examples=(
        ("reconcile gc --dry-run", "Show which conversations have expired."),
        ("reconcile gc", "Remove them."),
    ),
)
@click.pass_context
def gc(context: click.Context) -> None:
    """Remove expired conversations from both sides.

    Removes a conversation only if all of its descendants have expired too, and none is open in a JP terminal. The vault
    keeps what is removed.
    """

    def adjust(policy: Policy, engine: Engine) -> Policy:
        return replace(policy, request=GcRequest(engine.session.open_in_terminals(engine.world)))

    _run(context, adjust)


@click.command(
    "local",
    cls=Command,
    names={"ids": "ids"},
    accepts=(*PLANS, "only", "below", "prefer", "allow_bulk_removal", "yes"),
    examples=(
        ("reconcile local jp-c17780300000 --dry-run", "Show what would be removed from the workspace."),
        ("reconcile local jp-c17780300000", "Keep a conversation in the store only."),
    ),
)
@click.argument("ids", nargs=-1, required=True, metavar="ID...", shell_complete=IDS)
@click.pass_context
def local(context: click.Context, ids: tuple[str, ...]) -> None:
    """Remove conversations from the workspace, keep them local.

    No run publishes a local conversation, in any checkout, until `reconcile project`. Nested conversations and files
    are removed with it and restored by `reconcile project`. Saves everything in the store first, and leaves a directory
    that it can't save; a later run tries again. Commits that have the conversation stay in git's history.
    """
    _choose_folder(context)

    def adjust(policy: Policy, engine: Engine) -> Policy:
        chosen = with_owned(engine, _chosen(context, engine, "ids", ids))
        here = engine.known.sides[Side.WORKSPACE]
        inside = [here.paths[path] for id_ in chosen for top in here.paths_of(id_) for path in here.within(top)]
        _warn_of_history(engine, tuple(dict.fromkeys((*chosen, *inside))))
        return replace(policy, request=LocalRequest(chosen))

    _run(context, adjust)


@click.command(
    "project",
    cls=Command,
    names={"ids": "ids"},
    several=Several.FIRST,
    accepts=(*PLANS, "only", "below", "prefer", "allow_bulk_removal", "yes"),
    examples=(
        ("reconcile project jp-c17780500000", "Publish a conversation of the store."),
        ("reconcile project --behind", "Update all outdated workspace copies from the store."),
    ),
)
@click.argument("ids", nargs=-1, metavar="ID...", shell_complete=IDS)
@click.option("--all", "everything", is_flag=True, help="Everything that isn't local.")
@click.option("--behind", is_flag=True, help="Update all outdated workspace copies from the store.")
@click.option("--with-ancestors", is_flag=True, help="Also publish missing parents (needed for the nesting).")
@click.pass_context
def project(context: click.Context, ids: tuple[str, ...], everything: bool, behind: bool, with_ancestors: bool) -> None:
    """Publish conversations to the workspace.

    The workspace is committed to git. Children that `local` removed with them are published too. Misplaced
    directories are moved to their place in the tree.
    """
    if bool(ids) + everything + behind != 1:
        raise Misuse(
            "reconcile project: name conversations, or --all, or --behind",
            "list the conversations that are not published: reconcile status -v",
        )
    # The user didn't choose what --all finds: only --with-ancestors makes a local ancestor public then.
    ancestors = with_ancestors or (options_of(context).yes and not everything)
    is_shared = _choose_folder(context)

    def adjust(policy: Policy, engine: Engine) -> Policy:
        chosen = with_owned(engine, _chosen(context, engine, "ids", ids))
        # A branch without sessions has an empty folder, or none.
        records = () if is_shared else None
        return replace(policy, request=ProjectRequest(chosen, everything, behind, ancestors, records))

    code = run_command(options_of(context), partial(command_line, context), adjust)
    if is_shared:
        from ..scope.shared import prepare_commit

        prepare_commit(options_of(context), is_published=code == ExitCode.DONE)
    context.exit(code)


@click.command(
    "resolve",
    cls=Command,
    names={"ids": "ids"},
    accepts=(*PLANS, "only", "below", "allow_bulk_removal", "yes"),
    examples=(
        ("reconcile resolve jp-c17780300000 --take workspace", "Keep the version of the workspace on both sides."),
        ("reconcile resolve --all --take both", "Keep all newer versions, and each older one as a fork."),
    ),
)
@click.argument("ids", nargs=-1, metavar="ID...", shell_complete=IDS)
@click.option(
    "--all", "everything", is_flag=True, help="All conflicts, and every conversation that is blocked or left alone."
)
@click.option(
    "--take",
    type=click.Choice(["store", "workspace", "both"]),
    help="The version to keep; the other is only saved. both: the newer events, and the others as a fork.",
)
@click.option("--keep", is_flag=True, help="Leave both sides alone until one changes.")
@click.option("--allow-secrets", is_flag=True, help="Publish it with the secrets that were found in it.")
@click.pass_context
def resolve(
    context: click.Context, ids: tuple[str, ...], everything: bool, take: str | None, keep: bool, allow_secrets: bool
) -> None:
    """Settle conflicts and blocked conversations.

    Puts the chosen version on both sides. With `--take store` or `--take workspace`, the other version is only saved.
    With `--take both`, the newer events stay, and the others become a fork. With --allow-secrets, the secrets that
    block a conversation are allowed from now on in this store.
    """
    if bool(ids) == everything:
        raise Misuse("reconcile resolve: name conversations, or --all", "list what needs a decision: reconcile status")
    if (take is not None) + keep + allow_secrets != 1:
        raise Misuse(
            "reconcile resolve: choose one: --take store, --take workspace, --take both, --keep, or --allow-secrets",
            "see both versions first: reconcile diff ID",
        )
    if allow_secrets and everything:
        raise Misuse("reconcile resolve: --allow-secrets needs named conversations", "list them: reconcile status")
    decision = None if allow_secrets else Take.KEEP if keep else Take(take or "")

    def adjust(policy: Policy, engine: Engine) -> Policy:
        chosen = _chosen(context, engine, "ids", ids)
        if everything:
            plan = engine.completed(engine.plan(policy))
            open_ones = [item.conversation for item in (*plan.held, *plan.aside) if item.conversation]
            chosen = tuple(dict.fromkeys([*(each.conversation for each in plan.conflicts), *open_ones]))
            if not chosen:
                nothing, session = Plan(layout=policy.layout.value, policy=policy), engine.session
                report(options_of(context), session.roots, session.notices, nothing, None)
                raise click.exceptions.Exit(ExitCode.DONE)
        else:
            if not policy.is_unlimited:  # what is named is looked at, too
                policy = replace(policy, only=policy.only | frozenset(chosen))
            _name_undisputed(options_of(context), engine, chosen, policy)
        if decision is None:
            waiting = with_owned(engine, chosen)  # without a secret of their own
            return replace(policy, allow_secrets=dict.fromkeys(chosen), only=policy.only | frozenset(waiting))
        if decision is Take.BOTH and not everything:
            _refuse_both(engine, chosen, policy)
        _name_decided(options_of(context), engine, chosen, policy, take)
        return replace(policy, decisions=dict.fromkeys(chosen, decision), only=policy.only | frozenset(chosen))

    _run(context, adjust)


def _refuse_both(engine: Engine, conversations: Collection[str], policy: Policy) -> None:
    """Raise `Misuse` if a conversation has conflicts, but none in its events: only of these can both versions stay."""
    conflicts = engine.plan(policy, also=conversations).plan.conflicts
    for id_ in conversations:
        units = {each.unit for each in conflicts if each.conversation == id_}
        if units and STREAM not in units:
            named, resolve = " and ".join(sorted(map(unit_text, units))), f"reconcile resolve {typed(id_)} --take"
            raise Misuse(
                f"resolve: only events can be kept in both versions, and the conflict of {id_} is in its {named}",
                f"choose one: {resolve} store\nor: {resolve} workspace",
            )


def _name_undisputed(options: Options, engine: Engine, conversations: Collection[str], policy: Policy) -> None:
    """Print which of these conversations have nothing to decide or to sync, and the commands for those with conflicts.

    A side can be chosen of a conversation that only one side has changed.
    """
    pass_ = engine.plan(policy, also=conversations)
    plan, asides = engine.completed(pass_), pass_.world.baseline.asides
    ids = [item.conversation for item in (*plan.held, *plan.aside) if item.conversation is not None]
    ids += [*(each.conversation for each in plan.conflicts), *(action.conversation for action in plan.actions)]
    places = engine.session.format.places
    open_ones = {counted_as(id_, places) for id_ in ids}
    settled = [id_ for id_ in conversations if counted_as(id_, places) not in open_ones]
    marked = [id_ for id_ in settled if (record := asides.get((id_, WHOLE))) and record.kind is AsideKind.UNDONE]
    for id_ in marked:
        print_message(options, f"{id_} was left alone after an undo; runs sync it again now")
        options.idle = "Done."
    hidden = _unreadable(engine, pass_, policy, settled)
    for id_ in hidden:
        print_message(options, f"{id_} cannot be read, see below; make it readable, then run `reconcile` again")
    settled = [id_ for id_ in settled if id_ not in (*marked, *hidden)]
    for id_ in settled:
        print_message(options, f"{id_} has no conflict, and is not blocked")
    if not settled:
        return
    named = list(dict.fromkeys((each.conversation, each.title) for each in plan.conflicts))
    for id_, title in named[:_NAMED]:
        about = f"{id_} ({visible(title)})" if title else id_
        print_message(options, f"{about} has a conflict: reconcile resolve {typed(id_)} --take SIDE{options.sides}")
    if (more := len(named) - _NAMED) > 0:
        print_message(options, f"{more} more have a conflict: reconcile status{options.sides}")


def _unreadable(engine: Engine, pass_: Pass, policy: Policy, conversations: Collection[str]) -> list[str]:
    """Return those that a side may have in a part that can't be read."""
    if not any(item.reason is Reason.UNREADABLE for item in pass_.plan.held):
        return []
    presences = engine.decide(pass_, policy).presences
    return [id_ for id_ in conversations if id_ in presences and presences[id_].state == "unreadable"]


def _name_decided(
    options: Options, engine: Engine, conversations: Collection[str], policy: Policy, take: str | None
) -> None:
    """Print how runs have decided conflicts of these conversations, if not for what is to be taken now."""
    from reconcile.inspect.conversation import decided_conflicts

    found = [each for id_ in conversations for each in decided_conflicts(engine.session, id_)]
    if against := [each for each in found if take in (each.winner.other.value, Take.BOTH.value)]:
        views = engine.decide(engine.plan(policy, also=conversations), policy).views
        for each in against:
            if each.conversation in views and not each.is_back(views[each.conversation]):
                print_message(options, f"{each.conversation}: {each.words}")


@click.command(
    "restore",
    cls=Command,
    names={"version": "versions"},
    accepts=PLANS,
    examples=(
        ("reconcile restore jp-c17780300000@20260515-100000-00 --dry-run", "Show what would be restored."),
        ("reconcile restore jp-c17780300000@20260515-100000-00", "Restore the conversation as it was before this run."),
    ),
)
@click.argument("version", shell_complete=VERSIONS)
@click.pass_context
def restore(context: click.Context, version: str) -> None:
    """Restore a saved version on both sides.

    VERSION is ID@RUN, ID@RUN:metadata, ID@RUN:events, or the beginning of a hash. ID@RUN is the conversation as it was
    before RUN replaced or removed it. ID@REMOTE:COMMIT is the one that a remote had: `reconcile show ID@REMOTE` lists
    the commits. With ID alone, restores its saved version. If there are several, lists the command for each. The vault
    keeps the versions that are replaced now.
    A removed conversation is restored to the store only; `reconcile project ID` publishes it.
    """
    from ..saved_versions import version_name

    sides = options_of(context).sides

    def adjust(policy: Policy, engine: Engine) -> Policy:
        context.params["version"] = name = version_name(engine, version, sides)
        return replace(policy, request=RestoreRequest(name))

    _run(context, adjust)


@click.command(
    "rm",
    cls=Command,
    names={"ids": "ids"},
    accepts=(*PLANS, "only", "below", "allow_bulk_removal", "yes"),
    examples=(
        ("reconcile rm jp-c17779500000 --cascade --dry-run", "Show what would be removed with a conversation."),
        ("reconcile rm jp-c17780500000 --yes", "Remove a conversation, and do not ask."),
    ),
)
@click.argument("ids", nargs=-1, required=True, metavar="ID...", shell_complete=IDS)
@click.option("--cascade", is_flag=True, help="Also remove their descendants.")
@click.option("--promote", is_flag=True, help="Move their children up to the removed one's parent.")
@click.pass_context
def rm(context: click.Context, ids: tuple[str, ...], cascade: bool, promote: bool) -> None:
    """Remove conversations from both sides.

    Asks first. The vault keeps what is removed, and `reconcile undo` restores it. A conversation with children needs
    --cascade or --promote. With --yes, takes no part of a title. Also removes a conversation that was lost with its
    store from the list of lost ones.
    """
    from reconcile.engine.versions import lost_with_store

    if cascade and promote:
        raise click.UsageError("choose one: --cascade or --promote")
    options = options_of(context)
    children = Children.CASCADE if cascade else Children.PROMOTE if promote else Children.REFUSE

    def adjust(policy: Policy, engine: Engine) -> Policy:
        session = engine.session
        in_lost_store = {lost.conversation for lost in lost_with_store(session, engine.known.present())}
        dropped = {text: id_ for text in ids if (id_ := session.format.parse_id(text)) in in_lost_store}
        texts = [text for text in ids if text not in dropped]
        if options.yes and not options.is_dry:
            _refuse_parts_of_titles(context, engine, texts)
        context.params["ids"] = chosen = tuple(dict.fromkeys(find_ids(engine, texts)))
        if dropped and not session.readonly:
            confirm_or_exit(options, f"Remove {', '.join(dropped)} from the list of what was lost with a store?")
            session.state.remove_lost(dropped.values())
            options.nothing = "the list of what was lost was changed, but nothing else"
        words = "would not be listed any more" if session.readonly else "not listed any more"
        session.remarks += [f"{text}: lost with a store, {words}" for text in dropped]
        _warn_of_history(engine, chosen)
        return replace(policy, request=RemoveRequest(chosen, children))

    _run(context, adjust, lambda _: "Remove them from both sides?")


def _refuse_parts_of_titles(context: click.Context, engine: Engine, texts: list[str]) -> None:
    """Raise `Misuse` if a text is only a part of a title: with --yes, no question shows whose title it is."""
    parts = parts_of_titles(engine, texts)
    if not parts:
        return
    text, (id_, title) = next(iter(parts.items()))
    context.params["ids"] = tuple(parts[text][0] if text in parts else text for text in context.params["ids"])
    raise Misuse(
        f"{text!r} is only a part of the title {title!r} ({id_}); --yes needs an id or a whole title",
        command_line(context) + options_of(context).sides,
    )


@click.command(
    "set-parent",
    cls=Command,
    names={"conversation": "ids", "parent": "ids"},
    accepts=PLANS,
    examples=(
        ("reconcile set-parent jp-c17780300000 jp-c17779500000", "Move a conversation below another."),
        ("reconcile set-parent jp-c17780300000 --none", "Make it a root."),
    ),
)
@click.argument("conversation", metavar="ID", shell_complete=IDS)
@click.argument("parent", required=False, shell_complete=IDS)
@click.option("--none", is_flag=True, help="Make it a root, without a parent.")
@click.pass_context
def set_parent(context: click.Context, conversation: str, parent: str | None, none: bool) -> None:
    """Move a conversation below another, or make it a root.

    Makes ID a child of PARENT, or with --none a root. Its descendants move too.
    """
    if none == (parent is not None):
        raise click.UsageError("choose one: a parent, or --none")

    def adjust(policy: Policy, engine: Engine) -> Policy:
        (child,) = _chosen(context, engine, "conversation", conversation)
        above = None if parent is None else _chosen(context, engine, "parent", parent)[0]
        return replace(policy, request=SetParentRequest(child, above))

    _run(context, adjust)


@click.command(
    "undo",
    cls=Command,
    names={"run": "runs"},
    several=Several.NEWEST,
    accepts=(*PLANS, "only", "below", "allow_bulk_removal", "yes"),
    examples=(
        ("reconcile undo --dry-run", "Show what undoing the last run would do."),
        ("reconcile undo", "Undo the last run."),
    ),
)
@click.argument("run", required=False, shell_complete=RUNS)
@click.pass_context
def undo(context: click.Context, run: str | None) -> None:
    """Undo a run.

    RUN is an id that `reconcile log` lists; without RUN, the latest run that has changed files or reconcile's record,
    and is not undone yet. Prints the run, and asks at a terminal. A second undo in a row goes back to an older run, and
    without a terminal it needs RUN or --yes. Skips each conversation that has changed since the run.

    An undo is a run too, and can be undone. A later run does not repeat an undone change, until a side
    changes or you resolve it.
    """
    from reconcile.engine import run_history
    from reconcile.engine.run_history import NoRunError

    options = options_of(context)
    before: list[Run | None] = []
    cut_short: list[Run] = []

    def choose(state: State, project: str) -> RunToUndo:
        if run is None:  # an empty text names none
            return run_history.newest_run(state, project)
        return run_history.RunToUndo(run_history.find_run(state, run), None)

    def announce(session: Session, to_undo: RunToUndo) -> None:
        if (last := to_undo.after) is not None:
            if not may_reach_back(options):
                raise to_undo.older_run_error()
            message = f"run {last.undoes} is already undone, by {last.id}; this undo reaches further back"
            print_message(options, f"{message}, to run {to_undo.run.id}")
            print_message(options, f"to redo {last.undoes}: reconcile redo")
        _print_past_run(options, "undo", session, to_undo.run)

    def adjust(policy: Policy, engine: Engine) -> Policy:
        session = engine.session
        try:
            to_undo = choose(session.state, session.project)
        except NoRunError as error:
            raise (None if run is not None else _only_moved(session)) or error from error
        announce(session, to_undo)
        if (killed := run_history.cut_short_before(session.state, session.project, to_undo.run)) is not None:
            cut_short.append(killed)
            message = f"it did the rest of {killed.id}, which was interrupted; this undo does not reverse that run"
            print_message(options, message)
        before.append(run_history.run_before(session.state, session.project, to_undo.run))
        return replace(policy, request=UndoRequest(to_undo.run.id))

    # Without a terminal the command needs no confirmation: the vault keeps everything that an undo removes.
    def question(plan: Plan) -> str:
        before.clear()  # the person decides
        return _question("Undo", plan)

    _undo_sync(context, choose, announce, question)
    code = run_command(options, partial(command_line, context), adjust, question if is_interactive(options) else None)
    if code == ExitCode.HELD and run is None and before and before[-1] is not None:
        print_message(options, f"to undo the earlier run instead: reconcile undo {before[-1].id}")
    if code == ExitCode.DONE and cut_short and not options.is_dry:
        print_message(options, f"undo that run, too: reconcile undo {cut_short[-1].id}")
    context.exit(code)


def _undo_sync(
    context: click.Context,
    choose: Callable[[State, str], _F],
    announce: Callable[[Session, _F], None],
    question: Question,
) -> None:
    """End the command with the undo or redo of a sync, if the chosen run is one.

    Raises:
        NoRunError: no run was in this store yet.
    """
    options = options_of(context)
    try:
        roots = find_roots(options)
    except LocateError:  # the command itself reports it
        return
    state = state_directory(roots.key, os.environ, sys.platform)
    if not os.path.lexists(state):  # no run was here, and a refusal creates nothing
        from reconcile.state.database import State

        with State.open(state, readonly=True) as nothing:
            choose(nothing, roots.project)
    if os.path.isdir(os.path.join(state, REMOTES)):
        from ..remotes.undoing import undo_sync  # here: most stores have no remote

        code = undo_sync(options, command_line(context), roots, state, choose, announce, question)
        if code is not None:
            context.exit(code)


def _only_moved(session: Session) -> ReconcileError | None:
    """Return the error for a project in which only `recover` has done something: it has moved sessions there."""
    here = session.state.load(session.checkout).agreed.keys()
    source = next((project for project, had in session.gone().items() if here & had), None)
    if session.roots.is_in_project or source is None:
        return None
    from reconcile.engine.run_history import NoRunError  # here: few undo nothing

    message = f"the sessions of {source} were moved here, and undo doesn't move them back"
    return NoRunError(message, "rename the project back; then `reconcile recover` moves them there")


@click.command(
    "redo",
    cls=Command,
    names={"run": "runs"},
    several=Several.NEWEST,
    accepts=(*PLANS, "only", "below", "allow_bulk_removal", "yes"),
    examples=(
        ("reconcile undo", "Undo the last run."),
        ("reconcile redo", "Repeat it after all."),
    ),
)
@click.argument("run", required=False, shell_complete=RUNS)
@click.pass_context
def redo(context: click.Context, run: str | None) -> None:
    """Repeat a run that was undone.

    Repeats RUN; without RUN, the run that was undone last. Prints the run, and asks at a terminal. After another run it
    goes back to an older undo, and without a terminal it needs RUN or --yes. Skips each conversation that has changed
    since the undo.

    A redo is the undo of an undo, and can be undone.
    """
    from reconcile.engine import run_history

    options = options_of(context)

    def choose(state: State, project: str) -> UndoToRedo:
        if run is None:
            return run_history.newest_undo(state, project)
        return run_history.find_undo(state, run)

    def announce(session: Session, to_redo: UndoToRedo) -> None:
        undone = to_redo.run
        if to_redo.after:
            if not may_reach_back(options):
                raise to_redo.older_run_error()
            print_message(options, f"{to_redo.after}; this redo reaches further back, to an older undo, {undone.id}")
        _print_past_run(options, "redo", session, to_redo.origin)

    def adjust(policy: Policy, engine: Engine) -> Policy:
        to_redo = choose(engine.session.state, engine.session.project)
        announce(engine.session, to_redo)
        return replace(policy, request=UndoRequest(to_redo.run.id))

    question = partial(_question, "Redo")
    _undo_sync(context, choose, announce, question)
    _run(context, adjust, question if is_interactive(options) else None)


def _question(verb: str, plan: Plan) -> str:
    """Return the question before an undo or a redo, with the number of conversations that it leaves as they are."""
    count = sum(item.reason is Reason.WRITTEN_SINCE for item in plan.held)
    if not count:
        return f"{verb} this run?"
    return f"{verb} this run, except the {count} blocked conversation{'' if count == 1 else 's'}?"


def _print_past_run(options: Options, verb: str, session: Session, run: Run) -> None:
    from reconcile.engine.run_history import remote_of

    from .log import step_counts

    is_sync = remote_of(session.state, run) is not None and run.undoes is None
    steps = session.state.journal.steps(run.id)
    counts = step_counts(session, steps, is_sync=is_sync)
    words = f"{verb} of {run.id}, {format_time(run.started_ns)}: {run.command} ({counts})"
    print_message(options, words, is_past=True)
    if not steps:  # the record is reset all the same
        options.idle = NO_FILE


_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NAMED = 5
"""Number of conversations that messages name."""


def _chosen(context: click.Context, engine: Engine, name: str, texts: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return the ids that an argument names, each once, and put them in its place, for the journal."""
    found = tuple(dict.fromkeys(find_ids(engine, [texts] if isinstance(texts, str) else texts)))
    context.params[name] = found[0] if isinstance(texts, str) else found
    return found


def _choose_folder(context: click.Context) -> bool:
    """Choose the folder of the repository as the workspace, for sessions of the user's home; tell whether it is."""
    options = options_of(context)
    here = fixed_format(options)
    if here == FORMAT:
        from ..scope.shared import save_first

        save_first(options)
        options.format = SHARED
    return options.format == SHARED


def _run(context: click.Context, adjust: Adjust, confirm: Question | None = None) -> NoReturn:
    context.exit(run_command(options_of(context), partial(command_line, context), adjust, confirm))


def _warn_of_history(engine: Engine, conversations: Collection[str]) -> None:
    """Add a message for each of the conversations that git has, in a commit or in its index."""
    session = engine.session
    records = session.git_records(conversations)
    if records is None:
        session.remarks.append("git gave no answer whether a commit has it; git log --all shows its history")
        return
    named = {id_: records[id_] for id_ in conversations if id_ in records}
    session.remarks += [f"{id_}: {record.words}" for id_, record in list(named.items())[:_NAMED]]
    if len(named) > _NAMED:
        session.remarks.append(f"{len(named) - _NAMED} more are in git (see reconcile doctor)")
    if named:
        session.remarks.append("commits stay in git's history, which reconcile does not change")
