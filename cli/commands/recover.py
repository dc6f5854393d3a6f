"""``reconcile recover``: restores the conversations of a workspace whose directory was lost, in whole or in part."""

from __future__ import annotations

import copy
import os
import sys
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from reconcile.adapters.everywhere import Target, every_project
from reconcile.adapters.jp.lost_checkouts import put_marker_back
from reconcile.adapters.locate import locate_lost, locate_moved
from reconcile.adapters.roots import Request, link_store
from reconcile.engine.deleted_extras import deleted_extras
from reconcile.engine.dispatch import plan_for_policy
from reconcile.engine.engine import Engine
from reconcile.fs.paths import quoted_path
from reconcile.model.commands import typed
from reconcile.model.plan import counted_as
from reconcile.model.policy import ProjectRequest
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import EXTRA, Side
from reconcile.planning.requests.recover import (
    UNDATED,
    Offer,
    Offers,
    absent,
    coming,
    default_choice,
    offers,
    with_records,
)
from reconcile.planning.requests.visibility import behind, has_conflict, incomplete, outdated

from ..command import PLANS, Command
from ..context import (
    find_ids,
    find_roots,
    fixed_format,
    formats_here,
    open_session,
    policy_of,
    settings_of,
    with_owned,
)
from ..lost_stores import lost_here
from ..misuse import Misuse, empty_path, unknown_checkout
from ..options import CHECKOUTS, IDS, command_line, options_of
from ..output.errors import FAILURES, ExitCode, first_code, report_failure
from ..output.interaction import (
    confirm,
    confirm_or_exit,
    is_interactive,
    print_message,
    waiting_callback,
    wrapped_question,
)
from ..output.plan_text import exit_code, report
from ..output.text import Style, format_time, short_path, show
from ..run import apply_pass, opened, run, save_plan
from ..scope.projects import BESIDE, home_request, no_project, options_for, refuse_beside

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import NoReturn, TypeVar

    from reconcile.adapters.claude_code.directories import Orphans
    from reconcile.adapters.roots import Roots
    from reconcile.config import Settings
    from reconcile.engine.session import Session
    from reconcile.model.baseline import WorldState
    from reconcile.model.plan import Action, Item, Note, Plan
    from reconcile.model.policy import Policy
    from reconcile.planning.context import PlanningContext
    from reconcile.state.database import Checkout

    from ..arguments import Options

    _Entry = TypeVar("_Entry", Action, Item, Note)


_NAMED = 5
"""Forks that a command lists."""
_NOTHING = "Nothing restored."


class _Recover(Command):
    """`recover`: with ``--all-projects`` in each one. Only it asks git for the store of a project that was moved."""

    def invoke(self, ctx: click.Context) -> None:
        """Run the command here, or in every project."""
        if not ctx.params["all_projects"]:
            super().invoke(ctx)
            return
        if ctx.params["ids"] or ctx.params["everything"] or ctx.params["source"] is not None:
            raise Misuse("--all-projects restores what each project has lost", "leave out ID, --all and --from", ctx)
        self.refuse_meaningless(ctx)
        options = options_of(ctx)
        with self.run_with(ctx, all_projects=False) as run_in:
            code = _recover_all(options, run_in)
        ctx.exit(code)

    def formats_of(self, ctx: click.Context, options: Options) -> tuple[str, ...]:
        """Return the formats, also one whose sessions have to be moved here first."""
        return formats_here(options, source=ctx.params["source"], recovers=True)


