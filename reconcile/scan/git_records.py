"""Which conversations git has, and which texts of their files: since which commit, on which remote branches.

Of a conversation, a path counts, not its content: one that was ever in a commit can be read by everybody who has that
commit. Of a text, the contents of a file count that git has at any path of it. The walk through the history is that of
`reconcile.scan.outdated`, with its limits and its cache.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.fs.git import Git, GitError
from reconcile.fs.git_state import checkout_top, worktrees
from reconcile.scan.outdated import file_at

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from reconcile.model.format import Format
    from reconcile.planning.rules.commit_order import FileOf
    from reconcile.scan.outdated import KeptHistory

_SHORT = 12
"""Digits of a commit's name in a text."""
_AT_ONCE = 32 << 20
"""Bytes of a file's versions that are read at once, about."""
_MOST_COMMITS = 100
"""Commits with one content of which it is asked who has them."""


class GitRecord(Struct, frozen=True):
    """Something in git: the first commit with it (None: the index alone), and who has that.

    ``branches`` are the remote-tracking branches that contain the commit: it was pushed there, or came from there.
    """

    commit: str | None
    branches: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The record as the end of a sentence."""
        if self.commit is None:
            return "staged for the next commit"
        pushed = f", also on {', '.join(self.branches)}" if self.branches else ", not pushed"
        return f"in git since {self.commit[:_SHORT]}{pushed}"


def git_records(
    conversations: Collection[str], directory: str, fmt: Format, kept: KeptHistory
) -> dict[str, GitRecord] | None:
    """Return the records of those conversations that git has; ``directory`` is the workspace's of all conversations.

    None: git gave no answer, or the repository of a worktree is gone, so that nothing is known. An empty result is
    certain.
    """
    try:
        top = checkout_top(directory)
        if top is None:
            return None if worktrees(directory) is None else {}
        git, below = Git(top), os.path.relpath(os.path.realpath(directory), top)
        above = "" if below == "." else f"{below}/"
        owner = _owner(frozenset(conversations), fmt)
        records = {id_: GitRecord(None) for path in git.staged(below) if (id_ := owner(path.removeprefix(above)))}
        if not git.has_commits():
            return records
        first: dict[str, str] = {}
        for commit, entries in kept.of(git, below).changes:  # children first, so that the last one is the oldest
            for path, _, after in entries:
                if after.strip("0") and (id_ := owner(os.fsdecode(path).removeprefix(above))):
                    first[id_] = commit
        branches = {commit: git.remote_branches(commit) for commit in set(first.values())}
    except (GitError, OSError):
        return None
    return records | {id_: GitRecord(commit, branches[commit]) for id_, commit in first.items()}


class Sought(Struct, frozen=True):
    """The texts of a file that are looked for in git, by any names of them, and about the file's size."""

    texts: frozenset[str]
    size: int


def texts_in_git(
    sought: Mapping[FileOf, Sought],
    texts_of: Callable[[bytes, Collection[bytes]], Collection[str]],
    directory: str,
    fmt: Format,
    kept: KeptHistory,
) -> dict[FileOf, dict[str, GitRecord | None]] | None:
    """Return the records of those texts that git has, by file and text; only these files' versions are read.

    ``texts_of`` returns the texts of a version that one before lacks. The record is None if git lacks some version, so
    that the text may be in it. None for all: git gave no answer.
    """
    try:
        if (top := checkout_top(directory)) is None:
            return None
        git, below = Git(top), os.path.relpath(os.path.realpath(directory), top)
        versions = _versions(git, below, frozenset(sought), fmt, kept)
        return {file: _first_records(top, versions[file], wanted, texts_of) for file, wanted in sought.items()}
    except (GitError, OSError):
        return None


def _versions(
    git: Git, below: str, files: frozenset[FileOf], fmt: Format, kept: KeptHistory
) -> dict[FileOf, dict[str, list[str]]]:
    """Return the contents that git has of files, each with the commits that brought it; oldest first, the index last.

    A content has no commit if only the index has it.
    """
    above = "" if below == "." else f"{below}/"
    file_of = _file_of(frozenset(conversation for conversation, _ in files), fmt)
    found: dict[FileOf, dict[str, list[str]]] = {file: {} for file in files}
    for commit, entries in reversed(kept.of(git, below).changes) if git.has_commits() else ():
        for path, _, after in entries:
            file = file_of(os.fsdecode(path).removeprefix(above)) if after.strip("0") else None
            if file in found:
                found[file].setdefault(after, []).append(commit)
    for staged, blob in git.staged_blobs(below):
        file = file_of(staged.removeprefix(above))
        if file in found:
            found[file].setdefault(blob, [])
    return found


def _first_records(
    top: str,
    versions: Mapping[str, Sequence[str]],
    sought: Sought,
    texts_of: Callable[[bytes, Collection[bytes]], Collection[str]],
) -> dict[str, GitRecord | None]:
    """Return the record of each text that a file's versions have, of the first one with it."""
    found: dict[str, GitRecord | None] = {}
    names, before, is_whole = list(versions), list[bytes](), True
    step = max(1, min(len(names), _AT_ONCE // max(1, sought.size)))
    for start in range(0, len(names), step):
        part, git = names[start : start + step], Git(top)  # each part has the time limit for itself
        contents = git.blobs(part)
        is_whole = is_whole and contents.keys() >= set(part)
        for name in (name for name in part if name in contents):
            # What the version before has, too, was looked at there.
            if new := sought.texts.intersection(texts_of(contents[name], before)).difference(found):
                commits = versions[name]
                branches = git.remote_branches(*commits[:_MOST_COMMITS]) if commits else ()
                found |= dict.fromkeys(new, GitRecord(commits[0] if commits else None, branches))
            before = [contents[name]]
        if found.keys() >= sought.texts:
            break
    return found if is_whole else dict.fromkeys(sought.texts) | found


def _owner(conversations: frozenset[str], fmt: Format) -> Callable[[str], str | None]:
    """Return a function that returns the one of these conversations that a path belongs to."""
    file_of = _file_of(conversations, fmt)
    return lambda path: file[0] if (file := file_of(path)) is not None else None


def _file_of(conversations: frozenset[str], fmt: Format) -> Callable[[str], FileOf | None]:
    """Return a function that returns the one of these conversations that a path belongs to, and the name in it."""

    def of_tree(path: str) -> FileOf | None:
        file = file_at(path, fmt)
        return file[:2] if file is not None and file[0] in conversations else None

    def of_record(path: str) -> FileOf | None:
        above = path
        while above and above not in conversations:
            above = above.rpartition("/")[0]
        return (above, path.removeprefix(above).removeprefix("/")) if above else None

    return of_tree if fmt.places is None else of_record
