"""The two sides of a run, and what refuses them. Where they are is found in `reconcile.adapters.locate`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from reconcile.errors import ReconcileError
from reconcile.model.names import CHILDREN

if TYPE_CHECKING:
    from collections.abc import Mapping


class LocateError(ReconcileError):
    """The sides of a run can't be told: what was found, what was expected, what to do next."""

    exit_code = 2


class Request(NamedTuple):
    """What the finders of the formats are given: the options as typed, and the surroundings."""

    workspace: str | None
    store: str | None
    cwd: str
    environ: Mapping[str, str]
    platform: str

    def path(self, text: str) -> str:
        """A path as typed, made absolute; symbolic links in it stay."""
        path = os.path.join(self.cwd, text)
        # Taking "x/.." away as text would be wrong where x is a symbolic link.
        return os.path.realpath(path) if ".." in path.split(os.sep) else os.path.normpath(path)


class Roots(NamedTuple):
    """The two sides. Paths are absolute and as the operator wrote them; they may be symbolic links.

    ``workspace`` is the directory that holds the workspace's ``conversations/`` (JP: ``.jp``), ``project``
    the one that people call the project. ``workspace_identity`` tells a checkout from a later one at the same
    path. ``key`` names the directory of reconcile's own state. ``siblings`` are further stores of the same
    workspace, which are never merged here.
    """

    format: str
    workspace: str
    project: str
    store: str
    store_exists: bool
    workspace_id: str | None
    workspace_identity: str
    key: str
    siblings: tuple[str, ...] = ()
    inner: str = CHILDREN
    """The directory of a side that holds its conversations; empty: the side itself."""
    leads_to: str = ""
    """Where the store's side is, if a symbolic link was in its place when it was located."""

    @property
    def noun(self) -> str:
        """What people call that which is kept here."""
        return "conversation" if self.inner else "record"

    @property
    def workspace_conversations(self) -> str:
        """The workspace's side, which may not exist.

        A separator ends it where it is the whole project: the user has named that, so that a link there is followed.
        """
        whole = self.inner or self.workspace == self.project
        return os.path.join(self.workspace, self.inner) if whole else self.workspace

    @property
    def store_conversations(self) -> str:
        """The store's side, which may not exist. No symbolic link was in its place when it was located."""
        return self.leads_to or (os.path.join(self.store, self.inner) if self.inner else self.store)


def identity_of(path: str) -> str:
    """Device and inode of the directory at ``path``, empty where there is none. Raises `OSError`: it can't be told."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    return f"{status.st_dev}:{status.st_ino}"


def within(inner: str, outer: str) -> bool:
    """Whether one path, both without links, lies below the other."""
    return inner.startswith(outer.rstrip(os.sep) + os.sep)


def refuse_link(side: str) -> None:
    """A pulled repository must not choose what is published: its `conversations` may not lead elsewhere.

    A side that is the whole project is what the user has named, by whatever link.
    """
    if os.path.islink(side):
        raise LocateError(
            f"{side}: found a symbolic link, expected a directory",
            "put the directory itself there; whoever commits such a link could have it lead anywhere",
        )


def refuse_state_inside(roots: Roots, directory: str) -> None:
    """Reconcile's own state in a side would be committed to git, or dropped by JP. Raises `LocateError`."""
    sides = [roots.workspace_conversations, roots.store_conversations]
    if roots.format == "jp":
        sides += [roots.workspace, roots.store]
    inner = os.path.realpath(directory)
    for side in sides:
        if inner == os.path.realpath(side) or within(inner, os.path.realpath(side)):
            raise LocateError(
                f"found reconcile's own state inside {side} ({directory}), expected it outside both sides",
                "choose another place with RECONCILE_STATE_DIR",
            )
