"""Decides which of two differing contents is older, by the git history of the workspace's repository.

git runs only if there is a doubt, once for all doubts of a scan. The whole history is read only if a file of the
workspace is committed. There is no order if git fails (`reconcile.fs.git`), or if a file was never committed. There
is none either if git stores other bytes than the file has (a filter, line ends), or if commits support both orders.

The store's version may never have been committed. It is newer than all versions that were in sync before, so that
content older than one of these is older than that of the store.

A walk through the history takes long, so `KeptHistory` keeps the last one of a checkout.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from reconcile.fs.files import Directory, read_files
from reconcile.fs.git import Git, GitError, History
from reconcile.fs.git_state import checkout_top, shallow_commits
from reconcile.fs.hashing import digest
from reconcile.index.file import load_values, save_values
from reconcile.model.baseline import CommittedPlace, OutdatedContent
from reconcile.model.names import CHILDREN
from reconcile.model.snapshot import ARCHIVE, TRASH, Partition, Side, is_archived, joined
from reconcile.planning.rules.commit_order import PARTITION, Change, Commits, Order

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from reconcile.model.format import Format
    from reconcile.model.snapshot import Digest, File
    from reconcile.model.units import Unit
    from reconcile.planning.rules.commit_order import Doubt, FileOf
    from reconcile.planning.rules.views import View

LARGE = 64 << 20
"""Bytes up to which a file is compared with git's history."""
_ALGORITHMS = {40: "sha1", 64: "sha256"}
"""The hash algorithms of repositories, by the length of an object's name."""
_PARTITIONS = {ARCHIVE: Partition.ARCHIVE, TRASH: Partition.TRASH}


def outdated_of(
    doubts: Sequence[Doubt], conversations: Mapping[Side, str], fmt: Format, kept: KeptHistory
) -> dict[tuple[str, str], OutdatedContent]:
    """Return the older side of each doubt that git's history decides, by conversation and unit.

    ``conversations`` are the directories of both sides.
    """
    if not doubts:
        return {}
    try:
        top = checkout_top(conversations[Side.WORKSPACE])
        return {} if top is None else _Repository(top, conversations, fmt, kept).outdated_contents(doubts)
    except (GitError, OSError):
        return {}


