"""Finds the directory in which Claude Code keeps the sessions of a project, and the sessions that processes have open.

See docs/design/formats/claude-code.md#layout. Only `move_home` writes.
"""

from __future__ import annotations

import json
import os
import re
import time
from contextlib import closing, suppress
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from reconcile.adapters.claude_code.places import FORMAT, SHARED, home_of, inside_checkout, place_of, start_of
from reconcile.adapters.claude_code.shared_folder import folder_of, shared_folder
from reconcile.adapters.claude_code.stores import (
    StorePlace,
    is_other_repository,
    key_of,
    name_elsewhere,
    store_place,
)
from reconcile.adapters.roots import LocateError, Roots, refuse_any_link, store_of
from reconcile.formats.claude_code.format import LiveSessions, owner_of
from reconcile.formats.claude_code.lines import parsed, raw_lines
from reconcile.formats.claude_code.names import directory_name
from reconcile.fs.hashing import chunks_of
from reconcile.fs.mutations import Root
from reconcile.fs.paths import directory_identity, is_directory, names_in, open_regular, status_at
from reconcile.fs.posix import MOST_PID, is_alive

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reconcile.adapters.roots import Request
    from reconcile.formats.claude_code.lines import Line

_READ_OF_A_SESSION = 256
"""Lines in which the directory of a session is looked for; the first turn has it."""
_CHUNK = 1 << 16
"""Bytes of a session that are read at once: its first lines have its directory."""
_LIMIT = 1 << 16
"""Bytes that are read of the file of a process."""
_TRIES, _PAUSE = 3, 0.01
"""How often it is read while the process runs, and the seconds between."""


class PlaceIn(Struct, frozen=True):
    """Returns the place of the sessions of a project; equal for the same home, as `Roots` are compared."""

    home: str

    def __call__(self, project: str) -> str:
        """Return the place in this home."""
        return place_of(self.home, project)


def sessions_directory(home: str, project: str) -> str | None:
    """Return the directory with the sessions of a project; None if the program has none.

    The records decide: a session names its directory as ``cwd``. Raises `OSError` if this is unknown.
    """
    place = place_of(home, project)
    return place if is_directory(place) and _belongs(place, project) else None


def _belongs(place: str, project: str) -> bool:
    """Tell whether the directory has sessions of the project, and not only those of another path with the same name.

    A session that was moved here was begun in a path with another name, or in one that is gone.
    """
    own, others = os.path.realpath(project), set[str]()
    for cwd in begun_in(place):
        if cwd not in others:
            real = os.path.realpath(cwd)
            if real == own or directory_name(real) != os.path.basename(place) or not is_directory(real):
                return True
            others.add(cwd)
    return not others


def begun_in(place: str) -> Iterator[str]:
    """Yield the directory in which each session was begun, the newest session first."""
    times: dict[str, int] = {}
    with os.scandir(place) as entries:
        for entry in entries:
            if entry.name.endswith(".jsonl") and entry.is_file(follow_symlinks=False):
                with suppress(FileNotFoundError):  # the program deletes old sessions, here and below
                    times[entry.path] = entry.stat(follow_symlinks=False).st_mtime_ns
    for path in sorted(times, key=times.__getitem__, reverse=True):
        cwd = None
        with suppress(FileNotFoundError), open_regular(path) as file:
            read = raw_lines(chunks_of(file.fileno(), _CHUNK))
            lines = (parsed(raw) for raw, _ in islice(read, _READ_OF_A_SESSION))
            cwd = next((cwd for line in lines if (cwd := cwd_of(line)) is not None), None)
        if cwd is not None:
            yield cwd


def cwd_of(line: Line | None) -> str | None:
    """Return the directory that a line names, None without an absolute path."""
    value = None if line is None else line.cwd
    return value if isinstance(value, str) and os.path.isabs(value) and "\0" not in value else None


