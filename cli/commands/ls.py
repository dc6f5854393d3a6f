"""``reconcile ls``: lists the conversations of both sides, the threads of Leslie, or the records of Claudesidian."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, NoReturn, TypeVar

import click
from msgspec import to_builtins
from msgspec.structs import replace

from reconcile.inspect import listing
from reconcile.state.directory import state_directory

from ..command import Command
from ..context import find_roots, fixed_format, format_here, open_session, policy_of, settings_of
from ..misuse import Misuse
from ..options import FILES, IDS, options_of
from ..output.documents import print_document
from ..output.errors import ExitCode, report_failure
from ..output.screen import show_paged
from ..output.tables import Column, table
from ..output.text import MAX_COLUMNS, Style, clean, format_time, local_event_time, shorten, show, size, visible
from ..output.words import state_word
from ..run import opened, selected, top_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from reconcile.errors import ReconcileError
    from reconcile.inspect.listing import Row, Survey
    from reconcile.inspect.record_listing import RecordRow
    from reconcile.inspect.session_listing import SessionRow
    from reconcile.inspect.thread_listing import ThreadRow

    from ..arguments import Options

_R = TypeVar("_R")

OBJECTIVE = 40
UNTITLED = "(no title)"
_DAY = len("2026-05-05")
_FAR_MS = 1e14
"""Times (ms) from here on are outside of the calendar."""
_NO_BRANCH = "HEAD"
"""Claude Code writes this without a branch, also outside of a repository."""


@click.command(
    "ls",
    cls=Command,
    extra_hint="to search titles and events: reconcile find WORD",
    names={"root": "ids"},
    of_first=("html",),
    of_one=("root", "html"),
    prints_sides=False,
    accepts=("only", "below", "all", "json"),
    examples=(
        ("reconcile ls --tree", "Draw all conversations as a tree."),
        ("reconcile ls --root=jp-c17779500000", "List the descendants of a conversation."),
        ("reconcile ls --all", "List every project of yours, each below its path."),
        ("reconcile ls --tree --html ../tree.html", "Write the tree, with all contents, as a page for a browser."),
    ),
)
@click.option("--tree", is_flag=True, help="Draw the tree.")
@click.option(
    "--root",
    is_flag=False,
    flag_value="",
    metavar="[=ID]",
    shell_complete=IDS,
    help="List roots only; with =ID, the descendants of ID.",
)
@click.option(
    "--html",
    metavar="FILE",
    shell_complete=FILES,
    help="Write the tree as a page for a browser, with the contents of all conversations.",
)
@click.option("--archived", is_flag=True, help="List archived conversations.")
@click.pass_context
def ls(context: click.Context, *, tree: bool, root: str | None, html: str | None, archived: bool) -> None:
    """List conversations, or draw their tree.

    Each line has the title, the id, the number of events, the last activity, the state, and its root
    conversation. The page of --html is one file, which only you can read: it holds private conversations, too.
    """
    options = options_of(context)
    here = format_here(options)
    if here == "leslie" and html is None:
        _list_threads(context, tree=tree, other=archived or root is not None)
    if here == "claudesidian" and html is None:
        _list_records(context, other=tree or archived or root is not None)
    if html is None and fixed_format(options) in ("claude-code", "claude-shared"):
        _list_sessions(context, tree=tree, other=archived or root is not None)
    if html is not None:
        is_tree_alone = not (archived or root == "" or options.json)
        if is_tree_alone and not tree:
            raise Misuse("--html also needs --tree", "reconcile ls --tree --html FILE")
        if not is_tree_alone:
            raise click.UsageError("--html is for ls --tree, without --json, --archived, and --root alone")
        from ..tree_page import write_tree_page

        write_tree_page(options, html, root)
        return
    with opened(options) as engine:
        policy = policy_of(options, settings_of(engine.session.roots))
        found = engine.plan(policy, also={*engine.session.busy(), *engine.noteworthy})
        board = engine.decide(found, policy)
        known, states = listing.survey(engine, found, board), listing.states(engine, found, board)
        is_tree, wanted = tree and root != "", selected(engine, options, known)
        top = top_of(engine, root, known) if root else root
    rows = _rows(known, top, wanted, tree=tree, archived=archived)
    is_plain = engine.session.format.name == "plain"
    if is_plain:  # a run finds no events in a text of another form, and `show` may find some
        rows = tuple(replace(row, events=row.events or None) for row in rows)
    if options.json:
        listed = [_with_state(row, states) for row in rows]
        print_document(options, {"format": "reconcile.ls/1", "conversations": listed})
        return
    part = archived or root or wanted is not None
    hidden = 0 if part else sum(entry.archived for entry in known.entries.values())
    after = (f"{hidden} archived (--archived lists {'it' if hidden == 1 else 'them'})",) if hidden else ()
    with_root, unknown = not is_tree and root is None and not archived, "" if is_plain else "?"
    _show(rows, states, Style.choose(options.color), after, with_root=with_root, unknown=unknown)


def _rows(
    known: Survey, top: str | None, wanted: Collection[str] | None, *, tree: bool, archived: bool
) -> tuple[Row, ...]:
    """Return the rows to list. ``top``: below this conversation; empty: the roots. ``wanted``: only these."""
    if top:
        rows = tuple(listing.tree(known, top, wanted)) if tree else listing.below(known, top)
    elif top is not None:
        rows = listing.roots(known)
    elif tree and not archived:
        rows = tuple(listing.tree(known, None, wanted))
    else:
        rows = listing.flat(known, archived=archived)
    if wanted is None or (tree and top != ""):
        return rows
    return tuple(row for row in rows if row.conversation in wanted)


def _json(row: object) -> dict[str, object]:
    """Return a row without what is for people only."""
    document: dict[str, object] = to_builtins(row)
    return {name: value for name, value in document.items() if name not in ("branch", "short")}


def _with_state(row: Row, states: Mapping[str, str]) -> dict[str, object]:
    return {**_json(row), "state": states[row.conversation]}


def _show(
    rows: tuple[Row, ...],
    states: Mapping[str, str],
    style: Style,
    after: tuple[str, ...],
    *,
    with_root: bool,
    unknown: str,
) -> None:
    if not rows:
        show(("no conversations", *after))
        return
    columns = [
        Column("Title", shrinks=True),
        Column("Id"),
        Column("Events", right=True, drops=True),
        Column("Last activity", drops=True, brief=_DAY),
        Column("State", shrinks=True, drops_last=True),
        Column("Root", drops=True),
    ]
    words = {state: state_word(state) for state in set(states.values())}
    cells = [
        (
            row.branch + _title(row.title),
            clean(row.conversation),
            unknown if row.events is None else str(row.events),
            local_event_time(row.last or ""),
            words[states[row.conversation]],
            "" if row.root == row.conversation else clean(row.root),
        )
        for row in rows
    ]
    shown = len(columns) if with_root else len(columns) - 1
    show_paged([*table(columns[:shown], [row[:shown] for row in cells], style), *after], style)


def _print(
    context: click.Context,
    name: str,
    rows: Sequence[_R],
    columns: Sequence[Column],
    cells: Callable[[_R], tuple[str, ...]],
    damage: ReconcileError | None = None,
) -> NoReturn:
    """Print the rows of a format with fixed places, and end the command; ``name`` is what they are in the plural.

    ``damage``: the error of a file that has only these left.
    """
    options = options_of(context)
    if options.json:
        print_document(options, {"format": f"reconcile.{name}/1", name: [_json(row) for row in rows]})
    elif not rows:
        click.echo(f"no {name}")
    else:
        style = Style.choose(options.color)
        show_paged(table(columns, [cells(row) for row in rows], style), style)
    if damage is not None:
        context.exit(report_failure(damage, as_json=options.json, sides=options.sides))
    context.exit(ExitCode.DONE)


def _typed(options: Options, *names: str) -> str:
    """Return the options of those names that were typed."""
    return ", ".join(f"--{name}" for name in names if getattr(options, name))


def _list_threads(context: click.Context, *, tree: bool, other: bool) -> NoReturn:
    """Print the threads of Leslie. ``other``: an option was given that it doesn't have."""
    from reconcile.adapters.leslie.files import project_at, read_leslie
    from reconcile.inspect.thread_listing import list_threads

    options = options_of(context)
    unfit = _typed(options, "store", "layout", "only", "below")
    if other or unfit:
        unknown = unfit or "--root and --archived"
        raise click.UsageError(f"ls lists all leslie threads, flat or with --tree: leave out {unknown}")
    found = list_threads(read_leslie(project_at(options.workspace or os.getcwd()), time.time_ns()), tree=tree)
    columns = (
        Column("Title", shrinks=True),
        Column("Id"),
        Column("Status", drops_last=True),
        Column("Objective", shrinks=True, drops=True),
        Column("References", shrinks=True, drops=True),
        Column("Depends on", shrinks=True, drops=True),
    )
    _print(context, "threads", found.rows, columns, _thread_cells, found.damage)


