"""Which conversations git has: since which commit, on which remote branches, or only in the index.

A path counts, not its content: a conversation that was ever in a commit can be read by everybody who has that commit.
The walk through the history is that of `reconcile.scan.outdated`, with its limits and its cache.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec import Struct

from reconcile.fs.git import Git, GitError
from reconcile.fs.git_state import checkout_top, worktrees
from reconcile.scan.outdated import file_at

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from reconcile.model.format import Format
    from reconcile.scan.outdated import KeptHistory

_SHORT = 12
"""Digits of a commit's name in a text."""


class GitRecord(Struct, frozen=True):
    """A conversation in git: the first commit with a file of it (None: the index alone), and who has that.

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


def _owner(conversations: frozenset[str], fmt: Format) -> Callable[[str], str | None]:
    """Return a function that returns the one of these conversations that a path belongs to."""

    def of_tree(path: str) -> str | None:
        file = file_at(path, fmt)
        return file[0] if file is not None and file[0] in conversations else None

    def of_record(path: str) -> str | None:
        while path and path not in conversations:
            path = path.rpartition("/")[0]
        return path or None

    return of_tree if fmt.places is None else of_record
