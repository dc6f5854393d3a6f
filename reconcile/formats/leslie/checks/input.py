"""Everything that was read of a ``.leslie``: what findings are made of, and what a repair changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from reconcile.formats.leslie.log.document import BACKUP, THREADS

if TYPE_CHECKING:
    from collections.abc import Mapping

STALE_AFTER = 10.0
"""Seconds after which the program takes a lock for left behind (docs/design/formats/leslie.md#stale-locks)."""
LEAD = 1.005
"""Seconds that the time of a lock that was just taken may lie ahead (docs/design/formats/leslie.md#fresh-locks)."""
OLD = 3600.0
"""Seconds after which nobody writes into a temporary file any more (docs/design/formats/leslie.md#f14)."""
RUNNING = 600.0
"""Seconds after which a run that has written nothing is taken for ended; an agent may think for minutes."""
LIVE = "context/live"
STANDARD = ("context/inherited", LIVE, ".meta/transcripts")
"""The directories that a thread's has from the beginning."""


class File(Struct, frozen=True):
    """A file: its bytes; None where there is none, ``instead`` says what is there in its place."""

    content: bytes | None = None
    instead: str = ""


class Lock(Struct, frozen=True):
    """What stands at the place of a lock: its kind in words, its age in seconds (below 0: ahead), what is in it."""

    what: str
    age: float
    names: tuple[str, ...] = ()

    @property
    def is_live(self) -> bool:
        """Somebody holds it, as far as the program can tell."""
        return self.what == "a directory" and -LEAD <= self.age <= STALE_AFTER


class Leftover(Struct, frozen=True):
    """A temporary file of a control file, its age in seconds, and its time."""

    target: str
    age: float
    file: File
    mtime_ns: int = 0


class ThreadDirectory(Struct, frozen=True):
    """An entry below ``threads/``: its kind in words, and the paths below it."""

    what: str = "a directory"
    files: frozenset[str] = frozenset()
    directories: frozenset[str] = frozenset()

    def has(self, path: str) -> bool:
        """Tell whether there is such a directory, empty or not."""
        return path in self.directories or any(file.startswith(path + "/") for file in self.files)


class Found(Struct, frozen=True):
    """A ``.leslie``. Names and paths are relative to it, those in ``storage`` to the project.

    ``files`` holds the two control files and their backups, ``locks`` what stands at the place of their locks,
    ``leftovers`` temporary files by name. ``storage`` are the directories that records name and that exist; ``blocked``
    says what stands in the place of ``threads/`` and is no directory; ``now`` is the time as the program would write
    it, ``ran`` how many seconds ago a run last said something.
    """

    files: Mapping[str, File]
    threads: Mapping[str, ThreadDirectory] = field(default_factory=dict)
    locks: Mapping[str, Lock] = field(default_factory=dict)
    leftovers: Mapping[str, Leftover] = field(default_factory=dict)
    storage: frozenset[str] = frozenset()
    blocked: str = ""
    now: str = ""
    ran: float | None = None

    @property
    def busy(self) -> str:
        """Why nothing may be written now, in words; empty: nobody is at work, as far as can be seen."""
        for place, lock in self.locks.items():
            if lock.is_live:
                return f"{place} is held"
        if self.ran is not None and self.ran <= RUNNING:
            return f"a run was at work {max(0.0, self.ran):.0f} seconds ago"
        return ""

    def file(self, name: str) -> File:
        """A control file or a backup."""
        return self.files.get(name, File())

    def backup(self, name: str) -> File:
        """The backup of a control file."""
        return self.file(name + BACKUP)


class Rewrite(Struct, frozen=True):
    """A control file gets other bytes, if it still has those of ``before`` (None: it isn't there)."""

    path: str
    before: bytes | None
    after: bytes


class Make(Struct, frozen=True):
    """Directories are made."""

    paths: tuple[str, ...]


class Remove(Struct, frozen=True):
    """A temporary file goes, if it still has these bytes."""

    path: str
    before: bytes | None
    mtime_ns: int = 0


class RemoveLock(Struct, frozen=True):
    """An empty directory that nobody holds as a lock any more goes."""

    path: str


Step: TypeAlias = "Rewrite | Make | Remove | RemoveLock"


def after(found: Found, step: Step) -> Found:
    """What there is when a step was done."""
    match step:
        case Rewrite(path, _, content):
            return replace(found, files={**found.files, path: File(content)})
        case Make(paths):
            threads = dict(found.threads)
            for path in paths:
                thread, _, below = path.removeprefix(f"{THREADS}/").partition("/")
                present = threads.get(thread, ThreadDirectory())
                made = {"/".join(below.split("/")[:depth]) for depth in range(1, below.count("/") + 2)}
                threads[thread] = replace(present, directories=present.directories | made)
            return replace(found, threads=threads)
        case Remove(path):
            return replace(found, leftovers={name: each for name, each in found.leftovers.items() if name != path})
        case RemoveLock(path):
            return replace(found, locks={name: each for name, each in found.locks.items() if name != path})
