"""Which of two contents in doubt is the older one, by the history of the repository that the workspace lies in.

git is only run where there is a doubt, and then for all doubts of a look together. Its whole history is only asked for
where a file of the workspace is a committed one. There is no order where git has no answer (`reconcile.fs.git`),
where a file was never committed, where git keeps other bytes than the file has (a filter, line ends), and where commits
speak for both orders.

The store's version was never committed where somebody has gone on with it. It is newer than all that were in sync
before: what is older than one of those is older than the store's.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.fs.dirfd import Directory
from reconcile.fs.files import read_files
from reconcile.fs.git import Git, GitError
from reconcile.fs.git_state import checkout_top
from reconcile.fs.hashing import digest
from reconcile.model.baseline import CommittedPlace, OutdatedContent
from reconcile.model.names import CHILDREN
from reconcile.model.snapshot import ARCHIVE, TRASH, Partition, Side, is_archived, joined
from reconcile.planning.rules.commit_order import PARTITION, Change, Commits, Order

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from reconcile.index.git_history import KeptHistory
    from reconcile.model.format import Format
    from reconcile.model.snapshot import Digest, File
    from reconcile.model.units import Unit
    from reconcile.planning.rules.commit_order import Doubt, FileOf
    from reconcile.planning.rules.views import View

LARGE = 64 << 20
"""Bytes of a file from which on git isn't asked about it."""
_ALGORITHMS = {40: "sha1", 64: "sha256"}
"""How a repository names its objects, by the length of the names."""
_PARTITIONS = {ARCHIVE: Partition.ARCHIVE, TRASH: Partition.TRASH}


def outdated_of(
    doubts: Sequence[Doubt], conversations: Mapping[Side, str], fmt: Format, kept: KeptHistory
) -> dict[tuple[str, str], OutdatedContent]:
    """Return the older sides of those that git knows, by conversation and unit.

    ``conversations`` are the directories of both sides.
    """
    if not doubts:
        return {}
    try:
        top = checkout_top(conversations[Side.WORKSPACE])
        return {} if top is None else _Witness(top, conversations, fmt, kept).hear(doubts)
    except (GitError, OSError):
        return {}


def committed_of(
    split: Sequence[View], conversations: str, fmt: Format, kept: KeptHistory
) -> dict[str, CommittedPlace]:
    """Return what git says of directories that the store has in another partition, of those that HEAD has there.

    HEAD has a directory where it has its metadata. ``conversations`` is the workspace's directory of them.
    """
    if not split:
        return {}
    places = {view.id: view.workspace.main.path for view in split if view.workspace.main is not None}
    try:
        top = checkout_top(conversations)
        if top is None:
            return {}
        git = Git(top)
        below = os.path.relpath(os.path.realpath(conversations), top)
        paths = {key: os.path.normpath(os.path.join(below, place, fmt.metadata_file)) for key, place in places.items()}
        asked = [key for key, path in paths.items() if "\n" not in path]
        found = dict(zip(asked, git.names([f"HEAD:{paths[key]}" for key in asked]), strict=True))
        if not any(found.values()):
            return {}
        commits = history_of(git, below, fmt, kept)
    except (GitError, OSError):
        return {}
    older = {Order.OLDER: Side.WORKSPACE, Order.NEWER: Side.STORE}
    committed = {}
    for key in (each for each in asked if found[each]):
        here, there = Partition.LIVE, Partition.ARCHIVE
        if is_archived(places[key]):
            here, there = there, here
        order = commits.order((key, PARTITION), here, there, at_head=True)
        since = "+".join(sorted(commits.since((key, PARTITION), here)))
        committed[key] = CommittedPlace(places[key], older.get(order) if order is not None else None, since)
    return committed


class _Pair(Struct, frozen=True):
    """A file of both sides, with the names that git has for the contents; ``at_head``: HEAD has the workspace's."""

    workspace: str
    store: str
    at_head: bool


