"""The differences between the two sides of one conversation, and their lines for a question."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from reconcile.inspect.conversation import compare, compare_records
from reconcile.inspect.differences import differences_of
from reconcile.inspect.sources import Source, side_source
from reconcile.model.snapshot import Side

from .diff_text import diff_lines
from .text import Style

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconcile.engine.session import Session
    from reconcile.inspect.conversation import Comparison
    from reconcile.inspect.differences import Differences
    from reconcile.planning.rules.views import View

    from ..arguments import Options


def compared(session: Session, view: View) -> Comparison:
    """Compare the two sides of a conversation."""
    if session.format.places is None:
        return compare(view, *session.contents(view), session.file_names)
    return compare_records(view, *session.contents(view))


def differences_of_sides(session: Session, view: View) -> Differences:
    """Compare the two sides of a conversation, word by word."""
    store, workspace = (_side(session, view, side) for side in Side)
    return differences_of(session.format, store, workspace, compared(session, view))


def _side(session: Session, view: View, side: Side) -> Source:
    """Return the version of a side; one without any files if the side has none."""
    copy = view.side(side).main
    if copy is None:
        return Source(view.id, side.value, f"{view.id}@{side}", {}, title=view.title)
    return replace(side_source(session, copy), title=view.title)


def print_differences(
    session: Session, views: Mapping[str, View], options: Options, labels: tuple[str, str], conversation: str
) -> None:
    """Print the differences between the sides of one conversation, for a question, as `diff` does.

    ``labels``: the names of the store and of the workspace.
    """
    style = Style.choose(options.color)
    found = differences_of_sides(session, views[conversation])
    for line in diff_lines(found, labels, style, is_full=options.verbose):
        click.echo(line)
