"""The options of a command line. Plain ways to give them are read without a parser.

Every start loads this module, so it imports next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Options:
    """The options that were given; the program and its command share one object."""

    workspace: str | None = None
    store: str | None = None
    format: str | None = None
    layout: str | None = None
    only: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    dry_run: bool = False
    out: str | None = None
    check: bool = False
    prefer: str = "newest"
    allow_bulk_removal: bool = False
    yes: bool = False
    all: bool = False
    json: bool = False
    verbose: bool = False
    quiet: bool = False
    color: str = "auto"
    no_pager: bool = False

    has_finished_runs = False  # nor is this
    """Whether this command has finished killed runs: then it has changed something before its question."""

    printed = frozenset[str]()  # nor is this
    """The messages that this command has printed beside a plan; each is printed once, though the plan may be again."""

    nothing = "nothing"  # nor is this, nor are the next two
    """The words for what is not changed if a question ends the command."""

    idle = "Nothing to do."
    """The words of a report without an action; others if a message names something to restore."""

    is_cancelled = False
    """Whether a person has ended the command at a question."""

    has_reported = False  # nor is this
    """Whether a run of ``--all`` has printed anything of this project."""

    has_changes = False  # nor is this
    """Whether that run had steps to do, or has done some."""

    gathers = False  # nor are these
    """Whether a plain run with nothing to do prints nothing: one line tells it of all formats of the project."""

    has_nothing_to_do = False
    """Whether a plain run had nothing to do, and nothing to tell."""

    counts = ""
    """How many conversations are in which state then."""

    is_following = False
    """Whether an empty line separates what is printed from the output of the format before."""

    heading = ""  # nor is this
    """The name of the project, while a command with ``--all`` is about each project; empty: it is about one."""

    given = frozenset[str]()  # no annotation: it is none of `NAMES`
    """The names of those that were given."""

    def in_format(self, name: str) -> Options:
        """Return the same options with this format, which suggested commands repeat."""
        options = Options()
        options.__dict__.update(vars(self))
        options.format = name
        return options

    @property
    def is_dry(self) -> bool:
        """Nothing may be written: ``--out`` and ``--check`` imply a dry run."""
        return self.dry_run or self.check or self.out is not None

    @property
    def side_words(self) -> list[str]:
        """The options that name the two sides, as words of a command line."""
        names = ("workspace", "store", "format", "layout")
        said = ((name, getattr(self, name)) for name in names)
        return [word for name, value in said if value is not None for word in (f"--{name}", value)]

    @property
    def sides(self) -> str:
        """The same options for a command that is suggested: with ``~`` for the home directory."""
        if not (words := self.side_words):
            return ""
        from reconcile.fs.paths import quoted_path  # here: most runs are started in the workspace

        return "".join(f" {quoted_path(word)}" for word in words)

    @property
    def shaping(self) -> list[str]:
        """The options that change a plan, as words of a command line."""
        words: list[str] = []
        for name in NAMES:
            if name not in _UNSAID and (value := getattr(self, name)) != getattr(Options, name):
                words += option_words(f"--{name.replace('_', '-')}", value)
        return words


class Turn(Options):
    """The options of a command in the turn of one format, where it does several formats one after the other.

    ``documents`` and ``plans`` collect what it prints with ``--json`` and saves with ``--out``: each is one for all.
    A plan is a text, and whether it changes something.
    """

    def __init__(self, options: Options, name: str) -> None:
        """Copy the options, with this format."""
        self.__dict__.update(vars(options.in_format(name)))
        self.nothing = f"nothing of {name}"
        self.documents: list[Mapping[str, Any]] = []
        self.plans: list[tuple[str, bool]] = []


def option_words(name: str, value: Any) -> list[str]:
    """Return an option as words of a command line, once for each of its values."""
    if value is True:
        return [name]
    return [word for each in (value if isinstance(value, tuple) else (value,)) for word in (name, str(each))]


_UNSAID = {"workspace", "store", "format", "dry_run", "out", "check", "json", "verbose", "quiet", "color", "no_pager"}
"""Options for the sides and for the output: the journal has the sides."""
NAMES = tuple(Options.__annotations__)
_SWITCHES = {
    "-n": "dry_run",
    "--dry-run": "dry_run",
    "--check": "check",
    "-v": "verbose",
    "--verbose": "verbose",
    "-q": "quiet",
    "--quiet": "quiet",
}
_VALUES = {
    "-w": "workspace",
    "--workspace": "workspace",
    "-s": "store",
    "--store": "store",
    "--format": "format",
}


def read_plainly(words: Iterable[str]) -> Options | None:
    """Return what these words say, where they are a plain run's most usual ones; None: the parser has to tell."""
    options, rest = Options(), iter(words)
    for word in rest:
        if word in _SWITCHES:
            setattr(options, _SWITCHES[word], True)
            continue
        name, value = _VALUES.get(word), next(rest, "-")
        if name is None or value.startswith("-"):
            return None
        setattr(options, name, value)
    return options
