"""A cache of git's history of a directory: a walk through the history takes long.

The history is the same while three things are: the commits that git begins with, the end of a shallow clone, and the
directory. git is asked for the first two each time; if it fails, the cache is not used. A checkout's file has the last
answer alone.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, TypeAlias

from reconcile.fs.git import GitError, History
from reconcile.fs.git_state import shallow_commits
from reconcile.index.file import load_values, save_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reconcile.fs.git import Git

LARGEST = 100_000
"""Files that commits changed, of a history that is kept; they take about 15 MB."""
KIND = "git"
_Key: TypeAlias = tuple[str, bytes, bytes]
"""The directory, and the checksums of the commits and of where the clone ends."""


class KeptHistory:
    """The last answer about a checkout: in memory, and in a file that a dry run only reads."""

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
                save_values(self._path, KIND, key, *self._last[1])
        return self._last[1]

    def _load(self) -> tuple[_Key, History] | None:
        values = load_values(self._path, KIND)
        return (values[0], History(*values[1:])) if values else None


def _key(git: Git, tips: Sequence[str], directory: str) -> _Key:
    try:
        end = shallow_commits(git.top)
    except OSError:
        raise GitError from None
    return directory, hashlib.sha256("\n".join(tips).encode()).digest(), hashlib.sha256(end).digest()


def _is_small(history: History) -> bool:
    return sum(len(files) for _, files in history.changes) <= LARGEST
