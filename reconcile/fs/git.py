"""git, asked about the history of a directory: strictly read-only, bounded, and never by a command of the repository.

Taken for granted: an executable called ``git`` (2.20 or later) is the one that the user runs. Its plumbing
(``cat-file``, ``rev-list``, ``diff-tree``) prints raw object names, and runs no hook, filter, textconv, pager or
monitor, whatever the repository configures; no index is read or refreshed, and no lock is taken. What the environment
says of git is left out: a hook or another program's ``GIT_DIR`` would mislead. Replacements and grafts don't count, and
nothing is fetched that a partial clone lacks. git itself refuses a repository of another owner (``safe.directory``).

Anything but an answer within `TIME_LIMIT` is none: no git, a refusal, an error, a hung disk, too much of it.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

TIME_LIMIT = 10.0
"""Seconds, for all questions of one look together."""
MOST = 20_000
"""Commits that changed a directory; who descends from whom among them takes 50 MB."""
_NOTHING_ELSE = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}


class NoAnswerError(Exception):
    """git says nothing that could be relied on."""


class History(NamedTuple):
    """The commits that changed a directory; plain values, which can be kept."""

    parents: dict[str, tuple[str, ...]]
    """Those commits and the merges of such, children first, each with its parents among them."""
    changes: list[tuple[str, list[tuple[bytes, str, str]]]]
    """For each commit and each of its parents, the files that differ: path, blob before, blob after."""
    behind_head: list[str]
    """Those that HEAD descends from."""


class Git:
    """The git of one look; ``top`` is the directory in which it runs."""

    def __init__(self, top: str) -> None:
        """Begin to count the time."""
        self.top = top
        self._until = time.monotonic() + TIME_LIMIT

    def names(self, wanted: Sequence[str]) -> list[str | None]:
        """Return the object that each expression names, None where there is none; one line each.

        Raises:
            NoAnswerError: see there.
        """
        asked = b"".join(os.fsencode(each) + b"\n" for each in wanted)
        lines = self._run(("cat-file", "--batch-check=%(objectname)"), asked).split(b"\n")[:-1]
        if len(lines) != len(wanted):
            raise NoAnswerError
        return [None if b" " in line else line.decode() for line in lines]

    def blobs(self, names: Iterable[str]) -> dict[str, bytes]:
        """Return the contents of blobs, as they were committed; those that aren't there are left out.

        Raises:
            NoAnswerError: see there.
        """
        given = "".join(f"{name}\n" for name in names).encode()
        printed = self._run(("cat-file", "--batch"), given) if given else b""
        found, at = {}, 0
        while at < len(printed):
            header, _, _ = printed[at : at + 256].partition(b"\n")
            at += len(header) + 1
            words = header.split()
            if len(words) == len(("name", "type", "size")):
                size = int(words[2])
                found[words[0].decode()] = printed[at : at + size]
                at += size + 1
        return found

    def tips(self) -> list[str]:
        """Return the commits that all others are found from, HEAD's first, in one order.

        Those of every branch, tag, stash and worktree, and what the reflogs still know: a version that was amended or
        rebased away was there, too.

        Raises:
            NoAnswerError: see there.
        """
        tips = self._run(("rev-list", "--no-walk=unsorted", "HEAD", "--all", "--reflog")).decode().split()
        if not tips:
            raise NoAnswerError
        return tips[:1] + sorted(tips[1:])

    def history(self, tips: Sequence[str], directory: str) -> History:
        """Return the history of a directory that is found from these commits; the first one is HEAD's.

        It depends on nothing else but on where a shallow clone ends: a commit's name stands for all that is behind it.

        Raises:
            NoAnswerError: see there.
        """
        how = ("--full-history", "--simplify-merges", "--parents", "--topo-order")
        lines = self._commits(tips, how, directory)
        if len(lines) > MOST:
            raise NoAnswerError
        parents = {commit: tuple(above) for commit, *above in map(str.split, lines)}
        behind_head = self._commits(tips[:1], ("--full-history",), directory)
        return History(parents, self._changes(parents, directory), behind_head)

    def _commits(self, tips: Sequence[str], how: Sequence[str], directory: str) -> list[str]:
        given = "".join(f"{tip}\n" for tip in tips).encode()
        return self._run(("rev-list", "--stdin", *how, "--", directory), given).decode().splitlines()

    def _changes(
        self, parents: Mapping[str, tuple[str, ...]], directory: str
    ) -> list[tuple[str, list[tuple[bytes, str, str]]]]:
        given = "".join(" ".join((commit, *above)) + "\n" for commit, above in parents.items()).encode()
        how = ("diff-tree", "--stdin", "-r", "-m", "--root", "--raw", "--no-renames", "--no-abbrev", "-z")
        tokens = iter(self._run((*how, "--", directory), given).split(b"\0"))
        found: list[tuple[str, list[tuple[bytes, str, str]]]] = []
        for token in tokens:
            if token.startswith(b":"):
                _, _, before, after, _ = token.decode().split()
                found[-1][1].append((next(tokens), before, after))
            elif token:
                found.append((token.decode(), []))
        return found

    def _run(self, args: Sequence[str], given: bytes = b"") -> bytes:
        import subprocess  # here: few runs need it

        env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | _NOTHING_ELSE
        command = ("git", "--literal-pathspecs", "--no-pager", "-c", "core.fsmonitor=false", *args)
        try:
            done = subprocess.run(  # noqa: S603 - no shell, and names are given on standard input
                command,
                cwd=self.top,
                env=env,
                input=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=self._until - time.monotonic(),
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            raise NoAnswerError from None
        return done.stdout