def _thread_cells(row: ThreadRow) -> tuple[str, ...]:
    return (
        row.branch + _title(row.title),
        clean(row.thread),
        clean(row.status or ""),
        shorten(visible(row.objective_title or row.objective or ""), OBJECTIVE),
        clean(", ".join(row.references)),
        clean(_depends(row)),
    )


def _title(title: str | None) -> str:
    return shorten(visible(title or UNTITLED), MAX_COLUMNS)


def _depends(row: ThreadRow) -> str:
    """Return the threads that it depends on; in parentheses those that these depend on in turn."""
    indirect = f"({', '.join(row.depends_on_indirectly)})" if row.depends_on_indirectly else ""
    return " ".join(part for part in (", ".join(row.depends_on), indirect) if part)


def _list_records(context: click.Context, *, other: bool) -> NoReturn:
    """Print the records of Claudesidian. ``other``: an option was given that it doesn't have."""
    from reconcile.inspect.record_listing import list_records

    options = options_of(context)
    unfit = _typed(options, "layout", "only", "below")
    if other or unfit:
        unknown = unfit or "--tree without --html, --root and --archived"
        raise click.UsageError(f"ls lists all claudesidian records: leave out {unknown}")
    roots = find_roots(options)
    settings = settings_of(roots)
    with open_session(roots, settings, readonly=True) as session:
        rows = list_records(session.planning_context(session.scan(), policy_of(options, settings)).views.values())
    columns = (
        Column("Title", shrinks=True),
        Column("Id"),
        Column("Holds", shrinks=True, drops=True),
        Column("Last used", drops=True, brief=_DAY),
        Column("Where", drops_last=True),
    )
    _print(context, "records", rows, columns, _record_cells)


