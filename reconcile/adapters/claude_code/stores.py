"""The store of a project's sessions: one for each repository, known by its oldest commit.

Two clones, and a repository that was moved, have the same commit and so the same store. Git is asked once for a path:
the first run that writes makes a symbolic link to the store, and the next ones follow it. A project without a commit
has a store by its path.

Of a project that is gone, git can't be asked. It has the store that its link names, or that a run has used while it was
there; else one by its path.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from reconcile.adapters.claude_code.places import FORMAT
from reconcile.adapters.roots import store_of, within
from reconcile.fs.git import Git, GitError
from reconcile.fs.git_state import checkout_top, shallow_commits
from reconcile.fs.hashing import digest
from reconcile.fs.paths import is_directory, names_in, status_at
from reconcile.state.directory import state_directory

if TYPE_CHECKING:
    from reconcile.adapters.roots import Request

_LENGTH = 16
_OF_REPOSITORY = "git-"


class StorePlace(NamedTuple):
    """The place of a store. ``link`` is to be made to it; empty: none is needed."""

    path: str
    link: str = ""


def store_place(project: str, request: Request) -> StorePlace:
    """Return the place of the store of a project, which may not exist. Nothing is written."""
    by_path = store_of(FORMAT, project, request)
    if is_directory(by_path):
        return StorePlace(_target(by_path) if os.path.islink(by_path) else by_path)
    if status_at(project) is None:
        known = _store_of_gone(project, os.path.dirname(by_path), request)
        return StorePlace(by_path) if known is None else StorePlace(known, by_path)
    try:
        top = checkout_top(project)
        oldest = None if top is None or shallow_commits(project) else Git(top).oldest_commit()
    except (OSError, GitError):
        return StorePlace(by_path)
    if top is None or oldest is None:
        return StorePlace(by_path)
    inside = os.path.relpath(os.path.realpath(project), os.path.realpath(top))
    name = digest(os.fsencode(f"{oldest}/{inside}"))[:_LENGTH]
    return StorePlace(os.path.join(os.path.dirname(by_path), f"{_OF_REPOSITORY}{name}"), by_path)


def name_elsewhere(store: str) -> str:
    """Return the name that all clones of a repository have for its store; empty for a store by its path."""
    name = os.path.basename(store)
    return f"{FORMAT}-{name}" if name.startswith(_OF_REPOSITORY) else ""


def is_other_repository(project: str, source: str, request: Request) -> bool:
    """Tell whether ``source``, which may be gone, is known to be of another repository than a project.

    Each has a store by its oldest commit. Another directory of the same repository may have its own.
    """
    here, there = (store_place(path, request).path for path in (project, source))
    if here == there or here == store_of(FORMAT, project, request) or there == store_of(FORMAT, source, request):
        return False
    top = checkout_top(project)
    return top is None or not within(os.path.realpath(source), os.path.realpath(top))


def key_of(store: str, format_name: str = FORMAT) -> str:
    """Return the name of the state's directory of a store."""
    return f"{format_name}-{digest(os.fsencode(os.path.realpath(store)))}"


def _store_of_gone(project: str, stores: str, request: Request) -> str | None:
    """Return the store that a run has used in a project that is gone; None without any.

    A worktree that was removed is one: while it is there, its store is that of its repository.
    """
    from reconcile.state.checkouts import SeenCheckout, seen_checkouts  # here: hardly any run is about such a project

    states = os.path.dirname(state_directory(key_of(stores), request.environ, request.platform))
    path = os.path.realpath(project)
    seen = [each for each in seen_checkouts(states, f"{FORMAT}-") if isinstance(each, SeenCheckout)]
    keys = {each.key for each in seen if each.project == path}
    known = (os.path.join(stores, name) for name in names_in(stores)) if keys else ()
    return next((store for store in known if not os.path.islink(store) and key_of(store) in keys), None)


def _target(link: str) -> str:
    """Return the target of a link to a store: every run names the same directory, also the one that made the link."""
    return os.path.normpath(os.path.join(os.path.dirname(link), os.readlink(link)))