def locate_claude_code(request: Request, source: str | None = None) -> Roots:
    """Return the sides of the nearest project with sessions, or of one whose sessions are only in its store.

    ``source`` is the path of the project before it was moved: its store is used if this path has none.

    Raises `LocateError`.
    """
    start, home = start_of(request), home_of(request)
    named = source is not None or request.store is not None
    project = project_at(request) or (start if named else None)
    if project is None:
        raise LocateError(
            f"Claude Code has no sessions of {start} or a directory above it (in {os.path.join(home, 'projects')})",
            "change to the project, or name it with --workspace\n"
            "if you have moved or renamed it: reconcile recover --from OLD-PATH",
        )
    place = store_place(project, request)
    former = "" if source is None else request.path(source)
    earlier = store_place(former, request).path if former and not is_other_repository(project, former, request) else ""
    if earlier and not is_directory(place.path) and is_directory(earlier):
        place = StorePlace(earlier, store_of(FORMAT, project, request))
    if request.store is not None:
        place = StorePlace(request.path(request.store))
    return Roots(
        format=FORMAT,
        workspace=place_of(home, project),
        project=project,
        store=place.path,
        store_exists=is_directory(place.path),
        workspace_id=None,
        # The directory of the program stands for a project that is gone, so that each of several has its own state.
        workspace_identity=directory_identity(project) or directory_identity(place_of(home, project)),
        key=key_of(place.path),
        inner="",
        link=place.link,
        workspace_of=PlaceIn(home),
        folder=folder_of(project, request),
        name_elsewhere=name_elsewhere(place.path),
    )


def locate_shared(request: Request) -> Roots:
    """Return the sides of the sessions that a project shares: the folder of its repository, and the same store.

    Raises `LocateError`, also for a link in the place of the folder or above it.
    """
    live = locate_claude_code(request)
    folder = shared_folder(live.project, request)
    if os.path.realpath(folder.path) != folder.path:
        refuse_any_link(folder.path)
    return live._replace(
        format=SHARED,
        workspace=folder.path,
        project=folder.top,
        workspace_identity=directory_identity(folder.top),
        key=key_of(live.store, SHARED),
        is_store_private=True,
        folder="",
        workspace_of=None,
        name_elsewhere="",
    )


def homes_of(session: str, projects: str) -> list[str]:
    """Return the directories of projects that have a session, by the name of its file. Raises `OSError`."""
    try:
        names = sorted(os.listdir(projects))
    except FileNotFoundError:
        return []
    return [name for name in names if os.path.lexists(os.path.join(projects, name, session))]


def held_elsewhere(records: Iterable[str], live: str) -> dict[str, str]:
    """Return the sessions of records that another project has than the one of ``live``, with its directory.

    A session has one live home. Raises `OSError`.
    """
    projects, here = os.path.split(live)
    owners = {owner for owner in map(owner_of, records) if owner is not None}
    found = dict[str, str]()
    for name in names_in(projects) if owners else ():
        path = os.path.join(projects, name)
        with suppress(OSError):  # it has none that is known
            for owner in owners.intersection(os.listdir(path) if name != here else ()):
                found.setdefault(owner, path)
    return dict(sorted(found.items()))


def restorable_from(project: str, records: set[str], roots: Roots) -> set[str]:
    """Return the records of a project that is gone, without sessions that a third one has: they stay with that."""
    if roots.format != FORMAT or not records:
        return records
    try:
        elsewhere = held_elsewhere(records, roots.workspace)
    except OSError:
        return records
    taken = {owner for owner, at in elsewhere.items() if os.path.basename(at) != directory_name(project)}
    return {record for record in records if owner_of(record) not in taken}


def project_at(request: Request) -> str | None:
    """Return the nearest directory, from the start up to the top of its checkout, that has sessions, or a store.

    A colleague may have shared sessions of it.

    None without any. Without git, only the start counts: a home directory may have sessions of its own.
    """
    home, start = home_of(request), start_of(request)
    above = inside_checkout(start)
    for at in above:
        if sessions_directory(home, at) is not None:
            return at
    by_path = next((at for at in above if is_directory(store_of(FORMAT, at, request))), None)
    if by_path is not None:
        return by_path
    with_shared = next((at for at in above if folder_of(at, request)), None)
    if with_shared is not None:
        return with_shared
    return start if is_directory(store_place(start, request).path) else None


