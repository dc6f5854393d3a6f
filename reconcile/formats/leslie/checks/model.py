"""The values of the checks: the files of a ``.leslie``, the findings, and the steps of their repairs.

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
"""Seconds after which the program considers a lock stale (docs/design/formats/leslie.md#stale-locks)."""
LEAD = 1.005
"""Seconds that the time of a fresh lock may be in the future (docs/design/formats/leslie.md#fresh-locks)."""
OLD = 3600.0
"""Seconds after which no process writes into a temporary file any more (docs/design/formats/leslie.md#f14)."""
RUNNING = 600.0
"""Seconds after which a run without a new event counts as ended; an agent may think for minutes."""
LIVE = "context/live"
STANDARD = ("context/inherited", LIVE, ".meta/transcripts")
"""The directories that the program creates in the directory of a thread."""


class File(Struct, frozen=True):
    """The bytes of a file, or None. ``instead`` is the kind of entry that is there in place of a file, in words."""

    content: bytes | None = None
    instead: str = ""


class Lock(Struct, frozen=True):
    """The entry at the path of a lock: its kind in words, its age in seconds (negative: in the future), its content."""

    what: str
    age: float
    names: tuple[str, ...] = ()

    @property
    def is_live(self) -> bool:
        """Whether a process holds it, as far as the program can tell."""
        return self.what == "a directory" and -LEAD <= self.age <= STALE_AFTER


class Leftover(Struct, frozen=True):
    """A temporary file of a control file: its age in seconds, its content and its time."""

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


class LeslieTree(Struct, frozen=True):
    """The content of a ``.leslie``. Names and paths are relative to it, those in ``storage`` to the project.

    ``files`` are the two control files and their backups, ``locks`` the entries at the paths of their locks,
    ``leftovers`` temporary files by name. ``storage`` are the existing directories that records name. ``blocked``
    describes an entry at ``threads/`` that is not a directory. ``now`` is the time as the program writes it.
    ``run_age`` is the number of seconds since the last event of a run.
    """

    files: Mapping[str, File]
    threads: Mapping[str, ThreadDirectory] = field(default_factory=dict)
    locks: Mapping[str, Lock] = field(default_factory=dict)
    leftovers: Mapping[str, Leftover] = field(default_factory=dict)
    storage: frozenset[str] = frozenset()
    blocked: str = ""
    now: str = ""
    run_age: float | None = None

    @property
    def busy(self) -> str:
        """The reason why nothing may be written now, in words; empty if no process seems to be at work."""
        for place, lock in self.locks.items():
            if lock.is_live:
                return f"{place} is locked"
        if self.run_age is not None and self.run_age <= RUNNING:
            return f"a Leslie run was active {max(0.0, self.run_age):.0f} seconds ago"
        return ""

    def file(self, name: str) -> File:
        """Return a control file or a backup."""
        return self.files.get(name, File())

    def backup(self, name: str) -> File:
        """Return the backup of a control file."""
        return self.file(name + BACKUP)


class Rewrite(Struct, frozen=True):
    """Replace the content of a control file, if it is still ``before`` (None: there is no file)."""

    path: str
    before: bytes | None
    after: bytes


class Make(Struct, frozen=True):
    """Create directories."""

    paths: tuple[str, ...]


class Remove(Struct, frozen=True):
    """Remove a temporary file, if its content is still ``before``."""

    path: str
    before: bytes | None
    mtime_ns: int = 0


class RemoveLock(Struct, frozen=True):
    """Remove an empty lock directory that no process holds any more."""

    path: str


Step: TypeAlias = "Rewrite | Make | Remove | RemoveLock"


def after(tree: LeslieTree, step: Step) -> LeslieTree:
    """Return the tree after a step."""
    match step:
        case Rewrite(path, _, content):
            return replace(tree, files={**tree.files, path: File(content)})
        case Make(paths):
            threads = dict(tree.threads)
            for path in paths:
                thread, _, below = path.removeprefix(f"{THREADS}/").partition("/")
                present = threads.get(thread, ThreadDirectory())
                created = {"/".join(below.split("/")[:depth]) for depth in range(1, below.count("/") + 2)}
                threads[thread] = replace(present, directories=present.directories | created)
            return replace(tree, threads=threads)
        case Remove(path):
            return replace(tree, leftovers={name: entry for name, entry in tree.leftovers.items() if name != path})
        case RemoveLock(path):
            return replace(tree, locks={name: entry for name, entry in tree.locks.items() if name != path})


class Severity(StrEnum):
    """The severity of a finding. If there are only notes, nothing is wrong."""

    ERROR = "error"
    """The next command of the program fails, or silently loses something."""
    WARNING = "warning"
    NOTE = "note"


class Kind(StrEnum):
    """The kinds of findings, with values that are stable for programs.

    Those with a number are described in docs/design/formats/leslie.md#failures.
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
        """The number of the failure; empty if there is none."""
        return _NUMBERS.get(self, "")

    @property
    def matters(self) -> str:
        """The reason why it matters, in one sentence."""
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
    Kind.DAMAGED: "Leslie silently uses the backup instead, and its next change overwrites that.",
    Kind.LOST: "Every Leslie command fails; the rest of the file can be recovered.",
    Kind.ORPHAN: "The thread has no record: Leslie does not show it, and its operation is lost.",
    Kind.NO_DIRECTORY: "The thread has no directory; git keeps no empty directories.",
    Kind.RELATIONS: "Derived data differs from the log.",
    Kind.STATE: "A record differs from the log, which is the source of truth.",
    Kind.NO_RECORD: "The log spawns a thread that has no record any more.",
    Kind.OBJECTIVE: "An objective's data on its threads is out of date.",
    Kind.NO_OBJECTIVE: "Leslie reports a failure for such a thread, but changes it.",
    Kind.TREE: "The tree of threads, or their references, is broken.",
    Kind.TWICE: "An operation's id must be unique.",
    Kind.LOCK: "While it exists, no Leslie command can change anything.",
    Kind.LEFTOVER: "An interrupted write left it; it may be the only copy of a file.",
    Kind.NO_COPY: "A frozen reference has no frozen copy, and a new copy would have the present content.",
    Kind.LINK: "Leslie replaces the link by a file at its next write; its target is not updated any more.",
    Kind.UNSAFE: "Such a name leads out of its directory.",
    Kind.STORAGE: "Its record has another path for its directory.",
    Kind.LAG: "Leslie updates the objective at its next change, not after a transfer.",
    Kind.HOLE: "The log has a gap, or two histories were merged; the later operations still apply.",
    Kind.UNKNOWN: "The command is unknown; it is kept and changes nothing.",
    Kind.EXTRA: "Leslie drops unknown keys at its next change, except those in params.",
    Kind.UNSPAWNED: "No operation spawns these threads; they are kept.",
    Kind.UNEXPLAINED: "No operation explains it; it is kept.",
    Kind.CLOCK: "A record must be as new as its last operation.",
    Kind.DIALECT: "Leslie's program can't read the older form; it is upgraded on request.",
}


class Repair(Struct, frozen=True):
    """The repair of a finding: steps in order, and their changes in words.

    ``on_request`` is the reason why it is only carried out if this very finding is requested; empty: it needs no
    request. ``make`` creates the steps when they are needed: a file for each of a thousand findings would fill the
    memory.
    """

    make: Callable[[], tuple[Step, ...]]
    words: tuple[str, ...]
    on_request: str = ""

    @classmethod
    def of(cls, step: Step, *words: str) -> Repair:
        """Return a repair of one step."""
        return cls(lambda: (step,), words)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps in order; the same every time."""
        return self.make()


class Finding(Struct, frozen=True):
    """One problem: the place, what is wrong there, the next action (empty: none), and its repair."""

    kind: Kind
    severity: Severity
    place: str
    found: str
    next: str
    subject: str = ""
    repair: Repair | None = None

    @property
    def id(self) -> str:
        """The name by which the finding can be requested."""
        return f"{self.kind.number or self.kind}:{self.subject or self.place}"
