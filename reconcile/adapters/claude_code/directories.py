"""Finds the directory in which Claude Code keeps the sessions of a project, and the sessions that processes have open.

See docs/design/formats/claude-code.md#layout. Nothing is written.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

from reconcile.adapters.roots import LocateError, Roots, store_of
from reconcile.formats.claude_code.format import LiveSessions, directory_name
from reconcile.formats.claude_code.lines import parsed, raw_lines
from reconcile.fs.hashing import chunks_of, digest
from reconcile.fs.paths import directory_identity, is_directory, open_regular, with_parents
from reconcile.fs.posix import MOST_PID

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reconcile.adapters.roots import Request

FORMAT = "claude-code"
_READ_OF_A_SESSION = 256
"""Lines in which the directory of a session is looked for; the first turn has it."""
_SESSIONS = 3
"""Sessions of a directory that are asked for theirs."""
_LIMIT = 1 << 16
"""Bytes that are read of the file of a process."""


def home_of(request: Request) -> str:
    """Return the directory of the program: ``$CLAUDE_CONFIG_DIR``, or ``~/.claude``."""
    chosen = request.environ.get("CLAUDE_CONFIG_DIR")
    if chosen:
        return os.path.normpath(os.path.join(request.cwd, chosen))
    return os.path.join(request.environ.get("HOME") or os.path.expanduser("~"), ".claude")


def sessions_directory(home: str, project: str) -> str | None:
    """Return the directory with the sessions of a project; None if the program has none.

    The records decide: a session names its directory as ``cwd``. Raises `OSError` if this is unknown.
    """
    place = os.path.join(home, "projects", directory_name(project))
    return place if is_directory(place) and _belongs(place, project) else None


def _belongs(place: str, project: str) -> bool:
    """Tell whether a session of the directory was begun in the project; with no session, the name decides."""
    begun = list(islice(_begun_in(place), _SESSIONS))
    return not begun or any(os.path.realpath(each) == os.path.realpath(project) for each in begun)


def _begun_in(place: str) -> Iterator[str]:
    """Yield the directory in which each session was begun, the newest session first."""
    with os.scandir(place) as entries:
        files = [entry for entry in entries if entry.name.endswith(".jsonl") and entry.is_file(follow_symlinks=False)]
    for entry in sorted(files, key=lambda entry: -entry.stat(follow_symlinks=False).st_mtime_ns):
        with open_regular(entry.path) as file:
            lines = (parsed(raw) for raw, _ in islice(raw_lines(chunks_of(file.fileno())), _READ_OF_A_SESSION))
            cwd = next((line.cwd for line in lines if line is not None and isinstance(line.cwd, str)), None)
        if cwd is not None:
            yield cwd


def locate_claude_code(request: Request) -> Roots:
    """Return the sides of the nearest project with sessions, or of one whose sessions are only in its store.

    Raises `LocateError`.
    """
    start, home = request.path(request.workspace or ""), home_of(request)
    project = project_at(request) or (start if request.store is not None else None)
    if project is None:
        raise LocateError(
            f"Claude Code has no sessions of {start} or a directory above it (in {os.path.join(home, 'projects')})",
            "change to the project, or name it with --workspace",
        )
    store = request.path(request.store) if request.store is not None else store_of(FORMAT, project, request)
    return Roots(
        format=FORMAT,
        workspace=os.path.join(home, "projects", directory_name(project)),
        project=project,
        store=store,
        store_exists=is_directory(store),
        workspace_id=None,
        workspace_identity=directory_identity(project),
        key=f"{FORMAT}-{digest(os.fsencode(os.path.realpath(store)))}",
        inner="",
    )


def project_at(request: Request) -> str | None:
    """Return the nearest directory, from the start upwards, that has sessions or a store; None without any."""
    home, start = home_of(request), request.path(request.workspace or "")
    for at in with_parents(start):
        if sessions_directory(home, at) is not None:
            return at
    return next((at for at in with_parents(start) if is_directory(store_of(FORMAT, at, request))), None)


def live_sessions(home: str) -> LiveSessions:
    """Return the sessions that running processes have open. Raises `OSError` if the list can't be read.

    See docs/design/formats/claude-code.md#processes-that-run. A process that was killed leaves its file.
    """
    found = set()
    for name in _names(os.path.join(home, "sessions")):
        with suppress(OSError, ValueError, RecursionError):
            with open_regular(os.path.join(home, "sessions", name)) as file:
                value = json.loads(file.read(_LIMIT))
            if isinstance(value, dict) and isinstance(value.get("sessionId"), str) and _runs(value):
                found.add(value["sessionId"])
    return LiveSessions(found)


def _names(directory: str) -> list[str]:
    try:
        return [name for name in os.listdir(directory) if re.fullmatch(r"[0-9]+\.json", name)]
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
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
