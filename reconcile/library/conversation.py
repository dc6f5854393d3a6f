"""The lock and the mutable scope of a conversation: both write their changes before they release the lock."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from reconcile.library.errors import MisuseError, ReleasedError, log_failure
from reconcile.library.transaction import close_dropped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from reconcile.library.backend import Strategy
    from reconcile.library.transaction import Draft, Transaction
    from reconcile.library.values import Events, Metadata, View

T = TypeVar("T")


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
            error.add_note(f"and what {self._WHAT} had to write is not written: {failure}")
            log_failure(f"{self.id}: what {self._WHAT} had to write is not written", failure)

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
                f"{self._transaction.conversation}: {self._WHAT} was closed; lock the conversation again"
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
            raise MisuseError(f"{self.id}: there is a mutable scope of this lock already; close that first")
        mut = ConversationMut(transaction, self)
        self._mut = weakref.ref(mut)
        return mut

    def into_mut(self) -> ConversationMut:
        """Return a mutable scope that takes over the lock, and releases it when it is closed."""
        transaction = self._open_transaction()
        if self._mut is not None and (mut := self._mut()) is not None and not mut.closed:
            raise MisuseError(f"{self.id}: there is a mutable scope of this lock already; close that first")
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