@click.command(
    "recover",
    cls=_Recover,
    names={"ids": "ids"},
    accepts=(*PLANS, "allow_bulk_removal", "yes"),
    examples=(
        ("reconcile recover --dry-run", "Show what would be restored."),
        ("reconcile recover --from ../old-tree --yes", "Restore what that checkout had; its directory may be gone."),
        ("reconcile recover --all-projects", "Restore what each project has lost, with a question for each."),
        ("reconcile recover --all --yes", "Publish all of the store that is not local; do not ask."),
    ),
)
@click.argument("ids", nargs=-1, metavar="[ID]...", shell_complete=IDS)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Restore every conversation of the store except local ones. This publishes those that were never public.",
)
@click.option(
    "--from",
    "source",
    metavar="DIR",
    shell_complete=CHECKOUTS,
    help="Restore what another checkout had, which may be gone.",
)
@click.option(
    "--all-projects",
    is_flag=True,
    help="Restore what each of your projects has lost, one after the other.",
)
@click.pass_context
def recover(
    context: click.Context,
    ids: tuple[str, ...],
    everything: bool,
    source: str | None,
    all_projects: bool,  # noqa: ARG001 - `_Recover`
) -> None:
    """Restore conversations that the workspace has lost.

    Use it after `rm -rf .jp`, `git clean` or a deleted worktree. At a terminal, shows the plan and asks. If
    conversations were lost at several times, it asks about each time. Without a terminal, --yes restores those that
    were lost last.
    Local ones are not restored, except named sessions of Claude Code. Also restores .jp/.id. With ID, restores only
    these, and files that were deleted in their directories.
    """
    if ids and everything:
        raise click.UsageError("name conversations, or give --all")
    if source == "":
        raise empty_path("--from")
    restore_lost(context, ids=ids, everything=everything, source=source)


def restore_lost(
    context: click.Context,
    *,
    ids: tuple[str, ...] = (),
    everything: bool = False,
    source: str | None = None,
    walked: Callable[[Session, Plan, Callable[[tuple[str, ...]], Plan]], Plan] | None = None,
) -> NoReturn:
    """Restore what the workspace has lost, and end the command.

    ``walked`` shows the offer, and returns the plan that a person has chosen, or ends the command. It gets a function
    that plans a part of the offer. Without it, questions are asked. ``ids``: only these are restored, as users name
    them.
    """
    options = options_of(context)
    cwd = os.getcwd()
    roots = _locate(options, source)
    settings, source, has_moved = _prepared(options, roots, source)
    with open_session(roots, settings, readonly=True) as session:
        world = (engine := _scanned(session)).world
        records = session.records(None if source is None else os.path.join(cwd, source))
        if source is not None and not records:
            raise unknown_checkout(source, {checkout.project for checkout in session.state.checkouts()}, "--from")
        memories = [session.state.load(record.id) for record in records]
        past_world = replace(world, baseline=with_records(world.baseline, memories))
        planning = session.planning_context(past_world, policy_of(options, settings))
        is_offer = not (everything or ids)
        deleted = deleted_extras(session, world) if source is None else {}
        chosen, left_out = ((), ()) if is_offer else _named_or_all(engine, planning, ids, deleted)
        offered = (
            _without_other_homes_of(options, session, offers(planning, memories)) if is_offer else Offers((), left_out)
        )
        _print_left_out(options, planning, offered.left_out)
        _print_lost(options, session, world, records)

        def planned(conversations: tuple[str, ...]) -> Plan:
            policy = _policy(options, settings, conversations, tuple(record.id for record in records))
            return plan_for_policy(session, world, policy)

        place = "here" if source is None else f"in {source}"
        answered = walked is None and bool(offered.groups) and _asks_by_group(options)
        if is_offer and not answered:
            nothing = _nothing_missing(source, moved=has_moved, files=bool(deleted))
            chosen = _chosen(options, offered, planning, place, nothing)
        if not everything:
            _name_forks(options, session, planning, offered.groups, source and records[0].project)
        _name_deleted_files(options, planning, deleted if is_offer else {})
        _name_older_versions(
            options, planning, chosen, lambda: plan_for_policy(session, world, policy_of(options, settings))
        )
        if answered:
            chosen = _ask_by_group(options, roots, session, planning, offered.groups, planned, place)
        elsewhere = _gone_checkouts(options, session, planning) if source is None and not chosen else []
        plan = planned(chosen := chosen if is_offer else _without_other_homes(options, session, chosen))
        if walked is not None and chosen:
            plan, answered = walked(session, plan, planned), not options.is_dry
            chosen = _requested(plan)
        is_wanted = _confirm(
            options, roots, session, plan, answered=answered, declined=answered and not chosen, is_named=bool(ids)
        )
        _print_last(options, elsewhere)
        if not is_wanted:
            context.exit(exit_code(plan, None, options))
    if _lacks_marker(roots, plan):
        _write_marker(options, roots)
        roots = _locate(options, source)
    with (
        open_session(roots, settings, readonly=False) as session,
        session.exclusively(command_line(context), settings.lock_timeout, waiting_callback(options)),
    ):
        engine = _scanned(session)
        pass_ = engine.plan(_policy(options, settings, chosen, tuple(record.id for record in records)))
        is_shown = bool(plan.actions) and not options.yes and pass_.plan.actions == plan.actions
        code = apply_pass(engine, pass_, options, command_line(context), is_shown=is_shown)
    context.exit(code)


