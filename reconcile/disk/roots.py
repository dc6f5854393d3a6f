"""The two sides of a run: where they are, or one clear line on why they can't be told."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from reconcile.core.names import CHILDREN
from reconcile.disk.marks import format_at
from reconcile.errors import ReconcileError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias


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


Finder: TypeAlias = "Callable[[Request], Roots]"


def locate(
    format_name: str | None,
    workspace_arg: str | None,
    store_arg: str | None,
    cwd: str,
    environ: Mapping[str, str],
    platform: str,
) -> Roots:
    """The two sides, by the rules of the format that is asked for, or found. Nothing is written."""
    request = Request(workspace_arg, store_arg, cwd, environ, platform)
    _refuse_encoding()
    for option, text in (("--workspace", workspace_arg), ("--store", store_arg)):
        if text is not None and not os.path.isdir(request.path(text)):
            found = "something that is no directory" if os.path.lexists(request.path(text)) else "nothing"
            raise LocateError(
                f"{option}: found {found} at {request.path(text)}, expected a directory",
                "check the spelling, or make the directory first",
            )
    name = format_name or _found(request)
    if name not in FINDERS:
        raise LocateError(
            f"found no way to locate the sides of the format {name!r}, expected one of: " + ", ".join(sorted(FINDERS)),
            "choose one with --format",
        )
    roots = FINDERS[name](request)
    refuse_link(roots.workspace_conversations)
    _refuse_overlap(roots)
    return _with_link_followed(roots)


def locate_lost(
    workspace_arg: str | None,
    store_arg: str | None,
    source: str | None,
    cwd: str,
    environ: Mapping[str, str],
    platform: str,
) -> Roots:
    """The sides of a JP checkout whose ``.jp`` may be gone (`reconcile recover`). Nothing is written."""
    _refuse_encoding()
    from reconcile.disk.jp_roots import locate_for_recovery

    roots = locate_for_recovery(Request(workspace_arg, store_arg, cwd, environ, platform), source)
    if os.path.lexists(roots.workspace) and not os.path.isdir(roots.workspace):
        found = "a symbolic link that leads nowhere" if os.path.islink(roots.workspace) else "a file"
        raise LocateError(
            f"{roots.workspace}: found {found}, expected a directory or nothing",
            "move it away, then run reconcile recover again",
        )
    refuse_link(roots.workspace_conversations)
    _refuse_overlap(roots)
    return _with_link_followed(roots)


def identity_of(path: str) -> str:
    """Device and inode of the directory at ``path``, empty where there is none. Raises `OSError`: it can't be told."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    return f"{status.st_dev}:{status.st_ino}"


def _found(request: Request) -> str:
    """The format that what is there belongs to."""
    from reconcile.disk.jp_roots import find_project, silos_of

    start = request.path(request.workspace or "")
    if find_project(start) is not None:
        return "jp"
    from reconcile.disk.lost import known_checkouts

    if (lost := known_checkouts(request, silos_of(request)).nearest_lost(start)) is not None:
        raise LocateError(
            f"{lost}: found no .jp, expected that of a checkout that was here",
            "put it back: reconcile recover; or git checkout -- .jp",
        )
    if (other := format_at(start) or lost_format(request)) is not None:
        return other
    raise LocateError(
        f"found no workspace: looked for a directory .jp in {start} and in every directory above it",
        "go to the project, name it with --workspace, or choose --format plain with --workspace and --store",
    )


def lost_format(request: Request) -> str | None:
    """The format of a project whose folder is gone, and of which there is a durable copy; None inside a JP project."""
    from reconcile.disk.fixed_roots import FOLDERS, lost_project
    from reconcile.disk.jp_roots import find_project

    if find_project(request.path(request.workspace or "")) is not None:
        return None
    return next((name for name in FOLDERS if lost_project(name, request) is not None), None)


def _refuse_encoding() -> None:
    """Names of files are UTF-8 on both sides, as JP writes them; Python writes them as it was told at its start."""
    encoding = sys.getfilesystemencoding()
    if encoding != "utf-8":
        raise LocateError(
            f"found the encoding {encoding} for the names of files, expected UTF-8",
            "start Python with PYTHONUTF8=1 in its environment, or as python -X utf8",
        )


def refuse_link(side: str) -> None:
    """A pulled repository must not choose what is published: its `conversations` may not lead elsewhere.

    A side that is the whole project is what the user has named, by whatever link.
    """
    if os.path.islink(side):
        raise LocateError(
            f"{side}: found a symbolic link, expected a directory",
            "put the directory itself there; whoever commits such a link could have it lead anywhere",
        )


def _with_link_followed(roots: Roots) -> Roots:
    """The store is the user's own, and may be a link to another disk. It is followed here, and never again."""
    store = roots.store_conversations
    return roots._replace(leads_to=os.path.realpath(store)) if os.path.islink(store) else roots


def _refuse_overlap(roots: Roots) -> None:
    """Two sides that share a directory would be copied into each other."""
    pairs = (
        (roots.workspace, roots.store),
        (roots.workspace_conversations, roots.store_conversations),
    )
    for workspace, store in pairs:
        mine, other = os.path.realpath(workspace), os.path.realpath(store)
        if mine == other:
            how = "the same directory"
        elif _within(mine, other):
            how = "the workspace inside the store"
        elif _within(other, mine):
            how = "the store inside the workspace"
        else:
            continue
        raise LocateError(
            f"found {how} ({workspace} and {store}), expected two directories apart from each other",
            "choose another place with --workspace or --store",
        )


def refuse_state_inside(roots: Roots, directory: str) -> None:
    """Reconcile's own state in a side would be committed to git, or dropped by JP. Raises `LocateError`."""
    sides = [roots.workspace_conversations, roots.store_conversations]
    if roots.format == "jp":
        sides += [roots.workspace, roots.store]
    inner = os.path.realpath(directory)
    for side in sides:
        if inner == os.path.realpath(side) or _within(inner, os.path.realpath(side)):
            raise LocateError(
                f"found reconcile's own state inside {side} ({directory}), expected it outside both sides",
                "choose another place with RECONCILE_STATE_DIR",
            )


def _within(inner: str, outer: str) -> bool:
    return inner.startswith(outer.rstrip(os.sep) + os.sep)


def _jp(request: Request) -> Roots:
    from reconcile.disk.jp_roots import locate_jp

    return locate_jp(request)


def _plain(request: Request) -> Roots:
    from reconcile.disk.plain_roots import locate_plain

    return locate_plain(request)


def _fixed(request: Request, name: str) -> Roots:
    from reconcile.disk.fixed_roots import locate_fixed

    return locate_fixed(name, request)


FINDERS: dict[str, Finder] = {
    "claudesidian": partial(_fixed, name="claudesidian"),
    "jp": _jp,
    "leslie": partial(_fixed, name="leslie"),
    "plain": _plain,
}
"""How each format's sides are found."""
