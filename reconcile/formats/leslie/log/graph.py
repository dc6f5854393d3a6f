"""Parents and references as graphs: what is missing in them, and where they go round.

See docs/design/formats/leslie.md#f10.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def cycles(edges: Mapping[str, Iterable[str]]) -> list[tuple[str, ...]]:
    """A cycle of every knot, each beginning with the smallest of its members, in the order of those."""
    links = {node: {other for other in others if other in edges} for node, others in edges.items()}
    before: dict[str, list[str]] = {node: [] for node in links}
    for node, others in links.items():
        for other in others:
            before[other].append(node)
    _drop(links, before, [node for node, others in links.items() if not others])
    found = []
    for start in sorted(links):
        if start not in links:
            continue  # it went with a cycle before
        walk = {start: None}
        node = start
        while (node := min(links[node])) not in walk:
            walk[node] = None
        path = list(walk)
        cycle = path[path.index(node) :]
        first = cycle.index(min(cycle))
        found.append((*cycle[first:], *cycle[:first]))
        _drop(links, before, cycle)
    return sorted(found)


def _drop(links: dict[str, set[str]], before: Mapping[str, Iterable[str]], gone: list[str]) -> None:
    """Take nodes out, and with them everything that leads nowhere then."""
    todo = list(gone)
    while todo:
        node = todo.pop()
        if links.pop(node, None) is None:
            continue
        for above in before[node]:
            if above in links:
                links[above].discard(node)
                if not links[above]:
                    todo.append(above)
