"""The storage of an open workspace and the backend that receives its changes: protocols, and those in memory.

`reconcile.library.disk` has those that read and write both sides.
"""

from __future__ import annotations

import threading
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from reconcile.formats import get_format
from reconcile.library.errors import children_error
from reconcile.model.snapshot import Metadata, ParentKind
from reconcile.planning.rules.tree import TreeIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from reconcile.adapters.jp.locks import Lease
    from reconcile.library.values import Contents
    from reconcile.model.format import Format
    from reconcile.planning.rules.tree import Order


class Strategy(StrEnum):
    """The treatment of the children of a removed conversation."""

    CASCADE = "cascade"
    """All descendants are removed, too."""
    PROMOTE = "promote"
    """The children get the parent of the removed conversation, or become roots."""


class Change(Struct, frozen=True, kw_only=True):
    """One change of one conversation: the managed files as they were read, and as they must be written.

    ``before`` is empty for a new conversation. ``local`` keeps a new conversation out of workspaces.
    """

    conversation: str
    before: Contents
    after: Contents
    local: bool = False
    lease: Lease
    """The lock that is held from reading to writing."""

    @property
    def files(self) -> Contents:
        """The files whose content differs."""
        return {name: content for name, content in self.after.items() if self.before.get(name) != content}


class Removal(Struct, frozen=True, kw_only=True):
    """The removal of one conversation; ``strategy`` says how its children are treated (None: it has none)."""

    conversation: str
    strategy: Strategy | None
    lease: Lease


class Tree:
    """The live conversations with the parents that they state, safe for all threads.

    `TreeIndex` has the rules; it is built again for the first question after a change.
    """

    def __init__(self, parents: Mapping[str, str | None], order: Order) -> None:
        """Begin with these conversations and parents; every result is in the order of ids."""
        self._order = order
        self._mutex = threading.RLock()
        self._stated = dict(parents)
        self._built: TreeIndex | None = None

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
            if conversation not in self._stated or self._stated[conversation] != parent:
                self._stated[conversation], self._built = parent, None

    def remove(self, conversation: str) -> None:
        """Remove a conversation; its children are roots until it is added again."""
        with self._mutex:
            self._stated.pop(conversation, None)
            self._built = None

    def parent_of(self, conversation: str) -> str | None:
        """Return the parent; None for a root, and for a conversation that isn't live."""
        index = self._index()
        return index.parent_of(conversation) if conversation in index else None

    def children_of(self, conversation: str) -> list[str]:
        """Return the children."""
        return list(self._index().children_of(conversation))

    def ancestors_of(self, conversation: str) -> list[str]:
        """Return parent, grandparent and so on."""
        index = self._index()
        return list(index.ancestors(conversation)) if conversation in index else []

    def descendants_of(self, conversation: str) -> list[str]:
        """Return all descendants, parents before children."""
        return list(self._index().descendants(conversation))

    def is_below(self, conversation: str, other: str) -> bool:
        """Return whether a conversation is the other or one of its descendants."""
        return conversation == other or other in self.ancestors_of(conversation)

    def _index(self) -> TreeIndex:
        with self._mutex:
            if self._built is None:
                self._built = TreeIndex(self._stated, self._order)
            return self._built


def update_tree(tree: Tree, fmt: Format, conversation: str, contents: Contents) -> None:
    """Update the tree with the files of a conversation; without files it is removed."""
    if not contents:
        tree.remove(conversation)
        return
    metadata = fmt.read_metadata(contents[fmt.metadata_file])
    if isinstance(metadata, Metadata) and metadata.parent.kind in (ParentKind.ID, ParentKind.ROOT):
        tree.put(conversation, metadata.parent.id)
    elif conversation not in tree:
        tree.put(conversation, None)


class FileSource(Struct, frozen=True):
    """A managed file that is read on demand; ``version`` differs if the content differs."""

    version: object
    read: Callable[[], bytes]


class PersistBackend(Protocol):
    """Receives changes, one call for each flush, while the conversation's lock is held.

    A call returns messages about work that must wait although the change is safe: a git operation is in progress in
    the workspace. An exception reaches the caller of `flush`, and the scope stays dirty.
    """

    def persist(self, change: Change) -> tuple[str, ...]:
        """Write a change."""

    def remove(self, removal: Removal) -> tuple[str, ...]:
        """Remove a conversation."""


