"""The state of a git checkout, read from git's files: an operation under way, the top, the shared path.

During an operation git writes and removes files of the checkout (docs/design/guards.md#rule-41). The program git itself
isn't run.
"""

from __future__ import annotations

import os
import stat

from reconcile.fs.paths import is_directory, status_at, with_parents

_FILE_LIMIT = 65536

# The order counts: a rebase that stopped at a merge or a pick also leaves the files of these.
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
    """Return git's unfinished operation in the checkout around ``project_dir``, in words; None if there is none.

    If a file can't be read, the words say so: an operation may be under way.
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
        return f"unknown: {error.filename} can't be read, {error.strerror}"


def git_dir(project_dir: str) -> str | None:
    """Return the directory that holds the state of this checkout; None without git. Raises `OSError`.

    In a linked worktree it is ``.git/worktrees/<name>`` of the main one. The directory that all worktrees share
    (``commondir``) is not used: an operation in another worktree doesn't concern this checkout.
    """
    checkout = _checkout(project_dir)
    return checkout[1] if checkout is not None else None


def checkout_top(project_dir: str) -> str | None:
    """Return the top of the checkout around ``project_dir``, to which git's paths are relative; None without git.

    Raises `OSError`.
    """
    checkout = _checkout(project_dir)
    return checkout[0] if checkout is not None else None


def _checkout(project_dir: str) -> tuple[str, str] | None:
    """Return the top of a checkout and the directory that holds its state."""
    at = os.path.realpath(project_dir)
    while True:
        entry = os.path.join(at, ".git")
        status = status_at(entry)
        if status is not None and stat.S_ISDIR(status.st_mode):
            # git ignores a .git that is no repository.
            if status_at(os.path.join(entry, "HEAD"), follow=False) is not None:
                return at, entry
        elif status is not None and stat.S_ISREG(status.st_mode):
            directory = _pointed_to(at, entry)
            return (at, directory) if directory is not None else None
        above = os.path.dirname(at)
        if above == at:
            return None
        at = above


def path_in_repository(project_dir: str) -> str:
    """Return the path of the project in the main worktree of its repository; without git, its own path.

    All linked worktrees of a repository have the same path, and two repositories never do. A bare repository, a
    submodule, and a repository with ``--separate-git-dir`` have no main worktree around their git directory. Their path
    is inside the git directory: several git directories may be in one directory.
    """
    at = project = os.path.realpath(project_dir)
    while status_at(os.path.join(at, ".git"), follow=False) is None:
        at, below = os.path.dirname(at), at
        if at == below:
            return project
    directory = git_dir(at)
    if directory is None:
        return project
    return os.path.normpath(os.path.join(_home(_common(directory)), os.path.relpath(project, at)))


def worktrees(project_dir: str) -> list[str] | None:
    """Return the tops of all worktrees of the repository around ``project_dir``; without git, none.

    The first is the main worktree, or the git directory if there is none around it.

    None if that is unknown: its ``.git`` leads nowhere, as after the repository was renamed. Raises `OSError`.
    """
    directory = git_dir(project_dir)
    if directory is None:
        is_lost = any(os.path.isfile(os.path.join(at, ".git")) for at in with_parents(os.path.realpath(project_dir)))
        return None if is_lost else []
    common = _common(directory)
    linked = os.path.join(common, "worktrees")
    names = sorted(os.listdir(linked)) if is_directory(linked) else []
    entries = [_first_line(os.path.join(linked, name, "gitdir")) for name in names]
    return [_home(common), *map(os.path.dirname, entries)]


def shallow_commits(project_dir: str) -> bytes:
    """Return git's list of the last commits of a shallow clone; empty for a complete clone. Raises `OSError`."""
    directory = git_dir(project_dir)
    return _content(os.path.join(_common(directory), "shallow")) if directory is not None else b""


def _common(directory: str) -> str:
    """Return the directory that all worktrees of a repository share."""
    return os.path.realpath(os.path.join(directory, _first_line(os.path.join(directory, "commondir"))))


def _home(common: str) -> str:
    """Return the top of the main worktree; the git directory itself if it isn't the ``.git`` of one."""
    above, name = os.path.split(common)
    return above if name == ".git" else common


def _pointed_to(at: str, entry: str) -> str | None:
    """Return the directory that a ``.git`` file names; None if it is missing, as after its removal."""
    text = _first_line(entry)
    if not text.startswith("gitdir: "):
        return None
    directory = os.path.join(at, text.removeprefix("gitdir: "))
    return directory if is_directory(directory) else None


def _sequencer(directory: str) -> str | None:
    """Return an unfinished series of picks or reverts, whose present step has been committed."""
    command = _first_line(os.path.join(directory, "sequencer", "todo")).partition(" ")[0]
    return {"pick": "a cherry-pick", "p": "a cherry-pick", "revert": "a revert"}.get(command)


def _first_line(path: str) -> str:
    """Return the first line of a small file; see `_content`."""
    return os.fsdecode(_content(path, _FILE_LIMIT).partition(b"\n")[0].partition(b"\0")[0]).rstrip("\r")


def _content(path: str, limit: int = -1) -> bytes:
    """Return the beginning of a file, empty if there is no regular file. Raises `OSError`.

    The status is checked first: opening a pipe would wait.
    """
    status = status_at(path)
    if status is None or not stat.S_ISREG(status.st_mode):
        return b""
    try:
        with open(path, "rb") as file:
            return file.read(limit)
    except FileNotFoundError:
        return b""
