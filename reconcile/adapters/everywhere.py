"""Every project of this user that `reconcile --all` keeps: those of Claude Code, and those that a run has seen before.

A project of another format that no run has seen is none of them: its first run decides what is published, and that is
its user's to begin. For the same reason a project whose sides aren't those of its last run is left out, and named.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from reconcile.adapters.claude_code.places import FORMAT, SHARED
from reconcile.adapters.claude_code.projects import live_directory, projects_directory
from reconcile.adapters.locate import FINDERS, locate, refuse_unknown
from reconcile.adapters.roots import LocateError
from reconcile.errors import ReconcileError
from reconcile.formats.claude_code.names import directory_name
from reconcile.fs.paths import directory_identity, names_in
from reconcile.model.baseline import LOST
from reconcile.model.commands import typed
from reconcile.model.names import MARKER
from reconcile.model.snapshot import Unreadable, is_same_directory
from reconcile.state.checkouts import SeenCheckout, seen_checkouts
from reconcile.state.directory import state_directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reconcile.adapters.roots import Request, Roots


_UNKNOWN = "its project is unknown, as no session has its path as `cwd`; run it in the project: cd PROJECT && reconcile"


class Target(NamedTuple):
    """A project of one format; ``project`` is a path, which may be gone if the format's sides are in the home."""

    project: str
    format: str


class LeftOut(NamedTuple):
    """A path that ``--all`` leaves out, and why.

    ``is_failure``: it can't be read, so that something may be missing. ``lost``: the format of a workspace that is gone
    while its project is there, so that `recover` may restore it; else empty. Of Claude Code it is given if no project
    has a session, but some had.
    """

    path: str
    why: str
    is_failure: bool = False
    lost: str = ""


class Everywhere(NamedTuple):
    """The projects of a user. ``programs`` is Claude Code's directory, which has one directory for each project."""

    targets: tuple[Target, ...]
    left_out: tuple[LeftOut, ...]
    programs: str


def every_project(request: Request, only: str | None = None) -> Everywhere:
    """Return every project of the user, by path; ``only`` limits them to a format. Nothing is written.

    A folder with shared sessions is no project of its own, unless ``only`` names its format.

    The environment and the system of ``request`` count, not its paths. A directory of Claude Code that can't be read is
    an error (`OSError`); anything else that can't is left out. An unknown format is an error (`LocateError`).
    """
    if only is not None:
        refuse_unknown(only)
    targets, left_out = set[Target](), list[LeftOut]()
    states = os.path.dirname(state_directory(f"{FORMAT}-", request.environ, request.platform))
    seen = [(each, name) for each in seen_checkouts(states) if (name := _format_of(each)) is not None]
    for each, name in seen:
        if name != only and (only is not None or name == SHARED):
            continue
        if isinstance(each, Unreadable):
            left_out.append(LeftOut(each.file, each.words, is_failure=True))
            continue
        try:
            if name == FORMAT:
                targets.update(_with_sessions(each, request))
            elif (why := _why_not(each, name, request)) is None:
                targets.add(Target(each.project, name))
            elif why:
                left_out.append(LeftOut(each.project, why, lost="jp" if _is_deleted(each, name) else ""))
        except OSError as error:
            left_out.append(LeftOut(each.project, f"can't be read ({error.strerror})", is_failure=True))
    if only in (None, FORMAT):
        before = (Target(each.project, name) for each, name in seen if not isinstance(each, Unreadable))
        targets, more = _of_live_directories(targets, before, request)
        left_out += more
        if not any(target.format == FORMAT for target in targets):
            left_out += _without_any_session(seen)
        else:
            targets.update(_with_saved_sessions(seen, request))
    known = {target.project for target in targets}
    told = dict.fromkeys(each for each in left_out if each.lost or each.path not in known)
    return Everywhere(tuple(sorted(targets)), tuple(sorted(told)), projects_directory(request))


def with_stores(request: Request, only: str | None = None) -> set[Target]:
    """Return the projects of Claude Code that a run has seen and that are there: also with sessions in the store only.

    ``only``: as in `every_project`.
    """
    if only not in (None, FORMAT):
        return set()
    states = os.path.dirname(state_directory(f"{FORMAT}-", request.environ, request.platform))
    seen = (each for each in seen_checkouts(states, f"{FORMAT}-") if isinstance(each, SeenCheckout))
    return {Target(each.project, FORMAT) for each in seen if os.path.isdir(each.project)}


