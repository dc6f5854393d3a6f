"""A workspace with its store, opened for a program: conversations, their tree, and the way to change them."""

from __future__ import annotations

import os
import sys
import time
import warnings
import weakref
from typing import TYPE_CHECKING, Any, TypeVar

from reconcile.adapters.locate import locate
from reconcile.adapters.roots import LocateError, refuse_state_inside
from reconcile.config import load_settings
from reconcile.engine.session import Session
from reconcile.formats.jp.files import BASE_FILE, EVENTS_FILE, METADATA_FILE
from reconcile.library import values
from reconcile.library.backend import NullBackend
from reconcile.library.conversation import ConversationHandle, ConversationLock, ConversationMut
from reconcile.library.errors import (
    BusyError,
    MisuseError,
    ReleasedError,
    UnknownConversationError,
    UnreadableError,
    report,
)
from reconcile.library.locks import Claim, Exclusions, JpLocks, NoLocks, Wait, entered
from reconcile.library.shared_index import Sight
from reconcile.library.storage import Disk, Memory
from reconcile.library.transaction import Scope
from reconcile.model.policy import Policy
from reconcile.state.directory import state_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from reconcile.adapters.jp.locks import Lease
    from reconcile.library.aio import Locking
    from reconcile.library.backend import PersistBackend, Strategy
    from reconcile.library.locks import LockBackend
    from reconcile.library.storage import Storage
    from reconcile.library.tree import Tree
    from reconcile.library.values import Contents, Events, Metadata, View


class Snapshots:
    """The last value of each file that was asked for; a file is read again where its content is another."""

    def __init__(self, exclusions: Exclusions) -> None:
        """Know nothing yet."""
        self._exclusions = exclusions
        self._known: dict[tuple[str, str], tuple[object, View]] = {}

    def value(self, storage: Storage, conversation: str, name: str) -> View:
        """Return what a file says now. Raises `UnknownConversationError`, `UnreadableError`."""
        with entered(), self._exclusions.of(conversation).reading():
            source = storage.load(conversation).get(name)
            if source is None:
                self._known.pop((conversation, name), None)
                raise UnknownConversationError(
                    f"{conversation} is on neither side any more", "it was removed meanwhile"
                )
            known = self._known.get((conversation, name))
            if known is None or known[0] != source.mark:
                value = values.frozen(values.decoded(conversation, name, source.read()))
                known = self._known[conversation, name] = source.mark, value
            return known[1]


T = TypeVar("T")
TIMEOUT = 10.0
"""Seconds that a lock is waited for, as JP does."""


