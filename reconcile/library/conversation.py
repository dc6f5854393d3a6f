"""A locked conversation: its lock and its mutable scope, which write their changes before they release the lock.

Both work on a transaction: the files as they were read, and the changes to write.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import threading
import warnings
import weakref
from typing import TYPE_CHECKING, TypeVar, cast

from msgspec import Struct

from reconcile.formats.jp.files import BASE_FILE, EVENTS_FILE, METADATA_FILE
from reconcile.library import values
from reconcile.library.errors import (
    InvalidValueError,
    LibraryError,
    MisuseError,
    PersistError,
    ReleasedError,
    UnknownConversationError,
    log_failure,
)
from reconcile.library.locks import inside_library, is_inside
from reconcile.library.storage import Change, Removal
from reconcile.model.snapshot import Fault, ParentKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from reconcile.adapters.jp.locks import Lease
    from reconcile.library.locks import Claim
    from reconcile.library.storage import Storage, Strategy
    from reconcile.library.values import Contents, Events, Metadata, View


T = TypeVar("T")


class Draft:
    """The content of a conversation, for a callback of `update` to change.

    ``base_config`` is None if an old conversation has none; it then stays None.
    """

    __slots__ = ("base_config", "events", "metadata")

    def __init__(self, metadata: Metadata, events: Events, base_config: Metadata | None) -> None:
        self.metadata = metadata
        self.events = events
        self.base_config = base_config


class Transaction:
    """The content of one lock and its mutable scopes. ``keeps`` is an object that must live as long."""

    def __init__(
        self,
        storage: Storage,
        claim: Claim,
        lease: Lease,
        keeps: object,
    ) -> None:
        """Take over the lock: the claim in this process, and the lease against other processes."""
        self.conversation = claim.rw_lock.conversation
        self.waiting: tuple[str, ...] = ()
        self.released = False
        self._storage, self._rw_lock, self._claim = storage, claim.rw_lock, claim
        self._lease, self._keeps = lease, keeps
        self._before: Contents | None = None
        self._after: Contents = {}
        self._local = False
        self._workspace_outdated = False
        """The store was written, and the workspace could not be."""
        self._views: dict[str, tuple[bytes, View]] = {}
        self._pid = os.getpid()

    def begin_new(self, contents: Contents, *, local: bool) -> None:
        """Begin with the contents of a new conversation, which no side has yet."""
        self._before, self._after, self._local = {}, contents, local

    @property
    def dirty(self) -> bool:
        """Whether there are changes that are not written."""
        return self._workspace_outdated or (self._before is not None and self._after != self._before)

    @property
    def is_unread(self) -> bool:
        """Whether the files have not been read yet."""
        return self._before is None

    def metadata(self) -> Mapping[str, View]:
        """Return a snapshot of the metadata."""
        return cast("Mapping[str, View]", self._show(METADATA_FILE))

    def events(self) -> Sequence[Mapping[str, View]]:
        """Return a snapshot of the events."""
        return cast("Sequence[Mapping[str, View]]", self._show(EVENTS_FILE))

    def update(self, change: Callable[[Draft], T]) -> T:
        """Call ``change`` with the content; an exception or an invalid result leaves it unchanged."""
        with self._writing():
            before = self._contents()
            draft = self._draft(before)
            result = change(draft)
            if inspect.isawaitable(result):
                _close(result)
                raise MisuseError("a callback can't be a coroutine; use a plain function")
            self._after = self._validated(before, draft)
            return result

    def flush(self) -> None:
        """Write the changes. Raises `PersistError`, and is still dirty then."""
        with self._writing():
            self._write()

    def remove(self, strategy: Strategy | None) -> None:
        """Remove the conversation, and release the lock. Changes are written first, so that the vault keeps them."""
        with self._writing():
            self._write()
            removal = Removal(conversation=self.conversation, strategy=strategy, lease=self._lease)
            self.waiting = self._storage.remove(removal)
            self.release()

    def close(self) -> None:
        """Write the changes, then release the lock in any case. Raises `MisuseError` in a callback, without effect.

        Both happen under one write lock: a change that another thread makes in between would never be written.
        """
        if self.released:
            return
        self.refuse_in_callback()
        try:
            if self.is_ours():
                with inside_library(), self._rw_lock.writing():
                    try:
                        if not self.released:
                            self._write()
                    finally:
                        self.release()
        finally:
            self.release()

    def release(self) -> None:
        """Release the lock; a second call does nothing. After a fork the child leaves it to the parent."""
        if not self.released:
            if self.is_ours():
                self._lease.release()
                self._claim.release()
            self.released = True

    def read_ahead(self) -> None:
        """Read the files now; an error is raised when they are used."""
        with contextlib.suppress(LibraryError), inside_library(), self._rw_lock.reading():
            self._contents()

    def refuse_in_callback(self) -> None:
        """Raise `MisuseError` inside a callback of this conversation: closing has to wait for its end."""
        self._rw_lock.refuse_inside()

    def is_ours(self) -> bool:
        """Return whether this process acquired the lock; a fork of it did not."""
        return self._pid == os.getpid()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        self._require_open()
        with inside_library(), self._rw_lock.writing():
            self._require_open()  # another thread may have closed it meanwhile
            yield

    def _write(self) -> None:
        if not self.dirty:
            return
        assert self._before is not None  # noqa: S101 - it is dirty
        change = Change(
            conversation=self.conversation, before=self._before, after=self._after, local=self._local, lease=self._lease
        )
        try:
            self.waiting = self._storage.persist(change)
        except PersistError as error:
            if error.saved:
                self._before, self._workspace_outdated = self._after, True
            raise
        self._before, self._workspace_outdated = self._after, False

    def _require_open(self) -> None:
        if self.released:
            raise ReleasedError(f"{self.conversation}: its lock is released; lock it again to read or change it")
        if not self.is_ours():
            raise ReleasedError(f"{self.conversation}: its lock belongs to the parent process; lock it again")

    def _contents(self) -> Contents:
        if self._before is None:
            contents = self._storage.prepare(self.conversation, self._lease)
            if not contents:
                raise UnknownConversationError(
                    f"{self.conversation} is on neither side any more", "list the conversations: reconcile ls"
                )
            self._before = self._after = contents
        return self._after

    def _show(self, name: str) -> View:
        self._require_open()
        with inside_library(), self._rw_lock.reading():
            content = self._contents()[name]
        view = self._views.get(name)
        if view is None or view[0] is not content:
            view = self._views[name] = content, values.frozen(values.decode(self.conversation, name, content))
        return view[1]

    def _draft(self, contents: Contents) -> Draft:
        parts = {name: values.decode(self.conversation, name, content) for name, content in contents.items()}
        base = cast("Metadata | None", parts.get(BASE_FILE))
        return Draft(cast("Metadata", parts[METADATA_FILE]), cast("Events", parts[EVENTS_FILE]), base)

    def _validated(self, before: Contents, draft: Draft) -> Contents:
        """Return the files to write; a file with equal values keeps its bytes."""
        parts = {METADATA_FILE: draft.metadata, EVENTS_FILE: draft.events, BASE_FILE: draft.base_config}
        after = dict(before)
        for name in before:
            value = parts[name]
            if not isinstance(value, list if name == EVENTS_FILE else dict):
                raise InvalidValueError(
                    f"{self.conversation}: {name}: invalid type {type(value).__name__}; nothing was changed"
                )
            if name == METADATA_FILE:
                value, known = cast("Metadata", value), self._metadata(before)
                value = values.in_jp_order(value, known)
                values.check_keys(self.conversation, value, known)
            content = values.encode(self.conversation, name, value)
            if content != before[name] and not self._has_value(name, before[name], value, content):
                after[name] = content
        if after != before:
            values.check(self._storage.format, self.conversation, after)
            self._check_parent(before, after)
        return after

    def _metadata(self, contents: Contents) -> Metadata:
        return cast("Metadata", values.decode(self.conversation, METADATA_FILE, contents[METADATA_FILE]))

    def _has_value(self, name: str, before: bytes, value: Metadata | Events, content: bytes) -> bool:
        """Tell whether a file has a value already, written in another form than ``content``."""
        known = cast("Metadata | Events", values.decode(self.conversation, name, before))
        return known == value and values.encode(self.conversation, name, known) == content  # 1 and 1.0 are equal

    def _check_parent(self, before: Contents, after: Contents) -> None:
        """Check the new parent: it must exist, and not be a descendant. Raises `InvalidValueError`."""
        read = self._storage.format.read_metadata
        old, new = read(before[METADATA_FILE]), read(after[METADATA_FILE])
        if isinstance(new, Fault) or (not isinstance(old, Fault) and old.parent == new.parent):
            return
        if new.parent.kind is ParentKind.UNREADABLE:
            raise InvalidValueError(
                f'{self.conversation}: parent_id: not a conversation id (such as "jp-c17"); nothing was changed'
            )
        if new.parent.id is None:
            return
        self._storage.refresh()  # another process may have created the parent, or moved it below this one
        parent, tree = new.parent.id, self._storage.tree
        words = "does not exist" if parent not in tree else ""
        if not words and tree.is_below(parent, self.conversation):
            words = "is its own descendant" if parent != self.conversation else "is the conversation itself"
        if words:
            raise InvalidValueError(f"{self.conversation}: parent_id: {parent} {words}; nothing was changed")


def close_dropped(transaction: Transaction, what: str, *, owns: bool) -> None:
    """Close a dropped scope as a last resort, with a warning. ``owns``: the lock is released, too."""
    if transaction.released or not transaction.is_ours():
        return
    if not is_inside():
        _close_dropped(transaction, what, owns)
        return
    # The garbage collector runs in this thread, which may hold the locks that closing has to wait for.
    try:
        threading.Thread(target=_close_dropped, args=(transaction, what, owns), name="reconcile-last-resort").start()
    except RuntimeError as error:  # the interpreter ends, and starts no thread
        log_failure(f"{_dropped(transaction, what)}; its changes are not written", error)


def _close_dropped(transaction: Transaction, what: str, owns: bool) -> None:
    dirty = transaction.dirty
    try:
        transaction.close() if owns else transaction.flush()
    except BaseException as error:
        log_failure(f"{_dropped(transaction, what)}; its changes are not written", error)
        if not isinstance(error, Exception):
            raise
    else:
        words = "its changes are written" if dirty else "it had no changes"
        warnings.warn(f"{_dropped(transaction, what)}; {words}", ResourceWarning, stacklevel=2)


def _dropped(transaction: Transaction, what: str) -> str:
    return f"{what} of {transaction.conversation} was not closed"


def _close(result: object) -> None:
    """Close a coroutine that is never awaited, so that it gives no warning."""
    if inspect.iscoroutine(result):
        result.close()


class ConversationHandle(Struct, frozen=True):
    """A conversation that existed when it was looked up; ``id`` is its full id."""

    id: str

    def __str__(self) -> str:
        return self.id


class Guard:
    """The base of lock and mutable scope: reading, and closing as a context manager.

    ``with`` and ``async with`` close at their end; ``async with`` closes in a thread, so that the event loop goes on.
    """

    _WHAT = "a guard"

    def __init__(self, transaction: Transaction, *, owns: bool) -> None:
        self._transaction = transaction
        self._owns = owns
        self._open = True
        self._finalizer = weakref.finalize(self, close_dropped, transaction, self._WHAT, owns=owns)

    @property
    def id(self) -> str:
        """The id of the conversation."""
        return self._transaction.conversation

    @property
    def handle(self) -> ConversationHandle:
        """The handle of the conversation."""
        return ConversationHandle(self._transaction.conversation)

    @property
    def closed(self) -> bool:
        """Whether it was closed or handed over."""
        return not self._open or self._transaction.released

    @property
    def metadata(self) -> Mapping[str, View]:
        """A snapshot of the metadata; no other holder can change it while the lock is held."""
        return self._open_transaction().metadata()

    @property
    def events(self) -> Sequence[Mapping[str, View]]:
        """A snapshot of the events."""
        return self._open_transaction().events()

    @property
    def waiting(self) -> tuple[str, ...]:
        """Messages about changes that are safe in the store and not yet in the workspace.

        A git operation is in progress there, or another process has locked a conversation that must move, too. The
        next run of `reconcile` completes them.
        """
        return self._transaction.waiting

    def close(self) -> None:
        """Write the changes and release the lock; a second call does nothing. Raises `PersistError`."""
        if self._open:
            self._transaction.refuse_in_callback()
            try:
                self._leave()
            finally:
                if self._transaction.released or not self._owns:  # else Ctrl-C came first, and it stays open
                    self._ended()

    def __enter__(self) -> Self:
        self._open_transaction()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except Exception as failure:
            if error is None:
                raise
            # The exception on its way is not replaced. The log keeps this failure even if a handler drops that one.
            error.add_note(f"and the changes of {self._WHAT} are not written: {failure}")
            log_failure(f"{self.id}: the changes of {self._WHAT} are not written", failure)

    async def __aenter__(self) -> Self:
        from reconcile.library.aio import in_thread

        if self._open_transaction().is_unread:
            try:
                await in_thread(self._transaction.read_ahead)
            except BaseException:
                self.close()  # no caller will; there is nothing to write yet
                raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from reconcile.library.aio import in_thread

        await in_thread(lambda: self.__exit__(kind, error, trace))

    def _leave(self) -> None:
        self._transaction.close()

    def _ended(self) -> None:
        self._open = False
        self._finalizer.detach()

    def _open_transaction(self) -> Transaction:
        if not self._open:
            raise ReleasedError(
                f"{self._transaction.conversation}: {self._WHAT} is closed; lock the conversation again"
            )
        return self._transaction


class ConversationLock(Guard):
    """JP's lock of a conversation: no other process and no other holder in this process changes it meanwhile."""

    _WHAT = "a lock"

    def __init__(self, transaction: Transaction) -> None:
        super().__init__(transaction, owns=True)
        self._mut: weakref.ref[ConversationMut] | None = None

    def as_mut(self) -> ConversationMut:
        """Return a mutable scope; closing the scope writes the changes and keeps the lock.

        Raises:
            MisuseError: the lock has an open scope already.
        """
        transaction = self._open_transaction()
        mut = self._mut() if self._mut is not None else None
        if mut is not None and not mut.closed:
            raise MisuseError(f"{self.id}: this lock has an open mutable scope already; close that first")
        mut = ConversationMut(transaction, self)
        self._mut = weakref.ref(mut)
        return mut

    def into_mut(self) -> ConversationMut:
        """Return a mutable scope that takes over the lock, and releases it when it is closed."""
        transaction = self._open_transaction()
        if self._mut is not None and (mut := self._mut()) is not None and not mut.closed:
            raise MisuseError(f"{self.id}: this lock has an open mutable scope already; close that first")
        scope = ConversationMut(transaction, None)
        self._ended()
        return scope


