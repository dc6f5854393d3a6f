"""The conversation tree: the parent of each conversation, and an index of all of them (docs/design/placement.md).

The parent is a three-way decision of its own (docs/design/placement.md#rule-1).
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconcile.model.baseline import AsideKind
from reconcile.model.reasons import Reason
from reconcile.model.snapshot import METADATA, Metadata, ParentKind, ParentRef, Partition
from reconcile.model.units import units_of
from reconcile.planning.rules.content import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from reconcile.model.snapshot import Copy, Fault, Snapshot
    from reconcile.planning.rules.content import Verdict
    from reconcile.planning.rules.views import SideView, View

    Order = Callable[[str], tuple[int, str]]


_STATED = (ParentKind.ID, ParentKind.ROOT)


class Parentage(Struct, frozen=True, gc=False):
    """The decided parent. ``frozen``: it is undecided (docs/design/placement.md#rule-7)."""

    parent: str | None
    frozen: bool = False


def decide_parent(view: View, verdict: Verdict | None, *, is_of_remote: bool = False) -> Parentage:
    """Decide the parent, given the verdict on the metadata unit (None: only one side has it).

    A change on one side wins whatever the mtimes are. After changes on both sides the newer metadata wins; a tie goes
    to the store. An absent key in the store, or at the workspace's top level, means unchanged. In a remote it makes a
    root if a parent is known: a sync never sends metadata that JP has stripped. A side whose metadata lost by a
    decision, or is local and stays as it is, has no vote.
    """
    if not view.parent_is_known:
        view = _with_stated_parents(view)
    store, workspace = view.store.metadata, view.workspace.metadata
    silent = _silent(view, verdict)
    waits = verdict is not None and verdict.outcome in (Outcome.HELD, Outcome.BEHIND, Outcome.ASIDE, Outcome.WAIT)
    if (waits and silent is None) or (store is None and workspace is None):
        return Parentage(view.base_parent, frozen=True)
    roots = is_of_remote and view.parent_is_known
    claims = (
        (view.store, _stored_claim(view, store)),
        (view.workspace, _workspace_claim(view, workspace, roots=roots)),
    )
    said = [
        (side, claim)
        for side, claim in claims
        if claim is not None and side is not silent and not (view.parent_is_known and claim.id == view.base_parent)
    ]
    if not said:
        return Parentage(view.base_parent)
    _, claim = max(said, key=lambda entry: _mtime(entry[0]))  # of equal times the first, which is the store's
    return Parentage(claim.id)


def _with_stated_parents(view: View) -> View:
    """Let another directory of a side state the parent if the speaking metadata has no key for it.

    A missing key is no change (docs/design/placement.md#rule-2), and no parent is known that it could stand for. Of a
    local conversation the directory that stays speaks alone.
    """
    workspace = view.workspace if view.local else _with_stated_parent(view, view.workspace)
    return replace(view, store=_with_stated_parent(view, view.store), workspace=workspace)


def _with_stated_parent(view: View, side: SideView) -> SideView:
    if side.main is None or side.metadata is None or side.metadata.parent.kind is not ParentKind.ABSENT:
        return side
    directories = [copy for copy in (side.main, *side.stale) if _stated(copy.metadata) is not None]
    if not directories:
        return side
    units = [units_of(copy, view.rules, None)[METADATA] for copy in directories]
    newest = min(units, key=lambda unit: (-unit.mtime_ns, unit.copy.path))
    return replace(side, units={METADATA: newest})  # the rest is not asked for


def _stated(metadata: Metadata | Fault | None) -> ParentRef | None:
    """Return the parent that a metadata file states, also if it states a root; None if it states nothing."""
    return metadata.parent if isinstance(metadata, Metadata) and metadata.parent.kind in _STATED else None


def _silent(view: View, verdict: Verdict | None) -> SideView | None:
    """Return the side that has no vote on the parent."""
    if verdict is None:
        return None
    if verdict.record is not None and verdict.record.kind is AsideKind.LOCAL:
        return view.workspace
    if verdict.reason is not Reason.DECIDED:
        return None
    return view.workspace if verdict.outcome is Outcome.TO_WORKSPACE else view.store


def _stored_claim(view: View, metadata: Metadata | None) -> ParentRef | None:
    """Return the parent that the store states; None if it states none. An absent key stands for a known parent."""
    if metadata is not None and metadata.parent.kind is ParentKind.ABSENT and view.parent_is_known:
        return ParentRef(ParentKind.ABSENT, view.known_parent)
    return _stated(metadata)


def _workspace_claim(view: View, metadata: Metadata | None, *, roots: bool) -> ParentRef | None:
    """Return the parent that the workspace states; None if it states none. An absent key may make a root."""
    if metadata is not None and metadata.parent.kind is ParentKind.ABSENT and (roots or _roots_by_absence(view)):
        return metadata.parent
    return _stated(metadata)


def _roots_by_absence(view: View) -> bool:
    """Tell whether an absent key makes a root: in a nested copy that is in sync (docs/design/placement.md#rule-2)."""
    unit = view.workspace.units.get(METADATA)
    return (
        unit is not None
        and unit.copy.container is not None
        and view.agreed is not None
        and unit.digest == view.agreed.units.get(METADATA)
    )


def _mtime(side: SideView) -> int:
    return side.units[METADATA].mtime_ns


def states(metadata: Metadata, parent: str | None) -> bool:
    """Tell whether a metadata file may stay as it is.

    It states this parent, or an unreadable value, which is left alone.
    """
    return metadata.parent.kind is ParentKind.UNREADABLE or metadata.parent.id == parent


def stated_alone(
    store: Snapshot, workspace: Snapshot, conversations: Collection[str], put_back: Collection[str]
) -> dict[str, str]:
    """Return the parents that only the store's metadata states.

    They are lost once the workspace's metadata, or another directory's, is copied over it; the run after an
    interruption must know them. ``put_back``: conversations whose parent the plan writes into the store's file. Of
    several directories the plan has decided which parent holds; if it writes none, none of them holds.
    """
    copies: dict[str, list[Copy]] = {}
    for copy in store.copies:
        if copy.conversation in conversations and copy.partition is not Partition.TRASH:
            copies.setdefault(copy.conversation, []).append(copy)
    alone = {}
    for conversation, directories in copies.items():
        stated = {reference.id for copy in directories if (reference := _stated(copy.metadata)) is not None}
        if len(stated) == 1 and (len(directories) == 1 or conversation in put_back):
            alone[conversation] = stated.pop()
    for copy in workspace.copies:
        if isinstance(copy.metadata, Metadata) and copy.metadata.parent.kind is not ParentKind.ABSENT:
            alone.pop(copy.conversation, None)
    return {conversation: parent for conversation, parent in alone.items() if parent is not None}


class TreeIndex:
    """An immutable forest of the live conversations.

    A conversation whose parent isn't live is a root (docs/design/placement.md#rule-3). A cycle, also of length one, is
    broken at its member with the smallest id, which becomes a root (docs/design/placement.md#rule-4). Every iteration
    is in the order of ids, and no method recurses.
    """

    def __init__(self, parents: Mapping[str, str | None], order: Order) -> None:
        """Index ``parents``, the stated parent of each live conversation."""
        self._order = order
        self._stated = dict(parents)
        self._parent = {child: parent if parent in parents else None for child, parent in parents.items()}
        ordered = sorted(self._parent, key=order)
        self.cycles = self._break_cycles(ordered)
        self._cut = frozenset(cycle[0] for cycle in self.cycles)
        self._children: dict[str | None, list[str]] = {}
        for child in ordered:
            parent = self._parent[child]
            siblings = self._children.get(parent)
            if siblings is None:
                self._children[parent] = [child]
            else:
                siblings.append(child)

    def _break_cycles(self, ordered: Iterable[str]) -> tuple[tuple[str, ...], ...]:
        """Cut every cycle at its smallest member; return the cycles, each beginning with that member."""
        finished: set[str] = set()
        cycles = []
        for start in ordered:
            parent = self._parent[start]
            if parent is None or parent in finished:  # most are older than their children
                finished.add(start)
                continue
            path: dict[str, None] = {}
            node: str | None = start
            while node is not None and node not in finished and node not in path:
                path[node] = None
                node = self._parent[node]
            if node in path:
                trail = list(path)
                members = trail[trail.index(node) :]
                smallest = min(members, key=self._order)
                at = members.index(smallest)
                self._parent[smallest] = None
                cycles.append(tuple(members[at:] + members[:at]))
            finished.update(path)
        return tuple(cycles)

    def __contains__(self, conversation: str) -> bool:
        """Tell whether the conversation is live."""
        return conversation in self._parent

    def parent_of(self, conversation: str) -> str | None:
        """Return the parent that determines its place; None for a root."""
        return self._parent[conversation]

    def parent_is_gone(self, conversation: str) -> bool:
        """Tell whether the stated parent isn't live."""
        stated = self._stated[conversation]
        return stated is not None and stated not in self._stated

    def breaks_cycle(self, conversation: str) -> bool:
        """Tell whether it is a root because its cycle was broken at it."""
        return conversation in self._cut

    def children_of(self, conversation: str) -> tuple[str, ...]:
        """Return the direct children in the order of ids."""
        return tuple(self._children.get(conversation, ()))

    def has_children(self, conversation: str) -> bool:
        """Tell whether any live conversation is placed below it."""
        return conversation in self._children

    def roots(self) -> tuple[str, ...]:
        """Return the conversations without a live parent, in the order of ids."""
        return tuple(self._children.get(None, ()))

    def ancestors(self, conversation: str) -> Iterator[str]:
        """Yield the parent, grandparent and so on, up to a root."""
        node = self._parent[conversation]
        while node is not None:
            yield node
            node = self._parent[node]

    @cached_property
    def depths(self) -> Mapping[str, int]:
        """The number of ancestors of each, 0 for a root; parents before children."""
        depths: dict[str, int] = {}
        for conversation in self.walk():
            parent = self._parent[conversation]
            depths[conversation] = 0 if parent is None else depths[parent] + 1
        return depths

    @cached_property
    def tops(self) -> Mapping[str, str]:
        """The root of each conversation's tree."""
        tops: dict[str, str] = {}
        for conversation in self.walk():
            parent = self._parent[conversation]
            tops[conversation] = conversation if parent is None else tops[parent]
        return tops

    def descendants(self, conversation: str) -> Iterator[str]:
        """Yield everything below it, parents before children, siblings in the order of ids."""
        yield from self._walk(list(reversed(self.children_of(conversation))))

    def walk(self) -> Iterator[str]:
        """Return an iterator over everything, parents before children, siblings in the order of ids."""
        return iter(self._order_of_walk)

    @cached_property
    def _order_of_walk(self) -> tuple[str, ...]:
        return tuple(self._walk(list(reversed(self.roots()))))

    def _walk(self, stack: list[str]) -> Iterator[str]:
        while stack:
            node = stack.pop()
            yield node
            children = self._children.get(node)
            if children is not None:
                stack.extend(reversed(children))
