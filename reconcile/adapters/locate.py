"""Locates the two sides of a run by the rules of each format.

Programs whose records have fixed places know no other place than the project. The durable copy of such a project lies
with the data of reconcile, one for each project; worktrees of one git repository share it.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING

from reconcile.adapters.roots import LocateError, Request, Roots, refuse_link, store_of, within
from reconcile.fs.hashing import digest
from reconcile.fs.paths import directory_identity, is_directory, quoted_path, status_at, with_parents
from reconcile.model.names import CHILDREN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

MARKS: Mapping[str, tuple[str, ...]] = {
    "claudesidian": (".workspaces/", ".conversations/", ".nexus/"),
    "leslie": (".leslie/thread_relations.json", ".leslie/objectives.json"),
}
"""Any of these marks the directory that contains it as a project of the format; a slash marks directories.

A ``.leslie`` alone is no marker: that of a home directory holds settings (docs/design/formats/leslie.md#layout).
"""


def place_of(format_name: str, start: str) -> str | None:
    """Return the nearest directory, from ``start`` upwards, that is a project of this format.

    Raises `OSError` if this is unknown.
    """
    return next((at for at in with_parents(start) if _is(format_name, at)), None)


def format_at(start: str) -> str | None:
    """Return the format whose project is the nearest; None inside of a JP project, which takes precedence.

    Raises `OSError` if this is unknown: a project further up must not be used if there may be a nearer one.
    """
    above = with_parents(start)
    if any(is_directory(os.path.join(at, ".jp")) for at in above):
        return None
    return next((format_name for at in above for format_name in MARKS if _is(format_name, at)), None)


def _is(format_name: str, at: str) -> bool:
    return any(_is_marked(os.path.join(at, mark)) for mark in MARKS[format_name])


def _is_marked(mark: str) -> bool:
    return is_directory(mark[:-1]) if mark.endswith("/") else status_at(mark, follow=False) is not None


FOLDERS = {"leslie": ".leslie", "claudesidian": ""}
"""The folder of the project that is the workspace's side; empty: the project itself, of which a part is read."""


def locate_fixed(format_name: str, request: Request) -> Roots:
    """Return the nearest project of this format, or a lost one with a durable copy.

    Raises `LocateError`.
    """
    start = request.path(request.workspace or "")
    project = place_of(format_name, start) or lost_project(format_name, request)
    if project is None and request.store is not None and _is_kept(format_name, request.path(request.store)):
        project = start
    if project is None:
        raise LocateError(
            f"no {format_name} project in {start} or above it (no {' or '.join(MARKS[format_name])})",
            "change to the project, or name it with --workspace",
        )
    store = request.path(request.store) if request.store is not None else store_of(format_name, project, request)
    folder = FOLDERS[format_name]
    return Roots(
        format=format_name,
        workspace=os.path.join(project, folder) if folder else project,
        project=project,
        store=store,
        store_exists=is_directory(store),
        workspace_id=None,
        workspace_identity=directory_identity(project),
        key=f"{format_name}-{digest(os.fsencode(os.path.realpath(store)))}",
        inner="",
    )


def _is_kept(format_name: str, store: str) -> bool:
    """Tell whether a directory is a durable copy of such a project, by its markers."""
    folder = f"{FOLDERS[format_name]}/"
    names = (mark.removeprefix(folder).rstrip("/") for mark in MARKS[format_name])
    return any(os.path.lexists(os.path.join(store, name)) for name in names)


def lost_project(format_name: str, request: Request) -> str | None:
    """Return the nearest directory upwards whose folder is gone and that has a durable copy."""
    start = request.path(request.workspace or "")
    return next((at for at in with_parents(start) if os.path.isdir(store_of(format_name, at, request))), None)


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
    _refuse_missing(format_name, request)
    name = format_name or _detect_format(request)
    refuse_unknown(name)
    roots = FINDERS[name](request)
    return _checked(roots)


def refuse_unknown(format_name: str) -> None:
    """Raise `LocateError` if there is no such format."""
    if format_name not in FINDERS:
        raise LocateError(
            f"unknown format {format_name!r} (choose from {', '.join(sorted(FINDERS))})",
            "choose one with --format",
        )


def _refuse_missing(format_name: str | None, request: Request) -> None:
    """Raise `LocateError` if a named side is no directory, or the plain format lacks one: one error for both sides."""
    missing = {}
    for option, text in (("--workspace", request.workspace), ("--store", request.store)):
        if text is None or os.path.isdir(path := request.path(text)):
            continue
        if os.path.lexists(path):
            raise LocateError(f"{option}: {path} is not a directory", "check the path")
        if not (option == "--workspace" and format_name == "claude-code" and _is_known_though_gone(request)):
            missing[option] = path
    if format_name == "plain":
        _refuse_plain(request, missing)
    elif missing:
        new = f"; for a new store: mkdir -p {quoted_path(missing['--store'])}" if "--store" in missing else ""
        raise LocateError("; ".join(_not_there(missing)), f"check the path{'s' if len(missing) > 1 else ''}{new}")


def _refuse_plain(request: Request, missing: Mapping[str, str]) -> None:
    """Raise `LocateError` if the two sides of the plain format are not there; the workspace is by default this one.

    Without `CHILDREN`, one of the two may be lost, and `recover` restores it. If both lack it, the place is wrong.
    """
    workspace = request.path(request.workspace or "")
    store = None if request.store is None else request.path(request.store)
    is_empty = not any(os.path.isdir(os.path.join(side, CHILDREN)) for side in (workspace, store) if side is not None)
    new = os.path.join(workspace, CHILDREN) if is_empty else workspace
    lacks, made = _not_there(missing), [new, *(path for option, path in missing.items() if option == "--store")]
    if is_empty and "--workspace" not in missing:
        if store is not None and not missing:
            raise LocateError(
                f"neither {workspace} nor {store} has a directory {CHILDREN}",
                f"name the directories that contain {CHILDREN}/, not that directory itself; for a new workspace: "
                f"mkdir -p {quoted_path(new)}",
            )
        lacks.append(f"{workspace} has no directory {CHILDREN}")
    elif "--workspace" not in missing:
        made = made[1:]
    which = "new ones" if len(made) > 1 else "a new store" if made[:1] != [new] else "a new workspace"
    way = f"; for {which}: mkdir -p {' '.join(map(quoted_path, made))}"
    if store is None:
        names = "name a directory for the durable copy, which may be empty: --store DIR"
        raise LocateError(
            "; ".join(["no store is given, and the plain format has no default for it", *lacks]),
            f"name both sides: --workspace DIR --store DIR{way}" if lacks else names,
        )
    if lacks:
        raise LocateError("; ".join(lacks), f"check the path{'s' if len(lacks) > 1 else ''}{way}, then run again")


def _not_there(missing: Mapping[str, str]) -> list[str]:
    """Return that these sides are no directories."""
    return [f"{option}: {path} does not exist" for option, path in missing.items()]


def _is_known_though_gone(request: Request) -> bool:
    """Tell whether a project that is gone has sessions of Claude Code, or a store of them."""
    from reconcile.adapters.claude_code.directories import project_at

    start = request.path(request.workspace or "")
    return not os.path.lexists(start) and project_at(request) == start


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
        kind = "a dangling symbolic link" if os.path.islink(roots.workspace) else "a file"
        raise LocateError(
            f"{roots.workspace}: {kind} is in the place of the workspace directory",
            "move it away, then run again: reconcile recover",
        )
    return _checked(roots)


class NoWorkspaceError(LocateError):
    """The directory belongs to no project of any format."""


class _LostMarkerError(LocateError):
    """The ``.jp`` of a known checkout is gone."""


def _detect_format(request: Request) -> str:
    """Return the format of the workspace that is there."""
    from reconcile.adapters.jp.roots import find_project, silos_of

    start = request.path(request.workspace or "")
    if find_project(start) is not None:
        return "jp"
    from reconcile.adapters.jp.lost_checkouts import known_checkouts

    if (lost := known_checkouts(request, silos_of(request)).nearest_lost(start)) is not None:
        raise _LostMarkerError(
            f"{lost}: the .jp directory of this checkout is missing",
            "restore it: reconcile recover (or git checkout -- .jp)",
        )
    if (other := format_at(start) or unmarked_format(request)) is not None:
        return other
    raise NoWorkspaceError(
        f"no workspace in {start} or above it (no .jp directory, no sessions of Claude Code)",
        "change to the project, or name it with -w DIR; list your projects: reconcile ls --all\n"
        "for any other directory: --format plain --workspace DIR --store DIR",
    )


def formats_at(request: Request, *, source: str | None = None, recovers: bool = False) -> tuple[str, ...]:
    """Return the formats of a project that has several, first the one that `locate` takes; empty with one or none.

    Sessions are in the user's home, so that they may be beside any other format. With ``recovers``, they count also
    where only `locate_moved` knows of them; ``source`` is its. Raises `LocateError`, `OSError`.
    """
    from reconcile.adapters.claude_code.places import FORMAT

    if request.store is not None or not os.path.isdir(request.path(request.workspace or "")):
        return ()
    there = (request.workspace, request.store, source, request.cwd, request.environ, request.platform)
    if not (locate_moved(*there) if recovers else _has_sessions(request)):
        return ()
    try:
        first = _detect_format(request)
    except _LostMarkerError:
        first = "jp"
    except LocateError:  # which `locate` raises, too
        return ()
    return () if first == FORMAT else (first, FORMAT)


def _has_sessions(request: Request) -> bool:
    """Tell whether the checkout has sessions, or a store of them; also if its directory of them can't be read."""
    from reconcile.adapters.claude_code.places import may_have_sessions

    try:
        if not may_have_sessions(request):
            return False
    except OSError:  # the home can't be read, and nothing else says that there are any
        return False
    from reconcile.adapters.claude_code.directories import project_at

    try:
        return project_at(request) is not None
    except OSError:
        return True


def unmarked_format(request: Request) -> str | None:
    """Return the format of a project without a mark; None inside a JP project.

    Its folder is gone but has a durable copy, or its sessions are in the user's home.
    """
    from reconcile.adapters.jp.roots import find_project

    if find_project(request.path(request.workspace or "")) is not None:
        return None
    if (lost := next((name for name in FOLDERS if lost_project(name, request) is not None), None)) is not None:
        return lost
    from reconcile.adapters.claude_code.directories import project_at

    return "claude-code" if project_at(request) is not None else None


def _refuse_encoding() -> None:
    """Raise `LocateError` unless Python uses UTF-8 for file names, as JP does."""
    encoding = sys.getfilesystemencoding()
    if encoding != "utf-8":
        raise LocateError(
            f"Python uses {encoding} for file names, but reconcile needs UTF-8",
            "set PYTHONUTF8=1 in the environment",
        )


def _checked(roots: Roots) -> Roots:
    """Return two sides that can be used, with the store's link resolved. Raises `LocateError`."""
    refuse_link(roots.workspace_conversations)
    _refuse_overlap(roots)
    return _with_link_followed(roots)


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
            how = "they are the same directory"
        elif within(real_workspace, real_store):
            how = "the workspace is inside the store"
        elif within(real_store, real_workspace):
            how = "the store is inside the workspace"
        else:
            continue
        raise LocateError(
            f"the workspace and the store overlap: {how} ({workspace} and {store})",
            "choose two separate directories with --workspace and --store",
        )


def _jp(request: Request) -> Roots:
    from reconcile.adapters.jp.roots import locate_jp

    return locate_jp(request)


def _plain(request: Request) -> Roots:
    """Return the two sides as named; the workspace is the current directory by default."""
    assert request.store is not None  # noqa: S101 - `locate` has refused that
    workspace, store = request.path(request.workspace or ""), request.path(request.store)
    return Roots(
        format="plain",
        workspace=workspace,
        project=workspace,
        store=store,
        store_exists=True,
        workspace_id=None,
        workspace_identity=directory_identity(workspace),
        key="plain-" + digest(os.fsencode(os.path.realpath(store))),
    )


def locate_moved(
    workspace_arg: str | None,
    store_arg: str | None,
    source: str | None,
    cwd: str,
    environ: Mapping[str, str],
    platform: str,
) -> Roots | None:
    """Return the sides of Claude Code's sessions for `reconcile recover`; None if there are none.

    ``source``: the path of the project before it was moved. Nothing is written. Raises `LocateError`.
    """
    from reconcile.adapters.claude_code.directories import is_known_source, locate_claude_code, project_at

    request = Request(workspace_arg, store_arg, cwd, environ, platform)
    known = source is not None and is_known_source(request.path(source), request)
    if not known and project_at(request) is None:
        return None
    return _checked(locate_claude_code(request, source))


def _claude_code(request: Request) -> Roots:
    from reconcile.adapters.claude_code.directories import locate_claude_code

    return locate_claude_code(request)


def _claude_shared(request: Request) -> Roots:
    from reconcile.adapters.claude_code.directories import locate_shared

    return locate_shared(request)


FINDERS: dict[str, Finder] = {
    "claude-code": _claude_code,
    "claude-shared": _claude_shared,
    "claudesidian": partial(locate_fixed, "claudesidian"),
    "jp": _jp,
    "leslie": partial(locate_fixed, "leslie"),
    "plain": _plain,
}
"""The finder of each format."""
