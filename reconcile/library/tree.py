"""Who is whose parent, kept up by what changes: an answer and a change cost what they concern, not what there is.

The rules are those of `reconcile.planning.rules.tree`: a parent that isn't there makes its child a root, and a cycle is
broken at its smallest member.
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
    """The live conversations, each with the parent that it states; for all threads."""

    def __init__(self, parents: Mapping[str, str | None], order: Callable[[str], tuple[int, str]]) -> None:
        """Take over what is there; every answer is in the order of ids."""
        self._order = order
        self._mutex = threading.RLock()
        self._stated: dict[str, str | None] = {}
        self._below: dict[str, set[str]] = {}
        self._cycles: dict[str, frozenset[str]] = {}
        """Each by the member that it is broken at."""
        for conversation, parent in parents.items():
            self.put(conversation, parent)

    def __contains__(self, conversation: object) -> bool:
        """Tell whether it is there."""
        return conversation in self._stated

    def all(self) -> list[str]:
        """Return everything."""
        with self._mutex:
            return sorted(self._stated, key=self._order)

    def put(self, conversation: str, parent: str | None) -> None:
        """Say what a conversation states now; it need not have been there."""
        with self._mutex:
            if conversation in self._stated and self._stated[conversation] == parent:
                return
            self.remove(conversation)
            self._stated[conversation] = parent
            if parent is not None:
                self._below.setdefault(parent, set()).add(conversation)
            self._look_for_cycle(conversation)

    def remove(self, conversation: str) -> None:
        """Say that a conversation is gone; its children are roots, until it comes back."""
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
            return sorted((each for each in below if each not in self._cycles), key=self._order)

    def ancestors_of(self, conversation: str) -> list[str]:
        """Return parent, grandparent and so on."""
        found = []
        with self._mutex:
            above = self.parent_of(conversation)
            while above is not None:
                found.append(above)
                above = self.parent_of(above)
        return found

    def descendants_of(self, conversation: str) -> list[str]:
        """Return everything below, parents before children."""
        found = []
        with self._mutex:
            stack = self.children_of(conversation)[::-1]
            while stack:
                found.append(stack.pop())
                stack += self.children_of(found[-1])[::-1]
        return found

    def is_below(self, conversation: str, other: str) -> bool:
        """Tell whether a conversation is the other, or below it."""
        return conversation == other or other in self.ancestors_of(conversation)

    def _look_for_cycle(self, conversation: str) -> None:
        """A cycle that is new goes through what was put."""
        path: dict[str, None] = {}
        each: str | None = conversation
        while each is not None and each in self._stated and each not in path:
            path[each] = None
            each = self._stated[each] if each not in self._cycles else None
        if each == conversation:
            self._cycles[min(path, key=self._order)] = frozenset(path)


def show(tree: Tree, fmt: Format, conversation: str, contents: Contents) -> None:
    """Have the tree know what a conversation states now; nothing in it: it is gone."""
    if not contents:
        tree.remove(conversation)
        return
    metadata = fmt.read_metadata(contents[fmt.metadata_file])
    known = tree.parent_of(conversation) if conversation in tree else None
    says = isinstance(metadata, Metadata) and metadata.parent.kind in (ParentKind.ID, ParentKind.ROOT)
    tree.put(conversation, metadata.parent.id if isinstance(metadata, Metadata) and says else known)
