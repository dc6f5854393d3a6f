"""Queries of a directory's history by the program git: read-only, limited in time, without commands of the repository.

Premises: the executable ``git`` (2.20 or later) is the user's own. Its plumbing (``cat-file``, ``rev-list``, ``diff-
tree``, ``for-each-ref``, ``ls-files``) prints raw names. It runs no hook, filter, textconv, pager or monitor,
whatever the repository configures, and takes no lock. ``GIT_*`` variables of the environment are dropped, because a
hook or another program may have set ``GIT_DIR``. Replacements and grafts are ignored, and nothing is fetched into a
partial clone. git itself refuses a repository of another owner (``safe.directory``).

Every failure is a `GitError`: no git, a refusal, an error, a hung disk, more than `TIME_LIMIT`, too many commits.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

TIME_LIMIT = 10.0
"""Seconds, for all queries of one scan together."""
_PER_FILE = 0.01
"""Seconds more for each file whose contents are wanted, for a hook that must have an answer."""
MOST = 20_000
"""Limit of commits that changed a directory; their ancestry takes 50 MB then."""
_NOTHING_ELSE = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}


class GitError(Exception):
    """git gave no answer that can be relied on."""


class History(NamedTuple):
    """The commits that changed a directory, as plain values for a cache file."""

    parents: dict[str, tuple[str, ...]]
    """These commits and the merges of them, children first, each with its parents among them."""
    changes: list[tuple[str, list[tuple[bytes, str, str]]]]
    """For each commit and each of its parents, the files that differ: path, old blob, new blob."""
    behind_head: list[str]
    """The ancestors of HEAD among them, HEAD included."""


class Change(NamedTuple):
    """The blobs of a file in HEAD and in the index; empty: it isn't there."""

    before: str
    after: str


def projects_of(paths: Iterable[str], marker: str) -> list[str]:
    """Return the directories that contain ``marker`` in some relative paths, each once; empty: the top."""
    parts = (f"/{path}/".partition(f"/{marker}/") for path in paths)
    return list(dict.fromkeys(before[1:] for before, found, _ in parts if found))


