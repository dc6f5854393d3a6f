"""The tree index: who is whose parent, without parents that are gone and without cycles (docs/design/placement.md)."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Order = Callable[[str], tuple[int, str]]


class TreeIndex:
    """An immutable forest over the live conversations.

    A parent that isn't live makes its child a root (docs/design/placement.md#rule-3). A cycle, also of one, is broken
    at its member with the smallest id, which is a root (docs/design/placement.md#rule-4). Every iteration is in the
    order of ids; nothing recurses.
    """

    def __init__(self, parents: Mapping[str, str | None], order: Order) -> None:
        """Index ``parents``, the stated parent of each live conversation."""
        self._order = order
        self._stated = dict(parents)
        self._parent = {child: parent if parent in parents else None for child, parent in parents.items()}
        self.cycles = self._break_cycles()
        self._cut = frozenset(cycle[0] for cycle in self.cycles)
        self._children: dict[str | None, list[str]] = {}
        for child in sorted(self._parent, key=order):
            self._children.setdefault(self._parent[child], []).append(child)

    def _break_cycles(self) -> tuple[tuple[str, ...], ...]:
        """Cut every cycle at its smallest member; return the cycles, each from that member on."""
        settled: set[str] = set()
        cycles = []
        for start in sorted(self._parent, key=self._order):
            path: dict[str, None] = {}
            node: str | None = start
            while node is not None and node not in settled and node not in path:
                path[node] = None
                node = self._parent[node]
            if node is not None and node in path:
                trail = list(path)
                members = trail[trail.index(node) :]
                smallest = min(members, key=self._order)
                at = members.index(smallest)
                self._parent[smallest] = None
                cycles.append(tuple(members[at:] + members[:at]))
            settled.update(path)
        return tuple(cycles)

    def __contains__(self, conversation: str) -> bool:
        """Tell whether the conversation is live."""
        return conversation in self._parent

    def parent_of(self, conversation: str) -> str | None:
        """Return the parent that places it, None for a root."""
        return self._parent[conversation]

    def parent_is_gone(self, conversation: str) -> bool:
        """Tell whether a parent is stated that isn't live."""
        stated = self._stated[conversation]
        return stated is not None and stated not in self._stated

    def breaks_cycle(self, conversation: str) -> bool:
        """Tell whether it is a root because its cycle was broken at it."""
        return conversation in self._cut

    def children_of(self, conversation: str) -> tuple[str, ...]:
        """Return the direct children in the order of ids."""
        return tuple(self._children.get(conversation, ()))

    def has_children(self, conversation: str) -> bool:
        """Tell whether any live conversation is placed below it."""
        return conversation in self._children

    def roots(self) -> tuple[str, ...]:
        """Return the conversations without a live parent, in the order of ids."""
        return tuple(self._children.get(None, ()))

    def ancestors(self, conversation: str) -> Iterator[str]:
        """Yield parent, grandparent and so on, up to a root."""
        node = self._parent[conversation]
        while node is not None:
            yield node
            node = self._parent[node]

    @cached_property
    def depths(self) -> Mapping[str, int]:
        """How many lie above each, 0 for a root; parents before children."""
        depths: dict[str, int] = {}
        for each in self.walk():
            parent = self._parent[each]
            depths[each] = 0 if parent is None else depths[parent] + 1
        return depths

    @cached_property
    def tops(self) -> Mapping[str, str]:
        """The root of the tree that each is in."""
        tops: dict[str, str] = {}
        for each in self.walk():
            parent = self._parent[each]
            tops[each] = each if parent is None else tops[parent]
        return tops

    def descendants(self, conversation: str) -> Iterator[str]:
        """Yield everything below it, parents before children, siblings in the order of ids."""
        yield from self._walk(list(reversed(self.children_of(conversation))))

    def walk(self) -> Iterator[str]:
        """Yield everything, parents before children, siblings in the order of ids."""
        yield from self._walk(list(reversed(self.roots())))

    def _walk(self, stack: list[str]) -> Iterator[str]:
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(self.children_of(node)))
