"""The checks of `reconcile doctor` for sessions of Claude Code: what its next sweep deletes, and what it can't resume.

Nothing is written.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, NamedTuple

from reconcile.adapters.claude_code.directories import begun_in, locate_claude_code
from reconcile.adapters.claude_code.places import home_of
from reconcile.adapters.roots import Request
from reconcile.formats.claude_code.lines import parsed
from reconcile.formats.claude_code.names import directory_name
from reconcile.fs.paths import open_regular
from reconcile.model.commands import typed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reconcile.adapters.roots import Roots

DEFAULT_DAYS = 30
"""Days after which the program deletes a session, unless `cleanupPeriodDays` says otherwise."""
_DAY_NS = 86_400 * 10**9
_NEAR = 0.75
"""The share of these days after which a session without a copy is a warning."""
_TAIL = 1 << 20
_LIMIT = 1 << 20
_CHILD = "CLAUDE_CODE_CHILD_SESSION"


class SessionFinding(NamedTuple):
    """A finding in words. ``severity`` is warning or note; ``mend`` is a command, or the step before one."""

    kind: str
    severity: str
    place: str
    words: str
    matters: str
    mend: str


def check_sessions(start: str, now_ns: int) -> tuple[SessionFinding, ...]:
    """Return the findings of the project around ``start``, and of the program's home. Raises `OSError`."""
    request = Request(start, None, os.getcwd(), os.environ, sys.platform)
    home, roots = home_of(request), locate_claude_code(request)
    return (
        *_near_expiry(home, roots, now_ns),
        *_without_objects(roots.workspace),
        *_truncated(roots.workspace),
        *_elsewhere(os.path.join(home, "projects"), roots.workspace),
        *_environment(),
    )


def _near_expiry(home: str, roots: Roots, now_ns: int) -> Iterator[SessionFinding]:
    days, source, unread = expiry(home, roots.project)
    for place, words in unread.items():
        matters = "Claude Code pauses its sweep while it can't read a setting."
        yield SessionFinding("settings", "warning", place, words, matters, "repair the file")
    words = f"Claude Code deletes a session {days} days after its last change ({source})"
    matters = "The store keeps what a run has copied, also after that."
    keep = "copy the sessions of all projects, all the time: reconcile service install"
    yield SessionFinding("expiry", "note", roots.workspace, words, matters, keep)
    for name, status in _sessions(roots.workspace):
        age = (now_ns - status.st_mtime_ns) / _DAY_NS
        if age >= days * _NEAR and _size(os.path.join(roots.store, name)) != status.st_size:
            words = f"unused for {age:.0f} days, and the store lacks its newest lines"
            yield SessionFinding("near-expiry", "warning", name, words, "The next sweep can delete it.", "reconcile")


def expiry(home: str, project: str) -> tuple[int, str, dict[str, str]]:
    """Return the days after which the program deletes a session, and the file that says so.

    The third value has the files that can't be read, each with the reason.
    """
    own = os.path.join(project, ".claude")
    days, source, unread = DEFAULT_DAYS, "its default", dict[str, str]()
    for directory, name in ((home, "settings.json"), (own, "settings.json"), (own, "settings.local.json")):
        place = os.path.join(directory, name)
        try:
            chosen = _days_in(place)
        except (OSError, ValueError, RecursionError) as error:
            unread[place] = f"can't be read ({error})"
            continue
        if chosen is not None:
            days, source = chosen, place
    return days, source, unread


def _days_in(place: str) -> int | None:
    try:
        with open_regular(place) as file:
            value = json.loads(file.read(_LIMIT))
    except FileNotFoundError:
        return None
    days = value.get("cleanupPeriodDays") if isinstance(value, dict) else None
    return days if isinstance(days, int) and not isinstance(days, bool) and days > 0 else None


def _without_objects(workspace: str) -> Iterator[SessionFinding]:
    for name, _ in _sessions(workspace):
        path = os.path.join(workspace, name)
        with open_regular(path) as file:
            *whole, _ = file.read(_LIMIT).split(b"\n")
        if any(line.strip() for line in whole) and not any(parsed(line) for line in whole):
            matters = "Each run is blocked by it: it is no session of a known version, and none repairs it."
            mend = f"move it away: mv {typed(path)} ~"
            yield SessionFinding("no-session", "warning", name, "no line is a JSON object", matters, mend)


def _truncated(workspace: str) -> Iterator[SessionFinding]:
    for name, status in _sessions(workspace):
        path = os.path.join(workspace, name)
        with open_regular(path) as file:
            file.seek(max(0, status.st_size - _TAIL))
            last = file.read(_TAIL).rpartition(b"\n")[2]
        if last.strip() and parsed(last) is None:
            matters = "Claude Code before 2.1.330 appends to it, and loses both lines."
            mend = f"if no process has it open: printf '\\n' >> {typed(path)}"
            yield SessionFinding("torn-line", "note", name, "the last line was cut short", matters, mend)


def _elsewhere(projects: str, own: str) -> Iterator[SessionFinding]:
    """Yield what the directories of other projects have: paths that are gone, and sessions that are there twice."""
    homes: dict[str, list[str]] = {}
    for directory in _names(projects):
        place = os.path.join(projects, directory)
        for name, _ in _sessions(place):
            homes.setdefault(name, []).append(directory)
        begun = next(begun_in(place), None)
        # A directory with another name than the path has was moved, and belongs to the project's new place.
        is_its = begun is not None and directory_name(begun) == directory
        if place != own and begun is not None and is_its and not os.path.lexists(begun):
            words = f"its project {begun} is gone"
            mend = f"in the project's new place: reconcile recover --from {typed(begun)}"
            yield SessionFinding(
                "orphan", "note", place, words, "`claude --continue` no longer finds its sessions.", mend
            )
    for name, directories in homes.items():
        if len(directories) > 1:
            words = f"it is in {' and '.join(directories)}"
            matters = "`claude --resume` finds none of them from another project."
            yield SessionFinding("twice", "warning", name, words, matters, "remove all but the newest one")


def _environment() -> Iterator[SessionFinding]:
    if os.environ.get(_CHILD):
        matters = "A session that is started here belongs to another one."
        yield SessionFinding("child-session", "note", _CHILD, "it is set", matters, f"unset {_CHILD}")


def _sessions(directory: str) -> list[tuple[str, os.stat_result]]:
    names = [name for name in _names(directory) if name.endswith(".jsonl")]
    return [(name, os.lstat(os.path.join(directory, name))) for name in names]


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _size(path: str) -> int | None:
    try:
        return os.lstat(path).st_size
    except FileNotFoundError:
        return None
