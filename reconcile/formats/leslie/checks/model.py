"""The values of the checks: everything that was read of a ``.leslie``, the findings, and the steps of their repairs.

See docs/design/formats/leslie.md#failures.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from reconcile.formats.leslie.document import BACKUP, THREADS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


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


class Severity(StrEnum):
    """How bad it is. Where there are notes alone, nothing is wrong."""

    ERROR = "error"
    """The next command of the program fails, or loses something without a word."""
    WARNING = "warning"
    NOTE = "note"


class Kind(StrEnum):
    """The kinds of findings; the values are stable for programs. Those with a number are of
    docs/design/formats/leslie.md#failures.
    """

    DAMAGED = "damaged"
    LOST = "lost"
    ORPHAN = "orphan"
    NO_DIRECTORY = "no-directory"
    RELATIONS = "relations"
    STATE = "state"
    NO_RECORD = "no-record"
    OBJECTIVE = "objective"
    NO_OBJECTIVE = "no-objective"
    TREE = "tree"
    TWICE = "twice"
    LOCK = "lock"
    LEFTOVER = "leftover"
    NO_COPY = "no-copy"
    LINK = "link"
    UNSAFE = "unsafe-name"
    STORAGE = "storage-path"
    LAG = "lag"
    HOLE = "hole"
    UNKNOWN = "unknown-command"
    EXTRA = "extra-keys"
    UNSPAWNED = "unspawned"
    UNEXPLAINED = "unexplained"
    CLOCK = "clock"
    DIALECT = "dialect"

    @property
    def number(self) -> str:
        """Its number in docs/design/formats/leslie.md#failures, empty: it has none."""
        return _NUMBERS.get(self, "")

    @property
    def matters(self) -> str:
        """Why it matters, in one sentence."""
        return _MATTERS[self]


_NUMBERS = {
    Kind.DAMAGED: "F1",
    Kind.LOST: "F2",
    Kind.ORPHAN: "F3",
    Kind.NO_DIRECTORY: "F4",
    Kind.RELATIONS: "F5",
    Kind.STATE: "F6",
    Kind.NO_RECORD: "F7",
    Kind.OBJECTIVE: "F8",
    Kind.NO_OBJECTIVE: "F9",
    Kind.TREE: "F10",
    Kind.TWICE: "F12",
    Kind.LOCK: "F13",
    Kind.LEFTOVER: "F14",
    Kind.NO_COPY: "F16",
}
_MATTERS = {
    Kind.DAMAGED: "Any Leslie command silently goes back to the backup, and a changing one destroys that first.",
    Kind.LOST: "Every Leslie command fails; what is left can be put together again.",
    Kind.ORPHAN: "No record knows the thread: Leslie doesn't show it, and its operation is lost.",
    Kind.NO_DIRECTORY: "The thread has no directory; git keeps no empty ones.",
    Kind.RELATIONS: "What is derived differs from the log that it follows from.",
    Kind.STATE: "A record says something else than the log, which is the source of truth.",
    Kind.NO_RECORD: "The log spawns a thread that has no record any more.",
    Kind.OBJECTIVE: "What an objective says of its threads isn't so.",
    Kind.NO_OBJECTIVE: "Leslie reports a failure for such a thread, and changes it all the same.",
    Kind.TREE: "The tree of threads, or their references, can't be walked as they should.",
    Kind.TWICE: "An operation's id should be its own.",
    Kind.LOCK: "While it is there no Leslie command can change anything.",
    Kind.LEFTOVER: "An interrupted write has left it; it may hold the only copy of something.",
    Kind.NO_COPY: "A frozen reference has no frozen copy; copying now would take today's content.",
    Kind.LINK: "Leslie replaces a link by a file at its next write, and what it leads to grows old.",
    Kind.UNSAFE: "Such a name leads out of the directory that it should be in.",
    Kind.STORAGE: "Its record says that its directory is elsewhere.",
    Kind.LAG: "Leslie doesn't look at the objective after a transfer; it does at the next change.",
    Kind.HOLE: "The log has a hole, or two histories were united; what follows is replayed all the same.",
    Kind.UNKNOWN: "Nobody knows the command; it is kept as it is and changes nothing.",
    Kind.EXTRA: "Leslie drops keys that it doesn't know at its next change; only those in params survive.",
    Kind.UNSPAWNED: "No operation spawns these threads; they are kept as they are.",
    Kind.UNEXPLAINED: "No operation explains it; it is kept.",
    Kind.CLOCK: "A record should be as new as the last operation on it.",
    Kind.DIALECT: "Leslie's program can't read the older form; upgrading it is done on request.",
}


class Repair(Struct, frozen=True):
    """What mends a finding: steps in order, and what they change in words.

    ``on_request``: never done unless somebody asks for this very finding; it says why. ``make`` makes the steps: a file
    anew for each of a thousand findings would fill the memory.
    """

    make: Callable[[], tuple[Step, ...]]
    words: tuple[str, ...]
    on_request: str = ""

    @classmethod
    def of(cls, step: Step, *words: str) -> Repair:
        """A repair of one step."""
        return cls(lambda: (step,), words)

    @property
    def steps(self) -> tuple[Step, ...]:
        """What is to be done, in order; the same every time."""
        return self.make()


class Finding(Struct, frozen=True):
    """One thing: where, what was found and what was expected, what to do next (empty: nothing), and the repair if there
    is one.
    """

    kind: Kind
    severity: Severity
    place: str
    found: str
    next: str
    subject: str = ""
    repair: Repair | None = None

    @property
    def id(self) -> str:
        """A name by which it can be asked for."""
        return f"{self.kind.number or self.kind}:{self.subject or self.place}"
