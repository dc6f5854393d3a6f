"""The tree of a program's records for the page: Leslie's threads, and Claudesidian's records with their event files.

The formats' own files have no parents. The program's own references arrange them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.formats.claudesidian.vault import Place, Role, event_file, place_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reconcile.inspect.record_listing import RecordRow
    from reconcile.inspect.thread_listing import ThreadRow
    from reconcile.inspect.tree_view import Node, TreeView

_THREADS = "threads/"
_RECORD_SUFFIX = ".json"


def with_threads(view: TreeView, rows: Iterable[ThreadRow]) -> TreeView:
    """Return the page's tree with the threads first, in the order and depth of their listing; then all other records.

    ``rows`` are those of the tree, parents first. A thread without a record of its own is left out, and its children
    move up.
    """
    nodes = {node.conversation: node for node in view.nodes}
    depths: dict[str, int] = {}
    arranged: list[Node] = []
    for row in rows:
        node = nodes.pop(f"{_THREADS}{row.thread}", None)
        above = depths.get(row.parent, 0) if row.parent is not None else 0
        depths[row.thread] = above + (node is not None)
        if node is not None:
            arranged.append(replace(node, title=row.title or node.title, depth=above))
    return replace(view, nodes=(*arranged, *nodes.values()))


def with_events(view: TreeView, rows: Iterable[RecordRow]) -> TreeView:
    """Return the page's tree with the last use of each record, and its event file below it; last used first."""
    nodes = {node.conversation: node for node in view.nodes}
    listed = [row for row in rows if row.record in nodes]
    last = {row.record: int(row.last_ms) for row in listed}
    below = {place: row.record for row in listed if (place := place_of(row.record)) and place.role is Role.EVENTS}

    def arranged() -> Iterator[Node]:
        done: set[str] = set()
        for row in listed:
            place = place_of(row.record)
            if place is None or place.role is not Role.RECORD:
                continue
            done.add(row.record)
            yield replace(nodes[row.record], last_ms=last[row.record] or None)
            events = below.get(_events_of(place))
            if events is not None:
                done.add(events)
                title = f"Events of {nodes[row.record].title or place.name}"
                yield replace(nodes[events], title=title, depth=1, last_ms=last[events] or None)
        yield from (node for id_, node in nodes.items() if id_ not in done)

    return replace(view, nodes=tuple(arranged()))


def _events_of(place: Place) -> Place:
    """Return the place of the event file of a record."""
    return Place(Role.EVENTS, place.kind, event_file(place.kind, place.name.removesuffix(_RECORD_SUFFIX)))
