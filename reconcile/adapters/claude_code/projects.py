"""Every project of which Claude Code has sessions, by the paths in their records.

See docs/design/formats/claude-code.md#names-of-project-directories: a path can't be read from a directory's name, but
the name of a path in a record can be computed and compared.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from reconcile.adapters.claude_code.directories import begun_in, cwd_of
from reconcile.adapters.claude_code.places import home_of
from reconcile.formats.claude_code.lines import parsed
from reconcile.formats.claude_code.names import directory_name
from reconcile.fs.paths import open_regular, status_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reconcile.adapters.roots import Request

_TAIL = 1 << 17
"""Bytes at the end of a session, in which the directory of its last turns is looked for."""
_SESSION = ".jsonl"


class LiveDirectory(NamedTuple):
    """A directory of the program with sessions. ``project``: whose they are; None if no record names it."""

    path: str
    project: str | None


def projects_directory(request: Request) -> str:
    """Return the directory in which the program has one directory for each project; it may not exist."""
    return os.path.join(home_of(request), "projects")


def live_directory(path: str) -> LiveDirectory | None:
    """Return a directory of the program with its project; None if it is no directory, or has no session.

    Of several paths with the same name, the one of the newest session counts that is there; if all are gone, the one of
    the newest session. Raises `OSError` if this is unknown.
    """
    try:
        sessions = [entry.path for entry in os.scandir(path) if entry.name.endswith(_SESSION)]
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not sessions:
        return None
    # A session that a person has moved here began elsewhere; its last turns are of this project.
    return LiveDirectory(path, _project_among(begun_in(path), path) or _project_among(_gone_on_in(sessions), path))


def _project_among(paths: Iterable[str], place: str) -> str | None:
    """Return the first project whose sessions are in this directory and that is there, else the first one.

    The paths are read only so far: with the first session, mostly.
    """
    others, gone = set[str](), None
    for path in paths:
        if path in others:
            continue
        if directory_name(os.path.realpath(path)) == os.path.basename(place):
            if status_at(path) is not None:
                return path
            gone = gone or path
        others.add(path)
    return gone


def _gone_on_in(sessions: list[str]) -> Iterator[str]:
    """Yield the directory of the last turn of each session."""
    for path in sessions:
        with suppress(FileNotFoundError), open_regular(path) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
            lines = map(parsed, reversed(file.read(_TAIL).splitlines()))
            cwd = next((cwd for line in lines if (cwd := cwd_of(line)) is not None), None)
            if cwd is not None:
                yield cwd
