"""The policy of one run: options, configuration, decisions, and the request of a command.

A saved plan contains the request, and repeats it when it is applied.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct, field

from reconcile.model.options import Diverged, Layout, Missing, Prefer, StreamRule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconcile.model.format import Part
    from reconcile.model.options import Take


class Children(StrEnum):
    """The treatment of the children of a removed conversation; ``REFUSE`` rejects a removal if there are children."""

    REFUSE = "refuse"
    CASCADE = "cascade"
    PROMOTE = "promote"


class TakeBack(Struct, frozen=True):
    """``undo``: revert the changes of the run with the id ``run``."""

    run: str


class PutBack(Struct, frozen=True):
    """``restore``: restore a version; ``version`` is ``ID@RUN[:unit]`` or a prefix of a digest."""

    version: str


class Localize(Struct, frozen=True):
    """``local``: keep conversations out of the workspace of every checkout."""

    ids: tuple[str, ...]


class Project(Struct, frozen=True):
    """``project``: put conversations into the workspace; ``ancestors`` includes their private ancestors.

    ``everything``: all conversations that aren't local. ``behind``: also replace every older version that is set aside.
    ``records``: the checkouts whose record contains them (`recover`); an empty workspace is no obstacle then.
    """

    ids: tuple[str, ...]
    everything: bool = False
    behind: bool = False
    ancestors: bool = False
    records: tuple[int, ...] | None = None


class Remove(Struct, frozen=True):
    """``rm``: remove conversations from both sides."""

    ids: tuple[str, ...]
    children: Children = Children.REFUSE


class Reparent(Struct, frozen=True):
    """``set-parent``: make a conversation a child of ``parent``, or a root (None)."""

    id: str
    parent: str | None


class Collect(Struct, frozen=True):
    """``gc``: remove expired conversations, except those in ``active``, which JP has open in a terminal."""

    active: tuple[str, ...] = ()


class Branch(Struct, frozen=True):
    """``fork``: create a child of ``id`` with a part of its events; without ``title`` it gets the source's."""

    id: str
    part: Part
    title: str | None = None
    local: bool = False


class Quarantine(Struct, frozen=True):
    """``doctor --quarantine``: move the unreadable files of conversations into the trash."""

    ids: tuple[str, ...]


TreeEdit: TypeAlias = Localize | Project | Remove | Reparent | Collect
"""Requests that change a normal run of the planner; the others replace it."""
Request: TypeAlias = TakeBack | PutBack | Branch | Quarantine | TreeEdit

COMMANDS: Final = {
    TakeBack: "undo",
    PutBack: "restore",
    Localize: "local",
    Project: "project",
    Remove: "rm",
    Reparent: "set-parent",
    Collect: "gc",
    Branch: "fork",
    Quarantine: "doctor",
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
    missing: Missing = Missing.INTENT
    accept_bulk: bool = False
    only: frozenset[str] = frozenset()
    below: frozenset[str] = frozenset()
    decisions: Mapping[str, Take] = field(default_factory=dict)
    mend: frozenset[str] = frozenset()
    """Ids of the repairs that are done only on request (`Mended.asked`)."""
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
    def is_plain(self) -> bool:
        """Whether this is a plain run: no request, no limit, no decision."""
        special = self.request or self.only or self.below or self.decisions or self.accept_bulk or self.mend
        return not special and self.prefer is Prefer.NEWEST
