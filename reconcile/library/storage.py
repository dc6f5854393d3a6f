"""Storage of an open workspace: the disk, or memory that overlays the disk or nothing."""

from __future__ import annotations

import os
import threading
from functools import partial
from typing import TYPE_CHECKING, Protocol

from reconcile.formats import get_format
from reconcile.library.backend import Strategy
from reconcile.library.errors import children_error
from reconcile.library.filesystem_backend import FileSystemBackend
from reconcile.library.loading import FileSource, load
from reconcile.library.tree import Tree, update_tree

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from reconcile.adapters.jp.locks import Lease, Locks
    from reconcile.library.backend import Change, PersistBackend, Removal
    from reconcile.library.shared_index import SharedIndex
    from reconcile.library.values import Contents
    from reconcile.model.format import Format


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


class DiskStorage:
    """The store and the workspace on the disk."""

    def __init__(self, index: SharedIndex, others: Locks) -> None:
        self._index = index
        self._files = FileSystemBackend(index, others)
        self._pid = os.getpid()
        self.format = index.session.format

    @property
    def tree(self) -> Tree:
        """The live conversations."""
        return self._index.tree

    @property
    def backend(self) -> PersistBackend:
        """The backend of the file system."""
        return self._files

    def is_ours(self) -> bool:
        """Return whether this process opened it."""
        return self._pid == os.getpid()

    def taken_ids(self) -> Collection[str]:
        """Return the ids that are in use, or were."""
        return self._index.taken_ids()

    def refresh(self) -> None:
        """Scan both sides again."""
        self._index.refresh()

    def load(self, conversation: str) -> Mapping[str, FileSource]:
        """Return the files as a run would leave them, even if that run is still to come."""
        return load(self._index, conversation)

    def prepare(self, conversation: str, lease: Lease) -> Contents:
        """Reconcile the conversation, then read the store."""
        return self._files.prepare(conversation, lease)

    def persist(self, change: Change) -> tuple[str, ...]:
        """Write a change."""
        words = self._files.persist(change)
        self._index.record_write(change.conversation, change.after)
        return words

    def remove(self, removal: Removal) -> tuple[str, ...]:
        """Remove the conversation from both sides."""
        return self._files.remove(removal)

    def close(self) -> None:
        """Close the state."""
        self._files.close()
        self._index.close()


class MemoryStorage:
    """Changes in memory that overlay the storage ``base``; the backend receives each of them, too."""

    def __init__(self, base: DiskStorage | None, backend: PersistBackend) -> None:
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
