"""Which of two versions is older if no run knows: the order of the commits of a repository decides.

`doubts_of` and `split_archives` list the versions in question, `Commits` answers. The order is that of descent, never
of times. A content may occur more than once (a revert, a cherry-pick, a rebase), and one commit may support an order
that another contradicts.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from reconcile.planning.rules.content import doubtful_case
from reconcile.planning.rules.views import Lead, views_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from reconcile.model.baseline import Baseline
    from reconcile.model.snapshot import Copy, Digest, Snapshot
    from reconcile.model.units import Rules, Unit
    from reconcile.planning.rules.views import View


class Doubt(Struct, frozen=True):
    """Two valid versions of one unit.

    ``past`` are those that were in sync before, oldest first. ``at_rest``: the workspace has the version of the
    baseline. ``edited``: the version of the baseline, if the workspace has edited it.
    """

    store: Unit
    workspace: Unit
    past: tuple[Digest, ...]
    at_rest: bool = False
    edited: Digest | None = None

    @property
    def key(self) -> tuple[str, str]:
        """The conversation and the unit."""
        return self.store.copy.conversation, self.store.name


def doubts_of(store: Snapshot, workspace: Snapshot, baseline: Baseline, rules: Rules) -> tuple[Doubt, ...]:
    """Return every unit that differs between the sides, if no run knows which version is older.

    Records with fixed places have none: the rules of their programs tell which version has more.
    """
    if rules.format.places is not None:
        return ()
    doubts = []
    for view in views_of(store, workspace, baseline, rules, _differing(store, workspace)).values():
        for name in view.store.units:
            case = doubtful_case(view, name, baseline)
            if case is not None:
                past = baseline.history.get((view.id, name), ())
                edited = view.agreed.units[name] if view.agreed is not None and case in (11, 15) else None
                doubts.append(Doubt(view.store.units[name], view.workspace.units[name], past, case == 13, edited))
    return tuple(doubts)


def split_archives(store: Snapshot, workspace: Snapshot, baseline: Baseline, rules: Rules) -> tuple[View, ...]:
    """Return the conversations that are archived on one side only, if nothing is recorded about that."""
    if rules.format.places is not None:
        return ()
    here = {(copy.conversation, copy.archived) for copy in workspace.copies}
    apart = {copy.conversation for copy in store.copies if (copy.conversation, not copy.archived) in here}
    views = views_of(store, workspace, baseline, rules, apart).values()
    return tuple(view for view in views if view.has_split_archive and not view.local and view.lead is not Lead.NEITHER)


def _differing(store: Snapshot, workspace: Snapshot) -> set[str]:
    """Return the conversations with copies that differ between the sides."""
    here: dict[str, list[Copy]] = {}
    for copy in workspace.copies:
        here.setdefault(copy.conversation, []).append(copy)
    return {
        copy.conversation
        for copy in store.copies
        for other in here.get(copy.conversation, ())
        if dict(_contents(copy)) != dict(_contents(other))
    }


def _contents(copy: Copy) -> Iterator[tuple[str, Digest | None]]:
    return ((file.name, file.digest) for file in copy.files)


FileOf: TypeAlias = tuple[str, str]


"""A conversation and the name of one of its files, wherever its directory is and whatever its name."""


PARTITION = ""
"""The file name that stands for the directory's partition; its contents are the values of `Partition`."""


class Order(Enum):
    """How a content relates to another one."""

    OLDER = auto()
    NEWER = auto()
    EITHER = auto()
    """Commits support both: it was replaced by the other one, and restored."""


class Change(Struct, frozen=True):
    """The contents of a file that a commit added and removed, compared with one of its parents."""

    commit: str
    file: FileOf
    came: frozenset[str]
    went: frozenset[str]


class Commits:
    """The commits that changed the files of a directory, and their descent."""

    def __init__(
        self, parents: Mapping[str, tuple[str, ...]], changes: Iterable[Change], head: Iterable[str] = ()
    ) -> None:
        """Index the ``parents`` of each commit, children first, and ``head``: those that HEAD descends from."""
        self._above: dict[str, int] = {}
        """For each commit the set of its ancestors, as bits."""
        self._bits = {commit: 1 << index for index, commit in enumerate(parents)}
        for commit in reversed(tuple(parents)):
            above = 0
            for parent in parents[commit]:
                above |= self._bits[parent] | self._above[parent]
            self._above[commit] = above
        self._came: dict[tuple[FileOf, str], set[str]] = {}
        self._went: dict[tuple[FileOf, str], set[str]] = {}
        for change in changes:
            for content in change.came:
                self._came.setdefault((change.file, content), set()).add(change.commit)
            for content in change.went:
                self._went.setdefault((change.file, content), set()).add(change.commit)
        known = [commit for commit in head if commit in self._bits]
        self._head = self._as_bits(known)
        for commit in known:
            self._head |= self._above[commit]

    def contents(self, file: FileOf) -> frozenset[str]:
        """Return every content that a file has had."""
        return frozenset(content for known, content in self._came if known == file)

    def order(self, file: FileOf, content: str, other: str, *, at_head: bool) -> Order | None:
        """Tell whether a content is older or newer than another one; None if the commits don't tell.

        ``at_head``: it is the content of HEAD. A content among HEAD's ancestors was replaced on the way to HEAD. A
        content that only other commits have is newer if it replaced HEAD's version. If that tells nothing, or for a
        content that HEAD doesn't have, each commit that added the one counts against each that added the other.
        """
        added_this, added_other = self._came.get((file, content), set()), self._came.get((file, other), set())
        if at_head:
            newer = any(self._bits[commit] & self._head for commit in added_other)
            older = self.replaced_at_head(file, content, other)
            if newer or older:
                return _one_of(older=older, newer=newer)
        return _one_of(
            older=self._any_follows(added_other, added_this), newer=self._any_follows(added_this, added_other)
        )

    def replaced_at_head(self, file: FileOf, content: str, other: str) -> bool:
        """Tell whether the other content was added after HEAD's content, by a commit that HEAD doesn't descend from."""
        came = {commit for commit in self._came.get((file, other), ()) if not self._bits[commit] & self._head}
        return self._any_follows(came, self.since(file, content))

    def since(self, file: FileOf, content: str) -> set[str]:
        """Return the commits since which HEAD has had a content: those that no later one on the way undid."""
        came = {commit for commit in self._came.get((file, content), ()) if self._bits[commit] & self._head}
        went = {commit for commit in self._went.get((file, content), ()) if self._bits[commit] & self._head}
        return {commit for commit in came if not self._any_follows(went, {commit})}

    def _any_follows(self, later: set[str], earlier: set[str]) -> bool:
        """Tell whether one of these commits descends from one of the others."""
        bits = self._as_bits(earlier)
        return any(self._above[commit] & bits for commit in later)

    def _as_bits(self, commits: Iterable[str]) -> int:
        bits = 0
        for commit in commits:
            bits |= self._bits[commit]
        return bits


def _one_of(*, older: bool, newer: bool) -> Order | None:
    if older and newer:
        return Order.EITHER
    if not (older or newer):
        return None
    return Order.OLDER if older else Order.NEWER