def committed_of(
    split: Sequence[View], conversations: str, fmt: Format, kept: KeptHistory
) -> dict[str, CommittedPlace]:
    """Return the committed place of conversations that are in different partitions on both sides.

    Only directories whose metadata is in HEAD are returned. ``conversations`` is the workspace's directory.
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
        keys = [key for key, path in paths.items() if "\n" not in path]
        names = dict(zip(keys, git.names([f"HEAD:{paths[key]}" for key in keys]), strict=True))
        if not any(names.values()):
            return {}
        commits = history_of(git, below, fmt, kept)
    except (GitError, OSError):
        return {}
    older = {Order.OLDER: Side.WORKSPACE, Order.NEWER: Side.STORE}
    committed = {}
    for key in (key for key in keys if names[key]):
        here, there = Partition.LIVE, Partition.ARCHIVE
        if is_archived(places[key]):
            here, there = there, here
        order = commits.order((key, PARTITION), here, there, at_head=True)
        since = "+".join(sorted(commits.since((key, PARTITION), here)))
        committed[key] = CommittedPlace(places[key], older.get(order) if order is not None else None, since)
    return committed


class _Pair(Struct, frozen=True):
    """The git object names of a file's contents on both sides; ``at_head``: HEAD has the workspace's."""

    workspace: str
    store: str
    at_head: bool


class _Repository:
    """The history of one repository, for the doubts of one scan."""

    def __init__(self, top: str, conversations: Mapping[Side, str], fmt: Format, kept: KeptHistory) -> None:
        self._git = Git(top)
        self._conversations = conversations
        self._below = os.path.relpath(os.path.realpath(conversations[Side.WORKSPACE]), top)
        self._format = fmt
        self._kept = kept
        self._digests: dict[str, Digest] = {}

    def outdated_contents(self, doubts: Sequence[Doubt]) -> dict[tuple[str, str], OutdatedContent]:
        """Return the older side of each doubt that the history decides, by conversation and unit."""
        committed = self._committed(doubts)
        if not committed:
            return {}
        commits = history_of(self._git, self._below, self._format, self._kept)
        outdated = {}
        for doubt in doubts:
            pairs = {key: committed.get(key) for key in _differing(doubt)}
            orders = {self._compared(commits, pair, key, doubt) for key, pair in pairs.items()}
            if doubt.at_rest and orders != {Order.NEWER} and all(pair and pair.at_head for pair in pairs.values()):
                # The workspace has unedited content of HEAD, and git has the store's version too: a checkout brings it.
                order: Order | None = Order.OLDER
            else:
                # A reverted file decides nothing; a file without an order prevents a decision.
                orders.discard(Order.EITHER)
                order = orders.pop() if len(orders) == 1 else None
            if order is not None:
                side = Side.WORKSPACE if order is Order.OLDER else Side.STORE
                assert doubt.store.raw and doubt.workspace.raw  # noqa: S101, PT018 - they are valid
                outdated[doubt.key] = OutdatedContent(side, doubt.store.raw, doubt.workspace.raw)
        return outdated

    def _committed(self, doubts: Sequence[Doubt]) -> dict[FileOf, _Pair]:
        """Return the files in doubt that git may have an order for, by conversation and name."""
        candidates: dict[FileOf, tuple[Doubt, str, dict[str, str], dict[str, str]]] = {}
        for doubt in doubts:
            keys = _differing(doubt)
            here, stored = self._names(doubt.workspace, keys), self._names(doubt.store, keys)
            for key in here.keys() & stored.keys():
                path = os.path.normpath(os.path.join(self._below, joined(doubt.workspace.copy.path, key[1])))
                if "\n" not in path:
                    candidates[key] = doubt, path, here[key], stored[key]
        queries = {"HEAD": None}
        for doubt, path, workspace_names, store_names in candidates.values():
            # An unedited workspace only matters if git can give it the store's version too.
            others = store_names.values() if doubt.at_rest else ()
            queries |= dict.fromkeys((f"HEAD:{path}", *workspace_names.values(), *others))
        names = dict(zip(queries, self._git.names(tuple(queries)), strict=True))
        head = names["HEAD"]
        if head is None:
            return {}
        algorithm = _ALGORITHMS[len(head)]
        pairs = {}
        for key, (doubt, path, workspace_names, store_names) in candidates.items():
            blob, other = workspace_names[algorithm], store_names[algorithm]
            if names[blob] and (not doubt.at_rest or names[other]):
                pairs[key] = _Pair(blob, other, names[f"HEAD:{path}"] == blob)
        return pairs

    def _names(self, unit: Unit, keys: Iterable[FileOf]) -> dict[FileOf, dict[str, str]]:
        return {
            (unit.copy.conversation, file.name): _names_of(content)
            for file, content in self._read(unit, {name for _, name in keys})
        }

    def _compared(self, commits: Commits, pair: _Pair | None, key: FileOf, doubt: Doubt) -> Order | None:
        """Return the order of the workspace's version of a file relative to the store's."""
        if pair is None:
            return None
        known = commits.contents(key)
        order = commits.order(key, pair.workspace, pair.store, at_head=pair.at_head)
        if order is Order.OLDER or doubt.at_rest:
            return order
        # A revert may have restored a version that the store has or had: then the later commits decide.
        past = self._committed_before(key[1], known, doubt)
        later = pair.at_head and any(commits.replaced_at_head(key, pair.workspace, blob) for blob in past)
        if order is None:
            later |= any(commits.order(key, pair.workspace, blob, at_head=pair.at_head) is Order.OLDER for blob in past)
        return Order.OLDER if later else order

    def _committed_before(self, name: str, known: Iterable[str], doubt: Doubt) -> list[str]:
        """Return the committed contents of a file that were in sync before."""
        wanted = [blob for blob in known if blob not in self._digests] if doubt.past else []
        self._digests |= {blob: digest(content) for blob, content in self._git.blobs(wanted).items()}
        names = [file.name for file in doubt.store.files]
        # A version with fewer files than the unit has the last of them.
        versions = [version.split("+") for version in doubt.past]
        parts = [dict(zip(reversed(names), reversed(version), strict=False)).get(name) for version in versions]
        return [blob for blob in known if self._digests.get(blob) in parts]

    def _read(self, unit: Unit, names: Container[str]) -> Iterator[tuple[File, bytes]]:
        """Yield the files of a unit that are unchanged since the scan, with their content."""
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
    """Return the history of the conversations in a directory, which is relative to the repository's top.

    `Commits.order` compares two contents of a file, or two partitions of a conversation (`PARTITION`, by the place of
    its metadata).

    Raises:
        GitError: git has no history.
    """
    history = kept.of(git, directory)
    above = "" if directory == "." else f"{directory}/"
    changes = []
    for commit, entries in history.changes:
        came: dict[FileOf, set[str]] = {}
        went: dict[FileOf, set[str]] = {}
        for path, before, after in entries:
            file = file_at(os.fsdecode(path).removeprefix(above), fmt)
            if file is None:
                continue
            conversation, name, partition = file
            for contents, blob in ((went, before), (came, after)):
                if blob.strip("0"):
                    contents.setdefault((conversation, name), set()).add(blob)
                    if name == fmt.metadata_file:
                        contents.setdefault((conversation, PARTITION), set()).add(partition)
        for key in came.keys() | went.keys():
            new, old = came.get(key, set()), went.get(key, set())
            if new != old:
                changes.append(Change(commit, key, frozenset(new - old), frozenset(old - new)))
    return Commits(history.parents, changes, history.behind_head)


def file_at(path: str, fmt: Format) -> tuple[str, str, Partition] | None:
    """Return the conversation of a path, the file's name in its directory, and the partition; None: it has none.

    A conversation inside an archived one is not archived itself.
    """
    file, partition, names = None, Partition.LIVE, path.split("/")
    while names:
        inner = names[1:] if names[0] in _PARTITIONS else names
        conversation = fmt.id_of(inner[0]) if len(inner) > 1 else None
        if conversation is None:
            break
        if partition is not Partition.TRASH:
            partition = _PARTITIONS.get(names[0], Partition.LIVE)
        file = conversation, "/".join(inner[1:]), partition
        names = inner[2:] if inner[1] == CHILDREN else []
    return file


def _differing(doubt: Doubt) -> list[FileOf]:
    """Return the files that both versions have, with different contents."""
    digests = {file.name: file.digest for file in doubt.workspace.files}
    names = [file.name for file in doubt.store.files if digests.get(file.name, file.digest) != file.digest]
    return [(doubt.key[0], name) for name in names]


def _names_of(content: bytes) -> dict[str, str]:
    """Return the object names that git may have for a content, by algorithm."""
    whole = b"blob %d\0" % len(content) + content
    return {name: hashlib.new(name, whole, usedforsecurity=False).hexdigest() for name in _ALGORITHMS.values()}


LARGEST_HISTORY = 100_000
"""Files that commits changed, of a history that is kept; they take about 15 MB."""
HISTORY_KIND = "git"
_Key: TypeAlias = tuple[str, bytes, bytes]
"""The directory, and the checksums of the commits and of where the clone ends."""


class KeptHistory:
    """git's last history of a checkout: in memory, and in a file that a dry run only reads.

    The history is the same while three things are: the commits that git begins with, the end of a shallow clone, and
    the directory. git is asked for the first two each time; if it fails, the cache is not used.
    """

    def __init__(self, path: str, *, readonly: bool) -> None:
        """Name the file, which is read when it is asked for."""
        self._path = path
        self._readonly = readonly
        self._last: tuple[_Key, History] | None = None

    def of(self, git: Git, directory: str) -> History:
        """Return the history of a directory, relative to git's top.

        Raises:
            GitError: git has none.
        """
        tips = git.tips()
        key = _key(git, tips, directory)
        if self._last is None or self._last[0] != key:
            self._last = self._load()
        if self._last is None or self._last[0] != key:
            self._last = key, git.history(tips, directory)
            # A clone may have been deepened meanwhile.
            if not self._readonly and _is_small(self._last[1]) and key == _key(git, tips, directory):
                save_values(self._path, HISTORY_KIND, key, *self._last[1])
        return self._last[1]

    def _load(self) -> tuple[_Key, History] | None:
        values = load_values(self._path, HISTORY_KIND)
        return (values[0], History(*values[1:])) if values else None


def _key(git: Git, tips: Sequence[str], directory: str) -> _Key:
    try:
        end = shallow_commits(git.top)
    except OSError:
        raise GitError from None
    return directory, hashlib.sha256("\n".join(tips).encode()).digest(), hashlib.sha256(end).digest()


def _is_small(history: History) -> bool:
    return sum(len(files) for _, files in history.changes) <= LARGEST_HISTORY
