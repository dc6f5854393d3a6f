"""Locates the two sides of a run by the rules of each format."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING

from reconcile.adapters.fixed_roots import format_at
from reconcile.adapters.roots import LocateError, Request, Roots, identity_of, refuse_link, within
from reconcile.fs.hashing import digest
from reconcile.model.names import CHILDREN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias


Finder: TypeAlias = "Callable[[Request], Roots]"


def locate(
    format_name: str | None,
    workspace_arg: str | None,
    store_arg: str | None,
    cwd: str,
    environ: Mapping[str, str],
    platform: str,
) -> Roots:
    """Return the two sides by the rules of the requested format, or of the one that is there. Nothing is written.

    Raises `LocateError`.
    """
    request = Request(workspace_arg, store_arg, cwd, environ, platform)
    _refuse_encoding()
    for option, text in (("--workspace", workspace_arg), ("--store", store_arg)):
        if text is not None and not os.path.isdir(request.path(text)):
            kind = "something that is no directory" if os.path.lexists(request.path(text)) else "nothing"
            raise LocateError(
                f"{option}: found {kind} at {request.path(text)}, expected a directory",
                "check the spelling, or make the directory first",
            )
    name = format_name or _detect_format(request)
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
    """Return the sides of a JP checkout whose ``.jp`` may be gone (`reconcile recover`). Nothing is written.

    Raises `LocateError`.
    """
    _refuse_encoding()
    from reconcile.adapters.jp.roots import locate_for_recovery

    roots = locate_for_recovery(Request(workspace_arg, store_arg, cwd, environ, platform), source)
    if os.path.lexists(roots.workspace) and not os.path.isdir(roots.workspace):
        kind = "a symbolic link that leads nowhere" if os.path.islink(roots.workspace) else "a file"
        raise LocateError(
            f"{roots.workspace}: found {kind}, expected a directory or nothing",
            "move it away, then run reconcile recover again",
        )
    refuse_link(roots.workspace_conversations)
    _refuse_overlap(roots)
    return _with_link_followed(roots)


def _detect_format(request: Request) -> str:
    """Return the format of the workspace that is there."""
    from reconcile.adapters.jp.roots import find_project, silos_of

    start = request.path(request.workspace or "")
    if find_project(start) is not None:
        return "jp"
    from reconcile.adapters.jp.lost_checkouts import known_checkouts

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
    """Return the format of a project whose folder is gone but has a durable copy; None inside a JP project."""
    from reconcile.adapters.fixed_roots import FOLDERS, lost_project
    from reconcile.adapters.jp.roots import find_project

    if find_project(request.path(request.workspace or "")) is not None:
        return None
    return next((name for name in FOLDERS if lost_project(name, request) is not None), None)


def _refuse_encoding() -> None:
    """Raise `LocateError` unless Python uses UTF-8 for file names, as JP does."""
    encoding = sys.getfilesystemencoding()
    if encoding != "utf-8":
        raise LocateError(
            f"found the encoding {encoding} for the names of files, expected UTF-8",
            "start Python with PYTHONUTF8=1 in its environment, or as python -X utf8",
        )


def _with_link_followed(roots: Roots) -> Roots:
    """Return the sides with the store's link resolved: the store belongs to the user, and may be on another disk.

    The link is followed only here.
    """
    store = roots.store_conversations
    return roots._replace(leads_to=os.path.realpath(store)) if os.path.islink(store) else roots


def _refuse_overlap(roots: Roots) -> None:
    """Raise `LocateError` if the sides share a directory: they would be copied into each other."""
    pairs = (
        (roots.workspace, roots.store),
        (roots.workspace_conversations, roots.store_conversations),
    )
    for workspace, store in pairs:
        real_workspace, real_store = os.path.realpath(workspace), os.path.realpath(store)
        if real_workspace == real_store:
            how = "the same directory"
        elif within(real_workspace, real_store):
            how = "the workspace inside the store"
        elif within(real_store, real_workspace):
            how = "the store inside the workspace"
        else:
            continue
        raise LocateError(
            f"found {how} ({workspace} and {store}), expected two directories apart from each other",
            "choose another place with --workspace or --store",
        )


def _jp(request: Request) -> Roots:
    from reconcile.adapters.jp.roots import locate_jp

    return locate_jp(request)


def _plain(request: Request) -> Roots:
    """Return the two sides as named; the workspace is the current directory by default."""
    if request.store is None:
        raise LocateError(
            "found no store: the format plain has no place of its own for it, expected --store DIR",
            "name the directory that holds (or shall hold) the durable conversations/ with --store",
        )
    workspace, store = request.path(request.workspace or ""), request.path(request.store)
    # One of the two may be lost, and `recover` restores it. If both are missing, the place is wrong.
    if not any(os.path.isdir(os.path.join(side, CHILDREN)) for side in (workspace, store)):
        raise LocateError(
            f"found no directory {CHILDREN} in {workspace} or in {store}, expected it in at least one",
            "name the directories that hold conversations/, not those directories themselves",
        )
    return Roots(
        format="plain",
        workspace=workspace,
        project=workspace,
        store=store,
        store_exists=True,
        workspace_id=None,
        workspace_identity=identity_of(workspace),
        key="plain-" + digest(os.fsencode(os.path.realpath(store))),
    )


def _fixed(request: Request, name: str) -> Roots:
    from reconcile.adapters.fixed_roots import locate_fixed

    return locate_fixed(name, request)


FINDERS: dict[str, Finder] = {
    "claudesidian": partial(_fixed, name="claudesidian"),
    "jp": _jp,
    "leslie": partial(_fixed, name="leslie"),
    "plain": _plain,
}
"""The finder of each format."""
