"""The entry point of the library: opens a workspace with its store, and gives access to the conversations."""

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
from reconcile.library.conversation import ConversationHandle, ConversationLock, ConversationMut, Transaction
from reconcile.library.disk import DiskStorage
from reconcile.library.errors import (
    BusyError,
    MisuseError,
    ReleasedError,
    UnknownConversationError,
    UnreadableError,
    log_failure,
)
from reconcile.library.locks import Claim, JpLocks, LockAttempts, NoLocks, ReadWriteLocks, inside_library
from reconcile.library.shared_index import SharedIndex
from reconcile.library.storage import MemoryStorage, NullBackend
from reconcile.model.policy import Policy
from reconcile.state.directory import state_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from reconcile.adapters.jp.locks import Lease
    from reconcile.library.aio import Locking
    from reconcile.library.locks import LockBackend
    from reconcile.library.storage import PersistBackend, Storage, Strategy, Tree
    from reconcile.library.values import Contents, Events, Metadata, View


class ValueCache:
    """Caches the decoded value of each file that was read; a file is decoded again if its content differs."""

    def __init__(self, rw_locks: ReadWriteLocks) -> None:
        """Begin with an empty cache."""
        self._rw_locks = rw_locks
        self._cache: dict[tuple[str, str], tuple[object, View]] = {}

    def value(self, storage: Storage, conversation: str, name: str) -> View:
        """Return the present value of a file. Raises `UnknownConversationError`, `UnreadableError`."""
        with inside_library(), self._rw_locks.of(conversation).reading():
            source = storage.load(conversation).get(name)
            if source is None:
                self._cache.pop((conversation, name), None)
                raise UnknownConversationError(
                    f"{conversation} is on neither side any more", "list the conversations: reconcile ls"
                )
            cached = self._cache.get((conversation, name))
            if cached is None or cached[0] != source.version:
                value = values.frozen(values.decode(conversation, name, source.read()))
                cached = self._cache[conversation, name] = source.version, value
            return cached[1]


T = TypeVar("T")
TIMEOUT = 10.0
"""Seconds that a caller waits for a lock by default, as in JP."""


