"""The two sides of a run as values, and the conditions under which a side is refused.

`reconcile.adapters.locate` finds them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from reconcile.errors import ReconcileError
from reconcile.fs.git_state import path_in_repository
from reconcile.fs.hashing import digest
from reconcile.fs.private_files import make_private_directory
from reconcile.model.names import CHILDREN
from reconcile.state.directory import data_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


_STORES = "stores"
_LENGTH = 16


class LocateError(ReconcileError):
    """The sides of a run can't be located. The message states what was found and expected, and what to do next."""

    exit_code = 2


class Request(NamedTuple):
    """The arguments of the finders of the formats: the options as typed, and the environment."""

    workspace: str | None
    store: str | None
    cwd: str
    environ: Mapping[str, str]
    platform: str

    def path(self, text: str) -> str:
        """Return a path as typed, made absolute; symbolic links in it stay."""
        path = os.path.join(self.cwd, text)
        # Removing "x/.." as text would be wrong if x is a symbolic link.
        return os.path.realpath(path) if ".." in path.split(os.sep) else os.path.normpath(path)


_OF_SESSIONS = ("claude-code", "claude-shared")


class Roots(NamedTuple):
    """The two sides. Paths are absolute and as the user wrote them; they may be symbolic links.

    ``workspace`` is the directory with the workspace's ``conversations/`` (JP: ``.jp``), ``project`` the directory that
    users call the project. ``workspace_identity`` distinguishes a checkout from a later one at the same path (see
    `directory_identity`). ``key`` is the name of the directory of reconcile's own state. ``siblings`` are further
    stores of the same workspace, which are never merged here.
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
    """The directory of a side with its conversations; empty: the side itself."""
    link: str = ""
    """The symbolic link to the store that a run makes, so that the store is found by it later; empty: none."""
    folder: str = ""
    """The folder of the repository with shared sessions, if it has some (``claude-code``)."""
    is_store_private: bool = False
    """Whether new files of the store are for their owner alone, although the workspace lies in the project."""
    leads_to: str = ""
    """The target of the store's side, if it was a symbolic link when it was located."""
    workspace_of: Callable[[str], str] | None = None
    """Returns the workspace of another checkout; None: it is at the same place in that one."""
    name_elsewhere: str = ""
    """The name by which every machine knows the store; empty: only a user can give it one."""
    is_of_remote: bool = False
    """Whether the workspace is the tree of a remote: it has every conversation, and no program works there."""

    @property
    def is_in_project(self) -> bool:
        """Whether the workspace lies in the project; the directories of Claude Code are in the user's home."""
        return self.workspace == self.project or within(self.workspace, self.project)

    @property
    def noun(self) -> str:
        """The noun for one entry."""
        return "conversation" if self.inner else "session" if self.format in _OF_SESSIONS else "record"

    @property
    def workspace_conversations(self) -> str:
        """The workspace's side, which may not exist.

        A separator ends the path if it is the whole project: the user has named that, so a link there is followed.
        """
        whole = self.inner or self.workspace == self.project
        return os.path.join(self.workspace, self.inner) if whole else self.workspace

    def in_checkout(self, project: str) -> Roots:
        """Return the sides with the workspace of another checkout, without its identity."""
        if self.workspace_of is not None:
            workspace = self.workspace_of(project)
        else:
            workspace = os.path.normpath(os.path.join(project, os.path.relpath(self.workspace, self.project)))
        return self._replace(workspace=workspace, project=project, workspace_identity="")

    @property
    def identified(self) -> str:
        """The directory whose identity is that of the checkout."""
        return self.workspace if self.inner else self.project

    @property
    def store_conversations(self) -> str:
        """The store's side, which may not exist. It was no symbolic link when it was located."""
        return self.leads_to or (os.path.join(self.store, self.inner) if self.inner else self.store)


def stores_of(format_name: str, request: Request) -> str:
    """Return the directory with the durable copies of all projects of a format."""
    return os.path.join(data_directory(request.platform), _STORES, format_name)


def store_of(format_name: str, project: str, request: Request) -> str:
    """Return the default place of the durable copy of a project."""
    home = path_in_repository(project)
    name = f"{os.path.basename(home) or 'root'}-{digest(os.fsencode(home))[:_LENGTH]}"
    return os.path.join(stores_of(format_name, request), name)


def link_store(roots: Roots) -> None:
    """Make the link to the store (`Roots.link`); one that leads nowhere is replaced. Raises `OSError`."""
    make_private_directory(os.path.dirname(roots.link))
    if os.path.islink(roots.link) and not os.path.exists(roots.link):
        os.unlink(roots.link)
    if not os.path.lexists(roots.link):
        os.symlink(os.path.relpath(roots.store, os.path.dirname(roots.link)), roots.link)


def within(inner: str, outer: str) -> bool:
    """Tell whether one path, both without links, lies below the other."""
    return inner.startswith(outer.rstrip(os.sep) + os.sep)


def refuse_link(side: str) -> None:
    """Raise `LocateError` if a side is a symbolic link: a pulled repository must not choose what is published.

    A side that is the whole project was named by the user, so a link there is accepted.
    """
    if os.path.islink(side):
        raise LocateError(
            f"{side}: a symbolic link, which is never followed since a commit could change its target",
            "put the directory itself there",
        )


def refuse_any_link(path: str) -> None:
    """Raise `LocateError` if a path, or a directory above it, is a symbolic link, for the same reason."""
    while not os.path.islink(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    refuse_link(path)


def refuse_state_inside(roots: Roots, directory: str) -> None:
    """Raise `LocateError` if reconcile's own state is inside a side: git would commit it, or JP would remove it."""
    sides = [roots.workspace_conversations, roots.store_conversations]
    if roots.format == "jp":
        sides += [roots.workspace, roots.store]
    inner = os.path.realpath(directory)
    for side in sides:
        if inner == os.path.realpath(side) or within(inner, os.path.realpath(side)):
            raise LocateError(
                f"{directory}: the state directory of reconcile is inside {side}",
                "choose a place outside of both sides with RECONCILE_STATE_DIR",
            )
