"""Commands that make one request: ``fork gc local project redo resolve restore rm set-parent undo``.

Each builds a request of `reconcile.model.policy`, or decisions, from its options, and runs one pass with it.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NoReturn

import click
from msgspec.structs import replace

from reconcile.model.format import EventSelection
from reconcile.model.options import Take
from reconcile.model.plan import Plan
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
from reconcile.model.snapshot import Side

from ..context import find_ids
from ..options import command_line, common_options, options_of, parse_time
from ..output.errors import ExitCode
from ..output.interaction import is_interactive, print_message
from ..output.plan_text import report
from ..output.text import format_time
from ..run import run as run_command

if TYPE_CHECKING:
    from collections.abc import Collection

    from reconcile.engine.engine import Engine
    from reconcile.engine.session import Session
    from reconcile.model.policy import Policy
    from reconcile.state.journal import Run

    from ..arguments import Options
    from ..run import Adjust


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
def fork(
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
    part = EventSelection(parse_time(start, now_ns), parse_time(end, now_ns), last)

    def adjust(policy: Policy, engine: Engine) -> Policy:
        (source,) = find_ids(engine, [conversation])
        return replace(policy, request=ForkRequest(source, part, title, local))

    _run(context, adjust)


@click.command(name="gc")
@common_options
@click.pass_context
def gc(context: click.Context) -> None:
    """Remove conversations that have expired from the store and the workspace; they stay in the vault.

    A conversation goes only when everything below it has expired as well, and none of it is open in a terminal of JP's.
    """

    def adjust(policy: Policy, engine: Engine) -> Policy:
        return replace(policy, request=GcRequest(engine.session.open_in_terminals(engine.world)))

    _run(context, adjust)


@click.command(name="local")
@common_options
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.pass_context
def local(context: click.Context, ids: tuple[str, ...]) -> None:
    """Take conversations out of the workspace, and keep them out of every checkout.

    Everything in their directories goes along, and comes back with them (`reconcile project`). All of it is saved in
    the store first; if something can't be, its directory stays. The conversation is local at once, and its directory
    leaves with the first run that can take it out. What was committed stays in git's history.
    """

    def adjust(policy: Policy, engine: Engine) -> Policy:
        chosen = tuple(dict.fromkeys(find_ids(engine, ids)))
        _warn_of_history(engine, chosen)
        return replace(policy, request=LocalRequest(chosen))

    _run(context, adjust)


@click.command(name="project")
@common_options
@click.argument("ids", nargs=-1, metavar="ID...")
@click.option("--all", "everything", is_flag=True, help="Everything that isn't local.")
@click.option("--behind", is_flag=True, help="Replace every older version that is set aside by the store's.")
@click.option("--with-ancestors", is_flag=True, help="Also what they lie below and isn't here; it becomes public.")
@click.pass_context
def project(context: click.Context, ids: tuple[str, ...], everything: bool, behind: bool, with_ancestors: bool) -> None:
    """Put conversations into the workspace, which is committed to git; what waits below them comes back.

    Also moves a directory to its place that somebody else has moved.
    """
    if bool(ids) + everything + behind != 1:
        raise click.UsageError("name conversations, or --all, or --behind")
    # The user didn't choose what --all finds: only --with-ancestors makes a local ancestor public then.
    ancestors = with_ancestors or (options_of(context).yes and not everything)

    def adjust(policy: Policy, engine: Engine) -> Policy:
        chosen = tuple(dict.fromkeys(find_ids(engine, ids)))
        return replace(policy, request=ProjectRequest(chosen, everything, behind, ancestors))

    _run(context, adjust)


@click.command(name="resolve")
@common_options
@click.argument("ids", nargs=-1, metavar="ID...")
@click.option("--all", "everything", is_flag=True, help="Every conversation that is held or set aside.")
@click.option(
    "--take",
    type=click.Choice(["store", "workspace", "both"]),
    help="The version that stays; both: the newer one, and the other's events as a forked child.",
)
@click.option("--keep", is_flag=True, help="Leave both sides as they are until one changes.")
@click.pass_context
def resolve(context: click.Context, ids: tuple[str, ...], everything: bool, take: str | None, keep: bool) -> None:
    """Decide what is held or set aside: the other version stays in the vault (both: as a forked child)."""
    if bool(ids) == everything:
        raise click.UsageError("name conversations, or --all")
    if (take is None) != keep:
        raise click.UsageError("choose one: --take store, --take workspace, --take both, or --keep")
    decision = Take.KEEP if keep else Take(take or "")

    def adjust(policy: Policy, engine: Engine) -> Policy:
        chosen = find_ids(engine, ids)
        if everything:
            plan = engine.completed(engine.plan(policy))
            chosen = [item.conversation for item in (*plan.held, *plan.aside) if item.conversation]
            if not chosen:
                nothing, session = Plan(layout=policy.layout.value, policy=policy), engine.session
                report(options_of(context), session.roots, session.notices, nothing, None)
                raise click.exceptions.Exit(ExitCode.DONE)
        _name_decided(options_of(context), engine, chosen, policy, take)
        return replace(policy, decisions=dict.fromkeys(chosen, decision), only=policy.only | frozenset(chosen))

    _run(context, adjust)


def _name_decided(
    options: Options, engine: Engine, conversations: Collection[str], policy: Policy, take: str | None
) -> None:
    """Print how runs have decided conflicts of these conversations, if not for the side that is to be taken now."""
    from reconcile.inspect.conversation import decided_conflicts

    found = [each for id_ in conversations for each in decided_conflicts(engine.session, id_)]
    if against := [each for each in found if take == each.winner.other.value]:
        views = engine.decide(engine.plan(policy, also=conversations), policy).views
        for each in against:
            if each.conversation in views and not each.is_back(views[each.conversation]):
                print_message(options, f"{each.conversation}: {each.words}")


@click.command(name="restore")
@common_options
@click.argument("version")
@click.pass_context
def restore(context: click.Context, version: str) -> None:
    """Make VERSION what both sides hold: ID@RUN, ID@RUN:metadata, ID@RUN:stream, or the beginning of a digest.

    ID@RUN is the conversation as RUN found it, where RUN replaced or removed it. What is replaced now goes into the
    vault in turn. A conversation that is gone is made again in the store alone.
    """

    def adjust(policy: Policy, _: Engine) -> Policy:
        return replace(policy, request=RestoreRequest(version))

    _run(context, adjust)


@click.command(name="rm")
@common_options
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("--cascade", is_flag=True, help="Also everything below them.")
@click.option("--promote", is_flag=True, help="Their children get the parent of the removed one, or none.")
@click.pass_context
def rm(context: click.Context, ids: tuple[str, ...], cascade: bool, promote: bool) -> None:
    """Remove conversations from the store and the workspace; they stay in the vault, and can be undone.

    One that has children is refused unless --cascade or --promote says what becomes of them. Asks first. One that was
    lost with a store is not listed as lost any more.
    """
    from reconcile.engine.versions import lost_with_store

    if cascade and promote:
        raise click.UsageError("choose one: --cascade or --promote")
    children = Children.CASCADE if cascade else Children.PROMOTE if promote else Children.REFUSE

    def adjust(policy: Policy, engine: Engine) -> Policy:
        session = engine.session
        in_lost_store = {lost.conversation for lost in lost_with_store(session, engine.known.present())}
        dropped = {text: id_ for text in ids if (id_ := session.format.parse_id(text)) in in_lost_store}
        if dropped and not session.readonly:
            session.state.remove_lost(dropped.values())
            session.remarks += [f"{text}: it was lost with a store, and is not listed any more" for text in dropped]
        chosen = find_ids(engine, [text for text in ids if text not in dropped])
        _warn_of_history(engine, chosen)
        return replace(policy, request=RemoveRequest(tuple(dict.fromkeys(chosen)), children))

    _run(context, adjust, "Remove them from both sides?")


@click.command(name="set-parent")
@common_options
@click.argument("conversation", metavar="ID")
@click.argument("parent", required=False)
@click.option("--none", is_flag=True, help="No parent: it becomes a root.")
@click.pass_context
def set_parent(context: click.Context, conversation: str, parent: str | None, none: bool) -> None:
    """Make ID a child of PARENT, or with --none a root; everything below it moves along."""
    if none == (parent is not None):
        raise click.UsageError("choose one: a parent, or --none")

    def adjust(policy: Policy, engine: Engine) -> Policy:
        child, *parents = find_ids(engine, [conversation, *([] if parent is None else [parent])])
        return replace(policy, request=SetParentRequest(child, parents[0] if parents else None))

    _run(context, adjust)


@click.command(name="undo")
@common_options
@click.argument("run", required=False)
@click.pass_context
def undo(context: click.Context, run: str | None) -> None:
    """Put back what RUN did (`reconcile log` lists the runs); without RUN, the newest that isn't undone.

    It prints the run, and asks at a terminal. A second undo in a row reverts an older run: that needs a yes, at the
    terminal or with `--yes`, or the name of the run. `reconcile redo` repeats a run that was undone.

    It is a run of its own, and can be undone. What somebody has written since is refused, conversation by
    conversation. What was undone stays so until a side changes, or `reconcile resolve`.
    """
    from reconcile.engine.run_history import RunToUndo, find_run, newest_run

    options = options_of(context)

    def adjust(policy: Policy, engine: Engine) -> Policy:
        session = engine.session
        found = (
            newest_run(session.state, session.project) if run is None else RunToUndo(find_run(session.state, run), None)
        )
        if (last := found.after) is not None:
            if not (options.yes or is_interactive(options)):
                raise found.older_run_error()
            message = f"the last run, {last.id}, is an undo of {last.undoes} (`reconcile redo` repeats that one)"
            print_message(options, f"{message}; this undo goes further back, to an older run")
        _print_past_run(options, "undo", session, found.run)
        return replace(policy, request=UndoRequest(found.run.id))

    # Without a terminal the command needs no confirmation: the vault keeps everything that an undo removes.
    _run(context, adjust, "Undo this run?" if is_interactive(options) else "")


@click.command(name="redo")
@common_options
@click.argument("run", required=False)
@click.pass_context
def redo(context: click.Context, run: str | None) -> None:
    """Repeat RUN, which was undone; without RUN, the one that was undone last.

    It prints which run that is, and asks at a terminal. It is the undo of the undo, and can be undone. A conversation
    that was changed since the undo is refused.
    """
    from reconcile.engine.run_history import find_undo, newest_undo, origin_of

    options = options_of(context)

    def adjust(policy: Policy, engine: Engine) -> Policy:
        session = engine.session
        state = session.state
        undone = newest_undo(state, session.project) if run is None else find_undo(state, run)
        origin, _ = origin_of(undone, {each.id: each for each in state.journal.runs()})
        _print_past_run(options, "redo", session, origin)
        return replace(policy, request=UndoRequest(undone.id))

    _run(context, adjust, "Redo this run?" if is_interactive(options) else "")


def _print_past_run(options: Options, verb: str, session: Session, run: Run) -> None:
    from .log import step_counts

    steps = step_counts(session.state.journal.steps(run.id))
    print_message(options, f"{verb} of {run.id}, {format_time(run.started_ns)}: {run.command} ({steps})")


def _run(context: click.Context, adjust: Adjust, confirm: str = "") -> NoReturn:
    context.exit(run_command(options_of(context), command_line(context), adjust, confirm))


def _warn_of_history(engine: Engine, conversations: Collection[str]) -> None:
    """Add a message that names the conversations of which git has files, in its index or its last commit."""
    from reconcile.fs.git_state import has_committed

    session, here = engine.session, engine.known.sides[Side.WORKSPACE]
    top = session.roots.workspace_conversations
    paths = {id_: [os.path.join(top, copy.path) for copy in here.of(id_)] for id_ in conversations}
    committed = [id_ for id_, its in paths.items() if its and has_committed(session.roots.project, its)]
    if committed:
        files = "git has files of it" if len(committed) == 1 else "git has files of them"
        session.remarks.append(
            f"{', '.join(committed)}: {files}; what was committed stays in git's history, "
            "which reconcile doesn't change"
        )
