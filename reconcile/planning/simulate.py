"""The expected result of a plan: the second, independent definition of each action.

It knows nothing of the planner; it replays the steps on listings of files. After every applied plan, a new scan equals
its result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from reconcile.model.plan import MOVES, Kind
from reconcile.model.snapshot import WHOLE, Place, Side, joined

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from reconcile.model.baseline import WorldState
    from reconcile.model.plan import Action, Plan
    from reconcile.model.snapshot import Digest, File, Snapshot


class FileState(Struct, frozen=True, gc=False):
    """A file in a listing."""

    size: int
    mtime_ns: int
    digest: Digest | None


Listing: TypeAlias = dict[Place, FileState]
"""Every file of every conversation on both sides, by place."""


_REMOVALS = (Kind.REMOVE_STALE, Kind.REMOVE)


class ContradictionError(ValueError):
    """A precondition of an action doesn't hold on the listing."""


def listing_of(*snapshots: Snapshot) -> Listing:
    """Return the listing of two scans."""
    return {
        Place(copy.side, joined(copy.path, file.name)): FileState(file.size, file.mtime_ns, file.digest)
        for snapshot in snapshots
        for copy in snapshot.copies
        for file in copy.files
    }


def simulate(plan: Plan, before: Listing) -> Listing:
    """Return the listing after the whole plan.

    Raises:
        ContradictionError: a precondition of a step contradicts the steps before it.
    """
    tree = _Tree(before)
    for action in plan.actions:
        _check(action, tree)
        _replay(action, tree)
    return tree.listing()


def surprises(plan: Plan, undone: Collection[str], before: WorldState, after: WorldState) -> frozenset[str]:
    """Return the conversations that differ from the result of the plan: another program has written meanwhile.

    ``undone`` are the ids of actions that were not carried out. A side that no action concerns, and that was not
    scanned again, can't differ.
    """
    done = [action for action in plan.actions if action.id not in undone]
    written = {action.target.side for action in done}
    pairs = [(before.store, after.store), (before.workspace, after.workspace)]
    pairs = [(was, now) for was, now in pairs if was is not now or was.side in written]
    expected = _replayed(done, listing_of(*(was for was, _ in pairs)))
    different: set[str] = set()
    for _, now in pairs:
        left = expected[now.side]
        for copy in now.copies:
            path = copy.path
            for file in copy.files:
                at = joined(path, file.name)
                state = left.pop(at, None)
                if state is None or not _is_state(file, state):
                    different.add(copy.conversation)
    if places := [Place(side, path) for side, left in expected.items() for path in left]:
        snapshots = (snapshot for pair in pairs for snapshot in pair)
        owners = {(copy.side, copy.path): copy.conversation for snapshot in snapshots for copy in snapshot.copies}
        owners |= {(action.target.side, action.target.path): action.conversation for action in done}
        different.update(_owner(place, owners) for place in places)
    return frozenset(different - {""})


def _replayed(actions: Sequence[Action], before: Listing) -> dict[Side, dict[str, FileState]]:
    """Return the listing of each side after these actions, by path."""
    # A tree costs twice as much; only an action on a whole directory needs it.
    tree = _Tree(before) if any(map(_is_of_directory, actions)) else _Files(before)
    for action in actions:
        _replay(action, tree)
    if isinstance(tree, _Files):
        return tree.sides
    expected: dict[Side, dict[str, FileState]] = {side: {} for side in Side}
    for place, state in tree.listing().items():
        expected[place.side][place.path] = state
    return expected


def _is_state(file: File, state: FileState) -> bool:
    return file.size == state.size and file.mtime_ns == state.mtime_ns and file.digest == state.digest


def _owner(place: Place, owners: Mapping[tuple[Side, str], str]) -> str:
    """Return the conversation whose directory contains a file, which may be further up; empty for none."""
    path = place.path
    while path and (place.side, path) not in owners:
        path = path.rpartition("/")[0]
    return owners.get((place.side, path), "")


