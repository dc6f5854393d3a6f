"""Locates the two roots of JP by JP's own rules (docs/design/formats/jp.md#paths), without writing anything.

JP replaces a damaged ``.jp/.id`` by a new id, and merges the silos of one id at every start. Neither is done here: a
new id selects another store, and a merge without a lock loses data.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from reconcile.adapters.roots import LocateError, Roots
from reconcile.fs.home import home_directory
from reconcile.fs.paths import directory_identity, is_absence, is_directory, nearest_path, quoted_path, status_at
from reconcile.model.commands import typed
from reconcile.model.names import CHILDREN, ID_FILE, LINK, MARKER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reconcile.adapters.roots import Request
    from reconcile.model.snapshot import Unreadable

_ID_CHARACTERS = frozenset(b"0123456789abcdefghijklmnopqrstuvwxyz")
_ID_LENGTH = 5
_ID_LIMIT = 65536


class UnreadIdError(LocateError):
    """An id exists, or may exist, and can't be read."""


def locate_jp(request: Request) -> Roots:
    """Return project, id and silo, each by JP's own rule; ``--store`` selects another silo.

    Raises `LocateError`.
    """
    start = request.path(request.workspace or "")
    project = find_project(start)
    if project is None:
        raise LocateError(
            f"no {MARKER} directory in {start} or above it",
            "change to the project, or name it with --workspace\n"
            "if .jp was deleted, restore it: reconcile recover, or git checkout -- .jp",
        )
    if project != start:
        _refuse_lost(start, project, request)
    return _roots(request, project, read_id(os.path.join(project, MARKER)))


def _refuse_lost(start: str, project: str, request: Request) -> None:
    """Raise `LocateError` if there was a nearer project: the one further up is not meant then."""
    from reconcile.adapters.jp.lost_checkouts import (
        known_checkouts,
    )  # imported here: most runs start in the project itself

    lost = known_checkouts(request, silos_of(request)).nearest_lost(start)
    if lost is not None:
        raise LocateError(
            f"{lost}: the {MARKER} directory of this checkout is missing ({project} is another project)",
            f"restore it: reconcile recover\nor use the other project: --workspace {typed(project)}",
        )


def locate_for_recovery(request: Request, source: str | None) -> Roots:
    """Return the two sides of a checkout whose ``.jp`` or ``.id`` may be gone.

    ``source`` is another checkout of its workspace. The id is found through its own file, reconcile's record of this
    path or of ``source``, a silo's ``storage`` link, or ``--store``. Nothing is written. Raises `LocateError`.
    """
    from reconcile.adapters.jp.lost_checkouts import known_checkouts

    start = request.path(request.workspace or "")
    known = known_checkouts(request, silos_of(request))
    try:
        project = known.nearest_lost(start) or _meant(start, named=source is not None or request.store is not None)
        has_id = status_at(os.path.join(project, MARKER, ID_FILE), follow=False) is not None
    except OSError as error:
        raise LocateError(
            f"{error.filename}: can't be read ({error.strerror}), so the project to recover is unknown",
            "make it readable, then run again",
        ) from None
    if known.unread and request.store is None and not (has_id and project == start):
        _refuse_unread(known.unread, project, has_id=has_id)
    if has_id:
        return _roots(request, project, read_id(os.path.join(project, MARKER)))
    ids = known.ids_of(request.path(source)) if source is not None else ()
    ids = ids or known.ids_of(project)
    if request.store is not None:
        ids = (os.path.basename(request.path(request.store)).rpartition("-")[2],)
    if not ids and source is not None:
        near = nearest_path(request.path(source), known.ids)
        raise LocateError(
            f"--from: no checkout is known at {source}, nor at {project}, and {MARKER}/{ID_FILE} is missing here",
            f"did you mean --from {typed(near)}?" if near else "name the store of that workspace with --store",
        )
    if not ids or not _is_id(os.fsencode(ids[0])):
        raise LocateError(
            f"{project}: no project is known here (no {MARKER}/{ID_FILE}, no sessions of Claude Code)",
            "if you have moved or renamed the project: reconcile recover --from OLD-PATH\n"
            "otherwise change to a project, or name it with -w DIR; list your projects: reconcile ls --all\n"
            "in a project of JP, --from can also name another checkout of it, and --store its store",
        )
    return _roots(request, project, ids[0])


