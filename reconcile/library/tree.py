"""The tree of live conversations, updated one by one: the cost of a change depends on the conversations it concerns.

The rules are those of `reconcile.planning.rules.tree`: a missing parent makes its child a root, and a cycle is broken
at its smallest member.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from reconcile.model.snapshot import Metadata, ParentKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from reconcile.library.values import Contents
    from reconcile.model.format import Format


class Tree:
    """The live conversations, each with the parent that it states; safe for all threads."""

    def __init__(self, parents: Mapping[str, str | None], order: Callable[[str], tuple[int, str]]) -> None:
        """Begin with these conversations and parents; every result is in the order of ids."""
        self._order = order
        self._mutex = threading.RLock()
        self._stated: dict[str, str | None] = {}
        self._below: dict[str, set[str]] = {}
        self._cycles: dict[str, frozenset[str]] = {}
        """The members of each cycle, by the member at which it is broken."""
        for conversation, parent in parents.items():
            self.put(conversation, parent)

    def __contains__(self, conversation: object) -> bool:
        """Return whether a conversation is live."""
        return conversation in self._stated

    def all(self) -> list[str]:
        """Return all conversations."""
        with self._mutex:
            return sorted(self._stated, key=self._order)

    def put(self, conversation: str, parent: str | None) -> None:
        """Set the parent that a conversation states; adds the conversation if it is new."""
        with self._mutex:
            if conversation in self._stated and self._stated[conversation] == parent:
                return
            self.remove(conversation)
            self._stated[conversation] = parent
            if parent is not None:
                self._below.setdefault(parent, set()).add(conversation)
            self._find_cycle(conversation)

    def remove(self, conversation: str) -> None:
        """Remove a conversation; its children are roots until it is added again."""
        with self._mutex:
            for cut in [cut for cut, members in self._cycles.items() if conversation in members]:
                del self._cycles[cut]
            parent = self._stated.pop(conversation, None)
            if parent is not None:
                self._below[parent].discard(conversation)

    def parent_of(self, conversation: str) -> str | None:
        """Return the parent; None for a root."""
        parent = self._stated.get(conversation)
        return parent if parent in self._stated and conversation not in self._cycles else None

    def children_of(self, conversation: str) -> list[str]:
        """Return the children."""
        with self._mutex:
            below = self._below.get(conversation, ()) if conversation in self._stated else ()
            return sorted((child for child in below if child not in self._cycles), key=self._order)

    def ancestors_of(self, conversation: str) -> list[str]:
        """Return parent, grandparent and so on."""
        ancestors = []
        with self._mutex:
            parent = self.parent_of(conversation)
            while parent is not None:
                ancestors.append(parent)
                parent = self.parent_of(parent)
        return ancestors

    def descendants_of(self, conversation: str) -> list[str]:
        """Return all descendants, parents before children."""
        descendants: list[str] = []
        with self._mutex:
            stack = self.children_of(conversation)[::-1]
            while stack:
                descendants.append(stack.pop())
                stack += self.children_of(descendants[-1])[::-1]
        return descendants

    def is_below(self, conversation: str, other: str) -> bool:
        """Return whether a conversation is the other or one of its descendants."""
        return conversation == other or other in self.ancestors_of(conversation)

    def _find_cycle(self, conversation: str) -> None:
        """Find the cycle that a conversation closes: a new cycle contains the conversation that was set last."""
        path: dict[str, None] = {}
        ancestor: str | None = conversation
        while ancestor is not None and ancestor in self._stated and ancestor not in path:
            path[ancestor] = None
            ancestor = self._stated[ancestor] if ancestor not in self._cycles else None
        if ancestor == conversation:
            self._cycles[min(path, key=self._order)] = frozenset(path)


def update_tree(tree: Tree, fmt: Format, conversation: str, contents: Contents) -> None:
    """Update the tree with the files of a conversation; without files it is removed."""
    if not contents:
        tree.remove(conversation)
        return
    metadata = fmt.read_metadata(contents[fmt.metadata_file])
    known = tree.parent_of(conversation) if conversation in tree else None
    is_stated = isinstance(metadata, Metadata) and metadata.parent.kind in (ParentKind.ID, ParentKind.ROOT)
    tree.put(conversation, metadata.parent.id if isinstance(metadata, Metadata) and is_stated else known)
