"""What another witness than the runs has to be asked about: contents of both sides, of which no run knows the older."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.planning.rules.content import doubtful_case
from reconcile.planning.rules.views import Lead, views_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reconcile.model.baseline import Memory
    from reconcile.model.snapshot import Copy, Digest, Snapshot
    from reconcile.model.units import Rules, Unit
    from reconcile.planning.rules.views import View


class Doubt(Struct, frozen=True):
    """Two valid versions of one unit.

    ``past`` are those that were in sync before, oldest first. ``at_rest``: the workspace has what both sides agreed on
    last.
    """

    store: Unit
    workspace: Unit
    past: tuple[Digest, ...]
    at_rest: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """The conversation and the unit."""
        return self.store.copy.conversation, self.store.name


def doubts_of(store: Snapshot, workspace: Snapshot, memory: Memory, rules: Rules) -> tuple[Doubt, ...]:
    """Return every unit of which the two sides differ, and no run knows which of the two is older.

    Of records with fixed places there are none: their programs' own rules tell which has more.
    """
    if rules.format.places is not None:
        return ()
    differ = _differing(store, workspace)
    if not differ:
        return ()
    found = []
    for view in views_of(store, workspace, memory, rules, differ).values():
        for name in view.store.units:
            case = doubtful_case(view, name, memory)
            if case is not None:
                past = memory.history.get((view.id, name), ())
                found.append(Doubt(view.store.units[name], view.workspace.units[name], past, at_rest=case == 13))
    return tuple(found)


def parted_of(store: Snapshot, workspace: Snapshot, memory: Memory, rules: Rules) -> tuple[View, ...]:
    """Return the conversations that one side has archived and the other live, where nothing is remembered of that."""
    theirs: dict[str, set[bool]] = {}
    for copy in workspace.copies:
        theirs.setdefault(copy.conversation, set()).add(copy.archived)
    apart = {copy.conversation for copy in store.copies if theirs.get(copy.conversation, set()) - {copy.archived}}
    if rules.format.places is not None or not apart:
        return ()
    views = views_of(store, workspace, memory, rules, apart).values()
    return tuple(view for view in views if view.is_parted and not view.local and view.lead is not Lead.NEITHER)


def _differing(store: Snapshot, workspace: Snapshot) -> set[str]:
    """Return the conversations of which a copy on one side differs from one on the other."""
    theirs: dict[str, list[Copy]] = {}
    for copy in workspace.copies:
        theirs.setdefault(copy.conversation, []).append(copy)
    return {
        copy.conversation
        for copy in store.copies
        for other in theirs.get(copy.conversation, ())
        if dict(_contents(copy)) != dict(_contents(other))
    }


def _contents(copy: Copy) -> Iterator[tuple[str, Digest | None]]:
    return ((file.name, file.digest) for file in copy.files)
