"""Where the directories of one side are while a plan is being made: moves change it step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconcile.model.names import CHILDREN
from reconcile.model.snapshot import Place, joined

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from reconcile.model.snapshot import Copy, File, Foreign, Side, Snapshot


class Node:
    """One copy's directory, or the file that it is. Moving it carries everything below it along, as a rename does."""

    __slots__ = ("below", "container", "copy", "files", "gone", "name", "prefix", "side", "unkept")

    def __init__(self, side: Side, container: Node | None, prefix: str, name: str) -> None:
        """Put a directory ``name`` at ``prefix`` below its container's directory (None: the side's root)."""
        self.side = side
        self.container = container
        self.prefix = prefix
        self.name = name
        self.copy: Copy | None = None
        self.files: dict[str, File] = {}
        self.below: dict[int, Node] = {}
        self.unkept: tuple[Foreign, ...] = ()
        """What lies in it that the vault can't keep: it isn't removed."""
        self.gone = False
        if container is not None:
            container.below[id(self)] = self

    @property
    def path(self) -> str:
        """The current path, below the side's ``conversations/``."""
        parts: list[str] = []
        node: Node | None = self
        while node is not None:
            parts.append(node.prefix + node.name)
            node = node.container
            if node is not None:
                parts.append(f"/{CHILDREN}/")
        return "".join(reversed(parts))

    @property
    def place(self) -> Place:
        """The current path with its side."""
        return Place(self.side, self.path)

    def file(self, name: str) -> Place:
        """Return the current place of one of its files."""
        return Place(self.side, joined(self.path, name))

    def move(self, container: Node | None, prefix: str, name: str) -> None:
        """Change its place; what lies below it goes along."""
        if self.container is not None:
            del self.container.below[id(self)]
        self.container, self.prefix, self.name = container, prefix, name
        if container is not None:
            container.below[id(self)] = self

    def leave(self) -> None:
        """Be nowhere: it has been removed."""
        self.move(None, "", self.name)
        self.gone = True

    def is_at(self, container: Node | None, prefix: str, name: str) -> bool:
        """Tell whether it is at that place already."""
        return not self.gone and (self.container, self.prefix, self.name) == (container, prefix, name)

    def lies_below(self, other: Node) -> bool:
        """Tell whether it is ``other`` or somewhere inside it."""
        node: Node | None = self
        while node is not None and node is not other:
            node = node.container
        return node is other

    def subtree(self) -> Iterator[Node]:
        """Yield everything below it, containers before what they hold."""
        stack = list(self.below.values())
        while stack:
            node = stack.pop()
            yield node
            stack.extend(node.below.values())

    def inhabitants(self) -> set[str]:
        """Return the conversations whose directories lie below it."""
        return {node.copy.conversation for node in self.subtree() if node.copy is not None}

    def obstacle(self) -> str | None:
        """Return why it isn't removed, in words; None where nothing lies in it that the vault can't keep."""
        return self._words(self.unkept[0]) if self.unkept else None

    def anchor(self) -> str | None:
        """Return why it isn't moved, in words; None where no git repository lies in it or below it."""
        found = (each for node in (self, *self.subtree()) for each in node.unkept if each.repository)
        return next(map(self._words, found), None)

    def _words(self, foreign: Foreign) -> str:
        return f"{self.side}:{foreign.path}: {foreign.obstacle}"

    def is_hollow(self) -> bool:
        """Tell whether no file is known in it, nor in anything below it."""
        return not self.files and not any(node.files for node in self.subtree())


def nodes_of(snapshot: Snapshot) -> dict[str, Node]:
    """Return the node of every copy of a side, by the path that the scan found."""
    nodes: dict[str, Node] = {}
    for copy in sorted(snapshot.copies, key=lambda copy: copy.path):
        container, rest = _enclosing(copy.path, nodes)
        node = Node(snapshot.side, container, rest.removesuffix(copy.dirname), copy.dirname)
        node.copy = copy
        node.files = {file.name: file for file in copy.files}
        nodes[copy.path] = node
    for foreign in snapshot.foreign:
        if foreign.special and (owner := owner_of(foreign.path, nodes)) is not None:
            nodes[owner].unkept += (foreign,)
    return nodes


def owner_of(path: str, nodes: Mapping[str, Node]) -> str | None:
    """Return the path of the copy that something lies in, None where it lies in none."""
    above = path
    while above:
        above = above.rpartition("/")[0]
        if above in nodes:
            return above
    return None


def _enclosing(path: str, nodes: dict[str, Node]) -> tuple[Node | None, str]:
    """Find the copy that a path lies in, and what remains of the path below its children."""
    above, _, rest = path.rpartition(f"/{CHILDREN}/")
    container = nodes.get(above)
    return (None, path) if container is None else (container, rest)
