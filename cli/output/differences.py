"""The differences between the two sides of one conversation as lines of text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from reconcile.inspect.conversation import compare, compare_records

from .screen import fit
from .text import MAX_COLUMNS, Style, clean, pad, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from reconcile.engine.session import Session
    from reconcile.inspect.conversation import Comparison, EventLine
    from reconcile.planning.rules.views import View

    from ..arguments import Options

SHOWN = 20
"""Number of events of a side that are listed without ``-v``."""


def compared(session: Session, view: View) -> Comparison:
    """Compare the two sides of a conversation."""
    if session.format.places is None:
        return compare(view, *session.contents(view), session.file_names)
    return compare_records(view, *session.contents(view))


def print_differences(session: Session, views: Mapping[str, View], options: Options, conversation: str) -> None:
    """Print the differences between the sides of one conversation, for a question."""
    style = Style.choose(options.color)
    lines = difference_lines(compared(session, views[conversation]), style, None if options.verbose else SHOWN)
    for line in fit(lines, style):
        click.echo(line)


def difference_lines(comparison: Comparison, style: Style, most: int | None) -> Iterator[str]:
    """Yield the lines of a comparison; ``most``: the number of events of a side that are listed, None: all."""
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
