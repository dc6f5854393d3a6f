"""Which directories each conversation has, and where, while the steps of a run are reversed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.model.names import CHILDREN
from reconcile.model.snapshot import Place, Side
from reconcile.planning.suppressions import Standing, standing, undone_record

if TYPE_CHECKING:
    from reconcile.model.baseline import AsideRecord
    from reconcile.model.units import Rules
    from reconcile.planning.virtual_tree import Node

_BELOW = f"/{CHILDREN}/"


class NotAsLeftError(Exception):
    """Something isn't as a run has left it, so that its step can't be taken back; the words say what is there."""


class Whereabouts:
    """The directories that are there, by place and by conversation."""

    def __init__(self, *, fixed: bool = False) -> None:
        """Know of nothing yet. ``fixed``: records have fixed places, none in another, whatever is in its path."""
        self._fixed = fixed
        self._owners: dict[Node, str] = {}
        """The conversation of every directory that was ever there: kept, as containers are known by their `id`."""
        self._of: dict[tuple[str, Side], dict[int, Node]] = {}
        self._at: dict[tuple[Side, int, str], Node] = {}
        """By side, container and path below that."""

    def enter(self, node: Node, conversation: str) -> None:
        """A directory of a conversation is there, or in another place."""
        self._owners[node] = conversation
        self._of.setdefault((conversation, node.side), {})[id(node)] = node
        self._at[_key(node)] = node

    def leave(self, node: Node) -> None:
        """A directory leaves its place, for another one or for good."""
        del self._at[_key(node)]
        del self._of[self._owners[node], node.side][id(node)]

    def owner(self, node: Node) -> str:
        """Return the conversation that a directory belongs to."""
        return self._owners[node]

    def of(self, conversation: str, side: Side) -> list[Node]:
        """Return the directories of a conversation that a side has."""
        return [*self._of.get((conversation, side), {}).values()]

    def has(self, conversation: str, side: Side, name: str | None = None) -> bool:
        """Tell whether a side has the conversation, or a file of it."""
        return any(name is None or name in node.files for node in self.of(conversation, side))

    def find(self, place: Place) -> Node | None:
        """Return the directory at a place."""
        node: Node | None = None
        for number, part in enumerate([place.path] if self._fixed else place.path.split(_BELOW)):
            if number and node is None:
                return None
            node = self._at.get((place.side, id(node), part))
        return node

    def there(self, place: Place) -> Node:
        """Return the directory at a place.

        Raises:
            NotAsLeftError: there is none.
        """
        node = self.find(place)
        if node is None:
            raise NotAsLeftError(f"{place}: found nothing there")
        return node

    def spot(self, place: Place) -> tuple[Node | None, str, str]:
        """Return a place as its container, its prefix below that, and its name.

        Raises:
            NotAsLeftError: its container isn't there.
        """
        above, _, rest = ("", "", place.path) if self._fixed else place.path.rpartition(_BELOW)
        container = self.there(Place(place.side, above)) if above else None
        prefix, _, name = rest.rpartition("/")
        return container, prefix + "/" if prefix else "", name

    def record(self, conversation: str, rules: Rules) -> AsideRecord | None:
        """Return the record of how a conversation stands; None where it is nowhere."""
        found: dict[Side, list[Standing]] = {side: [] for side in Side}
        for side in Side:
            for node in self.of(conversation, side):
                container = self.owner(node.container) if node.container is not None else None
                found[side].append(standing(node.path, container, node.files.values()))
        return undone_record(found[Side.STORE], found[Side.WORKSPACE], rules)


def _key(node: Node) -> tuple[Side, int, str]:
    return node.side, id(node.container), node.prefix + node.name
