"""``reconcile status [ID]``: how each conversation stands, and everything known of one."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins

from reconcile.engine.dispatch import plan_as_asked
from reconcile.engine.lost_versions import lost_with_store
from reconcile.inspect.conversation import describe, unseen_conflicts
from reconcile.model.snapshot import Side
from reconcile.planning.diagnosis import empty_directories
from reconcile.planning.filters import named
from reconcile.planning.status_listing import StatusLine, status_lines

from ..context import find_ids, find_roots, open_session, policy_of, selection, settings_of
from ..options import common_options, options_of
from ..output.interaction import print_message
from ..output.text import MAX_INDENT, Style, clean, heading, indented, pad, shorten, title_and_id, width
from .sync import tell_lost

if TYPE_CHECKING:
    from reconcile.engine.lost_versions import Lost

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
    roots = find_roots(options)
    settings = settings_of(roots)
    with open_session(roots, settings, readonly=True) as session:
        world = session.look()
        policy = session.surroundings(policy_of(options, settings, selection(session, world, options)))
        planning, plan = session.planning_context(world, policy), plan_as_asked(session, world, policy)
        tell_lost(options, session, world, policy)
        for message in session.messages:
            print_message(options, message)
        conflicts = frozenset(each.conversation for each in unseen_conflicts(session))
        empty = empty_directories(world.store, world.workspace)
        found = status_lines(planning, plan, session.busy(), conflicts, empty)
        if conversation is not None:
            (one,) = find_ids(session, world, [conversation])
            standing = next((each for each in found if each.conversation == one), None)
            if standing is None:
                raise click.UsageError(f"{one} is on neither side any more; `reconcile log` lists what runs did")
            _show_one(options, standing, describe(planning, one))
            return
        if (wanted := named(planning)) is not None:
            found = tuple(each for each in found if each.conversation in wanted)
        else:
            found += tuple(
                _lost(each) for each in lost_with_store(session.state, session.project, session.format, world)
            )
        if options.json:
            _dump({"format": "reconcile.status/1", "conversations": [to_builtins(each) for each in found]})
            return
        style = Style.choose(options.color)
        click.echo(heading(roots, policy.layout.value, style) + "\n")
        _show_all(found, style, roots.noun, verbose=options.verbose)


def _lost(each: Lost) -> StatusLine:
    detail = f"{each.left}: {each.command}" if each.command else each.left
    return StatusLine(
        each.conversation, each.title, 0, "lost", f"it was in a store that was lost; {detail}", settled=False
    )


def _dump(found: dict[str, Any]) -> None:
    click.echo(json.dumps(found, indent=2))


def _show_all(found: tuple[StatusLine, ...], style: Style, noun: str, *, verbose: bool) -> None:
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
    counts = Counter(each.word for each in found)
    line = ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
    total = f"{len(found)} {noun}{'' if len(found) == 1 else 's'}"
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
