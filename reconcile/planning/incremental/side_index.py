"""The index of one side's copies: built from a scan or a saved index, and updated by each rescan."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconcile.model.names import CHILDREN
from reconcile.model.snapshot import ARCHIVE, TRASH, Snapshot, Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from reconcile.model.snapshot import Copy, Foreign, Side

    Build = Callable[[str], Copy | None]
    """Builds the copy at a path from the index's rows; None if a rescan has to read it first."""

_BELOW = f"/{CHILDREN}/"


class SideIndex:
    """The copies of one side by path and by conversation; an update costs no more than what it changes.

    Foreign entries stay as they were in the full scan: only another full scan may change them.
    """

    def __init__(self, side: Side, identity: str, conversations: Mapping[str, str], build: Build) -> None:
        """Create the index; ``conversations`` maps the path of each copy to its conversation.

        ``build`` builds a copy when it is needed for the first time.
        """
        self.side, self.exists, self.identity = side, True, identity
        self._conversations = dict(conversations)
        self._copies: dict[str, Copy] = {}
        self._build = build
        self._foreign: dict[str, list[Foreign]] = {}

    @classmethod
    def of_snapshot(cls, snapshot: Snapshot) -> SideIndex:
        """Return the index of a full scan of the side."""
        copies = {copy.path: without_events(copy) for copy in snapshot.copies}
        known = cls(
            snapshot.side,
            snapshot.identity,
            {path: copy.conversation for path, copy in copies.items()},
            copies.get,
        )
        known.exists, known._copies = snapshot.exists, copies
        known.set_foreign(snapshot.foreign)
        known.build_lookups()
        return known

    def release(self, build: Build, kept: Collection[str]) -> None:
        """Free the copies that ``build`` builds again, all but those at the paths ``kept``."""
        self._copies = {path: self.copy(path) for path in kept}
        self._build = build

    def build_lookups(self) -> None:
        """Build the lookup tables now, which the first plan of a part would build otherwise."""
        self.conversations(), self.inside("")

    def set_foreign(self, entries: Iterable[Foreign]) -> None:
        """Add foreign entries: files and directories that belong to no conversation."""
        for foreign in entries:
            self._foreign.setdefault(self._owner(foreign.path), []).append(foreign)

    def __contains__(self, conversation: object) -> bool:
        """Tell whether the side has a copy of a conversation."""
        return conversation in self._of

    @property
    def paths(self) -> Mapping[str, str]:
        """The conversation of each copy, by path."""
        return self._conversations

    @property
    def live_paths(self) -> Iterator[str]:
        """The paths of the copies that are neither archived nor in the trash."""
        return (path for path in self._conversations if not path.startswith((f"{ARCHIVE}/", f"{TRASH}/")))

    def copy(self, path: str) -> Copy:
        """Return the copy at a path; it exists, and was scanned."""
        copy = self._find(path)
        assert copy is not None  # noqa: S101 - see above
        return copy

    def loaded_paths(self) -> Collection[str]:
        """Return the paths of the copies that were built or updated in this process."""
        return self._copies.keys()

    def copies(self) -> Iterator[Copy]:
        """Return every copy."""
        return map(self.copy, self._conversations)

    def conversations(self) -> Collection[str]:
        """Return the conversations that have a copy on this side."""
        return self._of.keys()

    def of(self, conversation: str) -> list[Copy]:
        """Return the copies of a conversation, in the order of their paths."""
        paths = self._of.get(conversation, ())
        if len(paths) == 1:
            (path,) = paths
            return [self._copies.get(path) or self.copy(path)]
        return [self.copy(path) for path in sorted(paths)]

    def paths_of(self, conversation: str) -> tuple[str, ...]:
        """Return the paths of the copies of a conversation."""
        return self._of.get(conversation, ())

    def is_outside_trash(self, conversation: str) -> bool:
        """Tell whether a conversation has a copy outside of the trash."""
        return any(f"/{TRASH}/" not in f"/{path}/" for path in self._of.get(conversation, ()))

    def inside(self, path: str) -> AbstractSet[str]:
        """Return the paths of the copies directly inside a copy's directory; an empty path: those inside no other copy.

        The returned set is live: `put` and `drop` change it.
        """
        return self._inside.get(path, frozenset())

    def within(self, path: str) -> list[str]:
        """Return the path, if a copy is there, and the paths of all copies inside it, at any depth."""
        paths = []
        stack = [path]
        while stack:
            inner = stack.pop()
            if inner in self._conversations:
                paths.append(inner)
            stack += self._inside.get(inner, ())
        return paths

    def foreign(self, path: str) -> tuple[Foreign, ...]:
        """Return the foreign entries in a copy's directory; an empty path: those in no copy's directory."""
        return tuple(self._foreign.get(path, ()))

    def all_foreign(self) -> Iterator[Foreign]:
        """Return all foreign entries."""
        return (entry for entries in self._foreign.values() for entry in entries)

    def put(self, copy: Copy) -> Copy | None:
        """Add or replace a copy, without its events, and return the one that was at its path."""
        copy = without_events(copy)
        before = self.drop(copy.path)
        self._conversations[copy.path] = copy.conversation
        self._copies[copy.path] = copy
        self._of[copy.conversation] = (*self._of.get(copy.conversation, ()), copy.path)
        self._inside.setdefault(_enclosing(copy.path), set()).add(copy.path)
        return before

    def drop(self, path: str) -> Copy | None:
        """Remove the copy at a path, and return it; copies inside it stay, and are dropped separately."""
        if path not in self._conversations:
            return None
        copy, conversation = self._find(path), self._conversations[path]
        others = tuple(other for other in self._of.pop(conversation) if other != path)
        if others:
            self._of[conversation] = others
        self._inside[_enclosing(path)].discard(path)
        del self._conversations[path]
        self._copies.pop(path, None)
        return copy

    def _find(self, path: str) -> Copy | None:
        copy = self._copies.get(path) or self._build(path)
        if copy is not None:
            self._copies[path] = copy
        return copy

    @cached_property
    def _of(self) -> dict[str, tuple[str, ...]]:
        paths: dict[str, tuple[str, ...]] = {}
        for path, conversation in self._conversations.items():
            paths[conversation] = (*paths[conversation], path) if conversation in paths else (path,)
        return paths

    @cached_property
    def _inside(self) -> dict[str, set[str]]:
        inside = {"": {path for path in self._conversations if _BELOW not in path}}
        for path in self._conversations.keys() - inside[""]:
            inside.setdefault(_enclosing(path), set()).add(path)
        return inside

    def part(self, conversations: Iterable[str], order: Callable[[str], tuple[int, str]]) -> Snapshot:
        """Return a snapshot of the side that holds only these conversations."""
        copies = [copy for conversation in sorted(conversations, key=order) for copy in self.of(conversation)]
        foreign = [entry for copy in copies for entry in self.foreign(copy.path)]
        return Snapshot(
            self.side,
            exists=self.exists,
            identity=self.identity,
            copies=tuple(copies),
            foreign=tuple(sorted(foreign, key=lambda entry: entry.path)),
        )

    def _owner(self, path: str) -> str:
        while path and path not in self._conversations:
            path = path.rpartition("/")[0]
        return path


def _enclosing(path: str) -> str:
    """Return the path of the copy that contains another one; empty: none does."""
    return path.rpartition(_BELOW)[0]


def without_events(copy: Copy) -> Copy:
    """Return a copy without the events of its stream, as the index holds it; events are read when they are needed."""
    if isinstance(copy.stream, Stream) and copy.stream.events is not None:
        return replace(copy, stream=Stream(copy.stream.count, copy.stream.last))
    return copy
