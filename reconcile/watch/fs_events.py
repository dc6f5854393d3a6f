"""Events of the file system, from watchdog: queued, mapped to a conversation and the directories to scan, debounced.

One write causes many events, and a half-written conversation must not be reconciled: `Debouncer` waits until it is
quiet.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
import warnings
from contextlib import contextmanager, suppress
from functools import cache
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from msgspec import Struct, field
from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer

from reconcile.apply.staging import STAGING
from reconcile.fs.posix import network_type
from reconcile.model.format import Entry
from reconcile.model.names import CHILDREN
from reconcile.model.snapshot import ARCHIVE, TRASH, Side

if TYPE_CHECKING:
    from collections.abc import Iterable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from watchdog.events import FileSystemEvent
    from watchdog.observers.api import BaseObserver

    from reconcile.model.format import Format, Places

    OnEvent = Callable[[Side, str], None]


_SECOND = 10**9
S = TypeVar("S")


class EventQueue(Generic[S]):
    """Events by source and path. For one project, the source is a side, to whose directory the path is relative.

    ``stop_requested`` and ``reopen_requested`` are set by requests. Any thread and any signal handler may call all
    methods but `take`: `SimpleQueue.put` is reentrant.
    """

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[S, str] | None] = SimpleQueue()
        self.stop_requested = False
        self.reopen_requested = False

    def on_event(self, source: S, path: str) -> None:
        """Add an event."""
        self._queue.put((source, path))

    def stop(self) -> None:
        """Request that the watcher stops after the current step."""
        self.stop_requested = True
        self._queue.put(None)

    def reopen(self) -> None:
        """Request that the watcher reads the configuration again."""
        self.reopen_requested = True
        self._queue.put(None)

    def take(self, timeout_ns: int) -> list[tuple[S, str]]:
        """Wait for an event until the timeout, and return all queued events."""
        events = []
        try:
            events.append(self._queue.get(timeout=max(0, timeout_ns) / _SECOND))
            while True:
                events.append(self._queue.get_nowait())
        except Empty:
            return [event for event in events if event is not None]


class EventTarget(NamedTuple):
    """The conversation of an event (empty: none), and the directories to scan."""

    conversation: str
    directories: tuple[str, ...]


def target_of(fmt: Format, path: str) -> EventTarget | None:
    """Return the target of an event's path, relative to the directory of conversations; None for irrelevant events.

    The target of a conversation's own directory is that directory, even if it may be new or gone. Scanning the
    directory around it would cost as much as there are conversations in it.
    """
    if fmt.places is not None:
        return _record_target(fmt.places, path)
    names = path.split("/") if path else []
    owner, level = "", ""
    while names:
        name = names.pop(0)
        inner = f"{level}/{name}" if level else name
        if name in (ARCHIVE, TRASH):
            if not names:
                return EventTarget(owner, (inner,))
            level = inner
            continue
        conversation = None if name.startswith(".") else fmt.id_of(name)
        if conversation is None:
            return None if name.startswith(".") else EventTarget(owner, (level,))
        if not names:
            return EventTarget(conversation, (inner,))
        if names[0] != CHILDREN:
            return None if names[-1].startswith(STAGING) else EventTarget(conversation, (inner,))
        names.pop(0)
        owner, level = conversation, f"{inner}/{CHILDREN}"
        if not names:
            return EventTarget(conversation, (inner, level))
    return EventTarget(owner, (level,))


def _record_target(places: Places, path: str) -> EventTarget | None:
    """Return the record that contains a path; whether the path is a file or a directory now is unknown."""
    level = ""
    for name in path.split("/") if path else ():
        level = f"{level}/{name}" if level else name
        kinds = {
            places.entry(level, directory=directory) for directory in ((True,) if level != path else (True, False))
        }
        if Entry.RECORD in kinds:
            return EventTarget(level, (level,))
        if Entry.ENTER not in kinds:
            return None if kinds == {Entry.IGNORED} else EventTarget("", (level,))
    return EventTarget("", (level,))


_WATCHDOG = logging.getLogger("watchdog")
_WATCHDOG.addHandler(logging.NullHandler())  # otherwise its log would be printed to the terminal
_LIMITS = {errno.ENOSPC: "max_user_watches", errno.EMFILE: "max_user_instances"}
# Without this list watchdog also requests the events of our own scans; with thousands of directories they never end.
_EVENTS: list[type[FileSystemEvent]] = [
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
]


class EventsUnavailableError(Exception):
    """The system sends no events for a directory; the message names the cause and a remedy."""


class EventListener:
    """Listens for events below both sides until it is stopped; other threads call ``on_event``.

    ``sides`` are the directories of conversations; a missing one is not watched. ``tops`` limits the workspace to these
    names in it. ``on_lost`` is called if events were lost, or if a directory of ``tops`` is created: both sides must be
    scanned then.
    """

    def __init__(
        self, sides: Mapping[Side, str], on_event: OnEvent, on_lost: Callable[[], None], tops: Collection[str] = ()
    ) -> None:
        self._sides = {side: os.path.realpath(path) for side, path in sides.items() if os.path.isdir(path)}
        self._on_event = on_event
        self._on_lost = on_lost
        self._tops = tops
        self._warning_handler = _WarningHandler(on_lost)
        self._observer: BaseObserver | None = None

    def start(self) -> None:
        """Begin to listen.

        Raises:
            EventsUnavailableError: the limit of watches is reached, or the directories have no events.
        """
        for path in self._sides.values():
            if (kind := network_type(path)) is not None:
                raise EventsUnavailableError(
                    f"{path} is on a network file system ({kind}), which reports no changes by other machines"
                )
        # watchdog finds a new directory twice, by an event and by its own walk, and warns about that.
        warnings.filterwarnings("ignore", "Callback with id", RuntimeWarning, r"watchdog\.")
        try:
            self._observer = Observer()
            for side, path, recursive in self._watched():
                handler = self._handler(side, recursive=recursive)
                self._observer.schedule(handler, path, recursive=recursive, event_filter=_EVENTS)
            self._observer.start()
        except OSError as error:
            self.stop()
            raise self._unavailable(error) from None
        _WATCHDOG.addHandler(self._warning_handler)
        _listening.add(self)
        _notice_errors()
        self.check()

    def _watched(self) -> Iterator[tuple[Side, str, bool]]:
        """Yield the directories to watch, and whether recursively."""
        for side, path in self._sides.items():
            within = self._tops if side is Side.WORKSPACE else ()
            yield side, path, not within
            paths = (os.path.join(path, name) for name in within)
            yield from ((side, top, True) for top in paths if os.path.isdir(top) and not os.path.islink(top))

    def _handler(self, side: Side, *, recursive: bool) -> _Handler:
        root = self._sides[side]
        awaited = frozenset() if recursive else frozenset(os.path.join(root, name) for name in self._tops)
        return _Handler(side, root, self._on_event, awaited, self._on_lost)

    def check(self) -> None:
        """Check that the system has a watch left: without one, watchdog skips directories silently.

        Raises:
            EventsUnavailableError: it has none left.
        """
        try:
            with _observer() as probe:
                for path in self._sides.values():
                    probe.schedule(FileSystemEventHandler(), path, recursive=False, event_filter=_EVENTS)
                probe.start()
        except FileNotFoundError:
            return  # a side is gone, which the watcher reports
        except OSError as error:
            self.stop()
            raise self._unavailable(error) from None

    def lose(self) -> None:
        """Report that events were lost."""
        self._on_lost()

    def stop(self) -> None:
        """Stop listening."""
        _listening.discard(self)
        _WATCHDOG.removeHandler(self._warning_handler)
        if self._observer is not None:
            _end(self._observer)
            self._observer = None

    def _unavailable(self, error: OSError) -> EventsUnavailableError:
        return EventsUnavailableError(
            _explain(error, sum(_directories(path) if deep else 1 for _, path, deep in self._watched()))
        )


@contextmanager
def _observer() -> Iterator[BaseObserver]:
    observer = Observer()
    try:
        yield observer
    finally:
        _end(observer)


def _end(observer: BaseObserver) -> None:
    try:
        observer.stop()  # it has threads even if it could not be started
    except Exception:  # noqa: BLE001 - its tables are wrong, as after an error in a thread of it
        # Its other threads may never end: they are daemons. Only the descriptors are worth the look inside.
        if (reader := getattr(observer, "_inotify_fd", None)) is not None:
            with suppress(Exception):
                reader.stop()
        return
    if observer.is_alive():
        observer.join()


_listening: set[EventListener] = set()


@cache
def _notice_errors() -> None:
    """Treat an error that ends a thread of watchdog as lost events: no event comes any more, and nothing shows it.

    Its tables of directories can be wrong after renames of these (seen with version 7.1).
    """
    before = threading.excepthook

    def notice(error: threading.ExceptHookArgs) -> None:
        if not type(error.thread).__module__.startswith("watchdog."):
            before(error)
            return
        for listener in tuple(_listening):
            listener.lose()

    threading.excepthook = notice


class _WarningHandler(logging.Handler):
    """Treats each warning of watchdog as lost events: the kernel's queue has overflowed."""

    def __init__(self, on_lost: Callable[[], None]) -> None:
        super().__init__(logging.WARNING)
        self._on_lost = on_lost

    def emit(self, record: logging.LogRecord) -> None:  # noqa: ARG002 - logging's signature
        self._on_lost()