def _record_cells(row: RecordRow) -> tuple[str, ...]:
    last = format_time(int(row.last_ms) * 1_000_000) if 0 < row.last_ms < _FAR_MS else ""
    return (shorten(visible(row.title or ""), MAX_COLUMNS), clean(row.record), row.holds, last, row.where)


def _list_sessions(context: click.Context, *, tree: bool, other: bool) -> NoReturn:
    """Print the sessions of Claude Code. ``other``: an option was given that it doesn't have."""
    from reconcile.index.file import IndexFile  # here: only sessions are listed without an engine
    from reconcile.inspect.session_checks import expiry
    from reconcile.inspect.session_listing import list_sessions

    options = options_of(context)
    unfit = _typed(options, "layout", "only", "below")
    if other or unfit:
        unknown = unfit or "--root and --archived"
        raise click.UsageError(f"ls lists all sessions, flat or with --tree: leave out {unknown}")
    roots = find_roots(options)
    is_shared = roots.format == "claude-shared"  # no program deletes them there
    days = None if is_shared else expiry(os.path.dirname(os.path.dirname(roots.workspace)), roots.project)[0]
    directory = state_directory(roots.key, os.environ, sys.platform)
    _, indexes = IndexFile(directory, roots.workspace_identity).load_indexes()
    titles = {path: row.title for index in indexes for path, row in index.rows.items() if row.title}
    rows = list_sessions(roots, settings_of(roots).ignore, days, time.time_ns(), titles, tree=tree)
    columns = (
        Column("Title", shrinks=True),
        Column("Id"),
        Column("Where", drops_last=True),
        *(() if is_shared else (Column("Deleted in", drops=True),)),
        Column("Last activity", drops=True, brief=_DAY),
        Column("Size", right=True, drops=True),
        Column("Branch", shrinks=True, drops=True),
    )
    _print(context, "sessions", rows, columns, lambda row: _session_cells(row, is_shared=is_shared))


def _session_cells(row: SessionRow, *, is_shared: bool) -> tuple[str, ...]:
    left = "" if row.days_left is None else f"{row.days_left} day{'' if row.days_left == 1 else 's'}"
    return (
        row.branch + _title(row.title),
        clean(row.short),
        f"{row.where}, shared" if row.shared else row.where,
        *(() if is_shared else (left,)),
        format_time(row.activity_ns),
        size(row.bytes),
        "" if row.git_branch in (None, _NO_BRANCH) else clean(row.git_branch),
    )
