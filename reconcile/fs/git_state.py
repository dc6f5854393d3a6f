"""Whether git is in the middle of something in a checkout, told by its files; git itself is run for `local` and `rm`
alone, to tell whether it has committed what they take away.

While it is, it writes and removes files of the checkout by a plan of its own (docs/design/guards.md#rule-41).
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from reconcile.fs.paths import is_directory, status_at

if TYPE_CHECKING:
    from collections.abc import Sequence

_FILE_LIMIT = 65536
_GIT_SECONDS = 5

# In this order: a rebase that stopped at a merge or a pick also leaves the files of that.
_SIGNS = (
    ("rebase-merge", "a rebase"),
    ("rebase-apply/applying", "an am"),
    ("rebase-apply", "a rebase"),
    ("MERGE_HEAD", "a merge"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("BISECT_LOG", "a bisect"),
    ("index.lock", "index.lock"),
)


def git_busy(project_dir: str) -> str | None:
    """What git is in the middle of in the checkout around ``project_dir``, None: nothing, or no git.

    Where that can't be told, it may be anything.
    """
    try:
        directory = git_dir(project_dir)
        if directory is None:
            return None
        for name, words in _SIGNS:
            if status_at(os.path.join(directory, name), follow=False) is not None:
                return words
        return _sequencer(directory)
    except OSError as error:
        return f"perhaps: {error.filename} can't be read, {error.strerror}"


def git_dir(project_dir: str) -> str | None:
    """The directory that holds the state of this very checkout.

    In a linked worktree that is ``.git/worktrees/<name>`` of the main one. What is shared by all worktrees
    (``commondir``) holds none of the files looked for: a merge next door is no business of this checkout.
    Raises `OSError`, as the next ones, where that can't be told.
    """
    found = _checkout(project_dir)
    return found[1] if found is not None else None


def top_of(project_dir: str) -> str | None:
    """The directory of the checkout around ``project_dir`` that git's paths are relative to; None: no git."""
    found = _checkout(project_dir)
    return found[0] if found is not None else None


def _checkout(project_dir: str) -> tuple[str, str] | None:
    """The top of a checkout, and the directory that holds its state."""
    at = os.path.realpath(project_dir)
    while True:
        entry = os.path.join(at, ".git")
        status = status_at(entry)
        if status is not None and stat.S_ISDIR(status.st_mode):
            # git passes over a .git that is no repository, and so does this.
            if status_at(os.path.join(entry, "HEAD"), follow=False) is not None:
                return at, entry
        elif status is not None and stat.S_ISREG(status.st_mode):
            directory = _pointed_to(at, entry)
            return (at, directory) if directory is not None else None
        above = os.path.dirname(at)
        if above == at:
            return None
        at = above


def has_committed(project_dir: str, paths: Sequence[str]) -> bool:
    """Tell whether git has files at or below these paths, in its index or in the last commit.

    The program `git` is run, read-only: without its optional locks and hooks of the index. Where it isn't there, or
    takes longer than a few seconds, nothing is known.
    """
    if git_dir(project_dir) is None:
        return False
    import subprocess  # here: no plain run asks

    below = [os.path.relpath(path, project_dir) for path in paths]
    git = ["git", "--no-optional-locks", "--literal-pathspecs", "-C", project_dir, "-c", "core.fsmonitor=false"]
    for words in (["ls-files", "-z"], ["ls-tree", "-r", "-z", "--name-only", "HEAD"]):
        try:
            found = subprocess.run(  # noqa: S603 - fixed words, and paths after the end of options
                [*git, *words, "--", *below],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=_GIT_SECONDS,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        if found.returncode == 0 and found.stdout:
            return True
    return False


def in_repository(project_dir: str) -> str:
    """The path that a project has in its repository's main worktree, which all linked worktrees have in common; its own
    where there is no git.
    """
    at = project = os.path.realpath(project_dir)
    while status_at(os.path.join(at, ".git"), follow=False) is None:
        at, below = os.path.dirname(at), at
        if at == below:
            return project
    directory = git_dir(at)
    if directory is None:
        return project
    return os.path.normpath(os.path.join(os.path.dirname(_common(directory)), os.path.relpath(project, at)))


def shallow_end(project_dir: str) -> bytes:
    """The commits beyond which git has none in a shallow clone, as git has noted them; empty where it has all.

    Raises `OSError` where that can't be told.
    """
    directory = git_dir(project_dir)
    return _content(os.path.join(_common(directory), "shallow")) if directory is not None else b""


def _common(directory: str) -> str:
    """The directory of what all worktrees of a repository share."""
    return os.path.realpath(os.path.join(directory, _first_line(os.path.join(directory, "commondir"))))


def _pointed_to(at: str, entry: str) -> str | None:
    """The directory that a ``.git`` file names; None where it is none, as after its repository went."""
    text = _first_line(entry)
    if not text.startswith("gitdir: "):
        return None
    directory = os.path.join(at, text.removeprefix("gitdir: "))
    return directory if is_directory(directory) else None


def _sequencer(directory: str) -> str | None:
    """A series of picks or reverts whose present step has been committed, but which has more to do."""
    command = _first_line(os.path.join(directory, "sequencer", "todo")).partition(" ")[0]
    return {"pick": "a cherry-pick", "p": "a cherry-pick", "revert": "a revert"}.get(command)


def _first_line(path: str) -> str:
    """The first line of a small file; see `_content`."""
    return os.fsdecode(_content(path, _FILE_LIMIT).partition(b"\n")[0].partition(b"\0")[0]).rstrip("\r")


def _content(path: str, limit: int = -1) -> bytes:
    """The beginning of a file, empty where there is none; a pipe is not waited for.

    Raises `OSError` where it can't be read.
    """
    status = status_at(path)
    if status is None or not stat.S_ISREG(status.st_mode):
        return b""
    try:
        with open(path, "rb") as file:
            return file.read(limit)
    except FileNotFoundError:
        return b""