class _Handler(FileSystemEventHandler):
    """Passes events to the watcher; calls ``on_lost`` if a directory of ``awaited`` is created."""

    def __init__(
        self, side: Side, root: str, on_event: OnEvent, awaited: Collection[str], on_lost: Callable[[], None]
    ) -> None:
        self._side = side
        self._root = root
        self._on_event = on_event
        self._awaited = awaited
        self._on_lost = on_lost

    def on_any_event(self, event: FileSystemEvent) -> None:
        created = event.src_path if isinstance(event, DirCreatedEvent) else event.dest_path
        if os.fsdecode(created) in self._awaited:
            self._on_lost()
        for path in (event.src_path, event.dest_path):
            text = os.fsdecode(path)
            if text.startswith(f"{self._root}/"):
                self._on_event(self._side, text[len(self._root) + 1 :])
            elif text == self._root:
                self._on_event(self._side, "")


def _explain(error: OSError, needed: int) -> str:
    """Return the message for an error of the system; ``needed`` is the number of directories to watch."""
    name = _LIMITS.get(error.errno or 0)
    if name is None:
        return f"the system reports no file events here ({error.strerror or error})"
    limit = _limit(f"/proc/sys/fs/inotify/{name}")
    setting, own = f"fs.inotify.{name}", f"user.{name.replace('user', 'inotify')}"
    if (inside := _limit(f"/proc/sys/{own.replace('.', '/')}")) is not None and (limit is None or inside < limit):
        limit, setting = inside, own  # the limit of this user namespace, as containers have one
    more = needed if error.errno == errno.ENOSPC else 1
    return (
        f"the inotify limit is used up ({setting} is {'unknown' if limit is None else limit}, {more} more "
        f"{'is' if more == 1 else 'are'} needed); "
        f"raise it: sudo sysctl {setting}={(limit or 0) + more}"
    )


