"""A conversation whose lock is held: what was read under it, and what is to be written before it goes."""

from __future__ import annotations

import inspect
import os
import threading
import warnings
from typing import TYPE_CHECKING, TypeVar, cast

from reconcile.core.model import Fault
from reconcile.formats.files import BASE_FILE, EVENTS_FILE, METADATA_FILE
from reconcile.library import values
from reconcile.library.errors import (
    InvalidValueError,
    MisuseError,
    PersistError,
    ReleasedError,
    UnknownConversationError,
)
from reconcile.library.exclusion import entered, is_inside
from reconcile.library.persisting import Change, Removal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from reconcile.library.exclusion import Exclusion
    from reconcile.library.locking import Lease
    from reconcile.library.persisting import Strategy
    from reconcile.library.storage import Storage
    from reconcile.library.values import Contents, Events, Metadata, View

T = TypeVar("T")


class Draft:
    """What a callback of `update` may change: all that there is of a conversation.

    ``base_config`` is None where an old conversation has none; what was None stays so.
    """

    __slots__ = ("base_config", "events", "metadata")

    def __init__(self, metadata: Metadata, events: Events, base_config: Metadata | None) -> None:
        self.metadata = metadata
        self.events = events
        self.base_config = base_config


class Scope:
    """Shared by a lock and the mutable scopes made of it. ``keeps``: what must live as long."""

    def __init__(
        self,
        storage: Storage,
        exclusion: Exclusion,
        conversation: str,
        lease: Lease,
        keeps: object,
        created: Contents | None = None,
        *,
        local: bool = False,
    ) -> None:
        """Take over the lock. ``created``: what a new conversation begins with, which is nowhere yet."""
        self.conversation = conversation
        self.waiting: tuple[str, ...] = ()
        self.released = False
        self._storage, self._exclusion, self._lease, self._keeps = storage, exclusion, lease, keeps
        self._read: Contents | None = None if created is None else {}
        self._now: Contents = created or {}
        self._local = local
        self._behind = False
        """The store has it all, and the workspace could not be written."""
        self._shown: dict[str, tuple[bytes, View]] = {}
        self._pid = os.getpid()

    @property
    def dirty(self) -> bool:
        """Something is to be written."""
        return self._behind or (self._read is not None and self._now != self._read)

    def metadata(self) -> Mapping[str, View]:
        """Return a snapshot of the metadata."""
        return cast("Mapping[str, View]", self._show(METADATA_FILE))

    def events(self) -> Sequence[Mapping[str, View]]:
        """Return a snapshot of the events."""
        return cast("Sequence[Mapping[str, View]]", self._show(EVENTS_FILE))

    def update(self, change: Callable[[Draft], T]) -> T:
        """Have a callback change everything; what it raises, and what can't be written, leaves all as it was."""
        self._demand()
        with entered(), self._exclusion.writing():
            before = self._contents()
            draft = self._draft(before)
            result = change(draft)
            if inspect.isawaitable(result):
                _close(result)
                raise MisuseError("a callback can't be a coroutine: it is over before anything could be awaited")
            self._now = self._checked(before, draft)
            return result

    def flush(self) -> None:
        """Write what is dirty. Raises `PersistError`; it is still dirty then."""
        self._demand()
        with entered(), self._exclusion.writing():
            if not self.dirty:
                return
            assert self._read is not None  # noqa: S101 - it is dirty
            change = Change(
                conversation=self.conversation,
                before=self._read,
                after=self._now,
                local=self._local,
                lease=self._lease,
            )
            try:
                self.waiting = self._storage.persist(change)
            except PersistError as error:
                if error.saved:
                    self._read, self._behind = self._now, True
                raise
            self._read, self._behind = self._now, False

    def remove(self, strategy: Strategy | None) -> None:
        """Remove the conversation, and let go of the lock. What is dirty is written first: the vault keeps it."""
        self.flush()
        with entered(), self._exclusion.writing():
            removal = Removal(conversation=self.conversation, strategy=strategy, lease=self._lease)
            self.waiting = self._storage.remove(removal)
        self.release()

    def release(self) -> None:
        """Let go of the lock; more than once does nothing. After a fork it isn't the child's to let go."""
        if not self.released:
            self.released = True
            if self._pid == os.getpid():
                self._lease.release()
                self._exclusion.owner.release()

    def close(self) -> None:
        """Write what is dirty, then let go, whatever comes of it."""
        if not self.released:
            try:
                if self._pid == os.getpid():
                    self.flush()
            finally:
                self.release()

    def _demand(self) -> None:
        if self.released:
            raise ReleasedError(f"{self.conversation}: its lock was released; lock it again to read or change it")
        if self._pid != os.getpid():
            raise ReleasedError(f"{self.conversation}: its lock is that of the process that was forked; lock it anew")

    def _contents(self) -> Contents:
        if self._read is None:
            found = self._storage.prepare(self.conversation, self._lease)
            if not found:
                raise UnknownConversationError(
                    f"{self.conversation} is on neither side any more", "it was removed, or archived, meanwhile"
                )
            self._read = self._now = found
        return self._now

    def _show(self, name: str) -> View:
        self._demand()
        with entered(), self._exclusion.reading():
            content = self._contents()[name]
        known = self._shown.get(name)
        if known is None or known[0] is not content:
            known = self._shown[name] = content, values.frozen(values.decoded(self.conversation, name, content))
        return known[1]

    def _draft(self, contents: Contents) -> Draft:
        found = {name: values.decoded(self.conversation, name, content) for name, content in contents.items()}
        base = cast("Metadata | None", found.get(BASE_FILE))
        return Draft(cast("Metadata", found[METADATA_FILE]), cast("Events", found[EVENTS_FILE]), base)

    def _checked(self, before: Contents, draft: Draft) -> Contents:
        """Return what is to be written; a file that says the same keeps its bytes."""
        parts = {METADATA_FILE: draft.metadata, EVENTS_FILE: draft.events, BASE_FILE: draft.base_config}
        after = dict(before)
        for name in before:
            value = parts[name]
            if not isinstance(value, list if name == EVENTS_FILE else dict):
                raise InvalidValueError(
                    f"{self.conversation}: {name}: found {type(value).__name__}; nothing was changed"
                )
            if name == METADATA_FILE:
                value = values.as_jp_orders(cast("Metadata", value), self._metadata(before))
            content = values.encoded(name, value)
            if content != before[name] and content != self._again(name, before[name]):
                after[name] = content
        if after != before:
            values.check(self._storage.format, self.conversation, after)
            self._check_parent(before, after)
        return after

    def _metadata(self, contents: Contents) -> Metadata:
        return cast("Metadata", values.decoded(self.conversation, METADATA_FILE, contents[METADATA_FILE]))

    def _again(self, name: str, content: bytes) -> bytes:
        return values.encoded(name, cast("Metadata | Events", values.decoded(self.conversation, name, content)))

    def _check_parent(self, before: Contents, after: Contents) -> None:
        """Refuse a parent that isn't there, or is below. Raises `InvalidValueError`."""
        read = self._storage.format.read_metadata
        old, new = read(before[METADATA_FILE]), read(after[METADATA_FILE])
        if isinstance(new, Fault) or (not isinstance(old, Fault) and old.parent == new.parent) or new.parent.id is None:
            return
        parent, tree = new.parent.id, self._storage.tree
        words = "isn't there" if parent not in tree else ""
        words = "is below it" if not words and tree.is_below(parent, self.conversation) else words
        if words:
            raise InvalidValueError(f"{self.conversation}: parent_id: {parent} {words}; nothing was changed")


def drop(scope: Scope, what: str, *, owns: bool) -> None:
    """Close a scope that nobody has closed, and say so: a last resort. ``owns``: the lock goes with it."""
    if scope.released:
        return
    if is_inside():  # the garbage collector came by while this thread may hold what closing has to wait for
        threading.Thread(target=_drop, args=(scope, what, owns), name="reconcile-last-resort").start()
    else:
        _drop(scope, what, owns)


def _drop(scope: Scope, what: str, owns: bool) -> None:
    dirty, words = scope.dirty, "nothing was to be written"
    try:
        scope.close() if owns else scope.flush()
    except Exception as error:  # noqa: BLE001 - there is nobody to raise it to
        words = f"what it had to write is not written: {error}"
    else:
        words = "what it had to write is written" if dirty else words
    warnings.warn(
        f"{what} of {scope.conversation} was dropped without being closed; {words}", ResourceWarning, stacklevel=2
    )


def _close(result: object) -> None:
    """Have a coroutine that nobody will await not complain of that."""
    if inspect.iscoroutine(result):
        result.close()
