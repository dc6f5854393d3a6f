"""What the user asks of one run, as one value: options, configuration, decisions, and the request of a command.

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
    """What ``rm`` does with the children of what it removes; None of it: it is refused where there are any."""

    REFUSE = "refuse"
    CASCADE = "cascade"
    PROMOTE = "promote"


class TakeBack(Struct, frozen=True):
    """``undo``: put back what a run did. ``run`` is its id."""

    run: str


class PutBack(Struct, frozen=True):
    """``restore``: bring a version back; ``version`` is ``ID@RUN[:unit]`` or the beginning of a digest."""

    version: str


class Localize(Struct, frozen=True):
    """``local``: keep these out of workspaces, here and in every checkout."""

    ids: tuple[str, ...]


class Project(Struct, frozen=True):
    """``project``: put these into the workspace; with ``ancestors`` also those above them that are private.

    ``everything``: all that isn't local. ``behind``: end it for every older version that is set aside. ``records``:
    the checkouts whose record says that they were here (`recover`); an empty workspace is no obstacle then.
    """

    ids: tuple[str, ...]
    everything: bool = False
    behind: bool = False
    ancestors: bool = False
    records: tuple[int, ...] | None = None


class Remove(Struct, frozen=True):
    """``rm``: remove these from both sides."""

    ids: tuple[str, ...]
    children: Children = Children.REFUSE


class Reparent(Struct, frozen=True):
    """``set-parent``: make it a child of ``parent``, or a root."""

    id: str
    parent: str | None


class Collect(Struct, frozen=True):
    """``gc``: remove what has expired, but for ``active``, which JP has open in a terminal."""

    active: tuple[str, ...] = ()


class Branch(Struct, frozen=True):
    """``fork``: a child of ``id`` with a part of its events; ``title`` None: the source's."""

    id: str
    part: Part
    title: str | None = None
    local: bool = False


class Quarantine(Struct, frozen=True):
    """``doctor --quarantine``: move what nobody can read of these into the trash."""

    ids: tuple[str, ...]


TreeEdit: TypeAlias = Localize | Project | Remove | Reparent | Collect
"""What changes a run of the planner, rather than taking the place of one."""
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
"""The commands that ask for something else than a plain run, by their requests."""


class Policy(Struct, frozen=True):
    """Options, configuration and decisions of one run.

    ``only``/``below``: ids that the run is limited to (empty: everything). ``git_busy`` names what git is in the
    middle of in this checkout, None: nothing.
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
    """What is mended only where somebody asks for it, by its id (`Mended.asked`)."""
    git_busy: str | None = None
    path_limit: int = 3_800
    """Bytes that a path below the workspace's ``conversations/`` may have."""
    request: Request | None = None
    """What a command asks for; None: a plain run."""

    @property
    def tree_edit(self) -> TreeEdit | None:
        """What is asked for, where that changes a run of the planner rather than taking the place of one."""
        return self.request if isinstance(self.request, TreeEdit) else None

    @property
    def is_plain(self) -> bool:
        """Nothing is asked for but what every run does."""
        special = self.request or self.only or self.below or self.decisions or self.accept_bulk or self.mend
        return not special and self.prefer is Prefer.NEWEST