class Storage(Protocol):
    """Reads conversations, and passes changes to a backend: a real workspace may be read without being written."""

    @property
    def format(self) -> Format:
        """The format of the files."""

    @property
    def tree(self) -> Tree:
        """The live conversations."""

    @property
    def backend(self) -> PersistBackend:
        """The backend that receives changes."""

    def is_ours(self) -> bool:
        """Return whether this process may use it: an open database is unusable after a fork."""

    def taken_ids(self) -> Collection[str]:
        """Return the ids that are in use, or were."""

    def refresh(self) -> None:
        """Scan everything again."""

    def load(self, conversation: str) -> Mapping[str, FileSource]:
        """Return the files of a conversation without its lock; {} if it doesn't exist."""

    def prepare(self, conversation: str, lease: Lease) -> Contents:
        """Return the files that will be changed; the caller holds the lock."""

    def persist(self, change: Change) -> tuple[str, ...]:
        """Pass a change to the backend, and show it from now on; return messages about work that waits."""

    def remove(self, removal: Removal) -> tuple[str, ...]:
        """Pass a removal to the backend, and hide the conversation; return messages about work that waits."""

    def close(self) -> None:
        """Close files and connections."""


class NullBackend:
    """Discards every change; the open workspace still shows it."""

    def persist(self, change: Change) -> tuple[str, ...]:  # noqa: ARG002 - discarded
        """Do nothing."""
        return ()

    def remove(self, removal: Removal) -> tuple[str, ...]:  # noqa: ARG002 - discarded
        """Do nothing."""
        return ()


class RecordingBackend:
    """Appends each change to ``recorded``, then passes it to the backend ``then`` (default: discards it)."""

    def __init__(self, then: PersistBackend | None = None) -> None:
        self.recorded: list[Change | Removal] = []
        self._then: PersistBackend = then or NullBackend()

    def persist(self, change: Change) -> tuple[str, ...]:
        """Record a change."""
        self.recorded.append(change)
        return self._then.persist(change)

    def remove(self, removal: Removal) -> tuple[str, ...]:
        """Record a removal."""
        self.recorded.append(removal)
        return self._then.remove(removal)


class MemoryStorage:
    """Changes in memory that overlay the storage ``base``; the backend receives each of them, too."""

    def __init__(self, base: Storage | None, backend: PersistBackend) -> None:
        self._base = base
        self.backend = backend
        self.format: Format = base.format if base else get_format("jp")
        self._mutex = threading.RLock()
        self._changed: dict[str, Contents] = {}
        self.tree: Tree
        self._arrange()

    def is_ours(self) -> bool:
        """Return True: no database stays open, so that a forked process may use it."""
        return True

    def taken_ids(self) -> Collection[str]:
        """Return the ids that are in use, or were."""
        with self._mutex:
            return {*self._changed, *(self._base.taken_ids() if self._base else ())}

    def refresh(self) -> None:
        """Scan the base again."""
        if self._base:
            self._base.refresh()
        self._arrange()

    def load(self, conversation: str) -> Mapping[str, FileSource]:
        """Return the changed files, or those of the base."""
        with self._mutex:
            if conversation in self._changed or self._base is None:
                changed = self._changed.get(conversation, {})
                return {name: FileSource(content, partial(bytes, content)) for name, content in changed.items()}
        return self._base.load(conversation)

    def prepare(self, conversation: str, lease: Lease) -> Contents:  # noqa: ARG002 - nothing is written
        """Return the files."""
        return self._read(conversation)

    def persist(self, change: Change) -> tuple[str, ...]:
        """Pass a change to the backend, and show it."""
        words = self.backend.persist(change)
        self._show(change.conversation, change.after)
        return words

    def remove(self, removal: Removal) -> tuple[str, ...]:
        """Pass a removal to the backend, and show the remaining conversations."""
        removed, children = removal.conversation, self.tree.children_of(removal.conversation)
        if children and removal.strategy is None:
            raise children_error(removed, children)
        words = self.backend.remove(removal)
        parent = self.tree.parent_of(removed)
        for child in children if removal.strategy is Strategy.PROMOTE else ():
            contents = self._read(child)
            metadata = contents[self.format.metadata_file]
            promoted = self.format.with_parent(metadata, parent) or metadata
            self._show(child, {**contents, self.format.metadata_file: promoted})
            self.tree.put(child, parent)
        descendants = self.tree.descendants_of(removed) if removal.strategy is Strategy.CASCADE else []
        for conversation in (removed, *descendants):
            self._show(conversation, {})
        return words

    def close(self) -> None:
        """Close the base."""
        if self._base:
            self._base.close()

    def _read(self, conversation: str) -> Contents:
        return {name: source.read() for name, source in self.load(conversation).items()}

    def _arrange(self) -> None:
        with self._mutex:
            base = self._base.tree if self._base else None
            tree = Tree(
                {conversation: base.parent_of(conversation) for conversation in base.all()} if base else {},
                self.format.order,
            )
            for conversation, contents in self._changed.items():
                update_tree(tree, self.format, conversation, contents)
            self.tree = tree

    def _show(self, conversation: str, contents: Contents) -> None:
        with self._mutex:
            self._changed[conversation] = dict(contents)
            update_tree(self.tree, self.format, conversation, contents)
