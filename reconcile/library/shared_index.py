"""An index of both sides for all threads: it is filled by one full scan, then updated conversation by conversation.

A rescan of one conversation suffices if it and its ancestors equal the baseline, or differ from it in content alone.
Otherwise both sides are scanned again. Changes of other processes to other conversations go unnoticed meanwhile: they
don't concern this conversation, or the baseline shows them.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconcile.adapters.roots import refuse_link
from reconcile.library.storage import Tree, update_tree
from reconcile.model.names import CHILDREN
from reconcile.model.snapshot import WHOLE, Partition, Side
from reconcile.planning.decide import decide
from reconcile.planning.incremental.scope import Part, SnapshotIndex
from reconcile.scan.reader import CopyLocation
from reconcile.state.database import State

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from reconcile.engine.session import Session
    from reconcile.library.values import Contents
    from reconcile.model.baseline import Baseline, WorldState
    from reconcile.model.plan import Plan
    from reconcile.model.policy import Policy
    from reconcile.model.snapshot import Copy
    from reconcile.planning.incremental.side_index import SideIndex

_TRIES = 20
_PATIENCE = 60.0
"""Seconds that a read of the state waits for writers."""


class PlanningBasis(Struct, frozen=True):
    """The input of a plan for one conversation: the part that a change of it concerns.

    ``clean``: it equals the baseline. ``complete``: both sides were scanned as a whole, and the part is the closure.
    """

    part: Part
    clean: bool
    complete: bool


class SharedIndex:
    """The index of both sides, shared by all threads.

    One thread at a time does a full scan. Its result replaces the index at the end, so that only threads that need the
    scan wait for it. The mutex protects the index for moments. No thread holds it while it scans, reads or writes a
    side.
    """

    def __init__(self, session: Session, policy: Policy) -> None:
        """Scan both sides."""
        self.session = session
        self.policy = policy
        self._pid = os.getpid()
        self._mutex, self._scan_mutex = threading.RLock(), threading.RLock()
        self._scans_begun = self._scans_done = 0
        """The number of full scans that have begun, and the number of the last one that has ended."""
        self._world: WorldState
        self._snapshots: SnapshotIndex
        self._tree: Tree
        self._rescanned: set[str] = set()
        """Conversations that were rescanned during a full scan, which may hold an older state of them."""
        self._written: dict[str, Contents] = {}
        """Files that were written during a full scan."""
        # Not the connection of full scans: an open read on a connection hides what others have written since.
        self._state = session.state if session.readonly else State.open(session.directory, timeout=_PATIENCE)
        try:
            self.refresh()
        except BaseException:
            self._state.close()
            raise

    def refresh(self) -> WorldState:
        """Return the result of a full scan that began after this call; another thread may have done the scan.

        Raises:
            LocateError: a symbolic link has replaced a side.
        """
        wanted = self._scans_begun + 1
        with self._scan_mutex:
            if wanted <= self._scans_done:
                return self._world
            with self._mutex:
                self._scans_begun += 1
            world = self._scan()
            for attempt in range(_TRIES):
                if not (world.store.problems or world.workspace.problems):
                    break
                time.sleep(attempt / 1000)  # another process creates and removes directories all the time
                world = self._scan()
            known, tree = SnapshotIndex.of_world(world, self.session.rules), self._build_tree(world)
            with self._mutex:
                self._adopt(world, known, tree)
            return world

    def _scan(self) -> WorldState:
        world = self.session.scan()
        for snapshot in (world.store, world.workspace):
            if any(not problem.path for problem in snapshot.problems):
                refuse_link(self.session.site.conversations(snapshot.side))
        return world

    def _build_tree(self, world: WorldState) -> Tree:
        rules = self.session.rules
        planning = decide(world.store, world.workspace, world.baseline, self.policy, rules, self.session.now_ns())
        return Tree({id_: planning.parentage[id_].parent for id_ in planning.tree.walk()}, rules.format.order)

    def _adopt(self, world: WorldState, known: SnapshotIndex, tree: Tree) -> None:
        """Replace the index by the result of a full scan, with the changes that were made during the scan."""
        for conversation in self._rescanned:
            for side in Side:
                for copy in self._snapshots.sides[side].of(conversation):
                    known.sides[side].put(copy)
        known.update_ancestry(self._rescanned, self._load_baseline(self._rescanned))
        for conversation, contents in self._written.items():
            update_tree(tree, self.session.format, conversation, contents)
        self._world, self._snapshots, self._tree, self._scans_done = world, known, tree, self._scans_begun
        self._rescanned, self._written = set(), {}

    def record_write(self, conversation: str, contents: Contents) -> None:
        """Update the tree with the files that were written."""
        with self._mutex:
            if self._scans_begun != self._scans_done:
                self._written[conversation] = contents
            update_tree(self._tree, self.session.format, conversation, contents)

    @property
    def tree(self) -> Tree:
        """The live conversations, with their parents."""
        return self._tree

    def taken_ids(self) -> Collection[str]:
        """Return the ids that conversations have or had."""
        with self._mutex:
            return self._snapshots.conversations()

    def basis(self, conversation: str, parent: str | None = None) -> PlanningBasis:
        """Rescan one conversation, or both sides if that can't suffice; ``parent`` is the parent that it will get."""
        if not self._has_appeared(conversation) and self._rescan(conversation):
            with self._mutex:
                part = self._snapshots.part_in_place((conversation,), self._load_baseline, parents=_set_of(parent))
                suffices = part is not None and self._snapshots.suffices()
                is_clean = part is not None and self._are_clean(part.conversations, part.world.baseline)
            if part is not None and suffices:
                return PlanningBasis(part if is_clean else self._with_events(part), is_clean, complete=False)
        return self.full_basis(conversation, parent)

    def full_basis(self, conversation: str, parent: str | None = None) -> PlanningBasis:
        """Scan both sides, and return the basis of one conversation with its closure."""
        self.refresh()
        with self._mutex:
            part = self._snapshots.part((conversation,), self._load_baseline, parents=_set_of(parent))
            ancestors = self._snapshots.ancestry.with_above((conversation,))
            is_clean = self._are_clean(ancestors, part.world.baseline)
        return PlanningBasis(self._with_events(part), is_clean, complete=True)

    def part_after(self, plan: Plan, part: Part, conversation: str, *, complete: bool) -> Part:
        """Rescan after a plan of one conversation was carried out, and return the same part as it is now.

        ``complete``: scan both sides; the plan may have moved directories.
        """
        conversations = part.conversations.union(action.conversation for action in plan.actions)
        if complete or not self._rescan(conversation, _new_directories(plan, conversation)):
            self.refresh()
        with self._mutex:
            baseline = self._load_baseline(conversations)
            self._snapshots.update_ancestry((conversation,), baseline)
            world = self._snapshots.world_of(conversations, baseline)
            return Part(world, self._snapshots.whole, conversations)

    def copies(self, side: Side, conversation: str) -> list[Copy]:
        """Return the indexed copies of a conversation on a side."""
        with self._mutex:
            return self._snapshots.sides[side].of(conversation)

    def close(self) -> None:
        """Save the cache of the scanner, and close the state."""
        # A forked child must not wait for a mutex: another thread may have had it, and the child has only this one.
        is_ours, nothing = self._pid == os.getpid(), contextlib.nullcontext()
        with self._scan_mutex if is_ours else nothing, self._mutex if is_ours else nothing:
            if is_ours and not self.session.readonly:
                self.session.scanner.save()
            self._state.close()
            self.session.state.close()

    def _with_events(self, part: Part) -> Part:
        return replace(part, world=self.session.with_events(part.world))

    def _load_baseline(self, conversations: Collection[str]) -> Baseline:
        return self._state.load(self.session.checkout, conversations)

    def _are_clean(self, conversations: Collection[str], baseline: Baseline) -> bool:
        return all(self._snapshots.is_clean(conversation, baseline) for conversation in conversations)

    def _has_appeared(self, conversation: str) -> bool:
        """Return whether another process has created the conversation in the store since the last scan."""
        with self._mutex:
            kept, here = self._snapshots.sides.values()
            if conversation in kept or conversation in here:
                return False
        store, id_of = self.session.site.conversations(Side.STORE), self.session.format.id_of
        with contextlib.suppress(FileNotFoundError):
            return conversation in map(id_of, os.listdir(store))
        return False

    def _rescan(self, conversation: str, new_directories: Mapping[Side, Sequence[str]] | None = None) -> bool:
        """Update the index with the directories of one conversation; return False if one of them is gone."""
        for attempt in range(_TRIES):
            with self._mutex:
                scans_begun, known = self._scans_begun, dict(self._snapshots.sides)
                paths = {
                    side: dict.fromkeys(
                        (*(copy.path for copy in snapshot.of(conversation)), *(new_directories or {}).get(side, ()))
                    )
                    for side, snapshot in known.items()
                }
                locations = {
                    side: [_location_of(known[side], path, conversation) for path in paths[side]] for side in Side
                }
            scanner = self.session.scanner
            scanned = [
                scanner.rescan_locations(known[side], locations[side]) if locations[side] else () for side in Side
            ]
            copies = [copy for part in scanned if part is not None for copy in part]
            if None in scanned:
                return False
            with self._mutex:
                if scans_begun != self._scans_begun and attempt < _TRIES - 1:
                    continue  # a full scan has begun since, and this result must not be older
                for copy in copies:
                    self._snapshots.sides[copy.side].put(copy)
                if scans_begun != self._scans_done:
                    self._rescanned.add(conversation)
                break
        return True


def _set_of(parent: str | None) -> frozenset[str]:
    return frozenset() if parent is None else frozenset((parent,))


def _new_directories(plan: Plan, conversation: str) -> dict[Side, list[str]]:
    """Return the directories that a plan creates for a conversation, by side."""
    directories: dict[Side, list[str]] = {side: [] for side in Side}
    for action in plan.actions:
        if action.unit == WHOLE and action.writes and action.conversation == conversation:
            directories[action.target.side].append(action.target.path)
    return directories


def _location_of(known: SideIndex, path: str, conversation: str) -> CopyLocation:
    """Return the location of a directory by its path; a new directory is live."""
    if path in known.paths:
        there = known.copy(path)
        return CopyLocation(path, conversation, there.partition, there.container)
    return CopyLocation(path, conversation, Partition.LIVE, known.paths.get(path.rpartition(f"/{CHILDREN}/")[0]))
