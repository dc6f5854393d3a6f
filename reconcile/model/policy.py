"""The policy of one run: options, configuration, decisions, and the request of a command.

A saved plan contains the request, and repeats it when it is applied.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct, field

from reconcile.model.options import Diverged, Layout, Missing, OnConflict, Prefer, StreamRule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconcile.model.format import EventSelection
    from reconcile.model.options import Take

NO_CONVERSATION = frozenset({""})
"""A scope that contains no conversation; an empty scope means everything."""


class Children(StrEnum):
    """The treatment of the children of a removed conversation; ``REFUSE`` rejects a removal if there are children."""

    REFUSE = "refuse"
    CASCADE = "cascade"
    PROMOTE = "promote"


class UndoRequest(Struct, frozen=True):
    """``undo``: revert the changes of the run with the id ``run``."""

    run: str


class RestoreRequest(Struct, frozen=True):
    """``restore``: restore a version; ``version`` is ``ID@RUN[:unit]`` or a prefix of a digest."""

    version: str


class LocalRequest(Struct, frozen=True):
    """``local``: keep conversations out of the workspace of every checkout."""

    ids: tuple[str, ...]


class ProjectRequest(Struct, frozen=True):
    """``project``: put conversations into the workspace; ``ancestors`` includes their private ancestors.

    ``everything``: all conversations that aren't local. ``behind``: also replace every older version that is set aside.
    ``records``: the checkouts whose record contains them (`recover`); an empty workspace is no obstacle then.
    """

    ids: tuple[str, ...]
    everything: bool = False
    behind: bool = False
    ancestors: bool = False
    records: tuple[int, ...] | None = None


class RemoveRequest(Struct, frozen=True):
    """``rm``: remove conversations from both sides."""

    ids: tuple[str, ...]
    children: Children = Children.REFUSE


class SetParentRequest(Struct, frozen=True):
    """``set-parent``: make a conversation a child of ``parent``, or a root (None)."""

    id: str
    parent: str | None


class GcRequest(Struct, frozen=True):
    """``gc``: remove expired conversations, except those in ``active``, which JP has open in a terminal."""

    active: tuple[str, ...] = ()


class ForkRequest(Struct, frozen=True):
    """``fork``: create a child of ``id`` with a part of its events; without ``title`` it gets the source's.

    ``continuation`` are the stream files, by name, that a merge of git leaves out. They become a child as those of a
    continuation that a run leaves out, and ``part`` and ``title`` don't count. ``uuid`` is the new id in a format whose
    program names forks at random.
    """

    id: str
    part: EventSelection
    title: str | None = None
    local: bool = False
    continuation: Mapping[str, bytes] | None = None
    uuid: str = ""


class QuarantineRequest(Struct, frozen=True):
    """``doctor --quarantine``: move the unreadable files of conversations into the trash."""

    ids: tuple[str, ...]


TreeEdit: TypeAlias = LocalRequest | ProjectRequest | RemoveRequest | SetParentRequest | GcRequest
"""Requests that change a normal run of the planner; the others replace it."""
Request: TypeAlias = UndoRequest | RestoreRequest | ForkRequest | QuarantineRequest | TreeEdit

REQUEST_COMMANDS: Final = {
    UndoRequest: "undo",
    RestoreRequest: "restore",
    LocalRequest: "local",
    ProjectRequest: "project",
    RemoveRequest: "rm",
    SetParentRequest: "set-parent",
    GcRequest: "gc",
    ForkRequest: "fork",
    QuarantineRequest: "doctor",
}
"""The command of each request."""


class Policy(Struct, frozen=True):
    """Options, configuration and decisions of one run.

    ``only``/``below``: ids that the run is limited to (empty: no limit). ``git_busy`` names the git operation that is
    in progress in this checkout, if any.
    """

    layout: Layout = Layout.NESTED
    prefer: Prefer = Prefer.NEWEST
    stream: StreamRule = StreamRule.DIRECTED
    diverged: Diverged = Diverged.FORK
    conflict: OnConflict = OnConflict.NEWEST
    missing: Missing = Missing.INTENT
    accept_bulk: bool = False
    only: frozenset[str] = frozenset()
    below: frozenset[str] = frozenset()
    decisions: Mapping[str, Take] = field(default_factory=dict)
    choices: Mapping[tuple[str, str], Take] = field(default_factory=dict)
    """By conversation and unit, the answers about conflicts; `Take.KEEP` leaves one undecided in this run."""
    allow_secrets: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    """By conversation, the fingerprints of the secrets that it is published with; None: those that its plan finds."""
    mend: frozenset[str] = frozenset()
    """Ids of the repairs that are done only on request (`DerivedRepair.asked`)."""
    git_busy: str | None = None
    path_limit: int = 3_800
    """The limit of a path below the workspace's ``conversations/``, in bytes."""
    request: Request | None = None
    """The request of a command; None for a plain run."""

    @property
    def tree_edit(self) -> TreeEdit | None:
        """The request, if it changes a normal run of the planner; None if it replaces the run, or there is none."""
        return self.request if isinstance(self.request, TreeEdit) else None

    @property
    def is_unlimited(self) -> bool:
        """The run is about everything: no command, and no selection."""
        return not (self.request or self.only or self.below or self.decisions)

    @property
    def is_plain(self) -> bool:
        """Whether this is a plain run: no request, no limit, no decision."""
        special = self.request or self.only or self.below or self.decisions or self.accept_bulk or self.mend
        return not (special or self.choices or self.allow_secrets) and self.prefer is Prefer.NEWEST