def _recover_all(options: Options, run_in: Callable[[Options], int]) -> int:
    """Restore what each project has lost, below a heading with its path; return the worst exit code.

    No project stops the others.
    """
    refuse_beside(options, (BESIDE | {"yes", "allow_bulk_removal"}) - {"all", "json"}, "--all-projects")
    found = every_project(home_request(), options.format)
    lost = {Target(each.path, each.lost) for each in found.left_out if each.lost}
    targets = sorted(each for each in {*found.targets, *lost} if os.path.isdir(each.project))
    codes = list[int]()
    for number, target in enumerate(targets):
        name = f"{short_path(target.project)} ({target.format})"
        show([*([""] if number else []), Style.choose(options.color)(name, bold=True)])
        try:
            codes.append(run_in(options_for(options, target)))
        except FAILURES as error:
            if not isinstance(error, Exception):
                raise  # Ctrl-C is about all of them
            codes.append(report_failure(error, as_json=False, of=name))
    others = [each for each in found.left_out if not each.lost]
    for each in others:
        print_message(options, f"left out: {short_path(each.path)}: {each.why}")
    if not targets:
        show([no_project(others)])
    return first_code(codes or [ExitCode.HELD if others else ExitCode.DONE])


def _scanned(session: Session) -> Engine:
    engine = Engine(session)
    engine.refresh()
    return engine