class Git:
    """The queries of one scan, with one time limit. git runs in the directory ``top``."""

    def __init__(self, top: str, index: str | None = None) -> None:
        """Start the time limit. ``index`` is the file of the index, None for the checkout's own one.

        For the hooks of a commit, git may name another index.
        """
        self.top = top
        self._index = {} if index is None else {"GIT_INDEX_FILE": index}
        self._until = time.monotonic() + TIME_LIMIT

    def allow_time_for(self, files: int) -> None:
        """Extend the time limit for the contents of a number of files."""
        self._until += files * _PER_FILE

    def names(self, wanted: Sequence[str]) -> list[str | None]:
        """Return the object name of each expression, None if there is none; an expression has no line break.

        Raises:
            GitError: git gave no answer.
        """
        request = b"".join(os.fsencode(expression) + b"\n" for expression in wanted)
        lines = self._run(("cat-file", "--batch-check=%(objectname)"), request).split(b"\n")[:-1]
        if len(lines) != len(wanted):
            raise GitError
        return [None if b" " in line else line.decode() for line in lines]

    def blobs(self, names: Iterable[str]) -> dict[str, bytes]:
        """Return the contents of blobs as committed; missing blobs are left out.

        Raises:
            GitError: git gave no answer.
        """
        stdin = "".join(f"{name}\n" for name in names).encode()
        printed = self._run(("cat-file", "--batch"), stdin) if stdin else b""
        contents, at = {}, 0
        while at < len(printed):
            header, _, _ = printed[at : at + 256].partition(b"\n")
            at += len(header) + 1
            words = header.split()
            if len(words) == len(("name", "type", "size")):
                size = int(words[2])
                contents[words[0].decode()] = printed[at : at + size]
                at += size + 1
        return contents

    def tips(self) -> list[str]:
        """Return the commits from which all others are reachable, HEAD's first, the rest sorted.

        They are those of every branch, tag, stash and worktree, and of the reflogs: an amended or rebased version was
        in the files, too.

        Raises:
            GitError: git gave no answer.
        """
        tips = self._run(("rev-list", "--no-walk=unsorted", "HEAD", "--all", "--reflog")).decode().split()
        if not tips:
            raise GitError
        return tips[:1] + sorted(tips[1:])

    def has_commits(self) -> bool:
        """Tell whether any branch, tag or HEAD has a commit.

        Raises:
            GitError: git gave no answer.
        """
        return bool(self._run(("for-each-ref", "--count=1", "--format=x")).strip()) or bool(self.names(["HEAD"])[0])

    def oldest_commit(self) -> str | None:
        """Return the oldest of the commits without a parent that HEAD contains; None without a commit.

        Raises:
            GitError: git gave no answer.
        """
        commits = self._run(("rev-list", "--max-parents=0", "HEAD")).decode().split()
        return commits[-1] if commits else None

    def staged(self, *directories: str) -> list[str]:
        """Return the paths of the files below directories that are in git's index, relative to ``top``.

        Raises:
            GitError: git gave no answer.
        """
        listed = self._run(("ls-files", "--cached", "-z", "--full-name", "--", *directories))
        return [os.fsdecode(path) for path in listed.split(b"\0") if path]

    def staged_blobs(self, directory: str) -> list[tuple[str, str]]:
        """Return the paths of `staged` with the contents that the index has of them; of a conflict, each of them.

        Raises:
            GitError: git gave no answer.
        """
        listed = self._run(("ls-files", "--stage", "-z", "--full-name", "--", directory)).split(b"\0")
        lines = [line.partition(b"\t") for line in listed if line]
        return [(os.fsdecode(path), words.split()[1].decode()) for words, _, path in lines]

    def ignored(self, directory: str) -> bool:
        """Tell whether git ignores a file below a directory that is not in its index.

        Raises:
            GitError: git gave no answer.
        """
        return bool(self._run(("ls-files", "--others", "--ignored", "--exclude-standard", "-z", "--", directory)))

    def staged_below(self, name: str) -> list[str]:
        """Return the paths of the index that have a directory or a link of this name in them, relative to ``top``.

        Raises:
            GitError: git gave no answer.
        """
        wanted = (f":(glob)**/{name}", f":(glob)**/{name}/**")
        listed = self._run(("ls-files", "--cached", "-z", "--full-name", "--", *wanted), literal=False)
        return [os.fsdecode(path) for path in listed.split(b"\0") if path]

    def staged_changes(self) -> dict[str, Change]:
        """Return each file that the index adds to HEAD, changes, or removes, by its path relative to ``top``.

        Raises:
            GitError: git gave no answer.
        """
        if self.names(["HEAD"])[0] is None:
            listed = self._run(("ls-files", "--stage", "-z", "--full-name")).split(b"\0")
            lines = [line.partition(b"\t") for line in listed if line]
            return {os.fsdecode(path): Change("", words.split()[1].decode()) for words, _, path in lines}
        how = ("diff-index", "--cached", "--raw", "--no-renames", "--no-abbrev", "--diff-filter=ACMTD", "-z")
        tokens = self._run((*how, "HEAD", "--")).split(b"\0")[:-1]
        return {
            os.fsdecode(path): Change(*(blob.decode().strip("0") and blob.decode() for blob in words.split()[2:4]))
            for words, path in zip(tokens[::2], tokens[1::2], strict=True)
        }

    def remote_branches(self, *commits: str) -> tuple[str, ...]:
        """Return the remote-tracking branches that contain one of some commits, without remotes' HEADs.

        Raises:
            GitError: git gave no answer.
        """
        how = ("for-each-ref", *(f"--contains={commit}" for commit in commits))
        how = (*how, "--format=%(symref)%00%(refname:lstrip=2)", "refs/remotes")
        lines = os.fsdecode(self._run(how)).splitlines()
        return tuple(name for symref, _, name in (line.partition("\0") for line in lines) if not symref)

    def history(self, tips: Sequence[str], directory: str) -> History:
        """Return the history of a directory that is reachable from these commits; the first one is HEAD's.

        The result depends only on these commits and on the end of a shallow clone: the name of a commit covers all of
        its ancestors.

        Raises:
            GitError: git gave no answer.
        """
        how = ("--full-history", "--simplify-merges", "--parents", "--topo-order")
        lines = self._commits(tips, how, directory)
        if len(lines) > MOST:
            raise GitError
        parents = {commit: tuple(above) for commit, *above in map(str.split, lines)}
        behind_head = self._commits(tips[:1], ("--full-history",), directory)
        return History(parents, self._changes(parents, directory), behind_head)

    def _commits(self, tips: Sequence[str], how: Sequence[str], directory: str) -> list[str]:
        stdin = "".join(f"{tip}\n" for tip in tips).encode()
        return self._run(("rev-list", "--stdin", *how, "--", directory), stdin).decode().splitlines()

    def _changes(
        self, parents: Mapping[str, tuple[str, ...]], directory: str
    ) -> list[tuple[str, list[tuple[bytes, str, str]]]]:
        stdin = "".join(" ".join((commit, *above)) + "\n" for commit, above in parents.items()).encode()
        how = ("diff-tree", "--stdin", "-r", "-m", "--root", "--raw", "--no-renames", "--no-abbrev", "-z")
        tokens = iter(self._run((*how, "--", directory), stdin).split(b"\0"))
        changes: list[tuple[str, list[tuple[bytes, str, str]]]] = []
        for token in tokens:
            if token.startswith(b":"):
                _, _, before, after, _ = token.decode().split()
                changes[-1][1].append((next(tokens), before, after))
            elif token:
                changes.append((token.decode(), []))
        return changes

    def _run(self, args: Sequence[str], stdin: bytes = b"", *, literal: bool = True) -> bytes:
        import subprocess  # here: few runs need it

        env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        env |= _NOTHING_ELSE | self._index
        pathspecs = ("--literal-pathspecs",) if literal else ()
        command = ("git", *pathspecs, "--no-pager", "-c", "core.fsmonitor=false", *args)
        try:
            done = subprocess.run(  # noqa: S603 - no shell, and names are stdin on standard input
                command,
                cwd=self.top,
                env=env,
                input=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=self._until - time.monotonic(),
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            raise GitError from None
        return done.stdout
