"""What can be wrong with a ``.leslie``, and the value that says so (docs/design/formats/leslie.md#failures)."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconcile.formats.leslie.checks.input import Step


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
