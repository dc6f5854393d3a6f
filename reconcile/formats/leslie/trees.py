"""Parents and references as graphs: what is missing in them, and where they go round (F10, case 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def cycles(edges: Mapping[str, Iterable[str]]) -> list[tuple[str, ...]]:
    """A cycle of every knot, each beginning with the smallest of its members, in the order of those."""
    links = {node: {other for other in others if other in edges} for node, others in edges.items()}
    found = []
    while _trim(links):
        walk = [min(links)]
        while (following := min(links[walk[-1]])) not in walk:
            walk.append(following)
        cycle = walk[walk.index(following) :]
        start = cycle.index(min(cycle))
        found.append((*cycle[start:], *cycle[:start]))
        _drop(links, set(cycle))
    return sorted(found)


def _trim(links: dict[str, set[str]]) -> dict[str, set[str]]:
    """What neither begins nor ends anything goes, until only what leads back into cycles is left."""
    while ends := {node for node, others in links.items() if not others}:
        _drop(links, ends)
    return links


def _drop(links: dict[str, set[str]], gone: set[str]) -> None:
    for node in gone:
        del links[node]
    for others in links.values():
        others.difference_update(gone)