def _refuse_unread(unread: Sequence[Unreadable], project: str, *, has_id: bool) -> None:
    """Raise `LocateError`: an unreadable record may be that of the checkout, with another id or a nearer project."""
    words = "; ".join(f"{record.file}: {record.words}" for record in unread)
    if has_id:
        unknown, way_on = (
            f"whether a nearer project than {project} was lost",
            f"name that one: --workspace {typed(project)}",
        )
    else:
        unknown, way_on = f"which workspace was in {project}", "name its store with --store"
    raise LocateError(f"{words}, so it is unknown {unknown}", f"make it readable, or {way_on}")


def _meant(start: str, *, named: bool) -> str:
    """Return the directory to recover if no record exists: the nearest project or repository.

    ``named``: the user has named what to restore, so a project further up is not meant. Raises `OSError` if this is
    unknown.
    """
    at = start
    while status_at(os.path.join(at, ".git"), follow=False) is None:
        if is_directory(os.path.join(at, MARKER)):
            return at if at == start or not named else start
        above = os.path.dirname(at)
        if above == at:
            return start
        at = above
    return at


def silos_of(request: Request) -> str:
    """Return the directory of JP's stores."""
    data = os.path.join(request.cwd, user_data_dir(request.environ, request.platform))
    return os.path.join(data, "workspace")


def _roots(request: Request, project: str, workspace_id: str) -> Roots:
    workspace = os.path.join(project, MARKER)
    siblings: tuple[str, ...] = ()
    if request.store is not None:
        store = _named_store(request.path(request.store))
        _refuse_foreign(store, workspace_id)
    else:
        data = os.path.join(request.cwd, user_data_dir(request.environ, request.platform))
        store, siblings = find_silo(data, project, workspace_id)
        if not is_directory(store):
            _refuse_another_id(os.path.dirname(store), workspace, workspace_id)
    return Roots(
        format="jp",
        workspace=workspace,
        project=project,
        store=store,
        store_exists=is_directory(store),
        workspace_id=workspace_id,
        workspace_identity=directory_identity(workspace),
        key=f"jp-{workspace_id}",
        siblings=siblings,
        name_elsewhere=f"jp-{workspace_id}",
    )


def find_project(start: str) -> str | None:
    """Return the nearest directory, from ``start`` upward, with a directory ``.jp`` or a link to one.

    ``start`` may also be the ``.jp`` itself. A file of that name is ignored, as in JP. Raises `LocateError` if a
    directory can't be read.
    """
    if os.path.basename(start) == MARKER and os.path.isdir(start):
        return os.path.dirname(start)
    at = start
    try:
        while not is_directory(os.path.join(at, MARKER)):
            above = os.path.dirname(at)
            if above == at:
                return None
            at = above
    except OSError as error:  # a project further up is not meant
        raise LocateError(
            f"{at}/{MARKER}: can't be read ({error.strerror})", "make it readable, or name the project with --workspace"
        ) from None
    return at


def read_id(workspace: str) -> str:
    """Return the workspace id in ``.id``: its last line, five characters. Raises `LocateError`."""
    path = os.path.join(workspace, ID_FILE)
    restored = "restore it: reconcile recover, or git checkout -- .jp/.id"
    hint = f"in a new project, make the file: jp init\notherwise {restored}"
    broken = hint.replace(restored, f"move it away, and {restored}")  # `recover` replaces no file
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise LocateError(f"{path}: not a file, so the workspace id is unknown", broken)
        with open(path, "rb") as file:
            content = file.read(_ID_LIMIT)
    except FileNotFoundError:
        raise LocateError(f"{path}: the file with the workspace id is missing", hint) from None
    except OSError as error:
        message = f"{path}: can't be read ({error.strerror}), so the workspace id is unknown"
        if isinstance(error, PermissionError):
            closed = path if os.access(workspace, os.X_OK) else workspace
            hint = f"make it readable: chmod u+rwX {quoted_path(closed)}"
        raise (LocateError if is_absence(error) else UnreadIdError)(message, hint) from None
    last = content.removesuffix(b"\n").rpartition(b"\n")[2].removesuffix(b"\r")
    if not _utf8(content) or not _is_id(last):
        found = "the file is empty" if not content.strip() else "found " + f"{last[:40]!r}"[1:]
        raise LocateError(f"{path}: the last line must be an id of five characters, 0-9 or a-z ({found})", broken)
    return last.decode()


def _is_id(text: bytes) -> bool:
    return len(text) == _ID_LENGTH and _ID_CHARACTERS.issuperset(text)