class Workspace:
    """The conversations of one project: a context manager that all threads of a process may share.

    Each read is from the disk, and returns the content that a run of `reconcile` would leave there.
    """

    def __init__(self, storage: Storage, locks: LockBackend) -> None:
        """Use `open` or `in_memory`."""
        self._opened = storage
        self._locks = locks
        self._rw_locks = ReadWriteLocks()
        self._transactions: weakref.WeakSet[Transaction] = weakref.WeakSet()
        self._values_read = ValueCache(self._rw_locks)
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
        With a ``backend``, only that receives changes: the disk is read, but neither written nor locked unless
        ``locks`` is given. Settings are those of the command (docs/commands.md).

        Raises:
            LocateError: there is no workspace or no store; the message names the places.
            ConfigError: the configuration is invalid.
            StateError: reconcile's own state is unusable.
        """
        return cls(*open_storage(path, store, backend, locks))

    @classmethod
    def in_memory(cls, *, backend: PersistBackend | None = None) -> Self:
        """Return an empty workspace in memory, which ends when it is closed."""
        return cls(MemoryStorage(None, backend or NullBackend()), NoLocks())

    @property
    def backend(self) -> PersistBackend:
        """The backend that receives changes: the given one, or that of the file system."""
        return self._opened.backend

    def close(self) -> None:
        """Close open locks and scopes with a `ResourceWarning`, then the state.

        Raises:
            PersistError: the changes of a scope could not be written; notes name the other scopes with that failure.
        """
        failures = []
        left = [
            transaction
            for transaction in list(self._transactions)
            if not transaction.released and transaction.is_ours()
        ]
        for transaction in left:
            transaction.refuse_in_callback()
        for transaction in left:
            try:
                transaction.close()
            except Exception as failure:  # noqa: BLE001 - the others are closed first
                failures.append(failure)
        self._closer()
        if failures:
            for other in failures[1:]:
                failures[0].add_note(f"and {other}")
            raise failures[0]
        if left:
            ids = ", ".join(transaction.conversation for transaction in left)
            warnings.warn(f"the workspace was closed before the locks of {ids}", ResourceWarning, stacklevel=2)

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
            error.add_note(f"and the workspace was closed with unwritten changes: {failure}")
            for note in getattr(failure, "__notes__", ()):
                error.add_note(note)
            log_failure("the workspace was closed with unwritten changes", failure)

    def refresh(self) -> None:
        """Scan both sides again, to see conversations that other programs have created or removed."""
        with inside_library():
            self._storage.refresh()

    def acquire(self, conversation: str) -> ConversationHandle:
        """Return the handle of a conversation, by its id, its number, or its directory's name.

        Raises:
            UnknownConversationError: no live conversation has that id.
        """
        parsed = self._storage.format.parse_id(conversation)
        if parsed is None or not self._exists(parsed):
            raise UnknownConversationError(f"no live conversation with id {conversation!r}", "list them: reconcile ls")
        return ConversationHandle(parsed)

    def conversations(self) -> list[ConversationHandle]:
        """Return the live conversations in the order of their ids, which is that of their creation."""
        return [ConversationHandle(conversation) for conversation in self._storage.tree.all()]

    def metadata(self, handle: ConversationHandle) -> Mapping[str, View]:
        """Return an immutable snapshot of the metadata on the disk."""
        metadata = self._values_read.value(self._storage, handle.id, METADATA_FILE)
        assert isinstance(metadata, dict)  # noqa: S101 - it was checked
        return metadata

    def events(self, handle: ConversationHandle) -> Sequence[Mapping[str, View]]:
        """Return an immutable snapshot of the events on the disk."""
        events: Any = self._values_read.value(self._storage, handle.id, EVENTS_FILE)
        return events  # type: ignore[no-any-return]

    def parent_of(self, handle: ConversationHandle) -> ConversationHandle | None:
        """Return the parent; None for a root."""
        parent = self._tree(handle).parent_of(handle.id)
        return None if parent is None else ConversationHandle(parent)

    def children_of(self, handle: ConversationHandle) -> list[ConversationHandle]:
        """Return the children, in the order of their ids."""
        return [ConversationHandle(conversation) for conversation in self._tree(handle).children_of(handle.id)]

    def has_children(self, handle: ConversationHandle) -> bool:
        """Return whether it has children."""
        return bool(self._tree(handle).children_of(handle.id))

    def ancestors_of(self, handle: ConversationHandle) -> list[ConversationHandle]:
        """Return parent, grandparent and so on, up to a root."""
        return [ConversationHandle(conversation) for conversation in self._tree(handle).ancestors_of(handle.id)]

    def descendants_of(self, handle: ConversationHandle) -> list[ConversationHandle]:
        """Return all descendants, parents before children."""
        return [ConversationHandle(conversation) for conversation in self._tree(handle).descendants_of(handle.id)]

    def lock_conversation(
        self, handle: ConversationHandle, *, session: str | None = None, timeout: float | None = TIMEOUT
    ) -> ConversationLock | None:
        """Return the lock of a conversation, or None if another holder kept it until the timeout.

        ``timeout`` is in seconds: 0 is one attempt, None waits without limit. Other processes see ``session`` as the
        holder.

        Raises:
            LockError: the lock can never be acquired.
        """
        wait = self._wait(handle.id, session, timeout, self._lock)
        while (lock := wait.attempt()) is None and not wait.is_over():
            time.sleep(wait.pause())
        return lock

    def lock_async(
        self, handle: ConversationHandle, *, session: str | None = None, timeout: float | None = TIMEOUT
    ) -> Locking[ConversationLock]:
        """Return a lock that is acquired in a coroutine: ``await`` it for the lock or None, or use ``async with``.

        See `lock_conversation`. The event loop goes on meanwhile. ``async with`` raises `BusyError` instead of None.
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
        """Return a mutable scope of a new conversation; flushing or closing the scope writes it to the disk.

        It is projected into the workspace unless it is ``local``: below its parent if that is in the workspace.

        Raises:
            UnknownConversationError: the parent doesn't exist.
            InvalidValueError: JP could not read a value.
        """
        storage = self._storage
        if parent is not None and not self._exists(parent.id):
            raise UnknownConversationError(f"no live conversation with id {parent.id!r} to be the parent")
        metadata: Metadata = {} if title is None else {"title": title}
        metadata["last_activated_at"] = values.timestamp()
        if labels:
            metadata["labels"] = dict(sorted(labels.items()))
        if parent is not None:
            metadata["parent_id"] = parent.id
        new = "a new conversation"
        values.check_keys(new, metadata, {})
        contents = {
            METADATA_FILE: values.encode(new, METADATA_FILE, metadata),
            BASE_FILE: values.encode(new, BASE_FILE, base_config or {}),
            EVENTS_FILE: values.encode(new, EVENTS_FILE, events or []),
        }
        values.check(storage.format, new, contents)
        return self._new(contents, session, local=local)

    def remove_conversation(self, mut: ConversationMut, strategy: Strategy | None = None) -> None:
        """Remove a conversation from the store and the workspace, and close ``mut``. The vault keeps the content.

        Raises:
            HasChildrenError: it has children, and ``strategy`` is None; ``mut`` stays open.
            PersistError: a side could not be written.
        """
        mut.removed(strategy)

    @property
    def _storage(self) -> Storage:
        if not self._closer.alive:
            raise ReleasedError("the workspace is closed; open it again")
        if not self._opened.is_ours():
            raise MisuseError(
                "the workspace was opened before a fork; close it before the fork,"
                " or start the process with spawn (multiprocessing)"
            )
        return self._opened

    def _exists(self, conversation: str) -> bool:
        """Return whether a conversation is live; scans again if it is unknown, as it may be new."""
        if conversation not in self._storage.tree:
            self.refresh()
        return conversation in self._storage.tree

    def _tree(self, handle: ConversationHandle) -> Tree:
        if not self._exists(handle.id):
            raise UnknownConversationError(f"no live conversation with id {handle.id!r}", "list them: reconcile ls")
        return self._storage.tree

    def _new(self, contents: Contents, session: str | None, *, local: bool) -> ConversationMut:
        """Lock a new id; the lock and a second check exclude processes that choose the same id."""
        storage, taken_ids = self._storage, set(self._storage.taken_ids())
        for _ in range(1000):
            new = storage.format.new_id(time.time_ns(), taken_ids)
            transaction = self._wait(new, session, 0, self._transaction).attempt()
            if transaction is not None:
                mut = ConversationMut(transaction, None)
                if self._is_nowhere(new):
                    transaction.begin_new(contents, local=local)
                    return mut
                mut.close()
            taken_ids.add(new)
        raise BusyError("no free id for a new conversation: other processes take them all")

    def _is_nowhere(self, conversation: str) -> bool:
        with inside_library():
            try:
                return not self._storage.load(conversation)
            except UnreadableError:
                return False

    def _wait(
        self, conversation: str, session: str | None, timeout: float | None, create: Callable[[Claim, Lease], T]
    ) -> LockAttempts[T]:
        claim = Claim(self._rw_locks.of(conversation))
        return LockAttempts(claim, self._locks, session, timeout, create)

    def _transaction(self, claim: Claim, lease: Lease) -> Transaction:
        transaction = Transaction(self._storage, claim, lease, self)
        self._transactions.add(transaction)
        return transaction

    def _lock(self, claim: Claim, lease: Lease) -> ConversationLock:
        return ConversationLock(self._transaction(claim, lease))