def is_known_source(project: str, request: Request) -> bool:
    """Tell whether an earlier path of a project has a store; or sessions, if it is gone."""
    if is_directory(store_place(project, request).path):
        return True
    return status_at(project) is None and sessions_directory(home_of(request), project) is not None


class Orphans(NamedTuple):
    """Entries of directories whose project is gone, by their paths below ``projects``. ``left`` are open, and stay."""

    projects: str
    entries: tuple[str, ...]
    left: tuple[str, ...] = ()


def find_orphans(roots: Roots, gone: Iterable[str]) -> Orphans:
    """Return what the program has of projects that are gone and the present project lacks.

    Raises `OSError` if this is unknown.
    """
    projects = os.path.dirname(roots.workspace)
    home = os.path.dirname(projects)
    live, entries, left = live_sessions(home), list[str](), list[str]()
    for project in gone:
        place = None if os.path.lexists(project) else sessions_directory(home, project)
        if place is None or place == roots.workspace:
            continue
        for name in sorted(os.listdir(place)):
            if not os.path.lexists(os.path.join(roots.workspace, name)):
                path = f"{os.path.basename(place)}/{name}"
                (left if name.removesuffix(".jsonl") in live else entries).append(path)
    return Orphans(projects, tuple(entries), tuple(left))


def move_home(orphans: Orphans, workspace: str) -> None:
    """Move entries into the directory of the present project. Nothing is copied: a session has one home at any moment.

    An entry whose name is taken there meanwhile stays. A directory that is empty then is removed. Raises `OSError`.
    """
    target = os.path.basename(workspace)
    with closing(Root(orphans.projects, is_private=True)) as root:
        root.make_directories(target)
        for path in orphans.entries:
            with suppress(FileExistsError, FileNotFoundError):
                root.rename_new(path, f"{target}/{path.partition('/')[2]}")
        for place in {path.partition("/")[0] for path in orphans.entries}:
            root.remove_if_empty(place)


def live_sessions(home: str) -> LiveSessions:
    """Return the sessions that running processes have open. Raises `OSError` if the list can't be read.

    See docs/design/formats/claude-code.md#processes-that-run. A process that was killed leaves its file.
    """
    live = LiveSessions()
    for name in _names(os.path.join(home, "sessions")):
        with suppress(OSError):
            value = _of_process(os.path.join(home, "sessions", name), int(name.removesuffix(".json")))
            if isinstance(value, dict) and isinstance(value.get("sessionId"), str) and _runs(value):
                live[value["sessionId"]] = value["pid"]
    return live


def _of_process(path: str, pid: int) -> object:
    """Return the value of the file of a process; None if it is damaged. Raises `OSError`.

    A process that runs may be writing it at this moment, so it is read again then.
    """
    for _ in range(_TRIES):
        with suppress(ValueError, RecursionError), open_regular(path) as file:
            return json.loads(file.read(_LIMIT))
        if not (0 < pid <= MOST_PID and is_alive(pid)):
            break
        time.sleep(_PAUSE)
    return None


def _names(directory: str) -> list[str]:
    try:
        return [name for name in os.listdir(directory) if re.fullmatch(r"[0-9]{1,18}\.json", name)]
    except FileNotFoundError:
        return []


def _runs(value: dict[str, object]) -> bool:
    """Tell whether a process runs, by its number, and by the time of its start if the system tells it."""
    pid = value.get("pid")
    if type(pid) is not int or not 0 < pid <= MOST_PID:
        return False
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b") ")[2].split()
        return str(value.get("procStart", "")) in ("", fields[19].decode())
    except FileNotFoundError:
        if os.path.isdir("/proc/self"):
            return False
    return is_alive(pid)