def user_data_dir(environ: Mapping[str, str], platform: str) -> str:
    """Return the data directory of JP (docs/design/formats/jp.md#user-data-directory).

    It may be relative, as ``JP_USER_DATA_DIR`` may.
    """
    own, xdg = _usable(environ, "JP_USER_DATA_DIR"), _usable(environ, "XDG_DATA_HOME")
    if own:
        return own
    if xdg and os.path.isabs(xdg):
        return os.path.join(xdg, "jp")
    if platform == "win32":
        local = environ.get("LOCALAPPDATA") or os.path.join(home_directory(environ), "AppData", "Local")
        return os.path.join(local, "jp", "data")
    if platform == "darwin":
        return os.path.join(home_directory(environ), "Library", "Application Support", "jp")
    return os.path.join(home_directory(environ), ".local", "share", "jp")


def find_silo(data: str, project: str, workspace_id: str) -> tuple[str, tuple[str, ...]]:
    """Return the silo that JP would choose or create, and the other silos with the same id."""
    parent, slug = os.path.join(data, "workspace"), os.path.basename(project)
    preferred = f"{slug}-{workspace_id}" if slug else workspace_id
    names = _candidates(parent, workspace_id)
    if preferred in names or not names:
        chosen = preferred
    else:
        chosen = max(names, key=lambda name: (_directory_mtime(os.path.join(parent, name)), os.fsencode(name)))
    siblings = tuple(os.path.join(parent, name) for name in sorted(names) if name != chosen)
    return os.path.join(parent, chosen), siblings


def _candidates(parent: str, workspace_id: str) -> list[str]:
    """Return directories whose name is the id, or ends in a dash and the id; links to directories count."""
    try:
        with os.scandir(parent) as entries:
            return [
                entry.name
                for entry in entries
                if (entry.name == workspace_id or entry.name.endswith(f"-{workspace_id}")) and entry.is_dir()
            ]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise LocateError(
            f"{parent}: can't be read ({error.strerror}), so the store is unknown",
            "make it readable, or name the store with --store",
        ) from None


def _directory_mtime(path: str) -> int:
    """Return the *dir-mtime* of JP: that of the newest entry, with links followed.

    The entry ``storage`` counts as its target, the ``.jp``.
    """
    times: list[int] = []
    try:
        for name in os.listdir(path):
            status = status_at(os.path.join(path, name))
            if status is not None:  # no dangling link
                times.append(status.st_mtime_ns)
        return max(times) if times else os.stat(path).st_mtime_ns
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise LocateError(
            f"{path}: can't be read ({error.strerror}), so the last used store is unknown",
            "make it readable, or name the store with --store",
        ) from None


def _named_store(path: str) -> str:
    """Return the silo of ``--store``. A silo without ``conversations/`` is an empty store."""
    if os.path.basename(path) == CHILDREN and not os.path.isdir(os.path.join(path, CHILDREN)):
        raise LocateError(
            f"--store: {path} is the {CHILDREN} directory, not the store that holds it",
            f"use --store {typed(os.path.dirname(path))}",
        )
    return path


def _refuse_foreign(store: str, workspace_id: str) -> None:
    """Raise `LocateError` if a named store is linked to a workspace with another id: both would be mixed."""
    linked = os.path.join(store, LINK)
    try:
        other = read_id(linked) if os.path.islink(linked) else workspace_id
    except UnreadIdError:  # it may be another id
        raise
    except LocateError:  # a dangling link
        return
    if other != workspace_id:
        raise LocateError(
            f"--store: the store belongs to another workspace, {os.path.realpath(linked)} "
            f"(its id is {other}, the id here is {workspace_id})",
            "name the store of this workspace, or leave out --store: the id in .jp/.id finds it",
        )


def _refuse_another_id(parent: str, workspace: str, workspace_id: str) -> None:
    """Raise `LocateError` if the id has no store but a store of another id is linked here: the id was changed."""
    try:
        names = sorted(os.listdir(parent))
    except OSError:
        return
    for name in names:
        linked = os.path.join(parent, name, LINK)
        if os.path.islink(linked) and os.path.realpath(linked) == os.path.realpath(workspace):
            old = name.rpartition("-")[2]
            raise LocateError(
                f"{os.path.join(workspace, ID_FILE)}: the id {workspace_id} has no store; "
                f"the store of this workspace is {os.path.join(parent, name)}",
                f"write {old} as the last line of that file, or make a new store and name it with --store",
            )


def _usable(environ: Mapping[str, str], name: str) -> str:
    """Return the value of a variable; empty if it is not UTF-8."""
    value = environ.get(name, "")
    return value if _utf8(os.fsencode(value)) else ""


def _utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