def open_storage(
    path: str | os.PathLike[str] | None,
    store: str | os.PathLike[str] | None,
    backend: PersistBackend | None,
    locks: LockBackend | None,
) -> tuple[Storage, LockBackend]:
    """Return the storage and the locks of `Workspace.open`."""
    where = None if path is None else os.fspath(path)
    roots = locate(None, where, None if store is None else os.fspath(store), os.getcwd(), os.environ, sys.platform)
    if roots.format != "jp":
        raise LocateError(f"{roots.workspace}: a {roots.format} workspace; the library supports jp only")
    settings = load_settings(os.environ, roots.workspace_id)
    directory = state_directory(roots.key, os.environ, sys.platform)
    refuse_state_inside(roots, directory)
    session = Session(roots, directory, readonly=backend is not None, ignore=settings.ignore)
    policy = Policy(
        layout=settings.layout,
        stream=settings.stream,
        diverged=settings.diverged,
        conflict=settings.conflict,
        missing=settings.missing,
    )
    try:
        with inside_library():
            index = SharedIndex(session, policy)
    except BaseException:
        session.state.close()
        raise
    locks = locks or (JpLocks(roots) if backend is None else NoLocks())
    disk = DiskStorage(index, locks.others)
    return disk if backend is None else MemoryStorage(disk, backend), locks
