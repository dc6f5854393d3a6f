"""``reconcile diff ID``: prints the differences between the sides of one conversation, and its lost conflicts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins

from reconcile.inspect.conversation import compare, compare_records, decided_conflicts, mark_seen
from reconcile.model.snapshot import Side
from reconcile.planning.conflicts import time_text

from ..command import Command
from ..context import find_ids, open_session, policy_of, settings_of
from ..options import options_of
from ..output.text import MAX_COLUMNS, Style, clean, pad, shorten, title_and_id
from ..output.words import unit_word
from ..run import opened, selection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reconcile.inspect.conversation import Comparison, EventLine

SHOWN = 20
"""Number of events of a side that are listed without ``-v``."""


@click.command(
    "diff",
    cls=Command,
    accepts=("dry_run", "json", "verbose"),
    examples=(
        ("reconcile diff jp-c17780300000", "Compare both sides of a conversation."),
        ("reconcile diff jp-c17780300000 --verbose", "List every event that differs."),
    ),
)
@click.argument("conversation", metavar="ID")
@click.pass_context
def diff(context: click.Context, conversation: str) -> None:
    """Show the differences between store and workspace.

    Compares metadata by key, and events one by one. Also shows how the last conflict was decided, and marks that notice
    as read, unless --dry-run is given.
    """
    options = options_of(context)
    writes = not options.is_dry
    with opened(options) as engine:
        session, settings = engine.session, settings_of(engine.session.roots)
        roots = session.roots
        (one,) = find_ids(engine, [conversation])
        policy = policy_of(options, settings, selection(engine, options))
        view = engine.decide(engine.plan(policy, also=[one]), policy).views[one]
        if session.format.places is None:
            comparison = compare(view, *session.contents(view), session.file_names)
        else:
            comparison = compare_records(view, *session.contents(view))
        decided = [each for each in decided_conflicts(session, one) if not each.is_back(view)]
        losers = [version for each in decided for version in each.lost]
    if writes and any(not each.is_seen for each in decided):
        with open_session(roots, settings, readonly=False) as session:
            mark_seen(session, [one])
    if options.json:
        kept = [
            {
                "unit": version.unit,
                "file": version.file,
                "side": version.side.value,
                "version": version.name,
                "digest": version.digest,
            }
            for version in losers
        ]
        won = [
            {
                "unit": each.unit,
                "run": each.run,
                "winner": each.winner.value,
                "chosen": each.chosen,
                "lost": each.version,
            }
            for each in decided
        ]
        text = {"format": "reconcile.diff/1", "conversation": one, **_json(comparison), "losers": kept, "decided": won}
        click.echo(json.dumps(text, indent=2))
        return
    style = Style.choose(options.color)
    click.echo(title_and_id(view.title, one, style))
    for line in _lines(comparison, style, None if options.verbose else SHOWN):
        click.echo(line)
    for each in decided:
        how = " (resolve)" if each.chosen else ""
        saved = f"saved in the vault ({time_text(max(version.mtime_ns for version in each.lost))})"
        unit = clean(unit_word(each.unit))
        click.echo(f"  conflict in {unit}, decided by run {each.run}{how}:")
        for side in Side:
            click.echo(f"    {pad(side.value, 10)} {'kept' if side is each.winner else saved}")
        click.echo(f"    {style(f'reconcile show {clean(each.version)}', 'cyan')}")
        click.echo(f"    {style(f'reconcile restore {clean(each.version)}', 'cyan')}")


def _json(comparison: Comparison) -> dict[str, Any]:
    values: dict[str, Any] = to_builtins(comparison)
    values["metadata"] = [{"key": key, "store": ours, "workspace": theirs} for key, ours, theirs in comparison.metadata]
    values["extras"] = [{"name": name, "state": state} for name, state in comparison.extras]
    return values


def _lines(comparison: Comparison, style: Style, most: int | None) -> Iterator[str]:
    if comparison.empty:
        yield "  no differences"
        return
    for note in comparison.notes:
        yield f"  {style('note', 'yellow')} {clean(note)}"
    for key, ours, theirs in comparison.metadata:
        yield f"  metadata {clean(key)}"
        yield style(f"    - store      {_value(ours)}", "red")
        yield style(f"    + workspace  {_value(theirs)}", "green")
    if comparison.base_config_differs:
        yield "  base_config.json differs"
    if comparison.store_only or comparison.workspace_only:
        yield f"  events: the first {comparison.common} are the same"
        yield from _events(comparison.store_only, "- store", "red", style, most)
        yield from _events(comparison.workspace_only, "+ workspace", "green", style, most)
    for name, state in comparison.extras:
        yield f"  {clean(name)}: {state}"


def _value(value: Any) -> str:
    return "(absent)" if value is None else shorten(clean(json.dumps(value, ensure_ascii=False)), MAX_COLUMNS)


def _events(events: tuple[EventLine, ...], side: str, color: str, style: Style, most: int | None) -> Iterator[str]:
    for event in events[:most]:
        kind = pad(shorten(clean(event.type), 40), 18)
        text = f"{pad(side, 11)} {event.position:>5}  {clean(event.time)}  {kind} {clean(event.text)}"
        yield style(f"    {text}".rstrip(), color)
    if most is not None and len(events) > most:
        yield f"    {pad(side, 11)} ... and {len(events) - most} more (-v shows all)"
