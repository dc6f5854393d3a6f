"""A conversation whose lock is held: what was read under it, and what is to be written before it goes."""

from __future__ import annotations

import contextlib
import inspect
import os
import threading
import warnings
from typing import TYPE_CHECKING, TypeVar, cast

from reconcile.formats.jp.files import BASE_FILE, EVENTS_FILE, METADATA_FILE
from reconcile.library import values
from reconcile.library.backend import Change, Removal
from reconcile.library.errors import (
    InvalidValueError,
    LibraryError,
    MisuseError,
    PersistError,
    ReleasedError,
    UnknownConversationError,
    report,
)
from reconcile.library.locks import entered, is_inside
from reconcile.model.snapshot import Fault, ParentKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from reconcile.adapters.jp.locks import Lease
    from reconcile.library.backend import Strategy
    from reconcile.library.locks import Claim
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
        claim: Claim,
        lease: Lease,
        keeps: object,
    ) -> None:
        """Take over the lock: the claim to it in this process, and what keeps other processes out."""
        self.conversation = claim.exclusion.conversation
        self.waiting: tuple[str, ...] = ()
        self.released = False
        self._storage, self._exclusion, self._claim = storage, claim.exclusion, claim
        self._lease, self._keeps = lease, keeps
        self._read: Contents | None = None
        self._now: Contents = {}
        self._local = False
        self._behind = False
        """The store has it all, and the workspace could not be written."""
        self._shown: dict[str, tuple[bytes, View]] = {}
        self._pid = os.getpid()

    def begin(self, contents: Contents, *, local: bool) -> None:
        """Have this be a new conversation, which is nowhere yet."""
        self._read, self._now, self._local = {}, contents, local

    @property
    def dirty(self) -> bool:
        """Something is to be written."""
        return self._behind or (self._read is not None and self._now != self._read)

    @property
    def is_unread(self) -> bool:
        """Whether nobody has asked yet for what it holds."""
        return self._read is None

    def metadata(self) -> Mapping[str, View]:
        """Return a snapshot of the metadata."""
        return cast("Mapping[str, View]", self._show(METADATA_FILE))

    def events(self) -> Sequence[Mapping[str, View]]:
        """Return a snapshot of the events."""
        return cast("Sequence[Mapping[str, View]]", self._show(EVENTS_FILE))

    def update(self, change: Callable[[Draft], T]) -> T:
        """Have a callback change everything; what it raises, and what can't be written, leaves all as it was."""
        with self._writing():
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
        with self._writing():
            self._write()

    def remove(self, strategy: Strategy | None) -> None:
        """Remove the conversation, and let go of the lock. What is dirty is written first: the vault keeps it."""
        with self._writing():
            self._write()
            removal = Removal(conversation=self.conversation, strategy=strategy, lease=self._lease)
            self.waiting = self._storage.remove(removal)
            self.release()

    def close(self) -> None:
        """Write what is dirty, then let go, whatever comes of it. Raises `MisuseError` in a callback, and does nothing.

        Both are one: what another thread changes in between would be taken over, and never written.
        """
        if self.released:
            return
        self.refuse_in_callback()
        try:
            if self.is_ours():
                with entered(), self._exclusion.writing():
                    try:
                        if not self.released:
                            self._write()
                    finally:
                        self.release()
        finally:
            self.release()

    def release(self) -> None:
        """Let go of the lock; more than once does nothing. After a fork it isn't the child's to let go."""
        if not self.released:
            if self.is_ours():
                self._lease.release()
                self._claim.give_up()
            self.released = True

    def read_ahead(self) -> None:
        """Read now what will be asked for; what is wrong with it is said by then."""
        with contextlib.suppress(LibraryError), entered(), self._exclusion.reading():
            self._contents()

    def refuse_in_callback(self) -> None:
        """Raise `MisuseError` in a callback of this conversation: it can't be closed before that has ended."""
        self._exclusion.refuse_inside()

    def is_ours(self) -> bool:
        """Tell whether this is the process that has the lock, and no fork of it."""
        return self._pid == os.getpid()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        self._demand()
        with entered(), self._exclusion.writing():
            self._demand()  # it may have been closed while this was waiting
            yield

    def _write(self) -> None:
        if not self.dirty:
            return
        assert self._read is not None  # noqa: S101 - it is dirty
        change = Change(
            conversation=self.conversation, before=self._read, after=self._now, local=self._local, lease=self._lease
        )
        try:
            self.waiting = self._storage.persist(change)
        except PersistError as error:
            if error.saved:
                self._read, self._behind = self._now, True
            raise
        self._read, self._behind = self._now, False

    def _demand(self) -> None:
        if self.released:
            raise ReleasedError(f"{self.conversation}: its lock was released; lock it again to read or change it")
        if not self.is_ours():
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
                value, known = cast("Metadata", value), self._metadata(before)
                value = values.as_jp_orders(value, known)
                values.check_keys(self.conversation, value, known)
            content = values.encoded(self.conversation, name, value)
            if content != before[name] and content != self._again(name, before[name]):
                after[name] = content
        if after != before:
            values.check(self._storage.format, self.conversation, after)
            self._check_parent(before, after)
        return after

    def _metadata(self, contents: Contents) -> Metadata:
        return cast("Metadata", values.decoded(self.conversation, METADATA_FILE, contents[METADATA_FILE]))

    def _again(self, name: str, content: bytes) -> bytes:
        return values.encoded(
            self.conversation, name, cast("Metadata | Events", values.decoded(self.conversation, name, content))
        )

    def _check_parent(self, before: Contents, after: Contents) -> None:
        """Refuse a parent that isn't there, or is below. Raises `InvalidValueError`."""
        read = self._storage.format.read_metadata
        old, new = read(before[METADATA_FILE]), read(after[METADATA_FILE])
        if isinstance(new, Fault) or (not isinstance(old, Fault) and old.parent == new.parent):
            return
        if new.parent.kind is ParentKind.UNREADABLE:
            raise InvalidValueError(
                f'{self.conversation}: parent_id: found what names no conversation, expected an id such as "jp-c17"; '
                "nothing was changed"
            )
        if new.parent.id is None:
            return
        self._storage.refresh()  # others may have made that one, or moved something below this one
        parent, tree = new.parent.id, self._storage.tree
        words = "isn't there" if parent not in tree else ""
        if not words and tree.is_below(parent, self.conversation):
            words = "is below it" if parent != self.conversation else "is the conversation itself"
        if words:
            raise InvalidValueError(f"{self.conversation}: parent_id: {parent} {words}; nothing was changed")


