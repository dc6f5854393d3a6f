"""``reconcile ls``: the conversations of both sides, flat or as the tree that they form."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from reconcile.inspect import listing
from reconcile.planning.filters import named

from ..context import find_ids, find_roots, open_session, policy_of, selection, settings_of
from ..options import common_options, options_of
from ..output.text import Style, clean, pad, shorten
from .doctor_records import format_here

if TYPE_CHECKING:
    from reconcile.inspect.listing import Row

TITLE = 60


@click.command(name="ls")
@common_options
@click.option("--tree", is_flag=True, help="Draw the tree.")
@click.option(
    "--root",
    is_flag=False,
    flag_value="",
    metavar="[=ID]",
    help="Roots only; with =ID, the descendants of that conversation.",
)
@click.option("--archived", is_flag=True, help="Archived conversations.")
@click.pass_context
def command(context: click.Context, *, tree: bool, root: str | None, archived: bool) -> None:
    """List the conversations: title, events, last activity, and the root of the tree that each is in."""
    options = options_of(context)
    here = format_here(options)
    if here == "leslie":
        from .ls_threads import list_threads

        list_threads(context, tree=tree, other=archived or root is not None)
    if here == "claudesidian":
        from .ls_records import list_records

        list_records(context, other=tree or archived or root is not None)
    roots = find_roots(options)
    settings = settings_of(roots)
    with open_session(roots, settings, readonly=True) as session:
        look = session.look()
        policy = policy_of(options, settings, selection(session, look, options))
        board = session.board(look, policy)
        drawn, wanted = tree and root != "", named(board)
        if root:
            (top,) = find_ids(session, look, [root])
            if top not in board.tree:
                raise click.UsageError(f"{root!r} isn't live, so nothing is below it")
            rows = tuple(listing.tree(board, top, wanted)) if tree else listing.below(board, top)
        elif root is not None:
            rows = listing.roots(board)
        elif tree and not archived:
            rows = tuple(listing.tree(board, None, wanted))
        else:
            rows = listing.flat(board, archived=archived)
        if wanted is not None and not drawn:
            rows = tuple(row for row in rows if row.conversation in wanted)
    if options.json:
        click.echo(json.dumps({"format": "reconcile.ls/1", "conversations": [_json(row) for row in rows]}, indent=2))
        return
    part = archived or root or wanted is not None
    hidden = 0 if part else len(listing.flat(board, archived=True))
    _show(rows, Style.choose(options.color), with_root=not drawn and root is None and not archived)
    if hidden:
        click.echo(f"{hidden} archived (--archived lists {'it' if hidden == 1 else 'them'})")


def _json(row: Row) -> dict[str, object]:
    found: dict[str, object] = to_builtins(row)
    del found["branch"]
    return found


def _show(rows: tuple[Row, ...], style: Style, *, with_root: bool) -> None:
    if not rows:
        click.echo("no conversations")
        return
    titles = [row.branch + shorten(clean(row.title or "(no title)"), TITLE) for row in rows]
    columns = max(len("Title"), *(len(title) for title in titles))
    ids = max(len(row.conversation) for row in rows)
    head = f"{pad('Title', columns)}  {pad('Id', ids)}  {'Events':>6}  {pad('Last activity', 19)}  {pad('Where', 9)}"
    click.echo(style(head + ("  Root" if with_root else ""), bold=True))
    for row, title in zip(rows, titles, strict=True):
        last = clean((row.last or "")[:19].replace("T", " "))
        events = "?" if row.events is None else row.events
        line = f"{pad(title, columns)}  {pad(clean(row.conversation), ids)}  {events:>6}  {pad(last, 19)}"
        line += f"  {pad(row.where, 9)}"
        if with_root:
            line += f"  {clean(row.root) if row.root != row.conversation else ''}"
        click.echo(line.rstrip())
