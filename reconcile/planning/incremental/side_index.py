"""One side as the looks at it have found it: what is looked at again takes the place of what was there before."""

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
    """Makes the copy that is known to be at a path; None where it has to be looked at before it is asked for."""

_BELOW = f"/{CHILDREN}/"


class KnownSide:
    """The copies by path and by conversation; a change costs what it changes, whatever else the side holds.

    What isn't a conversation is as it was in the snapshot: only a look at the whole side may change that.
    """

    def __init__(self, side: Side, identity: str, conversations: Mapping[str, str], build: Build) -> None:
        """Know which conversation has a copy at which path; a copy is built when it is asked for."""
        self.side, self.exists, self.identity = side, True, identity
        self._conversations = dict(conversations)
        self._copies: dict[str, Copy] = {}
        self._build = build
        self._foreign: dict[str, list[Foreign]] = {}

    @classmethod
    def seen(cls, snapshot: Snapshot) -> KnownSide:
        """Take over what a look at the whole side has found."""
        copies = {copy.path: without_events(copy) for copy in snapshot.copies}
        known = cls(
            snapshot.side,
            snapshot.identity,
            {path: copy.conversation for path, copy in copies.items()},
            copies.get,
        )
        known.exists, known._copies = snapshot.exists, copies
        known.know_foreign(snapshot.foreign)
        known.arrange()
        return known

    def arrange(self) -> None:
        """Do now what a pass about a part would have to do."""
        self.conversations(), self.inside("")

    def know_foreign(self, entries: Iterable[Foreign]) -> None:
        """Know what is nobody's."""
        for foreign in entries:
            self._foreign.setdefault(self._owner(foreign.path), []).append(foreign)

    def __contains__(self, conversation: object) -> bool:
        """Tell whether the side has any directory of a conversation."""
        return conversation in self._of

    @property
    def paths(self) -> Mapping[str, str]:
        """The path of each copy, with its conversation."""
        return self._conversations

    @property
    def live_paths(self) -> Iterator[str]:
        """The paths of the copies that are in no partition."""
        return (path for path in self._conversations if not path.startswith((f"{ARCHIVE}/", f"{TRASH}/")))

    def copy(self, path: str) -> Copy:
        """Return the copy at a path; it is there, and has been looked at."""
        found = self._known(path)
        assert found is not None  # noqa: S101 - see above
        return found

    def looked_at(self) -> Collection[str]:
        """Return the paths of the copies that somebody has asked for, or put here."""
        return self._copies.keys()

    def copies(self) -> Iterator[Copy]:
        """Return every copy."""
        return map(self.copy, self._conversations)

    def conversations(self) -> Collection[str]:
        """Return those that have a directory here."""
        return self._of.keys()

    def of(self, conversation: str) -> list[Copy]:
        """Return the copies of a conversation, in the order of their paths."""
        return [self.copy(path) for path in sorted(self._of.get(conversation, ()))]

    def paths_of(self, conversation: str) -> tuple[str, ...]:
        """Return the paths of the copies of a conversation."""
        return self._of.get(conversation, ())

    def has_whole(self, conversation: str) -> bool:
        """Tell whether a directory of it is there outside of the trash."""
        return any(f"/{TRASH}/" not in f"/{path}/" for path in self._of.get(conversation, ()))

    def inside(self, path: str) -> AbstractSet[str]:
        """Return the copies right inside a copy's directory, or of those inside none; an empty path is the side's.

        As they are just now: it changes with what is put and dropped.
        """
        return self._inside.get(path, frozenset())

    def within(self, path: str) -> list[str]:
        """Return the path, where a copy is there, and all copies inside it, at any depth."""
        found = []
        stack = [path]
        while stack:
            each = stack.pop()
            if each in self._conversations:
                found.append(each)
            stack += self._inside.get(each, ())
        return found

    def foreign(self, path: str) -> tuple[Foreign, ...]:
        """Return what lies in a copy's directory and is nobody's; an empty path is what lies in none."""
        return tuple(self._foreign.get(path, ()))

    def all_foreign(self) -> Iterator[Foreign]:
        """Return all that is nobody's."""
        return (each for entries in self._foreign.values() for each in entries)

    def put(self, copy: Copy) -> Copy | None:
        """Know a copy, without its events, and return the one that was at its path."""
        copy = without_events(copy)
        before = self.drop(copy.path)
        self._conversations[copy.path] = copy.conversation
        self._copies[copy.path] = copy
        self._of[copy.conversation] = (*self._of.get(copy.conversation, ()), copy.path)
        self._inside.setdefault(_enclosing(copy.path), set()).add(copy.path)
        return before

    def drop(self, path: str) -> Copy | None:
        """Know no copy at a path any more; those inside it are dropped one by one."""
        if path not in self._conversations:
            return None
        copy, conversation = self._known(path), self._conversations[path]
        there = tuple(each for each in self._of.pop(conversation) if each != path)
        if there:
            self._of[conversation] = there
        self._inside[_enclosing(path)].discard(path)
        del self._conversations[path]
        self._copies.pop(path, None)
        return copy

    def _known(self, path: str) -> Copy | None:
        found = self._copies.get(path) or self._build(path)
        if found is not None:
            self._copies[path] = found
        return found

    @cached_property
    def _of(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for path, conversation in self._conversations.items():
            found[conversation] = (*found[conversation], path) if conversation in found else (path,)
        return found

    @cached_property
    def _inside(self) -> dict[str, set[str]]:
        found = {"": {path for path in self._conversations if _BELOW not in path}}
        for path in self._conversations.keys() - found[""]:
            found.setdefault(_enclosing(path), set()).add(path)
        return found

    def part(self, conversations: Iterable[str], order: Callable[[str], tuple[int, str]]) -> Snapshot:
        """Return the side as if it held these conversations alone."""
        copies = [copy for conversation in sorted(conversations, key=order) for copy in self.of(conversation)]
        foreign = [each for copy in copies for each in self.foreign(copy.path)]
        return Snapshot(
            self.side,
            exists=self.exists,
            identity=self.identity,
            copies=tuple(copies),
            foreign=tuple(sorted(foreign, key=lambda each: each.path)),
        )

    def _owner(self, path: str) -> str:
        while path and path not in self._conversations:
            path = path.rpartition("/")[0]
        return path


def _enclosing(path: str) -> str:
    """Return the path of the copy that another one lies in, empty for none."""
    return path.rpartition(_BELOW)[0]


def without_events(copy: Copy) -> Copy:
    """Return a copy as it is known: of its stream, the events are read where they are needed."""
    if isinstance(copy.stream, Stream) and copy.stream.events is not None:
        return replace(copy, stream=Stream(copy.stream.count, copy.stream.last))
    return copy
