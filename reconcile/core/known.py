"""One side as the looks at it have found it: what is looked at again takes the place of what was there before."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reconcile.core.model import CHILDREN, Partition, Snapshot, Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from reconcile.core.model import Copy, Foreign

_BELOW = f"/{CHILDREN}/"


class KnownSide:
    """The copies by path and by conversation; a change costs what it changes, whatever else the side holds.

    What isn't a conversation is as it was in the snapshot: only a look at the whole side may change that.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        """Take over what a look at the whole side has found."""
        self.side, self.exists, self.identity = snapshot.side, snapshot.exists, snapshot.identity
        self.copies: dict[str, Copy] = {}
        self._of: dict[str, dict[str, Copy]] = {}
        self._inside: dict[str, set[str]] = {}
        self._foreign: dict[str, list[Foreign]] = {}
        for copy in snapshot.copies:
            self.put(copy)
        for foreign in snapshot.foreign:
            self._foreign.setdefault(self._owner(foreign.path), []).append(foreign)

    def __contains__(self, conversation: object) -> bool:
        """Tell whether the side has any directory of a conversation."""
        return conversation in self._of

    def conversations(self) -> Collection[str]:
        """Return those that have a directory here."""
        return self._of.keys()

    def of(self, conversation: str) -> list[Copy]:
        """Return the copies of a conversation, in the order of their paths."""
        return [copy for _, copy in sorted(self._of.get(conversation, {}).items())]

    def has_whole(self, conversation: str) -> bool:
        """Tell whether a directory of it is there outside of the trash."""
        return any(copy.partition is not Partition.TRASH for copy in self._of.get(conversation, {}).values())

    def inside(self, path: str) -> frozenset[str]:
        """Return the copies right inside a copy's directory, or of those inside none; an empty path is the side's."""
        return frozenset(self._inside.get(path, ()))

    def within(self, path: str) -> list[str]:
        """Return the path, where a copy is there, and all copies inside it, at any depth."""
        found = []
        stack = [path]
        while stack:
            each = stack.pop()
            if each in self.copies:
                found.append(each)
            stack += self._inside.get(each, ())
        return found

    def foreign(self, path: str) -> tuple[Foreign, ...]:
        """Return what lies in a copy's directory and is nobody's; an empty path is what lies in none."""
        return tuple(self._foreign.get(path, ()))

    def put(self, copy: Copy) -> Copy | None:
        """Know a copy, without its events, and return the one that was at its path."""
        if isinstance(copy.stream, Stream) and copy.stream.events is not None:
            copy = replace(copy, stream=replace(copy.stream, events=None))
        before = self.drop(copy.path)
        self.copies[copy.path] = copy
        self._of.setdefault(copy.conversation, {})[copy.path] = copy
        self._inside.setdefault(_enclosing(copy.path), set()).add(copy.path)
        return before

    def drop(self, path: str) -> Copy | None:
        """Know no copy at a path any more; those inside it are dropped one by one."""
        copy = self.copies.pop(path, None)
        if copy is not None:
            there = self._of[copy.conversation]
            del there[path]
            if not there:
                del self._of[copy.conversation]
            self._inside[_enclosing(path)].discard(path)
        return copy

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
        while path and path not in self.copies:
            path = path.rpartition("/")[0]
        return path


def _enclosing(path: str) -> str:
    """Return the path of the copy that another one lies in, empty for none."""
    return path.rpartition(_BELOW)[0]
