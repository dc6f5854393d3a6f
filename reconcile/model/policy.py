"""What the user asks of one run: options, configuration and decisions, as one value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from reconcile.model.options import Diverged, Layout, Missing, Prefer, StreamRule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconcile.model.options import Take
    from reconcile.model.requests import Request, TreeEdit


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
        if self.request is None:
            return None
        from reconcile.model.requests import TreeEdit  # here: a plain run asks for nothing

        return self.request if isinstance(self.request, TreeEdit) else None

    @property
    def is_plain(self) -> bool:
        """Nothing is asked for but what every run does."""
        special = self.request or self.only or self.below or self.decisions or self.accept_bulk or self.mend
        return not special and self.prefer is Prefer.NEWEST