def drop(scope: Scope, what: str, *, owns: bool) -> None:
    """Close a scope that nobody has closed, and say so: a last resort. ``owns``: the lock goes with it."""
    if scope.released or not scope.is_ours():
        return
    if not is_inside():
        _drop(scope, what, owns)
        return
    # The garbage collector came by while this thread may hold what closing has to wait for.
    try:
        threading.Thread(target=_drop, args=(scope, what, owns), name="reconcile-last-resort").start()
    except RuntimeError as error:  # there are no threads any more, the interpreter ends
        report(f"{_dropped(scope, what)}; what it had to write is not written", error)


def _drop(scope: Scope, what: str, owns: bool) -> None:
    dirty = scope.dirty
    try:
        scope.close() if owns else scope.flush()
    except BaseException as error:
        report(f"{_dropped(scope, what)}; what it had to write is not written", error)
        if not isinstance(error, Exception):
            raise
    else:
        words = "what it had to write is written" if dirty else "nothing was to be written"
        warnings.warn(f"{_dropped(scope, what)}; {words}", ResourceWarning, stacklevel=2)


def _dropped(scope: Scope, what: str) -> str:
    return f"{what} of {scope.conversation} was dropped without being closed"


def _close(result: object) -> None:
    """Have a coroutine that nobody will await not complain of that."""
    if inspect.iscoroutine(result):
        result.close()