class _Witness:
    """The history of one repository, for the doubts of one look."""

    def __init__(self, top: str, conversations: Mapping[Side, str], fmt: Format, kept: KeptHistory) -> None:
        self._git = Git(top)
        self._conversations = conversations
        self._below = os.path.relpath(os.path.realpath(conversations[Side.WORKSPACE]), top)
        self._format = fmt
        self._kept = kept
        self._digests: dict[str, Digest] = {}

    def hear(self, doubts: Sequence[Doubt]) -> dict[tuple[str, str], OutdatedContent]:
        committed = self._committed(doubts)
        if not committed:
            return {}
        commits = history_of(self._git, self._below, self._format, self._kept)
        found = {}
        for doubt in doubts:
            pairs = {key: committed.get(key) for key in _differing(doubt)}
            orders = {self._compared(commits, pair, key, doubt) for key, pair in pairs.items()}
            if doubt.at_rest and orders != {Order.NEWER} and all(pair and pair.at_head for pair in pairs.values()):
                # Nobody has edited what git put here, and git has the store's version too: git is to bring that.
                order: Order | None = Order.OLDER
            else:
                # A file that was put back says nothing of the others, one that isn't known does.
                orders.discard(Order.EITHER)
                order = orders.pop() if len(orders) == 1 else None
            if order is not None:
                side = Side.WORKSPACE if order is Order.OLDER else Side.STORE
                assert doubt.store.raw and doubt.workspace.raw  # noqa: S101, PT018 - they are valid
                found[doubt.key] = OutdatedContent(side, doubt.store.raw, doubt.workspace.raw)
        return found

    def _committed(self, doubts: Sequence[Doubt]) -> dict[FileOf, _Pair]:
        """Return the files in doubt that git may know an order of, by conversation and name."""
        asked: dict[FileOf, tuple[Doubt, str, dict[str, str], dict[str, str]]] = {}
        for doubt in doubts:
            keys = _differing(doubt)
            mine, stored = self._names(doubt.workspace, keys), self._names(doubt.store, keys)
            for key in mine.keys() & stored.keys():
                path = os.path.normpath(os.path.join(self._below, joined(doubt.workspace.copy.path, key[1])))
                if "\n" not in path:
                    asked[key] = doubt, path, mine[key], stored[key]
        queries = {"HEAD": None}
        for doubt, path, here, there in asked.values():
            # What the workspace was given is only in question where git may give it the store's version, too.
            others = there.values() if doubt.at_rest else ()
            queries |= dict.fromkeys((f"HEAD:{path}", *here.values(), *others))
        names = dict(zip(queries, self._git.names(tuple(queries)), strict=True))
        head = names["HEAD"]
        if head is None:
            return {}
        algorithm = _ALGORITHMS[len(head)]
        found = {}
        for key, (doubt, path, here, there) in asked.items():
            blob, other = here[algorithm], there[algorithm]
            if names[blob] and (not doubt.at_rest or names[other]):
                found[key] = _Pair(blob, other, names[f"HEAD:{path}"] == blob)
        return found

    def _names(self, unit: Unit, keys: Iterable[FileOf]) -> dict[FileOf, dict[str, str]]:
        return {
            (unit.copy.conversation, file.name): _names_of(content)
            for file, content in self._read(unit, {name for _, name in keys})
        }

    def _compared(self, commits: Commits, pair: _Pair | None, key: FileOf, doubt: Doubt) -> Order | None:
        """Return how the workspace's version of a file relates to the store's."""
        if pair is None:
            return None
        known = commits.contents(key)
        order = commits.order(key, pair.workspace, pair.store, at_head=pair.at_head)
        if order is Order.OLDER or doubt.at_rest:
            return order
        # The store's, or one that it had, may have come before, and again by a revert: what followed counts.
        past = self._committed_before(key[1], known, doubt)
        later = pair.at_head and any(commits.replaced_at_head(key, pair.workspace, blob) for blob in past)
        if order is None:
            later |= any(commits.order(key, pair.workspace, blob, at_head=pair.at_head) is Order.OLDER for blob in past)
        return Order.OLDER if later else order

    def _committed_before(self, name: str, known: Iterable[str], doubt: Doubt) -> list[str]:
        """Return the committed contents of a file among those that were in sync before."""
        wanted = [blob for blob in known if blob not in self._digests] if doubt.past else []
        self._digests |= {blob: digest(content) for blob, content in self._git.blobs(wanted).items()}
        names = [file.name for file in doubt.store.files]
        # A version that has fewer files has the last of them.
        parts = [dict(zip(reversed(names), reversed(each.split("+")), strict=False)).get(name) for each in doubt.past]
        return [blob for blob in known if self._digests.get(blob) in parts]

    def _read(self, unit: Unit, names: Container[str]) -> Iterator[tuple[File, bytes]]:
        """Read files of a unit, those that are still as they were seen."""
        files = [file for file in unit.files if file.name in names and file.size <= LARGE]
        try:
            with (
                Directory.open_root(self._conversations[unit.copy.side]) as root,
                root.below(unit.copy.path) as directory,
            ):
                for file in files:
                    read = read_files(directory, [file.name])
                    if isinstance(read, dict) and digest(read[file.name][0]) == file.digest:
                        yield file, read[file.name][0]
        except OSError:
            return


