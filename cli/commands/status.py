"""``reconcile status [ID]``: how each conversation stands, and everything known of one."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins

from reconcile.engine.versions import lost_with_store
from reconcile.inspect.conversation import describe, unseen_conflicts
from reconcile.model.snapshot import Side
from reconcile.planning.filters import named
from reconcile.planning.status_listing import StatusLine, status_lines

from ..context import find_ids, policy_of, settings_of
from ..options import common_options, options_of
from ..output.interaction import print_message
from ..output.text import MAX_INDENT, Style, clean, heading, indented, pad, shorten, title_and_id, width
from ..run import opened, selection, warn_of_new_workspace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconcile.engine.versions import Lost

    from ..arguments import Options

TITLE = 44
COLORS = {
    "in-sync": "green",
    "invalid": "red",
    "conflict": "red",
    "lost": "red",
    "busy": "yellow",
    "behind": "blue",
    "requested": "yellow",
}


@click.command(name="status")
@common_options
@click.argument("conversation", required=False, metavar="[ID]")
@click.pass_context
def status(context: click.Context, conversation: str | None) -> None:
    """Show how the conversations stand; with an ID, everything that is known of it. Writes nothing."""
    options = options_of(context)
    with opened(options) as engine:
        session = engine.session
        policy = policy_of(options, settings_of(session.roots), selection(engine, options))
        ids = find_ids(engine, () if conversation is None else [conversation])
        busy, conflicts = session.busy(), frozenset(each.conversation for each in unseen_conflicts(session))
        if not ids and policy.is_unlimited and (options.json or options.verbose):
            engine.read_everything()  # every conversation is listed
        also = ids if ids or not policy.is_unlimited else {*busy, *conflicts, *engine.noteworthy}
        found = engine.plan(policy, also=also)
        board, plan = engine.decide(found, policy), engine.completed(found)
        warn_of_new_workspace(options, engine, policy)
        for message in session.notices:
            print_message(options, message)
        listed = status_lines(board, plan, busy, conflicts, engine.empty_directories(found))
        if ids:
            standing = next((each for each in listed if each.conversation == ids[0]), None)
            if standing is None:
                raise click.UsageError(f"{ids[0]} is on neither side any more; `reconcile log` lists what runs did")
            _show_one(options, standing, describe(board, ids[0]))
            return
        others: Mapping[str, int] = {}
        if (wanted := named(board)) is not None:
            listed = tuple(each for each in listed if each.conversation in wanted)
        else:
            listed += tuple(_lost(each) for each in lost_with_store(session, engine.known.present()))
            others = engine.states_besides(found)
        if options.json:
            _dump({"format": "reconcile.status/1", "conversations": [to_builtins(each) for each in listed]})
            return
        style = Style.choose(options.color)
        click.echo(heading(session.roots, policy.layout.value, style) + "\n")
        _show_all(listed, others, style, session.roots.noun, verbose=options.verbose)


def _lost(each: Lost) -> StatusLine:
    detail = f"{each.left}: {each.command}" if each.command else each.left
    return StatusLine(
        each.conversation, each.title, 0, "lost", f"it was in a store that was lost; {detail}", settled=False
    )


def _dump(found: dict[str, Any]) -> None:
    click.echo(json.dumps(found, indent=2))


def _show_all(
    found: tuple[StatusLine, ...], others: Mapping[str, int], style: Style, noun: str, *, verbose: bool
) -> None:
    """Print what stands out, and count everything; ``others`` are settled, by their words."""
    quiet = {"in-sync", "available", "local", "archived"}
    shown = [each for each in found if verbose or not each.settled or each.word not in quiet]
    titles = [indented(each.depth, shorten(clean(each.title or "(no title)"), TITLE)) for each in shown]
    words = max((len(each.word) for each in shown), default=0)
    columns = max((width(title) for title in titles), default=0)
    for each, title in zip(shown, titles, strict=True):
        word = style(pad(each.word, words), COLORS.get(each.word))
        name = "" if each.title == each.conversation else style(clean(each.conversation), dim=True)
        click.echo(f"{word}  {pad(title, columns)}  {name}".rstrip())
        if each.detail:
            click.echo(" " * (words + 2) + indented(min(each.depth, MAX_INDENT), style(clean(each.detail), dim=True)))
    counts = Counter(each.word for each in found) + Counter(others)
    line = ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
    total = f"{counts.total()} {noun}{'' if counts.total() == 1 else 's'}"
    click.echo(style(f"{total}: {line or 'none'}.", bold=True))


def _show_one(options: Options, standing: StatusLine, details: dict[str, Any]) -> None:
    if options.json:
        _dump({"format": "reconcile.status/1", **to_builtins(standing), **details})
        return
    style = Style.choose(options.color)
    click.echo(title_and_id(standing.title, standing.conversation, style))
    click.echo(f"  {pad('stands', 10)} {standing.word}{': ' + clean(standing.detail) if standing.detail else ''}")
    click.echo(f"  {pad('intent', 10)} {details['intent']}")
    click.echo(f"  {pad('parents', 10)} {clean(_parents(details))}")
    for side in Side:
        for path in details[side.value] or ["(not there)"]:
            click.echo(f"  {pad(side.value, 10)} {clean(path)}")
    for unit in details["units"]:
        case = f"case {unit['case']}: " if unit["case"] else ""
        click.echo(f"  {clean(unit['unit'])}: {case}{unit['meaning']}")
        for name in ("baseline", "store", "workspace"):
            found = unit[name]
            if found is not None:
                when = f"  {found['time']}" if found.get("time") else ""
                click.echo(f"    {pad(name, 10)} {found['digest'] or 'invalid: ' + clean(found['fault'])}{when}")


def _parents(details: dict[str, Any]) -> str:
    known = details["known_parent"]
    if details["parents"]:
        return " > ".join(details["parents"])
    return f"(a root: its parent {known} isn't live)" if known else "(a root)"
