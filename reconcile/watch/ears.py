"""Events of the file system, from watchdog: where something has changed, and nothing about what."""

from __future__ import annotations

import errno
import logging
import os
import warnings
from typing import TYPE_CHECKING

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

from reconcile.disk.mounts import network_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from watchdog.events import FileSystemEvent

    from reconcile.core.model import Side

    Hear = Callable[[Side, str], None]

logging.getLogger("watchdog").addHandler(logging.NullHandler())  # else what it logs goes to the terminal
_LIMITS = "/proc/sys/fs/inotify"
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

    ``sides`` are the directories of the conversations; one that isn't there isn't listened to.
    """

    def __init__(self, sides: Mapping[Side, str], hear: Hear) -> None:
        self._sides = {side: os.path.realpath(path) for side, path in sides.items() if os.path.isdir(path)}
        self._hear = hear
        self._observer = Observer()

    def start(self, directories: int) -> None:
        """Begin to listen; ``directories`` is about how many there are.

        Raises:
            DeafError: the system has no more watches, or none at all for these directories.
        """
        for path in self._sides.values():
            if (kind := network_type(path)) is not None:
                raise DeafError(f"{path} lies on a network file system ({kind}), where others write without an event")
        # watchdog finds a new directory twice, as an event and on its walk, and tells its users.
        warnings.filterwarnings("ignore", "Callback with id", RuntimeWarning, r"watchdog\.")
        try:
            for side, path in self._sides.items():
                self._observer.schedule(_Handler(side, path, self._hear), path, recursive=True, event_filter=_EVENTS)
            self._observer.start()
        except OSError as error:
            self.stop()
            raise DeafError(_why(error, directories)) from None

    def stop(self) -> None:
        """Listen no more."""
        if self._observer.is_alive():
            self._observer.stop()
            self._observer.join()
        else:
            self._observer.unschedule_all()


class _Handler(FileSystemEventHandler):
    def __init__(self, side: Side, root: str, hear: Hear) -> None:
        self._side = side
        self._root = root
        self._hear = hear

    def on_any_event(self, event: FileSystemEvent) -> None:
        for path in (event.src_path, event.dest_path):
            text = os.fsdecode(path)
            if text.startswith(f"{self._root}/"):
                self._hear(self._side, text[len(self._root) + 1 :])
            elif text == self._root:
                self._hear(self._side, "")


def _why(error: OSError, directories: int) -> str:
    name = _FULL.get(error.errno or 0)
    if name is None:
        return f"the system gives no events here ({error.strerror or error})"
    try:
        with open(f"{_LIMITS}/{name}", encoding="ascii") as file:
            limit = file.read().strip()
    except OSError:
        limit = "unknown"
    needed = directories if name == "max_user_watches" else 1
    return (
        f"the system's limit of inotify is used up: fs.inotify.{name} is {limit}, and this takes {needed} more; "
        f"to raise it: sudo sysctl fs.inotify.{name}=N"
    )
