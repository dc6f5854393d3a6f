"""The lock of a conversation, and the mutable scope: what is dirty reaches the disk before the lock goes."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from reconcile.library.errors import MisuseError, ReleasedError, report
from reconcile.library.transaction import drop

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from reconcile.library.backend import Strategy
    from reconcile.library.transaction import Draft, Scope
    from reconcile.library.values import Events, Metadata, View

T = TypeVar("T")


class ConversationHandle(Struct, frozen=True):
    """A conversation that was there when it was asked for; ``id`` is its full id."""

    id: str

    def __str__(self) -> str:
        return self.id


class Guard:
    """What a lock and a mutable scope have in common: reading, and closing, also as a context manager.

    Both kinds of ``with`` close at their end; ``async with`` does so in a thread, so that the loop goes on.
    """

    _WHAT = "a guard"

    def __init__(self, scope: Scope, *, owns: bool) -> None:
        self._scope = scope
        self._owns = owns
        self._open = True
        self._finalizer = weakref.finalize(self, drop, scope, self._WHAT, owns=owns)

    @property
    def id(self) -> str:
        """The id of the conversation."""
        return self._scope.conversation

    @property
    def handle(self) -> ConversationHandle:
        """The handle of the conversation."""
        return ConversationHandle(self._scope.conversation)

    @property
    def closed(self) -> bool:
        """Whether it can't be used any more."""
        return not self._open or self._scope.released

    @property
    def metadata(self) -> Mapping[str, View]:
        """The metadata as it is now, which nobody else can change meanwhile; a snapshot."""
        return self._demanded().metadata()

    @property
    def events(self) -> Sequence[Mapping[str, View]]:
        """The events as they are now; a snapshot."""
        return self._demanded().events()

    @property
    def waiting(self) -> tuple[str, ...]:
        """What could not be done in the workspace yet although it is safe in the store, in words.

        Git is in the middle of something there, or another process has a conversation that would have to move along;
        the next run of `reconcile` does it.
        """
        return self._scope.waiting

    def close(self) -> None:
        """Write what is dirty, and let go; more than once does nothing. Raises `PersistError`."""
        if self._open:
            self._scope.refuse_in_callback()
            try:
                self._leave()
            finally:
                if self._scope.released or not self._owns:  # else Ctrl-C has come before anything; it stays open
                    self._ended()

    def __enter__(self) -> Self:
        self._demanded()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except Exception as failure:
            if error is None:
                raise
            # What is on its way stays what it is; that this failed too is never lost, also where that is swallowed.
            error.add_note(f"and what {self._WHAT} had to write is not written: {failure}")
            report(f"{self.id}: what {self._WHAT} had to write is not written", failure)

    async def __aenter__(self) -> Self:
        from reconcile.library.aio import in_thread

        if self._demanded().is_unread:
            try:
                await in_thread(self._scope.read_ahead)
            except BaseException:
                self.close()  # nobody else will; there is nothing to write yet
                raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from reconcile.library.aio import in_thread

        await in_thread(lambda: self.__exit__(kind, error, trace))

    def _leave(self) -> None:
        self._scope.close()

    def _ended(self) -> None:
        self._open = False
        self._finalizer.detach()

    def _demanded(self) -> Scope:
        if not self._open:
            raise ReleasedError(f"{self._scope.conversation}: {self._WHAT} was closed; lock the conversation again")
        return self._scope


class ConversationLock(Guard):
    """JP's lock of a conversation: no other process, and nothing else in this one, changes it meanwhile."""

    _WHAT = "a lock"

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope, owns=True)
        self._mut: weakref.ref[ConversationMut] | None = None

    def as_mut(self) -> ConversationMut:
        """Return a mutable scope; when it is closed, what is dirty is written, and the lock stays.

        Raises:
            MisuseError: there is one already.
        """
        scope = self._demanded()
        mut = self._mut() if self._mut is not None else None
        if mut is not None and not mut.closed:
            raise MisuseError(f"{self.id}: there is a mutable scope of this lock already; close that first")
        found = ConversationMut(scope, self)
        self._mut = weakref.ref(found)
        return found

    def into_mut(self) -> ConversationMut:
        """Return a mutable scope that has the lock from now on: when it is closed, that goes too."""
        scope = self._demanded()
        if self._mut is not None and (mut := self._mut()) is not None and not mut.closed:
            raise MisuseError(f"{self.id}: there is a mutable scope of this lock already; close that first")
        found = ConversationMut(scope, None)
        self._ended()
        return found


class ConversationMut(Guard):
    """A mutable scope. Callbacks get what was read under the lock, and are the only way to change it."""

    _WHAT = "a mutable scope"

    def __init__(self, scope: Scope, lock: ConversationLock | None) -> None:
        super().__init__(scope, owns=lock is None)
        self._lock = lock

    @property
    def dirty(self) -> bool:
        """Whether something is to be written."""
        return self._scope.dirty

    def update_metadata(self, change: Callable[[Metadata], T]) -> T:
        """Call ``change`` with the metadata, which it may change in place, and return what it returns.

        Nobody else reads or changes the conversation meanwhile. What the callback raises, and what can't be written as
        it is, leaves everything as it was. Keys that JP doesn't know survive. ``parent_id`` moves the conversation:
        None makes it a root, and a missing key leaves the parent that is known.

        Raises:
            InvalidValueError: JP could not read what the callback has made.
        """
        return self._demanded().update(lambda draft: change(draft.metadata))

    def update_events(self, change: Callable[[Events], T]) -> T:
        """Call ``change`` with the list of events; see `update_metadata`."""
        return self._demanded().update(lambda draft: change(draft.events))

    def update(self, change: Callable[[Draft], T]) -> T:
        """Call ``change`` with everything: metadata, events and base configuration; see `update_metadata`."""
        return self._demanded().update(change)

    def flush(self) -> None:
        """Write what is dirty now, and keep the lock; once it returns, no crash takes that back.

        With nothing dirty, nothing is written.

        Raises:
            PersistError: it could not be written everywhere, and is still dirty.
        """
        self._demanded().flush()

    def removed(self, strategy: Strategy | None) -> None:
        """Remove the conversation, and be closed: `Workspace.remove_conversation`."""
        scope = self._demanded()
        scope.remove(strategy)
        self._ended()
        if self._lock is not None:
            self._lock.close()

    def _leave(self) -> None:
        if self._lock is None:
            self._scope.close()
        elif not self._scope.released:
            self._scope.flush()
