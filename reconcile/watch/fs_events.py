"""Events of the file system, from watchdog: queued, and mapped to a conversation and to the directories to scan."""

from __future__ import annotations

import errno
import logging
import os
import warnings
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, NamedTuple

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

from reconcile.apply.staging_cleanup import STAGING
from reconcile.fs.posix import network_type
from reconcile.model.format import Entry
from reconcile.model.names import CHILDREN
from reconcile.model.snapshot import ARCHIVE, TRASH, Side

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from watchdog.events import FileSystemEvent
    from watchdog.observers.api import BaseObserver

    from reconcile.model.format import Format, Places

    Hear = Callable[[Side, str], None]


_SECOND = 10**9


class Inbox:
    """Events by side and path, relative to the directory of the side's conversations.

    ``stopping`` and ``reopening`` say what was asked for. All methods but `take` may be called from anywhere: putting
    something into this kind of queue is safe even in a signal handler that interrupts it.
    """

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[Side, str] | None] = SimpleQueue()
        self.stopping = False
        self.reopening = False

    def hear(self, side: Side, path: str) -> None:
        """Take an event in."""
        self._queue.put((side, path))

    def stop(self) -> None:
        """Ask the watcher to stop after the step in hand."""
        self.stopping = True
        self._queue.put(None)

    def reopen(self) -> None:
        """Ask the watcher to read the configuration again."""
        self.reopening = True
        self._queue.put(None)

    def take(self, timeout_ns: int) -> list[tuple[Side, str]]:
        """Wait for an event, for so long at most; return all that are there."""
        found = []
        try:
            found.append(self._queue.get(timeout=max(0, timeout_ns) / _SECOND))
            while True:
                found.append(self._queue.get_nowait())
        except Empty:
            return [event for event in found if event is not None]


class Heard(NamedTuple):
    """``conversation`` is empty where the path is that of no conversation."""

    conversation: str
    places: tuple[str, ...]


def heard(fmt: Format, path: str) -> Heard | None:
    """Return what a path, relative to the directory of the conversations, says; None: it is nobody's business.

    A conversation's directory, which may have come or gone, is named itself: to list the directory around it would cost
    as much as there are others in it.
    """
    if fmt.places is not None:
        return _heard_of_record(fmt.places, path)
    names = path.split("/") if path else []
    owner, level = "", ""
    while names:
        name = names.pop(0)
        inner = f"{level}/{name}" if level else name
        if name in (ARCHIVE, TRASH):
            if not names:
                return Heard(owner, (inner,))
            level = inner
            continue
        conversation = None if name.startswith(".") else fmt.id_of(name)
        if conversation is None:
            return None if name.startswith(".") else Heard(owner, (level,))
        if not names:
            return Heard(conversation, (inner,))
        if names[0] != CHILDREN:
            return None if names[-1].startswith(STAGING) else Heard(conversation, (inner,))
        names.pop(0)
        owner, level = conversation, f"{inner}/{CHILDREN}"
        if not names:
            return Heard(conversation, (inner, level))
    return Heard(owner, (level,))


def _heard_of_record(places: Places, path: str) -> Heard | None:
    """Return the record that a path is, or lies in; what it is by now, a file or a directory, isn't known."""
    level = ""
    for name in path.split("/") if path else ():
        level = f"{level}/{name}" if level else name
        kinds = {places.entry(level, directory=each) for each in ((True,) if level != path else (True, False))}
        if Entry.RECORD in kinds:
            return Heard(level, (level,))
        if Entry.ENTER not in kinds:
            return None if kinds == {Entry.IGNORED} else Heard("", (level,))
    return Heard("", (level,))


_WATCHDOG = logging.getLogger("watchdog")
_WATCHDOG.addHandler(logging.NullHandler())  # else what it logs goes to the terminal
_FULL = {errno.ENOSPC: "max_user_watches", errno.EMFILE: "max_user_instances"}
# Without a list watchdog asks for what our own scans raise, too, and above some thousand directories has no rest.
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


class DeafError(Exception):
    """The system gives no events here; the message says why, and what would help."""


