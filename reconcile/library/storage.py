"""What a workspace reads from and writes to: the disk, or memory above what is there (or above nothing)."""

from __future__ import annotations

import os
import threading
from functools import partial
from typing import TYPE_CHECKING, Protocol

from reconcile.formats import get_format
from reconcile.library.backend import Strategy
from reconcile.library.errors import has_children
from reconcile.library.filesystem_backend import FileSystemBackend
from reconcile.library.loading import Source, load
from reconcile.library.tree import Tree, show

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from reconcile.adapters.jp.locks import Lease, Locks
    from reconcile.library.backend import Change, PersistBackend, Removal
    from reconcile.library.shared_index import Sight
    from reconcile.library.values import Contents
    from reconcile.model.format import Format


class Storage(Protocol):
    """Reading, and the backend that writes; each by itself, so that what is read for real may be written nowhere."""

    @property
    def format(self) -> Format:
        """The format of the files."""

    @property
    def tree(self) -> Tree:
        """The live conversations."""

    @property
    def backend(self) -> PersistBackend:
        """Where changes go."""

    def is_ours(self) -> bool:
        """Tell whether this process can use it: a database that is open is not for a forked one."""

    def taken(self) -> Collection[str]:
        """Ids that aren't free."""

    def refresh(self) -> None:
        """Look at everything again."""

    def load(self, conversation: str) -> Mapping[str, Source]:
        """Find its files without a lock; {} where it is nowhere."""

    def prepare(self, conversation: str, lease: Lease) -> Contents:
        """Read what is to be changed, with its lock held."""

    def persist(self, change: Change) -> tuple[str, ...]:
        """Have a change written, and shown from now on."""

    def remove(self, removal: Removal) -> tuple[str, ...]:
        """Have a conversation removed, and gone from now on."""

    def close(self) -> None:
        """Give back what is held open."""


class Disk:
    """The store and the workspace."""

    def __init__(self, sight: Sight, others: Locks) -> None:
        self._sight = sight
        self._files = FileSystemBackend(sight, others)
        self._pid = os.getpid()
        self.format = sight.session.format

    @property
    def tree(self) -> Tree:
        """The live conversations."""
        return self._sight.tree

    @property
    def backend(self) -> PersistBackend:
        """The file system."""
        return self._files

    def is_ours(self) -> bool:
        """Tell whether this process has opened it."""
        return self._pid == os.getpid()

    def taken(self) -> Collection[str]:
        """Ids that aren't free."""
        return self._sight.taken()

    def refresh(self) -> None:
        """Look at both sides again."""
        self._sight.refresh()

    def load(self, conversation: str) -> Mapping[str, Source]:
        """Find what both sides hold, whatever a run has still to do about it."""
        return load(self._sight, conversation)

    def prepare(self, conversation: str, lease: Lease) -> Contents:
        """Do what a run would do, then read the store."""
        return self._files.prepare(conversation, lease)

    def persist(self, change: Change) -> tuple[str, ...]:
        """Write a change."""
        words = self._files.persist(change)
        self._sight.tell(change.conversation, change.after)
        return words

    def remove(self, removal: Removal) -> tuple[str, ...]:
        """Remove from both sides."""
        return self._files.remove(removal)

    def close(self) -> None:
        """Close the state."""
        self._files.close()
        self._sight.close()


class Memory:
    """Changes in memory, above what another storage reads; each goes to a backend as well."""

    def __init__(self, below: Disk | None, backend: PersistBackend) -> None:
        self._below = below
        self.backend = backend
        self.format: Format = below.format if below else get_format("jp")
        self._mutex = threading.RLock()
        self._changed: dict[str, Contents] = {}
        self.tree: Tree
        self._arrange()

    def is_ours(self) -> bool:
        """Tell that it is anybody's: no database stays open."""
        return True

    def taken(self) -> Collection[str]:
        """Ids that aren't free."""
        with self._mutex:
            return {*self._changed, *(self._below.taken() if self._below else ())}

    def refresh(self) -> None:
        """Look at what is below again."""
        if self._below:
            self._below.refresh()
        self._arrange()

    def load(self, conversation: str) -> Mapping[str, Source]:
        """Find what was changed, or what is below."""
        with self._mutex:
            if conversation in self._changed or self._below is None:
                changed = self._changed.get(conversation, {})
                return {name: Source(content, partial(bytes, content)) for name, content in changed.items()}
        return self._below.load(conversation)

    def prepare(self, conversation: str, lease: Lease) -> Contents:  # noqa: ARG002 - nothing is written
        """Read."""
        return self._read(conversation)

    def persist(self, change: Change) -> tuple[str, ...]:
        """Pass a change on, and show it."""
        words = self.backend.persist(change)
        self._show(change.conversation, change.after)
        return words

    def remove(self, removal: Removal) -> tuple[str, ...]:
        """Pass a removal on, and show what is left."""
        gone, children = removal.conversation, self.tree.children_of(removal.conversation)
        if children and removal.strategy is None:
            raise has_children(gone, children)
        words = self.backend.remove(removal)
        above = self.tree.parent_of(gone)
        for child in children if removal.strategy is Strategy.PROMOTE else ():
            contents = self._read(child)
            metadata = contents[self.format.metadata_file]
            promoted = self.format.with_parent(metadata, above) or metadata
            self._show(child, {**contents, self.format.metadata_file: promoted})
            self.tree.put(child, above)
        below = self.tree.descendants_of(gone) if removal.strategy is Strategy.CASCADE else []
        for each in (gone, *below):
            self._show(each, {})
        return words

    def close(self) -> None:
        """Close what is below."""
        if self._below:
            self._below.close()

    def _read(self, conversation: str) -> Contents:
        return {name: source.read() for name, source in self.load(conversation).items()}

    def _arrange(self) -> None:
        with self._mutex:
            below = self._below.tree if self._below else None
            tree = Tree({each: below.parent_of(each) for each in below.all()} if below else {}, self.format.order)
            for conversation, contents in self._changed.items():
                show(tree, self.format, conversation, contents)
            self.tree = tree

    def _show(self, conversation: str, contents: Contents) -> None:
        with self._mutex:
            self._changed[conversation] = dict(contents)
            show(self.tree, self.format, conversation, contents)