def _named_or_all(
    engine: Engine, planning: PlanningContext, ids: Sequence[str], deleted: Collection[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return those that the workspace lacks and that can be restored, and those that can't.

    With ``ids`` only the named ones, and what belongs to them, also if only files of them are ``deleted`` or damaged.
    Where the workspace is in the user's home, that makes nothing public, so that a local one is restored, too.
    """
    named = with_owned(engine, find_ids(engine, ids)) if ids else ()
    missing = absent(planning, () if engine.session.roots.is_in_project else named)
    faulty = (id_ for id_ in named if any(each.faulty for each in planning.verdicts.get(id_, {}).values()))
    lacking = dict.fromkeys((*deleted, *incomplete(planning), *faulty))
    missing += tuple(id_ for id_ in lacking if id_ in named and not planning.views[id_].local)
    wanted = [id_ for id_ in missing if not ids or id_ in named]
    chosen = tuple(coming(planning, wanted))
    return chosen, tuple(id_ for id_ in wanted if id_ not in chosen)


def _without_other_homes(options: Options, session: Session, chosen: tuple[str, ...]) -> tuple[str, ...]:
    """Return the records without sessions that another project of Claude Code has: a session has one live home."""
    if session.roots.format != "claude-code" or not chosen:
        return chosen
    from reconcile.adapters.claude_code.directories import held_elsewhere
    from reconcile.formats.claude_code.format import owner_of

    elsewhere = held_elsewhere(chosen, session.roots.workspace)
    for owner, directory in elsewhere.items():
        print_message(options, f"left out: {owner} is in {short_path(directory)}, and a session has one project")
    return tuple(id_ for id_ in chosen if owner_of(id_) not in elsewhere)


def _without_other_homes_of(options: Options, session: Session, offered: Offers) -> Offers:
    """Return the offers of what can be restored here, so that none of the rest is asked about."""
    conversations = tuple(id_ for group in offered.groups for id_ in group.conversations)
    ours = set(_without_other_homes(options, session, conversations))
    groups = (
        replace(each, conversations=tuple(filter(ours.__contains__, each.conversations))) for each in offered.groups
    )
    return replace(offered, groups=tuple(group for group in groups if group.conversations))


def _prepared(options: Options, roots: Roots, source: str | None) -> tuple[Settings, str | None, bool]:
    """Return the settings, the source, and whether sessions were or would be moved here.

    The source is None if its sessions were in another store, so that this one has no record.

    Of a project in the user's home, first move the sessions that an earlier path of it has, or that only its store has.
    """
    settings = settings_of(roots)
    if roots.is_in_project:
        return settings, source, False
    from reconcile.adapters.claude_code.stores import is_other_repository  # here, as below: for sessions in the home

    gone = None if source is None else os.path.normpath(os.path.join(os.getcwd(), source))
    is_foreign = gone is not None and is_other_repository(roots.project, gone, _request(options))
    if is_foreign and gone is not None and os.path.lexists(gone):
        raise Misuse(
            f"--from: {short_path(gone)} is of another repository, and is there: its sessions stay with it",
            f"go on with them there: cd {quoted_path(gone)} && claude --resume",
        )
    name = "" if gone is None else f"{short_path(gone)}{' (another repository)' if is_foreign else ''}"
    was_elsewhere, restored = (False, 0) if gone is None else _restore_at(options, roots, gone, name)
    has_moved = _bring_home(options, roots, settings, gone, restored, name)
    if has_moved and not options.yes:
        raise click.exceptions.Exit  # a question that follows could be answered with no, as if nothing was changed
    return settings, None if was_elsewhere else source, has_moved


def _request(options: Options) -> Request:
    """Return what the options say of the project, whose own store counts."""
    return Request(options.workspace, None, os.getcwd(), os.environ, sys.platform)


def _restore_at(options: Options, roots: Roots, gone: str, name: str) -> tuple[bool, int]:
    """Restore what only the store of a project that is gone has, so that it can be moved; ``name``: for a message.

    `reconcile --all` has made that store, if no run has seen the project while it was there. Return whether the store
    of the present path has no record of the project, and the number of sessions to restore.
    """
    from reconcile.adapters.claude_code.directories import is_known_source  # here, as below: for sessions in the home
    from reconcile.adapters.claude_code.stores import store_place

    request = _request(options)
    store = store_place(gone, request).path
    if os.path.lexists(gone) or not is_known_source(gone, request):
        return False, 0
    if not os.path.isdir(store):
        return True, 0  # no run has seen it, and its sessions are all there
    if os.path.realpath(store) == os.path.realpath(roots.store):
        return False, 0
    own = copy.copy(options)
    own.workspace, own.store, own.format = gone, None, roots.format
    with opened(own) as engine:
        saved, live = ({each.conversation for each in engine.known.sides[side].copies()} for side in Side)
        places, lost = engine.session.format.places, tuple(sorted(saved - live))
        count = len(lost) if places is None else sum(map(places.can_fork, lost))
    if lost:
        print_message(options, f"first restores what was deleted of {name}, then moves it here")
        command = f"reconcile recover --from {typed(gone)}"
        code = run(
            own,
            lambda: command,
            lambda policy, _: replace(policy, request=ProjectRequest(lost)),
            lambda _: "Restore this?",
        )
        if own.is_cancelled or code == ExitCode.INTERRUPTED:
            raise click.exceptions.Exit(code)
    return True, count


def _bring_home(
    options: Options, roots: Roots, settings: Settings, source: str | None, restored: int, name: str
) -> bool:
    """Move the sessions of this project from the directories of its earlier paths; return whether there are any.

    ``restored``: the number of sessions that a dry run would restore there first. ``name``: that of ``source``.
    """
    from reconcile.adapters.claude_code.directories import find_orphans, move_home  # here: for sessions in the home

    with open_session(roots, settings, readonly=True) as session:
        gone = [source] if source is not None else list(session.gone())
    found = find_orphans(roots, gone)
    restored = restored if options.is_dry else 0
    if not (found.entries or found.left or restored):
        return False
    _name_open(options, found.left)
    words = _move_words(roots, found, restored, gone, name)
    if options.is_dry or not found.entries:
        print_message(options, f"would move {words}")
        _report_moved(options, found, restored, "Plan: {} to move here.")
        return bool(found.entries)
    confirm_or_exit(options, f"Move {words}?")
    offered, before = found.entries, found.left
    found = find_orphans(roots, gone)  # a session may have been opened meanwhile
    _name_open(options, [path for path in found.left if path not in before])
    found = found._replace(entries=tuple(path for path in offered if path in found.entries))
    if not found.entries:
        return False
    words = _move_words(roots, found, 0, gone, name)
    move_home(found, roots.workspace)
    if roots.link:
        link_store(roots)  # nothing else may be left to do, and a later run must find the store
    more = "" if options.yes else ". For what else is missing: reconcile recover"
    print_message(options, f"moved {words}; undo doesn't move them back{more}")
    _report_moved(options, found, 0, "Done: {} moved here.")
    own = copy.copy(options)
    own.quiet, own.json = True, False
    run(own, lambda: "reconcile")  # from now on it counts as what was here, also if it is lost at once
    return True


def _report_moved(options: Options, orphans: Orphans, restored: int, words: str) -> None:
    """Tell on standard output what is moved: at once, or as the summary of a run that follows and does nothing else."""
    text = words.format(_counted_entries(orphans, restored))
    if options.yes:
        options.idle = text
    elif orphans.entries and not (options.quiet or options.json):
        show([Style.choose(options.color)(text, bold=True)])


def _name_open(options: Options, paths: Sequence[str]) -> None:
    """Print the number of sessions that stay at the old path, as processes have them open."""
    if paths:
        stay, which = (f"{len(paths)} stay", "them") if len(paths) != 1 else ("1 stays", "it")
        print_message(options, f"{stay} at the old path: Claude Code has {which} open", trouble=True)


def _move_words(roots: Roots, orphans: Orphans, restored: int, gone: Sequence[str], source: str) -> str:
    """Return what is moved, from where, and to where; ``source``: the name of the project that the user has named."""
    what = _counted_entries(orphans, restored)
    here = short_path(roots.project)
    if source:
        return f"{what} of {source} to {here}"
    places = {path.partition("/")[0] for path in (*orphans.entries, *orphans.left)}
    left = [each for each in gone if os.path.basename(roots.in_checkout(each).workspace) in places]
    return f"{what} of {' and '.join(sorted(map(short_path, left)))} to {here}, as the project was there before"


def _counted_entries(orphans: Orphans, restored: int) -> str:
    count = restored + sum(name.endswith(".jsonl") for name in orphans.entries)
    return f"{count} session{'' if count == 1 else 's'}" if count else "the files beside sessions"


def _print_lost(options: Options, session: Session, world: WorldState, records: Sequence[Checkout]) -> None:
    """Print what was lost with a store, and the command that restores what is left of it.

    Also print the time of the last run in the lost workspace of these records: later changes were lost with it. A
    workspace in the user's home isn't lost with its project.
    """
    there = {copy.conversation for copy in (*world.store.copies, *world.workspace.copies)}
    for lost in lost_here(session, there):
        way = f": {lost.command}" if lost.command else ""
        print_message(options, f"lost with the store: {lost.title or lost.conversation}; {lost.left}{way}")
    if not session.roots.is_in_project or any(
        session.state_of(record) not in ("gone", "replaced") for record in records
    ):
        return
    known = {record.id for record in records}
    times = [each.finished_ns or each.started_ns for each in session.state.journal.runs() if each.checkout in known]
    if times:
        place = " and ".join(sorted({short_path(record.project) for record in records}))
        message = f"changes made in {place} after its last run ({format_time(max(times))}), if any, are lost"
        print_message(options, message)


def _requested(plan: Plan) -> tuple[str, ...]:
    request = plan.policy.request
    return request.ids if isinstance(request, ProjectRequest) else ()


def _locate(options: Options, source: str | None) -> Roots:
    """Locate the two sides; those of JP also if the workspace is gone."""
    there = (options.workspace, options.store, source, os.getcwd(), os.environ, sys.platform)
    found = fixed_format(options) if options.format is None else options.format
    if found == "claude-code" or (found is None and source is not None):
        moved = locate_moved(*there)
        if moved is not None:
            return moved
    return locate_lost(*there) if found in (None, "jp") else find_roots(options)


def _policy(options: Options, settings: Settings, chosen: tuple[str, ...], records: tuple[int, ...]) -> Policy:
    policy = policy_of(options, settings)
    return replace(policy, request=ProjectRequest(chosen, records=records))


def _way_back(planning: PlanningContext) -> str:
    """Return the command that restores one conversation in this workspace."""
    places = planning.rules.format.places
    return "project" if places is None else places.way_back


def _chosen(options: Options, offered: Offers, planning: PlanningContext, place: str, nothing: str) -> tuple[str, ...]:
    """Return the conversations to be restored without a question, and print which others could be, or ``nothing``."""
    if not (offered.groups or offered.left_out):
        print_message(options, nothing)
    for group in offered.groups[len(offered.default) :]:
        way = f"restore one: reconcile {_way_back(planning)} ID"
        way = f"{way} (at a terminal, recover asks)" if group.known else f"restore all: --all; {way}"
        _name_nothing(options)
        print_message(options, f"not restored: {_described(group, planning, place)}; {way}")
    return default_choice(planning, offered)


def _nothing_missing(source: str | None, *, moved: bool, files: bool) -> str:
    """Return the message that there is nothing to restore, but sessions to move here, or files of conversations."""
    if moved:
        return "nothing else that was here is missing"
    if files:
        return "no conversation that was here is missing"
    return f"nothing of what was in {source} is missing here" if source else "nothing that was here is missing"


def _asks_by_group(options: Options) -> bool:
    return is_interactive(options) and not options.yes and not options.is_dry


def _ask_by_group(
    options: Options,
    roots: Roots,
    session: Session,
    planning: PlanningContext,
    groups: Sequence[Offer],
    planned: Callable[[tuple[str, ...]], Plan],
    place: str,
) -> tuple[str, ...]:
    """Show each group's part of the plan, and ask, without the conversations whose ancestors were refused before."""
    chosen: tuple[str, ...] = ()
    messages: Sequence[str] = session.messages
    for group in groups:
        both = coming(planning, {*chosen, *group.conversations})
        offer = replace(group, conversations=tuple(id_ for id_ in both if id_ in group.conversations))
        if not offer.conversations:
            continue
        plan = planned(tuple(both))
        if messages is session.messages and _lacks_marker(roots, plan):
            _print_marker(options, roots, "would write")
        shown = _without(plan, chosen)
        report(options, roots, messages, shown, None)
        messages = ()
        coming_now = {action.conversation for action in shown.actions}
        blocked = {item.conversation for item in shown.held} - coming_now
        offer = replace(offer, conversations=tuple(id_ for id_ in offer.conversations if id_ not in blocked))
        if not offer.conversations:  # an answer would restore nothing
            chosen = tuple(both)
            continue
        # The plan names them, unless the request waits for git.
        question = (
            f"Restore {_counted(offer, planning, place) if plan.actions else _described(offer, planning, place)}?"
        )
        if confirm(options, f"\n{wrapped_question(question)}"):
            chosen = tuple(both)
    return chosen


def _without(plan: Plan, conversations: Collection[str]) -> Plan:
    """Return the plan without what concerns these conversations."""

    def others(entries: tuple[_Entry, ...]) -> tuple[_Entry, ...]:
        return tuple(entry for entry in entries if entry.conversation not in conversations)

    return replace(
        plan, actions=others(plan.actions), held=others(plan.held), aside=others(plan.aside), notes=others(plan.notes)
    )


def _described(offer: Offer, planning: PlanningContext, place: str) -> str:
    return f"{_counted(offer, planning, place)}: {planning.names(offer.conversations)}"


def _number(planning: PlanningContext, conversations: Collection[str]) -> tuple[int, str]:
    """Return the number of conversations, and their noun in this format; what belongs to a session is not counted."""
    places = planning.rules.format.places
    count = len({counted_as(each, places) for each in conversations})
    return count, f"{'conversation' if places is None else places.noun}{'' if count == 1 else 's'}"


def _counted(offer: Offer, planning: PlanningContext, place: str) -> str:
    count, kind = _number(planning, offer.conversations)
    was = "was" if count == 1 else "were"
    if not offer.known:
        why = f"of the store (no record shows that {'it' if count == 1 else 'they'} {was} here)"
    elif offer.run is None:
        why = f"that {was} {place} at the end of {'the' if place == 'here' else 'its'} last run"
    elif offer.run == UNDATED:
        why = f"that {was} removed {'from this workspace' if place == 'here' else place} before"
    else:
        why = f"that run {offer.run} found missing{'' if place == 'here' else f' {place}'}"
    return f"{count} {kind} {why}"


def _name_nothing(options: Options) -> None:
    """Say of a report without an action that nothing was restored, unless sessions were moved here."""
    if not options.idle.startswith("Done: "):
        options.idle = _NOTHING


def _print_left_out(options: Options, planning: PlanningContext, conversations: Sequence[str]) -> None:
    """Print the conversations that can't be restored, as an ancestor is local or was never here."""
    if conversations:
        _name_nothing(options)
        count = f"{len(conversations)} conversation{'' if len(conversations) == 1 else 's'}"
        below = "whose parents are not restored (publish one with its parents: reconcile project ID --with-ancestors)"
        print_message(options, f"left out: {count} {below}: {planning.names(conversations)}")


def _gone_checkouts(options: Options, session: Session, planning: PlanningContext) -> list[str]:
    """Return messages about the checkouts elsewhere that are gone, with the command that restores what is missing."""
    from reconcile.adapters.claude_code.directories import restorable_from  # here: for sessions in the home

    missing, messages = frozenset(absent(planning)), []
    for project, had in session.gone().items():
        lost = set[str]() if project == session.project else restorable_from(project, had & missing, session.roots)
        if not lost:
            continue
        count, kind = _number(planning, lost)
        lacks = f"{count} {kind} that {'is' if count == 1 else 'are'} not here"
        command = f"to restore {'it' if count == 1 else 'them'}: reconcile recover --from {quoted_path(project)}"
        _name_nothing(options)
        messages.append(f"the workspace of {short_path(project)} is gone; it had {lacks}; {command}{options.sides}")
    return messages


def _print_last(options: Options, messages: Sequence[str]) -> None:
    """Print messages after the plan, as they name the command that helps."""
    for message in messages:
        print_message(options, message)


def _name_forks(
    options: Options, session: Session, planning: PlanningContext, offered: Sequence[Offer], project: str | None
) -> None:
    """Print the forks of a checkout that is gone, which only the store has; ``project``: of this one alone.

    Without those that are ``offered`` already.

    A continuation that lost is such a fork. Its events may be of this checkout.
    """
    missing = [id_ for id_ in absent(planning) if not any(id_ in group.conversations for group in offered)]
    for gone, made in session.forks_of_gone().items():
        forks = [id_ for id_ in missing if id_ in made]
        if not forks or project not in (None, gone):
            continue
        _name_nothing(options)
        count, which = ("1 fork", "it") if len(forks) == 1 else (f"{len(forks)} forks", "them")
        which, ids = (which, typed(*forks)) if len(forks) <= _NAMED else ("one", "ID")
        command = _way_back(planning)
        verb = "publish" if command == "project" else "restore"
        way = f"reconcile {command} {ids}{options.sides}"
        words = f"the store alone has {count} of its {session.roots.noun}s: {planning.names(forks)}"
        words = f"{words}; {verb} {which}: {way}"
        print_message(options, f"the workspace of {short_path(gone)} is gone; {words}")


def _name_deleted_files(options: Options, planning: PlanningContext, deleted: Mapping[str, Sequence[str]]) -> None:
    """Print the files that were deleted beside a conversation's own, which `recover` restores if it is named."""
    shown = {id_: units for id_, units in deleted.items() if not planning.views[id_].local}
    if not shown:
        return
    _name_nothing(options)
    names = [unit.removeprefix(EXTRA) for units in shown.values() for unit in units]
    files, which = ("1 file", "it") if len(names) == 1 else (f"{len(names)} files", "them")
    verb = "is" if len(names) == 1 else "are"
    where = f"in {planning.names(shown)}"
    if len(shown) == 1 and len(names) <= _NAMED:
        where = f"{', '.join(names)} {where}"
    ids = typed(*shown) if len(shown) <= _NAMED else "ID"
    words = f"{files} that a workspace had before {verb} missing here, and still in the store: {where}"
    print_message(options, f"{words}; restore {which}: reconcile recover {ids}{options.sides}")


def _name_older_versions(
    options: Options, planning: PlanningContext, chosen: Collection[str], plain: Callable[[], Plan]
) -> None:
    """Print the conversations that are here in an older version, or without a file, which `recover` leaves alone.

    What a run would update of the ``chosen`` ones, `recover` updates. ``plain`` returns the plan of a run: it leaves
    what was undone alone, and names the commands that decide it.
    """
    older = behind(planning)
    changed, lacking = ([each for each in found(planning) if each not in chosen] for found in (outdated, incomplete))
    aside = plain().aside if older or changed else ()
    undone = {item.conversation: item for item in aside if item.reason is Reason.UNDONE}
    for item in (undone[each] for each in (*older, *changed) if each in undone):
        name = planning.names([str(item.conversation)])
        ways = ", or ".join(f"{way}{options.sides}" for way in item.resolve)
        print_message(options, f"left alone: {name}: {item.message}; choose a version: {ways}")
    if older := [each for each in older if each not in undone]:
        count = (
            f"{len(older)} conversation{' has an older version' if len(older) == 1 else 's have older versions'} here"
        )
        print_message(options, f"{count}: {planning.names(older)}; update from the store: reconcile project --behind")
    if older or changed or lacking:
        _name_nothing(options)
    if lacking:
        count, which = ("1 conversation has a missing or empty file", "it")
        if len(lacking) > 1:
            count, which = f"{len(lacking)} conversations have missing or empty files", "them"
        way = f"a run restores {which}: reconcile{options.sides}"
        print_message(options, f"{count} here: {planning.names(lacking)}; {way}")
    if changed := [each for each in changed if each not in undone and not has_conflict(planning, each)]:
        count, which = ("1 conversation is", "it") if len(changed) == 1 else (f"{len(changed)} are", "them")
        way = f"a run updates {which}: reconcile{options.sides}"
        print_message(options, f"{count} newer in the store: {planning.names(changed)}; {way}")


def _lacks_marker(roots: Roots, plan: Plan) -> bool:
    """Tell whether the workspace's ``.id`` is missing, and may be written now."""
    has_marker = roots.workspace_id is None or os.path.lexists(os.path.join(roots.workspace, ".id"))
    return not has_marker and plan.policy.git_busy is None


def _write_marker(options: Options, roots: Roots) -> None:
    """Write the workspace's ``.id``, and choose the words for a run that does nothing else."""
    assert roots.workspace_id is not None  # noqa: S101 - otherwise it lacks none
    put_marker_back(roots.workspace, roots.workspace_id)
    marker = f"{os.path.basename(roots.workspace)}/.id"
    options.idle = f"{_NOTHING} Wrote {marker}." if options.idle == _NOTHING else f"Done: {marker} written."


def _print_marker(options: Options, roots: Roots, verb: str) -> None:
    print_message(options, f"{verb} {roots.workspace}/.id with the id {roots.workspace_id}")


def _confirm(
    options: Options,
    roots: Roots,
    session: Session,
    plan: Plan,
    *,
    answered: bool,
    declined: bool,
    is_named: bool,
) -> bool:
    """Print the plan, and ask. Return whether there is anything to do, be it to finish a killed run.

    ``answered``: the user has seen the plan and chosen what to restore, and no question follows. ``declined``: it is
    nothing. ``is_named``: the command line names what is restored, and no question follows either.
    """
    if options.out is not None and not roots.workspace_identity:
        raise Misuse("--out: a saved plan needs the .jp directory, which is missing", "recover without --out")
    save_plan(options, roots, plan)
    if declined:
        print_message(options, _NOTHING)
        return False
    writes_marker = _lacks_marker(roots, plan)
    if writes_marker and not answered:
        _print_marker(options, roots, "writes" if options.yes and not options.is_dry else "would write")
    asks = not options.is_dry and bool(plan.actions or writes_marker)
    # While git is in the middle of an operation, the request is recorded, and carried out at its end.
    put_off = plan.policy.git_busy is not None and bool(plan.intents)
    pending = asks or (not options.is_dry and (put_off or bool(session.state.journal.open_runs())))
    is_later = options.yes or (is_named and options.json)  # one object, with the result
    if not answered and (not pending or (asks and not is_later)):
        report(options, roots, session.messages, plan, None)
    if asks and not (is_named or (answered and plan.actions)):
        confirm_or_exit(options, "Restore this?")
    return pending
