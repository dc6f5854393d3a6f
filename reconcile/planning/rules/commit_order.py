"""Which of two versions is the older one, where no run knows: the order of the commits of a repository decides.

`doubts_of` and `split_archives` list the versions in question, `Commits` answers. The order goes by who descends from
whom, never by a time. A content may occur more than once (a revert, a cherry-pick, a rebase), and one commit may
support an order and another one contradict it.
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


def doubts_of(store: Snapshot, workspace: Snapshot, baseline: Baseline, rules: Rules) -> tuple[Doubt, ...]:
    """Return every unit of which the two sides differ, and no run knows which of the two is older.

    Of records with fixed places there are none: their programs' own rules tell which has more.
    """
    if rules.format.places is not None:
        return ()
    differ = _differing(store, workspace)
    if not differ:
        return ()
    found = []
    for view in views_of(store, workspace, baseline, rules, differ).values():
        for name in view.store.units:
            case = doubtful_case(view, name, baseline)
            if case is not None:
                past = baseline.history.get((view.id, name), ())
                found.append(Doubt(view.store.units[name], view.workspace.units[name], past, at_rest=case == 13))
    return tuple(found)


def split_archives(store: Snapshot, workspace: Snapshot, baseline: Baseline, rules: Rules) -> tuple[View, ...]:
    """Return the conversations that one side has archived and the other live, where nothing is remembered of that."""
    theirs: dict[str, set[bool]] = {}
    for copy in workspace.copies:
        theirs.setdefault(copy.conversation, set()).add(copy.archived)
    apart = {copy.conversation for copy in store.copies if theirs.get(copy.conversation, set()) - {copy.archived}}
    if rules.format.places is not None or not apart:
        return ()
    views = views_of(store, workspace, baseline, rules, apart).values()
    return tuple(view for view in views if view.has_split_archive and not view.local and view.lead is not Lead.NEITHER)


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


FileOf: TypeAlias = tuple[str, str]


"""A conversation and the name of one of its files, wherever its directory lies and whatever that is called."""


PARTITION = ""
"""The name that stands for where the directory lies, whose contents are those of `Partition`."""


class Order(Enum):
    """How a content relates to another one."""

    OLDER = auto()
    NEWER = auto()
    EITHER = auto()
    """Commits speak for both: it was replaced by the other one, and came again."""


class Change(Struct, frozen=True):
    """What a commit has changed of a file, compared with one of its parents: contents that came, and that went."""

    commit: str
    file: FileOf
    came: frozenset[str]
    went: frozenset[str]


class Commits:
    """The commits that changed the files of a directory, and who descends from whom among them."""

    def __init__(
        self, parents: Mapping[str, tuple[str, ...]], changes: Iterable[Change], head: Iterable[str] = ()
    ) -> None:
        """Take the ``parents`` of each commit, children first, and ``head``: those of them that HEAD descends from."""
        self._above: dict[str, int] = {}
        """For each commit a set of those that it descends from, as bits."""
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
        known = [each for each in head if each in self._bits]
        self._head = self._as_bits(known)
        for commit in known:
            self._head |= self._above[commit]

    def contents(self, file: FileOf) -> frozenset[str]:
        """Return every content that a file has had."""
        return frozenset(content for found, content in self._came if found == file)

    def order(self, file: FileOf, content: str, other: str, *, at_head: bool) -> Order | None:
        """Tell whether a content is older or newer than another one; None: the commits don't say.

        ``at_head``: it is the content that HEAD has. Then what HEAD descends from was replaced on the way to it, and
        what only others descend from is newer if it replaced the version that HEAD has. Where that says nothing, and
        for a content that HEAD doesn't have, each commit that brought the one counts against each that brought the
        other.
        """
        ours, theirs = self._came.get((file, content), set()), self._came.get((file, other), set())
        if at_head:
            newer = any(self._bits[commit] & self._head for commit in theirs)
            older = self.replaced_at_head(file, content, other)
            if newer or older:
                return _one_of(older=older, newer=newer)
        return _one_of(older=self._any_follows(theirs, ours), newer=self._any_follows(ours, theirs))

    def replaced_at_head(self, file: FileOf, content: str, other: str) -> bool:
        """Tell whether another content came in a commit that descends from the one since which HEAD has this content,
        and that HEAD doesn't descend from.
        """
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