_Directory: TypeAlias = "dict[str, FileState | _Directory]"


class _Tree:
    """Both sides as trees of directories, so that a step costs only what it touches. There are no empty directories."""

    def __init__(self, listing: Listing) -> None:
        self._sides: dict[Side, _Directory] = {side: {} for side in Side}
        for place, state in listing.items():
            self.put(place, state)

    def find(self, place: Place) -> FileState | _Directory | None:
        entry: FileState | _Directory | None = self._sides[place.side]
        for name in place.path.split("/"):
            entry = entry.get(name) if isinstance(entry, dict) else None
        return entry

    def put(self, place: Place, what: FileState | _Directory) -> None:
        directory, name = self._way(place)[-1]
        directory[name] = what

    def take(self, place: Place) -> FileState | _Directory | None:
        """Remove a file or a directory, and the directories that become empty."""
        *way, (last, wanted) = self._way(place)
        taken = last.pop(wanted, None)
        for directory, name in reversed(way):
            if not directory[name]:
                del directory[name]
        return taken

    def _way(self, place: Place) -> list[tuple[_Directory, str]]:
        """Return every directory on the way to a place, created if need be, with the name in it that leads on."""
        *above, last = place.path.split("/")
        directory = self._sides[place.side]
        way = []
        for name in above:
            way.append((directory, name))
            inner = directory.setdefault(name, {})
            assert isinstance(inner, dict)  # noqa: S101 - a file has nothing below it
            directory = inner
        return [*way, (directory, last)]

    def listing(self) -> Listing:
        files: Listing = {}
        stack = [(Place(side, ""), directory) for side, directory in self._sides.items()]
        while stack:
            above, directory = stack.pop()
            for name, what in directory.items():
                place = Place(above.side, f"{above.path}/{name}".lstrip("/"))
                if isinstance(what, dict):
                    stack.append((place, what))
                else:
                    files[place] = what
        return files


class _Files:
    """The files of both sides by path, for actions that neither move nor remove a directory."""

    def __init__(self, listing: Listing) -> None:
        self.sides: dict[Side, dict[str, FileState]] = {side: {} for side in Side}
        for place, state in listing.items():
            self.sides[place.side][place.path] = state

    def put(self, place: Place, what: FileState) -> None:
        self.sides[place.side][place.path] = what

    def take(self, place: Place) -> FileState | None:
        return self.sides[place.side].pop(place.path, None)


def _check(action: Action, tree: _Tree) -> None:
    for expect in action.expect:
        present = tree.find(expect.place)
        state = FileState(expect.size, expect.mtime_ns, expect.digest or None)
        if present != (None if expect.absent else state):
            message = f"action {action.id} expects {expect}, found {present}"
            raise ContradictionError(message)


def _is_of_directory(action: Action) -> bool:
    """Tell whether an action moves or removes a directory."""
    return action.kind in MOVES or (action.kind in _REMOVALS and action.unit == WHOLE)


def _replay(action: Action, tree: _Tree | _Files) -> None:
    if action.kind in MOVES:
        assert action.source is not None  # noqa: S101 - a move has one
        assert isinstance(tree, _Tree)  # noqa: S101 - see `_replayed`
        moved = tree.take(action.source)
        if moved is None:
            message = f"action {action.id} moves {action.source}, which does not exist"
            raise ContradictionError(message)
        tree.put(action.target, moved)
    elif action.kind is Kind.AGE:
        assert action.mtime_ns is not None  # noqa: S101 - it is what ageing is about
        for expect in action.expect:
            tree.put(expect.place, FileState(expect.size, action.mtime_ns, expect.digest))
    elif action.kind in _REMOVALS and action.unit == WHOLE:
        tree.take(action.target)
    else:
        for write in action.writes:
            tree.put(write.target, FileState(write.size, write.mtime_ns, write.digest))
        for place in action.removes:
            tree.take(place)