class ConversationMut(Guard):
    """A mutable scope: callbacks receive the content that was read under the lock, and change it."""

    _WHAT = "a mutable scope"

    def __init__(self, transaction: Transaction, lock: ConversationLock | None) -> None:
        super().__init__(transaction, owns=lock is None)
        self._lock = lock

    @property
    def dirty(self) -> bool:
        """Whether there are changes that are not written."""
        return self._transaction.dirty

    def update_metadata(self, change: Callable[[Metadata], T]) -> T:
        """Call ``change`` with the metadata, which it may change in place, and return its result.

        No other thread reads or changes the conversation meanwhile. An exception of the callback, or an invalid
        result, leaves everything unchanged. Keys that JP doesn't know survive. ``parent_id`` moves the conversation:
        None makes it a root, and a missing key keeps the known parent.

        Raises:
            InvalidValueError: JP could not read the result.
        """
        return self._open_transaction().update(lambda draft: change(draft.metadata))

    def update_events(self, change: Callable[[Events], T]) -> T:
        """Call ``change`` with the list of events; see `update_metadata`."""
        return self._open_transaction().update(lambda draft: change(draft.events))

    def update(self, change: Callable[[Draft], T]) -> T:
        """Call ``change`` with metadata, events and base configuration; see `update_metadata`."""
        return self._open_transaction().update(change)

    def flush(self) -> None:
        """Write the changes now, and keep the lock; after it has returned, no crash loses them.

        Without changes it writes nothing.

        Raises:
            PersistError: a side could not be written; the scope is still dirty.
        """
        self._open_transaction().flush()

    def removed(self, strategy: Strategy | None) -> None:
        """Remove the conversation and close this scope; called by `Workspace.remove_conversation`."""
        transaction = self._open_transaction()
        transaction.remove(strategy)
        self._ended()
        if self._lock is not None:
            self._lock.close()

    def _leave(self) -> None:
        if self._lock is None:
            self._transaction.close()
        elif not self._transaction.released:
            self._transaction.flush()