class Ears:
    """Listens below the directories of both sides, until it is stopped; ``hear`` is called from other threads.

    ``sides`` are the directories of the conversations; one that isn't there isn't listened to. ``tops``: the names in
    the workspace's below which something is; what else lies in it is not listened to. ``miss`` is called where events
    got lost, or such a directory appears: nothing that was heard since the beginning tells all that has changed.
    """

    def __init__(
        self, sides: Mapping[Side, str], hear: Hear, miss: Callable[[], None], tops: Collection[str] = ()
    ) -> None:
        self._sides = {side: os.path.realpath(path) for side, path in sides.items() if os.path.isdir(path)}
        self._hear = hear
        self._miss = miss
        self._tops = tops
        self._complaints = _Complaints(miss)
        self._observer: BaseObserver | None = None

    def start(self) -> None:
        """Begin to listen.

        Raises:
            DeafError: the system has no more watches, or none at all for these directories.
        """
        for path in self._sides.values():
            if (kind := network_type(path)) is not None:
                raise DeafError(f"{path} lies on a network file system ({kind}), where others write without an event")
        # watchdog finds a new directory twice, as an event and on its walk, and tells its users.
        warnings.filterwarnings("ignore", "Callback with id", RuntimeWarning, r"watchdog\.")
        try:
            self._observer = Observer()
            for side, path, recursive in self._places():
                handler = self._handler(side, recursive=recursive)
                self._observer.schedule(handler, path, recursive=recursive, event_filter=_EVENTS)
            self._observer.start()
        except OSError as error:
            self.stop()
            raise self._deaf(error) from None
        _WATCHDOG.addHandler(self._complaints)
        self.check()

    def _places(self) -> Iterator[tuple[Side, str, bool]]:
        """What to listen to, with what is below it or without."""
        for side, path in self._sides.items():
            within = self._tops if side is Side.WORKSPACE else ()
            yield side, path, not within
            there = (os.path.join(path, name) for name in within)
            yield from ((side, each, True) for each in there if os.path.isdir(each) and not os.path.islink(each))

    def _handler(self, side: Side, *, recursive: bool) -> _Handler:
        root = self._sides[side]
        appearing = frozenset() if recursive else frozenset(os.path.join(root, name) for name in self._tops)
        return _Handler(side, root, self._hear, appearing, self._miss)

    def check(self) -> None:
        """Make sure that the system has a watch left: where it has none, watchdog passes over directories in silence.

        Raises:
            DeafError: it has none.
        """
        try:
            with _observer() as probe:
                for path in self._sides.values():
                    probe.schedule(FileSystemEventHandler(), path, recursive=False, event_filter=_EVENTS)
                probe.start()
        except FileNotFoundError:
            return  # a side has gone, which is told otherwise
        except OSError as error:
            self.stop()
            raise self._deaf(error) from None

    def stop(self) -> None:
        """Listen no more."""
        _WATCHDOG.removeHandler(self._complaints)
        if self._observer is not None:
            _end(self._observer)
            self._observer = None

    def _deaf(self, error: OSError) -> DeafError:
        return DeafError(_why(error, sum(_directories(path) if deep else 1 for _, path, deep in self._places())))


@contextmanager
def _observer() -> Iterator[BaseObserver]:
    observer = Observer()
    try:
        yield observer
    finally:
        _end(observer)


def _end(observer: BaseObserver) -> None:
    observer.stop()  # also one that could not be started has threads of its own
    if observer.is_alive():
        observer.join()


class _Complaints(logging.Handler):
    """Whatever watchdog warns of means that it has missed something: the kernel's queue has overflowed."""

    def __init__(self, miss: Callable[[], None]) -> None:
        super().__init__(logging.WARNING)
        self._miss = miss

    def emit(self, record: logging.LogRecord) -> None:  # noqa: ARG002 - logging's signature
        self._miss()


class _Handler(FileSystemEventHandler):
    """``appearing`` are directories that ``miss`` is called for where they come."""

    def __init__(self, side: Side, root: str, hear: Hear, appearing: Collection[str], miss: Callable[[], None]) -> None:
        self._side = side
        self._root = root
        self._hear = hear
        self._appearing = appearing
        self._miss = miss

    def on_any_event(self, event: FileSystemEvent) -> None:
        came = event.src_path if isinstance(event, DirCreatedEvent) else event.dest_path
        if os.fsdecode(came) in self._appearing:
            self._miss()
        for path in (event.src_path, event.dest_path):
            text = os.fsdecode(path)
            if text.startswith(f"{self._root}/"):
                self._hear(self._side, text[len(self._root) + 1 :])
            elif text == self._root:
                self._hear(self._side, "")


def _why(error: OSError, needed: int) -> str:
    """Return the words for what the system says; ``needed`` is the number of directories to listen to."""
    name = _FULL.get(error.errno or 0)
    if name is None:
        return f"the system gives no events here ({error.strerror or error})"
    limit = _limit(f"/proc/sys/fs/inotify/{name}")
    found, own = f"fs.inotify.{name}", f"user.{name.replace('user', 'inotify')}"
    if (inside := _limit(f"/proc/sys/{own.replace('.', '/')}")) is not None and (limit is None or inside < limit):
        limit, found = inside, own  # of this user namespace, as containers have one
    more = needed if error.errno == errno.ENOSPC else 1
    return (
        f"the system's limit of inotify is used up: {found} is {'unknown' if limit is None else limit}, and this takes "
        f"{more}, besides what other programs take; to raise it: sudo sysctl {found}={(limit or 0) + more}"
    )


def _limit(path: str) -> int | None:
    try:
        with open(path, encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


def _directories(path: str) -> int:
    """Return how many directories there are from a path down."""
    return sum(1 for _ in os.walk(path))
