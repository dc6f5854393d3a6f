"""The pass of ``ls --tree --html``: reads every conversation, and writes the page."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from reconcile.errors import ReconcileError
from reconcile.inspect.listing import outline, survey
from reconcile.inspect.tree_view import read_transcripts, tree_view
from reconcile.state.directory import state_directory

from .context import find_roots, policy_of, settings_of
from .output.html.page_file import STDOUT, refuse_place, write_page
from .output.html.tree_page import tree_page
from .output.interaction import print_message
from .output.screen import show_paged, wrap
from .output.text import Style, short_path, size
from .run import opened, selected, top_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconcile.adapters.roots import Roots
    from reconcile.inspect.tree_view import TreeView
    from reconcile.planning.rules.views import View

    from .arguments import Options


LARGE = 1_000_000
"""Bytes from which on the size of a page is printed: programs for mail have limits."""


def write_tree_page(options: Options, path: str, root: str | None) -> None:
    """Write the tree below ``root``, or the whole tree, as a page to a file."""
    roots = find_roots(options)
    refuse_place(path, roots, state_directory(roots.key, os.environ, sys.platform))
    with opened(options) as engine:
        engine.read_everything()  # the page shows the state of every conversation
        policy = policy_of(options, settings_of(roots))
        found = engine.plan(policy, also=engine.noteworthy)
        context = engine.decide(found, policy)
        known = survey(engine, found, context)
        top = None if root is None else top_of(engine, root, known)
        order = outline(known, top, selected(engine, options, known))
        view = _arranged(tree_view(engine, found, context, known, order), roots, context.views)
        date = datetime.now(UTC).astimezone().strftime("%d %B %Y").removeprefix("0")
        written = write_page(path, tree_page(view, read_transcripts(engine.session, view, context.views), date))
    _report(options, path, view, roots, written)


def _arranged(view: TreeView, roots: Roots, views: Mapping[str, View]) -> TreeView:
    """Arrange the records of a program with fixed places; conversations have parents themselves."""
    if roots.format == "leslie":
        from reconcile.adapters.leslie.files import read_leslie  # here, as below: most pages show conversations
        from reconcile.inspect.record_tree import with_threads
        from reconcile.inspect.thread_listing import list_threads

        with suppress(ReconcileError):  # an unreadable file of threads is a record like the others
            threads = list_threads(read_leslie(roots.project, time.time_ns()), tree=True)
            if threads.damage is not None:
                raise threads.damage
            return with_threads(view, threads.rows)
    if roots.format == "claudesidian":
        from reconcile.inspect.record_listing import list_records
        from reconcile.inspect.record_tree import with_events

        return with_events(view, list_records(views.values()))
    return view


def _report(options: Options, path: str, view: TreeView, roots: Roots, written: int) -> None:
    count, private = len(view.nodes), sum(node.is_private for node in view.nodes)
    holds = f"{count} {view.noun}{'' if count == 1 else 's'} with all contents"
    holds += f", {private} private" if private else ""
    if path == STDOUT:
        print_message(options, f"the page holds {holds}; whoever has it can read them")
        return
    lines = [
        f"{short_path(path)}: {holds}{f' ({size(written)})' if written >= LARGE else ''}.",
        "Only you can read the file; whoever you send it to can read everything in it.",
    ]
    project, place = os.path.realpath(roots.project), os.path.realpath(path)
    if place.startswith(project.rstrip(os.sep) + os.sep):
        lines.append("It is inside the project: do not commit it.")
    style = Style.choose(options.color)
    show_paged([part for line in lines for part in wrap(line, style.columns)], style)
