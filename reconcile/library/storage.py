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
from reconcile.library.tree import Tree, update_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from reconcile.adapters.jp.locks import Lease
    from reconcile.library.values import Contents
    from reconcile.model.format import Format


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