def _limit(path: str) -> int | None:
    try:
        with open(path, encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


def _directories(path: str) -> int:
    """Count a directory and its subdirectories."""
    return sum(1 for _ in os.walk(path))


FEW = 20
"""If more conversations than this are pending, a branch was probably switched. They are taken together: at the end of
the first one's maximum wait, as far as they are quiet by then.
"""

_TOGETHER = 4
"""Conversations that are due within the quiet time divided by this number are taken together."""

Directories = dict[Side, set[str]]
"""Changed directories of each side, relative to its directory of conversations."""


class _Pending(Struct):
    """One pending conversation; times are in ns of a monotonic clock."""

    first: int
    due: int
    directories: Directories = field(default_factory=lambda: {side: set() for side in Side})


class Debouncer:
    """Pending conversations by id; the empty id stands for the directory of conversations itself.

    A conversation is due ``quiet_ns`` after its last event, and at the latest ``at_most_ns`` after its first one: a
    program may write all day. It waits for others that are due soon after, so that what was changed together is taken
    together.
    """

    def __init__(self, quiet_ns: int, at_most_ns: int) -> None:
        self._quiet_ns = quiet_ns
        self._at_most_ns = at_most_ns
        self._pending: dict[str, _Pending] = {}

    def __bool__(self) -> bool:
        return bool(self._pending)

    @property
    def in_flight(self) -> frozenset[str]:
        """The conversations that are pending: a run must leave them alone."""
        return frozenset(self._pending)

    def touch(self, conversation: str, side: Side, directories: Iterable[str], now: int) -> None:
        """Record an event of a conversation: it is postponed until it is quiet."""
        pending = self._pending.setdefault(conversation, _Pending(now, now))
        pending.due = min(now + self._quiet_ns, max(pending.first + self._at_most_ns, now))
        pending.directories[side].update(directories)

    def schedule(self, conversation: str, directories: Directories, at: int) -> None:
        """Schedule a conversation for a time; an event may make it due earlier."""
        pending = self._pending.setdefault(conversation, _Pending(at, at))
        for side, changed in directories.items():
            pending.directories[side] |= changed

    def due_at(self) -> int | None:
        """Return when the next conversations are due; None if none is pending."""
        if not self._pending:
            return None
        dues = [pending.due for pending in self._pending.values()]
        if len(dues) <= FEW:
            soon = min(dues) + self._quiet_ns // _TOGETHER
            return max(due for due in dues if due <= soon)
        first_ns = min(pending.first for pending in self._pending.values())
        return max(min(dues), min(max(dues), first_ns + self._at_most_ns))

    def all_due_at(self) -> int:
        """Return when all pending conversations are due; 0 if none is pending."""
        return max((pending.due for pending in self._pending.values()), default=0)

    def is_due(self, now: int) -> bool:
        """Return whether a conversation is due now."""
        due = self.due_at()
        return due is not None and due <= now

    def take(self, now: int) -> Directories:
        """Remove the conversations that are due, and return their changed directories."""
        due = [conversation for conversation, pending in self._pending.items() if pending.due <= now]
        directories: Directories = {side: set() for side in Side}
        for conversation in due:
            for side, changed in self._pending.pop(conversation).directories.items():
                directories[side] |= changed
        return directories
