"""The store of a project's sessions: one for each repository, known by its oldest commit.

Two clones, and a repository that was moved, have the same commit and so the same store. Git is asked once for a path:
the first run that writes makes a symbolic link to the store, and the next ones follow it. A project without a commit
has a store by its path.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from reconcile.adapters.claude_code.places import FORMAT
from reconcile.adapters.roots import store_of
from reconcile.fs.git import Git, GitError
from reconcile.fs.git_state import checkout_top, shallow_commits
from reconcile.fs.hashing import digest
from reconcile.fs.paths import is_directory

if TYPE_CHECKING:
    from reconcile.adapters.roots import Request

_LENGTH = 16


class StorePlace(NamedTuple):
    """The place of a store. ``link`` is to be made to it; empty: none is needed."""

    path: str
    link: str = ""


def store_place(project: str, request: Request) -> StorePlace:
    """Return the place of the store of a project, which may not exist. Nothing is written."""
    by_path = store_of(FORMAT, project, request)
    if is_directory(by_path):
        return StorePlace(_target(by_path) if os.path.islink(by_path) else by_path)
    try:
        top = checkout_top(project)
        oldest = None if top is None or shallow_commits(project) else Git(top).oldest_commit()
    except (OSError, GitError):
        return StorePlace(by_path)
    if top is None or oldest is None:
        return StorePlace(by_path)
    inside = os.path.relpath(os.path.realpath(project), os.path.realpath(top))
    name = digest(os.fsencode(f"{oldest}/{inside}"))[:_LENGTH]
    return StorePlace(os.path.join(os.path.dirname(by_path), f"git-{name}"), by_path)


def _target(link: str) -> str:
    """Return the target of a link to a store: every run names the same directory, also the one that made the link."""
    return os.path.normpath(os.path.join(os.path.dirname(link), os.readlink(link)))