class Workspace:
    """Conversations of one project. A context manager, and for all threads of a process.

    What is read is read from the disk each time, and is what a run of `reconcile` would leave there.
    """

    def __init__(self, storage: Storage, locks: LockBackend) -> None:
        """Use `open` or `in_memory`."""
        self._opened = storage
        self._locks = locks
        self._exclusions = Exclusions()
        self._scopes: weakref.WeakSet[Scope] = weakref.WeakSet()
        self._snapshots = Snapshots(self._exclusions)
        self._closer = weakref.finalize(self, storage.close)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        store: str | os.PathLike[str] | None = None,
        backend: PersistBackend | None = None,
        locks: LockBackend | None = None,
    ) -> Self:
        """Open the workspace of the project at ``path``, or around it (by default: the current directory).

        ``store`` is the directory that holds the store's ``conversations``; without it, JP's is found as JP finds it.
        With a ``backend``, changes go to that alone: what is on the disk is read, and nothing is written or locked
        there, unless ``locks`` says how. Settings are those of the command (docs/commands.md).

        Raises:
            LocateError: no workspace or store is there; the message says where was looked.
            ConfigError: the configuration can't be used.
            StateError: reconcile's own state can't be used.
        """
        return cls(*open_storage(path, store, backend, locks))

    @classmethod
    def in_memory(cls, *, backend: PersistBackend | None = None) -> Self:
        """Return an empty workspace that is nowhere, and is gone when it is closed."""
        return cls(Memory(None, backend or NullBackend()), NoLocks())

    @property
    def backend(self) -> PersistBackend:
        """Where changes go: the one given, or that of the file system."""
        return self._opened.backend

    def close(self) -> None:
        """Close what is still open, with a `ResourceWarning`, and give everything back.

        Raises:
            PersistError: something that was dirty could not be written; a note tells of everything else that couldn't.
        """
        failures = []
        left = [scope for scope in list(self._scopes) if not scope.released and scope.is_ours()]
        for scope in left:
            scope.refuse_in_callback()
        for scope in left:
            try:
                scope.close()
            except Exception as failure:  # noqa: BLE001 - the others are closed first
                failures.append(failure)
        self._closer()
        if failures:
            for other in failures[1:]:
                failures[0].add_note(f"and {other}")
            raise failures[0]
        if left:
            ids = ", ".join(scope.conversation for scope in left)
            warnings.warn(f"closed with locks that were still open: {ids}", ResourceWarning, stacklevel=2)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except Exception as failure:
            if error is None:
                raise
            error.add_note(f"and the workspace was closed with what is not written: {failure}")
            for note in getattr(failure, "__notes__", ()):
                error.add_note(note)
            report("the workspace was closed with what is not written", failure)

    def refresh(self) -> None:
        """Look at both sides as a whole again: what others have made or removed is known then."""
        with entered():
            self._storage.refresh()

    def acquire(self, conversation: str) -> ConversationHandle:
        """Return the handle of a conversation, by its id, its number, or its directory's name.

        Raises:
            UnknownConversationError: no live conversation has it.
        """
        found = self._storage.format.parse_id(conversation)
        if found is None or not self._is_there(found):
            raise UnknownConversationError(
                f"{conversation!r}: found no live conversation of that id", "`reconcile ls` lists them"
            )
        return ConversationHandle(found)

    def conversations(self) -> list[ConversationHandle]:
        """Return the live conversations, in the order of their ids: that of their creation."""
        return [ConversationHandle(each) for each in self._storage.tree.all()]

    def metadata(self, handle: ConversationHandle) -> Mapping[str, View]:
        """Return the metadata as it is on the disk: a snapshot, which can't be changed and doesn't change."""
        found = self._snapshots.value(self._storage, handle.id, METADATA_FILE)
        assert isinstance(found, dict)  # noqa: S101 - it was checked
        return found

    def events(self, handle: ConversationHandle) -> Sequence[Mapping[str, View]]:
        """Return the events as they are on the disk: a snapshot, which can't be changed and doesn't change."""
        found: Any = self._snapshots.value(self._storage, handle.id, EVENTS_FILE)
        return found  # type: ignore[no-any-return]

    def parent_of(self, handle: ConversationHandle) -> ConversationHandle | None:
        """Return the parent; None for a root."""
        parent = self._tree(handle).parent_of(handle.id)
        return None if parent is None else ConversationHandle(parent)

    def children_of(self, handle: ConversationHandle) -> list[ConversationHandle]:
        """Return the children, in the order of their ids."""
        return [ConversationHandle(each) for each in self._tree(handle).children_of(handle.id)]

    def has_children(self, handle: ConversationHandle) -> bool:
        """Tell whether there are any."""
        return bool(self._tree(handle).children_of(handle.id))

    def ancestors_of(self, handle: ConversationHandle) -> list[ConversationHandle]:
        """Return parent, grandparent and so on, up to a root."""
        return [ConversationHandle(each) for each in self._tree(handle).ancestors_of(handle.id)]

    def descendants_of(self, handle: ConversationHandle) -> list[ConversationHandle]:
        """Return everything below, parents before children."""
        return [ConversationHandle(each) for each in self._tree(handle).descendants_of(handle.id)]

    def lock_conversation(
        self, handle: ConversationHandle, *, session: str | None = None, timeout: float | None = TIMEOUT
    ) -> ConversationLock | None:
        """Return the lock of a conversation, or None where somebody else has had it for all that time.

        ``timeout`` is in seconds: 0 is one attempt, None waits as long as it takes. ``session`` is what others are told
        of who holds it.

        Raises:
            LockError: nobody could have it; waiting would be in vain.
        """
        wait = self._wait(handle.id, session, timeout, self._lock)
        while (lock := wait.attempt()) is None and not wait.is_over():
            time.sleep(wait.pause())
        return lock

    def lock_async(
        self, handle: ConversationHandle, *, session: str | None = None, timeout: float | None = TIMEOUT
    ) -> Locking[ConversationLock]:
        """Do as `lock_conversation` in a coroutine: ``await`` it for a lock or None, or use it with ``async with``.

        The loop goes on meanwhile. ``async with`` raises `BusyError` instead of returning None.
        """
        from reconcile.library.aio import Locking

        return Locking(lambda: self._wait(handle.id, session, timeout, self._lock))

    def create_conversation(
        self,
        *,
        parent: ConversationHandle | None = None,
        title: str | None = None,
        local: bool = False,
        labels: Mapping[str, str] | None = None,
        base_config: Metadata | None = None,
        events: Events | None = None,
        session: str | None = None,
    ) -> ConversationMut:
        """Return a mutable scope of a new conversation, which is on the disk once the scope is flushed or closed.

        It is projected into the workspace, below its parent where that is there, unless it is ``local``.

        Raises:
            UnknownConversationError: the parent isn't there.
            InvalidValueError: JP could not read it.
        """
        storage = self._storage
        if parent is not None and not self._is_there(parent.id):
            raise UnknownConversationError(f"{parent.id}: found no live conversation of that id to be the parent")
        metadata: Metadata = {} if title is None else {"title": title}
        metadata["last_activated_at"] = values.timestamp()
        if labels:
            metadata["labels"] = dict(sorted(labels.items()))
        if parent is not None:
            metadata["parent_id"] = parent.id
        new = "a new conversation"
        values.check_keys(new, metadata, {})
        contents = {
            METADATA_FILE: values.encoded(new, METADATA_FILE, metadata),
            BASE_FILE: values.encoded(new, BASE_FILE, base_config or {}),
            EVENTS_FILE: values.encoded(new, EVENTS_FILE, events or []),
        }
        values.check(storage.format, new, contents)
        return self._new(contents, session, local=local)

    def remove_conversation(self, mut: ConversationMut, strategy: Strategy | None = None) -> None:
        """Remove a conversation from the store and the workspace; it stays in the vault. ``mut`` is closed by that.

        Raises:
            HasChildrenError: it has children, and nothing was said of them; ``mut`` stays open.
            PersistError: it could not be removed, or not everywhere.
        """
        mut.removed(strategy)

    @property
    def _storage(self) -> Storage:
        if not self._closer.alive:
            raise ReleasedError("the workspace was closed; open it again")
        if not self._opened.is_ours():
            raise MisuseError(
                "the workspace was opened before this process was forked; close it before the fork,"
                " or start the process in another way (multiprocessing: `spawn`)"
            )
        return self._opened

    def _is_there(self, conversation: str) -> bool:
        """Tell whether a conversation is live, also where it was made since everything was looked at."""
        if conversation not in self._storage.tree:
            self.refresh()
        return conversation in self._storage.tree

    def _tree(self, handle: ConversationHandle) -> Tree:
        if not self._is_there(handle.id):
            raise UnknownConversationError(f"{handle.id}: found no live conversation of that id", "it was removed")
        return self._storage.tree

    def _new(self, contents: Contents, session: str | None, *, local: bool) -> ConversationMut:
        """Lock an id that nobody has, neither now nor at the same moment."""
        storage, taken = self._storage, set(self._storage.taken())
        for _ in range(1000):
            new = storage.format.new_id(time.time_ns(), taken)
            scope = self._wait(new, session, 0, self._scope).attempt()
            if scope is not None:
                mut = ConversationMut(scope, None)
                if self._is_nowhere(new):
                    scope.begin(contents, local=local)
                    return mut
                mut.close()
            taken.add(new)
        raise BusyError("found no id for a new conversation: other processes take one after the other")

    def _is_nowhere(self, conversation: str) -> bool:
        with entered():
            try:
                return not self._storage.load(conversation)
            except UnreadableError:
                return False

    def _wait(
        self, conversation: str, session: str | None, timeout: float | None, made: Callable[[Claim, Lease], T]
    ) -> Wait[T]:
        claim = Claim(self._exclusions.of(conversation))
        return Wait(claim, self._locks, session, timeout, made)

    def _scope(self, claim: Claim, lease: Lease) -> Scope:
        scope = Scope(self._storage, claim, lease, self)
        self._scopes.add(scope)
        return scope

    def _lock(self, claim: Claim, lease: Lease) -> ConversationLock:
        return ConversationLock(self._scope(claim, lease))


def open_storage(
    path: str | os.PathLike[str] | None,
    store: str | os.PathLike[str] | None,
    backend: PersistBackend | None,
    locks: LockBackend | None,
) -> tuple[Storage, LockBackend]:
    """Return what `Workspace.open` works with."""
    where = None if path is None else os.fspath(path)
    roots = locate(None, where, None if store is None else os.fspath(store), os.getcwd(), os.environ, sys.platform)
    if roots.format != "jp":
        raise LocateError(f"{roots.workspace}: found the format {roots.format}, expected JP's, which has locks")
    settings = load_settings(os.environ, roots.workspace_id)
    directory = state_directory(roots.key, os.environ, sys.platform)
    refuse_state_inside(roots, directory)
    session = Session(roots, directory, readonly=backend is not None, ignore=settings.ignore)
    policy = Policy(
        layout=settings.layout, stream=settings.stream, diverged=settings.diverged, missing=settings.missing
    )
    try:
        with entered():
            sight = Sight(session, policy)
    except BaseException:
        session.state.close()
        raise
    locks = locks or (JpLocks(roots) if backend is None else NoLocks())
    disk = Disk(sight, locks.others)
    return disk if backend is None else Memory(disk, backend), locks