def _without_any_session(seen: Iterable[tuple[SeenCheckout | Unreadable, str]]) -> Iterator[LeftOut]:
    """Yield the projects that a run has seen, where no project has a session: Claude Code's directory may be lost."""
    for each, name in seen:
        if name == FORMAT and not isinstance(each, Unreadable) and os.path.isdir(each.project):
            way = f"cd {typed(each.project)} && reconcile recover"
            yield LeftOut(
                each.project, f"Claude Code has no session of it; the store may have some: {way}", lost=FORMAT
            )


def _with_saved_sessions(seen: Iterable[tuple[SeenCheckout | Unreadable, str]], request: Request) -> Iterator[Target]:
    """Yield the projects of Claude Code that a run has seen, if their stores have sessions: all may be deleted."""
    for each, name in seen:
        if name != FORMAT or isinstance(each, Unreadable) or not os.path.isdir(each.project):
            continue
        with suppress(ReconcileError, OSError):  # a run there has more to tell
            roots = _roots(target := Target(each.project, FORMAT), request)
            if roots.key == each.key and any(name.endswith(".jsonl") for name in names_in(roots.store_conversations)):
                yield target


def _of_live_directories(
    known: set[Target], before: Iterable[Target], request: Request
) -> tuple[set[Target], list[LeftOut]]:
    """Return the targets with those of Claude Code's directories, and the directories whose project is unknown.

    ``before``: those that runs have seen. Sessions that `recover` has moved there name another path.
    """
    targets, left_out, top = set(known), list[LeftOut](), projects_directory(request)
    candidates = known.union(before)
    for name in names_in(top):
        path = os.path.join(top, name)
        try:
            target = project_of_directory(path, candidates)
            if target is None and live_directory(path) is not None:
                left_out.append(LeftOut(path, _UNKNOWN))
        except OSError as error:
            target = None
            left_out.append(LeftOut(path, f"can't be read ({error.strerror})", is_failure=True))
        targets.update(() if target is None else (target,))
    return targets, left_out


def project_of_directory(path: str, targets: Iterable[Target]) -> Target | None:
    """Return whose sessions are in a directory of Claude Code; ``targets`` are those that are known already."""
    live = live_directory(path)
    if live is None:
        return None
    if live.project is not None:
        return Target(os.path.realpath(live.project), FORMAT)
    name = os.path.basename(path)
    return next((each for each in targets if each.format == FORMAT and directory_name(each.project) == name), None)


def _format_of(seen: SeenCheckout | Unreadable) -> str | None:
    """Return the format of a state's directory, None if it is none of a state."""
    key = os.path.basename(os.path.dirname(seen.file)) if isinstance(seen, Unreadable) else seen.key
    return next((name for name in FINDERS if key.startswith(f"{name}-")), None)


def _with_sessions(seen: SeenCheckout, request: Request) -> Iterator[Target]:
    """Yield a known project of Claude Code if it is there and has sessions: also those that were begun elsewhere."""
    live = os.path.join(projects_directory(request), directory_name(seen.project))
    if os.path.isdir(seen.project) and live_directory(live) is not None:
        yield Target(seen.project, FORMAT)


def _why_not(seen: SeenCheckout, name: str, request: Request) -> str | None:
    """Return why a known checkout is left out, empty if it is gone; None if its sides are those of the last run."""
    target = Target(seen.project, name)
    if not os.path.isdir(seen.project):
        return ""
    here = f"run it in the project: cd {typed(seen.project)} && reconcile"
    try:
        roots = _roots(target, request)
    except LocateError as error:
        way = f"; {here} --format {name} --store DIR" if name == "plain" else ""
        if _is_deleted(seen, name):
            way = f"; if .jp was deleted, restore it: cd {typed(seen.project)} && reconcile recover"
        return f"{error.message.removeprefix(f'{seen.project}: ')}{way}"
    if roots.key != seen.key:
        return f"its store is not in its usual place; {here} --store DIR"
    identity = directory_identity(roots.identified)
    if not identity:
        return ""
    if not is_same_directory(identity, seen.identity):
        return f"another directory is there since its last run; {here}"
    store = directory_identity(roots.store_conversations)
    if seen.store_identity not in (None, LOST) and not is_same_directory(store, str(seen.store_identity)):
        return f"its store is another directory than at its last run, or was named with --store; {here}"
    return None


def _is_deleted(seen: SeenCheckout, name: str) -> bool:
    """Tell whether the ``.jp`` of a project that is there is gone."""
    return name == "jp" and not os.path.lexists(os.path.join(seen.project, MARKER))


def _roots(target: Target, request: Request) -> Roots:
    return locate(target.format, target.project, None, request.cwd, request.environ, request.platform)