def history_of(git: Git, directory: str, fmt: Format, kept: KeptHistory) -> Commits:
    """Return the history of the conversations in a directory of a repository, relative to the top of that.

    Of each file of a conversation `Commits.order` tells which of two contents is older, and of the conversation itself
    (`PARTITION`, by where its metadata lies) which of two partitions it was in before.

    Raises:
        GitError: git has none.
    """
    history = kept.of(git, directory)
    above = "" if directory == "." else f"{directory}/"
    changes = []
    for commit, entries in history.changes:
        came: dict[FileOf, set[str]] = {}
        went: dict[FileOf, set[str]] = {}
        for path, before, after in entries:
            found = file_at(os.fsdecode(path).removeprefix(above), fmt)
            if found is None:
                continue
            conversation, name, partition = found
            for contents, blob in ((went, before), (came, after)):
                if blob.strip("0"):
                    contents.setdefault((conversation, name), set()).add(blob)
                    if name == fmt.metadata_file:
                        contents.setdefault((conversation, PARTITION), set()).add(partition)
        for file in came.keys() | went.keys():
            new, old = came.get(file, set()), went.get(file, set())
            if new != old:
                changes.append(Change(commit, file, frozenset(new - old), frozenset(old - new)))
    return Commits(history.parents, changes, history.behind_head)


def file_at(path: str, fmt: Format) -> tuple[str, str, Partition] | None:
    """Return the conversation that a path is of, the file's name in its directory, and the partition that is in: what
    an archived one carries along is not archived by that.
    """
    found, partition, names = None, Partition.LIVE, path.split("/")
    while names:
        inner = names[1:] if names[0] in _PARTITIONS else names
        conversation = fmt.id_of(inner[0]) if len(inner) > 1 else None
        if conversation is None:
            break
        if partition is not Partition.TRASH:
            partition = _PARTITIONS.get(names[0], Partition.LIVE)
        found = conversation, "/".join(inner[1:]), partition
        names = inner[2:] if inner[1] == CHILDREN else []
    return found


def _differing(doubt: Doubt) -> list[FileOf]:
    """Return the files that both versions have, with other contents."""
    theirs = {file.name: file.digest for file in doubt.workspace.files}
    names = [file.name for file in doubt.store.files if theirs.get(file.name, file.digest) != file.digest]
    return [(doubt.key[0], name) for name in names]


def _names_of(content: bytes) -> dict[str, str]:
    """Return the names that git may have for a content, by the algorithm."""
    whole = b"blob %d\0" % len(content) + content
    return {name: hashlib.new(name, whole, usedforsecurity=False).hexdigest() for name in _ALGORITHMS.values()}
